"""ML307: a scheduler that steps first takes away the first learning rate."""

import warnings
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

FIRST, SECOND, THIRD = 1.0, 0.1, 0.01


def torch_rates(torch: Any, *told: bool) -> tuple[list[float], list[str]]:
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=FIRST)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    rates = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for epoch in range(2):
            scheduler.step(*([epoch] if told else []))
            optimizer.zero_grad()
            network(torch.ones(1, 1)).sum().backward()
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
    return rates, [str(item.message) for item in caught]


def test_torch_skips_the_first(torch: Any) -> None:
    rates, messages = torch_rates(torch)
    assert rates == pytest.approx([SECOND, THIRD])
    assert sum("before `optimizer.step()`" in message for message in messages) == 1


def test_torch_told_the_epoch_skips_nothing(torch: Any) -> None:
    rates, _ = torch_rates(torch, True)
    assert rates == pytest.approx([FIRST, SECOND])


def test_torch_behind_the_optimizer(torch: Any) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=FIRST)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    assert optimizer.param_groups[0]["lr"] == FIRST, "set when the scheduler is made"
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(SECOND)


def test_paddle_skips_the_first_silently(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(FIRST, 1, 0.1)
    network = paddle.nn.Linear(1, 1)
    optimizer = paddle.optimizer.SGD(scheduler, parameters=network.parameters())
    assert optimizer.get_lr() == FIRST
    rates = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            scheduler.step()
            network(paddle.ones([1, 1])).sum().backward()
            rates.append(optimizer.get_lr())
            optimizer.step()
            optimizer.clear_grad()
    assert rates == pytest.approx([SECOND, THIRD])
    assert not [item for item in caught if "step()" in str(item.message)]


def test_paddle_told_the_epoch_skips_nothing(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(FIRST, 1, 0.1)
    scheduler.step(0)
    assert scheduler() == FIRST


def test_torch_begins_with_the_factor_at_zero(torch: Any) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=FIRST)
    asked: list[int] = []
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: asked.append(step) or 0.5 * 0.1**step)
    assert asked == [0]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler.step()
    assert asked == [0, 1]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05), "the first factor is gone, no step has used it"


def test_torch_asks_no_multiplier_at_zero(torch: Any) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=FIRST)
    asked: list[int] = []
    torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: asked.append(step) or 0.0)
    assert asked == []
    assert optimizer.param_groups[0]["lr"] == FIRST


def test_paddle_begins_with_the_factor_at_zero(paddle: Any) -> None:
    asked: list[int] = []
    scheduler = paddle.optimizer.lr.LambdaDecay(FIRST, lambda step: asked.append(step) or 0.5 * 0.1**step)
    assert asked == [0]
    assert scheduler() == pytest.approx(0.5)
    scheduler.step()
    assert scheduler() == pytest.approx(0.05)


def test_paddle_asks_no_multiplier_at_zero(paddle: Any) -> None:
    asked: list[int] = []
    scheduler = paddle.optimizer.lr.MultiplicativeDecay(FIRST, lambda step: asked.append(step) or 0.0)
    assert asked == []
    assert scheduler() == FIRST


def test_paddle_begins_a_warm_up_where_it_is_told(paddle: Any) -> None:
    assert paddle.optimizer.lr.LinearWarmup(FIRST, 100, 0.25, FIRST)() == pytest.approx(0.25)


def test_torch_one_step_before_the_training_skips_the_first(torch: Any) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=FIRST)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler.step()
    for _ in range(2):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates == pytest.approx([SECOND, THIRD])


def test_paddle_one_step_before_the_training_skips_the_first(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(FIRST, 1, 0.1)
    optimizer = paddle.optimizer.SGD(scheduler, parameters=paddle.nn.Linear(1, 1).parameters())
    scheduler.step()
    rates = []
    for _ in range(2):
        rates.append(optimizer.get_lr())
        optimizer.step()
        scheduler.step()
    assert rates == pytest.approx([SECOND, THIRD])


BEGIN = 1
"""The round with which a training goes on."""


def test_torch_told_the_round_before_sets_that_of_the_next(torch: Any) -> None:
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD([{"params": network.parameters(), "initial_lr": FIRST}], lr=FIRST)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2], 0.1, last_epoch=BEGIN - 1)
    assert scheduler.last_epoch == BEGIN
    assert optimizer.param_groups[0]["lr"] == pytest.approx(SECOND)


def test_paddle_told_the_round_before_sets_that_of_the_next(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(FIRST, 1, 0.1, last_epoch=BEGIN - 1)
    assert scheduler.last_epoch == BEGIN
    assert scheduler() == pytest.approx(SECOND)
