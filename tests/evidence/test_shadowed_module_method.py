"""ML407: an attribute takes the place of a method that the framework calls."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def holder(base: Any, name: str, value: Any) -> Any:
    """A module that assigns ``value`` to ``self.name``."""

    class Net(base):
        def __init__(self) -> None:
            super().__init__()
            setattr(self, name, value)

        def forward(self, x: Any) -> Any:
            return x

    return Net()


# attribute, value, what fails because of it
TORCH_BROKEN: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("train", True, lambda module: module.train()),
    ("train", True, lambda module: module.eval()),  # calls train
    ("eval", True, lambda module: module.eval()),
    ("parameters", [], lambda module: module.parameters()),
    ("parameters", [], lambda module: module.zero_grad()),
    ("state_dict", {}, lambda module: module.state_dict()),
    ("apply", 1, lambda module: module.apply(print)),
    ("to", "cpu", lambda module: module.to("cpu")),
    ("cuda", True, lambda module: module.cuda()),
    ("cpu", True, lambda module: module.cpu()),
    ("type", "gan", lambda module: module.type("torch.DoubleTensor")),
    ("float", 1.0, lambda module: module.float()),
    ("half", True, lambda module: module.half()),
    ("zero_grad", True, lambda module: module.zero_grad()),
    ("modules", [1], lambda module: module.modules()),
]


@pytest.mark.parametrize(("name", "value", "use"), TORCH_BROKEN)
def test_torch_method_cannot_be_called_any_more(torch: Any, name: str, value: Any, use: Any) -> None:
    with pytest.raises(TypeError, match="not callable"):
        use(holder(torch.nn.Module, name, value))


@pytest.mark.parametrize("name", ["cpu", "float", "double", "half"])
def test_torch_parent_moves_and_converts_without_the_method_of_its_child(torch: Any, name: str) -> None:
    parent = torch.nn.Sequential(holder(torch.nn.Module, name, True), torch.nn.Linear(2, 2))
    getattr(parent, name)()
    parent.to("cpu")


def test_torch_parent_fails_as_well(torch: Any) -> None:
    """A parent calls ``train`` and ``state_dict`` of its children, ``type`` and others it does not."""
    nn = torch.nn
    with pytest.raises(TypeError):
        nn.Sequential(holder(nn.Module, "train", True)).eval()
    with pytest.raises(TypeError):
        nn.Sequential(holder(nn.Module, "state_dict", {})).state_dict()
    nn.Sequential(holder(nn.Module, "type", "gan")).double()
    nn.Sequential(holder(nn.Module, "half", True)).half()


def test_torch_module_assigned_under_such_a_name_is_out_of_reach(torch: Any) -> None:
    """The other way round: the method stays, and hides the submodule."""
    nn = torch.nn
    module = holder(nn.Module, "modules", nn.ModuleList([nn.Linear(2, 2)]))
    assert len(list(module.parameters())) == 2
    assert callable(module.modules)
    with pytest.raises(TypeError, match="not iterable"):
        list(module.modules)
    with pytest.raises(KeyError, match="already exists"):
        holder(nn.Module, "children", nn.Parameter(torch.ones(1)))
    with pytest.raises(KeyError, match="already exists"):
        holder(nn.Module, "x", None).register_buffer("children", torch.ones(1))


def test_torch_look_alikes(torch: Any) -> None:
    """Names that are no methods, and ``forward`` chosen at run time."""
    for name in ("device", "dtype", "name", "kind", "is_train", "size", "shape"):
        module = holder(torch.nn.Module, name, "x")
        assert module.eval()(1) == 1
    assert holder(torch.nn.Module, "forward", lambda x: x + 1)(1) == 2
    assert holder(torch.nn.Module, "training", False)(1) == 1


PADDLE_BROKEN: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("train", True, lambda layer: layer.train()),
    ("eval", True, lambda layer: layer.eval()),
    ("parameters", [], lambda layer: layer.parameters()),
    ("state_dict", {}, lambda layer: layer.state_dict()),
    ("to", "cpu", lambda layer: layer.to("cpu")),
    ("apply", 1, lambda layer: layer.apply(print)),
    ("sublayers", [], lambda layer: layer.sublayers()),
    ("sublayers", [], lambda layer: layer.train()),
    ("sublayers", [], lambda layer: layer.eval()),
]


@pytest.mark.parametrize(("name", "value", "use"), PADDLE_BROKEN)
def test_paddle_method_cannot_be_called_any_more(paddle: Any, name: str, value: Any, use: Any) -> None:
    with pytest.raises(TypeError, match="not callable"):
        use(holder(paddle.nn.Layer, name, value))


def test_paddle_layer_assigned_under_such_a_name_is_out_of_reach(paddle: Any) -> None:
    layer = holder(paddle.nn.Layer, "sublayers", paddle.nn.LayerList([paddle.nn.Linear(2, 2)]))
    assert len(layer.parameters()) == 2
    with pytest.raises(TypeError, match="not iterable"):
        list(layer.sublayers)


def test_paddle_methods_that_came_later(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """Names that shadow nothing on 2.6."""
    for name in ("type", "half", "double", "cuda", "cpu", "modules", "zero_grad", "requires_grad_"):
        assert hasattr(paddle.nn.Layer, name) is (paddle_version >= (3, 3))
