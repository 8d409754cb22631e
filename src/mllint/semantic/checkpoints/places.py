"""Expressions in some file, and how messages name where they stand."""

from pathlib import PurePath
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.syntax.parse import ParseError
from mllint.syntax.spans import RoundTripError, spans_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class Place(msgspec.Struct, frozen=True):
    """An expression in some file."""

    model: "Model"
    node: cst.CSTNode

    def is_of(self, model: "Model", node: cst.CSTNode) -> bool:
        """Whether it is this expression of a file, also where that file was read twice."""
        if self.model is model or self.node is node:
            return self.model is model and self.node is node
        return self.model.path == model.path and self.model.tree.twin(node, model.tree) is self.node

    def seen_from(self, model: "Model") -> str:
        """The place as a message in another file, or in the same one, names it: ``train.py:12`` or ``line 12``."""
        row = self._row()
        if self.model is model:
            return "this file" if row is None else f"line {row}"
        name = PurePath(self.model.source.path).name
        return f"`{name}`" if row is None else f"{name}:{row}"

    def _row(self) -> int | None:
        """The first row of the expression; ``None`` in a file that cannot be printed back as it was."""
        source = self.model.source
        try:
            tree = self.model.full_tree
            node = tree.twin(self.node, self.model.tree)
            start = None if node is None else spans_of(tree.module, [node], source.text)[id(node)][0]
        except (ParseError, RoundTripError):
            return None
        return None if start is None else source.location(start).row
