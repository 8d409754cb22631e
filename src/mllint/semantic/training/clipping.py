"""Gradients that are clipped when nobody will use them: after the step, or before they have been computed."""

from functools import partial
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.events.owners import owners_of_parameters, updates
from mllint.semantic.events.participants import is_given, is_given_optimizer, losses_of
from mllint.semantic.events.steps import UPDATES, Event, Kind, events
from mllint.semantic.events.things import Thing
from mllint.semantic.training.guards import exclude_each_other, not_excluded
from mllint.semantic.training.nearby import word_before, word_behind
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.zeroing import clears_before_step
from mllint.syntax.shape import argument, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FULL = "full"
"""Gradients are there, or may be, that no step has used."""
_State = Event | str | frozenset[Thing | None] | None
"""What gradients are: nothing in particular, full, what the event (a step, or one that clears) left, or used by some of
the optimizers to which they may belong."""
When = Literal["after the step", "before backward"]


def misplaced_clip(model: "Model", clip: cst.CSTNode) -> tuple[When, Event] | None:
    """When a call clips gradients that nobody will use, and the step or the ``backward()`` that is meant."""
    if word_before(model, clip) == "backward" and word_behind(model, clip) == "step":
        return None
    found: tuple[When, Event] | None = None
    for occurrence in model.runs.each(clip, accelerated=True):
        here = None if occurrence.event.kind is not Kind.CLIP else _misplaced(occurrence)
        if here is None or (found is not None and here[0] != found[0]):
            return None
        found = here
    return found


def _misplaced(occurrence: Occurrence) -> tuple[When, Event] | None:
    run, clip = occurrence.run, occurrence.event
    if run.is_cut or _only_measures(clip):
        return None
    found = [None if target is None else _misplaced_for(run, clip, target) for target in _targets(clip)]
    times = {None if item is None else item[0] for item in found}
    return found[0] if len(times) == 1 else None


def _targets(clip: Event) -> tuple[Thing | None, ...]:
    """Whose gradients a call clips, also of several at once: ``[*encoder.parameters(), *decoder.parameters()]``."""
    given = argument(clip.node, 0, "parameters") if clip.thing is None and isinstance(clip.node, cst.Call) else None
    return (clip.thing,) if given is None else owners_of_parameters(clip.frame, given.value)


def _misplaced_for(run: Run, clip: Event, target: Thing) -> tuple[When, Event] | None:
    paths = run.derived(("clipping", target), partial(_paths, run, target))
    states = not_excluded(paths.before(clip), clip)
    before = [state for state in states if isinstance(state, Event)]
    if not before or len(before) + (None in states) < len(states):
        return None
    inside = list(events(clip.loops[-1].body) if clip.loops else run.events)
    same = (clip.thing, target)
    others = [event for event in inside if event.kind is Kind.CLIP and event.thing in same]
    if any(event.node is not clip.node and not exclude_each_other(event, clip) for event in others):
        return None  # one of the two does it
    if clip.loops and _only_evaluates(inside):
        return None  # left over from the loop that trains, where it may be right
    ahead = [event for event in inside if event.kind is Kind.BACKWARD]
    if None not in states and all(state.kind is not Kind.ZERO for state in before):
        return "after the step", next((state for state in before if state.frame is clip.frame), before[0])
    if any(_is_cleared_too_early(state) for state in before):
        return None
    later = [event for event in ahead if not exclude_each_other(event, clip)]
    return ("before backward", later[0]) if later else None


def _is_cleared_too_early(zero: Event) -> bool:
    """Whether gradients are cleared that a step behind the clip was to use: the clip is where it belongs (ML302)."""
    if zero.kind is not Kind.ZERO or not isinstance(zero.node, cst.Call):
        return False
    return next(clears_before_step(zero.frame.model, zero.node), None) is not None


def _only_evaluates(inside: list[Event]) -> bool:
    """Whether the rounds of a loop call modules, and neither compute gradients nor use them."""
    kinds = {event.kind for event in inside}
    return Kind.FORWARD in kinds and kinds.isdisjoint({Kind.BACKWARD, Kind.UNKNOWN, *UPDATES})


def _only_measures(clip: Event) -> bool:
    """Whether the limit is infinite: the call gives the norm, and changes nothing."""
    limit = argument(clip.node, 1, "max_norm") if isinstance(clip.node, cst.Call) else None
    return limit is not None and is_infinite(limit.value)


def _paths(run: Run, target: Thing) -> Paths[_State]:
    steps = [event for event in run.events if event.kind in (Kind.STEP, Kind.MINIMIZE)]
    owners = {event.thing for event in steps if updates(event.frame, event.thing, target) is not False}
    losses = [loss for event in run.events if event.kind is Kind.BACKWARD for loss in losses_of(event)]

    def is_used_by(event: Event) -> bool:
        is_only_one = owners == {event.thing} and len({step.thing for step in steps}) == 1
        return updates(event.frame, event.thing, target) is True or is_only_one

    def stepped(state: _State, event: Event) -> _State:
        """Which of the optimizers that may be the one have stepped; when all have, it has."""
        done = state | {event.thing} if isinstance(state, frozenset) else frozenset({event.thing})
        return event if done >= owners else done

    def advance(state: _State, event: Event) -> _State:
        match event.kind:
            case Kind.BACKWARD | Kind.WRITE_GRADIENT:
                return _FULL
            case Kind.STEP | Kind.MINIMIZE if is_used_by(event):
                return event
            case Kind.STEP | Kind.MINIMIZE if event.thing is not None and event.thing in owners:
                return state if state is None or isinstance(state, Event) else stepped(state, event)
            case Kind.ZERO if event.thing is not None and (event.thing == target or is_used_by(event)):
                return event
            case Kind.UNKNOWN if event.concerns(target) or is_given_optimizer(event) or is_given(event, losses):
                return _FULL
        return state

    return Paths(run.steps, None, advance)


def is_infinite(node: cst.BaseExpression) -> bool:
    """Whether an expression is written as infinity: ``float("inf")``, ``math.inf``, ``np.inf``."""
    match node:
        case cst.Call(func=cst.Name(value="float"), args=[cst.Arg(value=given)]):
            return (string_literal(given) or "").lower().lstrip("+") in ("inf", "infinity")
        case cst.Attribute(attr=cst.Name(value="inf" | "Inf" | "infty")):
            return True
        case cst.Name(value="inf"):
            return True
    return False
