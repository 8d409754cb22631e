"""ML002: comments that silence nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mllint import engine, fixer
from mllint.cli import cli
from mllint.diagnostics import Applicability, Diagnostic, Result, Status
from mllint.fixer import FixResult
from mllint.output.explain import OWN_PAGES
from mllint.registry import RuleSet, select
from mllint.semantic.project import Project

RULES = select(("ML", "ML002"), ())
HEAD = "import torch\nx = torch.zeros(3)\n"


NOWHERE = Path(__file__).parent / "no such folder"


def lint(data: bytes, path: str, rules: RuleSet, *, noqa: bool = True) -> Result:
    """What is found in a file of a project."""
    return engine.lint(data, path, rules, noqa=noqa, project=Project(NOWHERE))


def fix(data: bytes, path: str, rules: RuleSet) -> FixResult:
    """A file of a project, mended."""
    return fixer.fix(data, path, rules, project=Project(NOWHERE))


def unused(text: str, *selected: str, noqa: bool = True) -> list[Diagnostic]:
    """The findings of ML002 in a text."""
    rules = select(selected, ()) if selected else RULES
    return [item for item in lint(text.encode(), "a.py", rules, noqa=noqa).diagnostics if item.code == "ML002"]


def mended(text: str) -> str:
    return fix(text.encode(), "a.py", RULES).data.decode()


# --- what is unused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# noqa: ML101", []),
        ("# noqa: ML1", []),
        ("# noqa", []),
        ("# noqa: E501", []),
        ("# noqa: E501, ML101", []),
        ("# noqa: ML", []),
        ("# mllint: ignore[ML101]", []),
        ("# mllint: ignore[discarded-tensor-result]", []),
        ("# mllint: ignore[ML1]", []),
        ("# mllint: file-ignore[ML101]", []),
        ("# mllint: ignore[ML101] # noqa: ML101", []),
        ("# noqa: ML501", ["ML501"]),
        ("# noqa: ML101, ML501", ["ML501"]),
        ("# noqa:ML501,E501,ML5 why", ["ML501", "ML5"]),
        ("# mllint: ignore[ML501]", ["ML501"]),
        ("# mllint: ignore[nan-comparison, ML101, ML20]", ["nan-comparison", "ML20"]),
        ("# mllint: ignore[no-such-rule]", ["no-such-rule"]),
        ("# noqa: ML777", ["ML777"]),
        ("# mllint: file-ignore[ML501]", ["ML501"]),
        # What mllint says about itself, and the rule itself, are nothing that can be known to be absent.
        ("# mllint: ignore[ML101, ML000, ML001, ML002, ML003, ML0, ML, unused-suppression]", []),
    ],
)
def test_what_is_unused_beside_a_finding(comment: str, codes: list[str]) -> None:
    found = unused(f"{HEAD}x.cuda()  {comment}\n")
    assert [re.findall(r"`(.+?)`", item.message) for item in found] == ([codes] if codes else [])
    for item in found:
        assert item.location.row == 3
        assert len(item.message) <= 88


def test_a_comment_reaches_its_statement_only() -> None:
    for text in (
        "# mllint: ignore[ML101]\ny = 1\nx.cuda()\n",
        "y = 1  # noqa: ML101\nx.cuda()\n",
        "def f():  # mllint: ignore[ML101]\n    x.cuda()\n",
    ):
        assert len(unused(HEAD + text)) == 1, text
    for text in (
        "# mllint: ignore[ML101]\nx.cuda()\n",
        "x.masked_fill(\n    x > 0, 1)\n".replace("(\n", "(  # noqa: ML101\n"),
        "x.masked_fill(x > 0, '''\n''')  # noqa: ML101\n",
        "x \\\n    .cuda()  # noqa: ML101\n",
        "# mllint: ignore[ML101]\nx.masked_fill(\n    x > 0, 1)\n",
    ):
        assert unused(HEAD + text) == [], text


def test_nothing_is_said_about_a_rule_that_was_not_run() -> None:
    text = f"{HEAD}y = 1  # noqa: ML501, ML101\n"
    assert [item.message for item in unused(text)] == ["this suppression of `ML501`, `ML101` silences nothing"]
    (only,) = unused(text, "ML1", "ML002")
    assert only.message == "this suppression of `ML101` silences nothing"
    assert unused(text, "ML002") == []
    assert unused(f"{HEAD}y = 1  # noqa: ML1\n", "ML101", "ML002") == []


def test_it_is_off_unless_it_is_named() -> None:
    text = f"{HEAD}y = 1  # noqa: ML501\n"
    for selected in (("ML",), ("ALL",)):
        assert unused(text, *selected) == []
    for name in ("ML002", "unused-suppression", "ML0", "ML00"):
        assert len(unused(text, "ML", name)) == 1
    for ignored in ("ML002", "unused-suppression"):
        assert not select(("ML", "ML0"), (ignored,)).checks_suppressions


def test_a_file_that_no_rule_looks_at_is_judged_too() -> None:
    assert len(unused("y = 1  # mllint: ignore[ML101]\n")) == 1
    assert len(unused("y = 1  # NoQA: E501 ML101\n")) == 1
    assert unused("y = 1\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(:  # noqa: ML101\n",
        "import torch\ndef f(:  # noqa: ML101\n",
        "print 'x'  # mllint: ignore[ML101]\n",
        "import torch\n# flake8: noqa\ny = 1  # noqa: ML101\n",
        f"{HEAD}y = '# noqa: ML101'\n",
        f"{HEAD}y = '''\n# mllint: ignore[ML101]\n# noqa: ML501\n'''\n",
        # flake8 reads the first one only; of the second nothing is known.
        f"{HEAD}y = 1  # noqa: E501 # noqa: ML101\n",
        f"{HEAD}y = '''# noqa: E501\n'''  # noqa: ML101\n",
    ],
)
def test_what_cannot_be_judged_is_left_alone(text: str) -> None:
    assert unused(text) == []


def test_a_file_that_cannot_be_decoded_is_left_alone() -> None:
    assert lint(b"y = '\xff'  # mllint: ignore[ML101]\n", "a.py", RULES).status is Status.SKIPPED


def test_nothing_is_said_about_source_that_stands_alone() -> None:
    for text in (f"{HEAD}y = 1  # noqa: ML501\n", "y = 1  # mllint: ignore[ML501]\n"):
        assert engine.lint(text.encode(), "a.py", RULES).diagnostics == ()
        piped = CliRunner().invoke(cli, ["--extend-select", "ML002", "--fix", "-"], input=text)
        assert (piped.exit_code, piped.stdout) == (0, text)


def test_it_can_be_silenced_itself() -> None:
    assert unused(f"{HEAD}y = 1  # noqa: ML501, ML002\n") == []
    assert unused(f"{HEAD}y = 1  # noqa: ML501  # mllint: ignore[ML002]\n") == []
    assert unused(f"# mllint: file-ignore[ML002]\n{HEAD}y = 1  # noqa: ML501\n") == []


# --- fixes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = 1  # noqa: ML101\n", "y = 1\n"),
        ("y = 1  # noqa: E501, ML101\n", "y = 1  # noqa: E501\n"),
        ("y = 1  # noqa:ML101,E501 long\n", "y = 1  # noqa:E501 long\n"),
        ("y = 1  # noqa: E501 ML101 W605\n", "y = 1  # noqa: E501, W605\n"),
        ("y = 1  # noqa: ML101 and this is why\n", "y = 1  # and this is why\n"),
        ("y = 1  # noqa: ML101  # type: ignore\n", "y = 1  # type: ignore\n"),
        ("y = 1  # type: ignore  # noqa: ML101\n", "y = 1  # type: ignore\n"),
        ("y = 1  # type: ignore # mllint: ignore[ML101] why # more\n", "y = 1  # type: ignore  # why # more\n"),
        ("y = 1  # mllint: ignore[ML101]\n", "y = 1\n"),
        ("y = 1  # mllint: ignore[ML101, ML501] why\n", "y = 1  # why\n"),
        ("x.cuda()  # mllint: ignore[ML501,  ML101] why\n", "x.cuda()  # mllint: ignore[ML101] why\n"),
        ("# mllint: ignore[ML101]\ny = 1\n", "y = 1\n"),
        ("if x:\n    # mllint: ignore[ML101]\n    y = 1\n", "if x:\n    y = 1\n"),
        ("# mllint: file-ignore[ML101] ported code\n", "# ported code\n"),
        ("y = 1\n# mllint: file-ignore[ML101]", "y = 1\n"),
        ("y = 1  # mllint: ignore[ML101]", "y = 1"),
        ("y = 1  # noqa: ML101\r\nz = 2\r\n", "y = 1\r\nz = 2\r\n"),
        ("f = (\n    1,  # noqa: ML101\n    # mllint: ignore[ML101]\n    2,\n)\n", "f = (\n    1,\n    2,\n)\n"),
        ("y = 'é损'  # noqa: ML101\n", "y = 'é损'\n"),
        # Two in one comment: one in a round.
        ("y = 1  # mllint: ignore[ML101]  # mllint: ignore[ML501]\n", "y = 1\n"),
    ],
)
def test_the_fix_takes_out_what_is_unused_and_nothing_else(before: str, after: str) -> None:
    assert mended(HEAD + before) == HEAD + after
    assert mended(HEAD + after) == HEAD + after


@pytest.mark.parametrize("rest", ["noqa", "noqa: E501", "type: ignore", "pylint: disable=all", "fmt: off"])
def test_no_fix_makes_a_directive_of_what_was_a_reason(rest: str) -> None:
    text = f"{HEAD}y = 1  # mllint: ignore[ML101] {rest}\n"
    (found,) = unused(text)
    assert found.fix is None
    assert mended(text) == text


def test_the_fix_is_safe() -> None:
    (found,) = unused(f"{HEAD}y = 1  # noqa: ML501\n")
    assert found.fix is not None
    assert found.fix.applicability is Applicability.SAFE


def test_the_page_tells_the_truth() -> None:
    (page,) = (page for page in OWN_PAGES if page.code == "ML002")
    example, instead = re.findall(r"```python\n(.*?)```", page.docs, re.DOTALL)
    assert len(unused(example)) == 1
    assert unused(instead) == []
    assert mended(example) == instead


COMMENTS = st.lists(
    st.sampled_from(
        ["x.cuda()", "y = 1", "  # ", "# ", "noqa", ": ", "ML101", "ML501", "E501", ",", " ", "mllint: ", "ignore[",
         "file-ignore[", "]", "why", "\n", "\n", "\n", "x.cuda(  ", ")", "'''", "\\\n", "type: ignore"]
    ),
    max_size=30,
)  # fmt: skip


@given(COMMENTS)
def test_a_fix_never_brings_a_finding_back(fragments: list[str]) -> None:
    text = HEAD + "".join(fragments)
    before = lint(text.encode(), "a.py", RULES)
    result = fix(text.encode(), "a.py", RULES)
    after = lint(result.data, "a.py", RULES)
    if before.status is Status.OK:
        codes = [item.code for item in before.diagnostics if item.code != "ML002"]
        assert len(after.diagnostics) <= len(before.diagnostics)
        assert {item.code for item in after.diagnostics} <= {"ML002", *codes}
        assert [item.code for item in after.suppressed if item.code != "ML002"] == [
            item.code for item in before.suppressed if item.code != "ML002"
        ]
        assert fix(result.data, "a.py", RULES).data == result.data


# --- from the command line and from flake8 --------------------------------------------------------


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(f"{HEAD}y = 1  # noqa: ML501\n", encoding="utf-8")
    Path("b.py").write_text("y = 1  # mllint: ignore[ML501]\n", encoding="utf-8")
    options = ["--extend-select", "ML002", "--output-format", "concise", "."]
    result = CliRunner().invoke(cli, options)
    assert result.stdout == (
        "a.py:3:8: ML002 [*] this suppression of `ML501` silences nothing\n"
        "b.py:1:8: ML002 [*] this suppression of `ML501` silences nothing\n"
    )
    assert CliRunner().invoke(cli, ["."]).exit_code == 0
    assert CliRunner().invoke(cli, [*options, "--per-file-ignores", "a.py:ML002"]).stdout.count("\n") == 1
    # What is ignored for a file was not run there.
    assert CliRunner().invoke(cli, [*options, "--per-file-ignores", "*:ML501"]).stdout == ""
    assert CliRunner().invoke(cli, [*options, "--fix"]).exit_code == 0
    assert Path("a.py").read_text("utf-8") == f"{HEAD}y = 1\n"
    assert Path("b.py").read_text("utf-8") == "y = 1\n"


@pytest.mark.slow
def test_flake8_judges_our_own_comments(tmp_path: Path) -> None:
    text = f"{HEAD}y = 1  # noqa: ML501\nz = 1  # mllint: ignore[ML501]\n"
    (tmp_path / "a.py").write_text(text, encoding="utf-8")

    def flake8(*options: str) -> str:
        arguments = [sys.executable, "-m", "flake8", "--isolated", *options, "a.py"]
        return subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert flake8("--select=ML,ML002") == "a.py:4:8: ML002 this suppression of `ML501` silences nothing\n"
    assert flake8("--select=ML") == flake8() == ""
    assert [item.location.row for item in unused(text, noqa=False)] == [4]
