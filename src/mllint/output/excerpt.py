"""The piece of source that a finding is about, with the span marked."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mllint.diagnostics import Diagnostic, Location
from mllint.output.found import Parts
from mllint.output.style import Style, printable, width

_CONTEXT = 2
"""Rows shown before and after the finding."""
_HEAD, _TAIL = 5, 1
"""Rows at the start and at the end of a long finding that are shown."""
_LONGEST_ROW = 160
"""Code points of a row that are shown; of a longer one those around the finding."""

_Line = tuple[str, str]
"""What stands left and right of the frame."""


class Excerpt(NamedTuple):
    """Lines to show, and how many columns their row numbers fill."""

    gutter: int
    lines: tuple[str, ...]


class Excerpts:
    """The rows of one file, for all the findings in it."""

    def __init__(self, data: bytes, path: str, style: Style) -> None:
        self._parts = Parts(data, path)
        self._rows: list[str] = []
        self._style = style

    def excerpt(self, diagnostic: Diagnostic) -> Excerpt:
        """The rows of a finding with its span marked; empty where it is about no row of the
        file.
        """
        self._rows = self._parts.rows(diagnostic.location.cell)
        start, end = diagnostic.location, diagnostic.end_location
        if start.row > len(self._rows) or self._rows == [""]:
            return Excerpt(1, ())
        last = max(start.row, min(end.row, len(self._rows)))
        if last == start.row:
            marked, margin = self._mark_in_row(start, end), ""
        else:
            marked, margin = self._mark_rows(start, last, end.column), "  "
        lines: list[_Line] = [
            ("", ""),
            *self._plain(self._before(start.row), margin),
            *marked,
            *self._plain(self._after(last), margin),
            ("", ""),
        ]
        gutter = max(len(number) for number, _ in lines)
        frame = self._style.frame
        shown = (f"{frame(f'{number:>{gutter}} |')} {text}".rstrip() for number, text in lines)
        return Excerpt(gutter, tuple(shown))

    def _before(self, row: int) -> range:
        """The rows of context above, without blank ones at the top."""
        first = max(1, row - _CONTEXT)
        while first < row and not self._rows[first - 1].strip():
            first += 1
        return range(first, row)

    def _after(self, row: int) -> range:
        """The rows of context below, without blank ones at the bottom."""
        last = min(len(self._rows), row + _CONTEXT)
        while last > row and not self._rows[last - 1].strip():
            last -= 1
        return range(row + 1, last + 1)

    def _plain(self, rows: Iterable[int], margin: str) -> Iterator[_Line]:
        for row in rows:
            yield str(row), margin + self._shown(row)[0]

    def _shown(self, row: int, column: int = 1) -> tuple[str, int]:
        """A row as it is shown around a column, and how many code points in front are left out."""
        text = self._rows[row - 1]
        if len(text) <= _LONGEST_ROW:
            return _clean(text), 0
        skipped = max(0, min(column - 1 - _LONGEST_ROW // 4, len(text) - _LONGEST_ROW))
        shown = _clean(text[skipped : skipped + _LONGEST_ROW])
        return ("…" if skipped else "") + shown + ("…" * (skipped + _LONGEST_ROW < len(text))), skipped

    def _offset(self, row: int, column: int, skipped: int) -> int:
        """At how many terminal columns into the shown row a column of the source stands."""
        text = self._rows[row - 1][skipped : skipped + _LONGEST_ROW]
        return width(_clean(text[: max(0, column - 1 - skipped)])) + bool(skipped)

    def _mark_in_row(self, start: Location, end: Location) -> Iterator[_Line]:
        shown, skipped = self._shown(start.row, start.column)
        left = self._offset(start.row, start.column, skipped)
        right = self._offset(start.row, end.column, skipped) if end.row == start.row else left
        yield str(start.row), shown
        yield "", " " * left + self._style.code("^" * max(1, right - left))

    def _mark_rows(self, start: Location, last: int, end_column: int) -> Iterator[_Line]:
        """A finding of several rows: a line on the left leads from its start to its end."""
        code = self._style.code
        shown, _ = self._shown(start.row)
        begins_row = not self._rows[start.row - 1][: start.column - 1].strip()
        yield str(start.row), (code("/") if begins_row else " ") + " " + shown
        if not begins_row:
            yield "", " " + code("_" * (self._offset(start.row, start.column, 0) + 1) + "^")
        rows = range(start.row + 1, last + 1)
        for row in rows[: _HEAD - 1] if len(rows) > _HEAD + _TAIL else rows:
            yield str(row), f"{code('|')} {self._shown(row)[0]}"
        if len(rows) > _HEAD + _TAIL:
            yield "...", code("|")
            yield str(last), f"{code('|')} {self._shown(last)[0]}"
        yield "", code("|" + "_" * (self._offset(last, end_column - 1, 0) + 1) + "^")


def _clean(text: str) -> str:
    return printable(text.replace("\t", "    "))
