"""What every form of output is made of: findings in order, and the rows that they stand in."""

import re
from collections.abc import Iterable

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


class Rows:
    """The rows of a file's source, as far as it can be decoded; none where there is no source."""

    def __init__(self, data: bytes, path: str) -> None:
        try:
            text = Source.from_bytes(data, path).text
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
