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

from mllint.syntax.layout import Comment, Rows, split_lines
from mllint.syntax.source import Source

_OWN = re.compile(r"#\s*mllint:\s*(?P<file>file-)?ignore\[(?P<selectors>[^\]]*)\]")
_IN_BRACKETS = re.compile(r"[^,\s](?:[^,\]]*[^,\s\]])?")
_CODE = re.compile(r"[^,\s]+")


class Selector(NamedTuple):
    """What stands in a comment for one rule or several, and at which offsets of the text."""

    text: str
    start: int
    end: int

    def names(self, code: str, name: str | None) -> bool:
        """Whether it names a rule: by its code, by a prefix that begins with ``ML``, by its name, or as ``ALL``."""
        is_prefix = self.text[:2].upper() == "ML" and code.startswith(self.text.upper())
        return is_prefix or self.text in (name, "ALL")


class Directive(NamedTuple):
    """What silences findings, within a comment.

    ``start`` and ``end`` are the offsets of the directive, ``comment`` those of the whole comment. ``rows`` is ``None``
    for the whole file. Of a ``noqa`` (no ``is_own``) all selectors are given, also those of other tools.
    """

    is_own: bool
    selectors: tuple[Selector, ...]
    rows: Rows | None
    row: int
    start: int
    end: int
    comment: tuple[int, int]

    def reaches(self, row: int) -> bool:
        """Whether a finding that begins on this row is one that it is about."""
        return self.rows is None or self.rows.first <= row <= self.rows.last

    def covers(self, code: str, row: int, name: str | None) -> bool:
        """Whether it silences the finding of a rule that begins on a row."""
        return self.reaches(row) and any(selector.names(code, name) for selector in self.selectors)


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
        return self._flake8_silences(code, row) or any(directive.covers(code, row, name) for directive in self.own)

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
    def own(self) -> tuple[Directive, ...]:
        """What mllint's own comments say."""
        if "mllint:" not in self._source.text:
            return ()
        found = []
        for comment in self._source.layout.comments:
            for match in _OWN.finditer(comment.text):
                if match["file"] or comment.target is not None:
                    rows = None if match["file"] else comment.target
                    found.append(self._directive(comment, match.span(), match.span("selectors"), rows, is_own=True))
        return tuple(found)

    @property
    def noqa(self) -> tuple[Directive, ...]:
        """What ``# noqa: ...`` in real comments says; without those that name no rule, which silence everything."""
        if not self._noqa or "noqa" not in self._folded_text:
            return ()
        from flake8.defaults import NOQA_INLINE_REGEXP

        found = []
        for comment in self._source.layout.comments:
            chunk = self._source.layout.chunks.get(comment.row, Rows(comment.row, comment.row))
            lines = self._lines[chunk.first - 1 : chunk.last]
            # flake8 reads the first one only, wherever in these lines it stands.
            match = NOQA_INLINE_REGEXP.search("".join(lines))
            before = sum(map(len, lines[: comment.row - chunk.first])) + comment.column
            if match is None or match["codes"] is None or not before <= match.start() < before + len(comment.text):
                continue
            codes = match.start("codes") - before, match.end("codes") - before
            end = codes[0] + len(match["codes"].rstrip(", \t\r\n"))
            found.append(self._directive(comment, (match.start() - before, end), codes, chunk, is_own=False))
        return tuple(found)

    def _directive(
        self,
        comment: Comment,
        span: tuple[int, int],
        listed: tuple[int, int],
        rows: Rows | None,
        *,
        is_own: bool,
    ) -> Directive:
        """The directive that stands at a span of a comment, with its selectors at another."""
        start = self._source.line_starts[comment.row - 1] + comment.column
        selectors = tuple(
            Selector(match[0], start + match.start(), start + match.end())
            for match in (_IN_BRACKETS if is_own else _CODE).finditer(comment.text, *listed)
        )
        whole = (start, start + len(comment.text))
        return Directive(is_own, selectors, rows, comment.row, start + span[0], start + span[1], whole)

    @cached_property
    def _folded_text(self) -> str:
        return self._source.text.lower()

    @cached_property
    def _lines(self) -> list[str]:
        return split_lines(self._source.text)
