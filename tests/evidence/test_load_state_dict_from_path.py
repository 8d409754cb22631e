"""ML421: ``load_state_dict`` takes the dict, not the place where it is stored."""

import io
import json
import pathlib
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

PLACES = {
    "str": "model.pth",
    "f-string": f"{'model'}.pth",
    "Path": pathlib.Path("model.pth"),
    "bytes": b"model.pth",
    "file": io.BytesIO(),
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_torch_module_refuses_a_path(torch_net: Any, place: Any, strict: bool) -> None:
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        torch_net().load_state_dict(place, strict=strict)


def test_torch_module_refuses_other_things_that_are_no_dict(torch_net: Any) -> None:
    model = torch_net()
    for wrong in (None, [], model, model.state_dict, model.state_dict().items(), model.named_parameters()):
        with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
            model.load_state_dict(wrong)


@pytest.mark.parametrize("place", [PLACES["str"], PLACES["Path"]], ids=["str", "Path"])
def test_torch_optimizer_scheduler_and_scaler_refuse_a_path(torch: Any, torch_net: Any, place: Any) -> None:
    optimizer = torch.optim.SGD(torch_net().parameters(), lr=0.1)
    with pytest.raises(AttributeError):
        optimizer.load_state_dict(place)
    with pytest.raises((ValueError, TypeError)):
        torch.optim.lr_scheduler.StepLR(optimizer, 1).load_state_dict(place)
    with pytest.raises(TypeError):
        torch.amp.GradScaler("cpu").load_state_dict(place)


def test_torch_good_form(torch: Any, torch_net: Any, tmp_path: pathlib.Path) -> None:
    """Both spellings of the fix: a str and a Path are fine for ``torch.load``."""
    place = tmp_path / "model.pth"
    saved = torch_net()
    torch.save(saved.state_dict(), place)
    for argument in (place, str(place)):
        model = torch_net()
        model.load_state_dict(torch.load(argument, weights_only=True))
        assert torch.equal(model.fc.weight, saved.fc.weight)


# ---- paddle -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_paddle_layer_refuses_a_path(paddle_net: Any, place: Any) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'get'"):
        paddle_net().set_state_dict(place)


@pytest.mark.parametrize("place", [PLACES["str"], PLACES["Path"]], ids=["str", "Path"])
def test_paddle_optimizer_and_scheduler_refuse_a_path(paddle: Any, paddle_net: Any, place: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
    optimizer = paddle.optimizer.Momentum(scheduler, parameters=paddle_net().parameters())
    with pytest.raises((AttributeError, TypeError)):  # by version
        optimizer.set_state_dict(place)
    with pytest.raises((RuntimeError, TypeError)):
        scheduler.set_state_dict(place)


def test_paddle_good_form(paddle: Any, paddle_net: Any, tmp_path: pathlib.Path) -> None:
    place = str(tmp_path / "model.pdparams")
    saved = paddle_net()
    paddle.save(saved.state_dict(), place)
    layer = paddle_net()
    assert layer.set_state_dict(paddle.load(place)) == ([], [])
    assert layer.fc.weight.tolist() == saved.fc.weight.tolist()


def test_paddle_load_wants_the_whole_file_name(paddle: Any, paddle_net: Any, tmp_path: pathlib.Path) -> None:
    """Unlike 1.x, where ``load("model")`` found the files of both layer and optimizer."""
    paddle.save(paddle_net().state_dict(), str(tmp_path / "model.pdparams"))
    with pytest.raises(ValueError, match="full file name"):
        paddle.load(str(tmp_path / "model"))


# ---- settings -----------------------------------------------------------------------------------

SETTINGS = json.loads('{"weights": "model.pth", "layers": [1, 2], "rate": 0.1, "nothing": null}')


@pytest.mark.parametrize("key", SETTINGS)
def test_what_stands_in_plain_text_is_no_state(torch_net: Any, key: str) -> None:
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        torch_net().load_state_dict(SETTINGS[key])


def test_a_dict_of_plain_text_holds_no_tensors(torch_net: Any) -> None:
    model = torch_net()
    state = json.loads(json.dumps({key: value.tolist() for key, value in model.state_dict().items()}))
    with pytest.raises(RuntimeError, match="Tensor-like object"):
        model.load_state_dict(state)


@pytest.mark.parametrize("key", SETTINGS)
def test_paddle_what_stands_in_plain_text_is_no_state(paddle_net: Any, key: str) -> None:
    with pytest.raises((AttributeError, TypeError)):
        paddle_net().set_state_dict(SETTINGS[key])


# ---- given nothing --------------------------------------------------------------------------------


def test_torch_things_want_something_to_load(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for thing in (model, torch.nn.DataParallel(model), optimizer, scheduler, torch.amp.GradScaler("cpu")):
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            thing.load_state_dict()


def test_paddle_things_want_something_to_load(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
    optimizer = paddle.optimizer.Momentum(scheduler, parameters=layer.parameters())
    for method in (layer.set_state_dict, layer.load_dict, optimizer.set_state_dict, scheduler.set_state_dict):
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            method()


# ---- options of torch.load ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["map_location", "weights_only", "pickle_module", "mmap"])
@pytest.mark.parametrize("kind", ["module", "optimizer", "scheduler"])
def test_options_of_load_are_refused(torch: Any, torch_net: Any, kind: str, name: str) -> None:
    module = torch_net()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    thing = {"module": module, "optimizer": optimizer, "scheduler": scheduler}[kind]
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        thing.load_state_dict(thing.state_dict(), **{name: None})


def test_torch_has_no_load_state_dict(torch: Any) -> None:
    assert not hasattr(torch, "load_state_dict")
