"""ML212: a hidden state carried over ``backward()`` drags the freed graph along."""

# mllint: file-ignore[ML301] one pass through the graph more is what is tested, not what is learned

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

ROUNDS = 2


def keep(hidden: Any) -> Any:
    return hidden


def torch_rounds(torch: Any, layer: str, carry: Callable[[Any], Any]) -> None:
    network, hidden = getattr(torch.nn, layer)(2, 2), None
    for _ in range(ROUNDS):
        output, hidden = network(torch.ones(3, 1, 2), hidden)
        output.sum().backward()
        hidden = carry(hidden)


@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
def test_torch_second_round_raises(torch: Any, layer: str) -> None:
    with pytest.raises(RuntimeError, match="second time"):
        torch_rounds(torch, layer, keep)


@pytest.mark.parametrize("layer", ["RNN", "GRU"])
def test_torch_right_forms(torch: Any, layer: str) -> None:
    for carry in (
        lambda hidden: hidden.detach(),
        lambda hidden: hidden.data,
        lambda hidden: hidden.detach_(),
        lambda hidden: None,  # starts afresh
    ):
        torch_rounds(torch, layer, carry)


def test_torch_state_of_an_lstm_is_a_pair(torch: Any) -> None:
    torch_rounds(torch, "LSTM", lambda hidden: tuple(state.detach() for state in hidden))
    with pytest.raises(AttributeError):
        torch_rounds(torch, "LSTM", lambda hidden: hidden.detach())


def test_torch_one_backward_over_all_steps_is_the_look_alike(torch: Any) -> None:
    network, hidden, loss = torch.nn.RNN(2, 2), None, 0
    for _ in range(ROUNDS):
        output, hidden = network(torch.ones(3, 1, 2), hidden)
        loss = loss + output.sum()
    loss.backward()
    assert network.weight_hh_l0.grad is not None


def test_torch_under_no_grad_there_is_nothing_to_detach(torch: Any) -> None:
    network, hidden = torch.nn.RNN(2, 2), None
    with torch.no_grad():
        for _ in range(ROUNDS):
            _, hidden = network(torch.ones(3, 1, 2), hidden)
    assert hidden.grad_fn is None


@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("step", [True, False])
def test_torch_keeping_the_graph_raises_once_the_weights_change(torch: Any, layer: str, step: bool) -> None:
    """`retain_graph=True` is no way out of it, unless no step is made in between."""
    network, hidden = getattr(torch.nn, layer)(2, 2), None
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def rounds() -> None:
        state = hidden
        for _ in range(ROUNDS):
            output, state = network(torch.ones(3, 1, 2), state)
            output.sum().backward(retain_graph=True)
            if step:
                optimizer.step()

    if step:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            rounds()
    else:
        rounds()


@pytest.mark.parametrize("layer", ["RNNCell", "GRUCell"])
def test_torch_state_of_a_cell_is_the_same(torch: Any, layer: str) -> None:
    cell, state = getattr(torch.nn, layer)(2, 2), torch.zeros(1, 2)
    state = cell(torch.ones(1, 2), state)
    state.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        cell(torch.ones(1, 2), state).sum().backward()


def paddle_rounds(paddle: Any, layer: str, carry: Callable[[Any], Any], **options: bool) -> None:
    network, hidden = getattr(paddle.nn, layer)(2, 2), None
    for _ in range(ROUNDS):
        output, hidden = network(paddle.ones([1, 3, 2]), hidden)
        output.sum().backward(**options)
        hidden = carry(hidden)


@pytest.mark.parametrize("layer", ["SimpleRNN", "GRU", "LSTM"])
def test_paddle_second_round_raises(paddle: Any, layer: str) -> None:
    with pytest.raises((RuntimeError, SystemError, ValueError), match="retain_graph"):
        paddle_rounds(paddle, layer, keep)
    with pytest.raises((RuntimeError, SystemError, ValueError), match="retain_graph"):
        paddle_rounds(paddle, layer, keep, retain_graph=False)


def test_paddle_right_forms(paddle: Any) -> None:
    paddle_rounds(paddle, "GRU", lambda hidden: hidden.detach())
    paddle_rounds(paddle, "LSTM", lambda hidden: tuple(state.detach() for state in hidden))


def test_paddle_a_state_that_stops_gradients_is_the_look_alike(paddle: Any) -> None:
    def stop(hidden: Any) -> Any:
        hidden.stop_gradient = True
        return hidden

    paddle_rounds(paddle, "GRU", stop)


@pytest.mark.parametrize("layer", ["SimpleRNN", "GRU", "LSTM"])
def test_paddle_keeping_the_graph_does_not_raise(paddle: Any, layer: str) -> None:
    """The look-alike: it goes through all iterations, again and again."""
    network, hidden = getattr(paddle.nn, layer)(2, 2), None
    optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    for _ in range(ROUNDS):
        output, hidden = network(paddle.ones([1, 3, 2]), hidden)
        output.sum().backward(retain_graph=True)
        optimizer.step()


@pytest.mark.parametrize("layer", ["RNN", "GRU"])
def test_torch_state_that_a_module_keeps(torch: Any, layer: str) -> None:
    class Keeping(torch.nn.Module):
        def __init__(self, carry: Callable[[Any], Any]) -> None:
            super().__init__()
            self.layer, self.carry, self.hidden = getattr(torch.nn, layer)(2, 2), carry, None

        def forward(self, x: Any) -> Any:
            output, hidden = self.layer(x, self.hidden)
            self.hidden = self.carry(hidden)
            return output

    def rounds(module: Any) -> None:
        for _ in range(ROUNDS):
            module(torch.ones(3, 1, 2)).sum().backward()

    with pytest.raises(RuntimeError, match="second time"):
        rounds(Keeping(keep))
    rounds(Keeping(lambda hidden: hidden.detach()))


def test_paddle_state_that_a_layer_keeps(paddle: Any) -> None:
    class Keeping(paddle.nn.Layer):
        def __init__(self, carry: Callable[[Any], Any]) -> None:
            super().__init__()
            self.layer, self.carry, self.hidden = paddle.nn.GRU(2, 2), carry, None

        def forward(self, x: Any) -> Any:
            output, hidden = self.layer(x, self.hidden)
            self.hidden = self.carry(hidden)
            return output

    def rounds(layer: Any) -> None:
        for _ in range(ROUNDS):
            layer(paddle.ones([1, 3, 2])).sum().backward()

    with pytest.raises((RuntimeError, SystemError, ValueError), match="retain_graph"):
        rounds(Keeping(keep))
    rounds(Keeping(lambda hidden: hidden.detach()))
