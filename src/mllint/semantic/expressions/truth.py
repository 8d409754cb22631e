"""Where the truth of an expression is asked for, and what is nothing but true or false."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.values import Tensor
from mllint.syntax.shape import constant

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_tested(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what stands around an expression asks for nothing but its truth.

    ``a`` in ``if a:``, ``not a``, ``a and b``, ``x if a else y``; ``b`` in ``if a or b:``, not in ``x = a or b``.
    """
    parent = model.tree.parent(node)
    match parent:
        case cst.If() | cst.While() | cst.Assert() | cst.CompIf():
            return parent.test is node
        case cst.IfExp():
            return parent.test is node or is_tested(model, parent)
        case cst.MatchCase():
            return parent.guard is node
        case cst.UnaryOperation():
            return isinstance(parent.operator, cst.Not)
        case cst.BooleanOperation():
            return parent.left is node or is_tested(model, parent)
        case cst.NamedExpr():
            return parent.value is node and is_tested(model, parent)
        case cst.Arg():
            call = model.tree.parent(parent)
            return isinstance(call, cst.Call) and model.qualified_name(call.func) == "builtins.bool"
    return False


def is_bool(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether an expression is surely ``True`` or ``False``: a comparison, or a parameter that is one by default."""
    match node:
        case cst.Comparison():
            return all(not isinstance(model.value(item.comparator), Tensor) for item in node.comparisons)
        case cst.UnaryOperation():
            return isinstance(node.operator, cst.Not)
        case cst.Name() if isinstance(constant(node), bool):
            return True
        case cst.Name():
            bindings = model.reaching(node)
            return bool(bindings) and all(_is_bound_to_bool(model, binding.node) for binding in bindings)
    return False


def _is_bound_to_bool(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a parameter is declared to be ``bool``, or is one by default."""
    if not isinstance(node, cst.Param):
        return False
    if node.annotation is not None:
        return model.qualified_name(node.annotation.annotation) == "builtins.bool"
    return node.default is not None and isinstance(constant(node.default), bool)


def compared_to_bool(model: "Model", node: cst.BaseExpression) -> cst.Comparison | None:
    """The comparison ``node == True``, ``node is False`` or the like in which an expression stands, if it does."""
    parent = model.tree.parent(node)
    comparison = model.tree.parent(parent) if isinstance(parent, cst.ComparisonTarget) else parent
    if not isinstance(comparison, cst.Comparison) or len(comparison.comparisons) != 1:
        return None
    part = comparison.comparisons[0]
    if not isinstance(part.operator, (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot)):
        return None
    other = part.comparator if comparison.left is node else comparison.left
    return comparison if isinstance(constant(other), bool) else None
