"""Losses that were computed with weights which a step has changed before their backward pass, also through helpers."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import libcst as cst
import msgspec

from mllint.semantic.events.owners import maker, updates
from mllint.semantic.events.steps import Attempt, Branches, Event, Kind, Loop
from mllint.semantic.events.things import Frame
from mllint.semantic.graph.losses import WALKING, loss_of
from mllint.semantic.graph.statefulness import called
from mllint.semantic.modules.module_keys import module_keys
from mllint.semantic.modules.second_passes import (
    Uncut,
    assignments_above,
    keeps_for_backward,
    may_change_graphs,
    passes_above,
    plain_loss,
    runs_before,
)
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.values import Module, Output, Tensor
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 6
"""How many steps above a backward pass are looked at."""


class Stale(msgspec.Struct, frozen=True):
    """A module whose weights a step has changed between its forward pass and the backward pass through it."""

    module: str
    step: cst.Call


def stale_weights(model: "Model", backward: cst.Call) -> Stale | None:
    """The module through which a ``backward()`` call surely goes with weights that are no longer those of the pass."""
    steps = _steps_above(model, backward)
    loss = plain_loss(model, backward) if steps else None
    if loss is None:
        return None
    sources = model.backward.sources(loss)
    for step in reversed(steps):
        for name, calls in passes_before(model, step, sources).items():
            walk = Uncut(model, lambda _: False, lambda call, calls=calls: call in calls)  # type: ignore[misc]
            if walk.of(loss) and _changes(model, step, calls[0]) and _has_gradients(model, step, name):
                return None if may_change_graphs(model, backward) else Stale(name, step)
    return None


def weights_change_every_round(model: "Model", backward: cst.Call) -> Callable[[cst.Call], bool]:
    """Tells of which calls of modules the weights are stepped in every round, before any other backward pass.

    A round is one of the loop around the pass, or one call of its function. Through such weights no other pass can go:
    what is left of the graph is of no use.
    """
    steps = _steps_below(model, backward) if model.framework == "torch" else []
    unsure = set[str | None]()

    def is_stepped(call: cst.Call) -> bool:
        changed = [_may_change(model, step, call) for step in steps]
        if "surely" in changed:
            return True
        unsure.add(dotted_path(call.func))
        return None not in unsure and len(unsure) == 1 and "perhaps" in changed

    return is_stepped


def _steps_below(model: "Model", backward: cst.Call) -> list[cst.Call]:
    """The calls of a ``step`` that come behind a backward pass in its round, and before the next backward pass."""
    scope = model.scope_of(backward)
    around = next(model.tree.loops_around(backward), scope.node)
    below = (
        call
        for call in model.calls_by_word.get("step", ())
        if model.scope_of(call) is scope and runs_before(scope, backward, call) and model.tree.is_inside(call, around)
    )
    others = [
        call
        for word in WALKING
        for call in model.calls_by_word.get(word, ())
        if call is not backward and model.scope_of(call) is scope and not is_above(scope, call, backward)
    ]
    return [step for step in below if not any(is_above(scope, other, step) for other in others)]


def _may_change(model: "Model", step: cst.Call, call: cst.Call) -> Literal["surely", "perhaps", "no"]:
    """Whether a step is one of an optimizer that has the weights of a module, or that comes from out of sight."""
    verdicts = set[bool | None]()
    for item in model.runs.each(step):
        frame, thing = item.event.frame, item.event.thing
        if item.event.kind is not Kind.STEP or frame.model is not model:
            return "no"
        known = updates(frame, thing, frame.thing(called(model, call)))
        if known is False or (known is None and maker(frame, thing) is not None):
            return "no"
        verdicts.add(known)
    if not verdicts:
        return "no"
    return "surely" if verdicts == {True} else "perhaps"


def _steps_above(model: "Model", backward: cst.Call) -> list[cst.Call]:
    """The calls of a ``step`` that have surely run before a backward pass."""
    scope = model.scope_of(backward)
    names = model.names_within("step", scope)
    calls = [model.tree.parent(model.tree.parent(name) or name) for name in names]
    found = [call for call in calls[-MAX_STEPS * 2 :] if isinstance(call, cst.Call)]
    return [call for call in found if runs_before(scope, call, backward)][-MAX_STEPS:]


def passes_before(model: "Model", step: cst.Call, sources: frozenset[int]) -> dict[str, list[cst.Call]]:
    """The calls of modules that have surely run before a step, and that keep the module's weights, by the module.

    Only what ``sources``, of a loss, may come from is looked at.
    """
    found: dict[str, list[cst.Call]] = {}
    scope = model.scope_of(step)
    for statement in assignments_above(model, step):
        if id(statement) not in sources:
            continue
        for call in subtree(statement.value):
            name = dotted_path(call.func) if isinstance(call, cst.Call) else None
            if name is None or not isinstance(call, cst.Call) or not runs_before(scope, call, step):
                continue
            if keeps_for_backward(model, call) and _keeps_weights(model, call):
                found.setdefault(name, []).append(call)
    return found


def _keeps_weights(model: "Model", call: cst.Call) -> bool:
    """Whether a pass keeps weights: those of a layer are kept for the gradient of its input, where that needs one."""
    module = model.value(call.func)
    assert isinstance(module, Module)
    weights = [key for key in module_keys(model, call.func, module).certain if key.rpartition(".")[2] == "weight"]
    given = model.value(call.args[0].value) if call.args else None
    is_attached = isinstance(given, (Tensor, Output)) and given.attached is True
    return len(weights) > (0 if is_attached else 1)


def _changes(model: "Model", step: cst.Call, call: cst.Call) -> bool:
    """Whether a step is surely one of an optimizer that has the parameters of the module of a pass."""

    def changes(event: Event) -> bool:
        frame = event.frame
        is_here = event.kind is Kind.STEP and frame.model is model
        return is_here and updates(frame, event.thing, frame.thing(call.func)) is True

    return model.runs.always(step, lambda item: changes(item.event))


def _has_gradients(model: "Model", step: cst.Call, name: str) -> bool:
    """Whether a backward pass through the module has surely run before the step, which does nothing without one."""
    walk = Uncut(model, lambda _: False, lambda call: dotted_path(call.func) == name)
    for first in passes_above(model, step):
        loss = plain_loss(model, first)
        if loss is not None and walk.of(loss):
            return True
    return False


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
    """The calls of helpers that surely lead to such a ``backward()`` of what they are given.

    ``descend(optimizer, loss)``: by the second call the weights may have changed through which its loss was computed,
    in the body that calls both.
    """
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
            if is_changed and walk.of(given.loss) and _had_gradients(run, given, step, name):
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


def _had_gradients(run: Run, given: _Given, step: Event, name: str) -> bool:
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
