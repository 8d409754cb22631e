"""Losses that were computed with weights which a step has changed before their backward pass."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.events.owners import maker, updates
from mllint.semantic.events.steps import Kind
from mllint.semantic.graph.losses import WALKING
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
from mllint.semantic.values import Module, Output, Tensor
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_LOOPS = (cst.For, cst.While)
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
    for step in reversed(steps):
        for name, calls in _passes_before(model, step).items():
            walk = Uncut(model, lambda _: False, lambda call, calls=calls: call in calls)  # type: ignore[misc]
            if walk.of(loss) and _changes(model, step, calls[0]) and _has_gradients(model, step, name):
                return None if may_change_graphs(model, backward) else Stale(name, step)
    return None


def weights_change_every_round(model: "Model", backward: cst.Call) -> Callable[[cst.Call], bool]:
    """Tells of which calls of modules the weights are stepped in every round of the loop, behind the only pass in it.

    Through such weights no pass of a later round can go: what is left of an earlier one is of no use.
    """
    loop = next((item for item in model.tree.ancestors(backward) if isinstance(item, _LOOPS)), None)
    scope = model.scope_of(backward)
    if loop is None or model.framework != "torch" or not model.tree.is_inside(loop, scope.node):
        return lambda _: False
    others = (call for word in WALKING for call in model.calls_by_word.get(word, ()) if call is not backward)
    if any(model.scope_of(call) is scope for call in others):
        return lambda _: False
    steps = [
        call
        for call in model.calls_by_word.get("step", ())
        if model.scope_of(call) is scope and runs_before(scope, backward, call) and model.tree.is_inside(call, loop)
    ]
    called = set[str | None]()

    def is_stepped(call: cst.Call) -> bool:
        called.add(dotted_path(call.func))
        return None not in called and len(called) == 1 and any(_may_change(model, step, call) for step in steps)

    return is_stepped


def _may_change(model: "Model", step: cst.Call, call: cst.Call) -> bool:
    """Whether a step is one of an optimizer that has the weights of a module, or that comes from out of sight."""
    occurrences = model.runs.at(step)
    for item in occurrences:
        frame, thing = item.event.frame, item.event.thing
        if item.event.kind is not Kind.STEP or frame.model is not model:
            return False
        known = updates(frame, thing, frame.thing(call.func))
        if known is False or (known is None and maker(frame, thing) is not None):
            return False
    return bool(occurrences)


def _steps_above(model: "Model", backward: cst.Call) -> list[cst.Call]:
    """The calls of a ``step`` that have surely run before a backward pass."""
    scope = model.scope_of(backward)
    names = model.names_within("step", scope)
    calls = [model.tree.parent(model.tree.parent(name) or name) for name in names]
    found = [call for call in calls[-MAX_STEPS * 2 :] if isinstance(call, cst.Call)]
    return [call for call in found if runs_before(scope, call, backward)][-MAX_STEPS:]


def _passes_before(model: "Model", step: cst.Call) -> dict[str, list[cst.Call]]:
    """The calls of modules that have surely run before a step, and that keep the module's weights, by the module."""
    found: dict[str, list[cst.Call]] = {}
    scope = model.scope_of(step)
    for statement in assignments_above(model, step):
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
    occurrences = model.runs.at(step)
    return bool(occurrences) and all(
        item.event.kind is Kind.STEP
        and item.event.frame.model is model
        and updates(item.event.frame, item.event.thing, item.event.frame.thing(call.func)) is True
        for item in occurrences
    )


def _has_gradients(model: "Model", step: cst.Call, name: str) -> bool:
    """Whether a backward pass through the module has surely run before the step, which does nothing without one."""
    walk = Uncut(model, lambda _: False, lambda call: dotted_path(call.func) == name)
    for first in passes_above(model, step):
        loss = plain_loss(model, first)
        if loss is not None and walk.of(loss):
            return True
    return False
