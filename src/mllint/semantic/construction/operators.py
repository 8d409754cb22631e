"""Operators, comparisons and truth of the abstract values of ``parts``."""

import operator
from collections.abc import Callable
from typing import Any

import libcst as cst

from mllint.semantic.construction.parts import UNKNOWN, Bound, Closure, Entries, Items, Mark, Part
from mllint.semantic.values import ClassObject, Function, Symbol

MAX_LENGTH = 2_000
"""Longest string or list that is computed."""


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; ``None`` when that is not known."""
    match value:
        case None | bool() | int() | float() | str() | tuple():
            return bool(value)
        case Items() | Entries():
            return True if value.values else None if value.is_open else False
        case Part() | ClassObject() | Function() | Symbol() | Closure() | Mark.OBJECT:
            # An empty container is false.
            return None if isinstance(value, Part) and value.container is not None else True
    return None


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are surely alike."""
    return one is other or (type(one) is type(other) and isinstance(one, (int, float, str, tuple)) and one == other)


_ARITHMETIC: dict[type[cst.BaseBinaryOp], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Divide: operator.truediv,
    cst.Modulo: operator.mod,
}


def binary(kind: cst.BaseBinaryOp, left: Any, right: Any) -> Any:
    """The result of an operator on two values."""
    if isinstance(left, Items) or isinstance(right, Items):
        return _list_operation(kind, left, right)
    if isinstance(kind, cst.Power):
        small = isinstance(left, (int, float)) and isinstance(right, int) and 0 <= right <= 32 and abs(left) < 1e6
        return left**right if small else UNKNOWN
    operation = _ARITHMETIC.get(type(kind))
    known = (int, float, str, tuple)
    if operation is None or not isinstance(left, known) or not isinstance(right, known):
        return UNKNOWN
    if (
        isinstance(kind, cst.Modulo)
        and isinstance(left, str)
        and UNKNOWN in (right if isinstance(right, tuple) else ())
    ):
        return UNKNOWN
    if isinstance(kind, cst.Multiply) and not _is_short(left, right):
        return UNKNOWN
    try:
        return operation(left, right)
    except (TypeError, ValueError, ArithmeticError):
        return UNKNOWN


def _is_short(left: Any, right: Any) -> bool:
    if isinstance(left, (str, tuple)):
        return isinstance(right, int) and len(left) * right <= MAX_LENGTH
    if isinstance(right, (str, tuple)):
        return isinstance(left, int) and len(right) * left <= MAX_LENGTH
    return bool(abs(left) < 1e15 and abs(right) < 1e15)


def _list_operation(kind: cst.BaseBinaryOp, left: Any, right: Any) -> Any:
    if isinstance(kind, cst.Add) and isinstance(left, Items) and isinstance(right, Items):
        return Items([*left.values, *right.values], left.is_open or right.is_open)
    if isinstance(kind, cst.Multiply):
        items, times = (left, right) if isinstance(left, Items) else (right, left)
        if isinstance(times, int) and len(items.values) * times <= MAX_LENGTH:
            return Items(items.values * times, items.is_open)
    return Items(is_open=True)


_ORDER: dict[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}


def compared(kind: cst.BaseCompOp, left: Any, right: Any) -> bool | None:
    """Whether a comparison holds; ``None`` when that is not known."""
    if UNKNOWN in (left, right):
        return None
    if isinstance(kind, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
        same = _equal(left, right)
        return same if same is None or isinstance(kind, (cst.Is, cst.Equal)) else not same
    if isinstance(kind, (cst.In, cst.NotIn)):
        held = _contains(right, left)
        return held if held is None or isinstance(kind, cst.In) else not held
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    return _ORDER[type(kind)](left, right) if type(kind) in _ORDER and numbers else None


def _equal(left: Any, right: Any) -> bool | None:
    plain = (int, float, str, bool, type(None))
    if isinstance(left, plain) and isinstance(right, plain):
        return bool(left == right)
    if left is None or right is None:
        other = right if left is None else left
        return None if isinstance(other, (Mark, Bound)) and other is not Mark.OBJECT else False
    if isinstance(left, (ClassObject, Symbol)) and isinstance(right, (ClassObject, Symbol)):
        return left == right
    return None


def _contains(holder: Any, wanted: Any) -> bool | None:
    if isinstance(holder, str):
        return wanted in holder if isinstance(wanted, str) else None
    if not isinstance(holder, (tuple, Items, Entries)) or not isinstance(wanted, (str, int, float)):
        return None
    values = list(holder) if isinstance(holder, tuple) else list(holder.values)
    if wanted in [value for value in values if isinstance(value, (str, int, float))]:
        return True
    plain = all(isinstance(value, (str, int, float)) or value is None for value in values)
    return False if plain and not (isinstance(holder, (Items, Entries)) and holder.is_open) else None
