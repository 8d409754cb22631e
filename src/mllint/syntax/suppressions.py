"""Comments that silence findings: flake8's ``noqa`` exactly as flake8 reads it, and mllint's own.

``# noqa``, ``# noqa: ML101``
    The physical line on which the finding begins, or the whole of a multi-line string or of a
    backslash continuation there.
``# flake8: noqa``
    The file (flake8 does not even show it to plugins).
``# mllint: ignore[ML101, ML2] reason``
    Behind code: as ``noqa``. Alone above a statement: its whole first logical line (of a decorated
    definition: from the first decorator to the header). Alone inside brackets: the next line of
    code.
``# mllint: file-ignore[ML101] reason``
    The file.

In the brackets stand codes, prefixes of codes and names of rules. There is no form without them:
it would also silence rules that are yet to come. Only real comments count for mllint's own forms.

``noqa`` is judged by flake8's own code, so that the command line can never disagree with flake8:
``#noqa`` without the blank is not read, ``# noqa`` inside a string is.
"""

import re
from functools import cached_property
from typing import NamedTuple

from mllint.syntax.layout import Rows, split_lines
from mllint.syntax.source import Source

_OWN = re.compile(r"#\s*mllint:\s*(?P<file>file-)?ignore\[(?P<selectors>[^\]]*)\]")


class _Silence(NamedTuple):
    """What one comment of mllint's own silences; ``rows`` is ``None`` for the whole file."""

    selectors: tuple[str, ...]
    rows: Rows | None

    def covers(self, code: str, row: int, name: str | None) -> bool:
        if self.rows is not None and not self.rows.first <= row <= self.rows.last:
            return False
        return any(_names(selector, code, name) for selector in self.selectors)


class Suppressions:
    """The suppression comments of one file; nothing is tokenized before a finding asks.

    Without ``noqa`` only mllint's own comments count: for flake8, which reads the others itself,
    and for a user who wants to see what they hide.
    """

    def __init__(self, source: Source, *, noqa: bool = True) -> None:
        self._source = source
        self._noqa = noqa

    @property
    def file_is_skipped(self) -> bool:
        """Whether the file says ``# flake8: noqa``."""
        if not self._noqa or "flake8" not in self._folded_text:
            return False
        from flake8.defaults import NOQA_FILE

        return any(NOQA_FILE.match(line) for line in self._lines)

    def silences(self, code: str, row: int, name: str | None = None) -> bool:
        """Whether a comment silences the finding of this rule that begins on this 1-based row."""
        return self._flake8_silences(code, row) or any(
            silence.covers(code, row, name) for silence in self._own_silences
        )

    def _flake8_silences(self, code: str, row: int) -> bool:
        if not self._noqa or "noqa" not in self._folded_text:
            return False
        chunk = self._source.layout.chunks.get(row, Rows(row, row))
        text = "".join(self._lines[chunk.first - 1 : chunk.last])
        if "noqa" not in text.lower():
            return False
        from flake8.violation import Violation

        violation = Violation(code, self._source.path, row, 1, "", text)
        return bool(violation.is_inline_ignored(disable_noqa=False))

    @cached_property
    def _own_silences(self) -> tuple[_Silence, ...]:
        if "mllint:" not in self._source.text:
            return ()
        return tuple(
            _Silence(_selectors(match["selectors"]), None if match["file"] else comment.target)
            for comment in self._source.layout.comments
            for match in _OWN.finditer(comment.text)
            if match["file"] or comment.target is not None
        )

    @cached_property
    def _folded_text(self) -> str:
        return self._source.text.lower()

    @cached_property
    def _lines(self) -> list[str]:
        return split_lines(self._source.text)


def _selectors(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _names(selector: str, code: str, name: str | None) -> bool:
    """Whether a selector (code, prefix of a code that begins with ``ML``, name) names a rule."""
    return selector == name or (selector[:2].upper() == "ML" and code.startswith(selector.upper()))
