"""ML430: training that is resumed with the weights alone is another training."""

import copy
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

STEPS, BREAK = 6, 3


def torch_run(torch: Any, restored: tuple[str, ...] | None) -> tuple[Any, float]:
    """Trains; with ``restored`` it breaks off halfway and goes on from what is named there.

    Gives the weights and the learning rate at the end.
    """

    def made() -> dict[str, Any]:
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        return {"model": model, "optimizer": optimizer, "scheduler": scheduler}

    torch.manual_seed(0)
    parts = made()
    for step in range(STEPS):
        if restored is not None and step == BREAK:
            checkpoint = {name: copy.deepcopy(part.state_dict()) for name, part in parts.items()}
            parts = made()
            for name in restored:
                parts[name].load_state_dict(checkpoint[name])
        parts["optimizer"].zero_grad()
        parts["model"](torch.ones(1, 2)).pow(2).sum().backward()
        parts["optimizer"].step()
        parts["scheduler"].step()
    return parts["model"].weight.tolist(), parts["optimizer"].param_groups[0]["lr"]


def test_torch_all_states_continue_the_same_run(torch: Any) -> None:
    assert torch_run(torch, ("model", "optimizer", "scheduler")) == torch_run(torch, None)


def test_torch_the_model_alone_starts_another_run(torch: Any) -> None:
    weights, rate = torch_run(torch, None)
    resumed_weights, resumed_rate = torch_run(torch, ("model",))
    assert resumed_weights != weights
    assert resumed_rate > rate  # the schedule has begun anew


def test_torch_momentum_alone_makes_a_difference(torch: Any) -> None:
    assert torch_run(torch, ("model", "scheduler")) != torch_run(torch, None)


def test_torch_without_its_state_the_schedule_begins_anew(torch: Any) -> None:
    _, rate = torch_run(torch, None)
    _, resumed_rate = torch_run(torch, ("model", "optimizer"))
    assert resumed_rate > rate


@pytest.mark.parametrize("resumed_first", [True, False])
def test_torch_schedulers_count_their_own_steps(torch: Any, resumed_first: bool) -> None:
    schedules = torch.optim.lr_scheduler
    makers = {
        "StepLR": lambda optimizer: schedules.StepLR(optimizer, 2),
        "MultiStepLR": lambda optimizer: schedules.MultiStepLR(optimizer, [2]),
        "CosineAnnealingLR": lambda optimizer: schedules.CosineAnnealingLR(optimizer, 8),
        "CosineAnnealingWarmRestarts": lambda optimizer: schedules.CosineAnnealingWarmRestarts(optimizer, 5),
        "OneCycleLR": lambda optimizer: schedules.OneCycleLR(optimizer, 1.0, total_steps=8),
        "PolynomialLR": lambda optimizer: schedules.PolynomialLR(optimizer, 8),
        "LambdaLR": lambda optimizer: schedules.LambdaLR(optimizer, lambda step: 1 / (step + 1)),
        "CyclicLR": lambda optimizer: schedules.CyclicLR(optimizer, 0.1, 1.0, step_size_up=3),
        "LinearLR": lambda optimizer: schedules.LinearLR(optimizer, total_iters=6),
    }
    for name, maker in makers.items():
        rates = {}
        for is_broken in (False, True):
            optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1, momentum=0.9)
            scheduler = maker(optimizer)
            for step in range(STEPS):
                if is_broken and step == BREAK:
                    state = copy.deepcopy(optimizer.state_dict())
                    optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1, momentum=0.9)
                    if resumed_first:
                        optimizer.load_state_dict(state)
                    scheduler = maker(optimizer)
                    if not resumed_first:
                        optimizer.load_state_dict(state)
                optimizer.step()
                scheduler.step()
            rates[is_broken] = optimizer.param_groups[0]["lr"]
        assert rates[False] != pytest.approx(rates[True]), name


def paddle_steps(paddle: Any, steps: int, model_state: Any, optimizer_state: Any) -> tuple[Any, Any]:
    """Trains as a process of its own would: what paddle names after a counter is counted anew."""
    with paddle.utils.unique_name.guard():
        layer = paddle.nn.Linear(2, 1)
        scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
        optimizer = paddle.optimizer.Momentum(scheduler, 0.9, parameters=layer.parameters())
        layer.set_state_dict(model_state)
        if optimizer_state is not None:
            optimizer.set_state_dict(optimizer_state)  # the scheduler's state is in it
        for _ in range(steps):
            layer(paddle.ones([1, 2])).pow(2).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
            scheduler.step()
    return layer, optimizer


def paddle_run(paddle: Any, restored: tuple[str, ...] | None) -> tuple[Any, float]:
    start = {"weight": paddle.ones([2, 1]), "bias": paddle.zeros([1])}
    if restored is None:
        layer, optimizer = paddle_steps(paddle, STEPS, start, None)
    else:
        layer, optimizer = paddle_steps(paddle, BREAK, start, None)
        state = optimizer.state_dict() if "optimizer" in restored else None
        layer, optimizer = paddle_steps(paddle, STEPS - BREAK, layer.state_dict(), state)
    return layer.weight.tolist(), optimizer.get_lr()


def test_paddle_both_states_continue_the_same_run(paddle: Any) -> None:
    """Two dicts are enough there: the optimizer's holds the scheduler's as well."""
    assert paddle_run(paddle, ("model", "optimizer")) == paddle_run(paddle, None)


def test_paddle_the_layer_alone_starts_another_run(paddle: Any) -> None:
    weights, rate = paddle_run(paddle, None)
    resumed_weights, resumed_rate = paddle_run(paddle, ("model",))
    assert resumed_weights != weights
    assert resumed_rate > rate


def test_paddle_state_of_an_optimizer_is_named_after_its_parameters(paddle: Any) -> None:
    """So it fits the same script in a new process, and no second model in this one."""
    layer, optimizer = paddle_steps(paddle, 1, {"weight": paddle.ones([2, 1]), "bias": paddle.zeros([1])}, None)
    names = {parameter.name for parameter in layer.parameters()}
    state = [key for key in optimizer.state_dict() if key != "LR_Scheduler"]
    assert state
    assert all(any(key.startswith(name) for name in names) for key in state)
