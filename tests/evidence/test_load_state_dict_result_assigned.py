"""ML420: what ``load_state_dict`` gives back is not the model."""

import warnings
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_module_gives_a_pair_of_key_lists(torch: Any, torch_net: Any) -> None:
    result = torch_net().load_state_dict(torch_net().state_dict())
    assert isinstance(result, tuple)
    assert result._fields == ("missing_keys", "unexpected_keys")
    assert result == ([], [])
    assert not isinstance(result, torch.nn.Module)


def test_torch_result_reads_like_success_and_is_always_true(torch_net: Any) -> None:
    """Printing it looks fine, and ``assert model.load_state_dict(...)`` asserts nothing."""
    model = torch_net()
    assert str(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"
    assert model.load_state_dict({}, strict=False)


@pytest.mark.parametrize("attribute", ["eval", "train", "to", "cuda", "parameters", "state_dict", "forward"])
def test_torch_result_has_nothing_of_a_module(torch_net: Any, attribute: str) -> None:
    model = torch_net()
    model = model.load_state_dict(model.state_dict())
    with pytest.raises(AttributeError):
        getattr(model, attribute)


def test_torch_result_cannot_be_called(torch: Any, torch_net: Any) -> None:
    model = torch_net().load_state_dict(torch_net().state_dict())
    with pytest.raises(TypeError, match="not callable"):
        model(torch.ones(4, 2))


def test_torch_registered_attribute_refuses_the_result(torch: Any, torch_net: Any) -> None:
    """``self.net = self.net.load_state_dict(...)`` raises at once; a new name takes it in silence."""
    owner = torch.nn.Module()
    owner.net = torch_net()
    with pytest.raises(TypeError, match="cannot assign"):
        owner.net = owner.net.load_state_dict(torch_net().state_dict())
    owner.restored = torch_net().load_state_dict(torch_net().state_dict())
    assert "restored" not in dict(owner.named_modules())
    with pytest.raises(TypeError, match="not a Module subclass"):
        torch.nn.Sequential(torch_net().load_state_dict(torch_net().state_dict()))


def test_torch_optimizer_scheduler_and_scaler_give_none(torch: Any, torch_net: Any) -> None:
    optimizer = torch.optim.SGD(torch_net().parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler("cpu")
    for stateful in (optimizer, scheduler, scaler):
        assert stateful.load_state_dict(stateful.state_dict()) is None


def test_torch_look_alikes_that_keep_the_result_for_what_it_is(torch_net: Any) -> None:
    model = torch_net()
    missing, unexpected = model.load_state_dict({"x": model.fc.bias}, strict=False)
    assert len(missing) == 6
    assert unexpected == ["x"]


# ---- paddle -----------------------------------------------------------------------------------


def test_paddle_layer_gives_a_tuple(paddle_net: Any) -> None:
    layer = paddle_net()
    for method in (layer.set_state_dict, layer.set_dict, layer.load_dict):
        assert method(layer.state_dict()) == ([], [])
    result = layer.set_state_dict(layer.state_dict())
    with pytest.raises(AttributeError):
        result.eval()
    with pytest.raises(TypeError, match="not callable"):
        result(1)


def test_paddle_registered_attribute_refuses_the_result(paddle: Any, paddle_net: Any) -> None:
    owner = paddle.nn.Layer()
    owner.net = paddle_net()
    with pytest.raises(TypeError, match="assignment to sublayer 'net'"):
        owner.net = owner.net.set_state_dict(paddle_net().state_dict())


def test_paddle_load_state_dict_came_with_3_3(paddle_net: Any, paddle_version: tuple[int, int]) -> None:
    layer = paddle_net()
    if paddle_version < (3, 3):
        assert not hasattr(layer, "load_state_dict")
        return
    result = layer.load_state_dict(layer.state_dict())
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert str(result) == "<All keys matched successfully>"


def test_paddle_optimizer_and_scheduler_give_none(paddle: Any, paddle_net: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
    optimizer = paddle.optimizer.Momentum(scheduler, parameters=paddle_net().parameters())
    assert scheduler.set_state_dict(scheduler.state_dict()) is None
    assert optimizer.set_state_dict(optimizer.state_dict()) is None


def test_paddle_data_parallel_gives_none(paddle: Any, paddle_net: Any) -> None:
    """The wrapper forgets to return what its layer returned: unpacking it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = paddle.DataParallel(paddle_net())
    assert wrapped.set_state_dict(paddle_net().state_dict()) is None
