"""ML207: ``w = w - step`` binds the name to a new tensor; the parameter stays where it was."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_rebound_tensor_needs_no_gradient_any_more(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    (weight * 2).sum().backward()
    with torch.no_grad():
        weight = weight - 0.1 * weight.grad
    assert not weight.requires_grad
    assert weight.grad is None
    with pytest.raises(RuntimeError, match="does not require grad"):
        (weight * 2).sum().backward()


def test_torch_outside_no_grad_the_result_is_no_leaf(torch: Any) -> None:
    """Then ``backward()`` passes and the new tensor gets no ``grad``."""
    weight = torch.ones(2, requires_grad=True)
    (weight * 2).sum().backward()
    weight = weight - 0.1 * weight.grad
    (weight * 2).sum().backward()
    assert not weight.is_leaf
    with pytest.warns(UserWarning, match="not a leaf"):
        assert weight.grad is None


def test_torch_loop_over_parameters_changes_nothing(torch: Any) -> None:
    """The silent form: the loop's name is rebound, the model is as it was."""
    model = torch.nn.Linear(2, 2)
    before = model.weight.tolist()
    model(torch.ones(1, 2)).sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter = parameter - 0.1 * parameter.grad
    assert model.weight.tolist() == before
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
    assert model.weight.tolist() != before


def test_torch_every_assignment_to_the_loop_variable_is_lost(torch: Any) -> None:
    model, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    before = model.weight.tolist()
    for parameter, source in zip(model.parameters(), other.parameters(), strict=True):
        parameter = source
        parameter = 0.5 * source + 0.5 * parameter
        parameter = parameter.clamp(0, 0)
        parameter = parameter.detach()
    assert model.weight.tolist() == before
    assert model.weight.requires_grad


def test_torch_module_attribute_refuses_the_new_tensor(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    with torch.no_grad(), pytest.raises(TypeError, match="cannot assign"):
        model.weight = model.weight - 1


def test_torch_right_forms(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    same = weight
    (weight * 2).sum().backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.sub_(0.1 * weight.grad)
    weight.data = weight.data - 0.1 * weight.grad
    assert weight is same
    assert weight.requires_grad
    assert weight.tolist() == pytest.approx([0.4, 0.4])


def test_paddle_rebound_tensor_is_stopped(paddle: Any) -> None:
    weight = paddle.ones([2])
    weight.stop_gradient = False
    (weight * 2).sum().backward()
    with paddle.no_grad():
        weight = weight - 0.1 * weight.grad
    assert weight.stop_gradient
    (weight * 2).sum().backward()  # does not even raise
    assert weight.grad is None


def test_paddle_augmented_assignment_rebinds_too(paddle: Any) -> None:
    """The port from torch that does not work: paddle's ``-=`` makes a new tensor."""
    weight = paddle.ones([2])
    weight.stop_gradient = False
    first = weight
    (weight * 2).sum().backward()
    with paddle.no_grad():
        weight -= 0.1 * weight.grad
    assert weight is not first
    assert weight.stop_gradient
    assert first.tolist() == [1.0, 1.0]


def test_paddle_loop_over_parameters(paddle: Any) -> None:
    def moved(update: Any) -> bool:
        layer = paddle.nn.Linear(2, 2)
        before = layer.weight.tolist()
        layer(paddle.ones([1, 2])).sum().backward()
        with paddle.no_grad():
            for parameter in layer.parameters():
                update(parameter)
        return bool(layer.weight.tolist() != before)

    def assign(parameter: Any) -> None:
        parameter = parameter - 0.1 * parameter.grad

    def subtract(parameter: Any) -> None:
        parameter -= 0.1 * parameter.grad

    def write(parameter: Any) -> None:
        parameter[:] = parameter - 0.1 * parameter.grad

    assert not moved(assign)
    assert not moved(subtract)
    assert moved(write)
    assert moved(lambda parameter: parameter.subtract_(0.1 * parameter.grad))
    assert moved(lambda parameter: parameter.set_value(parameter - 0.1 * parameter.grad))


def test_paddle_layer_attribute_refuses_the_new_tensor(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    with paddle.no_grad(), pytest.raises(TypeError, match="assignment to parameter"):
        layer.weight -= 1


def test_torch_loop_over_a_state_dict_changes_nothing(torch: Any) -> None:
    mean, model = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    before = mean.weight.tolist()
    for old, new in zip(mean.state_dict().values(), model.state_dict().values(), strict=True):
        old = 0.9 * old + 0.1 * new
    assert mean.weight.tolist() == before
    for old, new in zip(mean.state_dict().values(), model.state_dict().values(), strict=True):
        old.copy_(new)  # the tensors of the state dict are those of the module
    assert mean.weight.tolist() == model.weight.tolist()


def test_paddle_loop_over_a_state_dict_changes_nothing(paddle: Any) -> None:
    mean, model = paddle.nn.Linear(2, 1), paddle.nn.Linear(2, 1)
    before = mean.weight.tolist()
    for old, new in zip(mean.state_dict().values(), model.state_dict().values(), strict=True):
        old = 0.9 * old + 0.1 * new
    assert mean.weight.tolist() == before
    for old, new in zip(mean.state_dict().values(), model.state_dict().values(), strict=True):
        old.set_value(new)
    assert mean.weight.tolist() == model.weight.tolist()


def test_torch_methods_rebind_as_operators_do(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    (weight * 3).sum().backward()
    with torch.no_grad():
        by_method = weight.sub(0.1 * weight.grad)
        by_function = torch.sub(weight, 0.1 * weight.grad)
    assert not by_method.requires_grad
    assert not by_function.requires_grad
    assert not weight.sub(0.1 * weight.grad).is_leaf


def test_paddle_methods_rebind_as_operators_do(paddle: Any) -> None:
    weight = paddle.to_tensor([1.0, 1.0], stop_gradient=False)
    (weight * 3).sum().backward()
    with paddle.no_grad():
        assert weight.subtract(0.1 * weight.grad).stop_gradient
        assert paddle.subtract(weight, 0.1 * weight.grad).stop_gradient
