"""The questions a rule may ask about the file it looks at. Nothing here can be changed by a rule."""

import libcst as cst

from mllint.syntax.source import Source
from mllint.syntax.walk import Tree


class Context:
    """One file as a rule sees it."""

    def __init__(self, source: Source, tree: Tree) -> None:
        self._source = source
        self._tree = tree

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one; ``None`` for the module."""
        return self._tree.parent(node)

    def text(self, node: cst.CSTNode) -> str:
        """The node's source text, outer parentheses included. For edits of multi-line nodes use their parts."""
        return self._tree.module.code_for_node(node)
