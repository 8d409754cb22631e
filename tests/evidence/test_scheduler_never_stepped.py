"""ML309: a scheduler that is not stepped leaves the learning rate as it is, and says nothing."""

import warnings
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def train_torch(torch: Any, make: Any, step: bool) -> list[float]:
    """The learning rates of a few epochs."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = make(torch.optim.lr_scheduler, optimizer)
    rates = []
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        if step:
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


MAKERS = {
    "StepLR": lambda module, optimizer: module.StepLR(optimizer, 1),
    "CosineAnnealingLR": lambda module, optimizer: module.CosineAnnealingLR(optimizer, 4),
    "OneCycleLR": lambda module, optimizer: module.OneCycleLR(optimizer, max_lr=0.1, total_steps=10),
    "LinearLR": lambda module, optimizer: module.LinearLR(optimizer),
}


@pytest.mark.parametrize("name", MAKERS)
def test_torch_rate_stays(torch: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stays = train_torch(torch, MAKERS[name], step=False)
    assert len(set(stays)) == 1
    assert len(set(train_torch(torch, MAKERS[name], step=True))) > 1


def train_paddle(paddle: Any, step: bool) -> list[float]:
    layer = paddle.nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=1)
    optimizer = paddle.optimizer.SGD(learning_rate=schedule, parameters=layer.parameters())
    rates = []
    for _ in range(4):
        layer(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        if step:
            schedule.step()
        rates.append(optimizer.get_lr())
    return rates


def test_torch_lambda_begins_at_once(torch: Any) -> None:
    """The rate stays as the scheduler has set it, which is not what the optimizer was given."""
    stays = train_torch(torch, lambda module, optimizer: module.LambdaLR(optimizer, lambda epoch: 0.5), step=False)
    assert stays == [0.05] * 4


def test_paddle_rate_stays(paddle: Any) -> None:
    assert len(set(train_paddle(paddle, step=False))) == 1
    assert len(set(train_paddle(paddle, step=True))) == 4


def test_paddle_warm_up_that_never_warms_up(paddle: Any) -> None:
    """What the optimizer trains with is next to nothing."""
    layer = paddle.nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.LinearWarmup(0.1, warmup_steps=100, start_lr=0.0, end_lr=0.1)
    optimizer = paddle.optimizer.SGD(learning_rate=schedule, parameters=layer.parameters())
    before = layer.weight.numpy().copy()
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert (layer.weight.numpy() == before).all()


def test_paddle_fit_steps_it(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=1)
    model = paddle.Model(layer)
    model.prepare(paddle.optimizer.SGD(schedule, parameters=layer.parameters()), paddle.nn.MSELoss())
    data = [([1.0, 1.0], [1.0])] * 4

    class Pairs(paddle.io.Dataset):
        def __getitem__(self, index: int) -> Any:
            x, y = data[index]
            return paddle.to_tensor(x), paddle.to_tensor(y)

        def __len__(self) -> int:
            return len(data)

    model.fit(Pairs(), batch_size=2, epochs=1, verbose=0)
    assert schedule.get_lr() != 0.1
