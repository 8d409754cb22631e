"""The installed paddle: its samples, the kinds of its classes, and which of its modules are looked at."""

import importlib
import re
from collections.abc import Callable
from typing import Any

from mllint._dev.knowledge.framework import Framework
from mllint._dev.knowledge.samples import FrameworkSamples
from mllint._dev.knowledge.signatures import Parameter, Signature
from mllint.knowledge.schema import Kind, Returns

numpy: Any = importlib.import_module("numpy")
paddle: Any = importlib.import_module("paddle")


class PaddleSamples(FrameworkSamples):
    """How paddle makes tensors, and how to look at them."""

    def make(self, shape: tuple[int, ...], dtype: str) -> Any:
        numbers = numpy.arange(numpy.prod(shape), dtype="float32").reshape(shape)
        if dtype == "int":
            return paddle.to_tensor((numbers % 2).astype("int64"))
        if dtype == "bool":
            return paddle.to_tensor(numbers % 2 == 0)
        # Not symmetric, nowhere 0 or 1: most functions of real numbers are defined there.
        spread = (0.1 + 0.8 * numpy.mod(numbers * 0.37, 1)).astype("float32")
        return paddle.to_tensor(spread + 1j * spread if dtype == "complex" else spread)

    def loss(self) -> Any:
        values = self.make((2, 3), "float")
        values.stop_gradient = False
        return values.sum()

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, paddle.Tensor)

    def shape(self, value: Any) -> tuple[int, ...]:
        return tuple(value.shape)

    def fingerprint(self, value: Any) -> Any:
        if not isinstance(value, paddle.Tensor):
            return None
        return value.inplace_version, value.stop_gradient, tuple(value.shape), value.dtype

    def other_kind(self, value: Any) -> Returns:
        kinds: tuple[tuple[Any, Returns], ...] = (
            (paddle.dtype, "dtype"),
            (numpy.ndarray, "array"),
            (paddle.nn.Layer, "module"),
            (paddle.base.core.Place, "device"),
        )
        return next((returns for kind, returns in kinds if isinstance(value, kind)), "other")

    def dtypes(self) -> tuple[Any, ...]:
        return ("float64", "int64", "uint8")


_CONTAINERS = frozenset({"Layer", "Sequential", "LayerList", "LayerDict", "ParameterList", "ParameterDict"})
_USEFUL = re.compile(
    r"^paddle\.(no_grad|enable_grad|set_grad_enabled|ParamAttr|CPUPlace|CUDAPlace|DataParallel|Model|LazyGuard)$"
    r"|^paddle\.(amp|autograd|nn|metric|regularizer|optimizer|distribution|io|vision)\."
    r"|^paddle\.distributed\.ParallelEnv$"
    r"|^paddle\.static\.(InputSpec|Program|Executor|Variable)$|^paddle\.jit\.TranslatedLayer$"
)


def _kind_of(cls: type, name: str) -> Kind | None:
    """The kind of a class by what it derives from."""
    bases = {base.__name__ for base in cls.__mro__}
    if issubclass(cls, paddle.nn.Layer):
        if bases & {"RNNBase", "RNNCellBase"}:
            return "rnn"
        if name.rpartition(".")[2] in _CONTAINERS:
            return "container"
        return "loss" if cls.__module__ == "paddle.nn.layer.loss" else "layer"
    kinds: tuple[tuple[str, Kind], ...] = (
        ("Optimizer", "optimizer"),
        ("LRScheduler", "scheduler"),
        ("DataLoader", "loader"),
        ("Sampler", "sampler"),
        ("BatchSampler", "sampler"),
        ("Dataset", "dataset"),
        ("GradScaler", "scaler"),
        ("EagerParamBase", "parameter"),
        ("Variable", "tensor"),
        ("Tensor", "tensor"),
        ("Place", "device"),
        ("Generator", "generator"),
        ("Distribution", "distribution"),
    )
    other: Kind | None = "other" if _USEFUL.search(name) else None
    return next((kind for base, kind in kinds if base in bases), other)


def _make_layer(name: str) -> Any:
    if name == "encoder_layer":
        return paddle.nn.TransformerEncoderLayer(4, 2, 4)
    if name == "decoder_layer":
        return paddle.nn.TransformerDecoderLayer(4, 2, 4)
    if "cell" in name:
        return paddle.nn.GRUCell(4, 4)
    return paddle.nn.Linear(4, 4)


def _other_values(parameter: Parameter) -> tuple[Any, ...]:
    if parameter.name.endswith("_attr"):
        return (False,)
    if isinstance(parameter.default, bool):
        return (not parameter.default,)
    if isinstance(parameter.default, int):
        return (parameter.default + 1,)
    if parameter.default == "forward":
        return ("bidirect",)
    return (2,) if parameter.default is None else ()


def _registered(qualified: str) -> list[Signature]:
    """Paddle has no registry of signatures that can be asked."""
    return []


def _instances() -> dict[str, tuple[type, Callable[[], Any]]]:
    def optimizer() -> Any:
        return paddle.optimizer.SGD(parameters=paddle.nn.Linear(4, 4).parameters())

    def loader() -> Any:
        return paddle.io.DataLoader(paddle.io.TensorDataset([paddle.ones([4, 2])]))

    return {
        "paddle.nn.Layer": (paddle.nn.Layer, lambda: paddle.nn.Sequential(paddle.nn.Linear(4, 4))),
        "paddle.optimizer.Optimizer": (paddle.optimizer.Optimizer, optimizer),
        "paddle.optimizer.lr.LRScheduler": (
            paddle.optimizer.lr.LRScheduler,
            lambda: paddle.optimizer.lr.StepDecay(0.1, 1),
        ),
        "paddle.amp.GradScaler": (paddle.amp.GradScaler, lambda: paddle.amp.GradScaler(enable=False)),
        "paddle.io.DataLoader": (paddle.io.DataLoader, loader),
        "paddle.distribution.Distribution": (
            paddle.distribution.Distribution,
            lambda: paddle.distribution.Normal(paddle.zeros([2]), paddle.ones([2])),
        ),
    }


def _method_argument(name: str, instance: Any) -> Any:
    values: dict[str, Any] = {
        "state_dict": instance.state_dict() if hasattr(instance, "state_dict") else None,
        "sublayer": paddle.nn.Linear(4, 4),
        "name": "added",
        "parameter": None,
        "tensor": None,
        "dtype": "float64",
        "shape": [2],
        "value": 0.5 if isinstance(instance, paddle.optimizer.Optimizer) else paddle.ones([2]),
        "var": paddle.ones([2]),
        "optimizer": paddle.optimizer.SGD(parameters=paddle.nn.Linear(4, 4).parameters()),
    }
    return values.get(name, lambda *given: None)


_MODULES = (
    "paddle.nn.functional",
    "paddle.amp",
    "paddle",
    "paddle.linalg",
    "paddle.fft",
    "paddle.signal",
    "paddle.geometric",
    "paddle.nn",
    "paddle.nn.utils",
    "paddle.nn.initializer",
    "paddle.nn.quant",
    "paddle.autograd",
    "paddle.optimizer",
    "paddle.optimizer.lr",
    "paddle.io",
    "paddle.metric",
    "paddle.regularizer",
    "paddle.distribution",
    "paddle.distributed",
    "paddle.jit",
    "paddle.static",
    "paddle.static.nn",
    "paddle.device",
    "paddle.device.cuda",
    "paddle.incubate",
    "paddle.incubate.nn",
    "paddle.incubate.nn.functional",
    "paddle.sparse",
    "paddle.vision.ops",
    "paddle.vision.models",
    "paddle.vision.transforms",
    "paddle.vision.datasets",
    "paddle.sparse.nn",
)


def paddle_framework() -> Framework:
    """The installed paddle."""
    return Framework(
        name="paddle",
        version=paddle.__version__,
        samples=PaddleSamples(),
        tensor=paddle.Tensor,
        layer=paddle.nn.Layer,
        modules=_MODULES,
        called_modules=frozenset(
            {
                "paddle.nn.functional",
                "paddle",
                "paddle.linalg",
                "paddle.fft",
                "paddle.signal",
                "paddle.geometric",
            }
        ),
        never_called=re.compile(
            r"^paddle\.(set_|enable_|disable_|use_|monkey|save|load|hub|async|batch$|summary|flops)|class_center_sample"
        ),
        never_tabled=re.compile(
            r"monkey_patch|new_init|original_init|\.IrGuard"
            # C++ functions under a name that has a Python function elsewhere.
            r"|^paddle\.linalg\.(matmul|diagonal)$"
        ),
        alias_modules=re.compile(
            r"^paddle\.(nn|optimizer|amp|autograd|io|metric|distribution|tensor|framework|regularizer|hapi|jit)\b"
            r"|^paddle\.base$|^paddle\.base\.(dygraph|param_attr)\b|^paddle\.vision\.(models|transforms)\b"
        ),
        kind_of=_kind_of,
        make_layer=_make_layer,
        other_values=_other_values,
        state_keys=lambda layer: layer.state_dict(),
        instances=_instances,
        method_argument=_method_argument,
        registered=_registered,
    )
