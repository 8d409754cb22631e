"""The form ``sarif``: SARIF 2.1.0, which GitHub code scanning and many other services read.

Files are named by their paths from the root of the repository: GitHub resolves them there.
"""

from collections.abc import Iterator, Sequence

from mllint.diagnostics import Diagnostic, Fix, Location, Severity
from mllint.output.explain import OWN_PAGES, Page, page_of
from mllint.output.found import View
from mllint.output.line_hashes import line_hashes
from mllint.output.machine import render
from mllint.output.places import below, file_uri, repository_root, uri_path
from mllint.running.runner import Outcome
from mllint.version import VERSION

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}


_SECURITY = {"load-without-weights-only": "7.8"}
"""Rules about security, with the severity (0 to 10) by which code scanning sorts those."""


def as_sarif(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The whole log: one run."""
    root = repository_root("GITHUB_WORKSPACE")
    codes = sorted({item.code for outcome in outcomes for item in outcome.result.diagnostics})
    driver = {
        "name": "mllint",
        "version": VERSION,
        "semanticVersion": VERSION,
        "rules": [_rule(page) for page in _pages(codes)],
    }
    indexes = {code: index for index, code in enumerate(codes)}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": f"{file_uri(root).rstrip('/')}/"}},
        "results": [entry for outcome in outcomes for entry in _results(outcome, root, indexes, view)],
    }
    yield render({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _pages(codes: Sequence[str]) -> list[Page]:
    """The documentation of each code, in their order."""
    if not codes:
        return []
    from mllint import registry

    pages = {page.code: page for page in (*OWN_PAGES, *map(page_of, registry.all_rules()))}
    return [pages[code] for code in codes]


def _rule(page: Page) -> dict[str, object]:
    properties: dict[str, object] = {
        "tags": [*page.frameworks, *([page.topic] if page.topic else [])],
        "precision": "high" if page.is_default else "medium",
        "problem.severity": _PROBLEMS[page.severity],
    }
    if page.name in _SECURITY:
        # Code scanning takes a rule for one about security by its tag.
        properties |= {"tags": ["security", *page.frameworks], "security-severity": _SECURITY[page.name]}
    return {
        "id": page.code,
        "name": page.name,
        "shortDescription": {"text": page.message},
        "fullDescription": {"text": page.summary},
        "help": {"text": page.docs, "markdown": page.docs},
        "defaultConfiguration": {"level": _LEVELS[page.severity], "enabled": page.is_default},
        "properties": properties,
    }


def _results(outcome: Outcome, root: str, indexes: dict[str, int], view: View) -> Iterator[dict[str, object]]:
    if not outcome.result.diagnostics:
        return
    artifact = _artifact(outcome.result.path, root)
    hashes = line_hashes(outcome.source)
    for item in outcome.result.diagnostics:
        result: dict[str, object] = {
            "ruleId": item.code,
            "ruleIndex": indexes[item.code],
            "level": _LEVELS[item.severity],
            "message": {"text": f"{item.message}\n{item.help}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": artifact,
                        "region": _region(item.location, item.end_location),
                    }
                }
            ],
        }
        if item.location.row <= len(hashes):
            result["partialFingerprints"] = {"primaryLocationLineHash": hashes[item.location.row - 1]}
        if item.fix is not None and item.fix.applicability.allows(view.unsafe):
            result["fixes"] = [_fix(item, item.fix, artifact)]
        yield result


def _artifact(path: str, root: str) -> dict[str, str]:
    relative = below(root, path)
    if relative is None:
        return {"uri": file_uri(path)}
    return {"uri": uri_path(relative), "uriBaseId": "%SRCROOT%"}


def _fix(item: Diagnostic, fix: Fix, artifact: dict[str, str]) -> dict[str, object]:
    replacements = [
        {"deletedRegion": _region(edit.location, edit.end_location), "insertedContent": {"text": edit.content}}
        for edit in fix.edits
    ]
    return {
        "description": {"text": fix.message},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
    }


def _region(start: Location, end: Location) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}
