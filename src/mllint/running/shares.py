"""How much work there is, and how many processes it is worth."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from mllint.running.runner import Task

BYTES_A_PROCESS = 300_000
"""How much source another process has to have to do before it is worth starting."""


class Share(msgspec.Struct, frozen=True):
    """A task that is to be done: what its outcome is called, how much work it is, and to which project it belongs."""

    index: int
    task: Task
    size: int
    group: str


def processes_for(shares: Sequence[Share], jobs: int | None) -> int:
    """How many processes to use; 1 is none but this one.

    ``jobs`` is how many were asked for; ``None`` leaves it to the machine and to what there is to do. A process that
    is itself one of a pool starts no further ones unless it is told to.
    """
    if jobs is None:
        jobs = 1 if _is_one_of_a_pool() else cores()
        jobs = min(jobs, sum(share.size for share in shares) // BYTES_A_PROCESS)
    return max(1, min(jobs, len(shares)))


def cores() -> int:
    """How many cores this process may use."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        count = os.cpu_count() or 1
    # A container may see all cores of its machine and be given the time of a few.
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
        quota, period = file.read().split()
        count = min(count, max(1, round(int(quota) / int(period))))
    return count


def _is_one_of_a_pool() -> bool:
    # Not imported for the question: in a process of a pool it is there.
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
