"""Sets of state-dict keys of which only a part may be known, and how two of them compare."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

WRAPPER_PREFIXES = ("module.", "_orig_mod.")
"""What the wrappers of torch put in front of every key."""
# A buffer that old files lack and that a strict load forgives: it may be in a dict, it is never missing.
_FORGIVEN = "num_batches_tracked"
# Stands for whatever comes behind a prefix that is renamed; no key holds it.
_REST = "\0"
_PROBES = ("", *WRAPPER_PREFIXES, "a.", "backbone.layer.")


@dataclass(frozen=True, slots=True)
class KeySet:
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

    def weakened(self) -> "KeySet":
        """The same keys, any of which may be absent."""
        return KeySet(frozenset(), self.certain | self.optional, self.open, self.never)

    def __or__(self, other: "KeySet") -> "KeySet":
        """Both together, as when one module holds the two."""
        certain = self.certain | other.certain
        never = {prefix for prefix in self.never if prefix in other.never or not other.may_begin_with(prefix)}
        never |= {prefix for prefix in other.never if not self.may_begin_with(prefix)}
        optional = (self.optional | other.optional) - certain
        return KeySet(certain, optional, self.open | other.open, frozenset(never))

    def may_begin_with(self, prefix: str) -> bool:
        """Whether some key can begin with the prefix."""
        if any(key.startswith(prefix) for key in (*self.certain, *self.optional)):
            return True
        return any(self._may_lie_behind(prefix, opened) for opened in self.open)

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

    def renamed(self, rename: Callable[[str], str | None]) -> "KeySet":
        """Every key renamed. ``None`` from ``rename`` says that the new name is not known."""
        certain = {rename(key) for key in self.certain}
        optional = {rename(key) for key in self.optional}
        heads = [_renamed_head(prefix, rename) for prefix in self.open]
        opened = {head for head, _ in heads}
        if None in certain or None in optional:
            opened.add("")
        known = frozenset(key for key in certain if key is not None)
        maybe = frozenset(key for key in optional if key is not None) - known
        if None in certain or None in optional or not heads:
            return KeySet(known, maybe, frozenset(opened))
        return KeySet(known, maybe, frozenset(opened), frozenset.intersection(*(avoided for _, avoided in heads)))


def _renamed_head(prefix: str, rename: Callable[[str], str | None]) -> tuple[str, frozenset[str]]:
    """What all keys behind a prefix begin with once they are renamed, and wrappers' prefixes that none of them has."""
    names = [rename(f"{prefix}{probe}{_REST}") for probe in _PROBES]
    known = [name for name in names if name is not None and name.endswith(_REST)]
    if len(known) < len(names):
        return "", frozenset()
    head = known[0].removesuffix(_REST)
    if not all(name.startswith(head) for name in known):
        head = ""
    avoided = {wrapper for wrapper in WRAPPER_PREFIXES if not any(name.startswith(wrapper) for name in known)}
    return head, frozenset(avoided)


@dataclass(frozen=True, slots=True)
class Mismatch:
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
