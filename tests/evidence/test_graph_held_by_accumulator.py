"""ML201: a total or a list keeps the graph of every loss that was put into it.

Memory is not measured: weak references to the activations and a count of the graph's nodes say
the same and say it every time.
"""

import gc
import inspect
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mllint import fix_source

pytestmark = pytest.mark.evidence

ROUNDS = 3


class Epoch:
    """What a training or validation loop keeps from one batch to the next."""

    def __init__(self) -> None:
        self.total: Any = 0
        self.kept: list[Any] = []


def add(epoch: Epoch, loss: Any) -> None:
    epoch.total += loss


def add_scaled(epoch: Epoch, loss: Any) -> None:
    epoch.total = epoch.total + loss * 5 / 2


def add_on_the_cpu(epoch: Epoch, loss: Any) -> None:
    epoch.total += loss.cpu()


def append(epoch: Epoch, loss: Any) -> None:
    epoch.kept.append(loss)


def append_root(epoch: Epoch, loss: Any) -> None:
    epoch.kept.append(loss.sqrt())


def add_item(epoch: Epoch, loss: Any) -> None:
    epoch.total += loss.item()


def add_detached(epoch: Epoch, loss: Any) -> None:
    epoch.total += loss.detach()


def append_detached(epoch: Epoch, loss: Any) -> None:
    epoch.kept.append(loss.detach())


def append_item(epoch: Epoch, loss: Any) -> None:
    epoch.kept.append(loss.item())


HOLDING = [add, add_scaled, add_on_the_cpu, append, append_root]
LETTING_GO = [add_item, add_detached, append_detached, append_item]


def torch_graph_nodes(root: Any) -> int:
    """How many nodes of a graph are reachable from a tensor."""
    seen, todo = set(), [root.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return len(seen)


def torch_epoch(torch: Any, keep: Callable[[Epoch, Any], None], backward: bool) -> tuple[int, int]:
    """Runs three batches; gives how many activations live on and how many nodes are reachable."""
    first, second, x = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1), torch.randn(5, 4)
    epoch, activations = Epoch(), []
    for _ in range(ROUNDS):
        activation = torch.relu(first(x))
        activations.append(weakref.ref(activation))
        loss = second(activation).pow(2).mean()
        if backward:
            loss.backward()
        keep(epoch, loss)
        del activation, loss
    gc.collect()
    held = [tensor for tensor in (epoch.total, *epoch.kept) if torch.is_tensor(tensor)]
    alive = sum(reference() is not None for reference in activations)
    return alive, sum(torch_graph_nodes(tensor) for tensor in held)


@pytest.mark.parametrize("keep", HOLDING)
def test_torch_without_backward_everything_is_kept(torch: Any, keep: Any) -> None:
    """A validation loop outside ``no_grad``: every activation of every batch."""
    alive, nodes = torch_epoch(torch, keep, backward=False)
    assert alive == ROUNDS
    assert nodes >= ROUNDS * 9


@pytest.mark.parametrize("keep", HOLDING)
def test_torch_after_backward_only_the_nodes_are_kept(torch: Any, keep: Any) -> None:
    """The training loop: ``backward()`` frees the activations, the chain of nodes still grows."""
    alive, nodes = torch_epoch(torch, keep, backward=True)
    assert alive == 0
    assert nodes == torch_epoch(torch, keep, backward=False)[1] > 0


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("keep", LETTING_GO)
def test_torch_numbers_and_detached_tensors_keep_nothing(torch: Any, keep: Any, backward: bool) -> None:
    assert torch_epoch(torch, keep, backward) == (0, 0)


@pytest.mark.parametrize("retain", [False, True])
def test_torch_backward_of_the_last_item_of_a_list(torch: Any, retain: bool) -> None:
    """``losses.append(loss); losses[-1].backward()`` keeps the nodes, with ``retain_graph`` all of it."""

    def append_and_spend(epoch: Epoch, loss: Any) -> None:
        epoch.kept.append(loss)
        epoch.kept[-1].backward(retain_graph=retain)

    alive, nodes = torch_epoch(torch, append_and_spend, backward=False)
    assert alive == (ROUNDS if retain else 0)
    assert nodes == torch_epoch(torch, append, backward=False)[1]


@pytest.mark.parametrize("cut", [False, True])
def test_torch_joined_losses_keep_the_graph_of_each(torch: Any, cut: bool) -> None:
    """``outputs = torch.cat((outputs, output))`` hangs on all that was joined, unless each was detached before."""

    def join(epoch: Epoch, loss: Any) -> None:
        before = epoch.kept.pop() if epoch.kept else torch.zeros(0)
        epoch.kept.append(torch.cat((before, (loss.detach() if cut else loss).reshape(1))))

    alive, nodes = torch_epoch(torch, join, backward=False)
    assert (alive, nodes > 0) == ((0, False) if cut else (ROUNDS, True))
    alive, nodes = torch_epoch(torch, join, backward=True)
    assert (alive, nodes > 0) == (0, not cut)


@pytest.mark.parametrize("cut", [False, True])
def test_torch_dict_in_a_list_keeps_the_graph_of_its_loss(torch: Any, cut: bool) -> None:
    """``outputs.append(output)`` after ``output["loss"].backward()``, unless the entry was detached before."""

    def append_as_entry(epoch: Epoch, loss: Any) -> None:
        output = {"loss": loss.detach() if cut else loss}
        epoch.kept += output.values()  # what a list of such dicts holds on to

    nodes = torch_epoch(torch, append_as_entry, backward=True)[1]
    assert nodes == (0 if cut else torch_epoch(torch, append, backward=False)[1])


def test_torch_total_that_starts_as_a_plain_tensor_joins_the_graph(torch: Any) -> None:
    """``+=`` on a tensor works in place and still records what was added."""

    def add_in_place(epoch: Epoch, loss: Any) -> None:
        if not torch.is_tensor(epoch.total):
            epoch.total = torch.zeros(())
        epoch.total += loss

    assert torch_epoch(torch, add_in_place, backward=False)[0] == ROUNDS


def test_torch_under_no_grad_nothing_is_kept(torch: Any) -> None:
    def add_without_grad(epoch: Epoch, loss: Any) -> None:
        with torch.no_grad():
            epoch.total += loss

    assert torch_epoch(torch, add_without_grad, backward=False) == (0, 0)
    with torch.no_grad():
        assert torch_epoch(torch, add, backward=False) == (0, 0)
    with torch.inference_mode():
        assert torch_epoch(torch, add, backward=False) == (0, 0)


def test_torch_data_of_a_loss_lets_go_too(torch: Any) -> None:
    def add_data(epoch: Epoch, loss: Any) -> None:
        epoch.total += loss.data

    assert torch_epoch(torch, add_data, backward=False) == (0, 0)


def test_torch_total_of_losses_that_were_backwarded_cannot_be_backwarded(torch: Any) -> None:
    model, x = torch.nn.Linear(4, 1), torch.randn(5, 4)
    total = 0
    for _ in range(ROUNDS):
        loss = model(x).pow(2).mean()
        loss.backward()
        total += loss
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        total.backward()


def test_torch_total_for_one_backward_has_to_stay_a_tensor(torch: Any) -> None:
    """The look-alike: losses of several heads summed up and sent backward once."""
    model, x = torch.nn.Linear(4, 1), torch.randn(5, 4)
    total = 0
    for _ in range(ROUNDS):
        total += model(x).pow(2).mean()
    total.backward()
    assert model.weight.grad is not None


def test_torch_float_of_a_loss_warns_where_item_does_not(torch: Any) -> None:
    """So the fix writes ``.item()``; ``float()`` of a tensor in the graph is frowned upon."""
    loss = torch.ones(2, requires_grad=True).mean()
    torch.set_warn_always(True)  # else only the first time in a process
    try:
        with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
            float(loss)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert loss.item() == 1.0
    finally:
        torch.set_warn_always(False)


def test_torch_values_of_item_and_detach_are_those_of_the_tensor(torch: Any) -> None:
    """Where nothing is rounded, a total of floats and one of tensors agree."""
    losses = [torch.tensor(value, requires_grad=True) * 1 for value in (0.5, 0.25, 2.0)]
    with_tensors, with_numbers, detached = 0, 0.0, 0
    for loss in losses:
        with_tensors += loss
        with_numbers += loss.item()
        detached += loss.detach()
    assert with_tensors.item() == with_numbers == detached.item() == 2.75
    assert f"{with_tensors:.2f}" == f"{with_numbers:.2f}"


def test_torch_total_of_numbers_is_more_exact_than_one_of_tensors(torch: Any) -> None:
    """What the fix may change: Python adds in double precision, the last digits of a sum can differ."""
    losses = [torch.tensor(0.1, requires_grad=True) * 1 for _ in range(1000)]
    with_tensors, with_numbers, detached = 0, 0.0, 0
    for loss in losses:
        with_tensors += loss
        with_numbers += loss.item()
        detached += loss.detach()
    assert with_tensors.item() == detached.item()
    assert with_numbers == pytest.approx(with_tensors.item(), rel=1e-4)
    assert abs(with_numbers - 100) < abs(with_tensors.item() - 100)


# ---- paddle -----------------------------------------------------------------------------------


def paddle_epoch(paddle: Any, keep: Callable[[Epoch, Any], None], backward: bool) -> int:
    """Runs three batches; gives how many of the layer contexts (and what they saved) live on."""

    class Saved:
        """Stands in a layer's context beside the saved tensor and lives as long as that."""

    contexts: list[weakref.ref[Saved]] = []

    class Square(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.saved = Saved()
            ctx.save_for_backward(x)
            contexts.append(weakref.ref(ctx.saved))
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return 2 * x * gradient

    model, x = paddle.nn.Linear(4, 1), paddle.randn([5, 4])
    epoch = Epoch()
    for _ in range(ROUNDS):
        loss = Square.apply(model(x)).mean()
        if backward:
            loss.backward()
        keep(epoch, loss)
        del loss
    gc.collect()
    assert len(contexts) == ROUNDS
    return sum(reference() is not None for reference in contexts)


@pytest.mark.parametrize("keep", HOLDING)
def test_paddle_without_backward_everything_is_kept(paddle: Any, keep: Any) -> None:
    assert paddle_epoch(paddle, keep, backward=False) == ROUNDS


@pytest.mark.parametrize("keep", HOLDING)
def test_paddle_after_backward_the_saved_values_are_freed(paddle: Any, keep: Any) -> None:
    assert paddle_epoch(paddle, keep, backward=True) == 0


@pytest.mark.parametrize("keep", LETTING_GO)
def test_paddle_numbers_and_detached_tensors_keep_nothing(paddle: Any, keep: Any) -> None:
    assert paddle_epoch(paddle, keep, backward=False) == 0


def test_paddle_count_of_elements_has_no_graph(paddle: Any) -> None:
    """``numel()`` gives a tensor, which hangs on nothing."""
    count = 0 + paddle.nn.Linear(2, 3).weight.numel()
    assert count.stop_gradient
    assert int(count) == 6


def test_paddle_under_no_grad_nothing_is_kept(paddle: Any) -> None:
    def add_without_grad(epoch: Epoch, loss: Any) -> None:
        with paddle.no_grad():
            epoch.total += loss

    assert paddle_epoch(paddle, add_without_grad, backward=False) == 0


def test_paddle_data_of_a_loss_lets_go_since_3_1(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """Before, ``.data`` was the tensor with its graph."""

    def add_data(epoch: Epoch, loss: Any) -> None:
        epoch.total += loss.data

    assert paddle_epoch(paddle, add_data, backward=False) == (0 if paddle_version >= (3, 1) else ROUNDS)


def test_paddle_total_of_losses_that_were_backwarded_cannot_be_backwarded(paddle: Any) -> None:
    model, x = paddle.nn.Linear(4, 1), paddle.randn([5, 4])
    total = 0
    for _ in range(ROUNDS):
        loss = model(x).pow(2).mean()
        loss.backward()
        total += loss
    with pytest.raises((RuntimeError, SystemError, ValueError), match="retain_graph"):
        total.backward()


def test_paddle_total_for_one_backward_has_to_stay_a_tensor(paddle: Any) -> None:
    model, x = paddle.nn.Linear(4, 1), paddle.randn([5, 4])
    total = 0
    for _ in range(ROUNDS):
        total += model(x).pow(2).mean()
    total.backward()
    assert model.weight.grad is not None


# -- what the fix makes of it ---------------------------------------------------------------------

PROGRAM = Path(__file__).parents[1] / "fixtures" / "rules" / "graph-held-by-accumulator" / "torch_uses_of_totals.py"
ARGUMENTS = (["net", "loader", "optimizer"], ["model", "loader", "optimizer"])


def test_mended_totals_are_used_as_before() -> None:
    """Whoever reads a total, in its function or behind a call, gets what it can use: a number, or still a tensor."""
    torch = pytest.importorskip("torch")
    mended = fix_source(PROGRAM.read_bytes(), path=str(PROGRAM))
    assert len(mended.applied) >= 10
    program: dict[str, Any] = {"__name__": "program"}
    exec(compile(mended.data, str(PROGRAM), "exec"), program)
    loader = [(torch.randn(3, 4), torch.tensor([0, 1, 1])) for _ in range(ROUNDS)]
    count = 0
    for function in list(program.values()):
        if inspect.isfunction(function) and list(inspect.signature(function).parameters) in ARGUMENTS:
            net = torch.nn.Linear(4, 2)
            function(net, loader, torch.optim.SGD(net.parameters(), lr=0.1))
            count += 1
    assert count >= 15


def test_torch_every_term_of_a_spent_sum_keeps_its_nodes(torch: Any) -> None:
    weight = torch.rand(3, requires_grad=True)
    totals: list[Any] = [0, 0]
    for _ in range(ROUNDS):
        bce, kld = (weight * 2).sum(), -0.5 * torch.sum(1 + weight - weight.exp())
        (bce + 0.1 * kld).backward()
        totals = [totals[0] + bce, totals[1] + kld]
    for total in totals:
        nodes, pending = 0, [total.grad_fn]
        while pending:
            node = pending.pop()
            nodes += node is not None
            pending += [] if node is None else [item for item, _ in node.next_functions]
        assert nodes > 3 * ROUNDS


def test_torch_leaf_holds_nothing_of_what_was_computed_of_it(torch: Any) -> None:
    leaf = torch.linspace(0, 1, 4).requires_grad_(True)
    power = leaf.pow(2)
    computed, loss = weakref.ref(power), power.sum()
    loss.backward()
    kept = [leaf]
    del power, loss
    gc.collect()

    assert kept[0].grad_fn is None
    assert computed() is None


def test_paddle_leaf_holds_nothing_of_what_was_computed_of_it(paddle: Any) -> None:
    leaf = paddle.to_tensor([0.5] * 4, stop_gradient=False)
    power = leaf * leaf
    computed, loss = weakref.ref(power), power.sum()
    loss.backward()
    kept = [leaf]
    del power, loss
    gc.collect()

    assert kept[0].is_leaf
    assert computed() is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_have_a_graph_only_where_it_is_asked_for(torch: Any, paddle: Any, create_graph: bool) -> None:
    """The look-alike: a sum of what ``autograd.grad`` gives."""
    weight = torch.ones(2, requires_grad=True)
    given = torch.autograd.grad((weight**3).sum(), weight, create_graph=create_graph)[0]
    assert (given.grad_fn is not None) is create_graph

    other = paddle.ones([2])
    other.stop_gradient = False
    given = paddle.grad((other**3).sum(), other, create_graph=create_graph)[0]
    assert given.stop_gradient is not create_graph


def mean_in_place(layer: Any, mean: Any) -> None:
    layer.mean.add_(mean)


def mean_anew(layer: Any, mean: Any) -> None:
    layer.mean = 0.9 * layer.mean + 0.1 * mean


def first_rows(layer: Any, mean: Any) -> None:
    layer.mean[:2] = mean[:2]


UPDATES = [mean_in_place, mean_anew, first_rows]


@pytest.mark.parametrize("update", UPDATES)
def test_torch_buffer_keeps_the_nodes_of_every_call(torch: Any, update: Callable[[Any, Any], None]) -> None:
    layer = torch.nn.Linear(3, 3)
    layer.register_buffer("mean", torch.zeros(3))
    nodes = []
    for _ in range(ROUNDS):
        output = layer(torch.rand(4, 3))
        update(layer, output.mean(0))
        output.sum().backward()
        nodes.append(torch_graph_nodes(layer.mean))
    assert nodes[0] < nodes[1] < nodes[2]
    with torch.no_grad():
        layer.mean = torch.zeros(3)
    update(layer, layer(torch.rand(4, 3)).mean(0).detach())
    assert layer.mean.grad_fn is None


@pytest.mark.parametrize("update", UPDATES)
def test_paddle_buffer_becomes_part_of_the_graph(paddle: Any, update: Callable[[Any, Any], None]) -> None:
    layer = paddle.nn.Linear(3, 3)
    layer.register_buffer("mean", paddle.zeros([3]))
    update(layer, layer(paddle.rand([4, 3])).mean(0).detach())
    assert layer.mean.stop_gradient
    for _ in range(ROUNDS):
        output = layer(paddle.rand([4, 3]))
        update(layer, output.mean(0))
        output.sum().backward()
    assert not layer.mean.stop_gradient


def test_torch_sums_without_gradients_hold_no_graph_and_lists_do(torch: Any) -> None:
    loss = torch.nn.Linear(3, 1)(torch.rand(2, 3)).mean()
    total, kept = torch.zeros(1), []
    with torch.no_grad():
        total += loss
        kept.append(loss)
    assert total.grad_fn is None
    assert kept[0].grad_fn is not None


def test_paddle_sums_without_gradients_hold_no_graph_and_lists_do(paddle: Any) -> None:
    loss = paddle.nn.Linear(3, 1)(paddle.rand([2, 3])).mean()
    total, kept = paddle.zeros([1]), []
    with paddle.no_grad():
        total = total + loss
        kept.append(loss)
    assert total.stop_gradient
    assert not kept[0].stop_gradient


@pytest.mark.parametrize("is_train", [True, False])
def test_torch_gradients_that_a_test_switches(torch: Any, is_train: bool) -> None:
    weight, total = torch.ones(3, requires_grad=True), 0.0
    with torch.set_grad_enabled(is_train):
        loss = (weight * torch.rand(3)).sum()
        if is_train:
            loss.backward()
    total += loss
    assert (total.grad_fn is not None) is is_train


@pytest.mark.parametrize("is_train", [True, False])
def test_paddle_gradients_that_a_test_switches(paddle: Any, is_train: bool) -> None:
    weight, total = paddle.ones([3]), 0.0
    weight.stop_gradient = False
    with paddle.set_grad_enabled(is_train):
        loss = (weight * paddle.rand([3])).sum()
        if is_train:
            loss.backward()
    total += loss
    assert total.stop_gradient is not is_train


def test_torch_adding_in_place_keeps_the_graph(torch: Any) -> None:
    net = torch.nn.Linear(3, 1)
    losses = net(torch.ones(4, 3)).square().squeeze(1)
    losses.mean().backward()
    groups, totals = torch.arange(4), [torch.zeros(4) for _ in range(4)]
    totals[0].index_add_(0, groups, losses)
    totals[1].scatter_add_(0, groups, losses)
    totals[2].add_(losses)
    with torch.no_grad():
        totals[3].add_(losses)
    assert [total.requires_grad for total in totals] == [True, True, True, False]


def test_paddle_adding_in_place_keeps_the_graph(paddle: Any) -> None:
    net = paddle.nn.Linear(3, 1)
    losses = net(paddle.ones([4, 3])).square().squeeze(1)
    losses.mean().backward()
    groups, totals = paddle.arange(4), [paddle.zeros([4]) for _ in range(4)]
    totals[0].index_add_(groups, 0, losses)
    totals[1].scatter_add_(0, groups, losses)
    totals[2].add_(losses)
    with paddle.no_grad():
        totals[3].add_(losses)
    assert [total.stop_gradient for total in totals] == [False, False, False, True]


def test_torch_rows_of_a_tensor_that_extends_a_list_keep_its_graph(torch: Any) -> None:
    rows: list[Any] = []
    rows.extend(torch.nn.Linear(2, 2)(torch.ones(3, 2)))
    assert len(rows) == 3
    assert all(row.grad_fn is not None for row in rows)


def test_paddle_rows_of_a_tensor_that_extends_a_list_keep_its_graph(paddle: Any) -> None:
    rows: list[Any] = []
    rows.extend(paddle.nn.Linear(2, 2)(paddle.ones([3, 2])))
    assert len(rows) == 3
    assert all(not row.stop_gradient for row in rows)


@pytest.mark.parametrize("cut", [False, True])
def test_torch_state_made_of_itself_raises_in_the_second_backward(torch: Any, cut: bool) -> None:
    layer = torch.nn.Linear(3, 3)
    state = torch.zeros(4, 3)
    for step in range(ROUNDS):
        state = (state.detach() if cut else state) * 0.9 + layer(torch.rand(4, 3))
        loss = (torch.sigmoid(state) * torch.rand(4, 3)).sum()
        if step == 0 or cut:
            loss.backward()
        else:
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()


@pytest.mark.parametrize("cut", [False, True])
def test_torch_state_made_of_itself_keeps_the_nodes_of_every_call(torch: Any, cut: bool) -> None:
    layer, state, nodes = torch.nn.Linear(3, 3), torch.zeros(4, 3), []
    for _ in range(ROUNDS):
        state = (state.detach() if cut else state) * 0.9 + layer(torch.rand(4, 3))
        nodes.append(torch_graph_nodes(state))
    assert (nodes[0] < nodes[1] < nodes[2]) is not cut
