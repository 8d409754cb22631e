"""Losses that helpers of the project step for one after the other: ``descend(optimizer, loss)``.

By the second call the weights may have changed through which its loss was computed, in the body that calls both.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.events.owners import updates
from mllint.semantic.events.steps import Attempt, Branches, Event, Kind, Loop
from mllint.semantic.events.things import Frame
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.modules.second_passes import Uncut, may_change_graphs, plain_loss
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.stale_weights import passes_before
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_HELPERS = 3
"""Through how many of them a loss is followed out to where it was computed."""


class StaleCall(msgspec.Struct, frozen=True):
    """A call that leads to a backward pass through weights which have changed since the module's forward pass."""

    call: cst.Call
    module: str


class _Given(msgspec.Struct, frozen=True):
    """The loss of a backward pass where it was computed: the run of that body, and the call that hands it on."""

    frame: Frame
    call: cst.Call
    loss: cst.BaseExpression


def stale_calls(model: "Model", backward: cst.Call) -> Iterator[StaleCall]:
    """The calls of helpers that surely lead to such a ``backward()`` of what they are given."""
    loss = loss_of(backward)
    if not isinstance(loss, cst.Name) or plain_loss(model, backward) is None or "step" not in model.calls_by_word:
        return
    bindings = model.reaching(loss)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return
    found: dict[tuple[int, int], tuple[cst.Call, set[str | None]]] = {}
    for occurrence in model.runs.each(backward):
        given = _given(occurrence.event, loss)
        if given is not None and given.frame.model is model:
            modules = found.setdefault((id(given.call), id(given.loss)), (given.call, set()))[1]
            modules.add(_stale(occurrence, given))
    told = set[int]()
    for call, names in found.values():
        name = names.pop() if len(names) == 1 else None
        if (
            name is not None
            and id(call) not in told
            and not any(may_change_graphs(model, item) for item in (call, backward))
        ):
            told.add(id(call))
            yield StaleCall(call, name)


def _given(event: Event, loss: cst.BaseExpression) -> _Given | None:
    """Where the loss of a backward pass was computed, from which helpers lead to it."""
    frame, call = event.frame, None
    for _ in range(_MAX_HELPERS + 1):
        bindings = frame.model.reaching(loss) if isinstance(loss, cst.Name) else ()
        given = frame.given(bindings[0]) if len(bindings) == 1 else None
        if given is None:
            break
        call = frame.call
        frame, loss = given
    is_bound_there = isinstance(loss, cst.Name) and all(
        binding.kind is BindingKind.ASSIGN for binding in frame.model.reaching(loss)
    )
    return _Given(frame, call, loss) if call is not None and is_bound_there else None


def _stale(occurrence: Occurrence, given: _Given) -> str | None:
    """The module through which a pass surely goes with weights that are no longer those of its forward pass."""
    model, run, backward = given.frame.model, occurrence.run, occurrence.event
    if backward.kind is not Kind.BACKWARD or run.is_cut or model.gradients.off(given.call) is not False:
        return None
    sources = model.backward.sources(given.loss)
    for step in _steps_before(run, backward):
        handed_on = _call_in(given.frame, step)
        if handed_on is None:
            continue
        for name, calls in passes_before(model, handed_on, sources).items():
            walk = Uncut(model, lambda _: False, lambda call, calls=calls: call in calls)  # type: ignore[misc]
            is_changed = updates(step.frame, step.thing, given.frame.thing(calls[0].func)) is True
            if is_changed and walk.of(given.loss) and _has_gradients(run, given, step, name):
                return name
    return None


def _steps_before(run: Run, backward: Event) -> Iterator[Event]:
    """The optimizers' steps that have surely run before a pass, in the same round of each loop, the next one first."""
    for event in reversed(run.events[: run.events.index(backward)]):
        if event.kind is Kind.STEP and _always_comes_first(event, backward):
            yield event


def _always_comes_first(earlier: Event, later: Event) -> bool:
    """Whether what stands above another event runs whenever that one does."""
    theirs = [(around.step, around.arm) for around in later.around]
    return all(
        (around.step, around.arm) in theirs
        for around in earlier.around
        if isinstance(around.step, (Branches, Attempt, Loop))
    )


def _call_in(frame: Frame, event: Event) -> cst.Call | None:
    """The call in a body that leads to an event, or the event's own."""
    if event.frame is frame:
        return event.node if isinstance(event.node, cst.Call) else None
    return next((inner.call for inner in event.frame.led_by() if inner.caller is frame), None)


def _has_gradients(run: Run, given: _Given, step: Event, name: str) -> bool:
    """Whether a backward pass through the module has surely run before the step, which does nothing without one."""
    model = given.frame.model
    walk = Uncut(model, lambda _: False, lambda call: dotted_path(call.func) == name)
    for event in reversed(run.events[: run.events.index(step)]):
        if event.kind is not Kind.BACKWARD or not _always_comes_first(event, step):
            continue
        loss = plain_loss(event.frame.model, event.node) if isinstance(event.node, cst.Call) else None
        first = None if loss is None else _given(event, loss)
        if first is not None and first.frame is given.frame and walk.of(first.loss):
            return True
    return False
