"""Numbers of which only the sign is known, and what functions of schedules are worth at zero."""

import math
from itertools import product

import pytest

from mllint.semantic.expressions.quantities import (
    IMPOSSIBLE,
    NOT_NEGATIVE,
    POSITIVE,
    UNKNOWN,
    Quantity,
    binary,
    compared,
    either,
    exactly,
    largest,
    negative,
    of_bool,
    rounded,
    smallest,
)

COUNT = exactly(0, is_count=True)
NEGATIVE = negative(POSITIVE)
NUMBERS = (-2.5, -1, -0.5, 0, 0.25, 1, 3)
OPERATIONS = {
    "Add": lambda a, b: a + b,
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Divide": lambda a, b: a / b,
    "FloorDivide": lambda a, b: a // b,
    "Modulo": lambda a, b: a % b,
    "Power": lambda a, b: a**b,
}


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_signs_of_a_result_are_among_those_that_are_told(name: str) -> None:
    for one, other in product(NUMBERS, NUMBERS):
        try:
            result = OPERATIONS[name](one, other)
        except ArithmeticError:
            assert binary(name, exactly(one), exactly(other)) == IMPOSSIBLE
            continue
        if isinstance(result, complex):
            continue
        left, right = (Quantity(frozenset({sign(item)})) for item in (one, other))
        assert sign(result) in binary(name, left, right).signs, (one, other)
        assert binary(name, exactly(one), exactly(other)).number == result
        for choose, chosen in ((smallest, min), (largest, max)):
            assert sign(chosen(one, other)) in choose([left, right]).signs


@pytest.mark.parametrize(("name", "function"), [("LessThan", lambda a, b: a < b), ("Equal", lambda a, b: a == b)])
def test_a_comparison_that_is_decided_is_right(name: str, function: object) -> None:
    for one, other in product(NUMBERS, NUMBERS):
        left, right = (Quantity(frozenset({sign(item)})) for item in (one, other))
        assert compared(name, left, right) in (None, function(one, other))  # type: ignore[operator]


def test_what_a_count_meets_is_not_negative() -> None:
    assert smallest([COUNT, UNKNOWN]).number == 0
    assert smallest([exactly(0), UNKNOWN]).number is None
    assert binary("Divide", COUNT, UNKNOWN).number == 0
    assert compared("GreaterThan", COUNT, UNKNOWN) is False
    assert compared("LessThan", COUNT, UNKNOWN) is None
    assert compared("LessThan", COUNT, POSITIVE) is True


def test_what_is_never_zero() -> None:
    assert binary("Divide", exactly(1), UNKNOWN).is_never_zero
    assert binary("Power", UNKNOWN, COUNT).is_never_zero
    assert binary("Power", POSITIVE, UNKNOWN).is_never_zero
    assert not binary("Add", POSITIVE, UNKNOWN).is_never_zero
    assert not binary("FloorDivide", POSITIVE, POSITIVE).is_never_zero
    assert not binary("Power", COUNT, exactly(-0.5)).is_never_zero
    assert not IMPOSSIBLE.is_never_zero
    assert either([POSITIVE, NEGATIVE]).is_never_zero
    assert not either([POSITIVE, exactly(0)]).is_never_zero
    assert either([IMPOSSIBLE, POSITIVE]).is_never_zero
    assert not rounded(POSITIVE).is_never_zero
    assert rounded(exactly(0.7)).number == 0


def test_truth() -> None:
    assert [of_bool(item).truth for item in (True, False, None)] == [True, False, None]
    assert [item.truth for item in (POSITIVE, NEGATIVE, NOT_NEGATIVE, UNKNOWN, IMPOSSIBLE)] == [
        True,
        True,
        None,
        None,
        None,
    ]


def test_lists_and_unknown_operators_are_no_numbers() -> None:
    several = Quantity(parts=(POSITIVE, POSITIVE))
    assert binary("Multiply", several, exactly(2)) == UNKNOWN
    assert binary("MatrixMultiply", POSITIVE, POSITIVE) == UNKNOWN
    assert compared("In", exactly(1), several) is None
    assert smallest([several]) == UNKNOWN
    assert binary("Multiply", exactly(math.inf), exactly(0)) == UNKNOWN
