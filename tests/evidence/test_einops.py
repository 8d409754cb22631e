"""What the functions and layers of einops give: tensors of the framework that they are given, on their graph."""

from typing import Any

import pytest

from mllint.knowledge import lookup

pytestmark = pytest.mark.evidence

einops = pytest.importorskip("einops")


def _given_back(x: Any) -> list[Any]:
    return [
        einops.rearrange(x, "b (n d) -> b n d", n=2),
        einops.reduce(x, "b d -> b", "mean"),
        einops.repeat(x, "b d -> b n d", n=3),
        einops.einsum(x, x, "b d, b d -> b"),
    ]


def test_torch_tensors(torch: Any) -> None:
    given = _given_back(torch.rand(2, 6, requires_grad=True))
    assert all(isinstance(item, torch.Tensor) and item.requires_grad for item in given)
    given = _given_back(torch.rand(2, 6))
    assert not any(item.requires_grad for item in given)


def test_paddle_tensors(paddle: Any) -> None:
    x = paddle.rand([2, 6])
    x.stop_gradient = False
    assert all(isinstance(item, paddle.Tensor) and not item.stop_gradient for item in _given_back(x))


def test_torch_layers_hold_nothing(torch: Any) -> None:
    layers = pytest.importorskip("einops.layers.torch")
    for layer in (layers.Rearrange("b d -> d b"), layers.Reduce("b d -> b", "mean")):
        assert isinstance(layer, torch.nn.Module)
        assert not layer.state_dict()
        assert not list(layer.parameters())


def test_paddle_layers_hold_nothing(paddle: Any) -> None:
    layers = pytest.importorskip("einops.layers.paddle")
    for layer in (layers.Rearrange("b d -> d b"), layers.Reduce("b d -> b", "mean")):
        assert isinstance(layer, paddle.nn.Layer)
        assert not layer.state_dict()


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_they_are_in_the_tables(framework: str) -> None:
    for name in ("rearrange", "reduce", "repeat", "einsum"):
        fact = lookup.function(f"einops.{name}")
        assert fact is not None
        assert fact.returns == "tensor"
    for name in ("Rearrange", "Reduce"):
        known = lookup.class_(f"einops.layers.{framework}.{name}")
        state = lookup.layer_state(f"einops.layers.{framework}.{name}")
        assert known is not None
        assert known.kind == "layer"
        assert state is not None
        assert not state.keys
