"""What findings look like, in every form."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from mllint.diagnostics import Applicability, Diagnostic, Edit, Fix, Location, Result, Severity, Status
from mllint.output import explain, machine, statistics, summary
from mllint.output.diff import unified_diff
from mllint.output.found import View
from mllint.output.report import Format, report
from mllint.output.style import Style, printable, wants_colour, width
from mllint.output.text import concise, full
from mllint.running.runner import Outcome

PLAIN = Style()
VIEW = View()


def finding(
    start: tuple[int, int] = (1, 1),
    end: tuple[int, int] | None = None,
    *,
    fix: Applicability | None = None,
    path: str = "a.py",
    code: str = "ML101",
    severity: Severity = Severity.WARNING,
    message: str = "the result is discarded",
) -> Diagnostic:
    edit = Edit(0, 0, "x = ", Location(*start), Location(*start))
    return Diagnostic(
        code=code,
        name="discarded-tensor-result",
        message=message,
        help="write `x = x.cuda()`",
        path=path,
        location=Location(*start),
        end_location=Location(*(end or start)),
        noqa_row=start[0],
        fix=None if fix is None else Fix("assign the result", fix, (edit,)),
        severity=severity,
    )


def shown(source: str | bytes, *findings: Diagnostic, style: Style = PLAIN, unsafe: bool = False) -> str:
    data = source if isinstance(source, bytes) else source.encode()
    result = Result("a.py", Status.OK, findings)
    return "\n".join(full(result, data, style, unsafe=unsafe))


SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


def test_concise() -> None:
    findings = [finding((3, 7), fix=SAFE), finding((4, 1), fix=UNSAFE), finding((5, 1), fix=DISPLAY), finding()]
    marked = "the result is discarded"
    assert list(concise(findings, PLAIN, unsafe=False)) == [
        f"a.py:3:7: ML101 [*] {marked}",
        f"a.py:4:1: ML101 {marked}",
        f"a.py:5:1: ML101 {marked}",
        f"a.py:1:1: ML101 {marked}",
    ]
    assert list(concise(findings[1:3], PLAIN, unsafe=True)) == [
        f"a.py:4:1: ML101 [*] {marked}",
        f"a.py:5:1: ML101 {marked}",
    ]


def test_full_marks_a_span_in_a_row() -> None:
    source = "import torch\n\n\ndef f(x):\n    x.cuda()\n    y = 1\n\n    z = 2\n"
    assert shown(source, finding((5, 5), (5, 13), fix=SAFE)) == (
        "ML101 [*] the result is discarded\n"
        " --> a.py:5:5\n"
        "  |\n"
        "4 | def f(x):\n"
        "5 |     x.cuda()\n"
        "  |     ^^^^^^^^\n"
        "6 |     y = 1\n"
        "  |\n"
        "help: write `x = x.cuda()`\n"
    )


def excerpt(source: str | bytes, start: tuple[int, int], end: tuple[int, int]) -> list[str]:
    """The excerpt alone: between the frame's first and last line."""
    lines = shown(source, finding(start, end)).splitlines()
    return lines[3:-2]


def test_full_draws_a_line_beside_several_rows() -> None:
    source = "import torch\nx.masked_fill(\n    mask,\n    0)\ny = 1\n"
    assert excerpt(source, (2, 1), (4, 7)) == [
        "1 |   import torch",
        "2 | / x.masked_fill(",
        "3 | |     mask,",
        "4 | |     0)",
        "  | |______^",
        "5 |   y = 1",
    ]


def test_full_leads_to_a_span_that_begins_within_a_row() -> None:
    source = "y = 0; x.masked_fill(\n    mask, 0)"
    assert excerpt(source, (1, 8), (2, 13)) == [
        "1 |   y = 0; x.masked_fill(",
        "  |  ________^",
        "2 | |     mask, 0)",
        "  | |____________^",
    ]


def test_full_leaves_out_the_middle_of_a_long_span() -> None:
    source = "".join(f"f({row},\n" for row in range(1, 120)) + ")" * 119
    assert excerpt(source, (1, 1), (120, 120)) == [
        "  1 | / f(1,",
        "  2 | | f(2,",
        "  3 | | f(3,",
        "  4 | | f(4,",
        "  5 | | f(5,",
        "... | |",
        "120 | | " + ")" * 119,
        "    | |" + "_" * 119 + "^",
    ]


def test_full_counts_columns_as_a_terminal_fills_them() -> None:
    source = 'a = "损失"; x.cuda()\n\tb = "é"; y.cuda()\n'
    assert excerpt(source, (1, 11), (1, 19))[:2] == [
        '1 | a = "损失"; x.cuda()',
        "  |             ^^^^^^^^",
    ]
    assert excerpt(source, (2, 11), (2, 19))[1:] == [
        '2 |     b = "é"; y.cuda()',
        "  |              ^^^^^^^^",
    ]


def test_full_shows_nothing_that_would_steer_a_terminal() -> None:
    source = "x = '\x1b[31m\u202e'; y.cuda()\n"
    assert excerpt(source, (1, 15), (1, 23)) == [
        "1 | x = '\u241b[31m\ufffd'; y.cuda()",
        "  |               ^^^^^^^^",
    ]


@pytest.mark.parametrize(("column", "where"), [(1, 0), (5000, 41), (9993, 153)])
def test_full_cuts_a_very_long_row_around_the_span(column: int, where: int) -> None:
    source = "a" * 10_000
    row, mark = excerpt(source, (1, column), (1, column + 8))
    assert len(row) <= len("1 | ") + 160 + 2
    assert mark == "  | " + " " * where + "^" * 8
    assert ("…" in row[4:6]) == (column > 100)
    assert row.endswith("…") == (column < 9000)


def test_full_of_a_file_that_cannot_be_decoded_or_has_no_such_row() -> None:
    assert excerpt(b"import torch\n# \xff\n", (2, 1), (2, 1)) == ["1 | import torch", "2 | # \ufffd", "  | ^"]
    for source in ("", "import torch\n"):
        assert shown(source, finding((9, 1))).splitlines() == [
            "ML101 the result is discarded",
            " --> a.py:9:1",
            "help: write `x = x.cuda()`",
        ]


def test_full_knows_the_ends_of_lines_that_the_engine_knows() -> None:
    source = "a = 1\rb = '\x0c\x85\u2028'\r\nx.cuda()\n"
    assert excerpt(source, (3, 1), (3, 9))[-2:] == ["3 | x.cuda()", "  | ^^^^^^^^"]


def test_full_of_an_end_before_the_start() -> None:
    assert excerpt("x.cuda()\n", (1, 3), (1, 1)) == ["1 | x.cuda()", "  |   ^"]


def test_colours_change_nothing_but_the_colours() -> None:
    source = "def f():\n    x.masked_fill(\n        0)\n"
    findings = [finding((2, 5), (3, 11), fix=SAFE), finding((1, 1), (1, 4))]
    coloured = shown(source, *findings, style=Style(True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == shown(source, *findings)


def test_json_has_the_keys_that_readers_of_ruff_expect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (entry,) = json.loads(machine.as_json([finding((3, 7), (3, 15), fix=SAFE, path="b/a.py")]))
    assert entry == {
        "cell": None,
        "code": "ML101",
        "name": "discarded-tensor-result",
        "message": "the result is discarded",
        "help": "write `x = x.cuda()`",
        "severity": "warning",
        "filename": str(tmp_path / "b" / "a.py"),
        "location": {"row": 3, "column": 7},
        "end_location": {"row": 3, "column": 15},
        "noqa_row": 3,
        "fix": {
            "applicability": "safe",
            "message": "assign the result",
            "edits": [
                {
                    "content": "x = ",
                    "location": {"row": 3, "column": 7},
                    "end_location": {"row": 3, "column": 7},
                }
            ],
        },
        "url": None,
    }


def test_json_of_nothing_and_of_odd_names() -> None:
    assert machine.as_json([]) == "[]"
    odd_name = os.fsdecode(b"/\xff\xc3\xa9.py")
    text = machine.as_json([finding(path="-"), finding(path=odd_name, code="ML001", severity=Severity.ERROR)])
    assert text.isascii()
    standard_input, odd = json.loads(text)
    assert (standard_input["filename"], standard_input["fix"]) == ("-", None)
    assert os.fsencode(odd["filename"]) == b"/\xff\xc3\xa9.py"
    assert odd["severity"] == "error"


def test_statistics() -> None:
    findings = [finding(fix=SAFE), finding(), finding(fix=UNSAFE), *[finding(code="ML203")] * 10]
    counts = statistics.counts(findings, unsafe=False)
    assert statistics.as_text(counts, PLAIN) == [
        "10  ML203  [ ]  discarded-tensor-result",
        " 3  ML101  [-]  discarded-tensor-result",
    ]
    assert statistics.as_text(statistics.counts(findings[:1], unsafe=False), PLAIN)[0].split()[2] == "[*]"
    assert json.loads(statistics.as_json(statistics.counts(findings, unsafe=True)))[1] == {
        "code": "ML101",
        "name": "discarded-tensor-result",
        "count": 3,
        "fixable": True,
        "fixable_count": 2,
    }
    assert statistics.as_json([]) == "[]"


def test_reports_are_in_order_whatever_the_order_of_the_outcomes() -> None:
    outcomes = [
        Outcome(Result(path, Status.OK, (finding((1, 1), path=path), finding((2, 1), path=path))), b"a\nb\n")
        for path in ("b.py", "a.py", "a/c.py")
    ]
    for form in Format:
        forward = list(report(outcomes, form, VIEW))
        assert forward == list(report(outcomes[::-1], form, VIEW))
    paths = [line.partition(":")[0] for line in report(outcomes, Format.CONCISE, VIEW)]
    assert paths == ["a.py", "a.py", "a/c.py", "a/c.py", "b.py", "b.py"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"a\nb", b"a\nB"),
        (b"a\nb\n", b"a\nb"),
        (b"a", b"a\n"),
        (b"", b"a\n"),
        (b"a\rb\x0cc\n", b"a\rB\x0cc\n"),
        ("# coding: latin-1\né\n".encode("latin-1"), "# coding: latin-1\nè\n".encode("latin-1")),
    ],
)
def test_a_diff_can_be_applied_byte_for_byte(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / "a.py").write_bytes(before)
    diff = unified_diff("a.py", before, after, PLAIN)
    subprocess.run(["git", "apply", "-p0", "--unidiff-zero", "-"], input=diff, cwd=tmp_path, check=True)
    assert (tmp_path / "a.py").read_bytes() == after


def test_a_diff_of_nothing_is_empty() -> None:
    assert unified_diff("a.py", b"a", b"a", PLAIN) == b""


def test_a_coloured_diff() -> None:
    diff = unified_diff("a.py", b"a\n\xff\n", b"b\n\xff\n", Style(True))
    assert b"\x1b[31m-a\x1b[0m\n" in diff
    assert b"\x1b[32m+b\x1b[0m\n" in diff
    assert diff.endswith(b" \xff\n")


@pytest.mark.parametrize(
    ("remaining", "options", "expected"),
    [
        ([], {"fixed": 0, "fixing": False}, "No findings in 3 files."),
        ([], {"fixed": 2, "fixing": True}, "Fixed 2 findings, 0 left."),
        ([finding()], {"fixed": 0, "fixing": False}, "1 finding in 1 file."),
        (
            [finding(fix=SAFE), finding(path="b.py", fix=UNSAFE), finding(fix=DISPLAY)],
            {"fixed": 0, "fixing": False},
            "3 findings in 2 files. 1 fixable with `--fix`. 1 hidden fix can be enabled with `--unsafe-fixes`.",
        ),
        (
            [finding(fix=UNSAFE), finding(fix=UNSAFE)],
            {"fixed": 1, "fixing": True},
            "Fixed 1 finding, 2 left. 2 hidden fixes can be enabled with `--unsafe-fixes`.",
        ),
        (
            [finding(fix=UNSAFE)],
            {"fixed": 0, "fixing": False, "unsafe": True},
            "1 finding in 1 file. 1 fixable with `--fix`.",
        ),
    ],
)
def test_the_closing_sentence(remaining: list[Diagnostic], options: dict[str, bool], expected: str) -> None:
    arguments = {"files": 3, "unsafe": False, **options}
    assert summary.summary(remaining, **arguments) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("choice", "terminal", "environment", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"CLICOLOR_FORCE": "1"}, True),
        ("auto", True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_when_to_colour(choice: str, terminal: bool, environment: dict[str, str], expected: bool) -> None:
    assert wants_colour(choice, is_terminal=terminal, environment=environment) is expected


def test_what_a_terminal_shows() -> None:
    assert printable("a\x00\x1b\x7f\u200b\udcff\u2028é") == "a\u2400\u241b\ufffd\ufffd\ufffd\ufffdé"
    assert [width(text) for text in ("abc", "损", "e\u0301", "")] == [3, 2, 1, 0]


def test_the_page_of_every_code() -> None:
    from mllint.registry import all_rules

    pages = [*explain.OWN_PAGES, *map(explain.page_of, all_rules())]
    for page in pages:
        text = explain.markdown(page)
        assert text.startswith(f"# {page.name} ({page.code})\n\n*Since mllint ")
        assert "\n## " in text
        rendered = explain.rendered(page, width=72)
        assert page.code in rendered
        assert max(width(line) for line in _plain(rendered).splitlines()) <= 72
    lines = explain.listing(pages, PLAIN)
    assert [line[:5] for line in lines] == sorted(page.code for page in pages)
    assert [entry["code"] for entry in json.loads(explain.as_json(pages))] == [line[:5] for line in lines]


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", text)
