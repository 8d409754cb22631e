"""The format of Jupyter notebooks (nbformat 4): JSON, read so that each piece of code is known with its place.

A notebook is read and written here as text. What changes is the values of some cells' ``source``; whatever else stands
in the file, with its blanks, the order of its keys and the way its characters are escaped, is never touched, and never
even turned into values where that can be helped: outputs may be large.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from mllint.syntax.leftovers import leftover
from mllint.syntax.source import DecodingError

_FORMAT = 4
_BLANKS = re.compile(r"[ \t\n\r]*")
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])")
"""A character that is none of ASCII, and escaped."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NOTHING_ELSE = "nothing in this file was checked"
_HELP = f"open the notebook in Jupyter and save it; {_NOTHING_ELSE}"
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class Piece(NamedTuple):
    """A string of JSON: where it begins and ends in the file, its quotes included, and what it says."""

    start: int
    end: int
    text: str


class Cell(NamedTuple):
    """A cell: its number, from 1 over all cells, and where the value of its ``source`` is.

    That is one string, or a list of them (``is_list``).
    """

    number: int
    kind: str
    metadata: Mapping[str, Any]
    start: int
    end: int
    pieces: tuple[Piece, ...]
    is_list: bool

    @property
    def text(self) -> str:
        """What stands in the cell."""
        return "".join([piece.text for piece in self.pieces])


class Notebook:
    """A notebook: the text of its file, and all of its cells."""

    def __init__(self, raw: str) -> None:
        """Read the text of a file.

        Raises:
            DecodingError: it is no notebook of this format.
        """
        self.raw = raw
        reader = _Reader(raw)
        try:
            members = reader.notebook()
        except json.JSONDecodeError as error:
            left = leftover(raw, error.lineno)
            message, help_text = left or (f"the notebook is not valid JSON: {error.msg}", f"mend it; {_NOTHING_ELSE}")
            raise DecodingError(message, error.lineno, help_text) from None
        except RecursionError:
            raise DecodingError("the JSON of the notebook is nested too deep", 1, _HELP) from None
        self.metadata = _table(members.get("metadata"))
        self.cells = _checked_cells(members)

    @property
    def is_python(self) -> bool:
        """Whether the notebook is one of Python, or does not say what it is one of."""
        named = (_table(self.metadata.get("language_info")).get("name"),
                 _table(self.metadata.get("kernelspec")).get("language"))  # fmt: skip
        language = next((name for name in named if isinstance(name, str) and name), "python")
        return language.lower().startswith(("python", "ipython"))

    def with_texts(self, texts: Mapping[int, str]) -> str:
        """The text of the file with other text in some cells, by their numbers."""
        changed = [cell for cell in self.cells if cell.number in texts]
        parts: list[str] = []
        position = 0
        for cell in changed:
            parts += (self.raw[position : cell.start], self._written(cell, texts[cell.number]))
            position = cell.end
        return "".join((*parts, self.raw[position:]))

    def position(self, cell: Cell, offset: int) -> int:
        """Where in the file a character of a cell's text stands, or where the text ends."""
        for piece in cell.pieces:
            if offset < len(piece.text):
                return self._in_piece(piece, offset)
            offset -= len(piece.text)
        return cell.pieces[-1].end - 1 if cell.pieces else cell.start

    def _in_piece(self, piece: Piece, offset: int) -> int:
        position = piece.start + 1
        for character in piece.text[:offset]:
            if self.raw[position] != "\\":
                position += 1
            elif self.raw[position + 1] != "u":
                position += 2
            else:
                position += 6 if character <= "\uffff" else 12
        return position

    def _written(self, cell: Cell, text: str) -> str:
        """Text as the value of a cell's ``source``, in the style that this has."""
        if not cell.is_list:
            return self._quoted(text)
        kept = {piece.text: self.raw[piece.start : piece.end] for piece in cell.pieces}
        lines = [kept.get(line) or self._quoted(line) for line in _LINE.findall(text)]
        if not lines or not cell.pieces:
            return f"[{', '.join(lines)}]"
        before, behind = self.raw[cell.start : cell.pieces[0].start], self.raw[cell.pieces[-1].end : cell.end]
        between = f",{before[1:] or ' '}"
        if len(cell.pieces) > 1:
            between = self.raw[cell.pieces[0].end : cell.pieces[1].start]
        return f"{before}{between.join(lines)}{behind}"

    def _quoted(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._is_escaped)

    @cached_property
    def _is_escaped(self) -> bool:
        """Whether the file escapes what is no ASCII."""
        return self.raw.isascii() and _ESCAPED.search(self.raw) is not None


def text_of_cells(data: bytes) -> bytes:
    """What stands in the cells of a notebook; the bytes themselves where they are none that can be read."""
    try:
        cells = Notebook(data.decode("utf-8-sig")).cells
    except (DecodingError, UnicodeDecodeError):
        return data
    return "\n".join([cell.text for cell in cells if cell.kind == "code"]).encode("utf-8", "replace")


class _Reader:
    """Walks over JSON, and makes values only of what is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._cells: list[Cell] | None = None

    def notebook(self) -> dict[str, Any]:
        """The members of the whole, ``cells`` as cells, or as what else they are."""
        members: dict[str, Any] = {}
        for key in self._members():
            members[key] = self._list_of_cells() if key == "cells" and self._next() == "[" else self._value()
        if self._next():
            raise json.JSONDecodeError("Extra data", self._text, self._at)
        return members

    def _list_of_cells(self) -> list[Any]:
        return [self._cell(number) if self._next() == "{" else self._value() for number in self._items()]

    def _cell(self, number: int) -> Cell | None:
        """A cell; ``None`` where it has no source."""
        values: dict[str, Any] = {}
        source = None
        for key in self._members():
            if key == "source":
                source = self._source()
            elif key in ("cell_type", "metadata"):
                values[key] = self._value()
            else:
                self._value()
        if source is None:
            return None
        return Cell(number, str(values.get("cell_type")), _table(values.get("metadata")), *source)

    def _source(self) -> tuple[int, int, tuple[Piece, ...], bool] | None:
        character, start = self._next(), self._at
        if character == '"':
            piece = self._string()
            return start, self._at, (piece,), False
        if character == "[":
            pieces = [self._string() if self._next() == '"' else self._value() for _ in self._items()]
            if all(isinstance(piece, Piece) for piece in pieces):
                return start, self._at, tuple(pieces), True
        else:
            self._value()
        return None

    def _next(self) -> str:
        """The next character that is no blank; none at the end."""
        self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
        return self._text[self._at : self._at + 1]

    def _string(self) -> Piece:
        start = self._at
        text, self._at = scanstring(self._text, start + 1, True)
        return Piece(start, self._at, text)

    def _value(self) -> Any:
        self._next()
        try:
            value, self._at = _scan(self._text, self._at)
        except StopIteration as stop:
            raise json.JSONDecodeError("Expecting value", self._text, stop.value) from None
        return value

    def _members(self) -> Iterator[str]:
        """The keys of an object, each when its value is about to be read."""
        for _ in self._parts("{", "}"):
            if self._next() != '"':
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self._text, self._at)
            key = self._string().text
            if self._next() != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", self._text, self._at)
            self._at += 1
            yield key

    def _items(self) -> Iterator[int]:
        """The numbers, from 1, of the items of an array, each when it is about to be read."""
        return self._parts("[", "]")

    def _parts(self, begin: str, end: str) -> Iterator[int]:
        if self._next() != begin:
            raise json.JSONDecodeError("Expecting value", self._text, self._at)
        self._at += 1
        if self._next() == end:
            self._at += 1
            return
        number = 0
        while True:
            number += 1
            yield number
            character = self._next()
            if character not in (",", end) or not character:
                raise json.JSONDecodeError("Expecting ',' delimiter", self._text, self._at)
            self._at += 1
            if character == end:
                return


def _checked_cells(members: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells among the members of a notebook.

    Raises:
        DecodingError: it is of another format, or is none.
    """
    version, cells = members.get("nbformat"), members.get("cells")
    if isinstance(version, int) and version != _FORMAT:
        advice = f"convert it with `jupyter nbconvert --to notebook`, or save it in Jupyter; {_NOTHING_ELSE}"
        raise DecodingError(f"a notebook of format {version}: mllint reads those of format {_FORMAT}", 1, advice)
    if version != _FORMAT or not isinstance(cells, list):
        missing = "`cells`" if version == _FORMAT else "`nbformat`"
        raise DecodingError(f"this JSON is no notebook: it has no {missing}", 1, _HELP)
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, Cell):
            raise DecodingError(f"cell {number} of the notebook has no `source` that is text", 1, _HELP)
    return tuple(cells)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
