"""The form ``pylint``: ``path:row: [CODE] message``, which many CI services read."""

from collections.abc import Iterator, Sequence

from mllint.output.found import View, findings
from mllint.output.style import printable
from mllint.running.runner import Outcome


def as_pylint(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """A line for each finding."""
    for item in findings(outcomes):
        yield f"{printable(item.path)}:{item.location.row}: [{item.code}] {printable(item.message)}"
