"""What comes into being while a module is built: abstract values, and the module with its parts.

Numbers, strings, ``None`` and tuples stand for themselves. A list is ``Items``, a dict is ``Entries``, a module is a
``Part``; whatever cannot be told is ``UNKNOWN``.
"""

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from mllint.semantic.construction.state_keys import KeySet

if TYPE_CHECKING:
    import libcst as cst

    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

MAX_NESTING = 24
"""How deep modules are looked into."""


class Mark(enum.Enum):
    """Values of which only the kind matters."""

    UNKNOWN = "unknown"
    PARAMETER = "parameter"
    TENSOR = "tensor"
    """A tensor that is no parameter."""
    OBJECT = "object"
    """Something that is neither module nor tensor, neither false nor ``None``."""


UNKNOWN = Mark.UNKNOWN


class Items(msgspec.Struct, eq=False):
    """A list; ``is_open``: of which more or other elements may be there than are listed."""

    values: list[Any] = []
    is_open: bool = False


class Entries(msgspec.Struct, eq=False):
    """A dict with constant keys; ``is_open``: in which other entries may be."""

    values: dict[Any, Any] = {}
    is_open: bool = False


class Bound(msgspec.Struct, frozen=True):
    """A method of a part, of a list or of a dict, not yet called; ``definition`` where the project defines it."""

    receiver: Any
    name: str
    definition: "FunctionInfo | None" = None


class Closure(msgspec.Struct, eq=False):
    """A function or lambda that is defined inside another one, with the names that it sees there."""

    node: "cst.FunctionDef | cst.Lambda"
    frame: Any


class Partial(msgspec.Struct, frozen=True):
    """``functools.partial(callee, ...)``."""

    callee: Any
    given: "Given"


class Given(msgspec.Struct, frozen=True):
    """The arguments of a call; ``is_exact`` is false where starred ones make it unknown what else is passed."""

    positional: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()
    is_exact: bool = True

    def get(self, position: int | None, name: str, default: Any = UNKNOWN) -> Any:
        """The argument at a position or with a name; ``default`` where it is surely not given."""
        for keyword, value in self.keywords:
            if keyword == name:
                return value
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return default if self.is_exact else UNKNOWN

    def behind(self, receiver: Any) -> "Given":
        """The same arguments behind a first one, such as ``self``."""
        return Given((receiver, *self.positional), self.keywords, self.is_exact)

    def after(self, more: "Given") -> "Given":
        """These arguments and, behind them, those of a later call, which win."""
        later = dict(more.keywords)
        kept = tuple((name, value) for name, value in self.keywords if name not in later)
        return Given((*self.positional, *more.positional), (*kept, *more.keywords), self.is_exact and more.is_exact)


class Container(enum.Enum):
    """How a container of modules names what it holds."""

    SEQUENCE = "sequence"
    MAPPING = "mapping"


class Part(msgspec.Struct, eq=False):
    """A module or layer.

    ``own`` are its parameters and buffers (for a layer of a library all of its keys), ``children`` the modules in it,
    ``attributes`` what else is assigned to it. Under a name in ``loose`` there may be anything or nothing. ``is_open``:
    it may have parts of which nothing is known.
    """

    definition: "ClassInfo | None" = None
    container: Container | None = None
    own: dict[str, None] = {}
    children: "dict[str, Part]" = {}
    attributes: dict[str, Any] = {}
    loose: set[str] = msgspec.field(default_factory=set)
    is_open: bool = False

    def keys(self, depth: int = 0) -> KeySet:
        """The keys of its state dict."""
        if depth > MAX_NESTING:
            return KeySet(open=frozenset({""}))
        found = KeySet.of(self.own)
        for name, child in self.children.items():
            found |= child.keys(depth + 1).prefixed(f"{name}.")
        if self.loose:
            found |= KeySet(optional=frozenset(self.loose), open=frozenset(f"{name}." for name in self.loose))
        return found | KeySet(open=frozenset({""})) if self.is_open else found

    def forget(self) -> None:
        """From here on nothing is known of what is in the module."""
        self.own.clear()
        self.children.clear()
        self.is_open = True

    def loosen(self, name: Any) -> None:
        """Forget what is registered under a name; an unknown name makes the whole module open."""
        if not isinstance(name, str):
            self.is_open = True
            return
        self.remove(name)
        self.loose.add(name)

    def remove(self, name: str) -> None:
        """Take away what is registered under a name."""
        for key in [key for key in self.own if key == name or key.startswith(f"{name}.")]:
            del self.own[key]
        self.children.pop(name, None)
        self.attributes.pop(name, None)
        self.loose.discard(name)

    def register(self, name: Any, value: Any, *, as_buffer: bool = False) -> None:
        """What ``self.name = value`` does."""
        if not isinstance(name, str):
            self.is_open = True
            return
        if value is UNKNOWN:
            self.loosen(name)
            self.attributes[name] = UNKNOWN
            return
        if value is Mark.TENSOR and name in self.own:
            return  # a registered buffer keeps its name
        self.remove(name)
        if isinstance(value, Part):
            self.children[name] = value
        elif value is Mark.PARAMETER or (as_buffer and value is Mark.TENSOR):
            self.own[name] = None
        else:
            self.attributes[name] = value

    def member(self, name: str) -> Any:
        """What ``part.name`` is, among what was registered or assigned."""
        if name in self.children:
            return self.children[name]
        if name in self.attributes:
            return self.attributes[name]
        return Mark.PARAMETER if name in self.own else UNKNOWN

    def append(self, values: Iterable[Any]) -> None:
        """Put modules (or parameters) behind those of a sequence."""
        for value in values:
            name = str(self.length)
            self.register(name, value)
            if not isinstance(value, Part) and value is not Mark.PARAMETER:
                self.loosen(name)

    @property
    def length(self) -> int:
        """How many modules or parameters a sequence holds."""
        return len({name.partition(".")[0] for name in (*self.own, *self.children, *self.loose)})

    def copy(self, depth: int = 0) -> "Part":
        """A copy whose parts are copies too."""
        if depth > MAX_NESTING:
            return Part(is_open=True)
        children = {name: child.copy(depth + 1) for name, child in self.children.items()}
        return Part(
            self.definition,
            self.container,
            dict(self.own),
            children,
            dict(self.attributes),
            set(self.loose),
            self.is_open,
        )


def open_part() -> Part:
    """A module of which nothing is known."""
    return Part(is_open=True)
