"""Sets of state-dict keys of which only a part may be known, and how two of them compare."""

from collections.abc import Callable, Iterable

import msgspec

WRAPPER_PREFIXES = ("module.", "_orig_mod.")
"""What the wrappers of torch put in front of every key."""
# A buffer that old files lack and that a strict load forgives: it may be in a dict, it is never missing.
_FORGIVEN = "num_batches_tracked"
# Stands for whatever comes behind a prefix that is renamed; no key holds it.
_REST = "\0"
_PROBES = ("", *WRAPPER_PREFIXES, "a.", "backbone.layer.")
_MAX_WORDS = 100


class Rename(msgspec.Struct, frozen=True):
    """What some code does to a key: which keys it becomes; ``None``: that is not known.

    ``words`` are the texts in the code, for which it may ask a key.
    """

    of: Callable[[str], tuple[str, ...] | None]
    words: frozenset[str] = frozenset()

    def __call__(self, key: str) -> tuple[str, ...] | None:
        return self.of(key)

    @property
    def probes(self) -> tuple[str, ...]:
        """What keys may begin with that it treats in different ways."""
        words = sorted(self.words)
        return (*_PROBES, *words, *(f"a.{word}." for word in words))


class KeySet(msgspec.Struct, frozen=True):
    """The keys of a state dict.

    ``certain`` are surely in it, ``optional`` may be. ``open`` are prefixes behind which there may be any key (the
    empty prefix: anything at all). ``never`` are prefixes that no key has, whatever ``open`` says.
    """

    certain: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()

    @classmethod
    def of(cls, keys: Iterable[str]) -> "KeySet":
        """The set of exactly these keys (of which those that a load forgives may be absent)."""
        every = frozenset(keys)
        optional = frozenset(key for key in every if key.rpartition(".")[2] == _FORGIVEN)
        return cls(every - optional, optional)

    @property
    def is_closed(self) -> bool:
        """Whether no key can be in it that is not listed."""
        return not self.open

    @property
    def is_empty(self) -> bool:
        """Whether it surely holds no key."""
        return not (self.certain or self.optional or self.open)

    def may_hold(self, key: str) -> bool:
        """Whether the key can be in the set."""
        if key in self.certain or key in self.optional:
            return True
        return any(map(key.startswith, self.open)) and not any(map(key.startswith, self.never))

    def prefixed(self, prefix: str) -> "KeySet":
        """The same keys behind a prefix."""
        parts = (self.certain, self.optional, self.open, self.never)
        return KeySet(*(frozenset(prefix + key for key in part) for part in parts)) if prefix else self

    def __or__(self, other: "KeySet") -> "KeySet":
        """Both together, as when one module holds the two."""
        certain = self.certain | other.certain
        never = {prefix for prefix in self.never if prefix in other.never or not other.may_begin_with(prefix)}
        never |= {prefix for prefix in other.never if not self.may_begin_with(prefix)}
        optional = (self.optional | other.optional) - certain
        return KeySet(certain, optional, self.open | other.open, frozenset(never))

    def either(self, other: "KeySet") -> "KeySet":
        """The keys of the one or of the other, as of a thing that is one of two modules: certain is what both have."""
        both = self | other
        certain = self.certain & other.certain
        return KeySet(certain, (both.certain | both.optional) - certain, both.open, both.never)

    def may_begin_with(self, prefix: str) -> bool:
        """Whether some key can begin with the prefix."""
        if any(key.startswith(prefix) for key in (*self.certain, *self.optional)):
            return True
        return any(self._may_lie_behind(prefix, opened) for opened in self.open)

    def all_begin_with(self, prefix: str) -> bool:
        """Whether every key, of at least one, begins with the prefix."""
        every = (*self.certain, *self.optional, *self.open)
        return bool(every) and all(key.startswith(prefix) for key in every)

    def may_share_keys(self, other: "KeySet") -> bool:
        """Whether some key can be in both."""
        if any(map(other.may_hold, self.certain | self.optional)):
            return True
        if any(map(self.may_hold, other.certain | other.optional)):
            return True
        return any(
            self._may_lie_behind(mine, yours) and other._may_lie_behind(mine, yours)
            for mine in self.open
            for yours in other.open
        )

    def _may_lie_behind(self, first: str, second: str) -> bool:
        """Whether a key with both prefixes is possible and not excluded."""
        longest = max(first, second, key=len)
        possible = longest.startswith(first) and longest.startswith(second)
        return possible and not any(map(longest.startswith, self.never))

    # -- renaming ----------------------------------------------------------------------------------------------------

    def renamed(self, rename: Rename) -> "KeySet":
        """Every key put through a function that says which keys it becomes; ``None`` from it: that is not known."""
        certain, optional = set[str](), set[str]()
        is_known = True
        for keys, found in ((self.certain, certain), (self.optional, optional)):
            for key in keys:
                names = rename(key)
                is_known = is_known and names is not None
                found.update(names or ())
        heads = [_renamed_head(prefix, rename) for prefix in self.open]
        opened = frozenset(head for head, _ in heads) | (frozenset() if is_known else frozenset({""}))
        never = frozenset.intersection(*(avoided for _, avoided in heads)) if heads and is_known else frozenset[str]()
        return KeySet(frozenset(certain), frozenset(optional - certain), opened, never)


def _renamed_head(prefix: str, rename: Rename) -> tuple[str, frozenset[str]]:
    """What all keys behind a prefix begin with once they are renamed, and wrappers' prefixes that none of them has."""
    known: list[str] = []
    if len(rename.words) > _MAX_WORDS:
        return "", frozenset()
    for probe in rename.probes:
        names = rename(f"{prefix}{probe}{_REST}")
        if names is None or not all(name.endswith(_REST) for name in names):
            return "", frozenset()
        known += names
    if not known:
        return "", frozenset()
    head = known[0].removesuffix(_REST)
    if not all(name.startswith(head) for name in known):
        head = ""
    avoided = {wrapper for wrapper in WRAPPER_PREFIXES if not any(name.startswith(wrapper) for name in known)}
    return head, frozenset(avoided)


class Mismatch(msgspec.Struct, frozen=True):
    """How the keys of a dict surely differ from those of the module that it is loaded into; the lists are sorted."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    is_total: bool
    """Whether no key at all can match."""

    def __bool__(self) -> bool:
        return self.is_total or bool(self.missing or self.unexpected)


def compare(given: KeySet, wanted: KeySet) -> Mismatch:
    """How the keys that are given surely differ from those that are wanted."""
    missing = sorted(key for key in wanted.certain if not given.may_hold(key))
    unexpected = sorted(key for key in given.certain if not wanted.may_hold(key))
    total = not given.may_share_keys(wanted) and not wanted.is_empty
    return Mismatch(tuple(missing), tuple(unexpected), total)
