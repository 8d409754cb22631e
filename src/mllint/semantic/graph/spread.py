"""Dropped calls that only spread a tensor over another shape, which what is computed with it does anyway."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import callers, calls_of
from mllint.semantic.graph.needless import PLACING
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Tensor
from mllint.syntax.shape import called_on, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

CONVERTING = frozenset({
    *PLACING, "cpu", "float", "double", "half", "long", "int", "bool", "type", "type_as", "contiguous",
})  # fmt: skip
"""Methods that say of a tensor where it is or of which type, and leave its shape."""
_SPREADING = frozenset({"expand", "expand_as", "broadcast_to"})
_ARITHMETIC = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign)


def is_spread_anyway(model: "Model", call: cst.Call) -> bool:
    """Whether a call that spreads a tensor is dropped, and all that reads the tensor does so itself.

    ``x.expand_as(y)`` of what is only computed with ``y``; ``x.expand(size)`` of what only changes others in place,
    ``y[mask] += x``: these keep their shape.
    """
    operand = called_on(call)
    if last_word(call.func) not in _SPREADING or not isinstance(operand, cst.Name):
        return False
    bindings = model.reaching(operand)
    found = [use for binding in bindings for use in uses(model, binding) if use is not operand]
    other = dotted_path(call.args[0].value) if len(call.args) == 1 else None
    if last_word(call.func) == "expand_as" and other and found and all(_meets(model, use, other) for use in found):
        return True
    return _is_put_into_others(model, bindings, operand)


def _is_put_into_others(
    model: "Model", bindings: Iterable[Binding], operand: cst.BaseExpression, *, steps: int = 2
) -> bool:
    """Whether what is bound there is read for nothing but to change other tensors in place, element by element."""
    found = [use for binding in bindings for use in uses(model, binding) if use is not operand]
    return bool(found) and all(
        _changes_another(model, use) or (steps > 0 and _is_given_back_for_that(model, use, steps - 1)) for use in found
    )


def _changes_another(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a tensor is changed in place by what is read there: ``y += x``, ``y[mask] *= x``, ``y[mask] = x``."""
    parent = model.tree.parent(use)
    if isinstance(parent, cst.AugAssign) and isinstance(parent.operator, _ARITHMETIC):
        target = parent.target
    elif isinstance(parent, cst.Assign) and len(parent.targets) == 1 and parent.value is use:
        target = parent.targets[0].target
    else:
        return False
    if isinstance(target, cst.Subscript):
        return isinstance(model.value(target.value), Tensor)
    value = model.value(target)  # Paddle's `y += x` gives `y` a new tensor
    is_changed = isinstance(value, Tensor) and value.framework == "torch" and not value.or_number
    return is_changed and isinstance(parent, cst.AugAssign)


def _is_given_back_for_that(model: "Model", use: cst.BaseExpression, steps: int) -> bool:
    """Whether a function gives back what is read there, and each call in sight is for such a change."""
    function = model.enclosing_function(use)
    if function is None or not isinstance(model.tree.parent(use), cst.Return):
        return False
    found = 0
    for other, info in callers(model.function_info(function)):
        calls = calls_of(other, info)
        found += len(calls)
        if len(calls) != len(other.calls_by_word.get(info.name, ())):
            return False
        for call, _ in calls:
            statement = other.tree.parent(call)
            bound = bound_by(other, statement) if isinstance(statement, cst.Assign) else ()
            if not _changes_another(other, call) and not _is_put_into_others(other, bound, call, steps=steps):
                return False
    return found > 0


def _meets(model: "Model", use: cst.BaseExpression, other: str) -> bool:
    """Whether a thing is computed with another one, element by element, perhaps on another device."""
    node: cst.CSTNode = use
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute) and parent.attr.value in CONVERTING:
        converted = model.tree.call_of(parent)
        statement = None if converted is None else model.tree.parent(converted)
        if converted is None:
            return False
        if isinstance(statement, cst.Assign) and isinstance(use, cst.Name):
            bound = [item for item in model.scope_of(use).bindings.get(use.value, ()) if item.node is statement]
            again = [item for binding in bound for item in uses(model, binding)]
            return bool(again) and all(_meets(model, item, other) for item in again)
        node, parent = converted, statement
    if isinstance(parent, cst.BinaryOperation):
        return other in (dotted_path(parent.left), dotted_path(parent.right))
    if isinstance(parent, cst.ComparisonTarget):
        node, parent = parent, model.tree.parent(parent)
    if not isinstance(parent, cst.Comparison) or len(parent.comparisons) != 1:
        return False
    return other in (dotted_path(parent.left), dotted_path(parent.comparisons[0].comparator))
