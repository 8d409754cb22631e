"""ML210: ``retain_graph=True`` keeps what a second ``backward()`` needs, whether or not there is one."""

import gc
import weakref
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def torch_activation_lives(torch: Any, retain: bool) -> bool:
    weight = torch.ones(3, requires_grad=True)
    activation = (weight * 2).relu()
    reference = weakref.ref(activation)
    loss = activation.pow(2).sum()
    loss.backward(retain_graph=retain)
    del activation
    gc.collect()
    return reference() is not None


def test_torch_retained_activations_live_as_long_as_the_loss(torch: Any) -> None:
    assert torch_activation_lives(torch, retain=True)
    assert not torch_activation_lives(torch, retain=False)


def test_torch_gradients_are_the_same(torch: Any) -> None:
    """Leaving it out changes no number."""
    gradients = []
    for retain in (True, False):
        weight = torch.ones(2, requires_grad=True)
        (weight**2).sum().backward(retain_graph=retain)
        gradients.append(weight.grad.tolist())
    assert gradients[0] == gradients[1]


@pytest.mark.parametrize("retain", [True, False])
def test_torch_second_backward_needs_it(torch: Any, retain: bool) -> None:
    """The look-alikes: the same loss twice, or two losses that share a part of the graph."""
    weight = torch.ones(2, requires_grad=True)
    shared = weight**2
    first, second = shared.sum(), shared.mean()
    first.backward(retain_graph=retain)
    if retain:
        second.backward()
        assert weight.grad.tolist() == [3.0, 3.0]
    else:
        with pytest.raises(RuntimeError, match="second time"):
            second.backward()


def test_torch_create_graph_retains_by_default(torch: Any) -> None:
    weight = torch.ones(1, requires_grad=True)
    loss = (weight**3).sum()
    (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
    gradient.backward()
    loss.backward()


@pytest.mark.parametrize("retain", [True, False])
def test_paddle_second_backward_needs_it(paddle: Any, retain: bool) -> None:
    """Which shows as well that the saved values are kept with it and freed without."""
    weight = paddle.ones([2])
    weight.stop_gradient = False
    shared = weight**2
    first, second = shared.sum(), shared.mean()
    first.backward(retain_graph=retain)
    if retain:
        second.backward()
        assert weight.grad.tolist() == [3.0, 3.0]
    else:
        with pytest.raises((RuntimeError, SystemError, ValueError), match="retain_graph"):
            second.backward()


@pytest.mark.parametrize("step", [True, False])
def test_torch_kept_graph_of_stepped_weights_is_of_no_use(torch: Any, step: bool) -> None:
    """What a module has kept of an earlier round cannot be walked again, once a step has changed its weights."""
    module = torch.nn.RNNCell(3, 3)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    kept = module(torch.ones(1, 3))
    for _ in range(2):
        kept = module(torch.ones(1, 3), kept)
    kept.sum().backward(retain_graph=True)
    if step:
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            module(torch.ones(1, 3), kept).sum().backward()
    else:
        module(torch.ones(1, 3), kept).sum().backward()


def torch_two_outputs(torch: Any) -> tuple[Any, Any]:
    """Two outputs of one pass, of which the second is computed from what the first is, too."""
    code = torch.nn.Linear(3, 3)(torch.ones(1, 3)) ** 2
    return code.sum(), code.mean()


@pytest.mark.parametrize("retain", [True, False])
def test_torch_outputs_of_one_pass_share_their_graph(torch: Any, retain: bool) -> None:
    first, second = torch_two_outputs(torch)
    first.backward(retain_graph=retain)
    if retain:
        second.backward()
    else:
        with pytest.raises(RuntimeError, match="second time"):
            second.backward()


def test_torch_a_module_called_anew_needs_nothing_of_the_last_round(torch: Any) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    for _ in range(3):
        module(torch.ones(1, 3)).sum().backward()


def test_torch_a_module_that_keeps_its_graph_walks_further_back_in_every_round(torch: Any) -> None:
    """Who keeps a state with its graph and retains it pays for each round so far again: nobody trains like that."""
    cell, state, walked = torch.nn.RNNCell(3, 3), None, list[int]()
    for _ in range(3):
        state = cell(torch.ones(1, 3), state)
        seen, pending = set[Any](), [state.grad_fn]
        while pending:
            node = pending.pop()
            if node is not None and node not in seen:
                seen.add(node)
                pending += [item for item, _ in node.next_functions]
        walked.append(len(seen))
        state.sum().backward(retain_graph=True)
    assert walked[0] < walked[1] < walked[2]


@pytest.mark.parametrize("is_begun_anew", [True, False])
def test_torch_losses_in_a_list(torch: Any, is_begun_anew: bool) -> None:
    """The sum of a list is walked once without it, unless the list has losses of earlier rounds."""
    weight = torch.ones(2, requires_grad=True)
    losses: list[Any] = []
    for round_number in range(2):
        if is_begun_anew:
            losses = []
        losses.append((weight**2).sum())
        if round_number == 0 or is_begun_anew:
            sum(losses).backward()  # type: ignore[union-attr]
        else:
            with pytest.raises(RuntimeError, match="second time"):
                sum(losses).backward()  # type: ignore[union-attr]


def test_torch_a_new_tensor_of_another_has_no_history(torch: Any) -> None:
    output = torch.ones(2, requires_grad=True) * 2
    made = torch.tensor(output)
    assert not made.requires_grad
    assert made.grad_fn is None


def test_paddle_a_new_tensor_of_another_has_no_history(paddle: Any) -> None:
    start = paddle.ones([2])
    start.stop_gradient = False
    made = paddle.to_tensor(start * 2)
    assert made.stop_gradient
    (made * 3).sum().backward()
    assert start.grad is None


def test_torch_graph_that_was_kept_is_of_no_use_behind_a_step(torch: Any) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    kept = layers(torch.rand(3, 2))
    kept.mean().backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_torch_pass_before_needs_nothing_of_the_one_behind(torch: Any) -> None:
    """A critic that judges what was drawn, and then the painter: only the first of two passes has to keep anything."""
    painter, critic = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    for _ in range(2):
        drawn = painter(torch.rand(3, 2))
        critic(drawn.detach()).mean().backward()
        critic(drawn).mean().backward()


def test_torch_variable_begins_anew(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    for given in (weight, weight * 2, torch.ones(2)):
        made = torch.autograd.Variable(given)
        assert made.grad_fn is None
        assert not made.requires_grad


def test_torch_what_each_call_makes_anew_is_no_state(torch: Any) -> None:
    class Attention(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.query = torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            self.map_of_call = self.query(x).softmax(-1)
            return self.map_of_call * x

    model = Attention()
    for _ in range(3):
        model(torch.rand(2, 3)).sum().backward()  # raises where a graph is walked through twice


def test_paddle_what_each_call_makes_anew_is_no_state(paddle: Any) -> None:
    class Attention(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.query = paddle.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            self.map_of_call = paddle.nn.functional.softmax(self.query(x), axis=-1)
            return self.map_of_call * x

    model = Attention()
    for _ in range(3):
        model(paddle.rand([2, 3])).sum().backward()
