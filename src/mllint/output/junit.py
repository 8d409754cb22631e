"""The form ``junit``: a test suite for each file, a failed test for each finding."""

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from mllint.diagnostics import Diagnostic
from mllint.output.found import View
from mllint.running.runner import Outcome

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(outcomes: Sequence[Outcome], view: View) -> Iterator[str]:
    """The whole document, in ASCII so that it is right in whatever encoding it is written."""
    text = "\n".join(_document([outcome for outcome in outcomes if outcome.result.diagnostics]))
    yield text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _document(outcomes: Sequence[Outcome]) -> Iterator[str]:
    total = sum(len(outcome.result.diagnostics) for outcome in outcomes)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    # Readers take a report without tests for a run that went wrong.
    yield f'<testsuites name="mllint" tests="{max(total, 1)}" failures="{total}" errors="0">'
    if not outcomes:
        yield '  <testsuite name="mllint" tests="1" failures="0" errors="0" skipped="0">'
        yield '    <testcase name="No errors found" classname="mllint" time="0"/>'
        yield "  </testsuite>"
    for outcome in outcomes:
        yield from _suite(outcome)
    yield "</testsuites>"


def _suite(outcome: Outcome) -> Iterator[str]:
    path, found = _attribute(outcome.result.path), outcome.result.diagnostics
    yield f'  <testsuite name={path} tests="{len(found)}" failures="{len(found)}" errors="0" skipped="0">'
    for item in found:
        yield from _case(item, path)
    yield "  </testsuite>"


def _case(item: Diagnostic, path: str) -> Iterator[str]:
    row, column = item.location.row, item.location.column
    name = _attribute(f"org.mllint.{item.code}")
    yield f'    <testcase name={name} classname={path} file={path} line="{row}" column="{column}" time="0">'
    text = escape(_clean(f"line {row}, column {column}: {item.message}\n{item.help}"))
    kind = _attribute(item.severity.value)
    yield f"      <failure message={_attribute(f'{item.code} {item.message}')} type={kind}>{text}</failure>"
    yield "    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """The text without what no XML document may hold."""
    return _NOT_XML.sub("\ufffd", text)
