"""Gradients that the loss of another network has left: a step uses them together with its own."""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.steps import UPDATES, Event, Kind
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.training_modes import is_one, records_graph
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, says_gradients
from mllint.semantic.training.zeroing import may_clear
from mllint.syntax.shape import called_on
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CUTTING = frozenset({"detach", "item", "tolist", "numpy", "data", "argmax", "argmin", "argsort", "sign"})
_BY_HAND = (GRADIENT_WORDS | {"inputs", "freeze", "no_sync"}) - {"backward"}
"""Words of code in which gradients of a network may be kept off, or be asked for one by one."""
_BEGIN, _CLEAN, _FOREIGN, _MIXED = "begin", "clean", "foreign", "mixed"
_MAX_STEPS = 6


def uses_foreign_gradients(model: "Model", step: cst.Call) -> bool:
    """Whether a step uses gradients that the loss of another optimizer's network has left in its own network."""
    zeros = [call for word in ("zero_grad", "clear_grad") for call in model.calls_by_word.get(word, ())]
    if len(model.calls_by_word.get("backward", ())) < 2 or not zeros:
        return False
    return model.runs.always(step, _uses_foreign_gradients)


def _uses_foreign_gradients(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or step.thing is None or not step.loops:
        return False
    modules = modules_of_optimizer(step.frame, step.thing)
    own = modules[0] if len(modules) == 1 else None
    if own is None or any(event.kind in (Kind.FREEZE, Kind.THAW) for event in run.events):
        return False
    backwards = [event for event in run.events if event.kind is Kind.BACKWARD and _surely_feeds(run, event, own)]
    used = {event: _used_by(run, event) for event in backwards}
    mine = {event for event, update in used.items() if update is not None and update.thing == step.thing}
    foreign = {event for event, update in used.items() if update is not None and _is_of_others(update, own)}
    if not mine or not foreign or any(map(_says_gradients, (*mine, *foreign))):
        return False
    states = Paths(run.steps, _BEGIN, partial(_advance, step=step, mine=mine, foreign=foreign)).before(step)
    return _MIXED in states and states <= {_MIXED, _BEGIN}


def _advance(state: str, event: Event, *, step: Event, mine: set[Event], foreign: set[Event]) -> str:
    match event.kind:
        case Kind.BACKWARD if event in foreign:
            return _FOREIGN
        case Kind.BACKWARD if event in mine:
            return _MIXED if state == _FOREIGN else state
        case Kind.ZERO | Kind.WRITE_GRADIENT | Kind.UNKNOWN if may_clear(event, step):
            return _CLEAN
        case Kind.STEP | Kind.MINIMIZE if event.thing is None or event.thing == step.thing:
            return _BEGIN if state == _MIXED else state
    return state


def _used_by(run: Run, backward: Event) -> Event | None:
    """The first update behind a ``backward()`` in its own body."""
    later = run.events[run.events.index(backward) + 1 :]
    first = next((event for event in later if event.kind in (*UPDATES, Kind.BACKWARD, Kind.UPDATE)), None)
    return first if first is not None and first.kind is Kind.STEP and first.frame is backward.frame else None


def _is_of_others(update: Event, own: Thing) -> bool:
    """Whether an optimizer surely updates other networks, and no part of the one."""
    return all(module is not None and not is_one(module, own) for module in _modules(update))


def _modules(update: Event) -> tuple[Thing | None, ...]:
    return modules_of_optimizer(update.frame, update.thing)


def _surely_feeds(run: Run, backward: Event, module: Thing) -> bool:
    """Whether gradients of a module's parameters are surely computed: it is called for the loss, in the same body."""
    loss = called_on(backward.node)
    if loss is None or not isinstance(backward.node, cst.Call) or any(arg.keyword for arg in backward.node.args):
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
            is_plain = value is not None and bindings[0].kind is BindingKind.ASSIGN and not bindings[0].path
            return is_plain and value is not None and _is_made_of(frame, value, calls, steps - 1)
        case cst.Subscript():
            return _is_made_of(frame, node.value, calls, steps)
        case cst.IfExp() | cst.Lambda() | cst.BaseComp() | cst.Comparison():
            return False
    return any(_is_made_of(frame, child, calls, steps) for child in children(node))


def _says_gradients(backward: Event) -> bool:
    """Whether a word of gradients by hand stands in the body of a ``backward()``, or of those that called it."""
    frames = backward.frame.led_by()
    bodies = (frame.model.tree.module if frame.function is None else frame.function.node for frame in frames)
    return any(says_gradients(body, _BY_HAND) for body in bodies)
