"""What a thing may be where it is not one thing on all paths: one value for each way it comes there.

``Model.value`` says what is certain whatever happens, so one path of which nothing is known hides all the others. A
rule that finds a thing wrong on a single path asks here.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.annotations import members
from mllint.semantic.expressions.calls import method_result
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Choice, Function, Output, Tensor, Value

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 4
"""Through how many assignments of the form ``x = x.method()`` an alternative is followed."""


def alternatives(model: "Model", node: cst.BaseExpression, steps: int = 0) -> tuple[Value | None, ...]:
    """What an expression is for each of the bindings that reach it; ``None`` for one of which nothing is known.

    A parameter that is declared as one of several things is each of them.
    """
    value = model.value(node)
    if isinstance(value, Choice):
        return value.options
    # What a module gives may be a structure of tensors; on one of several ways it may be known for one tensor.
    is_known = value is not None and not (isinstance(value, Output) and isinstance(node, cst.Name))
    if is_known or steps > MAX_STEPS:
        return (value,)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        name = node.func.attr.value
        return tuple(
            method_result(model, node, receiver, name) if isinstance(receiver, Tensor) else None
            for receiver in alternatives(model, node.func.value, steps + 1)
        )
    if isinstance(node, cst.Call):
        return _of_function(model.value(node.func), steps)
    bindings = model.reaching(node) if isinstance(node, (cst.Name, cst.Attribute)) else ()
    if not bindings and isinstance(node, cst.Attribute):
        return _of_attribute(model, node)
    if not bindings and isinstance(node, cst.Name):
        bindings = _around(model, node)
    return tuple(value for binding in bindings for value in _of_binding(model, binding, steps)) or (value,)


def _of_function(callee: Value | None, steps: int) -> tuple[Value | None, ...]:
    """What each ``return`` of a function of the project gives; a parameter that is given back is not followed."""
    if not isinstance(callee, Function) or not callee.definition.is_transparent or not callee.definition.is_plain:
        return (None,)
    home, given = callee.definition.model, [item.value for item in callee.definition.scope.returns]
    return tuple(value for item in given if item is not None for value in alternatives(home, item, steps + 1)) or (
        None,
    )


def _around(model: "Model", node: cst.Name) -> tuple[Binding, ...]:
    """What binds a name of a scope around, at any time."""
    scope = model.scope_of(node)
    while scope.parent is not None and node.value not in scope.bindings:
        scope = scope.parent
        if not scope.is_class and node.value in scope.bindings:
            return tuple(item for item in scope.bindings[node.value] if type(item.node) is not cst.Del)
    return ()


def _of_attribute(model: "Model", node: cst.Attribute) -> tuple[Value | None, ...]:
    """What the methods of a class assign to an attribute, where all of it is known: which was last is not."""
    method = method_of_receiver(model, node.value)
    if method is None or method.owner is None:
        return (None,)
    assigned = [binding.scope.model.binding_value(binding) for binding in method.owner.assignments(node.attr.value)]
    return tuple(assigned) if assigned and None not in assigned else (None,)


def _of_binding(model: "Model", binding: Binding, steps: int) -> tuple[Value | None, ...]:
    value = model.binding_value(binding)
    if value is not None or binding.scope.model is not model:
        return (value,)
    if binding.kind is BindingKind.ASSIGN and binding.value is not None and not binding.path:
        return alternatives(model, binding.value, steps + 1)
    if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param) and binding.node.annotation:
        declared = members(model, binding.node.annotation.annotation)
        return declared if all(member is not None for member in declared) else (None,)
    return (None,)
