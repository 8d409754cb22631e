"""Running a function over many items so that a hang or a dying process costs one item only."""

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import FrameType
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


class TimeLimitError(BaseException):
    """Raised inside the work when its time is up; no ``except Exception`` can swallow it."""


class ProcessDied:
    """Stands for the value of an item whose process ended without an answer."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitError` in the block after so many seconds (main thread, POSIX)."""

    def expire(signal_number: int, frame: FrameType | None) -> None:
        raise TimeLimitError

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def run_each(function: Callable[[Item], Value], items: Sequence[Item], jobs: int) -> Iterator[Value | ProcessDied]:
    """The function's value for each item, in order; `ProcessDied` where the process died.

    ``function`` and the items must be picklable.
    """
    pending = list(items)
    while pending:
        done = 0
        with ProcessPoolExecutor(jobs) as pool, contextlib.suppress(BrokenProcessPool):
            for future in [pool.submit(function, item) for item in pending]:
                yield future.result()
                done += 1
        pending = pending[done:]
        if pending:
            # Some item broke the pool, not surely this one: alone, it shows.
            with ProcessPoolExecutor(1) as pool:
                try:
                    yield pool.submit(function, pending[0]).result()
                except BrokenProcessPool:
                    yield ProcessDied()
            pending = pending[1:]
