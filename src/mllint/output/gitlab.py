"""The form ``gitlab``: a Code Quality report."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence

from mllint.diagnostics import Diagnostic, Location, Severity
from mllint.output.found import Rows, View
from mllint.output.machine import render
from mllint.output.places import below, repository_root
from mllint.running.runner import Outcome

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def as_code_quality(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """An array with an object for each finding."""
    root = repository_root("CI_PROJECT_DIR")
    yield render([entry for outcome in outcomes for entry in _entries(outcome, root)])


def _entries(outcome: Outcome, root: str) -> Iterator[dict[str, object]]:
    path = below(root, outcome.result.path) or outcome.result.path
    rows = Rows(outcome.source, path)
    seen: Counter[tuple[str, str]] = Counter()
    for item in outcome.result.diagnostics:
        text = " ".join(rows.row(item.location.row).split())
        yield {
            # The description is all that GitLab shows.
            "description": f"{item.code}: {item.message}",
            "check_name": item.code,
            "fingerprint": _fingerprint(path, item, text, seen[item.code, text]),
            "severity": _SEVERITIES[item.severity],
            "location": {
                "path": path,
                "positions": {"begin": _place(item.location), "end": _place(item.end_location)},
            },
        }
        seen[item.code, text] += 1


def _fingerprint(path: str, item: Diagnostic, text: str, ordinal: int) -> str:
    """A name for the finding that no other has in the report, and that it keeps when its row moves."""
    parts = "\0".join((path, item.code, text, str(ordinal)))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def _place(location: Location) -> dict[str, int]:
    return {"line": location.row, "column": location.column}
