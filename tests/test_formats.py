"""The forms that other programs read: each against its schema, its reader or its written rules."""

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from junitparser import JUnitXml

from mllint.cli import cli
from mllint.diagnostics import Applicability, Diagnostic, Edit, Fix, Location, Severity, Status
from mllint.diagnostics import Result as FileResult
from mllint.output.found import View
from mllint.output.line_hashes import line_hashes
from mllint.output.report import Format, report
from mllint.running.runner import Outcome

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json").read_text("utf-8"))

ONE = """\
import torch

x = torch.zeros(3)
x.cuda()
s = "é损"; x.cuda()
x.masked_fill(
    x > 0,
    1,
)
"""
OTHER = "import torch\n\nx = torch.zeros(3)\nprint(x.sum() == float('nan'))\n"
BROKEN = "import torch\n\ndef f(:\n"
PLACES = [
    ("a.py", 4, "ML101"),
    ("a.py", 5, "ML101"),
    ("a.py", 6, "ML101"),
    ("b/c d.py", 4, "ML501"),
    ("b/e.py", 3, "ML001"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with findings of several kinds, in which every test works."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "MLLINT_OUTPUT_FORMAT", "MLLINT_OUTPUT_FILE"):
        monkeypatch.delenv(name, raising=False)
    Path(".git").mkdir()
    Path("b").mkdir()
    for path, text in (("a.py", ONE), ("b/c d.py", OTHER), ("b/e.py", BROKEN)):
        Path(path).write_text(text, encoding="utf-8")
    return tmp_path


def mllint(*arguments: str, source: str | None = None) -> Result:
    result = CliRunner().invoke(cli, ["--isolated", *arguments], input=source)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def shown(form: Format, *paths: str) -> str:
    return mllint("--output-format", form.value, *paths).stdout


def loaded(form: Format, *paths: str) -> Any:
    return json.loads(shown(form, *paths))


def outcome(*findings: Diagnostic, source: str = "", path: str = "a.py") -> Outcome:
    return Outcome(FileResult(path, Status.OK, findings), source.encode())


def finding(message: str = "a message", *, severity: Severity = Severity.WARNING, path: str = "a.py") -> Diagnostic:
    return Diagnostic(
        "ML101", "discarded-tensor-result", message, "help", path, Location(1, 1), Location(1, 2), 1, severity=severity
    )


def rendered(form: Format, *outcomes: Outcome, unsafe: bool = False) -> str:
    return "\n".join(report(outcomes, form, View(unsafe=unsafe)))


# --- the same in every form -----------------------------------------------------------------------


def _from_text(text: str) -> list[tuple[str, int, str]]:
    pattern = re.compile(r"^(.+?):(\d+):(?:\d+:)? \[?(ML\d{3})", re.MULTILINE)
    return [(path, int(row), code) for path, row, code in pattern.findall(text)]


def _from_full(text: str) -> list[tuple[str, int, str]]:
    pattern = re.compile(r"^(ML\d{3}) .*\n *--> (.+):(\d+):\d+$", re.MULTILINE)
    return [(path, int(row), code) for code, path, row in pattern.findall(text)]


def _from_grouped(text: str) -> list[tuple[str, int, str]]:
    found = []
    path = ""
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            path = line[:-1]
        elif match := re.match(r" +(\d+):\d+ +(ML\d{3}) ", line):
            found.append((path, int(match[1]), match[2]))
    return found


def _from_junit(text: str) -> list[tuple[str, int, str]]:
    return [
        (case.get("classname", ""), int(case.get("line", "")), case.get("name", "").rpartition(".")[2])
        for case in ElementTree.fromstring(text).iter("testcase")
    ]


def _from_ruff_like(entries: Any) -> list[tuple[str, int, str]]:
    return [(os.path.relpath(item["filename"]), item["location"]["row"], item["code"]) for item in entries]


READERS = {
    Format.FULL: _from_full,
    Format.CONCISE: _from_text,
    Format.GROUPED: _from_grouped,
    Format.JSON: lambda text: _from_ruff_like(json.loads(text)),
    Format.JSON_LINES: lambda text: _from_ruff_like(map(json.loads, text.splitlines())),
    Format.GITHUB: lambda text: [
        (match[2], int(match[3]), match[1])
        for match in re.finditer(r"title=mllint \((.+?)\),file=(.+?),line=(\d+)", text)
    ],
    Format.GITLAB: lambda text: [
        (item["location"]["path"], item["location"]["positions"]["begin"]["line"], item["check_name"])
        for item in json.loads(text)
    ],
    Format.JUNIT: _from_junit,
    Format.PYLINT: _from_text,
    Format.RDJSON: lambda text: [
        (item["location"]["path"], item["location"]["range"]["start"]["line"], item["code"]["value"])
        for item in json.loads(text)["diagnostics"]
    ],
    Format.SARIF: lambda text: [
        (
            place["artifactLocation"]["uri"].replace("%20", " "),
            place["region"]["startLine"],
            result["ruleId"],
        )
        for result in json.loads(text)["runs"][0]["results"]
        for place in [result["locations"][0]["physicalLocation"]]
    ],
}


@pytest.mark.parametrize("form", Format)
def test_every_form_tells_the_same_findings(form: Format) -> None:
    result = mllint("--output-format", form.value, ".")
    assert result.exit_code == 1
    assert sorted(READERS[form](result.stdout)) == PLACES
    assert bool(result.stderr) is not form.is_for_programs


@pytest.mark.parametrize("form", Format)
def test_every_form_can_say_that_there_is_nothing(form: Format) -> None:
    Path("clean.py").write_text("import torch\n", encoding="utf-8")
    result = mllint("--output-format", form.value, "clean.py")
    assert result.exit_code == 0
    expected = {
        Format.JSON: "[]\n",
        Format.GITLAB: "[]\n",
        Format.JUNIT: None,
        Format.RDJSON: None,
        Format.SARIF: None,
    }.get(form, "")
    assert expected is None or result.stdout == expected


@pytest.mark.parametrize("form", Format)
def test_every_form_survives_odd_names_and_sources(form: Format) -> None:
    path = os.fsdecode(b"odd \xff\x1b:,%.py")
    Path(path).write_bytes(b"\xef\xbb\xbf" + ONE.replace("\n", "\r\n").encode())
    result = mllint("--output-format", form.value, path)
    assert result.exit_code == 1
    standard_input = mllint("--output-format", form.value, "-", source=ONE)
    assert standard_input.exit_code == 1
    assert "ML101" in standard_input.stdout


# --- SARIF ----------------------------------------------------------------------------------------


def sarif(*arguments: str) -> Any:
    log = json.loads(mllint("--output-format", "sarif", *arguments).stdout)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    return log["runs"][0]


def test_sarif_keeps_to_its_schema(folder: Path) -> None:
    run = sarif(".")
    driver = run["tool"]["driver"]
    assert driver["name"] == "mllint"
    assert [rule["id"] for rule in driver["rules"]] == ["ML001", "ML101", "ML501"]
    assert all(rule["help"]["markdown"] and rule["fullDescription"]["text"] for rule in driver["rules"])
    assert [rule["defaultConfiguration"]["level"] for rule in driver["rules"]] == ["error", "warning", "warning"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{folder.as_uri()}/"
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
        assert re.fullmatch(r"[0-9a-f]+:\d+", result["partialFingerprints"]["primaryLocationLineHash"])
    second = run["results"][1]
    assert second["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 5,
        "startColumn": 11,
        "endLine": 5,
        "endColumn": 19,
    }
    replacements = second["fixes"][0]["artifactChanges"][0]["replacements"]
    assert [item["insertedContent"]["text"] for item in replacements] == ["x = "]


def test_sarif_of_a_clean_run_is_a_log_too() -> None:
    Path("clean.py").write_text("import torch\n", encoding="utf-8")
    assert sarif("clean.py")["results"] == []


def test_sarif_of_every_fixture_keeps_to_the_schema() -> None:
    fixtures = Path(__file__).parent / "fixtures" / "rules"
    assert len(sarif("--unsafe-fixes", str(fixtures / "discarded-tensor-result"))["results"]) > 20


def test_sarif_marks_what_is_about_security() -> None:
    source = 'import torch\n\nstate = torch.load("m.pt")\nx = torch.zeros(3)\nx.cuda()\n'
    Path("a.py").write_text(source, encoding="utf-8")
    rules = sarif("--target-version", "torch=2.0", "a.py")["tool"]["driver"]["rules"]
    severities = {rule["id"]: rule["properties"].get("security-severity") for rule in rules}
    assert severities == {"ML101": None, "ML429": "7.8"}


def test_sarif_names_files_from_the_root_of_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def uri(*arguments: str) -> dict[str, str]:
        place = sarif(*arguments)["results"][0]["locations"][0]["physicalLocation"]
        found: dict[str, str] = place["artifactLocation"]
        return found

    monkeypatch.chdir("b")
    assert uri("c d.py") == {"uri": "b/c%20d.py", "uriBaseId": "%SRCROOT%"}
    assert uri("../a.py") == {"uri": "a.py", "uriBaseId": "%SRCROOT%"}
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder / "b"))
    assert uri(".") == {"uri": "c%20d.py", "uriBaseId": "%SRCROOT%"}
    assert uri("../a.py") == {"uri": (folder / "a.py").as_uri()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["c129715d7a2bc9a3:1"]),
        (" a\nb\n  \t\tc\n d", ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"]),
        (
            "x = 2\nx = 1\nprint(x)\nx = 3\nprint(x)\nx = 4\nprint(x)\n",
            [
                "e54938cc54b302f1:1",
                "bb609acbe9138d60:1",
                "1131fd5871777f34:1",
                "5c482a0f8b35ea28:1",
                "54517377da7028d2:1",
                "2c644846cb18d53e:1",
                "f1b89f20de0d133:1",
                "c129715d7a2bc9a3:1",
            ],
        ),
    ],
)
def test_a_line_is_known_by_the_value_that_github_computes(text: str, expected: list[str]) -> None:
    assert line_hashes(text.encode()) == expected
    assert line_hashes(text.replace("\n", "\r\n").encode()) == expected
    assert line_hashes(text.replace("\n", "\r").encode()) == expected


def test_equal_lines_are_numbered() -> None:
    hashes = line_hashes(b"Lorem ipsum dolor sit amet.\n" * 10)
    assert hashes[:6] == [f"a7f2ff13bc495cf2:{number}" for number in range(1, 7)]
    assert len(hashes) == len(set(hashes)) == 11


# --- GitHub ---------------------------------------------------------------------------------------


def test_github_escapes_what_its_runner_would_read() -> None:
    odd = finding("100 %: a,\r\nb", severity=Severity.ERROR, path="x:y,%.py")
    assert rendered(Format.GITHUB, outcome(odd, path=odd.path)) == (
        "::error title=mllint (ML101),file=x%3Ay%2C%25.py,line=1,col=1,endLine=1,endColumn=2::"
        "x:y,%25.py:1:1: ML101 100 %25: a,%0D%0Ab"
    )


def test_github_gives_columns_only_within_a_line() -> None:
    _, first, several = shown(Format.GITHUB, "a.py").splitlines()
    assert ",line=5,col=11,endLine=5,endColumn=19::" in first
    assert ",line=6,endLine=9::a.py:6:1: ML101 " in several


def test_github_is_told_the_worst_first() -> None:
    items = [finding(severity=severity) for severity in (Severity.INFO, Severity.WARNING, Severity.ERROR)]
    lines = rendered(Format.GITHUB, outcome(*items)).splitlines()
    assert [line.split()[0] for line in lines] == ["::error", "::warning", "::notice"]


# --- GitLab ---------------------------------------------------------------------------------------


def test_gitlab_gets_what_it_demands(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    entries = loaded(Format.GITLAB, ".")
    for entry in entries:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert entry["description"].startswith(f"{entry['check_name']}: ")
        assert not entry["location"]["path"].startswith(("/", "./"))
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
    monkeypatch.setenv("CI_PROJECT_DIR", str(folder / "b"))
    assert loaded(Format.GITLAB, "b")[0]["location"]["path"] == "c d.py"


def test_a_fingerprint_is_unique_and_stays_when_the_line_moves() -> None:
    source = "import torch\nx = torch.zeros(3)\nx.cuda()\nif x.sum() > 0:\n    x.cuda()\n"

    def fingerprints(text: str) -> list[str]:
        Path("a.py").write_text(text, encoding="utf-8")
        return [entry["fingerprint"] for entry in loaded(Format.GITLAB, "a.py")]

    before = fingerprints(source)
    assert len(set(before)) == len(before) == 2
    assert fingerprints(f"# a comment\n\n{source}".replace("    x", "      x")) == before
    assert fingerprints(source.replace("x.cuda", "x.cpu")) != before


# --- JUnit ----------------------------------------------------------------------------------------


def test_junit_can_be_read(folder: Path) -> None:
    Path("report.xml").write_text(shown(Format.JUNIT, "."), encoding="utf-8")
    suites = list(JUnitXml.fromfile("report.xml"))
    assert [(suite.name, suite.tests, suite.failures) for suite in suites] == [
        ("a.py", 3, 3),
        ("b/c d.py", 1, 1),
        ("b/e.py", 1, 1),
    ]
    case = next(iter(suites[0]))
    assert (case.name, case.classname) == ("org.mllint.ML101", "a.py")
    assert case.result[0].message == "ML101 the result of `cuda()` is discarded"
    assert case.result[0].text.startswith("line 4, column 1: ")


def test_junit_of_a_clean_run_has_a_test_that_passed() -> None:
    Path("clean.py").write_text("import torch\n", encoding="utf-8")
    text = shown(Format.JUNIT, "clean.py")
    (suite,) = JUnitXml.fromstring(text.encode())
    assert [case.is_passed for case in suite] == [True]


def test_junit_holds_only_what_xml_may_hold() -> None:
    text = rendered(Format.JUNIT, outcome(finding("<&\"'>\x00\x1b\ud800é\ufffe")))
    assert text.isascii()
    (case,) = ElementTree.fromstring(text).iter("testcase")
    assert case[0].get("message") == "ML101 <&\"'>\ufffd\ufffd\ufffdé\ufffd"


# --- reviewdog ------------------------------------------------------------------------------------


def test_rdjson_counts_bytes() -> None:
    log = loaded(Format.RDJSON, "a.py")
    assert log["source"] == {"name": "mllint"}
    first, second, _ = log["diagnostics"]
    assert first["location"] == {
        "path": "a.py",
        "range": {"start": {"line": 4, "column": 1}, "end": {"line": 4, "column": 9}},
    }
    line = ONE.splitlines()[4].encode()
    start, end = (second["location"]["range"][key]["column"] - 1 for key in ("start", "end"))
    assert line[start:end] == b"x.cuda()"
    (suggestion,) = second["suggestions"]
    assert suggestion["text"] == "x = "
    assert suggestion["range"]["start"]["column"] - 1 == start
    assert (second["severity"], second["code"]) == ("WARNING", {"value": "ML101"})


def test_rdjson_suggests_no_half_fix_and_none_that_is_not_asked_for() -> None:
    place = Location(1, 1)
    edit = Edit(0, 0, "x", place, place)

    def suggestions(fix: Fix, *, unsafe: bool = False) -> Any:
        found = Diagnostic("ML101", "n", "m", "h", "a.py", place, place, 1, fix)
        log = json.loads(rendered(Format.RDJSON, outcome(found, source="y\n"), unsafe=unsafe))
        return log["diagnostics"][0].get("suggestions", [])

    assert suggestions(Fix("m", Applicability.SAFE, (edit,)))
    assert not suggestions(Fix("m", Applicability.SAFE, (edit, edit)))
    assert not suggestions(Fix("m", Applicability.UNSAFE, (edit,)))
    assert suggestions(Fix("m", Applicability.UNSAFE, (edit,)), unsafe=True)
    assert not suggestions(Fix("m", Applicability.DISPLAY, (edit,)), unsafe=True)


# --- for people -----------------------------------------------------------------------------------


def test_grouped() -> None:
    assert shown(Format.GROUPED, ".") == (
        "a.py:\n"
        "  4:1   ML101 [*] the result of `cuda()` is discarded\n"
        "  5:11  ML101 [*] the result of `cuda()` is discarded\n"
        "  6:1   ML101 the result of `masked_fill()` is discarded\n"
        "\n"
        "b/c d.py:\n"
        "  4:7  ML501 [*] comparison with NaN is always false\n"
        "\n"
        "b/e.py:\n"
        f"  3:7  ML001 {_message_of('b/e.py')}\n"
        "\n"
    )


def _message_of(path: str) -> str:
    message: str = loaded(Format.JSON, path)[0]["message"]
    return message


def test_pylint() -> None:
    assert shown(Format.PYLINT, "a.py").splitlines()[0] == "a.py:4: [ML101] the result of `cuda()` is discarded"


# --- a file instead of the terminal ---------------------------------------------------------------


@pytest.mark.parametrize("form", Format)
def test_a_report_goes_whole_into_a_file(form: Format, folder: Path) -> None:
    expected = shown(form, ".")
    result = mllint("--output-format", form.value, "--color", "always", "-o", "reports/new.txt", ".")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "5 findings" in result.stderr
    assert Path("reports/new.txt").read_text("utf-8") == expected
    assert os.listdir("reports") == ["new.txt"]


def test_the_file_may_come_from_the_environment_and_replaces_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report.txt").write_text("old" * 10_000, encoding="utf-8")
    Path("report.txt").chmod(0o640)
    monkeypatch.setenv("MLLINT_OUTPUT_FILE", "report.txt")
    assert mllint("--output-format", "pylint", "a.py").stdout == ""
    assert Path("report.txt").read_text("utf-8").count("\n") == 3
    assert Path("report.txt").stat().st_mode & 0o777 == 0o640


def test_a_diff_goes_into_the_file_too() -> None:
    result = mllint("--diff", "-o", "a.patch", "a.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert Path("a.patch").read_text("utf-8").startswith("--- a.py\n+++ a.py\n")


def test_with_mended_source_on_the_standard_output_findings_can_go_into_a_file() -> None:
    result = mllint("--fix", "--output-format", "json", "-o", "report.json", "-", source=ONE)
    assert "x = x.cuda()" in result.stdout
    assert isinstance(json.loads(Path("report.json").read_text("utf-8")), list)


def test_a_file_that_cannot_be_written_is_said_and_ends_with_2() -> None:
    Path("folder").mkdir()
    for path in ("folder", "a.py/report.txt"):
        result = mllint("-o", path, "a.py")
        assert result.exit_code == 2
        assert f"\nmllint: error: {path}: cannot be written: " in result.stderr
    Path("pipe").unlink(missing_ok=True)
    assert mllint("-o", "/dev/null", "a.py").exit_code == 1


def test_statistics_in_text_and_json() -> None:
    text = mllint("--statistics", "--output-format", "grouped", ".").stdout
    assert text.splitlines()[0] == "3  ML101  [-]  discarded-tensor-result"
    entries = json.loads(mllint("--statistics", "--output-format", "json", ".").stdout)
    lines = mllint("--statistics", "--output-format", "json-lines", ".").stdout.splitlines()
    assert entries == [json.loads(line) for line in lines]
    assert entries[0] == {
        "code": "ML101",
        "name": "discarded-tensor-result",
        "count": 3,
        "fixable": True,
        "fixable_count": 2,
    }


def test_statistics_have_no_place_in_other_forms() -> None:
    for form in ("sarif", "github", "junit", "gitlab", "rdjson", "pylint"):
        result = mllint("--statistics", "--output-format", form, ".")
        assert result.exit_code == 2
        assert "it has in: full, concise, grouped, json, json-lines" in result.stderr
