"""One file's text: decoded once, so that every byte outside an edit can be written back as it was."""

import ast
import codecs
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

from mllint.diagnostics import Location
from mllint.syntax.gate import is_notebook
from mllint.syntax.layout import Layout, layout_of

_LINE_END = re.compile(r"\r\n?|\n")
# https://pypi.org/project/future-fstrings: UTF-8 that is rewritten when it is imported; Python without it knows no such
# encoding.
_REWRITTEN = re.compile(rb"\A(?:[^\r\n]*\r?\n)?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*future[-_]fstrings\b")

_COOKIE = re.compile(rb"\A(?:[ \t\f]*(?:#[^\r\n]*)?\r?\n)?[ \t\f]*#[^\r\n]*?coding[:=]")
_ODD_HELP = "write it in UTF-8, or say above which encoding it is in; what else is found here has no fix till then"


class DecodingError(Exception):
    """The bytes are not text in the encoding that the file declares (or in UTF-8), or no notebook; ``row`` is 1-based.

    ``help`` is what to do about it, where that is known.
    """

    def __init__(self, message: str, row: int, help_text: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.help = help_text


class UnwritableError(Exception):
    """The text cannot be put where the text of the file was, and why not."""


class Fault(NamedTuple):
    """A part of a file that cannot be read, while the rest can: where, what is wrong, and what to do about it."""

    place: Location
    message: str
    help: str | None = None


def bytes_of(text: str) -> bytes:
    """Bytes of which a file could consist that holds this text: in the encoding that it declares.

    UTF-8 where that encoding is unknown or lacks a character.
    """
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding = _encoding_of(data)
        return data if encoding.startswith("utf-8") else text.encode(encoding)
    except (SyntaxError, UnicodeError):
        return data


def _encoding_of(data: bytes) -> str:
    return "utf-8" if _REWRITTEN.match(data) else tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def decoded_text(body: bytes, encoding: str) -> str:
    """The text of bytes in an encoding.

    Raises:
        DecodingError: they are none.
    """
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        row = body.count(b"\n", 0, error.start) + 1
        byte = body[error.start]
        raise DecodingError(f"byte 0x{byte:02x} is not valid {encoding}", row) from None
    except (LookupError, ValueError):
        # What the cookie names decodes bytes to bytes (`rot13`), or is no encoding of files (`undefined`).
        raise DecodingError(f"{encoding} is not an encoding of text", 1) from None


def _is_imported(data: bytes) -> bool:
    """Whether Python imports a file of such bytes: it takes some that are no UTF-8 where they stand in comments."""
    try:
        syntax_tree(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class Source:
    """The decoded text of one file and how to get back to its bytes.

    ``text`` has no byte-order mark and keeps its line ends as they are. ``program`` is what parsers are shown: the
    text, but for what a notebook has in it that is no Python; as long, with everything at its place. ``faults`` are the
    parts that could not be read and are not in the program.

    Rows and places count from the beginning of the text. Where a file is shown in parts (the cells of a notebook),
    ``placed`` and ``unplaced`` lead to the places that a reader counts, and back.
    """

    __slots__ = ("__dict__", "byte_order_mark", "encoding", "faults", "path", "program", "text")

    is_writable = True
    """Whether another text can be put where this one was."""

    def __init__(self, text: str, path: str, encoding: str = "utf-8", byte_order_mark: bytes = b"") -> None:
        self.text = self.program = text
        self.path = path
        self.encoding = encoding
        self.byte_order_mark = byte_order_mark
        self.faults: tuple[Fault, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> "Source":
        """The source of a file: of a notebook, its cells put together.

        Raises:
            DecodingError: see ``decoded``; or a notebook that cannot be read.
        """
        if is_notebook(data, path):
            from mllint.syntax.cells import NotebookSource  # which is a source

            return NotebookSource(data, path)
        return cls.decoded(data, path)

    @classmethod
    def decoded(cls, data: bytes, path: str) -> "Source":
        """Decode by byte-order mark, coding cookie (PEP 263) or UTF-8.

        Raises:
            DecodingError: unknown or contradictory encoding, bytes that do not decode, or NUL bytes.
        """
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        try:
            encoding = _encoding_of(data)
        except (SyntaxError, UnicodeDecodeError) as error:
            if not _is_imported(data):
                raise DecodingError(str(error).partition(" for ")[0], 1) from None
            encoding = "utf-8"
        if mark:
            encoding = "utf-8"
        try:
            text = decoded_text(data[len(mark) :], encoding)
        except DecodingError as error:
            if encoding.startswith("utf-8") and b"\0" not in data and _is_imported(data):
                return OddSource(data, path, mark, error)
            raise
        if "\0" in text:
            raise DecodingError("source contains a NUL byte", text.count("\n", 0, text.index("\0")) + 1)
        return cls(text, path, encoding, mark)

    def encode(self, text: str) -> bytes:
        """The bytes of ``text`` as this file would hold it.

        Raises:
            UnicodeEncodeError: the file's encoding has no such character.
            UnwritableError: the text does not fit into the cells of this notebook.
        """
        return self.byte_order_mark + text.encode(self.encoding)

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first code point of every physical line."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def location(self, offset: int) -> Location:
        """The place (1-based row and column) of an offset."""
        row = bisect_right(self.line_starts, offset)
        return Location(row, offset - self.line_starts[row - 1] + 1)

    def placed(self, place: Location) -> Location:
        """A place in the text as a reader finds it."""
        return place

    def unplaced(self, place: Location) -> Location:
        """The place in the text of one that a reader was told."""
        return place

    def in_file(self, place: Location) -> Location:
        """The place in the file as it is of one that a reader was told."""
        return place

    def part(self, cell: int | None) -> str:
        """The text that the rows of such places are counted in."""
        return self.text

    def offset(self, place: Location) -> int:
        """The offset of a place that a reader was told."""
        inside = self.unplaced(place)
        return self.line_starts[inside.row - 1] + inside.column - 1

    @cached_property
    def layout(self) -> Layout:
        """Chunks of rows and comments; paid for by those who ask."""
        return layout_of(self.program)

    def line(self, row: int) -> str:
        """The text of a 1-based row, without its line end; empty past the end."""
        if not 1 <= row <= len(self.line_starts):
            return ""
        start = self.line_starts[row - 1]
        end = self.line_starts[row] if row < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    @cached_property
    def has_returns_only(self) -> bool:
        """Whether the lines end in a lone carriage return, all of them."""
        return "\r" in self.text and "\n" not in self.text

    @property
    def rows(self) -> int:
        """How many rows an editor shows: a final line end opens no further row; an empty file has one."""
        count = len(self.line_starts)
        return count - 1 if count > 1 and self.line_starts[-1] == len(self.text) else count


class OddSource(Source):
    """A file with comments that are no UTF-8: what it holds is known, but for these, and nothing is written into it.

    Python imports it. It runs it, too, if a cookie or a byte-order mark says that it is UTF-8, and refuses to otherwise
    (seen in 3.8 to 3.13).
    """

    is_writable = False

    def __init__(self, data: bytes, path: str, byte_order_mark: bytes, error: DecodingError) -> None:
        super().__init__(data[len(byte_order_mark) :].decode("utf-8", "replace"), path, byte_order_mark=byte_order_mark)
        self._data = data
        if not byte_order_mark and _COOKIE.match(data) is None:
            message = f"{error}: Python imports this file, but does not run it"
            self.faults = (Fault(Location(error.row, 1), message, _ODD_HELP),)

    def encode(self, text: str) -> bytes:
        """The bytes of the file, for its own text.

        Raises:
            UnwritableError: another text.
        """
        if text != self.text:
            raise UnwritableError("what stands there in other comments is no UTF-8")
        return self._data


def syntax_tree(text: str | bytes) -> ast.Module:
    """Python's own tree of a file's text, without a word about what is doubtful in it. Raises what ``ast`` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
