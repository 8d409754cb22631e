"""Gradients that are meant to add up over several rounds, and are cleared in every one."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.guards import counts_rounds
from mllint.semantic.owners import updates
from mllint.semantic.runs import Occurrence
from mllint.semantic.steps import Around, Branches, Event, Kind, Leave, Loop, Step, events
from mllint.semantic.zeroing import clears_before_step

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_STEPS = (Kind.STEP, Kind.MINIMIZE)


def step_in_some_rounds(model: "Model", call: cst.Call) -> Event | None:
    """The step, taken only in some rounds, of an optimizer whose gradients a call clears in every round."""
    found: Event | None = None
    for occurrence in model.runs.at(call):
        step = None if occurrence.event.kind is not Kind.ZERO else _step_in_some_rounds(occurrence)
        if step is None:
            return None
        found = step
    return None if found is None or clears_before_step(model, call) is not None else found


def _step_in_some_rounds(occurrence: Occurrence) -> Event | None:
    run, zero = occurrence.run, occurrence.event
    loop = zero.loops[-1] if zero.loops else None
    if run.is_cut or loop is None or zero.thing is None or not zero.happens_in_every_round(loop):
        return None
    if happens_in_some_rounds(zero, loop):
        return None
    inside = tuple(events(loop.body))
    steps = [event for event in inside if event.kind in _STEPS]
    optimizers = {event.thing for event in steps}
    if len(optimizers) != 1 or None in optimizers:
        return None
    optimizer = steps[0].thing
    if zero.thing != optimizer and updates(zero.frame, optimizer, zero.thing) is False:
        return None
    if any(event.kind is Kind.UNKNOWN and event.concerns(optimizer) for event in inside):
        return None
    computed = [event for event in inside if event.kind is Kind.BACKWARD and event.happens_in_every_round(loop)]
    if not computed or any(event.loops[-1] is not loop for event in steps):
        return None
    return steps[0] if all(happens_in_some_rounds(event, loop) for event in steps) else None


def happens_in_some_rounds(event: Event, loop: Loop) -> bool:
    """Whether an event happens only in some rounds of a loop, by their number.

    It stands under a test that counts, of which another way has no such event, or behind one that begins the next
    round.
    """
    steps = event.around
    inner = steps[next(index for index, around in enumerate(steps) if around.step is loop) + 1 :]
    if any(_is_skipped_elsewhere(around, event.kind, loop) for around in inner):
        return True
    return _is_behind_next_round(event, inner, loop)


def _is_skipped_elsewhere(around: Around, kind: Kind, loop: Loop) -> bool:
    step = around.step
    if not isinstance(step, Branches) or not counts_rounds(step, loop):
        return False
    others = [arm for index, arm in enumerate(step.arms) if index != around.arm]
    return not any(event.kind is kind for arm in others for event in events(arm))


def _is_behind_next_round(event: Event, inner: tuple[Around, ...], loop: Loop) -> bool:
    """Whether a test in front of the event, in the body of the loop, sends the other rounds on."""
    first: Step = inner[0].step if inner else event
    for step in loop.body:
        if step is first:
            return False
        if isinstance(step, Branches) and counts_rounds(step, loop) and any(_goes_on(arm) for arm in step.arms):
            return True
    return False


def _goes_on(arm: list[Step]) -> bool:
    """Whether a way ends with ``continue``."""
    last = arm[-1] if arm else None
    return isinstance(last, Leave) and last.word == "continue"
