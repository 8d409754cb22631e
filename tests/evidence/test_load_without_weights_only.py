"""ML429: unpickling a file runs what is in it."""

import dataclasses
import os
import pathlib
import pickle
import random
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


class Payload:
    """What an attacker puts into a file: here it only makes a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def infected(torch: Any, tmp_path: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A file with a payload, and the folder that appears when the payload runs."""
    torch.save({"model": Payload(tmp_path / "proof")}, tmp_path / "model.pth")
    return tmp_path / "model.pth", tmp_path / "proof"


def test_torch_full_load_runs_what_the_file_says(torch: Any, infected: Any) -> None:
    place, proof = infected
    torch.load(place, weights_only=False)
    assert proof.exists()


@pytest.mark.parametrize("options", [{}, {"weights_only": True}], ids=["default since 2.6", "said"])
def test_torch_weights_only_refuses_it(torch: Any, infected: Any, options: Any) -> None:
    place, proof = infected
    with pytest.raises(pickle.UnpicklingError):
        torch.load(place, **options)
    assert not proof.exists()


def test_torch_pickle_module_switches_the_protection_off(torch: Any, infected: Any) -> None:
    """The look-alike: with it ``weights_only=True`` is an error, and leaving it out loads all."""
    place, proof = infected
    with pytest.raises(RuntimeError, match="pickle_module"):
        torch.load(place, pickle_module=pickle, weights_only=True)
    assert not proof.exists()
    torch.load(place, pickle_module=pickle)
    assert proof.exists()


def test_torch_state_dict_loads_the_same_either_way(torch: Any, tmp_path: pathlib.Path) -> None:
    """Where only tensors are in the file, the fix changes nothing."""
    model = torch.nn.Linear(2, 2)
    torch.save({"model": model.state_dict(), "epoch": 3}, tmp_path / "model.pth")
    safe = torch.load(tmp_path / "model.pth", weights_only=True)
    full = torch.load(tmp_path / "model.pth", weights_only=False)
    assert torch.equal(safe["model"]["weight"], full["model"]["weight"])
    assert safe["epoch"] == full["epoch"] == 3


def test_torch_own_classes_can_be_allowed(torch: Any, tmp_path: pathlib.Path) -> None:
    """Why the fix is not safe: a file with more in it needs this, or a full load."""
    torch.save({"folder": pathlib.PurePosixPath("a")}, tmp_path / "model.pth")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "model.pth", weights_only=True)
    with torch.serialization.safe_globals([pathlib.PurePosixPath]):
        torch.load(tmp_path / "model.pth", weights_only=True)


def _objects(torch: Any) -> dict[str, Any]:
    import argparse

    import numpy as np

    return {
        "module": torch.nn.Linear(2, 2),
        "options": argparse.Namespace(hidden=3),
        "optimizer": torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1),
        "array": np.ones(2),
        "number of NumPy": np.mean([1.0, 2.0]),
        "own class": Kept(),
    }


class Kept:
    """A class of the project."""


@pytest.mark.parametrize("what", ["module", "options", "optimizer", "array", "number of NumPy", "own class"])
def test_torch_refuses_objects_by_default(torch: Any, tmp_path: pathlib.Path, what: str) -> None:
    thing = _objects(torch)[what]
    for content in (thing, {"args": thing}):
        torch.save(content, tmp_path / "file.pt")
        with pytest.raises(pickle.UnpicklingError):
            torch.load(tmp_path / "file.pt")
        assert torch.load(tmp_path / "file.pt", weights_only=False) is not None


def test_torch_reads_objects_of_classes_that_are_allowed(torch: Any, tmp_path: pathlib.Path) -> None:
    """The look-alike."""
    import argparse

    torch.save({"args": argparse.Namespace(hidden=3)}, tmp_path / "file.pt")
    with torch.serialization.safe_globals([argparse.Namespace]):
        assert torch.load(tmp_path / "file.pt")["args"].hidden == 3


@pytest.mark.parametrize("plain", [3, "text", [1, 2], {"a": {1, 2}}, (1.5, None)], ids=str)
def test_torch_reads_plain_values(torch: Any, tmp_path: pathlib.Path, plain: Any) -> None:
    torch.save({"plain": plain}, tmp_path / "file.pt")
    assert torch.load(tmp_path / "file.pt")["plain"] == plain


def test_torch_tensor_keeps_attributes_of_its_own(torch: Any, tmp_path: pathlib.Path) -> None:
    """The look-alike: an attribute that Tensor does not have is no sign of an object."""
    tensor = torch.ones(2)
    tensor.origin = 1
    torch.save({"weight": tensor}, tmp_path / "file.pt")
    assert torch.load(tmp_path / "file.pt", weights_only=True)["weight"].origin == 1


@dataclasses.dataclass
class Config:
    """What a training keeps beside its weights."""

    rate: float = 0.1


@pytest.mark.parametrize("what", ["dataclass", "number of NumPy", "array", "loader"])
def test_torch_refuses_objects_that_checkpoints_hold(torch: Any, numpy: Any, tmp_path: pathlib.Path, what: str) -> None:
    """Neither the option nor the default since 2.6 reads these; saying that any class is allowed does."""
    made = {
        "dataclass": Config(),
        "number of NumPy": numpy.mean([1.0, 2.0]),
        "array": numpy.zeros(3),
        "loader": torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(4, 2))),
    }
    torch.save({"model": torch.nn.Linear(2, 2).state_dict(), "other": made[what]}, tmp_path / "model.pth")
    for options in ({}, {"weights_only": True}):
        with pytest.raises(pickle.UnpicklingError):
            torch.load(tmp_path / "model.pth", **options)
    torch.load(tmp_path / "model.pth", weights_only=False)


@pytest.mark.parametrize("what", ["state", "state as a dict", "generator", "old generator"])
def test_torch_refuses_generators_of_numpy(torch: Any, numpy: Any, tmp_path: pathlib.Path, what: str) -> None:
    """The state is a tuple, or a dict, with an array in it."""
    made = {
        "state": numpy.random.get_state(),
        "state as a dict": numpy.random.get_state(legacy=False),
        "generator": numpy.random.default_rng(0),
        "old generator": numpy.random.RandomState(0),
    }
    torch.save({"model": torch.nn.Linear(2, 2).state_dict(), "random": made[what]}, tmp_path / "model.pth")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "model.pth")
    torch.load(tmp_path / "model.pth", weights_only=False)


def test_torch_reads_other_states_of_random_numbers(torch: Any, numpy: Any, tmp_path: pathlib.Path) -> None:
    """The look-alikes: plain numbers, a tensor, and the array as a list."""
    kind, keys, *others = numpy.random.get_state()
    states = {
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "plain": numpy.random.default_rng(0).bit_generator.state,
        "listed": (kind, keys.tolist(), *others),
    }
    torch.save(states, tmp_path / "states.pth")
    read = torch.load(tmp_path / "states.pth")
    random.setstate(read["python"])
    torch.set_rng_state(read["torch"])
    numpy.random.set_state(read["listed"])


def test_paddle_reads_states_of_numpy(paddle: Any, numpy: Any, tmp_path: pathlib.Path) -> None:
    paddle.save({"random": numpy.random.get_state()}, str(tmp_path / "state.pdparams"))
    numpy.random.set_state(paddle.load(str(tmp_path / "state.pdparams"), return_numpy=True)["random"])
