"""ML302: a step after ``zero_grad()`` has no gradients to go by."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_torch_no_weight_moves(torch: Any, name: str) -> None:
    weight = torch.ones(1, requires_grad=True)
    optimizer = getattr(torch.optim, name)([weight], lr=1.0, weight_decay=0.1)
    (2 * weight).sum().backward()
    optimizer.zero_grad()  # noqa: ML302
    optimizer.step()
    assert weight.grad is None
    assert weight.item() == 1.0


def test_torch_step_before_backward_in_each_round(torch: Any) -> None:
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=1.0, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()  # noqa: ML302
        loss = (2 * weight).sum()
        optimizer.step()
        loss.backward()
    assert weight.item() == 1.0


def test_paddle_step_before_backward_in_each_round(paddle: Any) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    optimizer = paddle.optimizer.Adam(0.5, parameters=[weight])
    for _ in range(3):
        optimizer.clear_grad()  # noqa: ML302
        loss = (2 * weight).sum()
        optimizer.step()
        loss.backward()
    assert weight.item() == 1.0


def test_torch_nothing_moves_without_backward(torch: Any) -> None:
    network = torch.nn.Linear(2, 2)
    before = network.weight.tolist()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1, weight_decay=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        network(torch.ones(1, 2)).sum()
        optimizer.step()  # noqa: ML302
    assert network.weight.tolist() == before


def test_paddle_nothing_moves_without_backward(paddle: Any) -> None:
    network = paddle.nn.Linear(2, 2)
    before = network.weight.tolist()
    optimizer = paddle.optimizer.AdamW(parameters=network.parameters(), learning_rate=0.1, weight_decay=0.5)
    for _ in range(3):
        optimizer.clear_grad()
        network(paddle.ones([1, 2])).sum()
        optimizer.step()  # noqa: ML302
    assert network.weight.tolist() == before


def test_paddle_only_decay_moves_the_weights(paddle: Any) -> None:
    def moved(decay: float | None) -> float:
        weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
        optimizer = paddle.optimizer.SGD(0.5, parameters=[weight], weight_decay=decay)
        (2 * weight).sum().backward()
        optimizer.clear_grad()  # noqa: ML302
        optimizer.step()
        return 1.0 - float(weight.item())

    assert moved(None) == 0.0
    assert moved(0.1) == pytest.approx(0.05)


def test_paddle_momentum_moves_the_weights(paddle: Any) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    optimizer = paddle.optimizer.Momentum(0.5, 0.9, parameters=[weight])
    (2 * weight).sum().backward()
    optimizer.step()
    before = weight.item()
    (2 * weight).sum().backward()
    optimizer.clear_grad()  # noqa: ML302
    optimizer.step()
    assert weight.item() != before
