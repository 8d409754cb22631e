"""What is done on one of two ways only: schedulers that step, and gradients that are cleared."""

from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.events.participants import goes_through_scaler, losses_of
from mllint.semantic.events.steps import UPDATES, Branches, Event, Helper, Kind, Loop, Within, events
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.guards import is_setting
from mllint.semantic.training.runs import Occurrence
from mllint.syntax.shape import called_on, dotted_path, leaves_loop
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Forgotten = Literal["scaled", "not scaled"]
"""The way on which a scheduler does not step: that of scaled losses, or the other one."""


def forgotten_way(model: "Model", call: cst.Call) -> Forgotten | None:
    """On which of the two ways of a training a scheduler never steps that a call steps on the other one."""
    found: set[Forgotten | None] = set()
    for occurrence in model.runs.each(call):
        found.add(_forgotten_way(occurrence))
        if None in found or len(found) > 1:
            return None
    return next(iter(found), None)


def _forgotten_way(occurrence: Occurrence) -> Forgotten | None:
    run, schedule = occurrence.run, occurrence.event
    if run.is_cut or schedule.kind is not Kind.SCHEDULE or schedule.thing is None or not schedule.loops:
        return None
    for around in schedule.within(schedule.loops[-1]):
        step = around.step
        if not isinstance(step, Branches) or len(step.arms) != 2 or not is_setting(step) or _asks_for(step, schedule):
            continue
        mine, other = (list(events(step.arms[index])) for index in (around.arm, 1 - around.arm))
        is_scaled = _is_scaled(mine), _is_scaled(other)
        if None in is_scaled or is_scaled[0] is is_scaled[1] or not _is_of_one(mine, other):
            continue
        if (
            next(event for event in mine if event.kind is Kind.SCHEDULE and event.concerns(schedule.thing))
            is not schedule
        ):
            return None  # it is told of the first one
        rest = [event for event in run.events if event not in mine]
        if any(_may_step(event, schedule) for event in rest if schedule.loops[-1] in event.loops) or any(
            event.kind is Kind.SCHEDULE and _may_step(event, schedule) for event in rest
        ):
            return None
        return "scaled" if is_scaled[1] else "not scaled"
    return None


def _asks_for(branches: Branches, schedule: Event) -> bool:
    """Whether a test asks for the scheduler itself, or for anything of it."""
    receiver = called_on(schedule.node)
    path = None if receiver is None else dotted_path(receiver)
    test = branches.node.test if isinstance(branches.node, cst.If) else None
    return (
        path is None
        or test is None
        or any(isinstance(part, (cst.Name, cst.Attribute)) and dotted_path(part) == path for part in subtree(test))
    )


def _is_scaled(way: list[Event]) -> bool | None:
    """Whether all steps of a way go through a scaler, or (false) none of them; ``None``: some, or there is none."""
    found = {goes_through_scaler(event) for event in way if event.kind in UPDATES}
    return found.pop() if len(found) == 1 else None


def _is_of_one(mine: list[Event], other: list[Event]) -> bool:
    """Whether one optimizer steps on both ways."""
    things = {event.thing for event in (*mine, *other) if event.kind in UPDATES}
    return len(things) == 1 and None not in things


def _may_step(event: Event, schedule: Event) -> bool:
    """Whether something may step the scheduler of an event; one that is told a metric is of another kind."""
    if event.kind is Kind.UNKNOWN:
        return event.concerns(schedule.thing)
    if event.kind is not Kind.SCHEDULE or not event.concerns(schedule.thing):
        return False
    counts = [len(item.node.args) for item in (event, schedule) if isinstance(item.node, cst.Call)]
    return len(set(counts)) == 1


def is_cleared_on_one_side(step: Event, loop: Loop, clearing: list[Event]) -> bool:
    """Whether all that clears gradients in a loop stands in one arm of an ``if`` of which each arm makes the loss.

    The rounds that go through the other arm add to the gradients that the rounds before have left.
    """
    if not clearing or not step.happens_in_every_round(loop):
        return False
    sides = [_side(event, loop) for event in clearing]
    branches, arm = sides[0] if sides[0] is not None else (None, 0)
    if branches is None or not all(side is not None and side == (branches, arm) for side in sides):
        return False
    node = branches.node
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
        return False
    arms = (node.body, node.orelse.body)
    return not any(map(leaves_loop, arms)) and all(_makes_loss(branches.frame.model, loop, side) for side in arms)


def _side(event: Event, loop: Loop) -> tuple[Branches, int] | None:
    """The one ``if`` in a round, and the arm of it, in which gradients are surely cleared."""
    around = event.within(loop)
    arms = [(item.step, item.arm) for item in around if isinstance(item.step, Branches)]
    is_plain = all(isinstance(item.step, (Branches, Helper, Within)) for item in around)
    return arms[0] if len(arms) == 1 and is_plain and event.kind is Kind.ZERO else None


def _makes_loss(model: "Model", loop: Loop, arm: cst.BaseSuite) -> bool:
    """Whether a loss is made in an arm on which a round computes gradients further down, in the same file."""
    tree = model.tree
    passes = [event for event in events(loop.body) if event.kind is Kind.BACKWARD]
    bound = (root for event in passes for loss in losses_of(event) for root in loss.roots)
    return not any(tree.is_inside(event.node, arm) for event in passes) and any(
        isinstance(root, Binding) and root.scope.model is model and tree.is_inside(root.node, arm) for root in bound
    )
