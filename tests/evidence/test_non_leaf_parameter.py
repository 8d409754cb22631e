"""ML209: what is computed from a tensor with ``requires_grad=True`` is no leaf, and never learns."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

NO_LEAF: dict[str, Callable[[Any], Any]] = {
    "randn(requires_grad=True) * v": lambda torch: torch.randn(3, requires_grad=True) * 0.01,
    "zeros(requires_grad=True).to(elsewhere)": lambda torch: torch.zeros(3, requires_grad=True).to("meta"),
    "zeros(requires_grad=True).double()": lambda torch: torch.zeros(3, requires_grad=True).double(),
    "zeros(requires_grad=True).view(3)": lambda torch: torch.zeros(3, requires_grad=True).view(3),
    "zeros(requires_grad=True).unsqueeze(0)": lambda torch: torch.zeros(3, requires_grad=True).unsqueeze(0),
    "zeros(requires_grad=True).clone()": lambda torch: torch.zeros(3, requires_grad=True).clone(),
    "Parameter(..) * v": lambda torch: torch.nn.Parameter(torch.ones(3)) * 2,
}
LEAF: dict[str, Callable[[Any], Any]] = {
    "(randn * v).requires_grad_()": lambda torch: (torch.randn(3) * 0.01).requires_grad_(),
    "zeros(device=.., requires_grad=True)": lambda torch: torch.zeros(3, device="meta", requires_grad=True),
    "Parameter(randn * v)": lambda torch: torch.nn.Parameter(torch.randn(3) * 0.01),
    "Parameter(..).requires_grad_()": lambda torch: torch.nn.Parameter(torch.ones(3)).requires_grad_(),
    # nothing to do: the same object comes back, so on the CPU it works
    "zeros(requires_grad=True).to('cpu')": lambda torch: torch.zeros(3, requires_grad=True).to("cpu"),
    "zeros(requires_grad=True).float()": lambda torch: torch.zeros(3, requires_grad=True).float(),
}


@pytest.mark.parametrize("make", NO_LEAF.values(), ids=NO_LEAF)
def test_torch_optimizer_refuses_it(torch: Any, make: Any) -> None:
    weight = make(torch)
    assert not weight.is_leaf
    assert weight.requires_grad
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        torch.optim.SGD([weight], lr=0.1)


@pytest.mark.parametrize("make", LEAF.values(), ids=LEAF)
def test_torch_leaves(torch: Any, make: Any) -> None:
    weight = make(torch)
    assert weight.is_leaf
    assert weight.requires_grad
    torch.optim.SGD([weight], lr=0.1)


def test_torch_its_gradient_is_never_kept(torch: Any) -> None:
    weight = torch.randn(3, requires_grad=True) * 0.01
    weight.sum().backward()
    with pytest.warns(UserWarning, match="not a leaf"):
        assert weight.grad is None


def test_torch_retained_gradient_is_the_look_alike(torch: Any) -> None:
    hidden = torch.randn(3, requires_grad=True) * 0.01
    hidden.retain_grad()
    hidden.sum().backward()
    assert hidden.grad is not None


def test_torch_module_registers_no_computed_parameter(torch: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lost = torch.nn.Parameter(torch.ones(3)).double()
            self.kept = torch.nn.Parameter(torch.ones(3).double())

    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["kept"]
    assert list(net.state_dict()) == ["kept"]
    assert net.lost.requires_grad
    assert not net.lost.is_leaf


def test_torch_a_name_bound_again_is_no_leaf(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    weight = weight.to("meta")
    with pytest.raises(ValueError, match="non-leaf"):
        torch.optim.SGD([weight], lr=0.1)


def test_torch_a_tensor_that_wants_no_gradient_is_never_moved(torch: Any) -> None:
    decoder = torch.nn.Linear(3, 1)
    for wants in (False, True):
        codes = torch.ones(3, requires_grad=wants)
        before = codes.detach().clone()
        optimizer = torch.optim.Adam([codes], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            decoder(codes).sum().backward()
            optimizer.step()
        assert (codes.grad is not None) is wants
        assert bool((codes != before).any()) is wants


def test_paddle_a_tensor_that_wants_no_gradient_is_never_moved(paddle: Any) -> None:
    decoder = paddle.nn.Linear(3, 1)
    for wants in (False, True):
        codes = paddle.ones([3])
        codes.stop_gradient = not wants
        before = codes.detach().clone()
        optimizer = paddle.optimizer.Adam(0.1, parameters=[codes])
        for _ in range(3):
            decoder(codes).sum().backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
        assert bool((codes != before).any()) is wants
