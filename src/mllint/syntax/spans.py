"""Where nodes stand in the text: computed for the nodes that are asked for, in one pass, and only then.

LibCST's own position provider resolves every node and costs more than the parse. This one runs the same code
generation once, counts code points, and records just the wanted nodes.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import libcst as cst
from libcst._nodes.internal import CodegenState

from mllint.syntax.parse import MAX_BRANCHES, MAX_CHAIN, MAX_DEPTH, parsable

# Code generation takes up to four Python frames a level; most levels has an `elif` chain.
_FRAMES = 4 * (MAX_BRANCHES + MAX_CHAIN + MAX_DEPTH) + 1000


class RoundTripError(Exception):
    """The tree does not print the text it was parsed from (or at all), so that no place in it can be trusted."""


class _SpanRecorder(CodegenState):
    """Code generation that records the offsets of wanted nodes."""

    __slots__ = ("offset", "spans", "starts", "wanted")

    def __init__(self, module: cst.Module, wanted: set[int]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.wanted = wanted
        self.offset = 0
        self.starts: dict[int, int] = {}
        self.spans: dict[int, tuple[int, int]] = {}

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        self.offset += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def pop_trailing_newline(self) -> None:
        if self.tokens:
            self.offset -= len(self.tokens.pop())

    def before_codegen(self, node: cst.CSTNode) -> None:
        key = id(node)
        if key in self.wanted:
            self.starts[key] = self.offset

    def after_codegen(self, node: cst.CSTNode) -> None:
        key = id(node)
        if key in self.wanted and key not in self.spans:
            self.spans[key] = (self.starts[key], self.offset)

    @contextmanager
    def record_syntactic_position(
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> Iterator[None]:
        key = id(node)
        if key not in self.wanted:
            yield
            return
        start = self.offset
        # Some statements begin or end where a child does; that child must be recorded too.
        hoisted = [id(child) for child in (start_node, end_node) if child is not None]
        self.wanted.update(hoisted)
        yield
        end = self.offset
        if start_node is not None:
            start = self.spans[id(start_node)][0]
        if end_node is not None:
            end = self.spans[id(end_node)][1]
        self.spans[key] = (start, end)


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for the deepest tree that the bounds of ``parse`` let through."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def spans_of(module: cst.Module, nodes: Iterable[cst.CSTNode], text: str) -> dict[int, tuple[int, int]]:
    """The syntactic spans (start and end offset in code points) of nodes, keyed by ``id(node)``.

    Raises:
        RoundTripError: the tree does not reproduce ``text``, or is too deep for this Python: 3.12 allows some hundred
            calls by way of C, whatever limit is set.
    """
    recorder = _SpanRecorder(module, {id(node) for node in nodes})
    try:
        with _deep_recursion():
            module._codegen(recorder)
    except RecursionError:
        raise RoundTripError from None
    if "".join(recorder.tokens) != parsable(text):
        raise RoundTripError
    return recorder.spans
