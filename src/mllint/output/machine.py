"""Findings for other programs: JSON with the keys that ruff uses, so that its readers work here."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence

from mllint.diagnostics import Diagnostic, Edit, Fix, Location
from mllint.output.found import View, findings
from mllint.running.runner import Outcome


def as_array(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The form ``json``: one array."""
    yield as_json(findings(outcomes))


def as_lines(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The form ``json-lines``: an object on each line; nothing where there is no finding."""
    for diagnostic in findings(outcomes):
        yield render_line(_diagnostic(diagnostic))


def as_json(diagnostics: Iterable[Diagnostic]) -> str:
    """An array with an object for each finding; ``[]`` where there is none."""
    return render([_diagnostic(diagnostic) for diagnostic in diagnostics])


def render(value: object) -> str:
    """JSON in ASCII, which every terminal, pipe and parser takes."""
    return json.dumps(value, indent=2)


def render_line(value: object) -> str:
    """The same on one line."""
    return json.dumps(value)


def _diagnostic(diagnostic: Diagnostic) -> dict[str, object]:
    path = diagnostic.path
    return {
        "cell": diagnostic.location.cell,
        "code": diagnostic.code,
        "name": diagnostic.name,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "severity": diagnostic.severity.value,
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
    # An edit of a notebook may be in another cell than the finding: an import goes to where the others are.
    cell = {} if edit.location.cell is None else {"cell": edit.location.cell}
    return {
        **cell,
        "content": edit.content,
        "location": _location(edit.location),
        "end_location": _location(edit.end_location),
    }


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}
