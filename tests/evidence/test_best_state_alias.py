"""ML424: ``state_dict()`` is a view of the model; what is kept as "the best" goes on training."""

import copy
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

ALIASES: dict[str, Callable[[Any], Any]] = {
    "state_dict()": lambda model: model.state_dict(),
    "state_dict().copy()": lambda model: model.state_dict().copy(),
    "dict(state_dict())": lambda model: dict(model.state_dict()),
    "{**state_dict()}": lambda model: {**model.state_dict()},
    "copy.copy": lambda model: copy.copy(model.state_dict()),
    "in a dict": lambda model: {"best": model.state_dict()}["best"],
    "v.detach()": lambda model: {k: v.detach() for k, v in model.state_dict().items()},
    "v.cpu()": lambda model: {k: v.cpu() for k, v in model.state_dict().items()},  # on the CPU
    "named_parameters": lambda model: dict(model.named_parameters()),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy.deepcopy": lambda model: copy.deepcopy(model.state_dict()),
    "deepcopy of the model": lambda model: copy.deepcopy(model).state_dict(),
    "v.clone()": lambda model: {k: v.clone() for k, v in model.state_dict().items()},
    "v.cpu().clone()": lambda model: {k: v.cpu().clone() for k, v in model.state_dict().items()},
}


def torch_restored(torch: Any, keep: Callable[[Any], Any]) -> bool:
    """Keeps the state, trains a step, loads what was kept; whether the old weights are back."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.tolist()
    best = keep(model)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert model.weight.tolist() != before
    model.load_state_dict(best)
    return bool(model.weight.tolist() == before)


@pytest.mark.parametrize("keep", ALIASES.values(), ids=ALIASES)
def test_torch_alias_restores_the_last_weights(torch: Any, keep: Any) -> None:
    assert not torch_restored(torch, keep)


@pytest.mark.parametrize("keep", COPIES.values(), ids=COPIES)
def test_torch_copy_restores_the_best_weights(torch: Any, keep: Any) -> None:
    assert torch_restored(torch, keep)


@pytest.mark.parametrize("copied", [False, True])
def test_torch_weights_that_are_written_into(torch: Any, copied: bool) -> None:
    """Noise that is added to the weights is in what was kept of them, and is not taken back by loading that."""
    model = torch.nn.Linear(2, 2)
    before = model.weight.tolist()
    kept = (COPIES["copy.deepcopy"] if copied else ALIASES["state_dict()"])(model)
    for layer in model.modules():
        layer.weight.data.add_(1.0)
    model.load_state_dict(kept)
    assert (model.weight.tolist() == before) is copied


def test_torch_look_alikes_that_copy(torch: Any, tmp_path: pathlib.Path) -> None:
    """Saved at once, loaded into another module at once, or converted on the way."""

    def saved(model: Any) -> Any:
        torch.save(model.state_dict(), tmp_path / "best.pth")
        return torch.load(tmp_path / "best.pth", weights_only=True)

    def in_another(model: Any) -> Any:
        other = torch.nn.Linear(2, 2)
        other.load_state_dict(model.state_dict())
        return other.state_dict()

    assert torch_restored(torch, saved)
    assert torch_restored(torch, in_another)
    assert torch_restored(torch, lambda model: {k: v.to("cpu", copy=True) for k, v in model.state_dict().items()})
    assert torch_restored(torch, lambda model: {k: v.double() for k, v in model.state_dict().items()})


def test_torch_optimizer_state_is_an_alias_too(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    alias, kept = optimizer.state_dict(), copy.deepcopy(optimizer.state_dict())
    optimizer.step()
    assert not torch.equal(alias["state"][0]["momentum_buffer"], kept["state"][0]["momentum_buffer"])


def paddle_restored(paddle: Any, keep: Callable[[Any], Any]) -> bool:
    layer = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.SGD(1.0, parameters=layer.parameters())
    before = layer.weight.tolist()
    best = keep(layer)
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() != before
    layer.set_state_dict(best)
    return bool(layer.weight.tolist() == before)


@pytest.mark.parametrize("keep", ALIASES.values(), ids=ALIASES)
def test_paddle_alias_restores_the_last_weights(paddle: Any, keep: Any) -> None:
    assert not paddle_restored(paddle, keep)


@pytest.mark.parametrize("keep", COPIES.values(), ids=COPIES)
def test_paddle_copy_restores_the_best_weights(paddle: Any, keep: Any) -> None:
    assert paddle_restored(paddle, keep)


@pytest.mark.parametrize("copied", [False, True])
def test_paddle_weights_that_are_written_into(paddle: Any, copied: bool) -> None:
    layer = paddle.nn.Linear(2, 2)
    before = layer.weight.tolist()
    kept = (COPIES["copy.deepcopy"] if copied else ALIASES["state_dict()"])(layer)
    for parameter in layer.parameters():
        parameter.set_value(parameter + 1.0)
    layer.set_state_dict(kept)
    assert (layer.weight.tolist() == before) is copied


def test_paddle_values_are_the_parameters_themselves(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    assert layer.state_dict()["weight"] is layer.weight


def test_paddle_arrays_are_copies(paddle: Any) -> None:
    """The look-alike: unlike torch's, paddle's ``numpy()`` copies."""
    assert paddle_restored(paddle, lambda layer: {k: v.numpy() for k, v in layer.state_dict().items()})


def test_torch_a_model_that_is_kept_itself_goes_on_changing(torch: Any) -> None:
    model = torch.nn.Linear(2, 1)
    best_model, copied = model, copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x = torch.ones(3, 2)
    before = best_model(x).detach()
    model(x).sum().backward()
    optimizer.step()
    assert not torch.equal(best_model(x), before)
    assert torch.equal(copied(x), before)


def test_paddle_a_layer_that_is_kept_itself_goes_on_changing(paddle: Any) -> None:
    model = paddle.nn.Linear(2, 1)
    best_model, copied = model, copy.deepcopy(model)
    optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
    x = paddle.ones([3, 2])
    before = best_model(x).numpy()
    model(x).sum().backward()
    optimizer.step()
    assert not (best_model(x).numpy() == before).all()
    assert (copied(x).numpy() == before).all()
