"""The corpus report as Markdown, from what became of each file."""

import difflib
import platform
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from os.path import commonpath
from pathlib import Path

from mllint._dev.fix_check import FixCheck, apply_edits
from mllint.diagnostics import Applicability, Diagnostic, Result, Status
from mllint.syntax.source import DecodingError, Source

_MOST_LISTED = 40
"""Rows of a table of single files; more are counted, not listed."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file. ``failure`` is set when there is no result.

    ``peak`` is the most memory, in bytes, that the process had held when it was done with the file.
    """

    path: str
    rows: int = 0
    seconds: float = 0.0
    result: Result | None = None
    failure: str | None = None
    fixes: FixCheck | None = None
    peak: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the report shows: codes, size of the sample, from how many seconds a file is slow."""

    codes: frozenset[str]
    sample: int
    sample_per_rule: int
    seed: int
    context: int
    slow: float


def write_report(reports: Sequence[FileReport], seconds: float, wanted: Wanted) -> str:
    """The whole report."""
    root = commonpath([str(Path(report.path).parent) for report in reports]) if reports else ""
    parts = [
        _summary(reports, seconds),
        _rules_table(reports, wanted.codes, root),
        _failures(reports, root),
        _slow(reports, wanted.slow, root),
        _fixes(reports, root),
        _samples(reports, wanted, root),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _summary(reports: Sequence[FileReport], seconds: float) -> Iterator[str]:
    statuses = Counter(report.result.status for report in reports if report.result)
    rows = sum(report.rows for report in reports)
    busy = sum(report.seconds for report in reports)
    analysed = [report for report in reports if _status(report) is Status.OK]
    analysed_rows = sum(report.rows for report in analysed)
    analysed_busy = sum(report.seconds for report in analysed)
    yield "# Corpus report"
    yield ""
    yield f"- flake8-mllint {version('flake8-mllint')}, Python {platform.python_version()}"
    yield f"- {len(reports):,} files, {rows:,} rows: " + ", ".join(
        f"{count:,} {status}" for status, count in sorted(statuses.items())
    )
    yield f"- {seconds:.1f} s in all; {busy:.1f} s of linting, {_micro(busy, rows)} µs a row"
    yield (
        f"- files that were analysed: {len(analysed):,}, {analysed_rows:,} rows, "
        f"{analysed_busy:.1f} s, {_micro(analysed_busy, analysed_rows)} µs a row"
    )
    yield from _extremes(reports)
    yield ""


def _extremes(reports: Sequence[FileReport]) -> Iterator[str]:
    """What a single file took at most, and how much memory a process."""
    if not reports:
        return
    slowest = max(reports, key=lambda report: report.seconds)
    yield f"- slowest file: {slowest.seconds:.2f} s, {slowest.rows:,} rows"
    yield f"- most memory of a process: {max(report.peak for report in reports) / 2**20:,.0f} MiB"


def _rules_table(reports: Sequence[FileReport], codes: frozenset[str], root: str) -> Iterator[str]:
    found: dict[tuple[str, str], list[Diagnostic]] = defaultdict(list)
    silenced: Counter[str] = Counter()
    for diagnostic in _diagnostics(reports):
        found[diagnostic.code, diagnostic.name].append(diagnostic)
    for report in reports:
        silenced.update(d.code for d in (report.result.suppressed if report.result else ()))
    yield "## Findings"
    yield ""
    yield "| rule | name | findings | distinct | files | repos | safe fix | unsafe | silenced |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for (code, name), group in sorted(found.items()):
        if code in codes or code.startswith("ML0"):
            fixes = Counter(d.fix.applicability for d in group if d.fix)
            cells = [
                code,
                name,
                len(group),
                len(_distinct(group)),
                len({d.path for d in group}),
                len({_top_folder(d.path, root) for d in group}),
                fixes[Applicability.SAFE],
                fixes[Applicability.UNSAFE],
                silenced[code],
            ]
            yield f"| {' | '.join(map(str, cells))} |"
    silent = sorted(codes - {code for code, _ in found})
    yield ""
    if silent:
        yield f"Silent: {', '.join(silent)}."
        yield ""


def _failures(reports: Sequence[FileReport], root: str) -> Iterator[str]:
    broken = [report for report in reports if report.failure is not None]
    internal = [d for d in _diagnostics(reports) if d.code == "ML000"]
    yield f"## Failures: {len(broken)} files, {len(internal)} internal errors"
    yield ""
    for report in islice(broken, _MOST_LISTED):
        yield f"- `{_relative(report.path, root)}`"
        yield from _fenced((report.failure or "").splitlines()[-12:], "  ")
    for diagnostic in islice(internal, _MOST_LISTED):
        yield f"- `{_place(diagnostic, root)}` {diagnostic.message}"
    yield ""
    unreadable = [d for d in _diagnostics(reports) if d.code == "ML001"]
    kinds = Counter(d.message for d in unreadable)
    if kinds:
        yield f"Not readable as Python: {len(unreadable)}, by message:"
        yield ""
        for message, count in kinds.most_common(_MOST_LISTED):
            example = next(d for d in unreadable if d.message == message)
            yield f"- {count} × {message} (`{_place(example, root)}`)"
        yield ""


def _slow(reports: Sequence[FileReport], seconds: float, root: str) -> Iterator[str]:
    ordered = sorted(reports, key=lambda report: -report.seconds)
    slow = [report for report in ordered if report.seconds >= seconds]
    yield f"## Slow files: {len(slow)} of {seconds:g} s or more; the slowest ten"
    yield ""
    yield "| seconds | rows | µs a row | file |"
    yield "|--:|--:|--:|---|"
    for report in ordered[: min(max(10, len(slow)), _MOST_LISTED)]:
        path = _relative(report.path, root)
        micro = _micro(report.seconds, report.rows)
        yield f"| {report.seconds:.2f} | {report.rows} | {micro} | `{path}` |"
    yield ""


def _fixes(reports: Sequence[FileReport], root: str) -> Iterator[str]:
    checked = [(report, report.fixes) for report in reports if report.fixes is not None]
    if not checked:
        return
    applied: Counter[str] = Counter()
    for _, fixes in checked:
        applied.update(dict(fixes.applied))
    changed = sum(bool(fixes.applied) for _, fixes in checked)
    wrong = [(report, fixes) for report, fixes in checked if fixes.problems]
    count = sum(applied.values())
    yield f"## Fixes: {count} applied in {changed} files, {len(wrong)} files with problems"
    yield ""
    yield "; ".join(f"{code}: {count}" for code, count in sorted(applied.items()))
    yield ""
    for report, fixes in wrong[:_MOST_LISTED]:
        yield f"- `{_relative(report.path, root)}`: {'; '.join(fixes.problems)}"
    for report, fixes in checked:
        if fixes.refused:
            yield f"- refused: `{_relative(report.path, root)}`: {fixes.refused}"
    yield ""


def _samples(reports: Sequence[FileReport], wanted: Wanted, root: str) -> Iterator[str]:
    found = [d for d in _distinct(_diagnostics(reports)) if d.code in wanted.codes]
    chance = random.Random(wanted.seed)
    groups = [("all rules", found, wanted.sample)]
    if wanted.sample_per_rule:
        by_code: dict[str, list[Diagnostic]] = defaultdict(list)
        for diagnostic in found:
            by_code[diagnostic.code].append(diagnostic)
        groups = [(code, group, wanted.sample_per_rule) for code, group in sorted(by_code.items())]
    for title, group, size in groups:
        chosen = sorted(chance.sample(group, min(size, len(group))), key=lambda d: d.sort_key)
        yield f"## Sample of {title}: {len(chosen)} of {len(group)} distinct (seed {wanted.seed})"
        yield ""
        for number, diagnostic in enumerate(chosen, 1):
            yield f"### {number}. {diagnostic.code} `{_place(diagnostic, root)}`"
            yield ""
            yield f"{diagnostic.message}"
            yield f"help: {diagnostic.help}"
            yield from _fenced(list(_excerpt(diagnostic, wanted.context)), "")
            yield ""


def _excerpt(diagnostic: Diagnostic, context: int) -> Iterator[str]:
    """The rows around a finding, the finding's own marked, and what the fix would change."""
    source = _source(diagnostic.path)
    if source is None:
        return
    first, last = diagnostic.location.row, diagnostic.end_location.row
    for row in range(max(1, first - context), min(source.rows, last + 4) + 1):
        mark = ">" if first <= row <= last else " "
        yield f"{mark}{row:5} {source.line(row)[:160]}"
    if diagnostic.fix is not None:
        yield f"fix ({diagnostic.fix.applicability}): {diagnostic.fix.message}"
        fixed = apply_edits(source.text, diagnostic.fix.edits)
        changes = difflib.unified_diff(source.text.splitlines(), fixed.splitlines(), lineterm="", n=0)
        yield from islice((line for line in changes if line[:3] not in ("---", "+++")), 20)


def _source(path: str) -> Source | None:
    try:
        return Source.from_bytes(Path(path).read_bytes(), path)
    except (OSError, DecodingError):
        return None


def _distinct(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One finding of each text: corpora hold many copies of the same file."""
    seen: dict[tuple[str, ...], Diagnostic] = {}
    sources: dict[str, Source | None] = {}
    for diagnostic in diagnostics:
        if diagnostic.path not in sources:
            sources = {diagnostic.path: _source(diagnostic.path)}  # findings come file by file
        source = sources[diagnostic.path]
        row = diagnostic.location.row
        lines = [source.line(row + offset).strip() for offset in (-2, -1, 0, 1)] if source else []
        seen.setdefault((diagnostic.code, *lines), diagnostic)
    return list(seen.values())


def _diagnostics(reports: Iterable[FileReport]) -> Iterator[Diagnostic]:
    for report in reports:
        if report.result is not None:
            yield from report.result.diagnostics


def _status(report: FileReport) -> Status | None:
    result: Result | None = report.result
    return result.status if result else None


def _fenced(lines: Sequence[str], indent: str) -> Iterator[str]:
    yield f"{indent}```text"
    yield from (indent + line.replace("```", "'''") for line in lines)
    yield f"{indent}```"


def _place(diagnostic: Diagnostic, root: str) -> str:
    location = diagnostic.location
    return f"{_relative(diagnostic.path, root)}:{location.row}:{location.column}"


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root).lstrip("/")


def _top_folder(path: str, root: str) -> str:
    return _relative(path, root).partition("/")[0]


def _micro(seconds: float, rows: int) -> str:
    return f"{seconds / rows * 1e6:.1f}" if rows else "-"
