"""Gradients that are cleared before the step for which they were computed."""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.participants import is_given, is_given_optimizer, losses_of
from mllint.semantic.events.steps import UPDATES, Event, Kind
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.nearby import word_before, word_behind
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Run
from mllint.semantic.training.zeroing import (
    clears,
    computes_by_itself,
    has_step_of_its_own,
    is_given_more,
    is_within,
)
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SAYS_COMPUTING = re.compile(r"backward|backprop|grad|train|optim|learn|fit", re.IGNORECASE)
"""How functions are called that may compute gradients: ``train_step(batch)``."""
_FULL = "full"
"""Gradients have been computed and nobody has cleared them since."""
_DOUBTFUL = "doubtful"
"""Gradients were cleared before a step, and then something may have written others."""
_State = Event | str | None
"""What the optimizer's gradients are: nothing in particular, full, or cleared by an event before a step used them."""


def clears_before_step(model: "Model", call: cst.Call) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Where a call of ``zero_grad`` leaves a step without gradients that had been computed for it, and the step.

    That is the call itself; or, where only some of those do that call the function in which it stands, their calls.
    """
    behind = word_behind(model, call)
    if behind == "backward" or (behind is None and word_before(model, call) == "step"):
        return
    starved: dict[int, tuple[cst.CSTNode, list[cst.CSTNode | None]]] = {}
    for occurrence in model.runs.each(call, accelerated=True, by_hand=True):
        step = None if occurrence.event.kind is not Kind.ZERO else _starved_step(occurrence.run, occurrence.event)
        place = model.runs.call_here(occurrence.event.frame)
        if step is None and place is None:
            return
        place = place or call
        starved.setdefault(id(place), (place, []))[1].append(None if step is None else step.node)
    whole = (call, [step for _, steps in starved.values() for step in steps])
    for place, steps in [whole] if None not in whole[1] else starved.values():
        if steps and steps[-1] is not None and None not in steps:
            yield place, steps[-1]


def _starved_step(run: Run, zero: Event) -> Event | None:
    for step in run.events:
        if step.kind is Kind.STEP and step.thing is not None and clears(zero, step) and not is_given_more(step):
            paths = run.derived(("zeroing", step.thing), partial(_paths, run, step))
            states = paths.before(step) - {None}
            if states == {zero} and not has_step_of_its_own(step):
                return step
    return None


def _paths(run: Run, step: Event) -> "Paths[_State]":
    """The ways through a run, for the optimizer of a step."""
    giving_losses = set(_calls_for_losses(run))
    is_alone = _is_only_one(run, step)

    def advance(state: _State, event: Event) -> _State:
        match event.kind:
            case Kind.BACKWARD | Kind.MINIMIZE:
                return _FULL
            case Kind.UNKNOWN if event.node in giving_losses or (is_alone and not _may_compute_for(event, step)):
                return state
            case Kind.UNKNOWN | Kind.WRITE_GRADIENT:
                # What was written by hand, and is cleared without a step, was most likely a trial.
                return _DOUBTFUL if isinstance(state, Event) else state
            case Kind.ZERO if clears(event, step):
                return event if state == _FULL else None if state == _DOUBTFUL else state
            case Kind.STEP if event.concerns(step.thing) or computes_by_itself(event):
                return None
        return state

    return Paths(run.steps, None, advance)


def _is_only_one(run: Run, step: Event) -> bool:
    """Whether a run has no other optimizer than that of a step, and one place that computes gradients, for it."""
    updates = (event for event in run.events if event.kind in UPDATES)
    places = {id(event.node) for event in run.events if event.kind is Kind.BACKWARD}
    return len(places) == 1 and all(update.thing == step.thing for update in updates)


def _may_compute_for(event: Event, step: Event) -> bool:
    """Whether a call that cannot be looked into may compute gradients for a step beside the ``backward()`` of its run.

    It is given the optimizer or what that has the parameters of, or is a method of what holds them, or says so.
    """
    call = event.node
    modules = modules_of_optimizer(step.frame, step.thing)
    if not isinstance(call, cst.Call) or _SAYS_COMPUTING.search(last_word(call.func) or "") is not None:
        return True
    holder = event.frame.thing(call.func.value) if isinstance(call.func, cst.Attribute) else None
    is_held = holder is not None and any(is_within(item, holder) for item in (step.thing, *modules))
    return None in modules or is_held or is_given_optimizer(event) or is_given(event, modules)


def _calls_for_losses(run: Run) -> Iterator[cst.CSTNode]:
    """The calls that give what `backward()` is called on: they have not called it themselves."""
    losses = (loss for event in run.events if event.kind is Kind.BACKWARD for loss in losses_of(event))
    for loss in losses:
        yield from (root.value for root in loss.roots if isinstance(root, Binding) and isinstance(root.value, cst.Call))
