"""What an expression is computed from, by its spelling alone."""

import libcst as cst

from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import children

_SAME_GRAPH = frozenset({"mean", "sum", "float", "double", "cpu", "clone", "squeeze", "view", "to"})


def operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The names and dotted paths whose graph an expression shares: operands, and receivers of reductions."""
    match node:
        case cst.Name() | cst.Attribute() if dotted_path(node) is not None:
            return [node]
        case cst.BinaryOperation():
            return [*operands(node.left), *operands(node.right)]
        case cst.UnaryOperation():
            return operands(node.expression)
        case cst.Subscript():
            return operands(node.value)
        case cst.Call(func=cst.Attribute() as callee) if callee.attr.value in _SAME_GRAPH:
            return operands(callee.value)
    return []


def paths_in(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The names and dotted paths in an expression, with the shorter paths that they begin with."""
    found: list[cst.BaseExpression] = []
    pending: list[cst.CSTNode] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.Arg):
            pending.append(current.value)  # the keyword is no name of the scope
        elif isinstance(current, cst.Attribute):
            found += [] if dotted_path(current) is None else [current]
            pending.append(current.value)  # the last name is no name of the scope
        elif isinstance(current, cst.Name):
            found.append(current)
        else:
            pending.extend(children(current))
    return found


def names_in(node: cst.CSTNode) -> list[cst.Name]:
    """The names of the scope that an expression reads."""
    return [path for path in paths_in(node) if isinstance(path, cst.Name)]
