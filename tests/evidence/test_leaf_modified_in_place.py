"""ML208: a leaf that needs a gradient is changed in place outside ``no_grad``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def subtract(weight: Any) -> None:
    weight -= 1


def write(weight: Any) -> None:
    weight[0] = 1.0


TORCH_RAISING: dict[str, Callable[[Any, Any], Any]] = {
    "w -= v": lambda torch, w: subtract(w),
    "w[0] = v": lambda torch, w: write(w),
    "w.mul_(v)": lambda torch, w: w.mul_(2),
    "w.fill_(v)": lambda torch, w: w.fill_(1.0),
    "w.zero_()": lambda torch, w: w.zero_(),
    "w.normal_()": lambda torch, w: w.normal_(),
    "w.uniform_()": lambda torch, w: w.uniform_(),
    "w.clamp_(v)": lambda torch, w: w.clamp_(0),
    "w.copy_(v)": lambda torch, w: w.copy_(torch.ones(2)),
    "w[0].fill_(v)": lambda torch, w: w[0].fill_(1.0),
    "w.squeeze_()": lambda torch, w: w.squeeze_(),
    "w.view(-1).mul_(v)": lambda torch, w: w.view(-1).mul_(2),
    "w.view(-1)[0] = v": lambda torch, w: write(w.view(-1)),
    "torch.clamp(out=w)": lambda torch, w: torch.clamp(w, 0, 1, out=w),
}


@pytest.mark.parametrize("change", TORCH_RAISING.values(), ids=TORCH_RAISING)
def test_torch_leaf_changed_in_place_raises(torch: Any, change: Any) -> None:
    with pytest.raises(RuntimeError):
        change(torch, torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError):
        change(torch, torch.nn.Parameter(torch.ones(2)))


@pytest.mark.parametrize("change", TORCH_RAISING.values(), ids=TORCH_RAISING)
def test_torch_under_no_grad_it_is_right(torch: Any, change: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        change(torch, weight)
    assert weight.requires_grad
    assert weight.is_leaf


def test_torch_other_right_forms(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    weight.data.mul_(2)
    weight.detach().mul_(2)
    assert weight.tolist() == [4.0, 4.0]
    torch.nn.init.zeros_(weight)  # switches gradients off by itself
    assert weight.tolist() == [0.0, 0.0]
    weight.requires_grad_()
    plain = torch.ones(2)
    plain.mul_(2)  # needs no gradient
    (weight * 2).mul_(2)  # is no leaf


def test_torch_view_made_before_no_grad_may_be_changed_there(torch: Any) -> None:
    layer = torch.nn.Conv2d(3, 6, 1)
    bias = layer.bias.view(3, -1)
    with torch.no_grad():
        bias[:, 1] += 1
    layer.bias = torch.nn.Parameter(bias.view(-1), requires_grad=True)
    assert layer.bias.is_leaf


PADDLE_RAISING: dict[str, Callable[[Any, Any], Any]] = {
    "w[0] = v": lambda paddle, w: write(w),
    "w.fill_(v)": lambda paddle, w: w.fill_(1.0),
    "w.zero_()": lambda paddle, w: w.zero_(),
    "w.scale_(v)": lambda paddle, w: w.scale_(2.0),
    "w.subtract_(v)": lambda paddle, w: w.subtract_(paddle.ones([2])),
    "w.clip_(v)": lambda paddle, w: w.clip_(0.0),
    "w.normal_()": lambda paddle, w: w.normal_(),
    "w.uniform_()": lambda paddle, w: w.uniform_(),
}


@pytest.fixture
def paddle_weight(paddle: Any) -> Any:
    weight = paddle.ones([2])
    weight.stop_gradient = False
    return weight


@pytest.mark.parametrize("change", PADDLE_RAISING.values(), ids=PADDLE_RAISING)
def test_paddle_leaf_changed_in_place_raises(paddle: Any, paddle_weight: Any, change: Any) -> None:
    with pytest.raises(ValueError, match=r"(?i)stop.?gradient"):
        change(paddle, paddle_weight)
    with paddle.no_grad():
        change(paddle, paddle_weight)
    assert paddle_weight.is_leaf


def test_paddle_forms_that_do_not_raise(paddle: Any, paddle_weight: Any) -> None:
    """``-=`` rebinds the name instead; writing through a view is not noticed."""
    weight = paddle_weight
    weight -= 1
    assert weight is not paddle_weight
    assert paddle_weight.tolist() == [1.0, 1.0]
    paddle_weight[0].fill_(5.0)
    assert paddle_weight.tolist() == [5.0, 1.0]
    paddle_weight.set_value(paddle.zeros([2]))
    assert paddle_weight.tolist() == [0.0, 0.0]
    paddle_weight.exponential_()
    paddle_weight.copy_(paddle.zeros([2]), False)
    assert paddle_weight.tolist() == [0.0, 0.0]
    paddle_weight.detach().fill_(3.0)
    assert paddle_weight.tolist() == [3.0, 3.0]


def test_paddle_view_may_be_changed(paddle: Any) -> None:
    layer = paddle.nn.Linear(3, 6)
    bias = layer.bias.reshape([3, -1])
    bias[:, 1] = 1.0
    bias.add_(paddle.ones([3, 2]))


def test_torch_weights_of_layers_by_number_are_leaves(torch: Any) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    with pytest.raises(RuntimeError):
        layers[1].bias[:] = -2.0


def test_paddle_attributes_leave_a_gradient(paddle: Any) -> None:
    """An initializer or a rate of its own takes no parameter its gradient; ``trainable=False`` does."""
    attribute = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.0), learning_rate=0.5)
    layers = paddle.nn.Sequential(paddle.nn.Linear(2, 2, bias_attr=attribute))
    assert not layers[0].bias.stop_gradient
    with pytest.raises((RuntimeError, ValueError)):
        layers[0].bias[:] = -2.0
    fixed = paddle.nn.Linear(2, 2, bias_attr=paddle.ParamAttr(trainable=False))
    assert fixed.bias.stop_gradient


def test_torch_flag_set_below_makes_a_leaf(torch: Any) -> None:
    """Also by ``requires_grad_()``; what the augmented assignment binds is refused like the methods."""
    first, second = torch.ones(3), torch.ones(3)
    first.requires_grad = True
    second.requires_grad_()
    for leaf in (first, second):
        assert leaf.is_leaf
        with pytest.raises(RuntimeError, match="a leaf Variable"):
            leaf.sub_(1.0)
        with pytest.raises(RuntimeError, match="a leaf Variable"):
            leaf -= 1.0


def test_paddle_flag_set_below_makes_a_leaf(paddle: Any) -> None:
    leaf = paddle.ones([3])
    leaf.stop_gradient = False
    with pytest.raises((RuntimeError, ValueError)):
        leaf.subtract_(paddle.ones([3]))
    with pytest.raises((RuntimeError, ValueError)):
        leaf[0] = 2.0


def test_torch_saved_object_keeps_its_flags(torch: Any, tmp_path: Path) -> None:
    """The look-alike: an averaged copy that asks for no gradients is read as one that asks for none."""
    network = torch.nn.Linear(2, 2)
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    torch.save({"average": network}, tmp_path / "file.pt")
    read = torch.load(tmp_path / "file.pt", weights_only=False)["average"].float()
    read.bias *= 2


def test_torch_flag_is_why_it_raises_before_backward(torch: Any) -> None:
    """So that nothing need be said of what ``backward()`` would have kept."""
    weight = torch.ones(3, requires_grad=True)
    (weight * weight).sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        weight.sub_(0.1 * weight.grad)


def test_torch_buffers_of_layers_may_be_changed(torch: Any) -> None:
    """The look-alike: what a normalization counts is no parameter, as its weight is."""
    layer = torch.nn.BatchNorm2d(3)
    layer.running_var.fill_(0.5)
    layer.num_batches_tracked.zero_()
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        layer.weight.fill_(0.5)


def test_torch_results_bring_their_gradients_into_a_new_tensor(torch: Any) -> None:
    """Without the flag they get through; with it and ``no_grad`` nothing gets back to the network, without an error."""
    net, rows = torch.nn.Linear(3, 3), torch.rand(2, 3)
    out = torch.zeros(2, 3)
    for index, row in enumerate(rows):
        out[index] = net(row)
    out.sum().backward()
    assert net.weight.grad is not None
    net.zero_grad()
    out = torch.zeros(2, 3, requires_grad=True)
    with torch.no_grad():
        for index, row in enumerate(rows):
            out[index] = net(row)
    out.sum().backward()
    assert net.weight.grad is None


def test_paddle_results_bring_their_gradients_into_a_new_tensor(paddle: Any) -> None:
    """The same."""
    net, rows = paddle.nn.Linear(3, 3), paddle.rand([2, 3])
    out = paddle.zeros([2, 3])
    for index, row in enumerate(rows):
        out[index] = net(row)
    out.sum().backward()
    assert net.weight.grad is not None
    net.clear_gradients(set_to_zero=False)
    out = paddle.zeros([2, 3])
    out.stop_gradient = False
    with pytest.raises(ValueError, match="stop gradient"):
        out[0] = net(rows[0])
    with paddle.no_grad():
        for index, row in enumerate(rows):
            out[index] = net(row)
    out.sum().backward()
    assert net.weight.grad is None


@pytest.mark.parametrize("method", ["normal_", "uniform_", "zero_"])
def test_torch_leaf_changed_where_it_is_made_raises(torch: Any, method: str) -> None:
    for leaf in (torch.zeros(3, requires_grad=True), torch.nn.Parameter(torch.zeros(3))):
        with pytest.raises(RuntimeError, match="leaf"):
            getattr(leaf, method)()


def test_torch_copy_of_leaf_may_be_changed_where_it_is_made(torch: Any) -> None:
    assert torch.zeros(3, requires_grad=True).double().normal_().requires_grad
