"""Schedulers whose only step comes when the training is over: the learning rate stays as it begins."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import UPDATES, Event, Kind
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.schedules import steps_of_optimizer
from mllint.semantic.values import is_object
from mllint.syntax.shape import argument, called_on

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What is read of a scheduler that is of no use to whoever goes on with the training.
_LOOKED_AT = frozenset({"get_lr", "get_last_lr", "last_epoch", "last_lr", "base_lrs", "print_lr"})
_OF_TRAINING = (*UPDATES, Kind.BACKWARD, Kind.SCHEDULE, Kind.LOAD)


def steps_too_late(model: "Model", call: cst.Call) -> bool:
    """Whether a scheduler's only step stands behind the loops in which its optimizer steps, and nobody goes on.

    Both are made in the body in which it steps, so that each call of that begins anew.
    """
    stepped = called_on(call)
    if not isinstance(stepped, cst.Name) or _is_in_part_of_body(model, call):
        return False
    schedulers = model.reaching(stepped)
    optimizers = [_optimizer_of(model, call, binding) for binding in schedulers]
    if not schedulers or is_in_a_test(model, call):
        return False
    if not all(item is not None and _is_done_with(model, call, item) for item in optimizers):
        return False
    if not all(_is_stepped_only_here(model, stepped, binding) for binding in schedulers):
        return False
    return not _may_be_left_before(model, call) and model.runs.always(call, _is_over)


def _is_in_part_of_body(model: "Model", call: cst.Call) -> bool:
    """Whether a call stands in a loop, or on one of several ways."""
    scope = model.scope_of(call)
    for ancestor in model.tree.ancestors(call):
        if ancestor is scope.node:
            return False
        if isinstance(ancestor, (cst.For, cst.While, cst.If, cst.Try, cst.TryStar, cst.IfExp, cst.Match)):
            return True
    return False


def _optimizer_of(model: "Model", step: cst.Call, scheduler: Binding) -> Binding | None:
    """What the optimizer is bound to whose rate a scheduler sets, where both are made in the body of its step."""
    made = scheduler.value
    if not isinstance(made, cst.Call) or not _is_made_in_body(model, step, scheduler, "scheduler"):
        return None
    if model.framework == "paddle":
        found = [_made_with(model, use) for use in uses(model, scheduler)]
        bindings = [binding for binding in found if binding is not None]
    else:
        given = argument(made, 0, "optimizer")
        bindings = [] if given is None or not isinstance(given.value, cst.Name) else list(model.reaching(given.value))
    is_known = len(bindings) == 1 and _is_made_in_body(model, step, bindings[0], "optimizer")
    return bindings[0] if is_known else None


def _is_made_in_body(model: "Model", step: cst.Call, binding: Binding, kind: str) -> bool:
    is_bound = binding.kind is BindingKind.ASSIGN and not binding.path and "." not in binding.key
    if not is_bound or binding.value is None or not is_object(model.value(binding.value), kind):
        return False
    is_here = binding.scope is model.scope_of(step) and binding.key not in binding.scope.outer_names
    # What a module makes any file may import that mentions it.
    return is_here and (binding.scope.is_function or not any(True for _ in model.importers(binding.key)))


def _made_with(model: "Model", use: cst.BaseExpression) -> Binding | None:
    """What the optimizer of Paddle is bound to that is made with a scheduler."""
    call = model.tree.call_given(use)
    statement = None if call is None else model.tree.parent(call)
    given = None if call is None else argument(call, 0, "learning_rate")
    if given is None or given.value is not use or not isinstance(statement, cst.Assign):
        return None
    bound = bound_by(model, statement)
    return bound[0] if len(bound) == 1 else None


def _is_stepped_only_here(model: "Model", stepped: cst.Name, scheduler: Binding) -> bool:
    """Whether nothing else is done with a scheduler but to look at it, and to make an optimizer of Paddle with it."""
    return all(
        use is stepped
        or (isinstance(parent := model.tree.parent(use), cst.Attribute) and parent.attr.value in _LOOKED_AT)
        or (model.framework == "paddle" and _made_with(model, use) is not None)
        for use in uses(model, scheduler)
    )


def _is_done_with(model: "Model", step: cst.Call, optimizer: Binding) -> bool:
    """Whether nobody asks for an optimizer behind the scheduler's step, nor from another body: its state is not saved,
    its learning rate is not shown.
    """
    scope = model.scope_of(step)
    return all(model.scope_of(use) is scope and is_above(scope, use, step) for use in uses(model, optimizer))


def _may_be_left_before(model: "Model", step: cst.Call) -> bool:
    """Whether a body may end before its scheduler steps, or stops somewhere for somebody else to go on."""
    function, scope = model.enclosing_function(step), model.scope_of(step)
    if function is None:
        return False
    yields = (item for item in model.tree.by_type.get(cst.Yield, ()) if model.enclosing_function(item) is function)
    return any(True for _ in yields) or any(is_above(scope, item, step) for item in scope.returns)


def _is_over(occurrence: Occurrence) -> bool:
    """Whether the optimizer has stepped in loops, and nothing is trained behind the scheduler's step."""
    run, schedule = occurrence.run, occurrence.event
    if schedule.kind is not Kind.SCHEDULE or schedule.thing is None or run.is_cut or schedule.loops:
        return False
    updates = steps_of_optimizer(run, schedule.thing)
    place = run.events.index(schedule)
    if not updates or any(not step.loops or run.events.index(step) > place for step in updates):
        return False
    if not any(event.kind is Kind.BACKWARD and event.loops for event in run.events[:place]):
        return False
    return not any(_may_go_on(event, updates[0]) for event in run.events[place + 1 :])


def _may_go_on(event: Event, update: Event) -> bool:
    """Whether an event behind the training is one of a training that goes on."""
    return event.kind in _OF_TRAINING or (event.kind is Kind.UNKNOWN and event.concerns(update.thing))
