"""The tables and the written facts are what the frameworks do."""

import importlib
import importlib.util
import itertools
import subprocess
import sys
from typing import Any

import pytest

from mllint._dev.knowledge import main
from mllint.knowledge import facts, lookup
from mllint.knowledge.rows import sections
from mllint.knowledge.words import OF_MODULES

pytestmark = [
    pytest.mark.evidence,
    pytest.mark.filterwarnings("ignore"),  # much of what is called is deprecated
]


def _check_table(name: str, version: str) -> None:
    tabled = sections(name)["VERSION"]
    if version.partition("+")[0] != tabled:
        pytest.skip(f"the tables are about {name} {tabled}, {version} is installed")
    # In an interpreter of its own: the command forks, and the threads of a framework that has run do not survive that.
    command = [sys.executable, "-m", "mllint._dev", "knowledge", name, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_torch_tables_are_up_to_date(torch: Any) -> None:
    _check_table("torch", torch.__version__)


def test_paddle_tables_are_up_to_date(paddle: Any) -> None:
    _check_table("paddle", paddle.__version__)


def test_torch_holds_itself(torch: Any) -> None:
    """``from torch import torch`` gives the package."""
    assert torch.torch is torch


def test_paddle_holds_itself(paddle: Any) -> None:
    assert paddle.paddle is paddle


def test_neighbour_tables_are_up_to_date() -> None:
    for name in ("numpy", "pandas", "PIL"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    module = importlib.import_module("mllint._dev.knowledge.neighbours")
    tables = importlib.import_module("mllint.knowledge.neighbour_tables")
    if module.render().partition("\n")[0] != f'"""{(tables.__doc__ or "").partition(chr(10))[0]}':
        pytest.skip("other versions are installed than the table is about")
    assert main(["neighbours", "--check"]) == 0


TORCH_LAYERS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("Linear", {"in_features": 2, "out_features": 2}, ("bias",)),
    ("Conv2d", {"in_channels": 2, "out_channels": 2, "kernel_size": 1}, ("bias",)),
    ("BatchNorm2d", {"num_features": 2}, ("affine", "track_running_stats")),
    ("InstanceNorm2d", {"num_features": 2}, ("affine", "track_running_stats")),
    ("GroupNorm", {"num_groups": 2, "num_channels": 2}, ("affine",)),
    ("LayerNorm", {"normalized_shape": 2}, ("elementwise_affine", "bias")),
    ("Embedding", {"num_embeddings": 2, "embedding_dim": 2}, ("sparse",)),
    ("MultiheadAttention", {"embed_dim": 2, "num_heads": 1}, ("bias", "add_bias_kv", "add_zero_attn")),
    ("TransformerEncoderLayer", {"d_model": 2, "nhead": 1}, ("bias", "norm_first")),
    ("Bilinear", {"in1_features": 2, "in2_features": 2, "out_features": 2}, ("bias",)),
    ("LSTMCell", {"input_size": 2, "hidden_size": 2}, ("bias",)),
    ("PReLU", {}, ()),
]
PADDLE_LAYERS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("Linear", {"in_features": 2, "out_features": 2}, ("weight_attr", "bias_attr")),
    ("Conv2D", {"in_channels": 2, "out_channels": 2, "kernel_size": 1}, ("bias_attr",)),
    ("BatchNorm2D", {"num_features": 2}, ("weight_attr", "bias_attr")),
    ("InstanceNorm2D", {"num_features": 2}, ("weight_attr", "bias_attr")),
    ("GroupNorm", {"num_groups": 2, "num_channels": 2}, ("weight_attr", "bias_attr")),
    ("LayerNorm", {"normalized_shape": 2}, ("weight_attr", "bias_attr")),
    ("Embedding", {"num_embeddings": 2, "embedding_dim": 2}, ("sparse",)),
    ("MultiHeadAttention", {"embed_dim": 2, "num_heads": 1}, ("bias_attr",)),
    ("TransformerEncoderLayer", {"d_model": 2, "nhead": 1, "dim_feedforward": 2}, ("bias_attr",)),
    ("PReLU", {}, ()),
]


def _combinations(switches: tuple[str, ...], values: tuple[Any, ...]) -> list[dict[str, Any]]:
    chosen = itertools.product((..., *values), repeat=len(switches))
    return [{name: value for name, value in zip(switches, given, strict=True) if value is not ...} for given in chosen]


@pytest.mark.parametrize(("name", "required", "switches"), TORCH_LAYERS, ids=[row[0] for row in TORCH_LAYERS])
def test_torch_layer_keys(torch: Any, name: str, required: dict[str, Any], switches: tuple[str, ...]) -> None:
    for given in _combinations(switches, (True, False)):
        keys = lookup.layer_keys(f"torch.nn.{name}", required | given)
        assert keys is not None, given
        assert set(keys) == set(getattr(torch.nn, name)(**required, **given).state_dict()), given


@pytest.mark.parametrize(("name", "required", "switches"), PADDLE_LAYERS, ids=[row[0] for row in PADDLE_LAYERS])
def test_paddle_layer_keys(
    paddle: Any, paddle_version: tuple[int, int], name: str, required: dict[str, Any], switches: tuple[str, ...]
) -> None:
    for given in _combinations(switches, (None, False)):
        if name == "GroupNorm" and paddle_version < (3, 0) and given:
            continue  # keeps its parameters until 3.0
        keys = lookup.layer_keys(f"paddle.nn.{name}", required | given)
        if keys is None:
            assert name == "InstanceNorm2D"
            continue
        assert set(keys) == set(getattr(paddle.nn, name)(**required, **given).state_dict()), given


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_torch_recurrent_keys(torch: Any, name: str) -> None:
    for layers, bias, both, projected in itertools.product((1, 2, 3), (True, False), (True, False), (0, 1)):
        given = {"num_layers": layers, "bias": bias, "bidirectional": both}
        if projected:
            if name != "LSTM":
                continue
            given["proj_size"] = projected
        keys = lookup.layer_keys(f"torch.nn.{name}", given)
        assert keys is not None
        assert set(keys) == set(getattr(torch.nn, name)(3, 2, **given).state_dict()), given


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
def test_paddle_recurrent_keys(paddle: Any, name: str) -> None:
    directions = ("forward", "bidirect", "bidirectional")
    for layers, direction, ih, hh in itertools.product((1, 2), directions, (None, False), (None, False)):
        given = {"num_layers": layers, "direction": direction, "bias_ih_attr": ih, "bias_hh_attr": hh}
        keys = lookup.layer_keys(f"paddle.nn.{name}", given)
        assert keys is not None
        try:
            layer = getattr(paddle.nn, name)(3, 2, **given)
        except IndexError:
            assert layers > 1 or direction != "forward"  # paddle cannot build these without biases
            assert False in (ih, hh)
            continue
        assert set(keys) == set(layer.state_dict()), given


def test_torch_wrappers(torch: Any) -> None:
    net = torch.nn.Linear(2, 2)
    wrapped = {
        "torch.nn.DataParallel": torch.nn.DataParallel(net),
        "torch.compile": torch.compile(net),
        "torch.jit.script": torch.jit.script(net),
        "torch.jit.trace": torch.jit.trace(net, torch.ones(1, 2)),
    }
    for name, wrapper in wrapped.items():
        known = lookup.wrapper(name)
        assert known is not None
        assert set(wrapper.state_dict()) == {f"{known.prefix}{key}" for key in net.state_dict()}, name
        assert known.attribute is None or getattr(wrapper, known.attribute) is net, name


def test_torch_wrappers_that_hand_methods_on(torch: Any) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, inputs: Any) -> Any:
            return inputs

        def losses(self, inputs: Any) -> Any:
            return inputs + 1

    made = {"torch.nn.DataParallel": torch.nn.DataParallel(Net()), "torch.compile": torch.compile(Net())}
    for name, wrapper in made.items():
        known = lookup.wrapper(name)
        assert known is not None
        assert hasattr(wrapper, "losses") is known.hands_on, name
    assert made["torch.compile"].losses(1) == 2


def test_torch_averaged_model(torch: Any) -> None:
    averaged = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(2, 2))
    known = lookup.wrapper("torch.optim.swa_utils.AveragedModel")
    assert known is not None
    assert set(averaged.state_dict()) == {"n_averaged", f"{known.prefix}weight", f"{known.prefix}bias"}


def test_torch_distributed_wrapper(torch: Any, tmp_path: Any) -> None:
    if not torch.distributed.is_available():
        pytest.skip("built without torch.distributed")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        net = torch.nn.Linear(2, 2)
        wrapper = torch.nn.parallel.DistributedDataParallel(net)
        assert set(wrapper.state_dict()) == {"module.weight", "module.bias"}
        assert wrapper.module is net
    finally:
        torch.distributed.destroy_process_group()


def test_paddle_wrappers(paddle: Any) -> None:
    net = paddle.nn.Linear(2, 2)
    wrapper = paddle.DataParallel(net)
    assert set(wrapper.state_dict()) == {"weight", "bias"}
    assert wrapper._layers is net
    assert set(paddle.jit.to_static(net).state_dict()) == {"weight", "bias"}


def test_paddle_wrappers_that_hand_methods_on(paddle: Any) -> None:
    class Net(paddle.nn.Layer):  # type: ignore[misc]
        def forward(self, inputs: Any) -> Any:
            return inputs

        def losses(self, inputs: Any) -> Any:
            return inputs + 1

    made = {"paddle.DataParallel": paddle.DataParallel(Net()), "paddle.jit.to_static": paddle.jit.to_static(Net())}
    for name, wrapper in made.items():
        known = lookup.wrapper(name)
        assert known is not None
        assert hasattr(wrapper, "losses") is known.hands_on, name
    assert made["paddle.jit.to_static"].losses(1) == 2


@pytest.mark.parametrize("name", sorted(name for name in facts.GRAD_OFF if name.startswith("torch.")))
def test_torch_gradients_are_off(torch: Any, name: str) -> None:
    weight = torch.ones(2, requires_grad=True)
    with getattr(torch, name.removeprefix("torch."))():
        assert not (weight * 2).requires_grad
    assert (weight * 2).requires_grad


@pytest.mark.parametrize("name", sorted(name for name in facts.GRAD_OFF if name.startswith("paddle.no")))
def test_paddle_gradients_are_off(paddle: Any, name: str) -> None:
    weight = paddle.ones([2])
    weight.stop_gradient = False
    with getattr(paddle, name.removeprefix("paddle."))():
        assert (weight * 2).stop_gradient
    assert not (weight * 2).stop_gradient


def test_paddle_base_no_grad_is_a_context_manager(paddle: Any) -> None:
    weight = paddle.ones([2])
    weight.stop_gradient = False
    for module in (paddle.base.dygraph, paddle.base.dygraph.base, paddle.framework.base):
        with module.no_grad():
            assert (weight * 2).stop_gradient


def test_torch_set_grad_enabled_takes_its_argument(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    for value in (True, False):
        with torch.set_grad_enabled(value):
            assert (weight * 2).requires_grad is value


def test_paddle_set_grad_enabled_takes_its_argument(paddle: Any) -> None:
    parameter = paddle.nn.Linear(2, 2).weight
    for value in (True, False):
        with paddle.set_grad_enabled(value):
            assert (parameter * 2).stop_gradient is not value


@pytest.mark.parametrize("name", sorted(name for name in facts.RETURNS if name.startswith("torch.nn.init.")))
def test_deprecated_initializer_gives_its_argument(torch: Any, name: str) -> None:
    last = name.rpartition(".")[2]
    tensor = torch.zeros(3, 3, 3) if last == "dirac" else torch.zeros(3, 3)
    arguments = {"constant": (1.0,), "sparse": (0.5,)}.get(last, ())
    assert getattr(torch.nn.init, last)(tensor, *arguments) is tensor


def test_reparametrization_gives_its_module(torch: Any) -> None:
    utils = torch.nn.utils
    net = torch.nn.Linear(2, 2)
    assert utils.weight_norm(net) is net
    assert utils.remove_weight_norm(net) is net
    assert utils.spectral_norm(net) is net
    assert utils.remove_spectral_norm(net) is net
    assert utils.parametrizations.weight_norm(net) is net
    net = torch.nn.Linear(2, 2)
    prune = importlib.import_module("torch.nn.utils.prune")
    for name, arguments in {
        "identity": (),
        "l1_unstructured": (0.5,),
        "random_unstructured": (0.5,),
        "random_structured": (0.5, 0),
        "ln_structured": (0.5, 2, 0),
        "custom_from_mask": (torch.ones(2, 2),),
    }.items():
        assert getattr(prune, name)(net, "weight", *arguments) is net, name
    assert prune.remove(net, "weight") is net


def test_paddle_reparametrization_gives_its_layer(paddle: Any) -> None:
    net = paddle.nn.Linear(2, 2)
    assert paddle.nn.utils.weight_norm(net) is net
    assert paddle.nn.utils.remove_weight_norm(net) is net
    assert paddle.nn.utils.spectral_norm(net) is net


def test_paddle_where_and_atleast(paddle: Any) -> None:
    tensor = paddle.ones([2])
    assert isinstance(paddle.where(tensor > 0, tensor, tensor), paddle.Tensor)
    assert isinstance(paddle.atleast_1d(tensor), paddle.Tensor)
    assert isinstance(paddle.atleast_3d(tensor, tensor), list)


def test_paddle_train_and_eval_give_the_layer_in_some_versions_only(
    paddle: Any, paddle_version: tuple[int, int]
) -> None:
    layer = paddle.nn.Linear(2, 2)
    expected = None if paddle_version < (3, 0) else layer
    assert layer.eval() is expected
    assert layer.train() is expected


def test_upsampling_gives_a_tensor(torch: Any) -> None:
    image = torch.ones(1, 1, 4, 4)
    for name in ("upsample", "upsample_bilinear", "upsample_nearest"):
        assert isinstance(getattr(torch.nn.functional, name)(image, scale_factor=2), torch.Tensor)


def test_embedding_from_pretrained_is_a_layer(torch: Any) -> None:
    weights = torch.ones(2, 2)
    for cls in (torch.nn.Embedding, torch.nn.EmbeddingBag):
        layer = cls.from_pretrained(weights)
        assert type(layer) is cls
        assert list(layer.state_dict()) == ["weight"]


def test_torch_module_says_whether_it_is_scripted(torch: Any) -> None:
    assert torch.jit.is_scripting() is False
    assert torch.jit.is_tracing() is False


def test_variable_gives_a_tensor(torch: Any) -> None:
    assert type(torch.autograd.Variable(torch.ones(2))) is torch.Tensor


def test_torch_gradient_is_a_tensor_after_backward(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    assert weight.grad is None
    weight.sum().backward()
    assert isinstance(weight.grad, torch.Tensor)


def test_paddle_gradient_is_a_tensor_after_backward(paddle: Any) -> None:
    parameter = paddle.nn.Linear(2, 2).weight
    assert parameter.grad is None
    parameter.sum().backward()
    assert isinstance(parameter.grad, paddle.Tensor)


def test_old_private_bases_are_modules(torch: Any) -> None:
    for name, known in facts.CLASSES.items():
        if name.startswith("torch.nn.modules."):
            module, _, last = name.rpartition(".")
            assert issubclass(getattr(importlib.import_module(module), last), torch.nn.Module)
            assert known.kind in ("layer", "loss")
    scheduler = torch.optim.lr_scheduler
    assert issubclass(scheduler._LRScheduler, scheduler.LRScheduler)


def test_numpy_functions_give_arrays(numpy: Any) -> None:
    matrix = numpy.array([[1.0, 2.0], [3.0, 4.0]])
    arguments: dict[str, tuple[Any, ...]] = {
        "arange": (3,),
        "concatenate": ([matrix, matrix],),
        "empty": (3,),
        "expand_dims": (matrix, 0),
        "eye": (3,),
        "full": (3, 1.0),
        "full_like": (matrix, 1.0),
        "hstack": ([matrix, matrix],),
        "identity": (3,),
        "linspace": (0, 1),
        "ones": (3,),
        "pad": (matrix, 1),
        "repeat": (matrix, 2),
        "reshape": (matrix, 4),
        "rollaxis": (matrix, 1),
        "stack": ([matrix, matrix],),
        "tile": (matrix, 2),
        "vstack": ([matrix, matrix],),
        "zeros": (3,),
    }
    for name, known in facts.FUNCTIONS.items():
        if name.startswith("numpy."):
            last = name.removeprefix("numpy.")
            result = getattr(numpy, last)(*arguments.get(last, (1.5,) if known.returns == "number" else (matrix,)))
            kind = numpy.ndarray if known.returns == "array" else numpy.generic
            assert isinstance(result, kind), name


MADE_ANEW: dict[str, tuple[Any, ...]] = {
    "zeros": ([2],), "ones": ([2],), "full": ([2], 1.0), "empty": ([2],), "eye": (2,), "arange": (3,),
    "linspace": (0, 1, 3), "logspace": (0, 1, 3), "rand": ([2],), "randn": ([2],), "randint": (0, 3, [2]),
    "randperm": (3,), "tril_indices": (2, 2, 0), "triu_indices": (2, 2, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_ANEW)
def test_torch_tensor_made_anew_has_no_history(torch: Any, name: str) -> None:
    assert not getattr(torch, name)(*MADE_ANEW[name]).requires_grad


@pytest.mark.parametrize("name", MADE_ANEW)
def test_paddle_tensor_made_anew_has_no_history(paddle: Any, name: str) -> None:
    assert getattr(paddle, name)(*MADE_ANEW[name]).stop_gradient


def test_torch_tensor_hangs_on_what_is_written_into_it(torch: Any) -> None:
    weight = torch.ones(1, requires_grad=True)
    bounds = torch.linspace(weight.sum(), 2, 3)
    table = torch.zeros(2)
    table[0] = weight.sum()
    assert not bounds.requires_grad
    assert table.requires_grad


def test_words_of_modules_are_those_of_one_framework_or_the_other(torch: Any, paddle: Any) -> None:
    assert set(dir(torch.nn.Linear(1, 1))) | set(dir(paddle.nn.Linear(1, 1))) >= OF_MODULES
