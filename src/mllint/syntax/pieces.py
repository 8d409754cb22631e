"""A large text in pieces that can be parsed one after the other, and the tree that their trees are together.

While LibCST's native parser works it needs about ten times the memory of the tree that it makes, and the peak counts.
So a large file is cut where a statement of the module begins behind a blank line, and nothing can be told from the
tree afterwards. Where that cannot be sure, the file is parsed in one piece.
"""

import re
from collections.abc import Iterator, Sequence

import libcst as cst

SIZE = 60_000
"""Characters that a piece has at least."""

# The last line of a statement, a gap of lines that are empty or comments from their beginning, and what surely begins
# a statement. In a string or brackets it does not, but then the piece before it is no program.
_CUT = re.compile(
    r"""
    ^(?![ \t]*(?:\#|\r?$))[^\n]*[^\\\r\n](?P<newline>\r?\n)
    (?P<gap>(?:(?:\#[^\r\n]*)?(?P=newline))*)
    (?=(?:@|(?:async[ ]|def|class|import|from|for|while|with|if)\b))
    """,
    re.VERBOSE | re.MULTILINE,
)


class UncertainError(Exception):
    """The trees of the pieces are not parts of one tree."""


def pieces(text: str) -> list[str]:
    """The text, cut into pieces of at least ``SIZE`` characters; the gap before a statement goes with it."""
    found = []
    start = 0
    while (cut := _CUT.search(text, _line_start(text, start + SIZE))) is not None:
        found.append(text[start : cut.start("gap")])
        start = cut.start("gap")
    return [*found, text[start:]]


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def joined(modules: Sequence[cst.Module]) -> cst.Module:
    """The module that these are together.

    Raises:
        UncertainError: that cannot be told, because they are indented or end their lines in different ways.
    """
    first, last = modules[0], modules[-1]
    indents = {module.default_indent for module in modules if _has_block(module)}
    newlines = {module.default_newline for module in modules}
    if len(indents) > 1 or len(newlines) > 1 or any(module.footer for module in modules[:-1]):
        raise UncertainError
    body = [*first.body, *(statement for module in modules[1:] for statement in _with_header(module))]
    return first.with_changes(
        body=body,
        footer=last.footer,
        default_indent=next(iter(indents), first.default_indent),
        has_trailing_newline=last.has_trailing_newline,
    )


def _has_block(module: cst.Module) -> bool:
    """Whether anything in a module is indented: without, its default says nothing."""
    return any(isinstance(getattr(statement, "body", None), cst.IndentedBlock) for statement in module.body)


def _with_header(module: cst.Module) -> Iterator[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """The statements of a module; the lines above the first belong to that, for it does not begin the file."""
    if not module.body:
        raise UncertainError
    head, *rest = module.body
    yield head.with_changes(leading_lines=(*module.header, *head.leading_lines))
    yield from rest
