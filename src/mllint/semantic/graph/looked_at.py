"""Whether nothing is done with a tensor but to look at it: it is shown, compared, or read as a number."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.names.uses import uses, uses_of_bound
from mllint.semantic.values import Function, Symbol
from mllint.syntax.shape import is_of_names, last_word, targets_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

CUTTING = frozenset({"detach", "data", "item", "numpy", "tolist", "shape", "size", "dtype", "device", "dim", "ndim"})
"""Attributes and methods that give what hangs on no graph."""
# What is given to these is read as a number, or shown.
_REPORTS = frozenset({
    "print", "format", "info", "debug", "warning", "add_scalar", "add_scalars", "set_description", "set_postfix",
    "log", "write", "float", "int", "round", "str", "isnan", "isfinite", "isinf",
})  # fmt: skip
MAX_LOOKS = 6
"""Through how many names, operations and calls a tensor is followed."""


def reports(model: "Model", call: cst.Call) -> bool:
    """Whether what is given to a call is only shown, or read as a number; ``torch.log`` computes."""
    callee = model.value(call.func)
    computes = isinstance(callee, Symbol) and lookup.function(callee.name) is not None
    return not computes and last_word(call.func) in _REPORTS


def is_only_looked_at(model: "Model", node: cst.BaseExpression, steps: int = MAX_LOOKS) -> bool:
    """Whether nothing is done with what an expression gives but to drop it, to show it, or to take its value."""
    parent = model.tree.parent(node)
    match parent:
        case cst.Expr() | cst.Comparison() | cst.ComparisonTarget() | cst.FormattedStringExpression():
            return True
        case cst.Attribute():
            return parent.attr.value in CUTTING
        case cst.Arg():
            call = model.tree.parent(parent)
            return isinstance(call, cst.Call) and only_looks(model, call, parent, steps)
        case cst.BinaryOperation() | cst.Subscript() if steps > 0:
            return is_only_looked_at(model, parent, steps - 1)
        case cst.Assign() | cst.AugAssign() if steps > 0 and binds_names_only(parent):
            return all(is_only_looked_at(model, use, steps - 1) for use in uses_of_bound(model, parent))
    return False


def only_looks(model: "Model", call: cst.Call, arg: cst.Arg, steps: int = MAX_LOOKS) -> bool:
    """Whether no more is done with what a call is given, or with what it computes from that."""
    callee = model.value(call.func)
    if reports(model, call) or (isinstance(callee, Symbol) and hangs_on_nothing(model.value(call))):
        return True
    if isinstance(callee, Symbol) and lookup.function(callee.name) is not None:
        return steps > 0 and is_only_looked_at(model, call, steps - 1)
    if not isinstance(callee, Function) or steps <= 0 or not callee.definition.is_plain:
        return False
    inside = uses_inside(callee.definition, call, arg, filled_by(callee))
    return inside is not None and all(is_only_looked_at(callee.definition.model, use, steps - 1) for use in inside)


def filled_by(callee: Function) -> int:
    """How many leading parameters a call of a function fills by itself: the receiver of a method."""
    return 0 if callee.definition.self_name is None or callee.receiver is None else 1


def uses_inside(
    function: "FunctionInfo", call: cst.Call, arg: cst.Arg, skipped: int
) -> list[cst.BaseExpression] | None:
    """Where a function of the project reads what a call gives it by an argument; ``None``: that is not known.

    ``skipped`` leading parameters are filled by the call itself.
    """
    parameter = given_to(function, call, arg, skipped)
    if parameter is None:
        return None
    bound = [item for item in function.scope.bindings.get(parameter.name.value, ()) if item.node is parameter]
    return [use for binding in bound for use in uses(function.model, binding)]


def binds_names_only(statement: cst.Assign | cst.AugAssign) -> bool:
    """Whether a statement stores nothing anywhere but under names."""
    return all(map(is_of_names, targets_of(statement)))
