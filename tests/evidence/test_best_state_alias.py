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


TAKEN: dict[str, tuple[bool, Callable[[Any], Any]]] = {
    "detach().numpy()": (True, lambda layer: layer.weight.detach().numpy()),
    "data.numpy()": (True, lambda layer: layer.weight.data.numpy()),
    "detach()": (True, lambda layer: layer.weight.detach()),
    "data": (True, lambda layer: layer.weight.data),
    "of the state": (True, lambda layer: layer.state_dict()["weight"].cpu().detach().numpy()),
    "turned": (True, lambda layer: layer.weight.detach().T.squeeze().numpy()),
    "copy()": (False, lambda layer: layer.weight.detach().numpy().copy()),
    "clone()": (False, lambda layer: layer.weight.detach().clone()),
    "+ 0": (False, lambda layer: layer.weight.detach() + 0),
    "tolist()": (False, lambda layer: layer.weight.tolist()),
}


def _numbers(kept: Any) -> Any:
    return kept if isinstance(kept, list) else kept.tolist()


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("taken", TAKEN)
def test_torch_weights_of_all_rounds_are_the_same(torch: Any, taken: str, optimizer: str) -> None:
    layer, (is_shared, take) = torch.nn.Linear(2, 2), TAKEN[taken]
    steps, history = getattr(torch.optim, optimizer)(layer.parameters(), lr=0.1), []
    for _ in range(3):
        steps.zero_grad()
        layer(torch.ones(1, 2)).square().sum().backward()
        steps.step()
        history.append(take(layer))
    assert (_numbers(history[0]) == _numbers(history[-1])) is is_shared


def test_torch_changes_by_hand_write_over_what_was_taken(torch: Any) -> None:
    place = torch.tensor([1.0, 2.0], requires_grad=True)
    trail = []
    for _ in range(2):
        with torch.no_grad():
            place -= 0.5
        trail.append(place.detach().numpy())
    place.data -= 0.5
    assert trail[0].tolist() == trail[1].tolist() == [-0.5, 0.5]
    place.data = place.data - 0.5  # the look-alike: that is other memory
    assert trail[0].tolist() == [-0.5, 0.5]


@pytest.mark.parametrize(
    ("taken", "is_shared"), [("detach", True), ("state", True), ("numpy", False), ("clone", False)]
)
def test_paddle_weights_of_all_rounds_are_the_same(paddle: Any, taken: str, is_shared: bool) -> None:
    take: dict[str, Callable[[Any], Any]] = {
        "detach": lambda layer: layer.weight.detach(),
        "state": lambda layer: layer.state_dict()["weight"],
        "numpy": lambda layer: layer.weight.detach().numpy(),
        "clone": lambda layer: layer.weight.detach().clone(),
    }
    layer = paddle.nn.Linear(2, 2)
    steps, history = paddle.optimizer.Adam(0.1, parameters=layer.parameters()), []
    for _ in range(3):
        layer(paddle.ones([1, 2])).square().sum().backward()
        steps.step()
        steps.clear_grad()
        history.append(take[taken](layer))
    assert (history[0].tolist() == history[-1].tolist()) is is_shared


def test_paddle_change_by_operator_makes_a_new_tensor(paddle: Any) -> None:
    """The look-alike: what was taken before stays as it was."""
    place = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    taken = place.detach()
    with paddle.no_grad():
        place -= 0.5
    assert taken.tolist() == [1.0, 2.0]
