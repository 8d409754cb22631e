"""ML308: a scheduler counts its steps, whatever they were meant to be."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

BATCHES, EPOCHS = 40, 2


def torch_optimizer(torch: Any) -> Any:
    return torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)


def test_torch_step_for_every_batch(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    for _ in range(EPOCHS * BATCHES):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01), "1.0 was meant: thirty epochs are not over"


def test_torch_exponential_for_every_batch(torch: Any) -> None:
    assert 0.99**1000 < 1e-4
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
    for _ in range(EPOCHS * BATCHES):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] < 0.02


def test_torch_cosine_for_every_batch_swings(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    rates = []
    for _ in range(4 * EPOCHS):
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert min(rates) == pytest.approx(0.0, abs=1e-6)
    assert rates[2 * EPOCHS - 1] == pytest.approx(1.0)


def test_torch_one_cycle_once_an_epoch_stays_in_warm_up(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, epochs=EPOCHS, steps_per_epoch=BATCHES)
    for _ in range(EPOCHS):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] < 0.1


def test_torch_function_of_epochs_for_every_batch_falls_below_zero(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS)
    for _ in range(EPOCHS * BATCHES):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] < 0


def test_torch_function_of_batches_once_an_epoch_stays_where_it_was(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (EPOCHS * BATCHES))
    for _ in range(EPOCHS):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] > 0.95


def test_paddle_function_of_epochs_for_every_batch_falls_below_zero(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.LambdaDecay(1.0, lambda epoch: 1 - epoch / EPOCHS)
    for _ in range(EPOCHS * BATCHES):
        scheduler.step()
    assert scheduler() < 0


def test_paddle_step_for_every_batch(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(1.0, 30, 0.1)
    for _ in range(EPOCHS * BATCHES):
        scheduler.step()
    assert scheduler() == pytest.approx(0.01)


def test_paddle_one_cycle_once_an_epoch_stays_in_warm_up(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.OneCycleLR(max_learning_rate=1.0, total_steps=EPOCHS * BATCHES)
    for _ in range(EPOCHS):
        scheduler.step()
    assert scheduler() < 0.1


def test_torch_cyclic_once_an_epoch_stays_at_its_base(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.001, 1.0)
    for _ in range(20):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] < 0.02, "the peak is 2000 steps away"


def test_torch_step_behind_the_training_changes_no_update(torch: Any) -> None:
    optimizer = torch_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    used = []
    for _ in range(EPOCHS):
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
    scheduler.step()
    assert used == [1.0] * EPOCHS


def test_paddle_step_behind_the_training_changes_no_update(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.ExponentialDecay(1.0, 0.5)
    optimizer = paddle.optimizer.SGD(scheduler, parameters=paddle.nn.Linear(1, 1).parameters())
    used = []
    for _ in range(EPOCHS):
        used.append(optimizer.get_lr())
        optimizer.step()
    scheduler.step()
    assert used == [1.0] * EPOCHS


def test_paddle_cyclic_once_an_epoch_stays_at_its_base(paddle: Any) -> None:
    scheduler = paddle.optimizer.lr.CyclicLR(0.001, 1.0, step_size_up=2000)
    for _ in range(20):
        scheduler.step()
    assert scheduler() < 0.02
