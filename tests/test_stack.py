"""Calls in depth cost no memory mappings, whatever depth a loop stands at."""

import resource
from collections.abc import Callable

import pytest

from mllint.running.stack import with_room

CALLS = 500


def _leaf(number: int) -> int:
    return number + 1


def _faults_at(depth: int) -> int:
    """How many pages a loop of calls took from the system that stands so deep in calls."""
    if depth:
        return _faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for number in range(CALLS):
        _leaf(number)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _at_each_depth(faults: Callable[[int], int]) -> int:
    return max(faults(depth) for depth in range(250))


def test_a_loop_at_the_end_of_a_piece_of_stack_maps_no_memory() -> None:
    if _at_each_depth(_faults_at) < CALLS / 2:
        pytest.skip("this interpreter maps none either way")
    assert with_room(_at_each_depth)(_faults_at) < CALLS / 10


def test_what_is_called_is_what_it_was() -> None:
    @with_room
    def halved(number: int, *, by: int = 2) -> float:
        """Half of it."""
        return number / by

    assert halved.__name__ == "halved"
    assert halved.__doc__ == "Half of it."
    assert halved(6, by=3) == 2
    with pytest.raises(ZeroDivisionError):
        halved(1, by=0)
