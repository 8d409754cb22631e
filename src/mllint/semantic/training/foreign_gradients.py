"""Gradients that the loss of another network has left: a step uses them together with its own."""

from functools import partial
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Literal, get_args

import libcst as cst

from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.steps import UPDATES, Event, Kind, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.training_modes import is_one, records_graph
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, says_gradients
from mllint.semantic.training.zeroing import clears, may_clear
from mllint.syntax.shape import called_on, part_at
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CUTTING = frozenset({"detach", "item", "tolist", "numpy", "data", "argmax", "argmin", "argsort", "sign"})
_BY_HAND = (GRADIENT_WORDS | {"inputs", "freeze", "no_sync"}) - {"backward"}
"""Words of code in which gradients of a network may be kept off, or be asked for one by one."""
_BEGIN, _CLEAN, _OWN, _FOREIGN = "begin", "clean", "own", "foreign"
_Mixed = Literal["left", "added"]
_MIXED: tuple[_Mixed, ...] = get_args(_Mixed)
_TURNING = frozenset({*UPDATES, Kind.BACKWARD, Kind.UPDATE, Kind.ZERO})
_MAX_STEPS = 6


def uses_foreign_gradients(model: "Model", step: cst.Call) -> _Mixed | None:
    """Whether a step uses gradients of the loss of another optimizer's network in its own network: such as that one
    has left there before its own loss, or has added behind it.
    """
    zeros = [call for word in ("zero_grad", "clear_grad") for call in model.calls_by_word.get(word, ())]
    if len(model.calls_by_word.get("backward", ())) < 2 or not zeros:
        return None
    found: _Mixed | None = None
    for occurrence in model.runs.each(step):
        how = _how_mixed(occurrence)
        if how is None or found not in (None, how):
            return None
        found = how
    return found


def _how_mixed(occurrence: Occurrence) -> _Mixed | None:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or step.thing is None or not (step.loops or _is_called_per_round(run)):
        return None
    modules = modules_of_optimizer(step.frame, step.thing)
    own = modules[0] if len(modules) == 1 else None
    if own is None or any(event.kind in (Kind.FREEZE, Kind.THAW) for event in run.events):
        return None
    backwards = [event for event in run.events if event.kind is Kind.BACKWARD and _surely_feeds(run, event, own)]
    used = {event: _used_by(run, event) for event in backwards}
    mine = {event for event, update in used.items() if update is not None and update.thing == step.thing}
    foreign = {event for event, update in used.items() if update is not None and _is_of_others(update, own)}
    if not mine or not foreign or any(map(_says_gradients, (*mine, *foreign))):
        return None
    states = Paths(run.steps, _BEGIN, partial(_advance, step=step, mine=mine, foreign=foreign)).before(step)
    others = {_BEGIN, _OWN} if _is_first_of_several(step, foreign) else {_BEGIN}
    return next((how for how in _MIXED if how in states and states <= others | {how}), None)


def _is_called_per_round(run: Run) -> bool:
    """Whether a run is one of a method that nobody in sight calls: it is one round for whoever does."""
    return run.frame.function is not None and run.frame.function.owner is not None


def _is_first_of_several(step: Event, foreign: set[Event]) -> bool:
    """Whether an inner loop steps and then clears the gradients: what the other loss leaves is in its first step."""
    if not step.loops:
        return False
    inside = list(events(step.loops[-1].body))
    clearing = [number for number, event in enumerate(inside) if event.kind is Kind.ZERO and may_clear(event, step)]
    is_behind = bool(clearing) and inside.index(step) < clearing[0]
    return is_behind and not any(step.loops[-1] in event.loops for event in foreign)


def _advance(state: str, event: Event, *, step: Event, mine: set[Event], foreign: set[Event]) -> str:
    match event.kind:
        case Kind.BACKWARD if event in foreign:
            return "added" if state == _OWN else state if state in _MIXED else _FOREIGN
        case Kind.BACKWARD if event in mine:
            return "left" if state == _FOREIGN else _OWN if state == _CLEAN else state
        case Kind.ZERO | Kind.WRITE_GRADIENT | Kind.UNKNOWN if may_clear(event, step):
            return _CLEAN
        case Kind.STEP | Kind.MINIMIZE if event.thing is None or event.thing == step.thing:
            return _BEGIN if state in _MIXED else _CLEAN if state == _OWN else state
    return state


def _used_by(run: Run, backward: Event) -> Event | None:
    """The update behind a ``backward()`` in its own body that is to use its gradients: the first one.

    Where several follow each other, the one of which the gradients are cleared right before the ``backward()``.
    """
    place = run.events.index(backward)
    later = [event for event in run.events[place + 1 :] if event.kind in _TURNING]
    steps = list(takewhile(lambda event: event.kind is Kind.STEP, dropwhile(_is_before_steps, later)))
    zeros = list(takewhile(lambda event: event.kind is Kind.ZERO, filter(_turns, reversed(run.events[:place]))))
    if len({step.thing for step in steps}) > 1 and len(zeros) == 1:
        return next((step for step in steps if step.frame is backward.frame and clears(zeros[0], step)), None)
    first = next((event for event in later if event.kind is not Kind.ZERO), None)
    return first if first is not None and first.kind is Kind.STEP and first.frame is backward.frame else None


def _turns(event: Event) -> bool:
    return event.kind in _TURNING


def _is_before_steps(event: Event) -> bool:
    return event.kind in (Kind.BACKWARD, Kind.ZERO)


def _is_of_others(update: Event, own: Thing) -> bool:
    """Whether an optimizer surely updates other networks, and no part of the one."""
    return all(module is not None and not is_one(module, own) for module in _modules(update))


def _modules(update: Event) -> tuple[Thing | None, ...]:
    return modules_of_optimizer(update.frame, update.thing)


def _surely_feeds(run: Run, backward: Event, module: Thing) -> bool:
    """Whether gradients of a module's parameters are surely computed: it is called for the loss, in the same body."""
    loss = called_on(backward.node)
    given = backward.node.args if isinstance(backward.node, cst.Call) else ()
    if loss is None or any(arg.keyword is not None and arg.keyword.value != "retain_graph" for arg in given):
        return False
    calls = {
        id(event.node)
        for event in run.events
        if event.kind is Kind.FORWARD
        and event.thing == module
        and event.frame is backward.frame
        and records_graph(event)
    }
    return bool(calls) and _is_made_of(backward.frame, loss, calls, _MAX_STEPS)


def _is_made_of(frame: Frame, node: cst.CSTNode, calls: set[int], steps: int) -> bool:
    """Whether an expression surely hangs on what one of some calls gives."""
    match node:
        case cst.Call() if id(node) in calls:
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=word))) | cst.Attribute(attr=cst.Name(value=word)):
            if word in _CUTTING:
                return False
        case cst.Name():
            bindings = frame.model.reaching(node) if steps else ()
            value = bindings[0].value if len(bindings) == 1 else None
            part = part_at(value, bindings[0].path) if value is not None else None
            is_assigned = part is not None and bindings[0].kind is BindingKind.ASSIGN
            return is_assigned and part is not None and _is_made_of(frame, part, calls, steps - 1)
        case cst.Subscript():
            return _is_made_of(frame, node.value, calls, steps)
        case cst.IfExp() | cst.Lambda() | cst.BaseComp() | cst.Comparison():
            return False
    return any(_is_made_of(frame, child, calls, steps) for child in children(node))


def _says_gradients(backward: Event) -> bool:
    """Whether a word of gradients by hand stands in the body of a ``backward()``, or of those that called it."""
    bodies = (
        (frame.model, frame.model.tree.module if frame.function is None else frame.function.node)
        for frame in backward.frame.led_by()
    )
    return any(says_gradients(model, body, _BY_HAND) for model, body in bodies)
