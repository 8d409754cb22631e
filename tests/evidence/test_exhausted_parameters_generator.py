"""ML318: what goes through a generator of parameters uses it up, and whoever comes next gets nothing."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.fixture
def model(torch: Any) -> Any:
    model = torch.nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    return model


CONSUMERS: dict[str, Callable[[Any, Any, Any], object]] = {
    "optimizer": lambda torch, model, it: torch.optim.SGD(it, lr=0.1),
    "group": lambda torch, model, it: torch.optim.SGD([{"params": it}], lr=0.1),
    "clip_grad_norm_": lambda torch, model, it: torch.nn.utils.clip_grad_norm_(it, 1.0),
    "clip_grad_value_": lambda torch, model, it: torch.nn.utils.clip_grad_value_(it, 1.0),
    "parameters_to_vector": lambda torch, model, it: torch.nn.utils.parameters_to_vector(it),
    "autograd.grad": lambda torch, model, it: torch.autograd.grad(model(torch.ones(1, 2)).sum(), it),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_torch_consumers(torch: Any, model: Any, consumer: str) -> None:
    for make in (lambda: model.parameters(), lambda: filter(lambda p: p.requires_grad, model.parameters())):
        parameters = make()
        CONSUMERS[consumer](torch, model, parameters)
        assert list(parameters) == []


def test_torch_generators(model: Any) -> None:
    names = ["parameters", "buffers", "children", "modules"]
    for name in [*names, *(f"named_{name}" for name in names)]:
        found = getattr(model, name)()
        assert iter(found) is found
    for found in (filter(None, []), map(id, []), itertools.chain([]), zip([], strict=True), enumerate([])):
        assert iter(found) is found


def test_torch_nothing_is_clipped(torch: Any, model: Any) -> None:
    parameters = model.parameters()
    torch.optim.SGD(parameters, lr=0.1)
    before = model.weight.grad.clone()
    with pytest.warns(UserWarning, match="empty generator"):
        torch.nn.utils.clip_grad_norm_(parameters, 1e-3)
    assert torch.equal(model.weight.grad, before)
    filtered = filter(lambda p: p.requires_grad, model.parameters())
    torch.optim.SGD(filtered, lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.nn.utils.clip_grad_norm_(filtered, 1e-3)
    assert torch.equal(model.weight.grad, before)


def test_torch_optimizer_gets_nothing(torch: Any, model: Any) -> None:
    parameters = model.parameters()
    assert sum(p.numel() for p in parameters) == 6
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD(parameters, lr=0.1)


def test_membership_spends(torch: Any, model: Any) -> None:
    ids = map(id, model.parameters())
    assert id(model) not in ids
    assert id(model.weight) not in ids


def test_paddle_generators(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    for name in ("named_parameters", "named_sublayers", "named_children", "children", "named_buffers"):
        found = getattr(layer, name)()
        assert iter(found) is found
    for name in ("parameters", "sublayers", "buffers"):
        assert isinstance(getattr(layer, name)(), list)


def test_paddle_consumers(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    layer(paddle.ones([1, 2])).sum().backward()
    weights = (p for _, p in layer.named_parameters())
    optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=weights)
    assert list(weights) == []
    before = layer.weight.grad.numpy().copy()
    paddle.nn.utils.clip_grad_norm_(weights, 1e-3)
    assert (layer.weight.grad.numpy() == before).all()
    optimizer.step()
    for clip in (paddle.nn.utils.clip_grad_norm_, paddle.nn.utils.clip_grad_value_):
        again = (p for _, p in layer.named_parameters())
        clip(again, 1.0)
        assert list(again) == []


def test_paddle_optimizer_without_parameters_fails_in_its_first_step(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    weights = (p for _, p in layer.named_parameters())
    assert len(list(weights)) == 2
    optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=weights)
    layer(paddle.ones([1, 2])).sum().backward()
    with pytest.raises(IndexError):
        optimizer.step()
