"""The installed torch: its samples, the kinds of its classes, and which of its modules are looked at."""

import importlib
import re
from collections.abc import Callable
from typing import Any

from mllint._dev.knowledge.framework import Framework
from mllint._dev.knowledge.samples import FrameworkSamples
from mllint._dev.knowledge.signatures import Parameter, Signature, returns_of
from mllint.knowledge.schema import Kind, Returns

numpy: Any = importlib.import_module("numpy")
torch: Any = importlib.import_module("torch")


class TorchSamples(FrameworkSamples):
    """How torch makes tensors, and how to look at them."""

    def make(self, shape: tuple[int, ...], dtype: str) -> Any:
        count = 1
        for size in shape:
            count *= size
        numbers = torch.arange(count, dtype=torch.float32).reshape(shape)
        if dtype == "int":
            return (numbers % 2).long()
        if dtype == "bool":
            return numbers % 2 == 0
        # Not symmetric, nowhere 0 or 1: most functions of real numbers are defined there.
        spread = 0.1 + 0.8 * torch.frac(numbers * 0.37)
        return torch.complex(spread, spread) if dtype == "complex" else spread

    def loss(self) -> Any:
        return self.make((2, 3), "float").requires_grad_().sum()

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def shape(self, value: Any) -> tuple[int, ...]:
        return tuple(value.shape)

    def fingerprint(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        return value._version, value.requires_grad, tuple(value.shape), value.dtype, value.is_conj()

    def other_kind(self, value: Any) -> Returns:
        kinds: tuple[tuple[Any, Returns], ...] = (
            (torch.Size, "size"),
            (torch.dtype, "dtype"),
            (torch.device, "device"),
            (numpy.ndarray, "array"),
            (torch.nn.Module, "module"),
        )
        return next((returns for kind, returns in kinds if isinstance(value, kind)), "other")

    def dtypes(self) -> tuple[Any, ...]:
        return (torch.float64, torch.int64, torch.uint8)


def _kind_of(cls: type, name: str) -> Kind | None:
    """The kind of a class by what it derives from."""
    bases = {base.__name__ for base in cls.__mro__}
    if issubclass(cls, torch.nn.Module):
        if issubclass(cls, torch.nn.RNNBase | torch.nn.RNNCellBase):
            return "rnn"
        if name.rpartition(".")[2] in _CONTAINERS:
            return "container"
        return "loss" if cls.__module__ == "torch.nn.modules.loss" else "layer"
    kinds: tuple[tuple[str, Kind], ...] = (
        ("Optimizer", "optimizer"),
        ("LRScheduler", "scheduler"),
        ("DataLoader", "loader"),
        ("Sampler", "sampler"),
        ("Dataset", "dataset"),
        ("GradScaler", "scaler"),
        ("Parameter", "parameter"),
        ("UninitializedTensorMixin", "parameter"),
        ("Tensor", "tensor"),
        ("device", "device"),
        ("Generator", "generator"),
        ("Distribution", "distribution"),
    )
    if name.endswith("Tensor") and isinstance(cls, type(torch.FloatTensor)):
        return "tensor"
    if cls is torch.dtype:
        return "dtype"
    other: Kind | None = "other" if _USEFUL.search(name) else None
    return next((kind for base, kind in kinds if base in bases), other)


_USEFUL = re.compile(
    r"^torch\.(serialization\.safe_globals|no_grad|enable_grad|inference_mode|set_grad_enabled|autocast|Size|finfo|iinfo|layout|memory_format)$"
    r"|^torch\.(autograd|nn|amp|optim|utils|cuda\.amp)\.|^torch\.cuda\.(Event|Stream|device|graph|CUDAGraph)$"
    r"|^torch\.distributed\.(ReduceOp|DeviceMesh|ProcessGroup|TCPStore|FileStore|P2POp|Work)$"
)


_CONTAINERS = frozenset({"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})


_OPERATORS = {
    "torch": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.fft": "fft_",
    "torch.special": "special_",
}


def _registered(qualified: str) -> list[Signature]:
    """The ways to call an operator of ATen, without the ones that only add ``out=``."""
    module, _, name = qualified.rpartition(".")
    if module not in _OPERATORS:
        return []
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{_OPERATORS[module]}{name}"):
        if any(argument.is_out for argument in schema.arguments):
            continue
        parameters = tuple(
            Parameter(
                "input" if argument.name == "self" else argument.name,
                required=not argument.has_default_value(),
                keyword_only=argument.kwarg_only,
            )
            for argument in schema.arguments
        )
        results = [str(result.type) for result in schema.returns]
        text = results[0] if len(results) == 1 else f"({', '.join(results)})"
        found.append(Signature(parameters, returns_of(text)))
    return found


def _make_layer(name: str) -> Any:
    if name == "encoder_layer":
        return torch.nn.TransformerEncoderLayer(4, 2)
    if name == "decoder_layer":
        return torch.nn.TransformerDecoderLayer(4, 2)
    return torch.nn.Linear(4, 4)


def _other_values(parameter: Parameter) -> tuple[Any, ...]:
    if isinstance(parameter.default, bool):
        return (not parameter.default,)
    if isinstance(parameter.default, int):
        return (parameter.default + 1,)
    return (2,) if parameter.default is None else ()


def _instances() -> dict[str, tuple[type, Callable[[], Any]]]:
    def optimizer() -> Any:
        return torch.optim.SGD(torch.nn.Linear(4, 4).parameters(), lr=0.1)

    def loader() -> Any:
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)))

    return {
        "torch.nn.Module": (torch.nn.Module, lambda: torch.nn.Sequential(torch.nn.Linear(4, 4))),
        "torch.optim.Optimizer": (torch.optim.Optimizer, optimizer),
        "torch.optim.lr_scheduler.LRScheduler": (
            torch.optim.lr_scheduler.LRScheduler,
            lambda: torch.optim.lr_scheduler.StepLR(optimizer(), 1),
        ),
        "torch.amp.GradScaler": (torch.amp.GradScaler, lambda: torch.amp.GradScaler("cpu", enabled=False)),
        "torch.utils.data.DataLoader": (torch.utils.data.DataLoader, loader),
        "torch.distributions.Distribution": (
            torch.distributions.Distribution,
            lambda: torch.distributions.Normal(torch.zeros(2), torch.ones(2)),
        ),
    }


def _method_argument(name: str, instance: Any) -> Any:
    values: dict[str, Any] = {
        "state_dict": instance.state_dict() if hasattr(instance, "state_dict") else None,
        "device": "cpu",
        "dst_type": torch.float64,
        "name": "added",
        "param": None,
        "tensor": None,
        "target": "0",
        "param_group": {"params": [torch.nn.Parameter(torch.ones(2))]},
        "outputs": torch.ones(2),
        "optimizer": torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1),
        "value": torch.ones(2),
        "destination": {},
        "prefix": "",
    }
    return values.get(name, torch.nn.Linear(4, 4) if "module" in name else lambda *given: None)


_MODULES = (
    "torch.nn.functional",
    "torch.amp",
    "torch",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.nn.init",
    "torch.sparse",
    "torch.signal.windows",
    "torch.nn",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.prune",
    "torch.nn.parallel",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.func",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.checkpoint",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.distributed",
    "torch.distributions",
    "torch.jit",
    "torch.hub",
    "torch.random",
    "torch.serialization",
    "torch.compiler",
    "torch.accelerator",
    "torch.backends.mps",
    "torch.testing",
    "torch.onnx",
    "torch.nn.modules.utils",
)


def torch_framework() -> Framework:
    """The installed torch."""
    return Framework(
        name="torch",
        version=torch.__version__.partition("+")[0],
        samples=TorchSamples(),
        tensor=torch.Tensor,
        layer=torch.nn.Module,
        modules=_MODULES,
        called_modules=frozenset(
            {
                "torch.nn.functional",
                "torch",
                "torch.linalg",
                "torch.fft",
                "torch.special",
                "torch.nn.init",
                "torch.sparse",
                "torch.signal.windows",
            }
        ),
        never_called=re.compile(
            r"^torch\.(set_|use_|enable_|init_|import_|cond$|while_loop|save|load|compile|from_file|fork|wait|typename|unravel|manual_seed|seed)"
        ),
        never_tabled=re.compile(
            r"torch_function|\.(boolean_dispatch|assert_int_or_pair|prepare_multi|classproperty|handle_torch)"
            r"|^torch\.(cudnn|miopen|mkldnn|fbgemm|quantized|sym)_"
            r"|^torch\.(parse|unify|merge|native|batch_norm|profiler|q|lstm|gru|rnn)_|_copy$|quantized|fake_quant"
        ),
        alias_modules=re.compile(
            r"^torch\.(nn|optim|autograd|amp|cuda|distributions|functional|random|serialization|hub)\b"
            r"|^torch\.utils\.(data|checkpoint)\b|^torch\.distributed\.distributed_c10d$"
        ),
        kind_of=_kind_of,
        make_layer=_make_layer,
        other_values=_other_values,
        state_keys=lambda layer: layer.state_dict(),
        instances=_instances,
        method_argument=_method_argument,
        registered=_registered,
    )
