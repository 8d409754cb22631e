"""Deriving each thing once, also where things are defined by each other."""

from collections.abc import Callable

from mllint.semantic.values import Unfinished, Value

MAX_DEPTH = 50
"""How many expressions, bindings and calls a value may be derived through before it counts as unknown."""
_UNFINISHED = Unfinished()
_NOTHING_UNFINISHED = 1 << 30


class Derivation:
    """What is being derived, in all files of a project: one thing may need others of several files, and they it."""

    def __init__(self) -> None:
        self._active: dict[int, int] = {}
        """What is being derived, and how many things that asked for it are."""
        self._provisional: dict[int, tuple[Value | None, int, object]] = {}
        """What was derived from something unfinished: the value, what it needed, and the thing, to keep its id."""
        self._needs = _NOTHING_UNFINISHED
        """The first of the things being derived that the present one took as unfinished; -1 where it went too deep."""

    def once(self, memo: dict[int, Value | None], thing: object, derive: Callable[[], Value | None]) -> Value | None:
        """What a thing is: from the memo, where it is there by its id, or derived.

        A thing that is defined by itself (a loop variable, a recursive function) adds nothing of its own to what it
        is. What was derived while something that it needs was unfinished is kept only until that is finished.
        """
        key = id(thing)
        if key in memo:
            return memo[key]
        if key in self._provisional:
            value, needs, _ = self._provisional[key]
            self._needs = min(self._needs, needs)
            return value
        if key in self._active:
            self._needs = min(self._needs, self._active[key])
            return _UNFINISHED
        position, provisional = len(self._active), len(self._provisional)
        if position >= MAX_DEPTH:
            self._needs = -1
            return None
        needed_before, self._needs = self._needs, _NOTHING_UNFINISHED
        self._active[key] = position
        try:
            result = derive()
        except BaseException:
            self._drop(provisional)
            self._needs = needed_before
            raise
        finally:
            del self._active[key]
        if position == 0 and isinstance(result, Unfinished):
            result = None
        if position == 0 or (self._needs >= position and not isinstance(result, Unfinished)):
            memo[key] = result
            # What needed this one, and nothing before it, can be derived anew now that it is known.
            self._drop(provisional)
            self._needs = needed_before
        else:
            self._provisional[key] = (result, self._needs, thing)
            self._needs = min(self._needs, needed_before)
        return result

    def _drop(self, kept: int) -> None:
        """Forget the provisional values but for the oldest."""
        while len(self._provisional) > kept:
            self._provisional.popitem()
