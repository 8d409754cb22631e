"""ML425: ``model.state_dict`` without the call is a method, and can be saved."""

import pathlib
import pickle
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_save_takes_the_method_and_the_load_fails(torch: Any, tmp_path: pathlib.Path) -> None:
    model, place = torch.nn.Linear(2, 2), tmp_path / "model.pth"
    torch.save(model.state_dict, place)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(place)
    loaded = torch.load(place, weights_only=False)
    assert callable(loaded)
    assert list(loaded()) == ["weight", "bias"]  # the whole model came with it
    with pytest.raises(TypeError, match="dict-like"):
        torch.nn.Linear(2, 2).load_state_dict(loaded)


def test_torch_the_same_inside_a_checkpoint(torch: Any, tmp_path: pathlib.Path) -> None:
    model, place = torch.nn.Linear(2, 2), tmp_path / "model.pth"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.save({"model": model.state_dict, "optimizer": optimizer.state_dict}, place)
    checkpoint = torch.load(place, weights_only=False)
    assert callable(checkpoint["model"])
    assert callable(checkpoint["optimizer"])


def test_torch_good_form(torch: Any, tmp_path: pathlib.Path) -> None:
    model, place = torch.nn.Linear(2, 2), tmp_path / "model.pth"
    torch.save(model.state_dict(), place)
    torch.nn.Linear(2, 2).load_state_dict(torch.load(place, weights_only=True))


def test_paddle_save_takes_the_method_and_the_use_fails(paddle: Any, tmp_path: pathlib.Path) -> None:
    layer, place = paddle.nn.Linear(2, 2), str(tmp_path / "model.pdparams")
    paddle.save(layer.state_dict, place)
    loaded = paddle.load(place)
    assert callable(loaded)
    with pytest.raises(AttributeError, match="'get'"):
        paddle.nn.Linear(2, 2).set_state_dict(loaded)
    paddle.save({"model": layer.state_dict}, place)
    assert callable(paddle.load(place)["model"])
