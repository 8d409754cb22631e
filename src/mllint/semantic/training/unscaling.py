"""Calls of ``unscale_`` for gradients that are not scaled any more: a second one before ``update()`` raises."""

from functools import partial
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.events.steps import Event, Kind, events
from mllint.semantic.events.things import Thing
from mllint.semantic.training.guards import exclude_each_other, is_left_out
from mllint.semantic.training.independence import may_both_happen
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.scaling import is_idle

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Repeated = Literal["always", "in later rounds", "where both tests hold"]
"""When ``unscale_`` raises."""


def unscales_again(model: "Model", call: cst.CSTNode) -> Repeated | None:
    """When ``unscale_`` is called again, or after the step, before the scaler's ``update()``; ``None``: it is not."""
    runs = model.runs
    if runs.always(call, _unscales_twice):
        return "always"
    if runs.always(call, lambda item: _is_repeated(item.event) and item.event in _unscaled_before(item)):
        return "in later rounds"
    return "where both tests hold" if runs.always(call, _may_unscale_twice) else None


def _unscales_twice(occurrence: Occurrence) -> bool:
    states = _unscaled_before(occurrence)
    return bool(states) and None not in states and all(not _is_of_loop(item, occurrence.event) for item in states)


def _may_unscale_twice(occurrence: Occurrence) -> bool:
    """Whether another call comes before in the same round, under tests that say nothing of each other."""
    run, call = occurrence.run, occurrence.event
    if None not in _unscaled_before(occurrence):
        return False  # it is surely called before: whether that is right depends on more than the tests
    in_round = partial(_unscaling, run, call.thing, call.other, is_of_round=True)
    states = run.derived(("unscaling in a round", call.thing, call.other), in_round).before(call)
    return any(
        state is not None
        and state.kind is Kind.UNSCALE
        and state is not call
        and not _is_of_loop(state, call)
        and may_both_happen(state, call)
        for state in states
    )


def _unscaled_before(occurrence: Occurrence) -> set[Event | None]:
    """What may have been done before a call of ``unscale_``, since the scaler was updated; empty: nobody knows."""
    run, call = occurrence.run, occurrence.event
    if run.is_cut or call.kind is not Kind.UNSCALE or call.thing is None or call.other is None:
        return set()
    if is_idle(run, call.other):
        return set()
    paths = run.derived(("unscaling", call.thing, call.other), partial(_unscaling, run, call.thing, call.other))
    return {state for state in paths.before(call) if state is None or not exclude_each_other(state, call)}


def _is_of_loop(state: Event | None, call: Event) -> bool:
    """Whether the earlier of two calls stands in a loop over optimizers, which may mean another one in each round."""
    return state is not None and any(
        "[*]" in step for thing in (state.thing, call.thing) if thing for step in thing.path
    )


def _is_repeated(call: Event) -> bool:
    """Whether a call comes in rounds of a loop in which the scaler is not updated."""
    loop = call.loops[-1] if call.loops else None
    updates_ = [] if loop is None else [event for event in events(loop.body) if event.kind is Kind.UPDATE_SCALE]
    return loop is not None and bool(updates_) and all(is_left_out(event, call, loop) for event in updates_)


def _unscaling(
    run: Run, optimizer: Thing | None, scaler: Thing | None, *, is_of_round: bool = False
) -> Paths[Event | None]:
    """``is_of_round``: of what the rounds before have left nothing counts."""

    def advance(state: Event | None, event: Event) -> Event | None:
        match event.kind:
            case Kind.UNSCALE if event.thing == optimizer and event.other == scaler:
                return event
            case Kind.STEP if event.thing == optimizer and event.other == scaler:
                return event
            case Kind.UPDATE_SCALE if event.other is None or scaler is None or event.other.may_be(scaler):
                return None
            case Kind.MINIMIZE | Kind.LOAD:
                return None
            case Kind.UNKNOWN if event.concerns(scaler):
                return None
        return state

    return Paths(run.steps, None, advance, restarts=lambda _: is_of_round)
