"""Whether nothing is done with a tensor but to look at it, shown, compared, or read as a number; and what functions
are given to use as modules.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.names.uses import attributes, uses, uses_of_bound
from mllint.semantic.values import Function, Symbol
from mllint.syntax.shape import dotted_path, is_of_names, last_word, targets_of

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


OF_MODULES = (
    "eval", "train", "parameters", "named_parameters", "modules", "named_modules", "children", "named_children",
    "sublayers", "named_sublayers",
)  # fmt: skip
"""Methods that nothing but a module has, called without an argument."""


def is_given_as_module(model: "Model", node: cst.BaseExpression, holder: cst.CSTNode) -> bool:
    """Whether a function of the project is given a thing that it calls, or of which it asks for what a module has.

    ``holder`` is what holds all that may be the same thing by its name.
    """
    for use in _mentions(model, node, holder):
        arg = model.tree.parent(use)
        call = model.tree.parent(arg) if isinstance(arg, cst.Arg) and not arg.star else None
        callee = model.value(call.func) if isinstance(call, cst.Call) else None
        if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call) or not isinstance(callee, Function):
            continue
        inside = uses_inside(callee.definition, call, arg, filled_by(callee)) or ()
        if any(_is_of_module(callee.definition.model, place) for place in inside):
            return True
    return False


def _mentions(model: "Model", node: cst.BaseExpression, holder: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Where else the same thing is read: by its name, or as the same attribute of the object."""
    if isinstance(node, cst.Name):
        yield from (use for binding in model.reaching(node) for use in uses(model, binding))
    path = dotted_path(node)
    for other in attributes(model, node.attr.value) if isinstance(node, cst.Attribute) and path is not None else ():
        if dotted_path(other) == path and model.tree.is_below(other, holder):
            yield other


def _is_of_module(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a thing is called, or a method of it that only modules have."""
    parent = model.tree.parent(use)
    if isinstance(parent, cst.Call):
        return parent.func is use
    call = model.tree.call_of(parent) if isinstance(parent, cst.Attribute) and parent.value is use else None
    return call is not None and not call.args and parent.attr.value in OF_MODULES  # type: ignore[union-attr]
