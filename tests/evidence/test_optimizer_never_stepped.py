"""ML323: without a step nothing is trained, whatever gradients there are."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_weights_stay_without_a_step(torch: Any) -> None:
    layer = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    begun = layer.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.ones(2, 3)).mean().backward()
    assert layer.weight.grad.abs().sum() > 0
    assert torch.equal(layer.weight, begun)
    optimizer.step()
    assert not torch.equal(layer.weight, begun)


def test_paddle_weights_stay_without_a_step(paddle: Any) -> None:
    layer = paddle.nn.Linear(3, 1)
    optimizer = paddle.optimizer.SGD(0.5, parameters=layer.parameters())
    begun = layer.weight.clone()
    for _ in range(3):
        optimizer.clear_grad()
        layer(paddle.ones([2, 3])).mean().backward()
    assert float(layer.weight.grad.abs().sum()) > 0
    assert paddle.equal_all(layer.weight, begun)
    optimizer.step()
    assert not paddle.equal_all(layer.weight, begun)
