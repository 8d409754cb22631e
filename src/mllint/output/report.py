"""What of a run is shown as its findings, in the form that was asked for."""

import enum
import importlib
from collections.abc import Iterable, Iterator

from mllint.output.found import View, findings, in_file
from mllint.running.runner import Outcome


class Format(enum.StrEnum):
    """The forms of output."""

    FULL = "full"
    CONCISE = "concise"
    GROUPED = "grouped"
    JSON = "json"
    JSON_LINES = "json-lines"
    GITHUB = "github"
    GITLAB = "gitlab"
    JUNIT = "junit"
    PYLINT = "pylint"
    RDJSON = "rdjson"
    SARIF = "sarif"

    @property
    def is_for_programs(self) -> bool:
        """Whether a program reads it, so that a person need not be told anything more."""
        return self not in (Format.FULL, Format.CONCISE, Format.GROUPED, Format.PYLINT, Format.GITHUB)

    @property
    def is_about_cells(self) -> bool:
        """Whether it has a word for a cell of a notebook; the others are about the rows of files as they are."""
        return self in (Format.FULL, Format.CONCISE, Format.GROUPED, Format.JSON, Format.JSON_LINES)

    @property
    def has_statistics(self) -> bool:
        """Whether findings counted by rule have a place in it."""
        return self in (Format.FULL, Format.CONCISE, Format.GROUPED, Format.JSON, Format.JSON_LINES)


_RENDERERS = {
    Format.FULL: "text:as_full",
    Format.CONCISE: "text:as_concise",
    Format.GROUPED: "text:as_grouped",
    Format.JSON: "machine:as_array",
    Format.JSON_LINES: "machine:as_lines",
    Format.GITHUB: "github:as_commands",
    Format.GITLAB: "gitlab:as_code_quality",
    Format.JUNIT: "junit:as_junit",
    Format.PYLINT: "pylint:as_pylint",
    Format.RDJSON: "rdjson:as_rdjson",
    Format.SARIF: "sarif:as_sarif",
}
"""Module and function of each form; a run imports the one that it needs.

Each function takes the outcomes in the order of their paths and a view, and gives pieces of text each of which ends a
line.
"""


def report(outcomes: Iterable[Outcome], form: Format, view: View) -> Iterator[str]:
    """The findings, as pieces of text each of which ends a line."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.result.path)
    if not form.is_about_cells:
        outcomes = list(map(in_file, outcomes))
    module, _, function = _RENDERERS[form].partition(":")
    yield from getattr(importlib.import_module(f"mllint.output.{module}"), function)(outcomes, view)


def statistics_report(outcomes: Iterable[Outcome], form: Format, view: View) -> Iterator[str]:
    """The findings counted by rule; for the forms that have a place for it."""
    from mllint.output import statistics

    entries = statistics.counts(findings(outcomes), unsafe=view.unsafe)
    if form is Format.JSON:
        yield statistics.as_json(entries)
    elif form is Format.JSON_LINES:
        yield from statistics.as_json_lines(entries)
    else:
        yield from statistics.as_text(entries, view.style)
