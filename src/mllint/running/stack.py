"""Room on the interpreter's stack: a model asks deeply, and at the end of a piece of stack each call would cost one."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SLOTS = 1 << 16
"""Half a megabyte of addresses, which nothing touches: CPython takes twice that, and the rest is what calls live on."""


def with_room(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function``, with all that it calls on one piece of stack.

    CPython (3.11 and newer) keeps the frames of Python calls in pieces of 16 KB. It asks the system for one when a call
    does not fit into the last, and gives it back when that call returns. Where a loop calls from just below such an
    end, every round maps and unmaps memory: 66,000 times, and a tenth of the time, on a tree of 1,000 files. A frame
    that asks for more than a piece gets a larger one, so the caller here says that it may need a deep stack.
    """

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return function(*args, **kwargs)

    if sys.implementation.name == "cpython":
        call.__code__ = call.__code__.replace(co_stacksize=_SLOTS)
    return wraps(function)(call)
