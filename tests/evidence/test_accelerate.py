"""ML301, ML309, ML310, ML312: what accelerate leaves to the script (skipped where it is not installed)."""

import warnings
from typing import Any

import pytest

from mllint.semantic.events.makers import ACCELERATORS

pytestmark = pytest.mark.evidence
accelerate = pytest.importorskip("accelerate")


@pytest.fixture
def prepared(torch: Any) -> tuple[Any, Any, Any, Any]:
    """An accelerator for the CPU, and what it has made of a network with dropout, its optimizer and a schedule."""
    accelerator = accelerate.Accelerator(cpu=True)
    network = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Dropout(0.0))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    return (accelerator, *accelerator.prepare(network, optimizer, schedule))


def test_its_names() -> None:
    names = {f"accelerate.{accelerate.Accelerator.__name__}", f"{accelerate.Accelerator.__module__}.Accelerator"}
    assert names == ACCELERATORS


@pytest.mark.parametrize("training", [True, False])
def test_it_leaves_modes_alone(prepared: tuple[Any, Any, Any, Any], torch: Any, training: bool) -> None:
    accelerator, network, optimizer, _ = prepared
    network.train(training)
    again = accelerator.prepare(network)
    with accelerator.accumulate(again), accelerator.autocast():
        loss = again(torch.ones(1, 2)).sum()
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(again.parameters(), 1.0)
    optimizer.step()
    accelerator.get_state_dict(again)
    accelerator.wait_for_everyone()
    assert all(part.training is training for part in accelerator.unwrap_model(again).modules())


def test_unwrapping_gives_the_module_itself(torch: Any) -> None:
    accelerator, network = accelerate.Accelerator(cpu=True), torch.nn.Linear(1, 1)
    assert accelerator.unwrap_model(accelerator.prepare(network)) is network


def test_gradients_add_up_unless_the_script_clears_them(prepared: tuple[Any, Any, Any, Any], torch: Any) -> None:
    accelerator, network, optimizer, _ = prepared
    for expected in (1.0, 2.0):
        accelerator.backward(network(torch.ones(1, 2)).sum())
        optimizer.step()
        assert (network[0].weight.grad == expected).all()
    optimizer.zero_grad()
    accelerator.backward(network(torch.ones(1, 2)).sum())
    assert (network[0].weight.grad == 1.0).all()


def test_the_script_steps_the_schedule(prepared: tuple[Any, Any, Any, Any], torch: Any) -> None:
    accelerator, network, optimizer, schedule = prepared
    accelerator.backward(network(torch.ones(1, 2)).sum())
    optimizer.step()
    assert optimizer.param_groups[0]["lr"] == 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)
