"""Writing suppression comments for findings: ``--add-noqa`` and ``--add-ignore``.

A comment goes to the end of the physical line on which a finding begins, or of the multi-line string or backslash
continuation there: where it is read. A comment that is there already gets the further codes. Nothing else changes.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mllint.diagnostics import Diagnostic
from mllint.running.runner import Change, Mode, Outcome, Runner, Task
from mllint.syntax.layout import Rows
from mllint.syntax.source import DecodingError, Source, UnwritableError
from mllint.syntax.suppressions import Suppressions


class CommentForm(enum.StrEnum):
    """Which comments are written."""

    NOQA = "noqa"
    IGNORE = "ignore"


class Annotation(msgspec.Struct, frozen=True):
    """Which comments are to be written, and the reason to be given in them."""

    form: CommentForm
    reason: str = ""

    def comment(self, codes: Sequence[str]) -> str:
        """A new comment."""
        listed = ", ".join(codes)
        silencing = f"# noqa: {listed}" if self.form is CommentForm.NOQA else f"# mllint: ignore[{listed}]"
        return f"{silencing} {self.reason}".rstrip()


class Annotator:
    """Writes comments into files and sees whether they silence what they are meant to."""

    def __init__(self, annotation: Annotation) -> None:
        self._annotation = annotation
        self._runner = Runner(Mode())

    def annotated(self, outcome: Outcome, task: Task, hidden: frozenset[str]) -> Outcome:
        """The outcome with comments for its findings in its source; what they do not silence is left.

        Nothing is changed where the comments would do anything else than silence. ``hidden`` are rules whose findings
        are not reported anyway.
        """
        wanted = [item for item in outcome.result.diagnostics if not item.is_own]
        if not wanted:
            return outcome
        try:
            source = Source.from_bytes(outcome.source, task.path)
            data = source.encode(with_comments(source, wanted, self._annotation))
        except (DecodingError, UnicodeEncodeError, UnwritableError) as error:
            return msgspec.structs.replace(outcome, problem=f"no comment was written: {error}")
        result = self._runner.outcome(msgspec.structs.replace(task, data=data)).result
        left = tuple(item for item in result.diagnostics if item.code not in hidden)
        codes_left = Counter(item.code for item in left)
        if not codes_left <= Counter(item.code for item in outcome.result.diagnostics):
            return msgspec.structs.replace(outcome, problem="no comment was written: it would change what is found")
        if data == outcome.source:
            return outcome
        return Outcome(
            msgspec.structs.replace(result, diagnostics=left),
            data if left else b"",
            _without(wanted, left),
            Change(outcome.source, data),
            unfixed=outcome.result,
        )


def _without(wanted: Iterable[Diagnostic], left: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings without as many of each rule as are left."""
    counts = Counter(item.code for item in left)
    gone = []
    for item in wanted:
        if counts[item.code]:
            counts[item.code] -= 1
        else:
            gone.append(item)
    return tuple(gone)


def with_comments(source: Source, diagnostics: Iterable[Diagnostic], annotation: Annotation) -> str:
    """The text with the comments that silence these findings, as far as a comment can."""
    codes: dict[Rows, set[str]] = {}
    for item in diagnostics:
        row = source.unplaced(item.location).row
        codes.setdefault(source.layout.chunks.get(row, Rows(row, row)), set()).add(item.code)
    writer = _Writer(source, annotation)
    insertions = [found for rows, wanted in codes.items() if (found := writer.insertion(rows, sorted(wanted)))]
    pieces: list[str] = []
    position = 0
    for offset, content in sorted(insertions):
        pieces += (source.text[position:offset], content)
        position = offset
    return "".join((*pieces, source.text[position:]))


class _Writer:
    """Where in one file comments go, and what is written there."""

    def __init__(self, source: Source, annotation: Annotation) -> None:
        self._source = source
        self._annotation = annotation
        suppressions = Suppressions(source)
        is_noqa = annotation.form is CommentForm.NOQA
        self._there = {item.rows: item for item in (suppressions.noqa if is_noqa else suppressions.own) if item.rows}

    def insertion(self, rows: Rows, codes: Sequence[str]) -> tuple[int, str] | None:
        """The offset and the text to insert; ``None`` where no comment can be read."""
        listed = ", ".join(codes)
        there = self._there.get(rows)
        if there is not None:
            return (there.selectors[-1].end, f", {listed}") if there.selectors else (there.end - 1, listed)
        if self._annotation.form is CommentForm.NOQA and self._is_taken(rows):
            return None
        start, row = self._source.line_starts[rows.last - 1], self._source.line(rows.last)
        return start + len(row.rstrip(" \t\f")), f"  {self._annotation.comment(codes)}"

    def _is_taken(self, rows: Rows) -> bool:
        """Whether flake8 reads something else in these rows as their ``noqa``, in a string."""
        from flake8.defaults import NOQA_INLINE_REGEXP

        text = "\n".join(self._source.line(row) for row in range(rows.first, rows.last + 1))
        return NOQA_INLINE_REGEXP.search(text) is not None
