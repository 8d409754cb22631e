"""What a dict on its way to or from a file holds, and what loops, comprehensions and functions do to its keys, found
by doing it to one key at a time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst
import msgspec

from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.construction.builder import Construction
from mllint.semantic.construction.operators import truth
from mllint.semantic.construction.parts import Entries, Mark
from mllint.semantic.construction.state_keys import KeySet, Rename
from mllint.semantic.expressions.arguments import functions_called
from mllint.semantic.modules.module_keys import ANYTHING
from mllint.semantic.values import Module, Value
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import last_word, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.checkpoints.routes import Route
    from mllint.semantic.model import Model

_PROBE = "module.layer.0.weight"


class State:
    """The state dict of ``owner`` (``None``: not known of what).

    ``is_unclear``: something was done to its keys that cannot be followed. ``name`` is what the code calls the owner.
    """

    def __init__(
        self,
        find_keys: Callable[[], KeySet],
        owner: Value | None,
        place: Place,
        *,
        is_unclear: bool = False,
        name: str | None = None,
    ) -> None:
        """``find_keys`` finds out the keys: mostly it is enough to know that it is a state dict."""
        self._find_keys = find_keys
        self.owner = owner
        self.place = place
        self.is_unclear = is_unclear
        self.name = name

    @cached_property
    def keys(self) -> KeySet:
        """What is known of its keys."""
        return self._find_keys()

    def changed(self, change: Callable[[KeySet], KeySet], *, is_unclear: bool = False) -> "State":
        """The same after something was done to its keys."""
        is_unclear = is_unclear or self.is_unclear
        return State(lambda: change(self.keys), self.owner, self.place, is_unclear=is_unclear, name=self.name)


class Record(msgspec.Struct, frozen=True):
    """A dict with these string keys; ``is_open``: with others too, perhaps."""

    items: "dict[str, Content | None]"
    is_open: bool
    place: Place


class Whole(msgspec.Struct, frozen=True):
    """A module itself, not its state."""

    owner: Module
    place: Place


class Several(msgspec.Struct, frozen=True):
    """A list of state dicts: ``[optimizer.state_dict() for optimizer in optimizers]``."""

    place: Place


@dataclass(frozen=True, slots=True)
class FromFile:
    """What a call of ``load`` read; ``trail`` are the keys taken of it, ``renames`` what was done to its keys after."""

    place: Place
    trail: tuple[str, ...] = ()
    renames: tuple[Rename, ...] = ()
    route: "Route | None" = field(default=None, compare=False)


class Absent(msgspec.Struct, frozen=True):
    """What is found under a key that is not there."""

    key: str
    holder: "State | Record"


Content: TypeAlias = State | Record | Whole | Several | FromFile | Absent


def entry(content: "Content | None", key: str) -> "Content | None":
    """What is found under a string key; ``None`` when that is not known."""
    match content:
        case Record() if key in content.items:
            return content.items[key]
        case Record() if not content.is_open and content.items:  # an empty one stands for something else
            return Absent(key, content)
        case State() if isinstance(content.owner, Module):
            return Absent(key, content)  # a tensor at best, never a dict
        case FromFile() if not content.renames:
            return FromFile(content.place, (*content.trail, key), (), content.route)
        case Absent():
            return content
    return None


def entry_at(content: Content | None, trail: Iterable[str]) -> Content | None:
    """What is found under string keys, one after the other."""
    for key in trail:
        content = entry(content, key)
    return content


def either(one: "Content | None", other: "Content | None") -> "Content | None":
    """One of two dicts, by what an ``if`` decides: two states, of which no more is known than what they are of."""
    if not isinstance(one, State) or not isinstance(other, State):
        return None
    owner = one.owner if one.owner == other.owner else None
    name = one.name if one.name == other.name else None
    return State(lambda: ANYTHING, owner, one.place, is_unclear=True, name=name)


def perhaps(before: "Content", after: "Content | None") -> "Content | None":
    """What is in a dict behind a change that some ways leave out: entries that may be there, and known ones only."""
    match before, after:
        case _ if before is after:
            return before
        case Record(), Record():
            own, changed = before.items, after.items
            items = {key: None if key in own and own[key] != item else item for key, item in changed.items()}
            return Record({**own, **items}, before.is_open or after.is_open, before.place)
        case State(), State():
            return State(
                lambda: before.keys.either(after.keys), before.owner, before.place, is_unclear=True, name=before.name
            )
    return None


def renamed(content: "Content | None", rename: Rename) -> "Content | None":
    """The content with every key put through a function."""
    match content:
        case State():
            return content.changed(lambda keys: keys.renamed(rename), is_unclear=rename(_PROBE) is None)
        case Record():
            return State(lambda: key_set(content).renamed(rename), None, content.place)
        case FromFile() if not _keeps_keys(rename):
            return FromFile(content.place, content.trail, (*content.renames, rename), content.route)
    return content


def _keeps_keys(rename: Rename) -> bool:
    """Whether a function leaves keys as they are, by all that can be told of a dict that is not known."""
    return all(rename(key) == (key,) for key in (_PROBE, "_orig_mod.fc.bias", "conv1.weight", "fc"))


def key_set(record: Record) -> KeySet:
    """The keys of a record as those of a state dict."""
    return KeySet.of(record.items) | KeySet(open=frozenset({""} if record.is_open else ()))


def with_entry(content: "Content | None", key: str, value: "Content | None") -> "Content | None":
    """The content after ``content[key] = value``."""
    match content:
        case Record():
            return Record({**content.items, key: value}, content.is_open, content.place)
        case State():
            return content.changed(lambda keys: keys | KeySet.of((key,)))
    return None


def with_unknown_entries(content: "Content | None") -> "Content | None":
    """The content after ``content[key] = value`` of keys that are not known, which may be those that it has, too."""
    return Record(dict.fromkeys(content.items), True, content.place) if isinstance(content, Record) else None


def without_entry(content: "Content | None", key: str) -> "Content | None":
    """The content after ``del content[key]``."""
    match content:
        case Record():
            items = {name: value for name, value in content.items.items() if name != key}
            return Record(items, content.is_open, content.place)
        case State() | FromFile():
            return renamed(content, Rename(lambda name: () if name == key else (name,)))
    return None


def merged(content: "Content | None", other: "Content | None") -> "Content | None":
    """The content after ``content.update(other)``."""
    match content, other:
        case Record(items={}, is_open=False), State() | FromFile() if not content.items:
            return other
        case Record(), Record():
            return Record({**content.items, **other.items}, content.is_open or other.is_open, content.place)
        case State(), State():
            return content.changed(lambda keys: keys | other.keys)
        case State(), Record():
            return content.changed(lambda keys: keys | key_set(other))
        case Record(), _:
            return Record(content.items, True, content.place)
        case State(), _:
            return content.changed(lambda keys: keys | ANYTHING)
    return None


_VIEWS = ("items", "keys", "copy")
_COPIES = frozenset({"dict", "OrderedDict", "deepcopy"})


def source_of(iterable: cst.BaseExpression) -> cst.BaseExpression | None:
    """The dict over which a loop goes: ``sd`` of ``list(sd.items())``."""
    while isinstance(iterable, cst.Call):
        function, behind = iterable.func, run_over(iterable)
        if isinstance(function, cst.Attribute) and function.attr.value in _VIEWS and not iterable.args:
            iterable = function.value
        elif len(iterable.args) == 1 and last_word(function) in _COPIES:
            iterable = iterable.args[0].value
        elif behind is not iterable:
            iterable = behind
        else:
            break
    return iterable


def _is_over_pairs(iterable: cst.BaseExpression) -> bool:
    node = run_over(iterable)
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "items"


def _round(target_is_pair: bool, key: str) -> Any:
    return (key, Mark.TENSOR) if target_is_pair else key


def loop_rename(loop: cst.For, name: str, model: "Model", *, in_place: bool) -> Rename:
    """What a loop over a dict makes of one key in the dict called ``name``, which it fills or changes."""
    over_pairs = _is_over_pairs(loop.iter)

    def rename(key: str) -> tuple[str, ...] | None:
        filled = Entries({key: Mark.TENSOR} if in_place else {})
        Construction().round_of(loop, _round(over_pairs, key), {name: filled}, model)
        return None if filled.is_open else tuple(item for item in filled.values if isinstance(item, str))

    return Rename(rename, _words(loop.body, model))


def comprehension_rename(node: cst.DictComp, model: "Model") -> Rename:
    """What a dict comprehension over a dict makes of one key."""
    over_pairs = _is_over_pairs(node.for_in.iter)

    def rename(key: str) -> tuple[str, ...] | None:
        names = _names(node.for_in.target, _round(over_pairs, key))
        for condition in node.for_in.ifs:
            holds = truth(Construction().value_with(condition.test, names, model))
            if holds is not True:
                return () if holds is False else None
        value = Construction().value_with(node.key, names, model)
        return (value,) if isinstance(value, str) else None

    return Rename(rename, _words(node, model))


def _words(code: cst.CSTNode, model: "Model") -> frozenset[str]:
    """The texts in some code, and in the functions of the project that it calls."""
    words, seen, pending = set[str](), set[int](), [(code, model)]
    while pending:
        code, model = pending.pop()
        if id(code) not in seen:
            seen.add(id(code))
            words.update(text for part in subtree(code) if (text := string_literal(part)))
            pending += [(info.node.body, info.model) for info in functions_called(model, code)]
    return frozenset(words)


def _names(target: cst.BaseExpression, value: Any) -> dict[str, Any]:
    if isinstance(target, cst.Name):
        return {target.value: value}
    if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, tuple) and len(target.elements) == len(value):
        pairs = zip(target.elements, value, strict=True)
        return {item.value.value: part for item, part in pairs if isinstance(item.value, cst.Name)}
    return {}


def prefix_removal(prefix: str) -> Rename:
    """Taking a prefix off every key that has it."""
    return Rename(lambda key: (key.removeprefix(prefix),))
