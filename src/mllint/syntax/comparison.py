"""What a comparison compares with what, and what takes the place of nothing."""

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from mllint.syntax.shape import dotted_path

_EQUALITY = frozenset({cst.Equal, cst.NotEqual, cst.Is, cst.IsNot})
_MEMBERSHIP = frozenset({cst.In, cst.NotIn})
_NO_LITERALS = frozenset({cst.Name, cst.Attribute, cst.Call, cst.IfExp, cst.Subscript})
_NEVER_TEXT = frozenset({cst.Integer, cst.Float, cst.Tuple, cst.List, cst.Dict, cst.Set, cst.Comparison})
NEGATED = frozenset({cst.NotEqual, cst.IsNot, cst.NotIn})
"""Operators that ask for the opposite."""


class Comparand(NamedTuple):
    """One operand, and those that it is compared with: the other one, or the elements of ``in (...)``."""

    operand: cst.BaseExpression
    others: tuple[cst.BaseExpression, ...]
    operator: cst.BaseCompOp

    @property
    def is_negated(self) -> bool:
        """Whether the comparison holds where the two differ."""
        return self.operator.__class__ in NEGATED

    @property
    def is_membership(self) -> bool:
        """Whether it is ``in`` or ``not in``."""
        return self.operator.__class__ in _MEMBERSHIP

    @property
    def is_identity(self) -> bool:
        """Whether it is ``is`` or ``is not``."""
        return self.operator.__class__ is cst.Is or self.operator.__class__ is cst.IsNot


def may_compare_text(node: cst.Comparison) -> bool:
    """Whether one side may be text and the other is no literal: most comparisons are with numbers or ``None``."""
    return any(
        pair.operand.__class__ in _NO_LITERALS
        and not _is_keyword(pair.operand)
        and not any(other.__class__ in _NEVER_TEXT or _is_keyword(other) for other in pair.others)
        for pair in comparands(node)
    )


def may_compare_numbers(node: cst.Comparison) -> bool:
    """Whether neither side is text, ``None`` or a truth value; of a chain nothing is said.

    Nor is it the test for NaN: a name that is compared with itself.
    """
    left, right = node.left, node.comparisons[0].comparator
    if len(node.comparisons) > 1:
        return True
    if left.__class__ is right.__class__ is cst.Name and left.value == right.value:
        return False
    return not any(side.__class__ is cst.SimpleString or _is_keyword(side) for side in (left, right))


def _is_keyword(node: cst.BaseExpression) -> bool:
    return node.__class__ is cst.Name and node.value in ("None", "True", "False")


def comparands(node: cst.Comparison) -> Iterator[Comparand]:
    """The operands of a comparison for equality, identity or membership in a display; none of a chain."""
    if len(node.comparisons) != 1:
        return
    operator, right = node.comparisons[0].operator, node.comparisons[0].comparator
    if operator.__class__ in _EQUALITY:
        yield Comparand(node.left, (right,), operator)
        yield Comparand(right, (node.left,), operator)
    elif operator.__class__ in _MEMBERSHIP and isinstance(right, (cst.Tuple, cst.List, cst.Set)):
        others = tuple(element.value for element in right.elements if isinstance(element, cst.Element))
        if others and len(others) == len(right.elements):
            yield Comparand(node.left, others, operator)


class OrDefault(NamedTuple):
    """What somebody may have given, and what stands for it where that is nothing."""

    given: cst.BaseExpression
    default: cst.BaseExpression


def or_default(node: cst.BaseExpression) -> OrDefault | None:
    """The parts of ``x or y``, ``x if x else y``, ``x if x is not None else y`` and these the other way round."""
    kind = node.__class__  # `isinstance` of an abstract class is slow, and most expressions are neither
    if kind is cst.BooleanOperation:
        is_or = node.operator.__class__ is cst.Or  # type: ignore[attr-defined]
        return OrDefault(node.left, node.right) if is_or else None  # type: ignore[attr-defined]
    if kind is not cst.IfExp:
        return None
    assert isinstance(node, cst.IfExp)
    given, default = node.body, node.orelse
    match node.test:
        case cst.UnaryOperation(operator=cst.Not(), expression=asked):
            given, default = default, given
        case cst.Comparison(
            left=asked,
            comparisons=[
                cst.ComparisonTarget(operator=cst.Is() | cst.IsNot() as operator, comparator=cst.Name(value="None"))
            ],
        ):
            given, default = (given, default) if isinstance(operator, cst.IsNot) else (default, given)
        case asked:
            pass
    path = dotted_path(asked)
    return OrDefault(given, default) if path is not None and path == dotted_path(given) else None
