"""Tests that run many times over: some of them in every run, all of them with the slow tests."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

from harness.cases import Case

ONE_OF_THOROUGH = 82
"""Of how many that are alike one runs before a change is accepted; 41, a prime, is in step with no ``every``."""


def thinned(cases: Iterable[Case], *others: Sequence[Any], every: int, in_turn: bool = False) -> list[Any]:
    """Parameters for a test: each case with each combination of the others, or with one of them, ``in_turn``.

    One in ``every`` runs by default, in turn, so that each of the others has its share; the rest has the mark ``slow``,
    nearly all of them ``thorough``, too: those are for who has changed what they are about.
    All tests of a case run in one process: what is found in it is remembered.
    """
    found = []
    combinations = list(product(*others))
    for index, case in enumerate(cases):
        place = index % len(combinations)
        for turn, combination in enumerate(combinations[place : place + 1] if in_turn else combinations):
            marks, number = [pytest.mark.xdist_group(case.id)], index + turn
            if number % every:
                marks.append(pytest.mark.slow)
                if number % ONE_OF_THOROUGH:
                    marks.append(pytest.mark.thorough)
            names = "-".join([case.id, *map(str, combination)])
            found.append(pytest.param(case, *combination, id=names, marks=marks))
    return found
