"""Deriving each thing once, also where things are defined by each other."""

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from mllint.semantic.values import Unfinished, Value

_Key = TypeVar("_Key", bound=Hashable)
_Thing = TypeVar("_Thing")
MAX_DEPTH = 100
"""How many expressions, bindings and calls a value is derived through before what is deeper is derived first."""
MAX_DESCENTS = 10
"""How often that may be before a value counts as unknown."""
MAX_ROUNDS = 5
"""How often things that are defined by each other are derived before they count as unknown."""
_Deep: TypeAlias = tuple[dict[Any, Value | None], Any, Callable[[Any], Value | None]]
_UNFINISHED = Unfinished()
_NOTHING_UNFINISHED = 1 << 30


class Derivation:
    """What is being derived, in all files of a project: one thing may need others of several files, and they it.

    Things that need each other (the variables of a loop, recursive functions) are derived in rounds: first each is
    taken for something that adds nothing of its own, then for what the round before has found, until nothing changes.
    So it does not matter with which of them one begins. Nor does it how deep a thing lies: what lies too deep is left
    open at first, then derived by itself, and the question is put again.
    """

    def __init__(self) -> None:
        self._active: dict[Hashable, int] = {}
        """What is being derived, and how many things that asked for it are."""
        self._provisional: dict[Hashable, tuple[Value | None, int, object, dict[Any, Value | None]]] = {}
        """What was derived from something unfinished: the value, what it needed, the thing, to keep its id, and where
        it is remembered when it is finished.
        """
        self._assumed: dict[Hashable, Value | None] = {}
        """What the last round found of the things that were asked for while they were unfinished."""
        self._taken: set[Hashable] = set()
        """Those that were in this round."""
        self._too_deep: dict[Hashable, _Deep] = {}
        self._descents = 0
        self._changes = 0
        self._needs = _NOTHING_UNFINISHED
        """The first of the things being derived that the present one took as unfinished; -1 where it went too deep."""

    @property
    def is_active(self) -> bool:
        """Whether something is being derived just now."""
        return bool(self._active)

    def once(
        self, memo: dict[_Key, Value | None], key: _Key, thing: _Thing, derive: Callable[[_Thing], Value | None]
    ) -> Value | None:
        """What a thing is: from the memo, or derived. The key has the id of the thing in it.

        What was derived while something that it needs was unfinished is kept only until that is finished.
        """
        if key in memo:
            return memo[key]
        if key in self._provisional:
            value, needs, _, _ = self._provisional[key]
            self._needs = min(self._needs, needs)
            return value
        if key in self._active:
            self._needs = min(self._needs, self._active[key])
            self._taken.add(key)
            return self._assumed.get(key, _UNFINISHED)
        position = len(self._active)
        if position >= MAX_DEPTH:
            self._needs = -1
            self._too_deep[key] = (memo, thing, derive)
            return None
        needed_before, provisional, assumed = self._needs, len(self._provisional), len(self._assumed)
        is_settled = True
        for _ in range(MAX_ROUNDS):
            self._needs, changes = _NOTHING_UNFINISHED, self._changes
            self._active[key] = position
            try:
                result = derive(thing)
            except BaseException:
                self._drop(provisional, assumed)
                self._needs = needed_before
                raise
            finally:
                del self._active[key]
            if self._needs == _NOTHING_UNFINISHED:
                # As nearly always: nothing was unfinished, and so this was not taken for anything itself.
                memo[key] = result
                self._needs = needed_before
                if len(self._assumed) > assumed:
                    self._drop(provisional, assumed)
                return result
            if key in self._taken:
                self._taken.discard(key)
                if result != self._assumed.get(key, _UNFINISHED):
                    self._assumed[key] = result
                    self._changes += 1
            is_first = position == 0 or self._needs >= position
            if not is_first or self._changes == changes:
                break
            _drop_last(self._provisional, provisional)
        else:
            result, is_settled = None, False
        if position == 0 and isinstance(result, Unfinished):
            result, is_settled = None, False
        if position == 0 or (is_first and not isinstance(result, Unfinished)):
            memo[key] = result
            if is_settled:
                self._settle(provisional, position)
            self._drop(provisional, assumed)
            self._needs = needed_before
        else:
            self._provisional[key] = (result, self._needs, thing, memo)
            self._needs = min(self._needs, needed_before)
        if position == 0 and self._too_deep:
            return self._with_the_deep(memo, key, thing, derive)
        return result

    def _with_the_deep(
        self, memo: dict[_Key, Value | None], key: _Key, thing: _Thing, derive: Callable[[_Thing], Value | None]
    ) -> Value | None:
        """What a thing is when those are known that lie too deep below it."""
        found, self._too_deep = self._too_deep, {}
        if self._descents == MAX_DESCENTS:
            return memo[key]
        del memo[key]  # what lies deep may need it, and must not take it for what it is not
        self._descents += 1
        try:
            for other, (memo_of_other, *deep) in found.items():
                self.once(memo_of_other, other, *deep)
            return self.once(memo, key, thing, derive)
        finally:
            self._descents -= 1

    def _settle(self, provisional: int, position: int) -> None:
        """Remember what needed nothing before the thing at a position: the last round for that has changed nothing.

        What needs something before it, or went too deep, is derived anew.
        """
        for key, (value, needs, _, memo) in islice(self._provisional.items(), provisional, None):
            if needs >= position and not isinstance(value, Unfinished):
                memo[key] = value

    def _drop(self, provisional: int, assumed: int) -> None:
        """Forget what is provisional, but for the oldest."""
        _drop_last(self._provisional, provisional)
        _drop_last(self._assumed, assumed)


def _drop_last(found: dict[Hashable, Any], kept: int) -> None:
    while len(found) > kept:
        found.popitem()
