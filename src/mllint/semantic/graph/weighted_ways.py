"""Attributes that are a layer with weights on one of the ways in which a module may be built.

Whoever builds it may choose another class. What is wrong with the one that the file itself names is wrong already.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import saved_tensors
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Module, Symbol

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 6
"""Through how many names and choices a layer is followed to what builds it."""


def may_have_weights(model: "Model", callee: cst.BaseExpression, *, at_once: bool = False) -> bool:
    """Whether an attribute is a layer with weights unless another is given, as in ``norm or nn.BatchNorm2d``.

    So is a ``Sequential`` with one, which has to be its first where what it is given must go into it ``at_once``.
    """
    owner = owner_of_attribute(model, callee)
    if owner is None or not isinstance(callee, cst.Attribute):
        return False
    ways: set[bool | None] = set()
    for binding in owner.assignments(callee.attr.value):
        made = binding.value if binding.kind is BindingKind.ASSIGN and not binding.path else None
        ways |= {False} if made is None else _ways(binding.scope.model, made, MAX_STEPS, at_once)
    return True in ways and False not in ways


def is_open_layer(model: "Model", call: cst.Call) -> bool:
    """Whether a call runs such a layer, of which nothing else is known, or only that it is one of several."""
    value = model.value(call.func)
    if isinstance(value, Module):
        is_known = value.definition is not None or (value.name is not None and not value.others)
    else:
        is_known = value is not None
    if is_known or not call.args or call.args[0].star:
        return False
    return may_have_weights(model, call.func, at_once=True)


def _ways(model: "Model", node: cst.BaseExpression, steps: int, at_once: bool) -> set[bool | None]:
    """Whether an expression gives a layer with weights on each of its ways; ``None`` for what somebody chooses."""
    if steps == 0:
        return {False}
    match node:
        case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(left=one, right=other):
            return _ways(model, one, steps - 1, at_once) | _ways(model, other, steps - 1, at_once)
        case cst.Name():
            ways: set[bool | None] = set()
            for binding in model.reaching(node):
                is_whole = binding.kind is BindingKind.ASSIGN and not binding.path and binding.value is not None
                if is_whole and binding.value is not None:
                    ways |= _ways(binding.scope.model, binding.value, steps - 1, at_once)
                else:
                    ways.add(None if binding.kind is BindingKind.PARAMETER else False)
            return ways or {False}
        case cst.Call():
            return {_is_weighted(model, node, steps - 1, at_once)}
    return {False}


def _is_weighted(model: "Model", call: cst.Call, steps: int, at_once: bool) -> bool:
    """Whether a call builds a layer with weights, or a ``Sequential`` with one."""
    value = model.value(call)
    if isinstance(value, Module) and value.name is not None and value.name.endswith(".Sequential"):
        layers = call.args[:1] if at_once else call.args
        return any(True in _ways(model, arg.value, steps, at_once) for arg in layers if not arg.star)
    if isinstance(value, Module):
        return _is_class_with_weights(value.name)
    return value is None and _names_weighted(model, call.func, steps)


def _names_weighted(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether what is called to build a layer is a class of one with weights on some way: ``norm_layer(width)``."""
    value = model.value(node)
    if isinstance(value, Symbol):
        return _is_class_with_weights(value.name)
    if value is not None or steps == 0:
        return False
    owner = owner_of_attribute(model, node)
    if owner is not None and isinstance(node, cst.Attribute):
        bindings = tuple(owner.assignments(node.attr.value))
    else:
        bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    for binding in bindings:
        made = binding.node.default if isinstance(binding.node, cst.Param) else binding.value
        sides = (made.left, made.right) if isinstance(made, cst.BooleanOperation) else (made,)
        if not binding.path and any(
            side is not None and _names_weighted(binding.scope.model, side, steps - 1) for side in sides
        ):
            return True
    return False


def _is_class_with_weights(name: str | None) -> bool:
    layer = None if name is None else saved_tensors.layer(name)
    return layer is not None and layer[1]
