"""Builders of fixes: nodes in, edits out. The only place that knows about parentheses, commas and import blocks.

A rule never sees an offset. It says which node is replaced, or before or after which node something is inserted; the
engine resolves that to offsets once the finding is known to be wanted. The syntactic span of an expression excludes
its own outer parentheses, that of a statement its newline.
"""

import enum
from dataclasses import dataclass

import libcst as cst

from mllint.diagnostics import Applicability


class Side(enum.Enum):
    """Which end of a node's span."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class NodeEdit:
    """Replace the text from one side of a node to one side of another by ``content``."""

    first: cst.CSTNode
    first_side: Side
    last: cst.CSTNode
    last_side: Side
    content: str


@dataclass(frozen=True, slots=True)
class NodeFix:
    """A fix in terms of nodes: title, edits, and how far it can be trusted."""

    message: str
    edits: tuple[NodeEdit, ...]
    applicability: Applicability = Applicability.SAFE


def replace(node: cst.CSTNode, content: str) -> NodeEdit:
    """Replace the node's own text (for an expression: without its outer parentheses)."""
    return NodeEdit(node, Side.START, node, Side.END, content)


def insert_before(node: cst.CSTNode, content: str) -> NodeEdit:
    """Insert in front of the node."""
    return NodeEdit(node, Side.START, node, Side.START, content)


def insert_after(node: cst.CSTNode, content: str) -> NodeEdit:
    """Insert behind the node."""
    return NodeEdit(node, Side.END, node, Side.END, content)


def replace_between(first: cst.CSTNode, last: cst.CSTNode, content: str) -> NodeEdit:
    """Replace everything from the end of ``first`` to the end of ``last``; ``first`` stays."""
    return NodeEdit(first, Side.END, last, Side.END, content)


def delete_before(first: cst.CSTNode, last: cst.CSTNode) -> NodeEdit:
    """Delete from the start of ``first`` to the start of ``last``; ``last`` stays."""
    return NodeEdit(first, Side.START, last, Side.START, "")
