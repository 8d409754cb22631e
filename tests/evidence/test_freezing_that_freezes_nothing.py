"""ML202: the flag is set on the module, and the parameters do not hear of it."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def on_the_module(model: Any) -> None:
    model.requires_grad = False


def on_a_child(model: Any) -> None:
    model[0].requires_grad = False


def on_every_child(model: Any) -> None:
    for child in model.children():
        child.requires_grad = False


def on_every_module(model: Any) -> None:
    for module in model.modules():
        module.requires_grad = False


def over_the_method(model: Any) -> None:
    model.requires_grad_ = False


def over_the_method_of_each_parameter(model: Any) -> None:
    for parameter in model.parameters():
        parameter.requires_grad_ = False


def on_the_data(model: Any) -> None:
    for parameter in model.parameters():
        parameter.data.requires_grad = False


def through_the_state_dict(model: Any) -> None:
    for value in model.state_dict().values():
        value.requires_grad = False


def on_the_loop_variable(model: Any) -> None:
    for parameter in model.parameters():
        parameter = parameter.detach()


def by_eval(model: Any) -> None:
    model.eval()


TORCH_NOTHING = [
    *[on_the_module, on_a_child, on_every_child, on_every_module, over_the_method, over_the_method_of_each_parameter],
    *[on_the_data, through_the_state_dict, on_the_loop_variable, by_eval],
]


@pytest.fixture
def torch_model(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))


@pytest.mark.parametrize("freeze", TORCH_NOTHING)
def test_torch_nothing_is_frozen(torch_model: Any, freeze: Callable[[Any], None]) -> None:
    freeze(torch_model)
    assert all(parameter.requires_grad for parameter in torch_model.parameters())


def test_torch_model_still_trains(torch: Any, torch_model: Any) -> None:
    torch_model.requires_grad = False
    before = torch_model[0].weight.tolist()
    optimizer = torch.optim.SGD(torch_model.parameters(), lr=1.0)
    torch_model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert torch_model[0].weight.tolist() != before


def test_torch_overwritten_method_fails_when_it_is_called(torch_model: Any) -> None:
    torch_model.requires_grad_ = False
    with pytest.raises(TypeError, match="not callable"):
        torch_model.requires_grad_(False)


def test_torch_generator_of_parameters_takes_no_flag(torch_model: Any) -> None:
    """Not silent."""
    with pytest.raises(AttributeError):
        torch_model.parameters().requires_grad = False


def test_torch_right_forms(torch: Any) -> None:
    def frozen(freeze: Callable[[Any], Any]) -> bool:
        layer = torch.nn.Linear(2, 2)
        freeze(layer)
        return not any(parameter.requires_grad for parameter in layer.parameters())

    def one_by_one(layer: Any) -> None:
        for parameter in layer.parameters():
            parameter.requires_grad = False

    def by_method(layer: Any) -> None:
        for parameter in layer.parameters():
            parameter.requires_grad_(False)

    def by_name(layer: Any) -> None:
        layer.weight.requires_grad = False
        layer.bias.requires_grad = False

    assert frozen(lambda layer: layer.requires_grad_(False))
    assert frozen(one_by_one)
    assert frozen(by_method)
    assert frozen(by_name)


def test_torch_class_with_such_a_property_may_freeze(torch: Any) -> None:
    """The look-alike: the attribute is the class's own."""

    class Freezable(torch.nn.Linear):
        @property
        def requires_grad(self) -> bool:
            return self.weight.requires_grad

        @requires_grad.setter
        def requires_grad(self, value: bool) -> None:
            self.requires_grad_(value)

    layer = Freezable(2, 2)
    layer.requires_grad = False
    assert not layer.weight.requires_grad


# ---- paddle -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), [("stop_gradient", True), ("trainable", False), ("requires_grad", False)])
def test_paddle_nothing_is_frozen(paddle: Any, name: str, value: bool) -> None:
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.Linear(2, 2))
    setattr(model, name, value)
    for layer in model.sublayers():
        setattr(layer, name, value)
    model.eval()
    assert not any(parameter.stop_gradient for parameter in model.parameters())


def test_paddle_layer_still_trains(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    layer.stop_gradient = True
    before = layer.weight.tolist()
    optimizer = paddle.optimizer.SGD(1.0, layer.parameters())
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() != before


@pytest.mark.parametrize(("name", "value"), [("stop_gradient", True), ("trainable", False)])
def test_paddle_right_forms(paddle: Any, name: str, value: bool) -> None:
    layer = paddle.nn.Linear(2, 2)
    for parameter in layer.parameters():
        setattr(parameter, name, value)
    assert all(parameter.stop_gradient for parameter in layer.parameters())
    fixed = paddle.nn.Linear(2, 2, weight_attr=paddle.ParamAttr(trainable=False))
    assert fixed.weight.stop_gradient


def test_paddle_requires_grad_method_came_with_3_3(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """So the fix for a lower target is the loop."""
    layer = paddle.nn.Linear(2, 2)
    if paddle_version < (3, 3):
        assert not hasattr(layer, "requires_grad_")
    else:
        layer.requires_grad_(False)
        assert layer.weight.stop_gradient


def test_paddle_state_dict_holds_the_parameters_themselves(paddle: Any) -> None:
    """The look-alike: unlike torch's, flags set on its values do freeze."""
    layer = paddle.nn.Linear(2, 2)
    for value in layer.state_dict().values():
        value.stop_gradient = True
    assert layer.weight.stop_gradient


def test_torch_pair_takes_no_flag(torch: Any) -> None:
    for pair in torch.nn.Linear(2, 2).named_parameters():
        with pytest.raises(AttributeError):
            pair.requires_grad = False


def test_paddle_pair_takes_no_flag(paddle: Any) -> None:
    for pair in paddle.nn.Linear(2, 2).named_parameters():
        with pytest.raises(AttributeError):
            pair.stop_gradient = True


def test_torch_iterator_of_parameters_takes_no_flag(torch: Any) -> None:
    with pytest.raises(AttributeError):
        torch.nn.Linear(2, 2).parameters().requires_grad = False


def test_paddle_list_of_parameters_takes_no_flag(paddle: Any) -> None:
    for flag in ("stop_gradient", "trainable"):
        with pytest.raises(AttributeError):
            setattr(paddle.nn.Linear(2, 2).parameters(), flag, True)


def test_paddle_tensor_with_a_gradient_cannot_be_changed_in_place(paddle: Any) -> None:
    """Why the other flag is no safe change of what is no parameter: before it the code below ran."""
    points = paddle.ones([2])
    points[0] = 2.0
    points.stop_gradient = False
    with pytest.raises(ValueError, match="Leaf"):
        points[0] = 3.0


def test_paddle_parameters_hold_the_running_statistics(paddle: Any) -> None:
    layer = paddle.nn.BatchNorm2D(4)
    trained = [name for name, parameter in layer.named_parameters() if not parameter.stop_gradient]
    for parameter in layer.parameters():
        parameter.stop_gradient = False
    asking = [name for name, parameter in layer.named_parameters() if not parameter.stop_gradient]
    assert trained == ["weight", "bias"]
    assert asking == ["weight", "bias", "_mean", "_variance"]


def test_torch_parameter_does_not_take_over_the_flag_of_its_tensor(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.zeros(3, requires_grad=False))
    assert parameter.requires_grad
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    parameter.sum().backward()
    optimizer.step()
    assert parameter.tolist() != [0.0, 0.0, 0.0]
    assert not torch.nn.Parameter(torch.zeros(3), requires_grad=False).requires_grad


def test_torch_what_a_state_dict_gives_is_detached(torch: Any) -> None:
    model = torch.nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    assert [value.requires_grad for value in model.state_dict().values()] == [False, False]
    assert [value.grad for value in model.state_dict().values()] == [None, None]
    assert all(value.requires_grad for value in model.state_dict(keep_vars=True).values())
    assert all(value.grad is not None for value in model.state_dict(keep_vars=True).values())


def test_paddle_a_state_dict_gives_the_parameters(paddle: Any) -> None:
    model = paddle.nn.Linear(3, 2)
    model(paddle.ones([1, 3])).sum().backward()
    assert [value.stop_gradient for value in model.state_dict().values()] == [False, False]
    assert all(value.grad is not None for value in model.state_dict().values())


@pytest.mark.parametrize("flag", [False, True])
def test_torch_what_is_computed_does_not_let_its_flag_be_changed(torch: Any, flag: bool) -> None:
    computed = torch.rand(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaf variables"):
        computed.requires_grad = flag
    computed.detach().requires_grad = flag
    with torch.no_grad():
        (torch.rand(3, requires_grad=True) * 2).requires_grad = flag


def test_paddle_what_is_computed_can_be_stopped(paddle: Any) -> None:
    start = paddle.rand([3])
    start.stop_gradient = False
    computed = start * 2
    computed.stop_gradient = True
    assert computed.stop_gradient


def test_torch_a_flag_under_a_test_of_itself_thaws_nothing(torch: Any) -> None:
    layer = torch.nn.Linear(2, 1)
    for wanted in (False, True):
        for weight in layer.parameters():
            if weight.requires_grad:
                weight.requires_grad = wanted
    assert not any(weight.requires_grad for weight in layer.parameters())


def test_paddle_a_flag_under_a_test_of_itself_thaws_nothing(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 1)
    for wanted in (False, True):
        for weight in layer.parameters():
            if not weight.stop_gradient:
                weight.stop_gradient = not wanted
    assert all(weight.stop_gradient for weight in layer.parameters())
