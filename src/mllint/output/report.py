"""What of a run is shown as its findings, in the form that was asked for."""

import enum
from collections.abc import Iterable, Iterator

from mllint.diagnostics import Diagnostic
from mllint.output import machine, statistics, text
from mllint.output.style import Style
from mllint.runner import Outcome


class Format(enum.StrEnum):
    """The forms of output."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"


def findings(outcomes: Iterable[Outcome]) -> list[Diagnostic]:
    """All findings in the order of every output: by path, row, column, code."""
    every = (diagnostic for outcome in outcomes for diagnostic in outcome.result.diagnostics)
    return sorted(every, key=lambda diagnostic: diagnostic.sort_key)


def report(outcomes: Iterable[Outcome], form: Format, style: Style, *, unsafe: bool) -> Iterator[str]:
    """The findings, as pieces of text each of which ends a line."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.result.path)
    if form is Format.JSON:
        yield machine.as_json(findings(outcomes))
    elif form is Format.CONCISE:
        yield from text.concise(findings(outcomes), style, unsafe=unsafe)
    else:
        for outcome in outcomes:
            yield from text.full(outcome.result, outcome.source, style, unsafe=unsafe)


def statistics_report(outcomes: Iterable[Outcome], form: Format, style: Style, *, unsafe: bool) -> Iterator[str]:
    """The findings counted by rule."""
    entries = statistics.counts(findings(outcomes), unsafe=unsafe)
    if form is Format.JSON:
        yield statistics.as_json(entries)
    else:
        yield from statistics.as_text(entries, style)
