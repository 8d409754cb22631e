"""Findings as a person sees them on the terminal."""

from collections.abc import Sequence

from msgspec.structs import replace

from mllint.diagnostics import Diagnostic, Result, Status
from mllint.output.style import Style
from mllint.output.text import full


def rendered(diagnostics: Sequence[Diagnostic], data: bytes, path: str) -> str:
    """The findings in the format ``full``, without colours, under the given path."""
    shown = tuple(replace(found, path=path) for found in diagnostics)
    result = Result(path, Status.OK, shown)
    return "\n".join(full(result, data, Style(), unsafe=True))
