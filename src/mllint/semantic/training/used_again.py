"""Gradients that a step has used, and that nobody clears before the next step of that optimizer in the same body."""

import itertools
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import CLEARING
from mllint.semantic.events.made_anew import is_made_in, picks_another
from mllint.semantic.events.steps import UPDATES, Event, Kind, Loop
from mllint.semantic.flow import optimizer_of
from mllint.semantic.training.measured import only_measures
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.zeroing import clears, computes_by_itself, may_clear
from mllint.syntax.shape import fingerprint, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_BEGIN, _CLEAN, _USED, _MIXED = "begin", "clean", "used", "mixed"


def uses_gradients_again(model: "Model", step: cst.Call) -> bool:
    """Whether a step uses, beside those computed for it, gradients that another step of its body has used before.

    Gradients of the same optimizer are cleared elsewhere in that body: between these two steps it was forgotten.
    """
    return _may_use_again(model, step) and model.runs.always(step, _uses_again, accelerated=True, by_hand=True)


def _may_use_again(model: "Model", step: cst.Call) -> bool:
    """Whether the body around a step has another one of the same optimizer, and clears gradients, to go by its text."""
    if len(model.calls_by_word.get("backward", ())) < 2:
        return False
    body = model.enclosing_function(step)
    others = [
        call
        for call in model.calls_by_word.get(last_word(step.func) or "", ())
        if call is not step and model.enclosing_function(call) is body
    ]
    cleared = (call for word in CLEARING for call in model.calls_by_word.get(word, ()))
    if not others or not any(model.enclosing_function(call) is body for call in cleared):
        return False
    optimizer = optimizer_of(model, step)
    name = None if optimizer is None else fingerprint(optimizer)
    return any(fingerprint(optimizer_of(model, call) or call.func) == name for call in others)


def _uses_again(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind not in UPDATES or step.thing is None or computes_by_itself(step):
        return False
    if not any(clears(event, step) for event in run.events if event.frame is step.frame):
        return False
    if any(map(only_measures, step.loops)):
        return False
    begins_anew = partial(_begins_anew, step=step)
    states = Paths(run.steps, _BEGIN, partial(_advance, step=step), begins_anew).before(step)
    return _MIXED in states and states <= {_MIXED, _BEGIN}


def _begins_anew(loop: Loop, *, step: Event) -> bool:
    """Whether every round of a loop has another optimizer."""
    thing = step.thing
    return thing is not None and loop in step.loops and (is_made_in(loop, step, thing) or picks_another(loop, thing))


def _advance(state: str, event: Event, *, step: Event) -> str:
    match event.kind:
        case Kind.BACKWARD:
            return _MIXED if state == _USED else state
        case Kind.ZERO | Kind.WRITE_GRADIENT | Kind.UNKNOWN if may_clear(event, step):
            return _CLEAN
        case Kind.STEP | Kind.MINIMIZE if event.concerns(step.thing):
            is_sister = event.thing == step.thing and event.frame is step.frame and not computes_by_itself(event)
            return _USED if is_sister else _BEGIN
    return state


def precedes_another_step(model: "Model", call: cst.Call, optimizer: cst.BaseExpression) -> bool:
    """Whether the same optimizer steps once more below in the same block: what mends the last mends both."""
    line = model.tree.nearest(call, cst.SimpleStatementLine)
    block = None if line is None else model.tree.parent(line)
    lines = block.body if isinstance(block, (cst.IndentedBlock, cst.Module)) else ()
    below = itertools.islice(itertools.dropwhile(lambda item: item is not line, lines), 1, None)
    rows = (item for item in below if isinstance(item, cst.SimpleStatementLine))
    parts = (part.value for row in rows for part in row.body if isinstance(part, cst.Expr))
    calls = (part for part in parts if isinstance(part, cst.Call) and last_word(part.func) in ("step", "minimize"))
    steps = (optimizer_of(model, other) for other in calls)
    return any(other is not None and fingerprint(other) == fingerprint(optimizer) for other in steps)
