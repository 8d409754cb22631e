"""What a loop runs over, behind the functions that hand on what they are given: ``enumerate(tqdm(zip(a, b)))``."""

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from mllint.syntax.shape import argument, last_word

_OF_PYTHON = frozenset({"iter", "list", "tuple", "set", "frozenset", "sorted", "reversed"})
"""Builtins whose result has the elements of what they are given. As the name of a method they mean something else."""
_OF_LIBRARIES = frozenset({
    "chain", "cycle", "deque", "islice", "progressbar", "tqdm", "tqdm_notebook", "track",
})  # fmt: skip
"""The same of ``itertools``, ``collections``, tqdm, rich and progressbar2, imported in one way or the other."""


class Source(NamedTuple):
    """One of the things that are run over, and where its elements are in what the loop gets.

    ``for i, (x, y) in enumerate(zip(xs, ys))`` has ``xs`` at ``(1, 0)`` and ``ys`` at ``(1, 1)``.
    """

    node: cst.BaseExpression
    path: tuple[int, ...] = ()


def sources(iterable: cst.BaseExpression) -> Iterator[Source]:
    """All that is run over, behind what hands it on; the iterable itself where nothing does."""
    given = list(_given(iterable)) if isinstance(iterable, cst.Call) else []
    if not given:
        yield Source(iterable)
    for arg, path in given:
        for source in sources(arg.value):
            yield Source(source.node, path + source.path)


def run_over(iterable: cst.BaseExpression) -> cst.BaseExpression:
    """The one thing that is run over, behind what hands it on; where ``zip`` or ``chain`` join several, that call."""
    while isinstance(iterable, cst.Call):
        given = [arg.value for arg, _ in _given(iterable)]
        if len(given) != 1:
            break
        iterable = given[0]
    return iterable


def handed_on(call: cst.Call, arg: cst.Arg) -> tuple[int, ...] | None:
    """Where the elements of an argument are in those of a call: ``(1,)`` of ``enumerate(xs)``.

    ``None`` where the call does not hand them on.
    """
    return next((path for item, path in _given(call) if item is arg), None)


def _given(call: cst.Call) -> Iterator[tuple[cst.Arg, tuple[int, ...]]]:
    word = last_word(call.func)
    is_builtin = call.func.__class__ is cst.Name
    if word in _OF_LIBRARIES or (is_builtin and (word in _OF_PYTHON or word == "enumerate")):
        first = argument(call, 0, "iterable")
        if word == "chain":
            yield from ((arg, ()) for arg in call.args if not arg.star)
        elif first is not None and not first.star:
            yield first, (1,) if word == "enumerate" else ()
    elif is_builtin and word == "zip" and not any(arg.star for arg in call.args):
        yield from ((arg, (index,)) for index, arg in enumerate(call.args) if arg.keyword is None)
    elif is_builtin and word == "filter" and len(call.args) == 2:
        yield call.args[1], ()
