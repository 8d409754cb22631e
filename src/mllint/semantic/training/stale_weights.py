"""Losses that were computed with weights which a step has changed before their backward pass."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import libcst as cst
import msgspec

from mllint.semantic.events.owners import maker, updates
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.graph.losses import WALKING
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
