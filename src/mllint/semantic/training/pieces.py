"""Data that a loop over numbers takes piece by piece: ``x[start : start + size]``, ``get_batch(x, start)``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.values import functions_of
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import dotted_path, integer_literal, last_word
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo


def is_piecewise(node: cst.For) -> bool:
    """Whether a loop runs over numbers, and takes the data piece by piece, if at all."""
    behind = run_over(node.iter)
    return isinstance(behind, cst.Call) and last_word(behind.func) in ("range", "trange", "xrange", "count")


def is_fed_piece(model: "Model", node: cst.For, part: cst.BaseExpression) -> bool:
    """Whether a loop that counts takes the data piece by piece, ``inputs[start : start + size]``, or all of it one by
    one: ``inputs[i]`` in a loop over ``range(len(inputs))``.
    """
    if not is_piecewise(node):
        return False
    return _is_piece(model, part, _pieces(model, node)[0]) or _is_element(part, node)


def pieces_of(model: "Model", node: cst.For) -> set[str]:
    """In a loop that counts: the names of the pieces of data that its numbers cut out."""
    return set(_pieces(model, node)[1])


def _pieces(model: "Model", node: cst.For) -> tuple[set[str], set[str]]:
    """In a loop that counts: the names of its numbers, and those of the pieces of data that they cut out."""
    known = model.runs.pieces
    if id(node) not in known:
        counted, pieces = names_in(node.target), set[str]()
        for statement in subtree(node.body):
            if type(statement) is cst.Assign:
                bound = {name for target in statement.targets for name in names_in(target.target)}
                if _is_piece(model, statement.value, counted) or _is_element(statement.value, node):
                    pieces |= bound
                elif counted & names_in(statement.value) and _is_arithmetic(statement.value):
                    counted |= bound
        known[id(node)] = counted, pieces
    return known[id(node)]


def _is_piece(model: "Model", node: cst.BaseExpression, counted: set[str]) -> bool:
    """Whether an expression has a slice of several rows between numbers of a loop, or a function that cuts one out."""
    parts = list(subtree(node))
    return _has_slice(parts, counted) or any(
        type(item) is cst.Call and bool(counted & names_in(item)) and _cuts_out(model, item, counted) for item in parts
    )


def _has_slice(parts: list[cst.CSTNode], counted: set[str]) -> bool:
    return any(
        (type(item) is cst.Subscript and _is_slice_of_rows(item.slice[0].slice, counted))
        or (type(item) is cst.Call and _is_narrowed(item, counted))
        for item in parts
    )


def _is_narrowed(call: cst.Call, counted: set[str]) -> bool:
    """Whether a call cuts several rows out of a tensor from a number of a loop on: ``x.narrow(0, start, 16)``."""
    if last_word(call.func) != "narrow" or not isinstance(call.func, cst.Attribute) or len(call.args) != 3:
        return False
    dim, start, length = (arg.value for arg in call.args)
    return integer_literal(dim) == 0 and bool(counted & names_in(start)) and integer_literal(length) != 1


def _cuts_out(model: "Model", call: cst.Call, counted: set[str]) -> bool:
    """Whether a function of the project gives back what it cuts out between the numbers that a call gives it."""
    return any(
        _gives_slices(function.definition, given)
        for function in functions_of(model.value(call.func))
        if (given := _counted_parameters(function.definition, call, counted, int(function.receiver is not None)))
    )


def _counted_parameters(info: "FunctionInfo", call: cst.Call, counted: set[str], skipped: int) -> set[str]:
    """The parameters of a function for which a call gives numbers of a loop."""
    given = [given_to(info, call, arg, skipped) for arg in call.args if counted & names_in(arg.value)]
    return {parameter.name.value for parameter in given if parameter is not None}


def _gives_slices(info: "FunctionInfo", counted: set[str]) -> bool:
    """Whether a function returns slices of several rows between what it is given as numbers."""
    slices: set[str] = set()
    for statement in subtree(info.node.body):
        if type(statement) is cst.Assign:
            bound = {name for target in statement.targets for name in names_in(target.target)}
            if _has_slice(list(subtree(statement.value)), counted) or slices & names_in(statement.value):
                slices |= bound
            elif counted & names_in(statement.value) and _is_arithmetic(statement.value):
                counted = counted | bound
        elif type(statement) is cst.Return and statement.value is not None:
            parts = list(subtree(statement.value))
            returned = _has_slice(parts, counted) or bool(slices & names_in(statement.value))
            if returned:
                return True
    return False


def _is_element(node: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether an expression has ``inputs[i]``, in a loop over the numbers of all its elements.

    One step of a sequence is no data of its own: what is made of it goes into the next one, ``x = net(inputs[i] + x)``.
    """
    whole = _counted_whole(loop.iter)
    if whole is None or not isinstance(loop.target, cst.Name) or not _has_element(node, loop.target, whole):
        return False
    return not any(
        type(item) is cst.Assign
        and _has_element(item.value, loop.target, whole)
        and any(names_in(target.target) & names_in(item.value) for target in item.targets)
        for item in subtree(loop.body)
    )


def _has_element(node: cst.BaseExpression, number: cst.Name, whole: str) -> bool:
    return any(
        type(item) is cst.Subscript
        and isinstance(index := item.slice[0].slice, cst.Index)
        and isinstance(index.value, cst.Name)
        and index.value.value == number.value
        and dotted_path(item.value) == whole
        for item in subtree(node)
    )


def _counted_whole(iterable: cst.BaseExpression) -> str | None:
    """What a loop counts the elements of: ``inputs`` of ``range(len(inputs))``."""
    behind = run_over(iterable)
    if not isinstance(behind, cst.Call) or len(behind.args) != 1:
        return None
    length = behind.args[0].value
    is_length = isinstance(length, cst.Call) and dotted_path(length.func) == "len" and len(length.args) == 1
    return dotted_path(length.args[0].value) if is_length else None  # type: ignore[attr-defined]


def _is_slice_of_rows(index: cst.BaseSlice, counted: set[str]) -> bool:
    if type(index) is not cst.Slice or index.lower is None or index.upper is None:
        return False
    upper = index.upper
    is_one_row = isinstance(upper, cst.BinaryOperation) and integer_literal(upper.right) == 1
    return not is_one_row and bool(counted & names_in(index))


def _is_arithmetic(node: cst.BaseExpression) -> bool:
    """Whether an expression is made of numbers: ``start + size``, ``min(start + size, total)``."""
    return all(
        isinstance(item.func, cst.Name) and item.func.value in ("min", "max", "int", "len")
        for item in subtree(node)
        if type(item) is cst.Call
    )
