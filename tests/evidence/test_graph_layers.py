"""What ``mllint.knowledge.graph_layers`` says of the layers of libraries for graphs."""

from typing import Any

import pytest

from mllint.knowledge import graph_layers

pytestmark = pytest.mark.evidence

_WAYS: tuple[tuple[Any, ...], ...] = (
    (4, 8),
    (4,),
    (4, 8, 2),
    (4, 4, 1, 2),
    (4, 4, 2, 2),
    (4, 8, 3),
    (4, 8, 2, 2),
    ([4, 8],),
    (4, {"a": 4}),
    (),
)
"""What their constructors may be given; those that are given networks get one besides."""


def _made(layer: Any, torch: Any, geometric: Any) -> Any:
    network = torch.nn.Linear(4, 4)
    others = (
        {"nn": network},
        {"aggregators": ["mean"], "scalers": ["identity"], "deg": torch.ones(3)},
        {"dim": 2, "kernel_size": 2},
        {"metadata": (["paper"], [("paper", "cites", "paper")])},
    )
    for given, named in [(way, {}) for way in _WAYS] + [(way, other) for way in _WAYS for other in others]:
        try:
            return layer(*given, **named)
        except (TypeError, ValueError, AssertionError, AttributeError, IndexError, RuntimeError):
            continue
    raise AssertionError(f"{layer.__name__} is made otherwise")


@pytest.mark.parametrize("name", sorted(graph_layers.GEOMETRIC))
def test_layers_for_graphs_have_weights(name: str, torch: Any) -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    if name == "SplineConv":
        pytest.importorskip("torch_spline_conv")
    made = _made(getattr(geometric, name), torch, geometric)
    assert isinstance(made, torch.nn.Module)
    assert [*made.parameters(), *made.buffers()]


def test_batch_normalization_for_graphs_asks_for_its_mode(torch: Any) -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    layer = geometric.BatchNorm(3)
    x = torch.rand(5, 3) + 2
    trained = layer(x)
    layer.eval()
    assert not torch.allclose(trained, layer(x))


def test_list_of_layers_for_graphs_is_not_trained(torch: Any) -> None:
    geometric = pytest.importorskip("torch_geometric.nn")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = [geometric.GCNConv(4, 4)]

    assert not list(Network().parameters())
    assert not Network().state_dict()
