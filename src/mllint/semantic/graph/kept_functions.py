"""Functions that somebody keeps and calls later: whether gradients are on by then is not seen."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.uses import whole
from mllint.semantic.values import Function
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_HOLDERS = (cst.Element, cst.DictElement, cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.Param, cst.Return, cst.Yield)


def has_callers_out_of_sight(function: "FunctionInfo") -> bool:
    """Whether a function, or one of its file that calls it, is kept: in a table, or by what is not known."""
    model, pending, seen = function.model, [function], {function}
    while pending:
        for node in _mentions(pending.pop()):
            is_called = model.tree.call_of(node) is not None
            holders = model.tree.ancestors(node)
            caller = next((it for it in holders if isinstance(it, _FUNCTIONS)), None) if is_called else node
            if isinstance(caller, cst.BaseExpression) and _is_kept(model, caller):
                return True
            if isinstance(caller, cst.FunctionDef) and (calling := model.function_info(caller)) not in seen:
                pending.append(calling)
                seen.add(calling)
    return False


def _mentions(function: "FunctionInfo") -> Iterator[cst.BaseExpression]:
    """Where its file reads a function, by its name or as an attribute."""
    model = function.model
    for name in model.names_by_word.get(function.name, ()):
        if not isinstance(model.tree.parent(name), cst.FunctionDef):
            node = whole(model, name)
            value = model.value(node)
            if isinstance(value, Function) and value.definition is function:
                yield node


def _is_kept(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function is put, where it is not called, to where somebody else may find it."""
    parent = model.tree.parent(node)
    while isinstance(parent, (cst.IfExp, cst.BooleanOperation)):
        parent = model.tree.parent(parent)
    if not isinstance(parent, cst.Arg):
        return isinstance(parent, _HOLDERS)
    call = model.tree.parent(parent)
    if not isinstance(call, cst.Call) or last_word(call.func) == "apply":
        return False  # run there and then, with each module
    name = model.qualified_name(call.func)
    if name is not None and (name == "functools.partial" or lookup.wrapper(name) is not None):
        return _is_kept(model, call)
    callee = model.value(call.func)
    if isinstance(callee, Function):
        return model.gradients.are_spoken_of(callee.definition.node)
    return callee is None and name is None
