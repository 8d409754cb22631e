"""What the function of a ``LambdaLR`` counts: it divides the number of steps by that of epochs, or of batches."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import libcst as cst

from mllint.semantic.events.makers import Made
from mllint.semantic.events.things import Frame
from mllint.semantic.training.first_factors import factors
from mllint.syntax.shape import constant, integer_literal
from mllint.syntax.walk import names_in, subtree

_OF_STEPS = re.compile(r"step|batch|iter|^(?:it|i|n|t|s)$", re.IGNORECASE)
"""How functions call a number of steps."""


class Share(NamedTuple):
    """What a function divides the number of steps by, and the run in which the function is written."""

    home: Frame
    number: cst.BaseExpression


def shares(made: Made, node: cst.BaseExpression) -> list[Share]:
    """What the functions that a scheduler is given divide the number of steps by; none where one is not known."""
    found = factors(made, node) or []
    return [Share(home, number) for home, count, body in found for number in _divisors(count, body)]


def _divisors(count: str, body: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for part in subtree(body):
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, (cst.Divide, cst.FloorDivide)):
            # Of `(epoch * len(loader) + batch) / total` nobody knows what it counts.
            names = names_in(part.left)
            if count in names and "len" not in names and not any(map(_is_product, subtree(part.left))):
                yield part.right


def _is_product(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply)


def falls_by(made: Made, node: cst.BaseExpression, is_fast: Callable[[float], bool]) -> bool:
    """Whether each function that a scheduler is given is a number to the power of the steps that falls so fast."""
    found = factors(made, node)
    # `lambda step: 0.99 ** step` says itself that it counts no epochs.
    return (
        bool(found)
        and not any(_OF_STEPS.search(count) for _, count, _ in found or ())
        and all(_falls(count, body, is_fast) for _, count, body in found or ())
    )


def _falls(count: str, body: cst.CSTNode, is_fast: Callable[[float], bool]) -> bool:
    power = body
    if not isinstance(power, cst.BinaryOperation) or not isinstance(power.operator, cst.Power):
        return False
    factor, exponent, every = constant(power.left), power.right, 1
    if isinstance(exponent, cst.BinaryOperation) and isinstance(exponent.operator, cst.FloorDivide):
        every, exponent = integer_literal(exponent.right) or 0, exponent.left
    is_counted = isinstance(exponent, cst.Name) and exponent.value == count and every > 0
    return is_counted and isinstance(factor, float) and 0 < factor < 1 and is_fast(factor ** (1 / every))
