"""Forward passes in no loop over the data, all of it at once or one batch, that record a graph for nothing."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event, Kind, Loop, events
from mllint.semantic.modules.weights import is_trainable
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.training.adversaries import is_held_by_another, may_be_attacked
from mllint.semantic.training.data_loops import (
    is_named_evaluation,
    may_be_forward_pass,
)
from mllint.semantic.training.data_rounds import TRAINING
from mllint.semantic.training.evaluation import evaluates_with_graph
from mllint.semantic.training.frozen import is_frozen
from mllint.semantic.training.made_up import is_made_up
from mllint.semantic.training.outputs import is_detached, is_dropped, is_used_for_backward
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.single_passes import calls_by_method, calls_in, is_of_round, switches_gradients_off_itself
from mllint.semantic.training.training_modes import (
    EVAL,
    is_trained,
    modes_before,
    records_graph,
)
from mllint.semantic.training.unseen_callers import may_run_without_gradients
from mllint.semantic.training.wanted_gradients import (
    GRADIENT_WORDS,
    computes_gradients,
    says_gradients,
)
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def evaluations_recorded(model: "Model", function: cst.FunctionDef) -> Iterator[cst.Call]:
    """The forward passes right in a function that surely evaluate a model in evaluation mode, and record a graph.

    All of the data goes through the model at once, such as a graph in a graph network, in a run that trains it too.
    So it does by a method of the model that only calls the model itself. Of several in statements one right behind the
    other it is the first.
    """
    found = list(_evaluations(model, function))
    return _first_of_neighbours(model, found, found)


def _evaluations(model: "Model", function: cst.FunctionDef) -> Iterator[cst.Call]:
    name = function.name.value
    if not is_named_evaluation(name) or name.startswith("test_") or says_gradients(model, function.body):
        return
    for call in calls_in(function):
        if calls_by_method(model, call):
            inside = list(model.runs.within(call, accelerated=True))
            if (
                inside
                and all(map(_is_recorded_for_nothing, inside))
                and not isinstance(model.tree.parent(call), cst.Expr)
            ):
                yield call
        elif may_be_forward_pass(model, call) and model.runs.always(call, _is_recorded_for_nothing, accelerated=True):
            yield call


def inferences_recorded(model: "Model", switch: cst.Call) -> Iterator[cst.Call]:
    """The forward passes that record a graph, but are detached from it wherever they are read, of a model that a call
    in the same body puts to evaluation mode. Where a loop is reported, those in it are left to that. Of several in
    statements one right behind the other, of whichever models the body switches, it is the first.
    """
    home, found = model.enclosing_function(switch), _inferences(model, switch)
    others = (item for item in model.calls_by_word.get("eval", ()) if found and model.enclosing_function(item) is home)
    return _first_of_neighbours(model, found, [call for other in others for call in _inferences(model, other)])


@worked_out_once
def _inferences(model: "Model", switch: cst.Call) -> list[cst.Call]:
    return list(_find_inferences(model, switch))


def _find_inferences(model: "Model", switch: cst.Call) -> Iterator[cst.Call]:
    path = dotted_path(switch.func.value) if isinstance(switch.func, cst.Attribute) and not switch.args else None
    if path is None:
        return
    function = model.enclosing_function(switch)
    for call in _passes_of(model, path):
        if model.enclosing_function(call) is not function:
            continue
        if model.gradients.off(call) is True:
            continue  # as its body says: no run need be followed
        body = model.tree.module if function is None else function.body
        loops = list(model.tree.loops_around(call))
        # A single graph of what is only looked at is gone at once; those of all the rounds take their time.
        is_read = is_detached(model, call, also_places=bool(loops))
        if not is_read or says_gradients(model, body, GRADIENT_WORDS - {"backward"}):
            continue
        inferred = partial(_is_inferred_with_graph, beside_training=says_gradients(model, body))
        if _holds_of_passes(model, call, inferred) and not any(evaluates_with_graph(model, loop) for loop in loops):
            yield call


def _first_of_neighbours(model: "Model", found: list[cst.Call], beside: list[cst.Call]) -> Iterator[cst.Call]:
    """Of the forward passes in statements one right behind the other the first: what is put around it takes them in."""
    holders = {id(_statement(model, call)) for call in beside}
    for call in found:
        statement = _statement(model, call)
        block = None if statement is None else model.tree.parent(statement)
        body = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
        at = next((index for index, item in enumerate(body) if item is statement), 0)
        if at == 0 or id(body[at - 1]) not in holders:
            yield call


def _statement(model: "Model", call: cst.Call) -> cst.CSTNode | None:
    return model.tree.nearest(call, cst.SimpleStatementLine)


def _passes_of(model: "Model", path: str) -> Iterator[cst.Call]:
    """The calls in a file of what has a name: also by ``forward``, or by a method of a known class that calls parts."""
    for word in (path.rpartition(".")[2], "forward"):
        yield from (
            call for call in model.calls_by_word.get(word, ()) if dotted_path(call.func) in (path, f"{path}.forward")
        )
    for name in model.names_by_word.get(path.rpartition(".")[2], ()):
        parent = model.tree.parent(name)
        whole = parent if isinstance(parent, cst.Attribute) and parent.attr is name else name
        method = model.tree.parent(whole)
        call = model.tree.parent(method) if isinstance(method, cst.Attribute) and method.value is whole else None
        is_called = isinstance(call, cst.Call) and call.func is method and dotted_path(whole) == path
        if isinstance(call, cst.Call) and is_called and calls_by_method(model, call):
            yield call


def _holds_of_passes(model: "Model", call: cst.Call, holds: Callable[[Occurrence], bool]) -> bool:
    """Whether something holds of the forward pass that a call is, or of all in the method that it calls, every time."""
    if not calls_by_method(model, call):
        return model.runs.always(call, holds, accelerated=True)
    inside = [item for item in model.runs.within(call, accelerated=True) if item.event.kind is Kind.FORWARD]
    return bool(inside) and all(map(holds, inside)) and not isinstance(model.tree.parent(call), cst.Expr)


def _is_inferred_with_graph(occurrence: Occurrence, *, beside_training: bool) -> bool:
    run, forward = occurrence.run, occurrence.event
    if forward.kind is not Kind.FORWARD or forward.thing is None or run.is_cut or not records_graph(forward):
        return False
    if beside_training and not is_trained(run, forward.thing):
        return False  # what the body computes gradients of by `backward()` is something else: an input, say
    if is_of_round(forward) or any(_is_left(loop, forward) for loop in forward.loops if loop.frame is forward.frame):
        return False
    if is_dropped(forward) or is_made_up(forward) or _is_all_of_a_script(run, forward):
        return False
    if is_frozen(run, (forward,)) or computes_gradients(forward) or switches_gradients_off_itself(forward):
        return False
    if forward.called is None or not is_trainable(forward.frame.model, forward.called):
        return False
    return modes_before(run, forward.thing, forward) == {EVAL} and not may_run_without_gradients(run.frame.function)


def _is_all_of_a_script(run: Run, forward: Event) -> bool:
    """Whether a script runs its model once, and does not train it, or nothing any more: no graph outlives another."""
    if run.frame.function is not None or forward.loops or forward.thing is None:
        return False
    later = run.events[run.events.index(forward) :]
    return not any(event.kind in TRAINING for event in later) or not is_trained(run, forward.thing)


def _is_left(loop: Loop, forward: Event) -> bool:
    """Whether a loop is over modules or the like, or something out of sight in it may attack the model."""
    if isinstance(loop.node, cst.CompFor) or may_be_attacked(loop, forward):
        return True
    return is_held_by_another(events(loop.body), (forward,))


def _is_recorded_for_nothing(occurrence: Occurrence) -> bool:
    run, forward = occurrence.run, occurrence.event
    module = forward.thing
    if forward.kind is not Kind.FORWARD or module is None or run.is_cut or not records_graph(forward):
        return False
    if isinstance(forward.frame.model.tree.parent(forward.node), cst.Expr) or is_of_round(forward):
        return False
    if is_frozen(run, (forward,)) or switches_gradients_off_itself(forward):
        return False
    if modes_before(run, module, forward) != {EVAL} or not is_trained(run, module):
        return False
    if computes_gradients(forward) or is_used_for_backward(run, forward.frame, forward.node):
        return False
    return not may_run_without_gradients(run.frame.function)
