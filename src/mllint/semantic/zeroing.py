"""Optimizer steps with gradients that nobody cleared, and gradients that are cleared before anybody used them."""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.nearby import clears_beside, word_before, word_behind
from mllint.semantic.owners import modules_of_optimizer
from mllint.semantic.paths import Paths
from mllint.semantic.runs import Occurrence, Run
from mllint.semantic.scopes import Binding, BindingKind
from mllint.semantic.steps import Event, Helper, Kind, Loop, events
from mllint.semantic.values import Instance, Object
from mllint.syntax.shape import integer_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def accumulates_without_end(model: "Model", step: cst.Call) -> bool:
    """Whether gradients are added up over all rounds of a training loop: nothing in it ever clears them."""
    if clears_beside(model, step):
        return False
    occurrences = [item for item in model.runs.at(step) if item.event.loops]
    return bool(occurrences) and all(_is_never_zeroed(item) for item in occurrences)


def _is_never_zeroed(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind not in (Kind.STEP, Kind.MINIMIZE) or step.thing is None:
        return False
    loop = _loop_of_backward(step)
    if loop is None or _is_made_inside(step, step.loops[0]) or _clears_by_itself(step):
        return False
    # What clears them once an epoch, in a loop further out, may be meant.
    return not any(_may_clear(event, step) for event in events(step.loops[0].body))


def _loop_of_backward(step: Event) -> Loop | None:
    """The innermost loop around a step in which gradients are computed too, and that goes round more than once."""
    for loop in reversed(step.loops):
        if any(event.kind is Kind.BACKWARD for event in events(loop.body)):
            return None if _runs_once(loop) else loop
    return None


def _runs_once(loop: Loop) -> bool:
    """Whether a loop is written for one round: ``range(1)``, or a body that leaves it."""
    node = loop.node
    if isinstance(node, cst.CompFor):
        return False
    call = node.iter if isinstance(node, cst.For) else None
    if isinstance(call, cst.Call) and getattr(call.func, "value", None) == "range" and len(call.args) == 1:
        return integer_literal(call.args[0].value) == 1
    last = node.body.body[-1] if node.body.body else None
    ends = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(ends, (cst.Break, cst.Return, cst.Raise))


def _is_made_inside(step: Event, loop: Loop) -> bool:
    """Whether every round makes an optimizer of its own, and with it, most often, a model."""
    roots = [root for root in step.thing.roots if isinstance(root, Binding)] if step.thing is not None else []
    steps = [around.step for around in step.around]
    inside = [item.frame.function for item in steps[steps.index(loop) :] if isinstance(item, Helper)]
    called = [function.scope for function in inside if function is not None]
    return any(
        root.scope in called or any(item is loop.node for item in root.scope.model.tree.ancestors(root.node))
        for root in roots
        if root.kind is not BindingKind.PARAMETER
    )


def _clears_by_itself(step: Event) -> bool:
    """Whether the optimizer is of a class of the project that has a ``step`` of its own."""
    callee = step.node.func if isinstance(step.node, cst.Call) else None
    value = step.frame.value(callee.value) if isinstance(callee, cst.Attribute) else None
    return isinstance(value, Instance) and value.definition.method("step") is not None


def _may_clear(event: Event, step: Event) -> bool:
    """Whether an event may clear the gradients that an optimizer steps with."""
    optimizer = step.thing
    if event.kind is Kind.UNKNOWN:
        return event.concerns(optimizer)
    if event.kind not in (Kind.ZERO, Kind.WRITE_GRADIENT):
        return False
    if event.thing is None or optimizer is None or event.thing.may_be(optimizer):
        return True
    mine = modules_of_optimizer(step.frame, optimizer)
    callee = event.node.func if isinstance(event.node, cst.Call) else None
    value = event.frame.value(callee.value) if isinstance(callee, cst.Attribute) else None
    if event.is_proven and isinstance(value, Object) and value.kind == "optimizer":
        other = modules_of_optimizer(event.frame, event.thing)
        return None in mine or None in other or bool(set(mine) & set(other))
    return None in mine or any(module is not None and module.may_be(event.thing) for module in mine)


# -- cleared too early -------------------------------------------------------------------------------------------------

_FULL = "full"
"""Gradients have been computed and nobody has cleared them since."""
_State = Event | str | None
"""What the optimizer's gradients are: nothing in particular, full, or cleared by an event before a step used them."""


def clears_before_step(model: "Model", call: cst.Call) -> cst.CSTNode | None:
    """The step that a call of ``zero_grad`` leaves without gradients, though they had been computed for it."""
    behind = word_behind(model, call)
    if behind == "backward" or (behind is None and word_before(model, call) == "step"):
        return None
    found: cst.CSTNode | None = None
    for occurrence in model.runs.at(call):
        step = None if occurrence.event.kind is not Kind.ZERO else _starved_step(occurrence.run, occurrence.event)
        if step is None:
            return None
        found = step.node
    return found


def _starved_step(run: Run, zero: Event) -> Event | None:
    for step in run.events:
        if step.kind is Kind.STEP and step.thing is not None and _clears(zero, step):
            paths = run.derived(("zeroing", step.thing), partial(_paths, run, step))
            states = paths.before(step) - {None}
            if states == {zero}:
                return step
    return None


def _paths(run: Run, step: Event) -> "Paths[_State]":
    """The ways through a run, for the optimizer of a step."""

    def advance(state: _State, event: Event) -> _State:
        match event.kind:
            case Kind.BACKWARD | Kind.WRITE_GRADIENT | Kind.UNKNOWN | Kind.MINIMIZE:
                return _FULL
            case Kind.ZERO if state == _FULL and _clears(event, step):
                return event
            case Kind.STEP if event.concerns(step.thing):
                return None
        return state

    return Paths(run.steps, None, advance)


def _clears(event: Event, step: Event) -> bool:
    """Whether an event surely clears all gradients that an optimizer steps with."""
    if event.kind is not Kind.ZERO or event.thing is None:
        return False
    return event.thing == step.thing or modules_of_optimizer(step.frame, step.thing) == (event.thing,)
