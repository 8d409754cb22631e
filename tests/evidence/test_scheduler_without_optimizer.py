"""ML325: a scheduler of Paddle that no optimizer has changes no learning rate, and says nothing."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def rates(paddle: Any, way: str) -> list[float]:
    """The learning rates of the optimizer over a few steps of both."""
    layer = paddle.nn.Linear(2, 1)
    first = paddle.optimizer.lr.StepDecay(0.1, step_size=1)
    rate = first if way == "given" else 0.1
    optimizer = paddle.optimizer.SGD(learning_rate=rate, parameters=layer.parameters())
    schedule = first if way != "asked" else paddle.optimizer.lr.StepDecay(optimizer.get_lr(), step_size=1)
    if way == "set":
        optimizer.set_lr_scheduler(schedule)
    found = []
    for _ in range(3):
        layer(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        found.append(optimizer.get_lr())
    return found


@pytest.mark.parametrize("way", ["asked", "beside"])
def test_paddle_rate_stays(paddle: Any, way: str) -> None:
    assert rates(paddle, way) == [0.1, 0.1, 0.1]


@pytest.mark.parametrize("way", ["given", "set"])
def test_paddle_rate_falls(paddle: Any, way: str) -> None:
    assert rates(paddle, way) == pytest.approx([0.01, 0.001, 0.0001])
