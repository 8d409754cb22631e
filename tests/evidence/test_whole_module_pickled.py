"""ML427: a pickled module needs its class, its file and full trust to come back."""

import argparse
import pathlib
import pickle
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_default_load_refuses_a_module(torch: Any, tmp_path: pathlib.Path) -> None:
    """Since 2.6, where ``weights_only`` became True."""
    place = tmp_path / "model.pth"
    model = torch.nn.Linear(2, 2)
    for whole in (model, {"model": model, "epoch": 1}, [model], torch.nn.DataParallel(model)):
        torch.save(whole, place)
        with pytest.raises(pickle.UnpicklingError, match="weights_only"):
            torch.load(place)
        torch.load(place, weights_only=False)


def test_torch_default_load_refuses_an_optimizer(torch: Any, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "optimizer.pth"
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    torch.save(optimizer, place)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(place)
    torch.save(optimizer.state_dict(), place)
    torch.load(place)


def test_torch_module_that_cannot_be_pickled(torch: Any, tmp_path: pathlib.Path) -> None:
    """A class inside a function, or a lambda as attribute: its state dict is fine."""

    class Local(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)

    with_lambda = torch.nn.Linear(2, 2)
    with_lambda.activation = lambda x: x
    for model in (Local(), with_lambda):
        with pytest.raises((AttributeError, pickle.PicklingError)):
            torch.save(model, tmp_path / "model.pth")
        torch.save(model.state_dict(), tmp_path / "model.pth")
        model.load_state_dict(torch.load(tmp_path / "model.pth"))


def test_torch_look_alikes_that_load(torch: Any, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "tensors.pth"
    model = torch.nn.Linear(2, 2)
    for plain in (torch.ones(2), list(model.parameters()), {"model": model.state_dict()}, model.state_dict()):
        torch.save(plain, place)
        torch.load(place)


@pytest.mark.parametrize(
    ("value", "loads"),
    [
        *[(1, True), (1.5, True), ("a", True), (None, True), ((1, "a"), True), ({1}, True)],
        *[({"a": [1, {"b": 2.0}]}, True), (b"a", True), (1j, True)],
        *[(argparse.Namespace(lr=0.1), False), (pathlib.PurePosixPath("a"), False), (range(2), False)],
        *[(slice(1), False), (len, False)],
    ],
    ids=repr,
)
def test_torch_what_a_checkpoint_may_hold_beside_tensors(
    torch: Any, tmp_path: pathlib.Path, value: Any, loads: bool
) -> None:
    torch.save({"model": torch.ones(1), "extra": value}, tmp_path / "checkpoint.pth")
    if loads:
        assert torch.load(tmp_path / "checkpoint.pth")["extra"] == value
    else:
        with pytest.raises(pickle.UnpicklingError):
            torch.load(tmp_path / "checkpoint.pth")


def test_torch_numpy_values_do_not_load(torch: Any, numpy: Any, tmp_path: pathlib.Path) -> None:
    """The usual surprise: ``best_acc`` came out of numpy."""
    for value in (numpy.float64(0.9), numpy.int64(3), numpy.ones(2), numpy.random.get_state()):
        torch.save({"best_acc": value}, tmp_path / "checkpoint.pth")
        with pytest.raises(pickle.UnpicklingError):
            torch.load(tmp_path / "checkpoint.pth")
    torch.save({"best_acc": float(numpy.float64(0.9))}, tmp_path / "checkpoint.pth")
    torch.load(tmp_path / "checkpoint.pth")


def test_torch_states_of_training_objects_load(torch: Any, tmp_path: pathlib.Path) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    schedulers = torch.optim.lr_scheduler
    checkpoint = {
        "optimizer": optimizer.state_dict(),
        "step": schedulers.StepLR(optimizer, 1).state_dict(),
        "plateau": schedulers.ReduceLROnPlateau(optimizer).state_dict(),
        "cosine": schedulers.CosineAnnealingLR(optimizer, 2).state_dict(),
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
        "rng": torch.get_rng_state(),
    }
    torch.save(checkpoint, tmp_path / "checkpoint.pth")
    assert list(torch.load(tmp_path / "checkpoint.pth")) == list(checkpoint)


def test_paddle_save_refuses_a_layer(paddle: Any, tmp_path: pathlib.Path) -> None:
    """Where torch fails at the load, paddle fails at the save."""
    layer = paddle.nn.Linear(2, 2)
    for whole in (layer, {"model": layer}, [layer]):
        with pytest.raises(ValueError, match="do not support saving"):
            paddle.save(whole, str(tmp_path / "model.pdparams"))
    paddle.save({"model": layer.state_dict()}, str(tmp_path / "model.pdparams"))


def test_torch_another_pickler_reads_it_back_without_being_asked(torch: Any, tmp_path: pathlib.Path) -> None:
    """Who names the pickler gets what it gives: ``weights_only`` is False then."""
    place = tmp_path / "model.pth"
    torch.save(torch.nn.Linear(2, 2), place, pickle_module=pickle)
    assert isinstance(torch.load(place, pickle_module=pickle), torch.nn.Linear)
