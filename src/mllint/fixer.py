"""Choosing, applying and verifying fixes.

A round takes the wanted fixes that do not touch one another, applies them to the text and lints the
new text, until nothing is left to do. A fix is kept only when the new text bears it out: it parses,
the finding is gone, and no finding that was not there before stands at the place. Where a round as
a whole fails, halves of it are tried, so that one bad fix never costs the good ones.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import msgspec

from mllint import engine
from mllint.context import Targets
from mllint.diagnostics import Diagnostic, Edit, Result, Status
from mllint.registry import RuleSet
from mllint.semantic.project import Project
from mllint.syntax.parse import ParseError, parse
from mllint.syntax.source import DecodingError, Source, UnwritableError

MAX_ROUNDS = 10
"""How often a file is fixed and linted again; a fix that only another fix makes possible needs a round more."""

Lint: TypeAlias = Callable[[bytes], Result]


class FixResult(msgspec.Struct, frozen=True):
    """What came of fixing one file; picklable."""

    data: bytes
    """The file's new bytes; the very object that was given where nothing changed."""
    applied: tuple[Diagnostic, ...]
    """The findings that were mended, round by round, sorted within a round."""
    result: Result
    """What remains. A finding whose fix was tried and taken back has none any more."""
    refused: str | None = None
    """Why fixes that were asked for could not be written."""
    rounds: tuple[int, ...] = ()
    """How many of ``applied`` each round mended. Their edits count from the text the round began with."""


@dataclass(frozen=True, slots=True)
class _State:
    """The file at one point of the work."""

    source: Source
    data: bytes
    result: Result


def fix(
    data: bytes,
    path: str,
    rules: RuleSet,
    *,
    unsafe: bool = False,
    targets: Targets | None = None,
    project: Project | None = None,
    judge: Callable[[Result], Result] | None = None,
    found: Result | None = None,
) -> FixResult:
    """Mend what the chosen rules find in one file and can mend. Raises nothing.

    Display fixes are never applied, unsafe ones only with ``unsafe``, suppressed findings not at all. ``judge`` is what
    the settings make of findings, and so of their fixes. ``found`` is what they have made of those in these very bytes,
    where that is known.
    """

    latest = data

    def lint(content: bytes) -> Result:
        nonlocal latest
        latest = content
        judged = engine.lint(content, path, rules, targets=targets, project=project)
        return judged if judge is None else judge(judged)

    result = lint(data) if found is None else found
    if not _wanted(result, unsafe):
        return FixResult(data, (), result)
    source = Source.from_bytes(data, path)
    if source.encode(source.text) != data:
        return FixResult(data, (), result, f"{source.encoding} text that cannot be written back as it was")
    outcome = _fix_in_rounds(_State(source, data, result), unsafe, lint)
    if project is not None and latest != outcome.data:
        # A project shows the files that import this one what was linted last: not a failed attempt.
        lint(outcome.data)
    return outcome


def _fix_in_rounds(state: _State, unsafe: bool, lint: Lint) -> FixResult:
    applied: list[Diagnostic] = []
    rounds: list[int] = []
    failed: set[Diagnostic] = set()
    refused: str | None = None
    while len(rounds) < MAX_ROUNDS:
        chosen = _without_overlaps(state, [item for item in _wanted(state.result, unsafe) if item not in failed])
        if not chosen:
            break
        trial = _Trial(state, lint)
        trial.settle(chosen)
        if trial.accepted:
            applied += trial.accepted
            rounds.append(len(trial.accepted))
            state = trial.after
            # Another text: what failed before may work now.
            failed, refused = set(), None
        else:
            failed.update(chosen)
            refused = trial.refused or refused
    remaining = tuple(
        msgspec.structs.replace(item, fix=None) if item in failed else item for item in state.result.diagnostics
    )
    result = msgspec.structs.replace(state.result, diagnostics=remaining)
    return FixResult(state.data, tuple(applied), result, refused, tuple(rounds))


# --- Choosing -------------------------------------------------------------------------------------


def _wanted(result: Result, unsafe: bool) -> list[Diagnostic]:
    """The findings that have a fix which may be applied, in order."""
    return [
        item
        for item in result.diagnostics
        if item.fix is not None and item.fix.edits and item.fix.applicability.allows(unsafe)
    ]


def _without_overlaps(state: _State, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings, first come first served, whose fixes do not touch each other, none inside one of another rule.

    What a rule says of a part may be settled when the whole is mended: a loop under `no_grad()` holds no graphs. The
    whole comes first, then, and what is left of the part is for the next round. The same import may be wanted by
    several: it is one edit.
    """
    chosen: list[Diagnostic] = []
    taken: list[tuple[int, int]] = []  # sorted and apart from each other
    imports: set[Edit] = set()
    wholes: list[tuple[int, str]] = []
    for finding in findings:
        start, end = (state.source.offset(place) for place in (finding.location, finding.end_location))
        wholes = [(last, code) for last, code in wholes if last > start]
        edits = [edit for edit in _edits(finding) if edit not in imports]
        is_part = any(end <= last and code != finding.code for last, code in wholes)
        if is_part or any(_touches(taken, edit) for edit in edits):
            continue
        chosen.append(finding)
        wholes.append((end, finding.code))
        for edit in edits:
            insort(taken, (edit.start, edit.end))
        imports.update(edit for edit in edits if _is_import(edit))
    return chosen


def _touches(taken: list[tuple[int, int]], edit: Edit) -> bool:
    """Whether the edit overlaps or adjoins a span that is taken."""
    index = bisect_right(taken, edit.end, key=lambda span: span[0])
    return index > 0 and taken[index - 1][1] >= edit.start


def _is_import(edit: Edit) -> bool:
    """Whether the edit inserts a line that is an import."""
    return edit.start == edit.end and edit.content.strip().startswith(("import ", "from "))


def _edits(finding: Diagnostic) -> tuple[Edit, ...]:
    return finding.fix.edits if finding.fix is not None else ()


# --- Applying -------------------------------------------------------------------------------------


def _edits_in_order(findings: Iterable[Diagnostic]) -> list[Edit] | None:
    """All edits in the order of their places, equal ones once; ``None`` where some overlap."""
    edits = sorted(
        dict.fromkeys(edit for finding in findings for edit in _edits(finding)),
        key=lambda edit: (edit.start, edit.end),
    )
    if any(second.start < first.end for first, second in pairwise(edits)):
        return None
    return edits


def _apply(text: str, edits: Sequence[Edit]) -> str:
    pieces: list[str] = []
    position = 0
    for edit in edits:
        pieces += (text[position : edit.start], edit.content)
        position = edit.end
    return "".join((*pieces, text[position:]))


@dataclass(slots=True)
class _Trial:
    """One round: which of the chosen fixes hold, and the file with them applied."""

    before: _State
    lint: Lint
    accepted: list[Diagnostic] = field(default_factory=list)
    refused: str | None = None
    after: _State = field(init=False)

    def __post_init__(self) -> None:
        self.after = self.before

    def settle(self, pending: list[Diagnostic]) -> None:
        """Accept those of the pending fixes that hold beside the ones accepted already."""
        after = self._attempt([*self.accepted, *pending])
        if after is not None:
            self.accepted += pending
            self.after = after
        elif len(pending) > 1:
            middle = len(pending) // 2
            self.settle(pending[:middle])
            self.settle(pending[middle:])

    def _attempt(self, findings: list[Diagnostic]) -> _State | None:
        """The file with these findings mended; ``None`` where that does not work out."""
        edits = _edits_in_order(findings)
        if edits is None:
            return None
        try:
            data = self.before.source.encode(_apply(self.before.source.text, edits))
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            self.refused = f"{error.encoding} has no character `{character}`, which a fix would insert"
            return None
        except UnwritableError:
            return None
        try:
            source = Source.from_bytes(data, self.before.source.path)
        except DecodingError:
            return None
        after = _State(source, data, self.lint(data))
        return after if _holds(self.before, after, findings, edits) else None


# --- Verifying ------------------------------------------------------------------------------------


def _holds(before: _State, after: _State, fixed: list[Diagnostic], edits: Sequence[Edit]) -> bool:
    """Whether the new text parses, the fixed findings are gone, and none is new at their places."""
    if not _is_analysed(before, after):
        return False
    shift = _Shift(edits)
    mended = set(fixed)
    gone = [_moved(before, item, shift) for item in fixed]
    stay = [_moved(before, item, shift) for item in before.result.diagnostics if item not in mended]
    places = _rows_of_fixes(before, after, fixed, shift)
    for item in after.result.diagnostics:
        known = next((old for old in stay if old.may_be(after, item)), None)
        if known is not None:
            stay.remove(known)
        elif any(old.may_be(after, item) for old in gone) or any(
            item.location.row <= last and first <= item.end_location.row for first, last in places
        ):
            return False
    return True


def _is_analysed(before: _State, after: _State) -> bool:
    """Whether the new text parses, and no rule fails on it that did not fail before."""
    status = after.result.status
    if status is Status.SKIPPED:
        # Nothing in it concerns any rule now, so it has not been parsed.
        try:
            parse(after.source)
        except ParseError:
            return False
        return True
    if status is Status.SYNTAX_ERROR:
        # Cells of a notebook that could not be read still cannot; no other part may be like that now.
        return before.result.status is status and _unread(after) <= _unread(before)
    return status is Status.OK or (status is before.result.status is Status.INTERNAL_ERROR)


def _unread(state: _State) -> int:
    """How many parts of the file cannot be read."""
    return sum(item.code == "ML001" for item in state.result.diagnostics)


class _Shift:
    """Where offsets of the old text are in the new one."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits

    def interval(self, offset: int) -> tuple[int, int]:
        """The first and the last offset that an old one may have become.

        They differ where an edit begins, ends or runs across the offset: it may have gone anywhere
        in the new content.
        """
        moved = 0
        first = last = None
        for edit in self._edits:
            if edit.start > offset:
                break
            start, end = edit.start + moved, edit.start + moved + len(edit.content)
            if offset <= edit.end:
                first, last = start if first is None else first, end
            moved += len(edit.content) - (edit.end - edit.start)
        if first is None or last is None:
            return offset + moved, offset + moved
        return first, last


@dataclass(frozen=True, slots=True)
class _Moved:
    """A finding of the old text, and where it may begin and end in the new one."""

    code: str
    start: tuple[int, int]
    end: tuple[int, int]

    def may_be(self, after: _State, item: Diagnostic) -> bool:
        """Whether a finding of the new text may be this one."""
        return (
            item.code == self.code
            and self.start[0] <= after.source.offset(item.location) <= self.start[1]
            and self.end[0] <= after.source.offset(item.end_location) <= self.end[1]
        )


def _moved(before: _State, item: Diagnostic, shift: _Shift) -> _Moved:
    start = shift.interval(before.source.offset(item.location))
    end = shift.interval(before.source.offset(item.end_location))
    return _Moved(item.code, start, end)


def _rows_of_fixes(before: _State, after: _State, fixed: list[Diagnostic], shift: _Shift) -> list[tuple[int, int]]:
    """First and last rows, in the new text, of the edits and of the beginnings of the findings."""
    spans = [(before.source.offset(item.location),) * 2 for item in fixed]
    spans += [(edit.start, edit.end) for item in fixed for edit in _edits(item)]
    return [
        (
            after.source.location(shift.interval(start)[0]).row,
            after.source.location(shift.interval(end)[1]).row,
        )
        for start, end in spans
    ]
