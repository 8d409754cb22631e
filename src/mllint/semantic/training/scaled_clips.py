"""Gradients that are clipped while they are still multiplied by a scaler's factor."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Branches, Event, Kind, Loop, events
from mllint.semantic.training.clipping import is_infinite
from mllint.semantic.training.guards import exclude_each_other
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.scaling import MIXED, is_idle, is_scaled, states_of, uses_scaled
from mllint.semantic.values import Object
from mllint.syntax.shape import argument
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMPUTING = frozenset({Kind.BACKWARD, Kind.MINIMIZE, Kind.UNSCALE, Kind.WRITE_GRADIENT})
_BY_HAND = ("get_scale", "inv_scale", "loss_scale", "_scale")
"""Words of code that knows the factor of a scaler, and may divide by it."""
_UNSCALES = re.compile(rb"unscale")


def step_after_scaled_clip(model: "Model", clip: cst.CSTNode) -> Event | None:
    """The step through a scaler that uses gradients which were clipped before anybody unscaled them.

    The step comes from the same body as the clip if there is such a one.
    """
    found: Event | None = None
    for occurrence in model.runs.each(clip):
        step = None if occurrence.event.kind is not Kind.CLIP else _step_of_scaled_clip(occurrence)
        if step is None and not _clips_plain(occurrence):
            return None
        found = step or found
    return found


def _clips_plain(occurrence: Occurrence) -> bool:
    """Whether a clip surely finds gradients of losses that nobody scaled: the function clips for both ways to train."""
    run, clip = occurrence.run, occurrence.event
    return not run.is_cut and all(
        isinstance(state, Event) and state.kind is Kind.BACKWARD and not is_scaled(state)
        for state in states_of(run, clip) - {None}
    )


def can_be_unscaled_at(model: "Model", clip: cst.CSTNode, step: Event) -> bool:
    """Whether ``unscale_`` can be put before a clip: the loss is always scaled there, and nobody unscales it later."""
    for item in model.runs.each(clip):
        if not all(isinstance(state, Event) and is_scaled(state) for state in states_of(item.run, item.event)):
            return False
        inside = events(item.event.loops[-1].body) if item.event.loops else item.run.events
        if any(event.kind is Kind.UNSCALE and event.thing == step.thing for event in inside):
            return False
    return True


def _step_of_scaled_clip(occurrence: Occurrence) -> Event | None:
    run, clip = occurrence.run, occurrence.event
    if run.is_cut or _limit_is_scaled(clip):
        return None
    states = states_of(run, clip)
    if states == {None}:
        return _step_of_clip_alone(occurrence)
    known = [state for state in states if isinstance(state, Event)]
    scaled = [state for state in known if is_scaled(state)]
    others = [state for state in known if not all(exclude_each_other(state, one) for one in scaled)]
    if not scaled or MIXED in states or any(state.kind is not Kind.BACKWARD for state in others):
        return None
    if len(known) > len(scaled) and any(_goes_by_scaler(clip, state) for state in scaled):
        return None
    steps = [event for event in run.events if uses_scaled(event, clip) and not exclude_each_other(event, clip)]
    if not steps or any(is_idle(run, state.other) for state in scaled):
        return None
    return next((step for step in steps if step.frame is clip.frame), steps[0])


def _limit_is_scaled(clip: Event) -> bool:
    """Whether the clip itself makes up for the factor, ``max_norm * scaler.get_scale()``, or only measures."""
    if not isinstance(clip.node, cst.Call):
        return False
    limit = argument(clip.node, 1, "max_norm") or argument(clip.node, 1, "clip_value")
    if limit is None:
        return False
    words = {node.value for node in subtree(limit.value) if isinstance(node, cst.Name)}
    return bool(words & {"get_scale", "_scale", "loss_scale", "scale"}) or is_infinite(limit.value)


def _goes_by_scaler(clip: Event, scaled: Event) -> bool:
    """Whether a test around a clip asks for what a test around the scaling asks for too, or for the scaler."""
    mine, theirs = _tested(clip), _tested(scaled)
    word = scaled.other.path[-1].lstrip(".") if scaled.other is not None and scaled.other.path else None
    roots = () if scaled.other is None else scaled.other.roots
    names = {word, *(root.key for root in roots if hasattr(root, "key"))} | theirs
    return bool(mine & names)


def _tested(event: Event) -> set[str]:
    """The names in the tests around an event that do not stand around a loop of it."""
    steps = [around.step for around in event.around]
    inner = steps[max((index for index, step in enumerate(steps) if isinstance(step, Loop)), default=-1) + 1 :]
    tests = [step.node.test for step in inner if isinstance(step, Branches) and isinstance(step.node, cst.If)]
    return {node.value for test in tests for node in subtree(test) if isinstance(node, cst.Name)} - {"self", "args"}


# -- in a method that only steps ---------------------------------------------------------------------------------------


def _step_of_clip_alone(occurrence: Occurrence) -> Event | None:
    """The step through a scaler behind a clip, in a method that others call who have computed the gradients.

    They have scaled the loss, as the scaler steps with its gradients; nobody near it ever unscales them.
    """
    run, clip = occurrence.run, occurrence.event
    if run.frame.function is None or any(event.kind in _COMPUTING for event in run.events):
        return None
    behind = run.events[run.events.index(clip) + 1 :]
    steps = [event for event in behind if uses_scaled(event, clip) and not exclude_each_other(event, clip)]
    if not steps or any(is_idle(run, step.other) for step in steps) or not all(map(_is_of_known_scaler, steps)):
        return None
    if any(event.kind is Kind.UNKNOWN and event.concerns(clip.thing) for event in run.events):
        return None
    models = {id(event.frame.model): event.frame.model for event in (clip, *run.events)}
    return steps[0] if all(_never_unscales(model) for model in models.values()) else None


def _is_of_known_scaler(step: Event) -> bool:
    """Whether a step goes through what is a scaler of the framework, or what its file makes one of."""
    makers = step.frame.model.calls_by_word.get("GradScaler", ())
    return step.is_proven or any(isinstance(step.frame.model.value(call), Object) for call in makers)


def _never_unscales(model: "Model") -> bool:
    """Whether a file, those around it and those that import it never unscale gradients, nor divide them by hand."""
    if any("unscale" in word or word in _BY_HAND for word in model.names_by_word):
        return False
    home = model.path
    if model.project is None:
        return True
    return not model.project.importers(home, "unscale_") and not model.project.is_written_near(home, _UNSCALES)
