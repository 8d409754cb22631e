"""How the physical lines of a file belong together, and where its comments stand.

It takes one pass of Python's tokenizer, which is paid only for files in which a comment matters (a
suppression, a fix that might lose one).
"""

import re
import tokenize
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n?|\n")
_BLANK = frozenset((tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT))


class Rows(NamedTuple):
    """A run of 1-based rows, both ends included."""

    first: int
    last: int


class Comment(NamedTuple):
    """A comment, from its ``#`` to the end of its line.

    ``row`` is 1-based, ``column`` 0-based. ``target`` is what the comment is about: a trailing
    comment is about its own chunk; one that stands alone is about the next logical line (a
    decorated definition counts from its first decorator to its header) or, inside brackets, about
    the next chunk. ``None``: nothing follows.
    """

    row: int
    column: int
    text: str
    target: Rows | None


class Layout(NamedTuple):
    """Chunks and comments of one file.

    A chunk is a physical line, or several that a backslash or a multi-line string ties together.
    ``chunks`` maps each row to its chunk; it is empty where the tokenizer gives up, and
    ``comments`` are those before that place.
    """

    chunks: dict[int, Rows]
    comments: tuple[Comment, ...]


def split_lines(text: str) -> list[str]:
    r"""The physical lines, each ending in ``\n`` whatever ended it in the file, as flake8 does."""
    lines = _LINE_END.sub("\n", text).split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def layout_of(text: str) -> Layout:
    """The layout of a text. Raises nothing: what cannot be tokenized is left out."""
    reader = _Reader()
    chunks = reader.chunks
    try:
        for token in tokenize.generate_tokens(iter(split_lines(text)).__next__):
            reader.read(token)
    except (tokenize.TokenError, SyntaxError):
        chunks = {}
    return Layout(chunks, reader.comments)


class _Reader:
    """One pass over the tokens: groups rows into chunks, and gives each comment its target."""

    def __init__(self) -> None:
        self.chunks: dict[int, Rows] = {}
        self._comments: list[tuple[int, int, str]] = []
        self._targets: dict[int, Rows] = {}  # index of a comment -> what it is about
        self._trailing: list[int] = []  # comments behind code in the open chunk
        self._before_chunk: list[int] = []  # comments alone on their line inside brackets
        self._before_statement: list[int] = []  # comments alone on their line between logical lines
        self._chunk: Rows | None = None
        self._chunk_has_code = False
        self._statement_row = 0  # first row of the open logical line; 0 between logical lines
        self._is_decorator = False

    @property
    def comments(self) -> tuple[Comment, ...]:
        """The comments read so far."""
        return tuple(Comment(*comment, self._targets.get(index)) for index, comment in enumerate(self._comments))

    def read(self, token: tokenize.TokenInfo) -> None:
        """Take the next token."""
        if token.type in (tokenize.DEDENT, tokenize.ENDMARKER):
            return
        first, last = token.start[0], token.end[0]
        self._chunk = Rows(self._chunk.first if self._chunk else first, last)
        if token.type == tokenize.COMMENT:
            self._read_comment(token)
        elif token.type not in _BLANK:
            self._chunk_has_code = True
            if not self._statement_row:
                self._statement_row = first
                self._is_decorator = token.string == "@"
        elif token.type != tokenize.INDENT:
            self._close_chunk(self._chunk)
            if token.type == tokenize.NEWLINE:
                self._close_statement(last)

    def _read_comment(self, token: tokenize.TokenInfo) -> None:
        index = len(self._comments)
        self._comments.append((*token.start, token.string))
        if self._chunk_has_code:
            self._trailing.append(index)
        elif self._statement_row:
            self._before_chunk.append(index)
        else:
            self._before_statement.append(index)

    def _close_chunk(self, chunk: Rows) -> None:
        self.chunks.update(dict.fromkeys(range(chunk.first, chunk.last + 1), chunk))
        self._targets.update(dict.fromkeys(self._trailing, chunk))
        self._trailing.clear()
        if self._chunk_has_code:
            self._targets.update(dict.fromkeys(self._before_chunk, chunk))
            self._before_chunk.clear()
        self._chunk = None
        self._chunk_has_code = False

    def _close_statement(self, last_row: int) -> None:
        if not self._statement_row:
            return
        for index in self._before_statement:
            decorators = self._targets.get(index)
            first_row = decorators.first if decorators else self._statement_row
            self._targets[index] = Rows(first_row, last_row)
        if not self._is_decorator:
            self._before_statement.clear()
        self._statement_row = 0
