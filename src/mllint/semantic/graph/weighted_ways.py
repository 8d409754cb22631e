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
    """Whether an attribute is a layer with weights on some way: ``self.norm`` of ``norm or nn.BatchNorm2d``.

    So is a ``Sequential`` with one, which has to be its first where what it is given must go into it ``at_once``.
    """
    owner = owner_of_attribute(model, callee)
    if owner is None or not isinstance(callee, cst.Attribute):
        return False
    return any(
        binding.kind is BindingKind.ASSIGN
        and not binding.path
        and binding.value is not None
        and _is_weighted(binding.scope.model, binding.value, MAX_STEPS, at_once)
        for binding in owner.assignments(callee.attr.value)
    )


def _is_weighted(model: "Model", node: cst.BaseExpression, steps: int, at_once: bool) -> bool:
    """Whether an expression gives a layer with weights, or a ``Sequential`` with one, on some way."""
    if steps == 0:
        return False
    match node:
        case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(left=one, right=other):
            return any(_is_weighted(model, side, steps - 1, at_once) for side in (one, other))
        case cst.Name():
            made = [item.value for item in model.reaching(node) if item.kind is BindingKind.ASSIGN and not item.path]
            return any(item is not None and _is_weighted(model, item, steps - 1, at_once) for item in made)
        case cst.Call():
            value = model.value(node)
            if isinstance(value, Module) and value.name is not None and value.name.endswith(".Sequential"):
                layers = node.args[:1] if at_once else node.args
                return any(_is_weighted(model, arg.value, steps - 1, at_once) for arg in layers)
            if isinstance(value, Module):
                return _is_class_with_weights(value.name)
            return value is None and _names_weighted(model, node.func, steps - 1)
    return False


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
