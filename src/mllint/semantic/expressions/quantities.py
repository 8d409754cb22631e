"""What is known of a number: which signs it may have, and its value where that is known.

Every operation gives all signs that the result may have. No sign at all: the operation raises.
"""

import math
import operator
from collections.abc import Callable, Iterable

import msgspec

_ANY = frozenset({-1, 0, 1})


class Quantity(msgspec.Struct, frozen=True):
    """A number, or a list of some (``parts``). ``is_count``: it is worked out from what counts up from zero."""

    signs: frozenset[int] = _ANY
    number: float | None = None
    is_count: bool = False
    parts: "tuple[Quantity, ...] | None" = None

    @property
    def is_never_zero(self) -> bool:
        """Whether this is a number, and surely not zero."""
        return bool(self.signs) and 0 not in self.signs

    @property
    def truth(self) -> bool | None:
        """What it comes out as in a test; ``None``: it cannot be told."""
        return None if self.signs not in (_ZERO, _POSITIVE, _NEGATIVE, _POSITIVE | _NEGATIVE) else self.signs != _ZERO


_ZERO, _POSITIVE, _NEGATIVE = frozenset({0}), frozenset({1}), frozenset({-1})
UNKNOWN = Quantity()
POSITIVE = Quantity(_POSITIVE)
NOT_NEGATIVE = Quantity(_ZERO | _POSITIVE)
IMPOSSIBLE = Quantity(frozenset())


def exactly(number: float, *, is_count: bool = False) -> Quantity:
    """A number that is known."""
    return Quantity(frozenset({_sign(number)}), number, is_count)


def of_bool(truth: bool | None) -> Quantity:
    """The outcome of a test, as a number."""
    return NOT_NEGATIVE if truth is None else exactly(int(truth))


def either(several: Iterable[Quantity]) -> Quantity:
    """One of several; nobody knows which."""
    found = list(several)
    if not found or all(item == found[0] for item in found):
        return found[0] if found else IMPOSSIBLE
    signs = frozenset[int]().union(*(item.signs for item in found))
    return Quantity(signs, None, any(item.is_count for item in found))


def binary(name: str, left: Quantity, right: Quantity) -> Quantity:
    """The result of an operator, by the name of its node: ``Add``, ``Multiply``, ``FloorDivide``, ...

    What a count is divided by is a duration, or a part of one: it is not negative.
    """
    rule = _SIGNS.get(name)
    if rule is None or left.parts is not None or right.parts is not None:
        return UNKNOWN
    if name in _DIVISIONS:
        right = _duration(right, left)
    known = _compute(_EXACT[name], left, right)
    if known is not None:
        return known
    signs = frozenset[int]().union(*(rule(one, other) for one in left.signs for other in right.signs))
    return _with(signs, left, right)


def smallest(several: list[Quantity]) -> Quantity:
    """The result of ``min``: what caps a count is a duration."""
    capped = [_duration(item, *(other for other in several if other is not item)) for item in several]
    return _chosen(min, capped)


def largest(several: list[Quantity]) -> Quantity:
    """The result of ``max``."""
    return _chosen(max, several)


def negative(item: Quantity) -> Quantity:
    """The result of ``-x``."""
    return binary("Multiply", exactly(-1), item)


def compared(name: str, left: Quantity, right: Quantity) -> bool | None:
    """The outcome of a comparison, by the name of its node: ``LessThan``, ``Equal``, ...

    What a count is compared with is a duration: it is not negative.
    """
    compare = _COMPARISONS.get(name)
    if compare is None or left.parts is not None or right.parts is not None:
        return None
    left, right = _duration(left, right), _duration(right, left)
    if left.number is not None and right.number is not None:
        return compare(left.number, right.number)
    outcomes = {
        compare(one, other) if one != other or one == 0 else None for one in left.signs for other in right.signs
    }
    return outcomes.pop() if len(outcomes) == 1 else None


def rounded(item: Quantity) -> Quantity:
    """A number without its fraction."""
    if item.number is not None:
        return exactly(int(item.number), is_count=item.is_count)
    return Quantity(item.signs | _ZERO if item.signs else item.signs, None, item.is_count)


def _duration(item: Quantity, *others: Quantity) -> Quantity:
    """What a number is that meets others: one that a count is compared with, capped or divided by is not negative."""
    is_met = any(other.is_count for other in others)
    return NOT_NEGATIVE if is_met and not item.is_count and item.signs == _ANY else item


def _with(signs: frozenset[int], *sources: Quantity) -> Quantity:
    return Quantity(signs, 0 if signs == _ZERO else None, any(item.is_count for item in sources))


def _chosen(choose: Callable[[Iterable[float]], float], several: list[Quantity]) -> Quantity:
    if not several or any(item.parts is not None for item in several):
        return UNKNOWN
    numbers = [item.number for item in several if item.number is not None]
    if len(numbers) == len(several):
        return exactly(choose(numbers), is_count=any(item.is_count for item in several))
    signs = several[0].signs
    for item in several[1:]:
        signs = frozenset(int(choose((one, other))) for one in signs for other in item.signs)
    return _with(signs, *several)


def _compute(function: Callable[[float, float], float], left: Quantity, right: Quantity) -> Quantity | None:
    if left.number is None or right.number is None:
        return None
    try:
        result = function(left.number, right.number)
    except ArithmeticError:
        return IMPOSSIBLE
    if isinstance(result, complex) or math.isnan(result):
        return UNKNOWN
    return exactly(result, is_count=left.is_count or right.is_count)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


# -- the signs of a result, by those of the operands -------------------------------------------------------------------


def _add(one: int, other: int) -> frozenset[int]:
    return _ANY if one * other < 0 else frozenset({_sign(one + other)})


def _subtract(one: int, other: int) -> frozenset[int]:
    return _add(one, -other)


def _multiply(one: int, other: int) -> frozenset[int]:
    return frozenset({one * other})


def _divide(one: int, other: int) -> frozenset[int]:
    return frozenset({one * other}) if other else frozenset()


def _floor_divide(one: int, other: int) -> frozenset[int]:
    if not other:
        return frozenset()
    return frozenset({0, 1}) if one * other > 0 else frozenset({one * other})


def _modulo(one: int, other: int) -> frozenset[int]:
    if not other:
        return frozenset()
    return frozenset({0, other}) if one else _ZERO


def _power(one: int, other: int) -> frozenset[int]:
    if other == 0 or one > 0:
        return _POSITIVE
    if one == 0:
        return _ZERO if other > 0 else frozenset()
    return frozenset({-1, 1})


_SIGNS: dict[str, Callable[[int, int], frozenset[int]]] = {
    "Add": _add, "Subtract": _subtract, "Multiply": _multiply, "Divide": _divide, "FloorDivide": _floor_divide,
    "Modulo": _modulo, "Power": _power,
}  # fmt: skip
_EXACT: dict[str, Callable[[float, float], float]] = {
    "Add": operator.add, "Subtract": operator.sub, "Multiply": operator.mul, "Divide": operator.truediv,
    "FloorDivide": operator.floordiv, "Modulo": operator.mod, "Power": operator.pow,
}  # fmt: skip
_DIVISIONS = ("Divide", "FloorDivide", "Modulo")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "LessThan": operator.lt, "LessThanEqual": operator.le, "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge, "Equal": operator.eq, "NotEqual": operator.ne,
}  # fmt: skip
