"""Tests that say what a thing is where they hold, and what it is not where they do not."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import libcst as cst

from mllint.syntax.comparison import comparands
from mllint.syntax.shape import constant, dotted_path

NARROWING = ("isinstance", "is_tensor")
"""The functions whose test says what a thing is."""
_OF_EVERY_TENSOR = frozenset({"item", "detach", "backward", "numpy", "shape", "cpu"})


class Told(NamedTuple):
    """What the outcome of a test says of a key: ``operand`` is the expression that is asked about.

    ``about`` is what it is, or is not where ``holds`` is false: of a ``kind``, a tensor, equal to a number. Nothing is
    told where the ways behind a test have come together again.
    """

    key: str
    operand: cst.BaseExpression
    about: Literal["kind", "tensor", "number", "nothing"]
    holds: bool
    kind: cst.BaseExpression | None = None


def narrowing(test: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """The key that ``isinstance(key, Type)`` or ``is_tensor(key)`` asks about, and the type, or what stands for it."""
    if type(test) is not cst.Call or not test.args:
        return None
    predicate = dotted_path(test.func)
    if predicate is None:
        return None
    key = dotted_path(test.args[0].value)
    if key is None:
        return None
    if predicate == "isinstance" and len(test.args) == 2:
        return key, test.args[1].value
    return (key, test.func) if predicate.rpartition(".")[2] == "is_tensor" and len(test.args) == 1 else None


def told(test: cst.BaseExpression, outcome: bool) -> Iterator[Told]:
    """What is known where a test has turned out one way: of ``a and b`` both hold, of ``a or b`` neither did."""
    kind = test.__class__  # most tests are none of these, and `isinstance` of an abstract class is slow
    if kind is cst.UnaryOperation and test.operator.__class__ is cst.Not:  # type: ignore[attr-defined]
        yield from told(test.expression, not outcome)  # type: ignore[attr-defined]
    elif kind is cst.BooleanOperation:
        if (test.operator.__class__ is cst.And) is outcome:  # type: ignore[attr-defined]
            yield from told(test.left, outcome)  # type: ignore[attr-defined]
            yield from told(test.right, outcome)  # type: ignore[attr-defined]
    elif kind is cst.Call:
        yield from _by_call(test, outcome)  # type: ignore[arg-type]
    elif kind is cst.Comparison:
        yield from _by_comparison(test, outcome)  # type: ignore[arg-type]


def _by_call(test: cst.Call, outcome: bool) -> Iterator[Told]:
    narrowed = narrowing(test)
    if narrowed is not None:
        yield Told(narrowed[0], test.args[0].value, "kind", outcome, narrowed[1])
    elif dotted_path(test.func) == "hasattr" and len(test.args) == 2 and not outcome:
        key = dotted_path(test.args[0].value)
        if key is not None and constant(test.args[1].value) in _OF_EVERY_TENSOR:
            yield Told(key, test.args[0].value, "tensor", holds=False)


def _by_comparison(test: cst.Comparison, outcome: bool) -> Iterator[Told]:
    """``type(x) is Type``, and ``x == 0`` where it holds."""
    for pair in comparands(test):
        if len(pair.others) != 1:
            continue
        operand, other = pair.operand, pair.others[0]
        if operand.__class__ is cst.Call and dotted_path(operand.func) == "type":
            asked = operand.args[0].value if len(operand.args) == 1 else None
            key = None if asked is None else dotted_path(asked)
            if asked is not None and key is not None:
                yield Told(key, asked, "kind", pair.is_negated is not outcome, other)
        elif (other.__class__ is cst.Integer or other.__class__ is cst.Float) and pair.is_negated is not outcome:
            key = dotted_path(operand)
            if key is not None:
                yield Told(key, operand, "number", holds=True)
