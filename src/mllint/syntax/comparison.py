"""What a comparison compares with what."""

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

_EQUALITY = frozenset({cst.Equal, cst.NotEqual, cst.Is, cst.IsNot})
_MEMBERSHIP = frozenset({cst.In, cst.NotIn})
_NEGATED = (cst.NotEqual, cst.IsNot, cst.NotIn)


class Comparand(NamedTuple):
    """One operand, and those that it is compared with: the other one, or the elements of ``in (...)``."""

    operand: cst.BaseExpression
    others: tuple[cst.BaseExpression, ...]
    operator: cst.BaseCompOp

    @property
    def is_negated(self) -> bool:
        """Whether the comparison holds where the two differ."""
        return isinstance(self.operator, _NEGATED)

    @property
    def is_membership(self) -> bool:
        """Whether it is ``in`` or ``not in``."""
        return self.operator.__class__ in _MEMBERSHIP

    @property
    def is_identity(self) -> bool:
        """Whether it is ``is`` or ``is not``."""
        return isinstance(self.operator, (cst.Is, cst.IsNot))


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
