"""The walk: one explicit-stack pass over the tree that skips whitespace and remembers parents.

LibCST's ``visit`` rebuilds every node even for a read-only visitor; this pass only reads. It yields the nodes of each
type in document order and the parent of every node, which is all that dispatch and the semantic model need.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

import libcst as cst

from mllint.syntax.former import FormerPython

# The names that LibCST gives to fields which hold whitespace, brackets, separators or operators, and nothing else.
_TRIVIAL_FIELDS = (
    "whitespace",
    "leading_lines",
    "lines_after_",
    "lpar",
    "rpar",
    "lbracket",
    "rbracket",
)
_TRIVIAL_NAMES = {
    "asynchronous", "comma", "trailing_comma", "colon", "first_colon", "second_colon", "dot", "semicolon", "equal",
    "operator", "lbrace", "rbrace", "header", "footer", "indent", "trailing_whitespace", "encoding", "default_indent",
    "default_newline", "has_trailing_newline", "leading_whitespace", "start", "end", "separator", "relative",
    "posonly_ind", "conversion",
}  # fmt: skip


def child_fields(node_type: type[Any]) -> tuple[str, ...]:
    """The fields of a node type that can hold nodes other than whitespace, brackets, separators and operators."""
    if issubclass(node_type, (cst.Name, cst.BaseNumber, cst.SimpleString, cst.FormattedStringText)):
        return ()
    return tuple(
        field.name
        for field in dataclasses.fields(node_type)
        if field.name not in _TRIVIAL_NAMES and not field.name.startswith(_TRIVIAL_FIELDS)
    )


def _children_getter(node_type: type[cst.CSTNode]) -> Callable[[Any], Any] | None:
    """A function from a node of the type to the raw values of its child fields; ``None`` when there are none."""
    fields = child_fields(node_type)
    if not fields:
        return None
    get = attrgetter(*fields)
    return get if len(fields) > 1 else lambda node: (get(node),)


class _Getters(dict[type[cst.CSTNode], Callable[[Any], Any] | None]):
    """For types of nodes, when they are first met: what gives the raw values of their child fields."""

    def __missing__(self, node_type: type[cst.CSTNode]) -> Callable[[Any], Any] | None:
        getter = self[node_type] = _children_getter(node_type)
        return getter


_GETTERS = _Getters()


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly under a node, whitespace, brackets and operators left out, in field order."""
    getter = _GETTERS[node.__class__]
    found: list[cst.CSTNode] = []
    for value in () if getter is None else getter(node):
        if value.__class__ is tuple or value.__class__ is list:
            found.extend(value)
        elif value is not None and value.__class__ is not str and value.__class__ is not cst.MaybeSentinel:
            found.append(value)
    return found


def subtree(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything in it, in document order."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        # As `children` does, but in place: half of all nodes are names and numbers, with nothing in them.
        getter = _GETTERS[current.__class__]
        if getter is None:
            continue
        found: list[cst.CSTNode] = []
        for value in getter(current):
            if value.__class__ is tuple or value.__class__ is list:
                found += value
            elif value is not None and value.__class__ is not str and value.__class__ is not cst.MaybeSentinel:
                found.append(value)
        found.reverse()
        pending += found


def names_in(node: cst.CSTNode) -> set[str]:
    """The names in some code."""
    return {item.value for item in subtree(node) if type(item) is cst.Name}


_OF_THEIR_OWN = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef})

NodeT = TypeVar("NodeT", bound=cst.CSTNode)


class Tree:
    """A parsed module with an index: nodes by type in document order, and parents.

    Nodes are keyed by ``id``; the tree keeps them alive, so an id stays valid as long as the tree does.
    """

    __slots__ = ("__dict__", "_shapes", "by_type", "former", "module", "parents")

    def __init__(
        self,
        module: cst.Module,
        by_type: dict[type[cst.CSTNode], list[Any]] | None = None,
        parents: dict[int, cst.CSTNode] | None = None,
        former: FormerPython | None = None,
    ) -> None:
        """Who made the nodes may know of each its type and parent; for who does not, the walk finds out.

        ``former``: what Python has against the text, which only a former one can run.
        """
        self.former = former
        self.module = module
        self.by_type = defaultdict(list) if by_type is None else by_type
        self.parents = {} if parents is None else parents
        self._shapes: dict[tuple[type[cst.CSTNode], Callable[[Any], bool]], list[Any]] = {}
        if by_type is None:
            self._index()

    def _index(self) -> None:
        by_type, parents = self.by_type, self.parents
        stack: list[cst.CSTNode] = [self.module]
        while stack:
            node = stack.pop()
            node_type = type(node)
            by_type[node_type].append(node)
            getter = _GETTERS[node_type]
            if getter is None:
                continue
            pending: list[cst.CSTNode] = []
            for value in getter(node):
                if value is None or value.__class__ is str:
                    continue
                if value.__class__ is tuple or value.__class__ is list:
                    for child in value:
                        parents[id(child)] = node
                    pending.extend(value)
                elif value.__class__ is not cst.MaybeSentinel:
                    parents[id(value)] = node
                    pending.append(value)
            pending.reverse()
            stack += pending

    def count(self, node_type: type[cst.CSTNode]) -> int:
        """How many nodes of a type there are."""
        return len(self.by_type.get(node_type, ()))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one; ``None`` for the module."""
        return self.parents.get(id(node))

    def standing_in(self, holder: cst.CSTNode, word: str, make: Callable[[], NodeT]) -> NodeT:
        """A node that is not written there, but stands for what happens at a node of the tree, under a word."""
        key = id(holder), word
        if key not in self._standing_in:
            node = self._standing_in[key] = make()
            self.parents[id(node)] = holder
        return self._standing_in[key]  # type: ignore[no-any-return]

    def is_standing_in(self, node: cst.CSTNode) -> bool:
        """Whether a node is one of those that are not written there."""
        return any(item is node for item in self._standing_in.values())

    @cached_property
    def _standing_in(self) -> dict[tuple[int, str], Any]:
        """Those nodes, which are kept alive here."""
        return {}

    @cached_property
    def walruses(self) -> dict[int, list[cst.NamedExpr]]:
        """The ``:=`` expressions of each statement (keyed by its id)."""
        found: dict[int, list[cst.NamedExpr]] = defaultdict(list)
        for walrus in self.by_type.get(cst.NamedExpr, ()):
            for holder in self.ancestors(walrus):
                if isinstance(holder, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                    found[id(holder)].append(walrus)
                    break
        return found

    @cached_property
    def calls_by_word(self) -> dict[str, list[cst.Call]]:
        """The calls of the file by the last word of what they call."""
        found: dict[str, list[cst.Call]] = {}
        for call in self.by_type.get(cst.Call, ()):
            callee = call.func
            if callee.__class__ is cst.Attribute:
                found.setdefault(callee.attr.value, []).append(call)
            elif callee.__class__ is cst.Name:
                found.setdefault(callee.value, []).append(call)
        return found

    @cached_property
    def _holding_calls(self) -> set[int]:
        """The ids of the calls of the file, and of everything that one stands in."""
        found: set[int] = set()
        parents = self.parents
        for call in self.by_type.get(cst.Call, ()):
            node = call
            while node is not None and id(node) not in found:
                found.add(id(node))
                node = parents.get(id(node))
        return found

    def holds_call(self, node: cst.CSTNode) -> bool:
        """Whether a node of this tree is a call, or one stands in it."""
        return id(node) in self._holding_calls

    def calls_in(self, node: cst.CSTNode) -> Iterator[cst.Call]:
        """The calls in a node of this tree, itself included, in document order."""
        holding, pending = self._holding_calls, [node]
        while pending:
            current = pending.pop()
            if id(current) in holding:
                if current.__class__ is cst.Call:
                    yield current
                pending += reversed(children(current))

    def of_shape(self, node_type: type[cst.CSTNode], shape: Callable[[Any], bool] | None) -> list[Any]:
        """The nodes of a type of which a test of the node alone holds, in document order."""
        if shape is None:
            return self.by_type.get(node_type, [])
        key = (node_type, shape)
        if key not in self._shapes:
            self._shapes[key] = [node for node in self.by_type.get(node_type, ()) if shape(node)]
        return self._shapes[key]

    def is_inside(self, node: cst.CSTNode, holder: cst.CSTNode | None) -> bool:
        """Whether a node stands in another, or is it."""
        return node is holder or self.is_below(node, holder)

    def is_below(self, node: cst.CSTNode, holder: cst.CSTNode | None) -> bool:
        """Whether a node stands in another."""
        above = self.parents.get(id(node))
        while above is not None and above is not holder:
            above = self.parents.get(id(above))
        return above is not None

    def nearest(self, node: cst.CSTNode, *kinds: type[NodeT]) -> NodeT | None:
        """The innermost holder of a node that is of one of some types."""
        return next((holder for holder in self.ancestors(node) if isinstance(holder, kinds)), None)

    def statement_around(self, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
        """The statement on a line of its own, or beside others, in which a node stands."""
        return next((holder for holder in self.ancestors(node) if isinstance(holder, cst.BaseSmallStatement)), None)

    def call_of(self, callee: cst.CSTNode) -> cst.Call | None:
        """The call of what an expression stands for: of ``x.item`` and of ``f`` the one that they are called in."""
        above = self.parents.get(id(callee))
        return above if above.__class__ is cst.Call and above.func is callee else None

    def call_given(self, node: cst.CSTNode) -> cst.Call | None:
        """The call that an expression is an argument of, by itself."""
        arg = self.parents.get(id(node))
        above = self.parents.get(id(arg)) if arg.__class__ is cst.Arg else None
        return above if above.__class__ is cst.Call else None

    def beyond_choices(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The outermost ``a if test else b`` of which an expression is one side; itself where it is none."""
        above = self.parents.get(id(node))
        while isinstance(above, cst.IfExp) and above.test is not node:
            node, above = above, self.parents.get(id(above))
        return node

    def loops_around(self, node: cst.CSTNode) -> Iterator[cst.For | cst.While]:
        """The loops around a node in its function, from the innermost."""
        above = self.parents.get(id(node))
        # By the type itself: what `isinstance` denies costs a call into `abc`, and many calls come by here.
        while above is not None and above.__class__ not in _OF_THEIR_OWN:
            if above.__class__ is cst.For or above.__class__ is cst.While:
                yield above
            above = self.parents.get(id(above))

    def twin(self, node: NodeT, other: "Tree") -> NodeT | None:
        """The node of this tree that stands where one of another tree of the same text stands."""
        if other.is_standing_in(node):
            return None
        nodes: list[NodeT] = self.by_type.get(type(node), [])
        position = other.by_type[type(node)].index(node)
        return nodes[position] if position < len(nodes) else None

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The holders of a node, from the nearest to the module."""
        parent = self.parents.get(id(node))
        while parent is not None:
            yield parent
            parent = self.parents.get(id(parent))
