"""The command: exit codes, streams, options."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from click.testing import CliRunner, Result

from mllint import registry
from mllint.cli import cli
from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace
from mllint.rule import Finding, Rule
from mllint.running import runner

CLEAN = "import torch\n\nx = torch.zeros(3)\n"
DISCARDED = "import torch\n\nx = torch.zeros(3)\nx.cuda()\n"
MENDED = "import torch\n\nx = torch.zeros(3)\nx = x.cuda()\n"
BROKEN = "import torch\n\ndef f(:\n"
UNFIXABLE = "import torch\n\nx = torch.zeros(3)\ny = loud\n"
RISKY = "import torch\n\nx = risky\n"
FAILING = "import torch\n\nx = boom\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder in which every test works."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "MLLINT_OUTPUT_FORMAT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _made_up_rule(code: str, name: str, word: str, applicability: Applicability | None = None) -> Rule:
    """A rule about one name; the fix writes another name in its place."""
    rule = Rule(
        code=code,
        message=f"the name `{word}`",
        help="write `quiet`",
        frameworks=frozenset({"torch"}),
        since="0.1.0",
        applicability=applicability,
        module=f"made_up.{name}",
    )

    @rule.on(cst.Name, mentions=(word,))
    def check(node: cst.Name, context: Context) -> Iterator[Finding]:
        if node.value == word:
            if word == "boom":
                raise LookupError("no such\nthing")
            fix = NodeFix("write `quiet`", (replace(node, "quiet"),), Applicability.UNSAFE)
            yield Finding(node, fix=(lambda: fix) if applicability else None)

    return rule


@pytest.fixture
def _made_up_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Beside the real rules: one without a fix, one with an unsafe fix, and one that fails."""
    real = registry.all_rules()
    extra = (
        _made_up_rule("ML197", "loud_name", "loud"),
        _made_up_rule("ML198", "risky_name", "risky", Applicability.UNSAFE),
        _made_up_rule("ML199", "failing_rule", "boom"),
    )
    monkeypatch.setattr(registry, "all_rules", lambda: (*real, *extra))
    runner._rule_set.cache_clear()
    yield
    runner._rule_set.cache_clear()


def write(**files: str) -> None:
    """Files by name, with ``__`` for ``/`` and without the suffix."""
    for name, text in files.items():
        path = Path(name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def mllint(*arguments: str, source: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(cli, arguments, input=source)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def shell(*arguments: str, source: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The real program, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mllint", *arguments],
        input=source,
        capture_output=True,
        env=os.environ | environment,
        check=False,
    )


@pytest.mark.usefixtures("_made_up_rules")
@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (CLEAN, "", 0),
        (DISCARDED, "", 1),
        (DISCARDED, "--exit-zero", 0),
        (DISCARDED, "-e --output-format json", 0),
        (DISCARDED, "--select ML5", 0),
        (DISCARDED, "--ignore ML101", 0),
        (DISCARDED, "--statistics", 1),
        (DISCARDED, "--fix", 0),
        (DISCARDED, "--diff", 1),
        (DISCARDED, "--diff --exit-zero", 0),
        (CLEAN, "--diff", 0),
        (UNFIXABLE, "--fix", 1),
        (UNFIXABLE, "--diff", 0),
        (RISKY, "--fix", 1),
        (RISKY, "--diff", 0),
        (RISKY, "--fix --unsafe-fixes", 0),
        (RISKY, "--diff --unsafe-fixes", 1),
        (RISKY, "--unsafe-fixes", 1),
        (BROKEN, "", 1),
        (BROKEN, "--fix", 1),
        (BROKEN, "--diff", 1),
        (BROKEN, "--exit-zero", 0),
        (FAILING, "", 2),
        (FAILING, "--exit-zero", 2),
        (FAILING, "--fix", 2),
        (FAILING, "--diff", 2),
        (FAILING, "--ignore ML199", 0),
        ("x = risky\n", "", 0),
    ],
)
def test_exit_codes(source: str, options: str, expected: int) -> None:
    write(a=source)
    assert mllint("a.py", *options.split()).exit_code == expected
    write(a=source)
    if "--fix" not in options:
        assert mllint("check", *options.split(), ".").exit_code == expected
    standard_input = mllint(*options.split(), "-", source=source)
    assert standard_input.exit_code == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["--select", "ML777"],
        ["--select", "ML1,no-such-rule"],
        ["--ignore", "E501"],
        ["--extend-select", "X"],
        ["--output-format", "xml"],
        ["--target-version", "torch"],
        ["--target-version", "torch=new"],
        ["--target-version", "tensorflow=2.0"],
        ["--config", "missing.toml"],
        ["--config", "select = ["],
        ["--config", "selct = []"],
        ["--config", "a.toml", "--isolated"],
        ["--config", "a.toml", "--config", "b.toml"],
        ["--no-such-option"],
        ["-", "a.py"],
        ["--stdin-filename", "b.py", "a.py"],
        ["gone.py"],
        ["gone.py", "gone", "--exit-zero"],
        ["rule", "ML777"],
        ["rule"],
        ["rule", "ML101", "--all"],
    ],
)
def test_what_cannot_be_done_ends_with_2_and_says_why(arguments: list[str]) -> None:
    write(a=DISCARDED)
    result = mllint(*arguments)
    assert result.exit_code == 2
    assert "ML101" not in result.stdout
    assert (result.stderr or result.stdout).strip()


def test_check_is_the_default_command_and_the_folder_the_default_path() -> None:
    write(a=DISCARDED, b__c=DISCARDED)
    expected = "a.py:4:1: ML101 [*] the result of `cuda()` is discarded\nb/c.py:4:1: ML101"
    for arguments in (["check", "."], ["check"], ["."], [], ["b", "a.py"], ["--", "a.py", "b"]):
        form = ["--output-format", "concise"]
        split = len(arguments) if "--" not in arguments else 0
        result = mllint(*arguments[:split], *form, *arguments[split:])
        assert result.stdout.startswith(expected)
        assert result.stdout.count("\n") == 2
        assert result.stderr == "2 findings in 2 files. 2 fixable with `--fix`.\n"


def test_a_folder_may_be_called_like_a_command() -> None:
    write(rule__a=DISCARDED)
    assert mllint("check", "rule").exit_code == 1
    assert mllint("./rule").exit_code == 1


def test_the_form_in_which_scripts_call_it(folder: Path) -> None:
    write(a=DISCARDED + "import math\nprint(x.sum() == math.nan)\nloss = x.mean()\nloss[0]\n", b=CLEAN)
    Path("pyproject.toml").write_text("[tool.mllint]\nignore = ['ML101']\n")
    command = "check --isolated --no-cache --exit-zero --output-format json --select ML101,ML501"
    result = mllint(*command.split(), ".")
    assert result.exit_code == 0
    assert result.stderr == ""
    findings = json.loads(result.stdout)
    assert [(entry["code"], entry["filename"]) for entry in findings] == [
        ("ML101", str(folder / "a.py")),
        ("ML501", str(folder / "a.py")),
    ]
    assert json.loads(mllint(*command.split(), "b.py").stdout) == []


def test_findings_go_to_stdout_and_everything_else_to_stderr() -> None:
    write(a=DISCARDED)
    for form in ("full", "concise"):
        result = mllint("--output-format", form, "a.py")
        assert "ML101" in result.stdout
        assert "fixable" not in result.stdout
        assert result.stderr == "1 finding in 1 file. 1 fixable with `--fix`.\n"
    quiet = mllint("-q", "a.py")
    assert "ML101" in quiet.stdout
    assert quiet.stderr == ""
    assert mllint("--output-format", "json", "a.py").stderr == ""


def test_the_output_form_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a=DISCARDED)
    monkeypatch.setenv("MLLINT_OUTPUT_FORMAT", "json")
    assert json.loads(mllint("a.py").stdout)[0]["code"] == "ML101"
    assert mllint("a.py", "--output-format", "concise").stdout.startswith("a.py:4:1: ML101")


def test_selection() -> None:
    write(a=DISCARDED + "import math\nprint(x.sum() == math.nan)\n")

    def codes(*options: str) -> list[str]:
        found = json.loads(mllint(*options, "--output-format", "json", "a.py").stdout)
        return [entry["code"] for entry in found]

    assert codes() == ["ML101", "ML501"]
    assert codes("--select", "nan-comparison") == ["ML501"]
    assert codes("--select", "ML1", "--select", "ML5") == ["ML101", "ML501"]
    assert codes("--select", " ML1 , ML5 ") == ["ML101", "ML501"]
    assert codes("--select", "ML2", "--extend-select", "ML501") == ["ML501"]
    assert codes("--select", "ALL", "--ignore", "ML1") == ["ML501"]
    Path("pyproject.toml").write_text("[tool.mllint.lint]\nselect = ['ML1']\nignore = ['ML101']\n")
    assert codes() == []
    assert codes("--ignore", "") == ["ML101"]
    assert codes("--select", "ML101") == ["ML101"]
    assert codes("--extend-select", "ML5") == ["ML501"]
    assert codes("--isolated") == ["ML101", "ML501"]
    assert codes("--config", "lint.ignore = ['ML102']") == ["ML101"]


def test_rules_ignored_for_some_files() -> None:
    write(a=DISCARDED, tests__b=DISCARDED)
    Path("pyproject.toml").write_text("[tool.mllint.lint.per-file-ignores]\n'tests/*' = ['ML101']\n")
    assert "tests" not in mllint(".").stdout
    assert mllint("tests/b.py").exit_code == 0
    assert mllint("--stdin-filename", "tests/b.py", "-", source=DISCARDED).exit_code == 0
    assert mllint("--stdin-filename", "b.py", "-", source=DISCARDED).exit_code == 1


def test_fix_writes_and_reports_what_is_left() -> None:
    write(a=DISCARDED, b=BROKEN, c=CLEAN)
    before = {name: Path(name).stat() for name in ("b.py", "c.py")}
    result = mllint("--fix", "--output-format", "concise", ".")
    assert Path("a.py").read_text() == MENDED
    assert result.stdout.startswith("b.py:3:7: ML001 ")
    assert result.stdout.count("\n") == 1
    assert result.stderr == "Fixed 1 finding, 1 left.\n"
    assert before == {name: Path(name).stat() for name in ("b.py", "c.py")}
    again = mllint("--fix", "a.py")
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "No findings in 1 file.\n")


def test_what_a_fix_brings_to_light_in_another_file_is_mended_in_the_same_run(folder: Path) -> None:
    library = "import torch\n\n\ndef load(state):\n    net = torch.nn.Linear(2, 2)\n    {}\n    return net\n"
    user = "import torch\nfrom library import load\n\nnet = load(None)\n{}\nprint(net(torch.ones(2)))\n"
    write(
        library=library.format("net = net.load_state_dict(state)"),
        user=user.format("net.requires_grad = False"),
        third="import torch\nx = torch.zeros(3)\nx.cuda()\nprint(x)\n",
        setup="",
    )
    result = mllint("--fix", "--show-fixes", ".")
    assert result.exit_code == 0
    assert "Fixed 3 findings, 0 left." in result.stderr
    assert (folder / "library.py").read_text() == library.format("net.load_state_dict(state)")
    assert (folder / "user.py").read_text() == user.format("net.requires_grad_(False)")
    assert "Fixed" not in mllint("--fix", ".").stderr


@pytest.mark.usefixtures("_made_up_rules")
def test_unsafe_fixes_are_only_mentioned_unless_asked_for() -> None:
    write(a=RISKY)
    shown = mllint("--output-format", "concise", "a.py")
    assert "ML198 the name" in shown.stdout
    assert "1 hidden fix can be enabled with `--unsafe-fixes`" in shown.stderr
    assert "ML198 [*] the name" in mllint("--unsafe-fixes", "--output-format", "concise", "a.py").stdout
    assert mllint("--fix", "a.py").exit_code == 1
    assert Path("a.py").read_text() == RISKY
    assert mllint("--fix", "--unsafe-fixes", "a.py").exit_code == 0
    assert Path("a.py").read_text() == RISKY.replace("risky", "quiet")


def test_a_silenced_finding_is_not_fixed() -> None:
    source = DISCARDED.replace("x.cuda()", "x.cuda()  # noqa: ML101")
    write(a=source)
    assert mllint("--fix", "a.py").exit_code == 0
    assert Path("a.py").read_text() == source


def test_diff_writes_nothing_and_can_be_applied() -> None:
    write(a=DISCARDED, b__c=DISCARDED, d=CLEAN, e=BROKEN)
    result = mllint("--diff", ".")
    assert Path("a.py").read_text() == DISCARDED
    assert result.stdout.startswith("--- a.py\n+++ a.py\n@@ -1,4 +1,4 @@\n")
    assert "e.py:3:7: ML001" in result.stderr
    assert result.stderr.endswith("Would fix 2 findings in 2 files.\n")
    subprocess.run(["git", "apply", "-p0", "-"], input=result.stdout, text=True, check=True)
    assert [Path(name).read_text() for name in ("a.py", "b/c.py")] == [MENDED, MENDED]
    nothing = mllint("--diff", "a.py")
    assert (nothing.stdout, nothing.stderr) == ("", "Nothing to fix.\n")


def test_diff_goes_before_fix() -> None:
    write(a=DISCARDED)
    assert mllint("--diff", "--fix", "a.py").exit_code == 1
    assert Path("a.py").read_text() == DISCARDED


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_outside_the_edits_stay(newline: str) -> None:
    before = f"\ufeff# é{newline}{DISCARDED.replace(chr(10), newline)}\t# end".encode()
    after = f"\ufeff# é{newline}{MENDED.replace(chr(10), newline)}\t# end".encode()
    Path("a.py").write_bytes(before)
    assert mllint("--diff", "a.py").stdout_bytes.count(b"\r\n") == (5 if newline == "\r\n" else 0)
    assert mllint("--fix", "a.py").exit_code == 0
    assert Path("a.py").read_bytes() == after
    assert mllint("--fix", "-q", "-", source=before).stdout_bytes == after


def test_a_file_that_cannot_be_written_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a=DISCARDED, b=DISCARDED)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path.endswith("b.py") and access(path, mode))
    result = mllint("--fix", "--output-format", "concise", ".")
    assert result.exit_code == 2
    assert result.stderr.startswith("mllint: warning: a.py: cannot be written: the file is read-only\n")
    assert result.stdout == "a.py:4:1: ML101 [*] the result of `cuda()` is discarded\n"
    assert [Path(name).read_text() for name in ("a.py", "b.py")] == [DISCARDED, MENDED]


def test_standard_input() -> None:
    named = mllint("--output-format", "concise", "--stdin-filename", "x/y.py", "-", source=DISCARDED)
    assert named.stdout.startswith("x/y.py:4:1: ML101")
    assert mllint("--stdin-filename", "x/y.py", source=DISCARDED).exit_code == 1
    assert mllint("--output-format", "concise", "-", source=DISCARDED).stdout.startswith("-:4:1: ML101")
    assert json.loads(mllint("--output-format", "json", "-", source=DISCARDED).stdout)[0]["filename"] == "-"
    assert mllint("-", source="").exit_code == 0


@pytest.mark.usefixtures("_made_up_rules")
def test_standard_input_is_mended_to_standard_output() -> None:
    source = DISCARDED + "y = loud\n"
    result = mllint("--fix", "--output-format", "concise", "-", source=source)
    assert result.exit_code == 1
    assert result.stdout == MENDED + "y = loud\n"
    assert result.stderr.startswith("-:5:5: ML197 the name `loud`\nFixed 1 finding, 1 left.")
    for untouched in (CLEAN, BROKEN, "x = 1\n", ""):
        assert mllint("--fix", "-", source=untouched).stdout == untouched
    assert mllint("--diff", "-", source=source).stdout.startswith("--- -\n+++ -\n")


def test_standard_input_that_is_excluded_passes_through() -> None:
    options = ["--force-exclude", "--stdin-filename", "build/x.py"]
    assert mllint(*options, "-", source=DISCARDED).exit_code == 0
    assert mllint(*options, "--fix", "-", source=DISCARDED).stdout == DISCARDED
    assert mllint(*options[1:], "-", source=DISCARDED).exit_code == 1


def test_configuration_of_standard_input_is_that_of_its_folder() -> None:
    Path("a").mkdir()
    Path("a/pyproject.toml").write_text("[tool.mllint]\nselect = ['ML5']\n")
    assert mllint("--stdin-filename", "a/new/x.py", "-", source=DISCARDED).exit_code == 0
    Path("a/pyproject.toml").write_text("[tool.mllint]\nselct = ['ML5']\n")
    broken = mllint("--stdin-filename", "a/x.py", "-", source=DISCARDED)
    assert broken.exit_code == 2
    assert "a/pyproject.toml: unknown key `tool.mllint.selct` (did you mean `select`?" in broken.stderr


def test_sibling_files_are_looked_at() -> None:
    write(models__net="import torch\n\n\ndef noise() -> torch.Tensor:\n    return torch.zeros(3)\n")
    main = "import torch\nfrom models.net import noise\n\nx = noise()\nx.cuda()\n"
    write(main=main, models____init__="")
    assert mllint("main.py").exit_code == 1
    assert mllint("--stdin-filename", "main.py", "-", source=main).exit_code == 1
    assert mllint("--isolated", "main.py").exit_code == 1
    Path("models/net.py").write_text("def noise():\n    return object()\n")
    assert mllint("main.py").exit_code == 0


def test_statistics() -> None:
    write(a=DISCARDED * 2, b=DISCARDED)
    assert mllint("--statistics", ".").stdout == "3  ML101  [*]  discarded-tensor-result\n"
    assert json.loads(mllint("--statistics", "--output-format", "json", ".").stdout) == [
        {"code": "ML101", "name": "discarded-tensor-result", "count": 3, "fixable": True, "fixable_count": 3}
    ]
    assert mllint("--statistics", "-q", "--select", "ML5", ".").stdout == ""


def test_verbose_says_what_was_used(folder: Path) -> None:
    write(a=CLEAN, b__c=CLEAN)
    Path("b/pyproject.toml").write_text("[tool.mllint]\n")
    lines = mllint("-v", ".").stderr.splitlines()
    assert lines[:2] == [f"configuration: {folder}/b/pyproject.toml", "configuration: defaults"]
    assert lines[2].startswith("2 file(s) in ")


def test_target_versions_reach_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    from mllint import engine

    write(a=CLEAN)
    Path("requirements.txt").write_text("torch==2.1\npaddlepaddle==2.5\n")
    seen = []
    lint = engine.lint

    def spy(*arguments: object, **options: object) -> object:
        seen.append((options["targets"].torch, options["targets"].paddle))  # type: ignore[attr-defined]
        return lint(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "lint", spy)
    mllint("a.py")
    mllint("--target-version", "torch=2.6", "a.py")
    mllint("--target-version", "torch=2.6", "--target-version", "paddle=3.0.1", "a.py")
    mllint("--isolated", "a.py")
    mllint("--isolated", "--target-version", "paddle=3", "a.py")
    assert seen == [
        ((2, 1), (2, 5)),
        ((2, 6), (2, 5)),
        ((2, 6), (3, 0)),
        ((2, 1), (2, 5)),
        ((2, 1), (3, 0)),
    ]


def test_colours() -> None:
    write(a=DISCARDED)
    for arguments, coloured in (
        ([], False),
        (["--color", "always"], True),
        (["--color", "always", "--output-format", "concise"], True),
        (["--color", "always", "--output-format", "json"], False),
        (["--color", "always", "--statistics"], True),
        (["--color", "always", "--diff"], True),
    ):
        assert ("\x1b[" in mllint(*arguments, "a.py").stdout) is coloured, arguments
    runner = CliRunner()
    for environment, coloured in (({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)):
        assert ("\x1b[" in runner.invoke(cli, ["a.py"], env=environment).stdout) is coloured


def test_a_rule_is_explained_by_code_and_by_name() -> None:
    page = mllint("rule", "ML101")
    assert page.exit_code == 0
    assert page.stdout.startswith("# discarded-tensor-result (ML101)\n")
    assert "## Use instead" in page.stdout
    assert mllint("rule", "discarded-tensor-result").stdout == page.stdout
    assert mllint("rule", "ml101").stdout == page.stdout
    rendered = mllint("rule", "ML101", "--color", "always").stdout
    assert "\x1b[" in rendered
    assert "## Use instead" not in rendered
    assert "Use instead" in rendered
    assert mllint("rule", "ML001").stdout.startswith("# syntax-error (ML001)")


def test_an_unknown_rule_is_answered_with_a_guess() -> None:
    assert (
        "there is no rule `nan-comparisson`; did you mean `nan-comparison`?" in mllint("rule", "nan-comparisson").stderr
    )
    assert (
        "`nan-comparisson` names no rule; did you mean `nan-comparison`?"
        in mllint("--select", "nan-comparisson").stderr
    )


def test_all_rules_are_listed() -> None:
    lines = mllint("rule", "--all").stdout.splitlines()
    codes = [line.split()[0] for line in lines]
    assert codes == sorted(["ML000", "ML001", "ML002", "ML003", *(rule.code for rule in registry.all_rules())])
    listed = json.loads(mllint("rule", "--all", "--output-format", "json").stdout)
    assert [entry["code"] for entry in listed] == codes
    (entry,) = json.loads(mllint("rule", "ML101", "--output-format", "json").stdout)
    assert (entry["name"], entry["fix"]) == ("discarded-tensor-result", "safe")


def test_help_and_version() -> None:
    from mllint import __version__

    assert mllint("--version").stdout == f"flake8-mllint {__version__}\n"
    assert mllint("-V").stdout == mllint("--version").stdout
    assert "Commands:" in mllint("--help").stdout
    options = mllint("check", "--help").stdout
    names = "select ignore extend-select fix unsafe-fixes diff output-format statistics exit-zero isolated config"
    names += " stdin-filename no-cache cache-dir jobs force-exclude target-version quiet verbose color"
    for name in names.split():
        assert f"--{name}" in options
    assert "Check everything anew" in " ".join(options.split())


def test_the_version_is_that_of_the_distribution() -> None:
    import tomllib

    from mllint import __version__

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == __version__


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (["--version"], ""),
        (["--help"], ""),
        (["a.py"], "import os\n"),
        (["--select", "ML1,ML5", "--ignore", "ML2", "a.py"], "import numpy\n"),
        (["--fix", "."], "x = 1\n"),
        (["--output-format", "json", "--statistics", "."], "def f(:\n"),
    ],
)
def test_what_concerns_no_rule_does_not_load_the_parser(arguments: list[str], source: str) -> None:
    write(a=source)
    code = (
        "import sys\n"
        "from mllint.cli import main\n"
        f"sys.argv = ['mllint', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'libcst', 'rich', 'pathspec', 'multiprocessing', 'mllint.registry'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.slow
def test_names_and_source_that_the_terminal_cannot_show() -> None:
    name = os.fsdecode(b"\xff\xc3\xa9.py")
    Path(name).write_text(DISCARDED.replace("x.cuda()", "x.cuda()  # 损失"), encoding="utf-8")
    for encoding in ("ascii", "utf-8"):
        for form in ("full", "json"):
            done = shell("--output-format", form, ".", PYTHONIOENCODING=encoding)
            assert done.returncode == 1, done.stderr
            assert b"ML101" in done.stdout
            assert b"Traceback" not in done.stderr
    done = shell("--output-format", "json", ".", PYTHONIOENCODING="ascii")
    assert os.path.basename(json.loads(done.stdout)[0]["filename"]) == name


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error() -> None:
    write(a="import torch\nx = torch.zeros(3)\n" + "x.cuda()\n" * 3000)
    command = [sys.executable, "-m", "mllint", "a.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
@pytest.mark.parametrize("arguments", [["a.py"], ["--diff", "a.py"], ["--version"], ["rule", "ML101"]])
def test_output_that_nobody_can_take_is_said(arguments: list[str]) -> None:
    write(a=DISCARDED)
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "mllint", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "mllint: error: the output cannot be written: no space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="it has another shell")
@pytest.mark.parametrize(("closed", "expected"), [(">&-", 1), ("2>&-", 1), (">&- 2>&-", 1)])
def test_closed_streams_leave_the_exit_code(closed: str, expected: int) -> None:
    write(a=DISCARDED)
    done = subprocess.run(f"'{sys.executable}' -m mllint a.py {closed}", shell=True, capture_output=True, check=False)
    assert done.returncode == expected
    assert b"Traceback" not in done.stderr


def test_a_closed_standard_input_is_empty() -> None:
    done = subprocess.run(
        f"'{sys.executable}' -m mllint - <&-", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_selection_of_nothing_is_said() -> None:
    write(a=DISCARDED)
    result = mllint("--select", "", "a.py")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == "mllint: warning: no rule is selected"
    assert "no rule" not in mllint("--select", "", "-q", "a.py").stderr


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        ("ZeroDivisionError", 2, "mllint: error: this is a bug in mllint"),
        ("KeyboardInterrupt", 130, ""),
    ],
)
def test_a_run_that_breaks_off_is_no_finding(error: str, exit_code: int, message: str) -> None:
    write(a=DISCARDED)
    code = (
        "import sys, mllint.running.runner\n"
        f"def fail(*arguments, **options): raise {error}\n"
        "mllint.running.runner.lint = fail\n"
        "sys.argv = ['mllint', 'a.py']\n"
        "from mllint.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == exit_code
    assert done.stdout == ""
    assert message in done.stderr
    assert ("Traceback" in done.stderr) is bool(message)


@pytest.mark.slow
def test_wrong_options_of_the_real_program() -> None:
    for arguments in (["--select", "ML777"], ["--no-such-option"], ["gone.py"], ["rule", "ML777"]):
        done = shell(*arguments)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
    assert shell("--help").returncode == 0
    assert shell("rule", "--all").returncode == 0


def test_the_console_scripts() -> None:
    write(a=DISCARDED)
    scripts = Path(sys.executable).parent
    for name in ("mllint", "flake8-mllint"):
        done = subprocess.run([scripts / name, "-q", "a.py"], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "ML101" in done.stdout


def test_a_rule_that_fails_is_named_and_the_others_go_on(
    _made_up_rules: None,  # noqa: PT019
) -> None:
    write(a=DISCARDED + "y = boom\nz = boom\n", b=DISCARDED)
    result = mllint("--output-format", "concise", ".")
    assert result.stdout.splitlines() == [
        "a.py:4:1: ML101 [*] the result of `cuda()` is discarded",
        "a.py:5:5: ML000 rule ML199 `failing-rule` failed here: LookupError: no such thing",
        "b.py:4:1: ML101 [*] the result of `cuda()` is discarded",
    ]
    assert result.exit_code == 2
