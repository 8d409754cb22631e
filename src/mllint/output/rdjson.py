"""The form ``rdjson``: what reviewdog reads. Its columns count bytes of UTF-8."""

from collections.abc import Iterator, Sequence

from mllint.diagnostics import Diagnostic, Fix, Location, Severity
from mllint.output.found import Rows, View
from mllint.output.machine import render
from mllint.output.places import below, repository_root
from mllint.running.runner import Outcome

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def as_rdjson(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """One object that holds all findings."""
    root = repository_root()
    found = [
        _diagnostic(item, below(root, item.path) or item.path, Rows(outcome.source, item.path), view)
        for outcome in outcomes
        for item in outcome.result.diagnostics
    ]
    yield render({"source": {"name": "mllint"}, "severity": "WARNING", "diagnostics": found})


def _diagnostic(item: Diagnostic, path: str, rows: Rows, view: View) -> dict[str, object]:
    diagnostic: dict[str, object] = {
        "message": item.message,
        "location": {"path": path, "range": _range(item.location, item.end_location, rows)},
        "severity": _SEVERITIES[item.severity],
        "code": {"value": item.code},
    }
    if item.fix is not None and item.fix.applicability.allows(view.unsafe):
        diagnostic["suggestions"] = _suggestions(item.fix, rows)
    return diagnostic


def _suggestions(fix: Fix, rows: Rows) -> list[dict[str, object]]:
    """Each suggestion is applied by itself, so a fix of several edits is none: one of them would be half a fix."""
    if len(fix.edits) != 1:
        return []
    edit = fix.edits[0]
    return [{"range": _range(edit.location, edit.end_location, rows), "text": edit.content}]


def _range(start: Location, end: Location, rows: Rows) -> dict[str, object]:
    return {"start": _place(start, rows), "end": _place(end, rows)}


def _place(location: Location, rows: Rows) -> dict[str, int]:
    return {"line": location.row, "column": rows.bytes_before(location.row, location.column) + 1}
