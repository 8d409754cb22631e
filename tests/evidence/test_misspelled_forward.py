"""ML405: a module without ``forward`` is made without complaint and fails when it is called."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

TYPOS = ["foward", "farward", "forwrd", "fordward", "forwad", "Forward", "_forward", "forward_", "__forward__"]


def with_method(base: Any, name: str) -> Any:
    return type("Net", (base,), {name: lambda self, x: x})


@pytest.mark.parametrize("name", TYPOS)
def test_torch_call_raises(torch: Any, name: str) -> None:
    module = with_method(torch.nn.Module, name)()
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        module(1)


@pytest.mark.parametrize("name", TYPOS)
def test_paddle_call_raises(paddle: Any, name: str) -> None:
    layer = with_method(paddle.nn.Layer, name)()
    with pytest.raises(NotImplementedError):
        layer(1)


def test_torch_look_alikes(torch: Any) -> None:
    """Modules that need no ``forward`` of their own."""
    assert with_method(torch.nn.Module, "forward")()(1) == 1
    assert with_method(torch.nn.Module, "__call__")()(1) == 1

    class Inherited(torch.nn.Identity):
        def foward(self, x: Any) -> Any:
            return x

    assert Inherited()(1) == 1

    class Assigned(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.forward = self.forward_impl

        def forward_impl(self, x: Any) -> Any:
            return x

    assert Assigned()(1) == 1
    with pytest.raises(NotImplementedError):
        torch.nn.ModuleList([torch.nn.Identity()])(1)  # a container: nobody calls it


def test_paddle_look_alikes(paddle: Any) -> None:
    assert with_method(paddle.nn.Layer, "forward")()(1) == 1
    with pytest.raises(NotImplementedError):
        paddle.nn.LayerList([paddle.nn.Identity()])(1)


def test_torch_runs_the_forward_of_the_base(torch: Any) -> None:
    class Doubled(torch.nn.Linear):
        def foward(self, x: Any) -> Any:
            return 2 * super().forward(x)

    layer, x = Doubled(2, 2), torch.ones(1, 2)
    assert torch.equal(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


def test_paddle_runs_the_forward_of_the_base(paddle: Any) -> None:
    class Doubled(paddle.nn.Linear):
        def foward(self, x: Any) -> Any:
            return 2 * super().forward(x)

    layer, x = Doubled(2, 2), paddle.ones([1, 2])
    assert bool((layer(x) == paddle.nn.functional.linear(x, layer.weight, layer.bias)).all())
