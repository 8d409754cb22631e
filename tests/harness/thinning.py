"""Tests that run many times over: some of them in every run, all of them with the slow tests."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

from harness.cases import Case


def thinned(cases: Iterable[Case], *others: Sequence[Any], every: int) -> list[Any]:
    """Parameters for a test: each case with each combination of the others.

    One in ``every`` runs by default, in turn, so that each of the others has its share; the rest has the mark ``slow``.
    All tests of a case run in one process: what is found in it is remembered.
    """
    found = []
    for index, case in enumerate(cases):
        for turn, combination in enumerate(product(*others)):
            marks = [pytest.mark.xdist_group(case.id)]
            if (index + turn) % every:
                marks.append(pytest.mark.slow)
            names = "-".join([case.id, *map(str, combination)])
            found.append(pytest.param(case, *combination, id=names, marks=marks))
    return found
