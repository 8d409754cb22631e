"""Where nodes without whitespace stand, as far as Python's own syntax tree says so for certain.

A finding in such nodes needs no full parse where all that is asked of it is a row, a column and a message. Python says
where an expression or a statement begins and ends. It does not say where the parentheses around an expression are, nor
where most other parts of a statement stand: who asks for those is told that it takes the full tree.
"""

import ast
import re
from typing import Any

import libcst as cst

from mllint.syntax.bare import made_of
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

# Python counts the parentheses of these as part of them, if there are any; LibCST does not.
_WITH_PARENTHESES = (cst.Tuple, cst.GeneratorExp)
_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
_WRITTEN_AT_ONCE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation)
_KEYWORD = re.compile(r"(?:async\s+)?(?:def|class)\s+")
_COMMENT_LINE = re.compile(r"(\s*)(#.*)")
_NEXT = re.compile(r"\s*+(.)", re.DOTALL)


class FullTreeNeededError(Exception):
    """The nodes without whitespace cannot tell."""


class PythonPlaces:
    """The places of nodes of one file."""

    def __init__(self, source: Source, tree: Tree, python_tree: ast.Module) -> None:
        """The nodes of ``tree`` are those that ``bare_tree`` makes of the syntax tree, or of one that is alike."""
        self._source = source
        self._tree = tree
        _, nodes, _ = made_of(python_tree)
        self._origins: dict[int, Any] = {
            id(node): origin
            for kind, found in tree.by_type.items()
            for node, origin in zip(found, nodes[kind][1::2], strict=True)
        }

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """The offsets at which a node begins and ends.

        Raises:
            FullTreeNeededError: Python does not say.
        """
        parent = self._tree.parent(node)
        if isinstance(parent, (cst.FunctionDef, cst.ClassDef)) and parent.name is node:
            keyword = _KEYWORD.match(self._source.text, self._span(parent)[0])
            if keyword is not None:
                return keyword.end(), keyword.end() + len(parent.name.value)
        return self._span(node)

    def around(self, node: cst.CSTNode) -> tuple[int, int]:
        """The offsets of a node, or else of the first thing around it of which Python says where it is."""
        for holder in (node, *self._tree.ancestors(node)):
            try:
                return self.span(holder)
            except FullTreeNeededError:
                continue
        return 0, 0

    def text(self, node: cst.CSTNode) -> str:
        """The text of an expression on one line, where no parentheses can be part of it.

        Raises:
            FullTreeNeededError: Python does not say.
        """
        start, end = self._span(node)
        if not isinstance(node, _WRITTEN_AT_ONCE) or self._may_be_in_parentheses(node, start, end):
            raise FullTreeNeededError
        text = self._source.text[start:end]
        if "\n" in text or "\r" in text:
            raise FullTreeNeededError  # a full tree prints the lines with another indentation
        return text

    def comments(self, line: cst.SimpleStatementLine) -> list[str]:
        """The comments right above the line of a statement, from the bottom up, and the one behind it.

        Raises:
            FullTreeNeededError: Python does not say where the line ends.
        """
        above = self.comments_above(line.body[0])
        end = self._span(line.body[0])[1]
        last = self._source.location(end).row
        rest = self._source.line(last)[end - self._source.line_starts[last - 1] :].strip()
        if rest.startswith(";"):
            raise FullTreeNeededError  # another statement on the same line
        return [*above, rest] if rest else above

    def comments_below(self, line: cst.SimpleStatementLine) -> list[str]:
        """The comments right below the line of a statement, as deep as it, if nothing else follows right behind them.

        Raises:
            FullTreeNeededError: Python does not say where the line ends.
        """
        source = self._source
        start, end = self._span(line.body[-1])
        row = source.location(end).row + 1
        indentation = start - source.line_starts[source.location(start).row - 1]
        found = []
        while (comment := _COMMENT_LINE.fullmatch(source.line(row))) and len(comment[1]) == indentation:
            found.append(comment[2])
            row += 1
        following = source.line(row)
        return found if not following.strip() or len(following) - len(following.lstrip()) < indentation else []

    def comments_above(self, statement: cst.CSTNode) -> list[str]:
        """The comments right above a statement, from the bottom up.

        Raises:
            FullTreeNeededError: it does not begin its line, or Python does not say where it begins.
        """
        source = self._source
        start = self._span(statement)[0]
        row = source.location(start).row
        indentation = start - source.line_starts[row - 1]
        if source.line(row)[:indentation].strip():
            raise FullTreeNeededError  # another statement on the same line
        found = []
        # What stands deeper belongs to the block that ends there.
        while (comment := _COMMENT_LINE.fullmatch(source.line(row - 1))) and len(comment[1]) <= indentation:
            found.append(comment[2])
            row -= 1
        return found

    def _may_be_in_parentheses(self, node: cst.CSTNode, start: int, end: int) -> bool:
        text = self._source.text
        after = _NEXT.match(text, end)
        if text[:start].rstrip()[-1:] != "(" or after is None or after.group(1) != ")":
            return False
        call = self._tree.parent(arg) if isinstance(arg := self._tree.parent(node), cst.Arg) else None
        # The parentheses of a call are no part of what it is given.
        return not isinstance(call, cst.Call) or text[self._span(call.func)[1] : start].strip() != "("

    def _span(self, node: cst.CSTNode) -> tuple[int, int]:
        origin = self._origins.get(id(node))
        is_known = isinstance(origin, ast.stmt) if isinstance(node, _STATEMENTS) else isinstance(origin, ast.expr)
        if origin is None or not is_known or not isinstance(node, (cst.BaseExpression, *_STATEMENTS)):
            raise FullTreeNeededError
        if isinstance(node, _WITH_PARENTHESES) or (
            isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators
        ):
            raise FullTreeNeededError
        return self._offset(origin.lineno, origin.col_offset), self._offset(origin.end_lineno, origin.end_col_offset)

    def _offset(self, row: int, column: int) -> int:
        """The offset of a place that Python gives by its row and the bytes before it."""
        line = self._source.line(row)
        inside = column if line.isascii() else len(line.encode()[:column].decode())
        return self._source.line_starts[row - 1] + inside
