"""Scopes and bindings, and which bindings of a name reach a place.

For every scope (module, class body, function body) there is a small control-flow graph of blocks, built in
``blocks.py`` from its statements when somebody first asks. Reading a name walks that graph backwards from the place of
the read; nothing is computed for names that nobody asks about.

A *key* is what can be bound: a name (``x``) or a dotted path of names (``self.optimizer``). Binding ``self`` forgets
what was known of ``self.optimizer``.
"""

import enum
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.names.conditions import Told

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.syntax.walk import Tree


class BindingKind(enum.Enum):
    """How a key got its value."""

    ASSIGN = "assign"
    AUGMENTED = "augmented"
    ANNOTATED = "annotated"
    LOOP = "loop"
    WITH = "with"
    PARAMETER = "parameter"
    IMPORT = "import"
    FUNCTION = "function"
    CLASS = "class"
    NARROWED = "narrowed"
    """``isinstance(key, ...)`` held on the way here."""
    TOLD = "told"
    """Some other test on the way here told what it is, or is not. Only ``Scope.told`` gives these."""
    OPAQUE = "opaque"
    """Bound to something that is not followed: ``except ... as``, ``del``, a pattern, ``for`` over unknown."""


class Binding(msgspec.Struct, eq=False):
    """One place where a key is bound.

    ``node`` is the statement, parameter, import alias or definition that binds. ``value`` is the expression the value
    comes from (right-hand side, iterable, context manager, the type in ``isinstance``); ``path`` leads from that value
    to the bound part when it is unpacked (indexes from the front; ``None`` for a part that cannot be told).
    """

    key: str
    kind: BindingKind
    node: cst.CSTNode
    scope: "Scope"
    value: cst.BaseExpression | None = None
    path: tuple[int | None, ...] = ()
    order: int = 0


class ToldBinding(Binding, eq=False, kw_only=True):
    """What a test has told of a key that it leaves bound to what it was. Its own ``key`` is no name of the source."""

    fact: Told


class Block(msgspec.Struct, eq=False):
    """Statements that run one after another.

    ``after`` are the blocks that may run just before. ``interrupted`` are blocks at any point of which control may
    have left for here (the body of a ``try`` before its handler). ``is_live``: some way leads here. ``around`` leads
    past the compound statement that ends here: the block before it, and the order numbers between which it binds.
    """

    after: "list[Block]" = []
    interrupted: "list[Block]" = []
    bindings: dict[str, list[Binding]] = {}
    is_live: bool = True
    around: "tuple[Block, int, int] | None" = None


class Reaching(msgspec.Struct, frozen=True):
    """The bindings of a key that reach a place.

    ``may_be_unbound`` is true when some path from the scope's start binds nothing (then the key is unbound there, or
    an outer or attribute value holds).
    """

    bindings: tuple[Binding, ...]
    may_be_unbound: bool


class Scope:
    """A module, class body or function body."""

    def __init__(self, node: cst.CSTNode, parent: "Scope | None", model: "Model") -> None:
        self.node = node
        self.parent = parent
        self.model = model
        self.tree = model.tree
        self.bindings: dict[str, list[Binding]] = {}
        self.outer_names: dict[str, str] = {}
        """Names declared ``global`` or ``nonlocal`` here, with the word."""
        self.places: dict[int, tuple[Block, int]] = {}
        self.entry = Block()
        self.exit: Block | None = None
        self.returns: list[cst.Return] = []
        self._reaching: dict[tuple[int, str], Reaching] = {}
        self.blocks: list[Block] = [self.entry]

    def empty(self) -> None:
        """Drop what is in it, which holds the scope in turn."""
        for block in self.blocks:
            block.after, block.interrupted, block.bindings, block.around = [], [], {}, None
        self.bindings, self.places, self._reaching, self.blocks = {}, {}, {}, []

    @property
    def is_class(self) -> bool:
        """Whether this is a class body, which inner scopes cannot see."""
        return type(self.node) is cst.ClassDef

    @property
    def is_function(self) -> bool:
        """Whether this is the body of a ``def``."""
        return type(self.node) is cst.FunctionDef

    def place_of(self, node: cst.CSTNode) -> tuple[Block, int] | None:
        """The block and the order number at which an expression or statement of this scope is evaluated."""
        places, parents = self.places, self.tree.parents
        current: cst.CSTNode | None = node
        while current is not None:
            place = places.get(id(current))
            if place is not None:
                places[id(node)] = place  # who asks once asks again
                return place
            current = parents.get(id(current))
        return None

    def reaching(self, key: str, node: cst.CSTNode) -> Reaching:
        """The bindings of ``key`` that reach ``node``."""
        if key not in self.bindings:
            return _NOTHING
        place = self.place_of(node)
        if place is None:
            return Reaching(tuple(self.bindings.get(key, ())), True)
        return self._reaching_at(key, *place)

    def told(self, key: str, node: cst.CSTNode) -> Reaching:
        """As ``reaching``, where what a test has told of the key since then stands for what was bound then."""
        mark = mark_of(key)
        place = self.place_of(node) if mark in self.bindings else None
        if place is None:
            return self.reaching(key, node)
        block, order = place
        last = self._last(block, key, order, mark)
        if last is not None:
            return Reaching((last,), False) if last.key in (key, mark) else _NOTHING
        memo = self._reaching.get((id(block), mark))
        if memo is None:
            memo = self._reaching[id(block), mark] = self._search(block, key, mark)
        return memo

    def reaching_end(self, key: str) -> Reaching:
        """The bindings of ``key`` that hold when the scope's body has run to its end."""
        if self.exit is None:
            return Reaching(tuple(self.bindings.get(key, ())), True)
        return self._reaching_at(key, self.exit, 1 << 60)

    def _reaching_at(self, key: str, block: Block, order: int) -> Reaching:
        if key not in self.bindings:
            return _NOTHING
        last = self._last(block, key, order)
        if last is not None:
            return Reaching((last,), False) if last.key == key else _NOTHING
        memo = self._reaching.get((id(block), key))
        if memo is None:
            memo = self._reaching[id(block), key] = self._search(block, key)
        return memo

    def _search(self, start: Block, key: str, *marks: str) -> Reaching:
        """Walk backwards from a block's start to the bindings on every path; ``marks`` count as the key itself."""
        found: dict[int, Binding] = {}
        unbound = False
        seen: set[int] = set()
        names, own = (*marks, *with_prefixes(key)), (key, *marks)
        orders = sorted(binding.order for name in names for binding in self.bindings.get(name, ()))
        pending = [start]
        while pending:
            block = pending.pop()
            if id(block) in seen:
                continue
            seen.add(id(block))
            if block is self.entry:
                unbound = True
            after = block.after
            if block.around is not None:
                outside, first, end = block.around
                if bisect_right(orders, first) == bisect_right(orders, end):
                    after = [outside]  # nothing in between binds it
            for before in after:
                last = None
                for name in names:
                    several = before.bindings.get(name)
                    if several and (last is None or several[-1].order > last.order):
                        last = several[-1]
                if last is None:
                    pending.append(before)
                elif last.key in own:
                    found[id(last)] = last
                else:
                    unbound = True
            for before in block.interrupted:
                for name in names:
                    for binding in before.bindings.get(name, ()):
                        if binding.key in own:
                            found[id(binding)] = binding
                        else:
                            unbound = True
                pending.append(before)
        return Reaching(tuple(sorted(found.values(), key=lambda binding: binding.order)), unbound)

    def home_of(self, name: str) -> "Scope | None":
        """The scope that binds what a name means here: this one or one around it; ``None``: none of the file does."""
        scope: Scope | None = self
        while scope is not None:
            word = scope.outer_names.get(name)
            if word is None and name in scope.bindings and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
            while word == "global" and scope is not None and scope.parent is not None:
                scope = scope.parent
        return None

    @staticmethod
    def _last(block: Block, key: str, order: int, *marks: str) -> Binding | None:
        """The last binding in the block before ``order`` that decides the key: its own, or one of a prefix of it."""
        best: Binding | None = None
        for name in (*marks, *with_prefixes(key)):
            for binding in reversed(block.bindings.get(name, ())):
                if binding.order < order:
                    if best is None or binding.order > best.order:
                        best = binding
                    break
        return best


def redefinition(tree: "Tree", node: cst.CSTNode) -> cst.FunctionDef | None:
    """The function that takes the name of another one before anything runs: only definitions stand between the two."""
    if type(node) is not cst.FunctionDef:
        return None
    block = getattr(tree.parent(node), "body", None)
    behind = iter(block if isinstance(block, (list, tuple)) else ())
    for item in behind:
        if item is node:
            break
    for item in behind:
        if type(item) is cst.FunctionDef and item.name.value == node.name.value:
            return item
        if type(item) not in (cst.FunctionDef, cst.ClassDef):
            return None
    return None


_NOTHING = Reaching((), True)


def mark_of(key: str) -> str:
    """Under which key it is bound what tests tell of another one."""
    return f"?{key}"


@lru_cache(maxsize=4096)
def with_prefixes(key: str) -> tuple[str, ...]:
    """``a.b.c`` -> ``a.b.c``, ``a.b``, ``a``."""
    parts = key.split(".")
    return tuple(".".join(parts[:count]) for count in range(len(parts), 0, -1))


def assigned(binding: Binding) -> cst.BaseExpression | None:
    """The expression that an assignment binds as a whole, declared or not; ``None`` for every other binding."""
    is_assignment = binding.kind is BindingKind.ASSIGN or binding.kind is BindingKind.ANNOTATED
    return binding.value if is_assignment and not binding.path else None


def only_assigned(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The one expression that a name or dotted path is assigned; ``None`` where anything else may be bound to it."""
    bindings = model.reaching(node)
    return assigned(bindings[0]) if len(bindings) == 1 else None


def all_assigned(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The expressions one of which a name or dotted path is assigned; none where anything else may be bound to it."""
    values = [assigned(binding) for binding in model.reaching(node)]
    return [] if None in values else [value for value in values if value is not None]


def grown_from(model: "Model", local: cst.Name) -> list[Binding]:
    """What binds a local name where it is read, and by what it has grown or changed in place: ``layers += [...]``."""
    found: list[Binding] = []
    pending: list[cst.BaseExpression] = [local]
    while pending:
        for binding in model.reaching(pending.pop()):
            if binding not in found:
                found.append(binding)
                if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
                    pending.append(binding.node.target)
    return found
