"""Gradients that an evaluation computes, and leaves to the training that goes on behind it."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.owners import updates
from mllint.semantic.events.steps import UPDATES, Event, Kind, Loop, events
from mllint.semantic.events.things import Thing
from mllint.semantic.training.nearby import steps_in_same_block
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.training_modes import EVAL, TRAIN, TRAINED, modes_before, records_graph
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, says_gradients
from mllint.semantic.training.zeroing import may_clear

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_WANTING = GRADIENT_WORDS - {"backward", "set_grad_enabled"}
"""Words of code that does something with the gradients itself."""
_EVALUATED, _TRAINED = frozenset({EVAL}), frozenset({TRAIN, TRAINED})


def is_left_by_evaluation(model: "Model", backward: cst.Call) -> bool:
    """Whether a call computes gradients in an evaluation, and the training behind it adds its own to them.

    So it is in a function for both, ``run_epoch(loader, optimizer=None)``, that leaves out nothing but the step.
    """
    if steps_in_same_block(model, backward):
        return False
    return any(_is_left(item) for item in model.runs.each(backward, by_hand=True))


def _is_left(occurrence: Occurrence) -> bool:
    run, backward = occurrence.run, occurrence.event
    if run.is_cut or backward.kind is not Kind.BACKWARD or len(backward.loops) < 2:
        return False
    loop = backward.loops[-1]
    inside = list(events(loop.body))
    if any(event.kind in (*UPDATES, Kind.WRITE_GRADIENT, Kind.UPDATE) for event in inside) or _wants_gradients(loop):
        return False
    return any(_goes_into(run, step, backward) for step in run.events if _is_of_other_loop(step, backward))


def _wants_gradients(loop: Loop) -> bool:
    """Whether a loop, or a function that it calls, says anything about gradients but that it computes some."""
    bodies: dict[int, tuple[Model, cst.CSTNode]] = {id(loop.node): (loop.frame.model, loop.node)}
    for event in events(loop.body):
        if event.frame is not loop.frame and event.frame.function is not None:
            bodies[id(event.frame.function.node)] = (event.frame.model, event.frame.function.node)
    return any(says_gradients(model, body, _WANTING) for model, body in bodies.values())


def _is_of_other_loop(step: Event, backward: Event) -> bool:
    """Whether an optimizer steps in another loop over data than the one of an evaluation: both stand in a third one."""
    if step.kind is not Kind.STEP or step.thing is None or len(step.loops) < 2:
        return False
    own, other = backward.loops[-1], step.loops[-1]
    return own not in step.loops and other not in backward.loops and bool(set(backward.loops) & set(step.loops))


def _goes_into(run: Run, step: Event, backward: Event) -> bool:
    """Whether the gradients of an evaluation are there when a training adds its own, and are used with them.

    Nothing clears them but behind the step of the training.
    """
    loop, training = backward.loops[-1], step.loops[-1]
    if any(may_clear(event, step) for event in events(loop.body)):
        return False
    evaluated, trained = _called_in(run, loop, _EVALUATED), _called_in(run, training, _TRAINED)
    if not any(_is_updated(run, step, module) for module in evaluated & trained):
        return False
    outer = next(loop for loop in reversed(backward.loops) if loop in step.loops)
    clearing = [event for event in events(outer.body) if may_clear(event, step)]
    inside = list(events(training.body))
    first = next((place for place, event in enumerate(inside) if event.kind is Kind.BACKWARD), len(inside))
    return bool(clearing) and all(event in inside[first:] for event in clearing)


def _called_in(run: Run, loop: Loop, modes: frozenset[str]) -> set[Thing]:
    """The modules of which all passes in a loop record a graph, in one of some modes."""
    passes = [event for event in events(loop.body) if event.kind is Kind.FORWARD and event.thing is not None]
    others = {item.thing for item in passes if not records_graph(item) or not _is_in(run, item, modes)}
    return {item.thing for item in passes if item.thing is not None} - others


def _is_in(run: Run, forward: Event, modes: frozenset[str]) -> bool:
    found = frozenset() if forward.thing is None else modes_before(run, forward.thing, forward)
    return bool(found) and found <= modes


def _is_updated(run: Run, step: Event, module: Thing) -> bool:
    """Whether an optimizer steps with the gradients of a module, or is the only one that steps."""
    known = updates(step.frame, step.thing, module)
    others = {event.thing for event in run.events if event.kind in UPDATES} - {step.thing}
    return known is True or (known is None and not others)
