"""ML203: a flag is assigned under a name that means nothing, and the framework says nothing."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

TORCH_TYPOS = [
    *[
        "require_grad",
        "require_grads",
        "requires_grads",
        "required_grad",
        "requires_gradient",
        "requires_gard",
        "requires_grade",
    ],
    *["stop_gradient", "trainable"],  # right names, in other frameworks
]
PADDLE_TYPOS = ["stop_gradients", "stop_grad", "stop_gradent", "stop_graident", "require_grad", "requires_grads"]


@pytest.mark.parametrize("name", TORCH_TYPOS)
def test_torch_accepts_any_name_and_changes_nothing(torch: Any, name: str) -> None:
    parameter, tensor, module = torch.nn.Parameter(torch.ones(2)), torch.ones(2), torch.nn.Linear(2, 2)
    setattr(parameter, name, False)
    setattr(tensor, name, True)
    setattr(module, name, False)
    assert parameter.requires_grad
    assert not tensor.requires_grad
    assert module.weight.requires_grad


@pytest.mark.parametrize("name", ["require_grad", "requires_grads"])
def test_torch_frozen_by_a_typo_still_trains(torch: Any, name: str) -> None:
    model = torch.nn.Linear(2, 2)
    for parameter in model.parameters():
        setattr(parameter, name, False)
    before = model.weight.tolist()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert model.weight.tolist() != before


def test_torch_right_name_freezes(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    for parameter in model.parameters():
        parameter.requires_grad = False
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not model(torch.ones(1, 2)).requires_grad


def test_torch_typos_that_are_not_silent(torch: Any) -> None:
    """Only the assignment is silent: reading, calling and passing the wrong name raise."""
    with pytest.raises(AttributeError):
        _ = torch.ones(2).require_grad
    with pytest.raises(AttributeError):
        torch.ones(2).require_grad_()
    with pytest.raises(AttributeError):
        torch.nn.Linear(2, 2).require_grad_(False)
    with pytest.raises(TypeError):
        torch.ones(2, require_grad=True)
    with pytest.raises(TypeError):
        torch.nn.Parameter(torch.ones(2), requires_grads=False)
    for flag in ({"require_grad": False}, {"requires_grad": False}):
        with pytest.raises(TypeError):
            torch.nn.Linear(2, 2, **flag)
    for container in (torch.nn.Linear(2, 2).parameters(), list(torch.nn.Linear(2, 2).parameters())):
        with pytest.raises(AttributeError):
            container.require_grad = False


def test_torch_optimizer_group_takes_unknown_keys(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([{"params": model.parameters(), "require_grad": False}], lr=1.0)
    assert optimizer.param_groups[0]["require_grad"] is False
    assert model.weight.requires_grad


# ---- paddle -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PADDLE_TYPOS)
def test_paddle_parameter_and_layer_accept_any_name(paddle: Any, name: str) -> None:
    layer = paddle.nn.Linear(2, 2)
    value = name.startswith("stop")
    setattr(layer, name, value)
    setattr(layer.weight, name, value)
    assert not layer.weight.stop_gradient


@pytest.mark.parametrize("name", PADDLE_TYPOS)
def test_paddle_plain_tensor_accepts_any_name_since_3(paddle: Any, paddle_version: tuple[int, int], name: str) -> None:
    tensor = paddle.ones([2])
    if paddle_version < (3, 0):
        with pytest.raises(AttributeError):
            setattr(tensor, name, not name.startswith("stop"))
    else:
        setattr(tensor, name, not name.startswith("stop"))
        assert tensor.stop_gradient


def test_paddle_frozen_by_a_typo_still_trains(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    for parameter in layer.parameters():
        parameter.stop_gradients = True
    before = layer.weight.tolist()
    optimizer = paddle.optimizer.SGD(1.0, layer.parameters())
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() != before


def test_paddle_right_names_freeze(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    layer.weight.stop_gradient = True
    layer.bias.trainable = False
    assert layer.weight.stop_gradient
    assert layer.bias.stop_gradient


def test_paddle_trainable_means_something_on_parameters_only(paddle: Any, paddle_version: tuple[int, int]) -> None:
    layer, tensor = paddle.nn.Linear(2, 2), paddle.ones([2])
    layer.trainable = False
    assert not layer.weight.stop_gradient
    if paddle_version < (3, 0):
        with pytest.raises(AttributeError):
            tensor.trainable = True
    else:
        tensor.trainable = True
        assert tensor.stop_gradient


def test_paddle_requires_grad_is_a_flag_since_3_2(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """Before, a file ported from torch froze nothing."""
    parameter = paddle.nn.Linear(2, 2).weight
    parameter.requires_grad = False
    assert parameter.stop_gradient is (paddle_version >= (3, 2))


def test_paddle_typos_that_are_not_silent(paddle: Any) -> None:
    with pytest.raises(TypeError):
        paddle.to_tensor([1.0], stop_gradients=False)
    with pytest.raises(TypeError):
        paddle.ParamAttr(trainables=False)
    with pytest.raises(AttributeError):
        paddle.nn.Linear(2, 2).parameters().stop_gradients = True
    with pytest.raises(AttributeError):
        _ = paddle.nn.Linear(2, 2).weight.stop_gradients


def test_torch_argument_raises(torch: Any) -> None:
    for make in (
        lambda: torch.zeros(2, require_grad=False),
        lambda: torch.nn.Parameter(torch.ones(2), required_grad=True),
    ):
        with pytest.raises(TypeError):
            make()


def test_paddle_argument_raises(paddle: Any) -> None:
    with pytest.raises(TypeError):
        paddle.to_tensor([1.0], stop_gradients=False)


def test_whole_numbers_want_no_gradient(torch: Any, paddle: Any) -> None:
    numbers = torch.tensor([1, 2])
    assert not numbers.requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        numbers.requires_grad = True
    assert paddle.to_tensor([1, 2]).astype("int64").stop_gradient


def test_torch_flag_that_is_called_raises(torch: Any) -> None:
    module = torch.nn.Linear(2, 2)
    for tensor in (torch.ones(2), module.weight, module(torch.ones(1, 2))):
        for given in ((True,), (False,), ()):
            with pytest.raises(TypeError, match="'bool' object is not callable"):
                tensor.requires_grad(*given)
    with pytest.raises(AttributeError, match="has no attribute 'requires_grad'"):
        module.requires_grad(False)
    module.requires_grad_(False)
    assert not module.weight.requires_grad
    assert torch.ones(2).requires_grad_().requires_grad
    with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf variables"):
        torch.ones(2, requires_grad=True).exp().requires_grad_(False)


@pytest.mark.parametrize("flag", ["stop_gradient", "requires_grad"])
def test_paddle_flag_that_is_called_raises(paddle: Any, flag: str) -> None:
    layer = paddle.nn.Linear(2, 2)
    for tensor in (paddle.ones([2]), layer.weight, layer(paddle.ones([1, 2]))):
        for given in ((True,), (False,), ()):
            with pytest.raises((TypeError, AttributeError)):
                getattr(tensor, flag)(*given)
    with pytest.raises(AttributeError):
        getattr(layer, flag)(False)
