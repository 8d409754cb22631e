"""Findings for people: ``full`` with an excerpt of the source, ``concise`` on one line each, ``grouped`` by file."""

from collections.abc import Iterable, Iterator, Sequence

from mllint.diagnostics import Diagnostic, Result
from mllint.output.excerpt import Excerpts
from mllint.output.found import View, findings
from mllint.output.style import Style, printable
from mllint.running.runner import Outcome


def as_full(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The form ``full``: a paragraph for each finding."""
    for outcome in outcomes:
        yield from full(outcome.result, outcome.source, view.style, unsafe=view.unsafe)


def as_concise(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The form ``concise``: a line for each finding."""
    yield from concise(findings(outcomes), view.style, unsafe=view.unsafe)


def as_grouped(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The form ``grouped``: each file's name once, its findings below it in columns."""
    for outcome in outcomes:
        diagnostics = outcome.result.diagnostics
        if not diagnostics:
            continue
        places = [(_row(item), str(item.location.column)) for item in diagnostics]
        rows = max(len(row) for row, _ in places)
        columns = max(len(column) for _, column in places)
        lines = [f"{view.style.bold(printable(outcome.result.path))}:"]
        for diagnostic, (row, column) in zip(diagnostics, places, strict=True):
            lines.append(f"  {row:>{rows}}:{column:<{columns}}  {_what(diagnostic, view.style, view.unsafe)}")
        yield "\n".join((*lines, ""))


def concise(diagnostics: Iterable[Diagnostic], style: Style, *, unsafe: bool) -> Iterator[str]:
    """``path:row:column: CODE [*] message``, a line each; ``[*]``: ``--fix`` would mend it.

    In a notebook the cell stands before the row: ``path:cell 3:row:column``.
    """
    for diagnostic in diagnostics:
        place = f"{_row(diagnostic)}:{diagnostic.location.column}"
        yield f"{style.bold(printable(diagnostic.path))}:{place}: {_what(diagnostic, style, unsafe)}"


def full(result: Result, source: bytes, style: Style, *, unsafe: bool) -> Iterator[str]:
    """A paragraph for each finding of one file: what, where, the source, and what to write."""
    excerpts = Excerpts(source, result.path, style)
    for diagnostic in result.diagnostics:
        excerpt = excerpts.excerpt(diagnostic)
        row, column = _row(diagnostic), diagnostic.location.column
        arrow = " " * excerpt.gutter + style.frame("-->")
        yield "\n".join(
            (
                _what(diagnostic, style, unsafe),
                f"{arrow} {printable(diagnostic.path)}:{row}:{column}",
                *excerpt.lines,
                f"{style.hint('help')}: {printable(diagnostic.help)}",
                "",
            )
        )


def _row(diagnostic: Diagnostic) -> str:
    """The row of a finding; in a notebook, with the cell that it is a row of."""
    place = diagnostic.location
    return str(place.row) if place.cell is None else f"cell {place.cell}:{place.row}"


def _what(diagnostic: Diagnostic, style: Style, unsafe: bool) -> str:
    fixable = diagnostic.fix is not None and diagnostic.fix.applicability.allows(unsafe)
    mark = f"[{style.hint('*')}] " if fixable else ""
    return f"{style.code(diagnostic.code)} {mark}{printable(diagnostic.message)}"
