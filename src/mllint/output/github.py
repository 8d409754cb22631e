"""The form ``github``: commands that a GitHub workflow shows as annotations.

What is escaped, and that a column is given only within one line, is what the runner demands; of each severity it shows
only the first ten of a step, so the worst come first.
"""

from collections.abc import Iterator, Sequence

from mllint.diagnostics import Diagnostic, Severity
from mllint.output.found import View, findings
from mllint.output.places import below, repository_root
from mllint.output.style import printable
from mllint.running.runner import Outcome

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def as_commands(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """A command for each finding."""
    root = repository_root("GITHUB_WORKSPACE")
    for item in sorted(findings(outcomes), key=lambda item: -item.severity.rank):
        yield _command(item, printable(below(root, item.path) or item.path))


def _command(item: Diagnostic, path: str) -> str:
    start, end = item.location, item.end_location
    properties = {"title": f"mllint ({item.code})", "file": path, "line": str(start.row)}
    if start.row == end.row:
        properties |= {"col": str(start.column), "endLine": str(end.row), "endColumn": str(end.column)}
    else:
        properties["endLine"] = str(end.row)
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    text = f"{path}:{start.row}:{start.column}: {item.code} {item.message}"
    return f"::{_COMMANDS[item.severity]} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
