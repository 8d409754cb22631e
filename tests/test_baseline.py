"""The list of accepted findings: written, held against later runs, pruned."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mllint.cli import cli
from mllint.output.report import Format
from mllint.running.baseline import DEFAULT_NAME

HEAD = "import torch\n\nx = torch.zeros(3)\n"
DISCARDED = "x.cuda()\n"
NAN = "print(x.sum() == float('nan'))\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An old code base, in which every test works."""
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    write("a.py", HEAD + DISCARDED * 2 + NAN)
    write("b/c.py", HEAD + NAN)
    return tmp_path


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def mllint(*arguments: str, source: str | None = None) -> Result:
    result = CliRunner().invoke(cli, arguments, input=source)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def accepted(path: str = DEFAULT_NAME) -> Any:
    return json.loads(Path(path).read_text("utf-8"))


def found(*arguments: str) -> list[tuple[str, int, str]]:
    entries = json.loads(mllint("--output-format", "json", *arguments).stdout)
    return [(os.path.relpath(item["filename"]), item["location"]["row"], item["code"]) for item in entries]


def test_everything_is_accepted_and_a_later_run_reports_what_is_new() -> None:
    result = mllint("--suppress-all", ".")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "4 accepted findings not shown (mllint-suppressions.json).\nNo findings in 2 files.\n"
    assert Path(DEFAULT_NAME).read_text("utf-8") == (
        '{\n  "a.py": {\n    "ML101": 2,\n    "ML501": 1\n  },\n  "b/c.py": {\n    "ML501": 1\n  }\n}\n'
    )
    assert mllint(".").exit_code == 0
    # Lines move, and nothing changes.
    write("a.py", HEAD + "\n\n# more\n" + NAN + DISCARDED * 2)
    assert (mllint(".").exit_code, found(".")) == (0, [])
    # One more of a rule in a file: nobody can tell which is new, so all are shown.
    write("a.py", HEAD + DISCARDED * 3 + NAN)
    assert found(".") == [("a.py", row, "ML101") for row in (4, 5, 6)]
    assert mllint(".").exit_code == 1
    write("d.py", HEAD + NAN)
    assert found(".")[-1] == ("d.py", 4, "ML501")


@pytest.mark.parametrize("form", Format)
def test_no_form_shows_what_is_accepted(form: Format) -> None:
    mllint("--suppress-all", "a.py")
    result = mllint("--output-format", form.value, "a.py")
    assert result.exit_code == 0
    assert "ML101" not in result.stdout
    new = mllint("--output-format", form.value, ".")
    assert new.exit_code == 1
    assert "ML501" in new.stdout
    assert "ML101" not in new.stdout


def test_only_some_rules_are_accepted() -> None:
    assert mllint("--suppress-rule", "nan-comparison", ".").exit_code == 1
    assert accepted() == {"a.py": {"ML501": 1}, "b/c.py": {"ML501": 1}}
    assert found(".") == [("a.py", 4, "ML101"), ("a.py", 5, "ML101")]
    assert mllint("--suppress-rule", "ML1", ".").exit_code == 0
    assert accepted() == {"a.py": {"ML101": 2, "ML501": 1}, "b/c.py": {"ML501": 1}}


def test_accepting_some_files_leaves_the_entries_of_others() -> None:
    mllint("--suppress-all", "b")
    mllint("--suppress-all", "a.py")
    assert set(accepted()) == {"a.py", "b/c.py"}
    write("a.py", HEAD + NAN)
    mllint("--suppress-all", "a.py")
    assert accepted() == {"a.py": {"ML501": 1}, "b/c.py": {"ML501": 1}}


def test_what_is_mended_makes_an_entry_stale_until_it_is_pruned() -> None:
    mllint("--suppress-all", ".")
    write("a.py", HEAD + DISCARDED)
    result = mllint(".")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[1:4] == [
        "mllint: warning: mllint-suppressions.json: a.py: ML101 is accepted 2 times and found 1",
        "mllint: warning: mllint-suppressions.json: a.py: ML501 is accepted 1 time and found 0",
        "mllint: warning: mllint-suppressions.json: 2 entries are out of date: `--prune-suppressions` mends that",
    ]
    assert mllint("--quiet", ".").exit_code == 1
    assert mllint("--pass-on-unpruned-suppressions", ".").exit_code == 0
    assert mllint("--exit-zero", ".").exit_code == 0
    assert mllint("--prune-suppressions", ".").exit_code == 0
    assert accepted() == {"a.py": {"ML101": 1}, "b/c.py": {"ML501": 1}}
    before = Path(DEFAULT_NAME).stat().st_mtime_ns
    assert mllint("--prune-suppressions", ".").exit_code == 0
    assert Path(DEFAULT_NAME).stat().st_mtime_ns == before


def test_pruning_accepts_nothing_new() -> None:
    mllint("--suppress-all", ".")
    write("a.py", HEAD + DISCARDED * 3)
    assert mllint("--prune-suppressions", ".").exit_code == 1
    assert accepted() == {"a.py": {"ML101": 2}, "b/c.py": {"ML501": 1}}


def test_only_what_was_run_can_be_stale() -> None:
    mllint("--suppress-all", ".")
    write("a.py", HEAD)
    assert mllint("b").exit_code == 0
    assert mllint("--select", "ML4", ".").exit_code == 0
    assert mllint("--per-file-ignores", "a.py:ML1,ML5", ".").exit_code == 0
    assert mllint("--min-severity", "error", ".").exit_code == 0
    assert mllint(".").exit_code == 1


def test_entries_of_files_that_are_gone_are_stale_where_one_looked() -> None:
    mllint("--suppress-all", ".")
    Path("b/c.py").unlink()
    assert mllint("a.py").exit_code == 0
    assert mllint("b").exit_code == 1
    assert "b/c.py: ML501 is accepted 1 time and found 0" in mllint(".").stderr
    mllint("--prune-suppressions", ".")
    assert set(accepted()) == {"a.py"}


def test_an_entry_of_a_rule_that_does_not_exist_is_stale() -> None:
    write(DEFAULT_NAME, '{"a.py": {"ML777": 1}}')
    assert "a.py: ML777 is accepted 1 time and found 0" in mllint(".").stderr


def test_comments_count_before_the_list() -> None:
    write("a.py", HEAD + "x.cuda()  # noqa: ML101\n" + DISCARDED)
    mllint("--suppress-all", "a.py")
    assert accepted() == {"a.py": {"ML101": 1}}


def test_what_could_not_be_checked_is_never_accepted() -> None:
    write("a.py", "import torch\ndef f(:\n")
    assert mllint("--suppress-all", ".").exit_code == 1
    assert accepted() == {"b/c.py": {"ML501": 1}}
    write(DEFAULT_NAME, '{"a.py": {"ML001": 1}}')
    assert found("a.py") == [("a.py", 2, "ML001")]


def test_nothing_to_accept_makes_no_file() -> None:
    write("a.py", HEAD)
    assert mllint("--suppress-all", "a.py").exit_code == 0
    assert not Path(DEFAULT_NAME).exists()


def test_the_list_holds_in_the_folders_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mllint("--suppress-all", ".")
    monkeypatch.chdir("b")
    assert mllint(".").exit_code == 0
    assert mllint("../a.py").exit_code == 0
    write("new.py", HEAD + NAN)
    mllint("--suppress-all", ".")
    assert not Path(DEFAULT_NAME).exists()
    assert set(accepted(f"../{DEFAULT_NAME}")) == {"a.py", "b/c.py", "b/new.py"}


def test_a_repository_does_not_look_beyond_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    mllint("--suppress-all", ".")
    Path("b/.git").mkdir()
    monkeypatch.chdir("b")
    assert mllint(".").exit_code == 1


def test_the_list_may_be_elsewhere() -> None:
    location = ["--suppressions-location", "ci/accepted.json"]
    missing = mllint(*location, ".")
    assert missing.exit_code == 2
    assert missing.stderr.startswith("mllint: error: ci/accepted.json: there is no such file; `--suppress-all`")
    mllint("--suppress-all", *location, ".")
    assert set(accepted("ci/accepted.json")) == {"../a.py", "../b/c.py"}
    assert mllint(*location, ".").exit_code == 0
    assert mllint(".").exit_code == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"a.py": 3}',
        '{"a.py": {"ML101": "2"}}',
        '{"a.py": ["ML101"]}',
        "[" * 100_000,
        b"\xff\xfe\x00",
    ],
)
def test_a_broken_list_ends_with_2_and_says_so(text: str | bytes) -> None:
    Path(DEFAULT_NAME).write_bytes(text.encode() if isinstance(text, str) else text)
    for arguments in ((".",), ("--suppress-all", "."), ("-",)):
        result = mllint(*arguments, source=HEAD)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("mllint: error: mllint-suppressions.json: is not a list of suppressions (")


def test_fixes_mend_what_is_accepted_too() -> None:
    mllint("--suppress-all", ".")
    result = mllint("--fix", "--pass-on-unpruned-suppressions", "a.py")
    assert result.exit_code == 0
    assert "x = x.cuda()" in Path("a.py").read_text("utf-8")
    assert mllint("--fix", "a.py").exit_code == 1
    assert mllint("--prune-suppressions", "a.py").exit_code == 0
    assert accepted() == {"b/c.py": {"ML501": 1}}


def test_standard_input_is_held_against_the_list() -> None:
    mllint("--suppress-all", ".")
    source = Path("a.py").read_text("utf-8")
    assert mllint("--stdin-filename", "a.py", "-", source=source).exit_code == 0
    assert mllint("--stdin-filename", "a.py", "-", source=source + DISCARDED).exit_code == 1
    assert mllint("-", source=source).exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--suppress-all", "--fix", "."],
        ["--suppress-all", "--add-noqa", "."],
        ["--suppress-rule", "ML1", "--diff", "."],
        ["--suppress-all", "-"],
        ["--prune-suppressions", "-"],
        ["--suppress-rule", "E501", "."],
    ],
)
def test_what_cannot_be_done_at_once(arguments: list[str]) -> None:
    result = mllint(*arguments, source=HEAD)
    assert result.exit_code == 2
    assert not Path(DEFAULT_NAME).exists()


def test_a_list_that_cannot_be_written_ends_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    write(DEFAULT_NAME, "{}\n")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(".json") and access(path, mode))
    result = mllint("--suppress-all", ".")
    assert result.exit_code == 2
    assert "mllint-suppressions.json: cannot be written: the file is read-only" in result.stderr
    assert accepted() == {}


@pytest.mark.slow
def test_flake8_knows_the_list(folder: Path) -> None:
    write("a.py", HEAD + DISCARDED + "x.cuda()  # noqa: ML101\n")
    mllint("--suppress-all", ".")

    def flake8(*options: str) -> list[str]:
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=ML", *options, "a.py", "b"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return [line.split()[0] for line in done.stdout.splitlines()]

    assert flake8() == []
    assert flake8("--disable-noqa") == ["a.py:5:1:"]
    write("b/c.py", HEAD + NAN * 2)
    assert flake8() == ["b/c.py:4:7:", "b/c.py:5:7:"]


def test_an_isolated_run_reads_the_list_only_if_it_is_named() -> None:
    mllint("--suppress-all", ".")
    assert mllint("--isolated", ".").exit_code == 1
    assert mllint("--isolated", "--suppressions-location", DEFAULT_NAME, ".").exit_code == 0
