"""A notebook as one program: its cells of Python one below the other, since what one defines the next ones use.

In front of each cell stands a comment that no cell has. A rule sees by it where a cell ends (its last value is shown);
and by it a text that a fix has made of the program is taken apart again, to be put into the cells. Cells of another
language are left out. Of those that cannot be read ``faults`` tell; in the program they may do anything with what they
name.
"""

import codecs
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from mllint.diagnostics import Location
from mllint.syntax.ipython import Reading, reading_of
from mllint.syntax.layout import Layout
from mllint.syntax.notebook import Cell, Notebook
from mllint.syntax.source import Fault, Source, UnwritableError, decoded_text

_MARK = "# %% cell"
_LANGUAGES = ("python", "ipython")
_ACROSS = "it would reach another cell"


class _Part(NamedTuple):
    """A cell that is part of the program, with the lines above it."""

    cell: Cell
    reading: Reading
    head: str


class NotebookSource(Source):
    """The source of a notebook.

    Rows and columns that a reader is told are those of a cell; rows of the file itself are asked for by ``in_file``.
    """

    __slots__ = ("_data", "_notebook", "_parts")

    def __init__(self, data: bytes, path: str) -> None:
        """Read the bytes of a notebook.

        Raises:
            DecodingError: they are none of a format that is known.
        """
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        self._data = data
        self._notebook = Notebook(decoded_text(data[len(mark) :], "utf-8"))
        self._parts, faults = _parts_of(self._notebook)
        text = _joined(self._parts, [part.cell.text for part in self._parts])
        super().__init__(text, path, byte_order_mark=mark)
        self.program = _joined(self._parts, [part.reading.program for part in self._parts])
        self.faults = faults

    def encode(self, text: str) -> bytes:
        """The bytes of the notebook with the cells that this text is made of; nothing but these cells differs.

        Raises:
            UnicodeEncodeError: a character that UTF-8 does not have.
            UnwritableError: an edit has gone across the border of a cell, or changed a command of IPython.
        """
        if text == self.text:
            return self._data
        texts = {
            part.cell.number: new
            for part, new in zip(self._parts, self._taken_apart(text), strict=True)
            if new != part.cell.text
        }
        data = super().encode(self._notebook.with_texts(texts))
        written = NotebookSource(data, self.path)
        if written.text != text or written.commands != self.commands:
            raise UnwritableError(_ACROSS)
        return data

    def _taken_apart(self, text: str) -> Iterator[str]:
        """The text of each cell.

        Raises:
            UnwritableError: not everything that stands between the cells is where it was.
        """
        heads = [part.head for part in self._parts]
        if any(text.count(f"\n{head}") + text.startswith(head) != 1 for head in heads):
            raise UnwritableError(_ACROSS)
        starts = [0, *(text.find(f"\n{head}") + 1 for head in heads[1:]), len(text)]
        for head, (start, end) in zip(heads, pairwise(starts), strict=True):
            content = text[start + len(head) : end]
            if not text.startswith(head, start) or not content.endswith("\n"):
                raise UnwritableError(_ACROSS)
            yield content[:-1]

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of IPython that are no part of the program, cell by cell."""
        return tuple(command for part in self._parts for command in part.reading.commands)

    # -- places ------------------------------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[int]:
        """Where each cell begins in the text."""
        sizes = [len(part.head) + len(part.cell.text) + 1 for part in self._parts]
        return [before + len(part.head) for before, part in zip(accumulate([0, *sizes]), self._parts, strict=False)]

    @cached_property
    def _first_rows(self) -> list[int]:
        """The row of the text in which each cell begins."""
        return [bisect_right(self.line_starts, start) for start in self._starts]

    @cached_property
    def _cells(self) -> dict[int, Cell]:
        return {cell.number: cell for cell in self._notebook.cells}

    @cached_property
    def layout(self) -> Layout:
        """Chunks of rows and comments; what stands below the last line of a cell is not about the next one."""
        found = super().layout
        comments = (
            comment
            if comment.target is None or self._index(comment.row) == self._index(comment.target.first)
            else comment._replace(target=None)
            for comment in found.comments
        )
        return Layout(found.chunks, tuple(comments))

    def _index(self, row: int) -> int:
        """Which of the cells a row of the text stands in."""
        return bisect_right(self._first_rows, row) - 1

    def placed(self, place: Location) -> Location:
        """The cell of a place, and where it is in there."""
        if not self._parts:
            return place
        index = self._index(place.row)
        if index < 0:
            return Location(1, 1, self._parts[0].cell.number)
        return Location(place.row - self._first_rows[index] + 1, place.column, self._parts[index].cell.number)

    def unplaced(self, place: Location) -> Location:
        """The place in the text of one in a cell."""
        numbers = [part.cell.number for part in self._parts]
        if place.cell not in numbers:
            return Location(1, 1)  # of a cell that is no part of the program
        return Location(self._first_rows[numbers.index(place.cell)] + place.row - 1, place.column)

    def in_file(self, place: Location) -> Location:
        """The place in the file of one in a cell: where an editor shows it that shows the file as it is."""
        cell = None if place.cell is None else self._cells.get(place.cell)
        if cell is None:
            return place
        text = cell.text
        shown = Source(text, self.path)
        is_there = place.row <= len(shown.line_starts)
        offset = min(shown.line_starts[place.row - 1] + place.column - 1, len(text)) if is_there else len(text)
        raw = self._notebook.raw
        position = self._notebook.position(cell, offset)
        return Location(raw.count("\n", 0, position) + 1, position - raw.rfind("\n", 0, position))

    def part(self, cell: int | None) -> str:
        """What stands in a cell; without one, in the file."""
        if cell is None:
            return self._notebook.raw
        return self._cells[cell].text if cell in self._cells else ""


def _parts_of(notebook: Notebook) -> tuple[tuple[_Part, ...], tuple[Fault, ...]]:
    """The cells that make the program, and what is wrong with the others of Python."""
    cells = [cell for cell in notebook.cells if _is_python(cell)] if notebook.is_python else []
    mark = _MARK
    while any(mark in cell.text for cell in cells):
        mark += "_"
    parts: list[_Part] = []
    faults: list[Fault] = []
    for cell in cells:
        reading = reading_of(cell.text)
        if reading is None:
            continue
        problem = reading.problem
        if problem is not None:
            faults.append(Fault(Location(problem.row, problem.column, cell.number), problem.message, problem.help))
        if problem is None or _is_text(cell.text):
            parts.append(_Part(cell, reading, f"{mark} {cell.number}\n{reading.head}"))
    return tuple(parts), tuple(faults)


def _is_python(cell: Cell) -> bool:
    """Whether a cell is one of Python, as far as its metadata say; and not one that is to raise an error."""
    editor, tags = cell.metadata.get("vscode"), cell.metadata.get("tags")
    language = editor.get("languageId") if isinstance(editor, dict) else None
    if cell.kind != "code" or (isinstance(language, str) and language.lower() not in _LANGUAGES):
        return False
    return not (isinstance(tags, list) and "raises-exception" in tags)


def _is_text(text: str) -> bool:
    """Whether a text can be part of a file; halves of characters cannot."""
    return "\0" not in text and text == text.encode("utf-8", "replace").decode()


def _joined(parts: tuple[_Part, ...], texts: list[str]) -> str:
    return "".join([f"{part.head}{text}\n" for part, text in zip(parts, texts, strict=True)])
