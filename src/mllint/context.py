"""The questions a rule may ask about the file it looks at. Nothing here can be changed by a rule."""

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import libcst as cst
import msgspec

from mllint.edits import NodeEdit
from mllint.imports import need_import
from mllint.semantic.model import Model
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import Value
from mllint.syntax.python_places import PythonPlaces
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree, children

Version = tuple[int, int] | None
NodeT = TypeVar("NodeT", bound=cst.CSTNode)
_BLOCKS = (cst.BaseSuite, cst.BaseStatement, cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler)


class Targets(msgspec.Struct, frozen=True):
    """The lowest framework versions the code must run with, as ``(major, minor)``, and the one of PyTorch below which
    it stays. ``None``: the newest that is known; nothing says that it stays below any.
    """

    torch: Version = None
    paddle: Version = None
    torch_below: Version = None


class Context:
    """One file as a rule sees it."""

    def __init__(
        self,
        source: Source,
        tree: Tree,
        model: Model,
        targets: Targets,
        places: PythonPlaces | None = None,
    ) -> None:
        """``places`` tell what nodes without whitespace cannot, where their findings are to be final."""
        self._source = source
        self._places = places
        self._tree = tree
        self.model = model
        self.torch_version, self.paddle_version = targets.torch, targets.paddle
        self.torch_below = targets.torch_below
        self._imports: dict[str, tuple[str, NodeEdit | None]] = {}

    @property
    def source_text(self) -> str:
        """The text of the whole file."""
        return self._source.text

    # -- the tree ----------------------------------------------------------------------------------------------------

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one; ``None`` for the module."""
        return self._tree.parent(node)

    def ancestors(self, node: cst.CSTNode) -> "list[cst.CSTNode]":
        """The holders of a node, from the nearest to the module."""
        return list(self._tree.ancestors(node))

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The small or compound statement in which a node stands (the node itself, if it is one)."""
        kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
        if isinstance(node, kinds):
            return node
        return next((item for item in self._tree.ancestors(node) if isinstance(item, kinds)), node)

    def nodes(self, node_type: type[NodeT]) -> list[NodeT]:
        """Every node of a type in the file, in document order."""
        return self._tree.by_type.get(node_type, [])

    def text(self, node: cst.CSTNode) -> str:
        """The node's source text, outer parentheses included."""
        return self._tree.module.code_for_node(node) if self._places is None else self._places.text(node)

    def short_text(self, node: cst.CSTNode) -> str:
        """The node's source text as a message shows it: ``...`` where it is long, or takes several rows."""
        text = self.text(node).strip()
        return text if len(text) <= 60 and text.isprintable() else "..."

    def comments(self, node: cst.CSTNode) -> "list[str]":
        """The comments right above the line of a simple statement and behind it; none where whitespace is not read.

        Raises:
            FullTreeNeededError: whitespace is not read, and Python does not say where the line ends.
        """
        line = self._tree.nearest(node, cst.SimpleStatementLine)
        if line is not None and self._places is not None:
            return self._places.comments(line)
        if line is None or not hasattr(line, "leading_lines"):
            return []
        behind = line.trailing_whitespace.comment
        return [*_above(line), *([] if behind is None else [behind.value])]

    def comments_below(self, node: cst.CSTNode) -> "list[str]":
        """The comments right below the line of a simple statement where a blank line or the end of the block follows.

        Raises:
            FullTreeNeededError: whitespace is not read, and Python does not say where the line ends.
        """
        line = self._tree.nearest(node, cst.SimpleStatementLine)
        if line is None or self._places is not None:
            return [] if line is None or self._places is None else self._places.comments_below(line)
        block = self._tree.parent(line)
        lines: Sequence[cst.EmptyLine] = getattr(block, "footer", ())
        is_last = True
        if isinstance(block, (cst.IndentedBlock, cst.Module)) and block.body[-1] is not line:
            following = block.body[next(index for index, item in enumerate(block.body) if item is line) + 1]
            lines, is_last = getattr(following, "leading_lines", ()), False
        below = list(itertools.takewhile(lambda empty: empty.comment is not None, lines))
        return [item.comment.value for item in below if item.comment] if is_last or len(below) < len(lines) else []

    def comments_above_holders(self, node: cst.CSTNode) -> "list[str]":
        """The comments right above the ``if``, ``for``, ``with``, ... of the same body that a node stands in.

        Raises:
            FullTreeNeededError: whitespace is not read, and Python does not say where one of them begins.
        """
        found: list[str] = []
        for holder in self._tree.ancestors(node):
            if isinstance(holder, (cst.FunctionDef, cst.ClassDef)):
                break
            if isinstance(holder, cst.BaseCompoundStatement):
                found += _above(holder) if self._places is None else self._places.comments_above(holder)
        return found

    def line_break(self, statement: cst.CSTNode) -> str:
        """The line end and indentation with which a statement beside this one begins."""
        blocks = [item for item in self._tree.ancestors(statement) if isinstance(item, (cst.IndentedBlock, cst.Match))]
        default = self._tree.module.default_indent
        indents = [default if block.indent is None else block.indent for block in blocks]
        return self._tree.module.default_newline + "".join(reversed(indents))

    def line_end(self, node: cst.CSTNode) -> cst.CSTNode:
        """The last thing in the last line of a statement: the comment there, the blanks, or the statement itself.

        A line that is inserted behind the statement comes behind that. Fixes are made where whitespace is read.
        """
        last: cst.CSTNode | None = self._tree.parent(node) if isinstance(node, cst.BaseSmallStatement) else node
        inner = last
        while inner is not None:
            last = inner
            inner = next((item for item in reversed(children(last)) if isinstance(item, _BLOCKS)), None)
        behind = getattr(last, "trailing_whitespace", None)
        if not isinstance(behind, cst.TrailingWhitespace) or (behind.comment is None and behind.whitespace.empty):
            return node
        return behind.whitespace if behind.comment is None else behind.comment

    # -- what things are ---------------------------------------------------------------------------------------------

    def value(self, node: cst.CSTNode) -> Value | None:
        """What an expression is; ``None`` when that is not certain."""
        return self.model.value(node)

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """The canonical qualified name of an imported or built-in thing; ``None`` for everything else."""
        return self.model.qualified_name(node)

    def library_name(self, node: cst.CSTNode) -> str | None:
        """The canonical qualified name of what this file imports from a library, or with all of a sibling file."""
        return self.model.library_name(node)

    def bindings(self, node: cst.BaseExpression) -> tuple[Binding, ...]:
        """The bindings of a name or dotted path that reach it."""
        return self.model.reaching(node)

    def function(self, node: cst.CSTNode) -> FunctionInfo | None:
        """The ``def`` around a node."""
        return function_around(self.model, node)

    def class_(self, node: cst.CSTNode) -> ClassInfo | None:
        """The nearest ``class`` around a node."""
        definition = self._tree.nearest(node, cst.ClassDef)
        return None if definition is None else self.model.class_info(definition)

    # -- for the engine and for fixes --------------------------------------------------------------------------------

    def need_import(self, module: str) -> tuple[str, NodeEdit | None]:
        """The name under which a module is visible in the file, and the edit that makes it so, if one is needed."""
        known = self._imports.get(module)
        if known is None:
            known = self._imports[module] = need_import(self._tree, module)
        return known

    @cached_property
    def imported_words(self) -> frozenset[str]:
        """The last words of what the file imports under another name: an alias hides the word it stands for."""
        aliases = self._tree.by_type.get(cst.ImportAlias, ())
        return frozenset(
            alias.name.attr.value if isinstance(alias.name, cst.Attribute) else alias.name.value
            for alias in aliases
            if alias.asname is not None and isinstance(alias.name, (cst.Attribute, cst.Name))
        )


def _above(statement: cst.CSTNode) -> "list[str]":
    """The comments right above a statement, from the bottom up; none where whitespace is not read."""
    lines: Sequence[cst.EmptyLine] = getattr(statement, "leading_lines", ())
    above = itertools.takewhile(lambda empty: empty.comment is not None, reversed(lines))
    return [empty.comment.value for empty in above if empty.comment is not None]
