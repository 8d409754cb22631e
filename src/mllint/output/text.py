"""Findings for people: ``full`` with an excerpt of the source, ``concise`` on one line each."""

from collections.abc import Iterable, Iterator

from mllint.diagnostics import Diagnostic, Result
from mllint.output.excerpt import Excerpts
from mllint.output.style import Style, printable


def concise(diagnostics: Iterable[Diagnostic], style: Style, *, unsafe: bool) -> Iterator[str]:
    """``path:row:column: CODE [*] message``, a line each; ``[*]``: ``--fix`` would mend it."""
    for diagnostic in diagnostics:
        place = f"{diagnostic.location.row}:{diagnostic.location.column}"
        yield f"{style.bold(printable(diagnostic.path))}:{place}: {_what(diagnostic, style, unsafe)}"


def full(result: Result, source: bytes, style: Style, *, unsafe: bool) -> Iterator[str]:
    """A paragraph for each finding of one file: what, where, the source, and what to write."""
    excerpts = Excerpts(source, result.path, style)
    for diagnostic in result.diagnostics:
        excerpt = excerpts.excerpt(diagnostic)
        row, column = diagnostic.location.row, diagnostic.location.column
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


def _what(diagnostic: Diagnostic, style: Style, unsafe: bool) -> str:
    fixable = diagnostic.fix is not None and diagnostic.fix.applicability.allows(unsafe)
    mark = f"[{style.hint('*')}] " if fixable else ""
    return f"{style.code(diagnostic.code)} {mark}{printable(diagnostic.message)}"
