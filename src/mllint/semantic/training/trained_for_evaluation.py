"""Evaluations that put the model to training mode themselves, where evaluation mode is meant.

Who wants training mode there samples with dropout, has batch normalization collect statistics, or gets the losses that
a detector gives in no other mode. None of these compares the one output of a batch with the rest of it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Frame
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.training.data_loops import data_names, fed_names, made_of
from mllint.semantic.training.data_rounds import DataRound, in_sight, rounds_of
from mllint.semantic.training.evaluation import is_in_called_evaluation
from mllint.semantic.training.nearby import trains_in_every_round
from mllint.semantic.training.sisters import is_trained_by_sister
from mllint.semantic.training.training_modes import (
    TRAIN,
    covers,
    is_trained,
    mode_matters,
    modes_before,
    records_graph,
)
from mllint.syntax.shape import all_given, fingerprint, last_word
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SWITCHES = (Kind.TRAIN, Kind.EVAL, Kind.SET_MODE)


def switch_for_evaluation(model: "Model", node: cst.For) -> cst.Call | None:
    """The call of ``train()`` by which a loop that surely evaluates, or the evaluation around it, spoils its mode."""
    if not _may_spoil(model, node) or is_test_code(model) or trains_in_every_round(model, node):
        return None
    rounds = in_sight(list(rounds_of(model.runs.loops_at(node))))
    found = [next(_switches(item), None) for item in rounds]
    switch = found[0] if found and None not in found else None
    if switch is None or switch.frame.model is not model or not isinstance(switch.node, cst.Call):
        return None
    return switch.node


def _may_spoil(model: "Model", node: cst.For) -> bool:
    """Whether ``train`` is named in a loop, or what it calls, or in a function around it that names no ``eval``.

    Few are, so that few are followed.
    """
    named = model.names_by_word.get("train", ())
    if not named:
        return False
    inside = [name for name in named if model.tree.is_inside(name, node)]
    homes = {home.name.value for name in named if (home := model.enclosing_function(name)) is not None}
    if inside or any(last_word(call.func) in homes for call in model.tree.calls_in(node.body)):
        return True
    function = model.enclosing_function(node)
    return (
        function is not None and function.name.value in homes and not model.names_within("eval", model.scope_of(node))
    )


def _switches(found: DataRound) -> Iterator[Event]:
    """What puts a model to training mode that a round then evaluates: there, or in the evaluation around the loop."""
    run, loop = found.found.run, found.found.loop
    if run.is_cut or not isinstance(loop.node, cst.For):
        return
    for forward in found.forwards:
        if forward.thing is None or forward.loops[-1] is not loop:
            continue  # drawn several times
        own = [
            event
            for event in run.events
            if event.kind in _SWITCHES and event.frame in (loop.frame, forward.frame)
            if event.thing is not None and covers(event.thing, forward.thing)
        ]
        inside = [event for event in own if loop in event.loops]
        is_meant_here = is_in_called_evaluation(found.found) and {event.kind for event in own} == {Kind.TRAIN}
        in_round = {event.kind for event in inside} == {Kind.TRAIN} and records_graph(forward) is False
        if not (is_meant_here or in_round) or not _is_compared(loop.node, loop.frame, forward):
            continue
        is_spoilt = modes_before(run, forward.thing, forward) == {TRAIN} and mode_matters(forward, run) is True
        if is_spoilt and (is_trained(run, forward.thing) or is_trained_by_sister(run, forward)):
            yield (inside or own)[-1]


def _is_compared(loop: cst.For, frame: Frame, forward: Event) -> bool:
    """Whether the output of a forward pass is held against data of the round that the model was not given.

    ``frame`` is that of the loop; the pass may stand in a function that the loop calls.
    """
    if forward.frame is frame:
        body, fed = loop.body, fed_names(frame.model, loop)
    elif forward.frame.function is not None:
        body = forward.frame.function.node.body
        fed = made_of({item.name.value for item in forward.frame.function.parameters}, body)
    else:
        return False
    output = set[str]()
    for node in subtree(body):
        if node is forward.node:
            continue
        if type(node) is cst.Assign and _is_made_of(node.value, output, forward.node):
            output |= {name for target in node.targets for name in names_in(target.target)}
        made = [part for part in _operands(node) if _is_made_of(part, output, forward.node)]
        if made and any(_is_beside(part, fed - output, forward.node) for part in _operands(node) if part not in made):
            return True
    return False


def _operands(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What stands side by side in an expression."""
    if type(node) is cst.Call:
        return all_given(node)
    if type(node) is cst.Comparison:
        return [node.left, *(target.comparator for target in node.comparisons)]
    return [node.left, node.right] if type(node) is cst.BinaryOperation else []


def _is_made_of(node: cst.BaseExpression, output: set[str], call: cst.CSTNode) -> bool:
    return bool(output & data_names(node)) or any(item is call for item in subtree(node))


def _is_beside(node: cst.BaseExpression, fed: set[str], call: cst.CSTNode) -> bool:
    """Whether an expression reads data of the round that a call is not given: also another part of the same batch."""
    given = list(subtree(call))
    if fed & (data_names(node) - names_in(call)):
        return True
    parts = {fingerprint(item) for item in given if type(item) is cst.Subscript}
    return any(
        type(item) is cst.Subscript and bool(fed & names_in(item.value)) and fingerprint(item) not in parts
        for item in subtree(node)
    )
