"""What every form of output is made of: findings in order, and the rows that they stand in."""

import re
from collections.abc import Iterable
from functools import cached_property

import msgspec

from mllint.diagnostics import Diagnostic
from mllint.output.style import Style
from mllint.running.runner import Outcome
from mllint.syntax.source import DecodingError, Source

_LINE_END = re.compile(r"\r\n?|\n")


class View(msgspec.Struct, frozen=True):
    """How findings are shown; ``unsafe``: whether unsafe fixes count as fixes."""

    style: Style = Style()
    unsafe: bool = False


def findings(outcomes: Iterable[Outcome]) -> list[Diagnostic]:
    """All findings in the order of every output: by path, row, column, code."""
    every = (diagnostic for outcome in outcomes for diagnostic in outcome.result.diagnostics)
    return sorted(every, key=lambda diagnostic: diagnostic.sort_key)


def in_file(outcome: Outcome) -> Outcome:
    """The outcome with the places of its findings in the file as it is: in a notebook, in its JSON.

    Fixes are left out there: they are made in the program, and would have to be written as JSON. What has no such place
    is left as it is.
    """
    if all(item.location.cell is None for item in outcome.result.diagnostics):
        return outcome
    source = Source.from_bytes(outcome.source, outcome.result.path)
    diagnostics = tuple(
        msgspec.structs.replace(
            item,
            message=f"{item.message} (cell {item.location.cell})",
            location=source.in_file(item.location),
            end_location=source.in_file(item.end_location),
            fix=None,
        )
        if item.location.cell is not None
        else item
        for item in outcome.result.diagnostics
    )
    return msgspec.structs.replace(outcome, result=msgspec.structs.replace(outcome.result, diagnostics=diagnostics))


class Rows:
    """The rows of a file, as far as it can be decoded; none where there is no source."""

    def __init__(self, data: bytes, path: str) -> None:
        try:
            text = Source.decoded(data, path).text
        except DecodingError:
            # The finding says which byte is wrong; the rows help all the same.
            text = data.decode("utf-8-sig", "replace")
        self.rows = _LINE_END.split(text)

    def row(self, number: int) -> str:
        """A 1-based row without its line end; empty where there is no such row."""
        return self.rows[number - 1] if 1 <= number <= len(self.rows) else ""

    def bytes_before(self, row: int, column: int) -> int:
        """How many bytes of UTF-8 stand before a 1-based column of a row."""
        return len(self.row(row)[: column - 1].encode("utf-8", "surrogatepass"))


class Parts:
    """The rows of a file, and of a notebook those of its cells."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path
        self._known: dict[int | None, list[str]] = {}

    def rows(self, cell: int | None) -> list[str]:
        """The rows of a cell; without one, those of the file."""
        if cell not in self._known:
            self._known[cell] = (
                Rows(self._data, self._path).rows if cell is None else _LINE_END.split(self._source.part(cell))
            )
        return self._known[cell]

    @cached_property
    def _source(self) -> Source:
        return Source.from_bytes(self._data, self._path)
