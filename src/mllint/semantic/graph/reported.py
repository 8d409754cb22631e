"""Totals and lists of which a function makes nothing but a report: printed, formatted, put into a table of numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.mentions import mentions
from mllint.semantic.values import Text
from mllint.syntax.shape import dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NUMBER_ATTRIBUTES = frozenset({"item", "data", "detach", "tolist", "numpy", "cpu"})
_REPORTS = frozenset({"float", "int", "round", "print", "str", "format", "info", "debug", "warning", "add_scalar"})


def is_only_reported(model: "Model", key: str, reads: Sequence[cst.BaseExpression], *, is_table: bool = False) -> bool:
    """Whether what some places read is taken for a number at each of them; where nobody reads it, nothing is known.

    Nor is it where it is only bound anew: ``total = total / count``. ``is_table``: it is a list into which a total was
    put.
    """
    read = [node for node in reads if not _is_bound_anew(model, key, node)]
    return bool(read) and all(_reads_number(model, key, node, is_table=is_table) for node in read)


def _is_bound_anew(model: "Model", key: str, node: cst.BaseExpression) -> bool:
    """Whether a place reads a name to bind the same name, of whatever is asked where that is read."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.Assign):
            return all(dotted_path(item.target) == key for item in ancestor.targets)
        if isinstance(ancestor, cst.BaseSmallStatement):
            return isinstance(ancestor, cst.AugAssign) and dotted_path(ancestor.target) == key
    return False


def _reads_number(model: "Model", key: str, node: cst.BaseExpression, *, is_table: bool) -> bool:
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value in _NUMBER_ATTRIBUTES
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.FormattedStringExpression, cst.AssignTarget)):
            return True
        if isinstance(ancestor, cst.Call):
            word = last_word(ancestor.func)
            if word in _REPORTS or (word == "append" and not is_table and _is_put_into_table(model, key, ancestor)):
                return True
        elif isinstance(ancestor, cst.BinaryOperation):
            if isinstance(ancestor.operator, cst.Modulo) and isinstance(model.value(ancestor.left), Text):
                return True
        elif isinstance(ancestor, cst.BaseSmallStatement):
            return False
    return False


def _is_put_into_table(model: "Model", key: str, call: cst.Call) -> bool:
    """Whether a call puts it into a list of the same function that is only reported, too."""
    rows = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(rows, cst.Name) or rows.value == key:
        return False
    scope = model.scope_of(rows)
    if rows.value not in scope.bindings or not scope.is_function:
        return False
    named = mentions(model, rows.value, model.names_in(rows.value, scope))
    reads = [node for node in named if node is not rows and not isinstance(model.tree.parent(node), cst.AssignTarget)]
    return is_only_reported(model, rows.value, reads, is_table=True)
