"""ML304: a method that is only named does nothing; called without arguments it does what was meant."""

# mllint: file-ignore[ML304] the names without calls are what is tested

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_nothing_happens(torch: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    before = model.weight.detach().clone()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward  # noqa: B018
    assert model.weight.grad is None
    loss.backward()
    optimizer.step  # noqa: B018
    assert torch.equal(model.weight, before)
    optimizer.step()
    assert not torch.equal(model.weight, before)
    optimizer.zero_grad  # noqa: B018
    assert model.weight.grad is not None
    optimizer.zero_grad()
    assert model.weight.grad is None
    scheduler.step  # noqa: B018
    assert scheduler.get_last_lr() == [0.1]
    scheduler.step()
    assert scheduler.get_last_lr() != [0.1]
    model.eval  # noqa: B018
    assert model.training
    model.eval()
    assert not model.training


def test_torch_what_needs_an_argument(torch: Any) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    with pytest.raises(TypeError):
        torch.amp.GradScaler("cpu").step()
    with pytest.raises(TypeError):
        torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer).step()


def test_paddle_nothing_happens(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=1)
    optimizer = paddle.optimizer.SGD(learning_rate=schedule, parameters=layer.parameters())
    before = layer.weight.numpy().copy()
    loss = layer(paddle.ones([1, 2])).sum()
    loss.backward  # noqa: B018
    assert layer.weight.grad is None
    loss.backward()
    optimizer.step  # noqa: B018
    assert (layer.weight.numpy() == before).all()
    optimizer.step()
    assert not (layer.weight.numpy() == before).all()
    optimizer.clear_grad  # noqa: B018
    assert float(layer.weight.grad.abs().sum()) > 0
    optimizer.clear_grad()
    assert float(layer.weight.grad.abs().sum()) == 0
    schedule.step  # noqa: B018
    assert schedule.get_lr() == 0.1
    schedule.step()
    assert schedule.get_lr() != 0.1
    layer.eval  # noqa: B018
    assert layer.training
    layer.eval()
    assert not layer.training


def test_torch_objects_are_no_functions(torch: Any) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1)
    schedulers = torch.optim.lr_scheduler
    plans = (schedulers.StepLR(optimizer, 1), schedulers.ReduceLROnPlateau(optimizer))
    for thing in (optimizer, *plans, torch.amp.GradScaler("cpu")):
        with pytest.raises(TypeError, match="not callable"):
            thing()


def test_paddle_optimizers_and_scalers_are_no_functions(paddle: Any) -> None:
    rate = paddle.optimizer.lr.StepDecay(0.1, 5)
    optimizer = paddle.optimizer.SGD(rate, parameters=paddle.nn.Linear(2, 1).parameters())
    for thing in (optimizer, paddle.amp.GradScaler()):
        with pytest.raises(TypeError, match="not callable"):
            thing()
    assert rate() == 0.1
