"""Findings as a person sees them."""

from collections.abc import Sequence
from pathlib import Path

from mllint.diagnostics import Diagnostic
from mllint.syntax.source import Source


def rendered(diagnostics: Sequence[Diagnostic], data: bytes, path: Path) -> str:
    """The findings with their rows, the spans marked, and what is offered."""
    source = Source.from_bytes(data, str(path))
    lines: list[str] = []
    for found in diagnostics:
        start, end = found.location, found.end_location
        row = source.line(start.row)
        width = end.column - start.column if end.row == start.row else len(row) - start.column + 1
        lines += [
            f"{start.row}:{start.column}: {found.code} {found.message}",
            f"    {row}",
            f"    {' ' * (start.column - 1)}{'^' * max(width, 1)}",
            f"  help: {found.help}",
        ]
        if found.fix is not None:
            lines.append(f"  fix ({found.fix.applicability}): {found.fix.message}")
        lines.append("")
    return "\n".join(lines)
