"""Gradients that are clipped when nobody will use them, after the step, or before they have been computed; or while
they are still multiplied by the factor of a scaler.
"""

import re
from functools import partial
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.knowledge.words import CLEARING
from mllint.semantic.events.owners import modules_of_optimizer, owners_of_parameters, updates
from mllint.semantic.events.participants import is_given, is_given_optimizer, losses_of
from mllint.semantic.events.steps import UPDATES, Branches, Event, Kind, Loop, events
from mllint.semantic.events.things import Thing
from mllint.semantic.training.cleared_early import clears_before_step
from mllint.semantic.training.gradient_rounds import step_of_more_rounds
from mllint.semantic.training.guards import exclude_each_other, not_excluded
from mllint.semantic.training.nearby import word_before, word_behind
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.scaling import MIXED, adds, is_idle, is_scaled, states_of, uses_scaled
from mllint.semantic.values import Object
from mllint.syntax.shape import argument, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FULL = "full"
"""Gradients are there, or may be, that no step has used."""
_State = Event | str | frozenset[Thing | None] | None
"""What gradients are: nothing in particular, full, what the event (a step, or one that clears) left, or used by some of
the optimizers to which they may belong."""
When = Literal["after the step", "before backward", "without gradients", "of another", "too often"]


def misplaced_clip(model: "Model", clip: cst.CSTNode) -> tuple[When, Event] | None:
    """When a call clips gradients that nobody will use, and the step or the ``backward()`` that is meant.

    "without gradients": no round of the loop around it computes any, and those that are left have been used.
    "of another": the step behind it uses those of another module, and the ones that are clipped are cleared.
    """
    if word_before(model, clip) == "backward" and word_behind(model, clip) == "step" and not _clears_several(model):
        return None
    found: tuple[When, Event] | None = None
    for occurrence in model.runs.each(clip, accelerated=True, by_hand=True):
        here = None if occurrence.event.kind is not Kind.CLIP else _misplaced(occurrence)
        if here is None or (found is not None and here[0] != found[0]):
            return None
        found = here
    return found


def clipped_too_often(model: "Model", clip: cst.CSTNode) -> tuple[When, Event] | None:
    """Whether a call clips in every round gradients that add up over several, and the step that uses them then."""
    step = None if _only_measures(clip) else step_of_more_rounds(model, clip)
    return None if step is None else ("too often", step)


def _misplaced(occurrence: Occurrence) -> tuple[When, Event] | None:
    run, clip = occurrence.run, occurrence.event
    if run.is_cut or _only_measures(clip.node):
        return None
    found = [None if target is None else _misplaced_for(run, clip, target) for target in _targets(clip)]
    times = {None if item is None else item[0] for item in found}
    return found[0] if len(times) == 1 else None


def _clears_several(model: "Model") -> bool:
    """Whether a file clears gradients in several places, and steps in several."""
    return sum(len(model.calls_by_word.get(word, ())) for word in CLEARING) > 1 < len(model.calls_by_word["step"])


def _targets(clip: Event) -> tuple[Thing | None, ...]:
    """Whose gradients a call clips, also of several at once: ``[*encoder.parameters(), *decoder.parameters()]``."""
    given = argument(clip.node, 0, "parameters") if clip.thing is None and isinstance(clip.node, cst.Call) else None
    return (clip.thing,) if given is None else owners_of_parameters(clip.frame, given.value)


def _misplaced_for(run: Run, clip: Event, target: Thing) -> tuple[When, Event] | None:
    paths = run.derived(("clipping", target), partial(_paths, run, target))
    states = not_excluded(paths.before(clip), clip)
    before = [state for state in states if isinstance(state, Event)]
    if not before or len(before) + (None in states) < len(states):
        step = _step_of_another(run, clip, target)
        return None if step is None else ("of another", step)
    inside = list(events(clip.loops[-1].body) if clip.loops else run.events)
    same = (clip.thing, target)
    others = [event for event in inside if event.kind is Kind.CLIP and event.thing in same]
    if any(event.node is not clip.node and not exclude_each_other(event, clip) for event in others):
        return None  # one of the two does it
    ahead = [event for event in inside if event.kind is Kind.BACKWARD]
    if None not in states and all(state.kind is not Kind.ZERO for state in before):
        if clip.loops and _has_no_gradients(inside):
            return "without gradients", before[0]
        return "after the step", next((state for state in before if state.frame is clip.frame), before[0])
    if any(_is_cleared_too_early(state) for state in before):
        return None
    later = [event for event in ahead if not exclude_each_other(event, clip)]
    return ("before backward", later[0]) if later else None


def _step_of_another(run: Run, clip: Event, target: Thing) -> Event | None:
    """The step behind a clip that uses the gradients of other modules, which nobody clips, where those that are clipped
    are cleared before any step uses them.
    """
    behind = run.events[run.events.index(clip) + 1 :]
    step = next((event for event in behind if event.kind in (*UPDATES, Kind.BACKWARD, Kind.CLIP, Kind.ZERO)), None)
    if step is None or step.kind is not Kind.STEP or (step.frame, step.around) != (clip.frame, clip.around):
        return None
    if updates(step.frame, step.thing, target) is not False or _is_clipped_for(run, clip, step):
        return None
    paths = run.derived(("clipped", clip, target), partial(_clipped_paths, run, clip, target))
    met = [event for event in run.events if True in paths.before(event)]
    if any(_may_use(event, target) for event in met) or (True in paths.left and not clip.loops):
        return None
    is_trained = any(event.kind is Kind.STEP and updates(event.frame, event.thing, target) for event in run.events)
    return step if is_trained and any(_surely_clears(event, target) for event in met) else None


def _is_clipped_for(run: Run, clip: Event, step: Event) -> bool:
    """Whether the gradients that a step uses may be clipped, too: by another call in the same round."""
    round_ = events(clip.loops[-1].body) if clip.loops else run.events
    others = [event for event in round_ if event.kind is Kind.CLIP and event.node is not clip.node]
    owners = [owner for event in others for owner in _targets(event)]
    return any(owner is None or updates(step.frame, step.thing, owner) is not False for owner in owners)


def _clipped_paths(run: Run, clip: Event, target: Thing) -> Paths[bool]:
    """The ways through a run; the state is whether gradients are there that a call has clipped."""

    def advance(state: bool, event: Event) -> bool:
        return event.node is clip.node or (state and not _surely_clears(event, target))

    return Paths(run.steps, False, advance)


def _surely_clears(event: Event, target: Thing) -> bool:
    """Whether an event clears the gradients of a whole module."""
    if event.kind is not Kind.ZERO or event.thing is None:
        return False
    return event.thing == target or target in modules_of_optimizer(event.frame, event.thing)


def _may_use(event: Event, target: Thing) -> bool:
    """Whether an event may use the gradients of a module, or read them."""
    match event.kind:
        case Kind.STEP | Kind.MINIMIZE:
            return updates(event.frame, event.thing, target) is not False
        case Kind.UNKNOWN:
            return event.concerns(target) or is_given_optimizer(event)
        case Kind.WRITE_GRADIENT | Kind.UPDATE | Kind.UNSCALE:
            return event.thing is None or event.thing.may_be(target) or event.concerns(target)
    return False


def _is_cleared_too_early(zero: Event) -> bool:
    """Whether gradients are cleared that a step behind the clip was to use: the clip is where it belongs (ML302)."""
    if zero.kind is not Kind.ZERO or not isinstance(zero.node, cst.Call):
        return False
    return next(clears_before_step(zero.frame.model, zero.node), None) is not None


def _has_no_gradients(inside: list[Event]) -> bool:
    """Whether the rounds of a loop call modules, or what is not known, and neither compute gradients nor use them.

    A loop that does nothing but clip belongs to what is around it.
    """
    kinds = {event.kind for event in inside}
    return bool(kinds & {Kind.FORWARD, Kind.UNKNOWN}) and kinds.isdisjoint(
        {
            Kind.BACKWARD,
            Kind.WRITE_GRADIENT,
            *UPDATES,
        }
    )


def _only_measures(clip: cst.CSTNode) -> bool:
    """Whether the limit is infinite: the call gives the norm, and changes nothing."""
    limit = argument(clip, 1, "max_norm") if isinstance(clip, cst.Call) else None
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


_Scaling = Event | str | None
"""Whether gradients are scaled: what ``states_of`` gives."""
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


def is_always_scaled_at(model: "Model", clip: cst.CSTNode) -> bool:
    """Whether the gradients are those of a scaled loss whenever a call clips them."""
    return all(
        isinstance(state, Event) and is_scaled(state)
        for item in model.runs.each(clip)
        for state in states_of(item.run, item.event)
    )


def unscaled_too_late(model: "Model", clip: cst.CSTNode, step: Event) -> Event | None:
    """What unscales the gradients in the same round as a call that clips them, but elsewhere."""
    for item in model.runs.each(clip):
        inside = events(item.event.loops[-1].body) if item.event.loops else item.run.events
        found = next((event for event in inside if event.kind is Kind.UNSCALE and event.thing == step.thing), None)
        if found is not None:
            return found
    return None


def _step_of_scaled_clip(occurrence: Occurrence) -> Event | None:
    run, clip = occurrence.run, occurrence.event
    if run.is_cut or _limit_is_scaled(clip):
        return None
    states = _states_at(run, clip)
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


def _states_at(run: Run, clip: Event) -> set[_Scaling]:
    """The states in which a clip may find gradients.

    Where each round computes some, what is done out of sight to those of the rounds before says nothing of them.
    """
    states, fresh = states_of(run, clip), states_of(run, clip, in_round=True)
    if None in fresh or not fresh:
        return states
    return {
        state for state in states if not isinstance(state, Event) or state.kind is not Kind.UNKNOWN or state in fresh
    }


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
    if run.frame.function is None or any(event.kind in _COMPUTING and not adds(event.node) for event in run.events):
        return None
    behind = run.events[run.events.index(clip) + 1 :]
    steps = [event for event in behind if uses_scaled(event, clip) and not exclude_each_other(event, clip)]
    if (
        not steps
        or any(is_idle(run, step.other) for step in steps)
        or not all(_is_of_known_scaler(run, step) for step in steps)
    ):
        return None
    if any(event.kind is Kind.UNKNOWN and event.concerns(clip.thing) for event in run.events):
        return None
    models = {id(event.frame.model): event.frame.model for event in (clip, *run.events)}
    return steps[0] if all(_never_unscales(model) for model in models.values()) else None


def _is_of_known_scaler(run: Run, step: Event) -> bool:
    """Whether a step goes through what is a scaler of the framework, what its file makes one of, or is used as one."""
    makers = step.frame.model.calls_by_word.get("GradScaler", ())
    if step.is_proven or any(isinstance(step.frame.model.value(call), Object) for call in makers):
        return True
    return any(event.kind is Kind.UPDATE_SCALE and event.other == step.other for event in run.events)


def _never_unscales(model: "Model") -> bool:
    """Whether a file, those around it and those that import it never unscale gradients, nor divide them by hand."""
    if any("unscale" in word or word in _BY_HAND for word in model.names_by_word):
        return False
    home = model.path
    if model.project is None:
        return True
    return not model.project.importers(home, "unscale_") and not model.project.is_written_near(home, _UNSCALES)
