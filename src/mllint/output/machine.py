"""Findings for other programs: JSON with the keys that ruff uses, so that its readers work here."""

import json
import os
from collections.abc import Iterable

from mllint.diagnostics import Diagnostic, Edit, Fix, Location

_OWN = "ML00"
"""How the codes begin that mllint reports about its own work: the file could not be checked."""


def as_json(diagnostics: Iterable[Diagnostic]) -> str:
    """An array with an object for each finding; ``[]`` where there is none."""
    return render([_diagnostic(diagnostic) for diagnostic in diagnostics])


def render(value: object) -> str:
    """JSON in ASCII, which every terminal, pipe and parser takes."""
    return json.dumps(value, indent=2)


def _diagnostic(diagnostic: Diagnostic) -> dict[str, object]:
    path = diagnostic.path
    return {
        "cell": None,
        "code": diagnostic.code,
        "name": diagnostic.name,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "severity": "error" if diagnostic.code.startswith(_OWN) else "warning",
        "filename": path if path == "-" else os.path.abspath(path),
        "location": _location(diagnostic.location),
        "end_location": _location(diagnostic.end_location),
        "noqa_row": diagnostic.noqa_row,
        "fix": None if diagnostic.fix is None else _fix(diagnostic.fix),
        # The pages of the rules are read with `mllint rule CODE`; they have no address yet.
        "url": None,
    }


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, object]:
    return {
        "content": edit.content,
        "location": _location(edit.location),
        "end_location": _location(edit.end_location),
    }


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}
