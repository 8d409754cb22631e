"""ML301: without ``zero_grad()`` every step uses the sum of all gradients so far."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.mark.parametrize("clears", [False, True])
def test_torch_gradients_add_up(torch: Any, clears: bool) -> None:
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    moves = []
    for _ in range(3):
        before = weight.item()
        (2 * weight).sum().backward()
        optimizer.step()
        if clears:
            optimizer.zero_grad()
        moves.append(before - weight.item())
    assert moves == ([2, 2, 2] if clears else [2, 4, 6])


@pytest.mark.parametrize("clears", [False, True])
def test_paddle_gradients_add_up(paddle: Any, clears: bool) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = paddle.optimizer.SGD(1.0, parameters=[weight])
    moves = []
    for _ in range(3):
        before = weight.item()
        (2 * weight).sum().backward()
        optimizer.step()
        if clears:
            optimizer.clear_grad()
        moves.append(before - weight.item())
    assert moves == ([2, 2, 2] if clears else [2, 4, 6])


def test_torch_what_clears_too(torch: Any) -> None:
    def cleared(weight: Any, how: str) -> bool:
        (2 * weight).sum().backward()
        if how == "none":
            weight.grad = None
        elif how == "zero_":
            weight.grad.data.zero_()
        else:
            del weight.grad
        return weight.grad is None or not weight.grad.any()

    assert all(cleared(torch.zeros(1, requires_grad=True), how) for how in ("none", "zero_", "del"))


def test_torch_a_step_with_a_closure_clears_nothing(torch: Any) -> None:
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def closure() -> Any:
        loss = (2 * weight).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.step(closure)
    assert weight.item() == -6


def test_paddle_what_clears_too(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    for clear in (optimizer.clear_grad, layer.clear_gradients):
        layer(paddle.ones([1, 2])).sum().backward()
        assert layer.weight.grad.abs().sum().item() > 0
        clear()
        assert layer.weight.grad is None or layer.weight.grad.abs().sum().item() == 0


def test_paddle_minimize_clears_nothing(paddle: Any) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = paddle.optimizer.SGD(1.0, parameters=[weight])
    for _ in range(2):
        loss = (2 * weight).sum()
        loss.backward()
        optimizer.minimize(loss)
    assert weight.item() == -6


@pytest.mark.parametrize("by_data", [False, True])
def test_torch_gradients_add_up_where_parameters_are_updated_by_hand(torch: Any, by_data: bool) -> None:
    weight = torch.zeros(1, requires_grad=True)
    moves = []
    for _ in range(3):
        before = weight.item()
        (2 * weight).sum().backward()
        if by_data:
            weight.data = weight.data - weight.grad
        else:
            with torch.no_grad():
                weight -= weight.grad
        moves.append(before - weight.item())
    assert moves == [2, 4, 6]
