"""Options about what is said of fixes, files with arguments, shell completion, and the bar."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import mllint as package
from mllint.cli import cli
from mllint.output.progress import with_progress

DISCARDED = "import torch\n\nx = torch.zeros(3)\nx.cuda()\n"
MENDED = "import torch\n\nx = torch.zeros(3)\nx = x.cuda()\n"
UNFIXABLE = "import torch\n\nx = torch.zeros(3)\ny = x.sum()\nif y.item:\n    pass\n"
LEFT = "def f(loss):\n    import torch\n    model = torch.nn.Linear(2, 2)\n    torch.save(model.state_dict, 'm.pt')\n"
BROKEN = "import torch\n\ndef f(:\n"
PROGRAM = "import sys; sys.argv[0] = 'mllint'; from mllint.cli import main; main()"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder in which every test works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))
    return tmp_path


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


def mllint(*arguments: str, source: str | None = None) -> Result:
    result = CliRunner().invoke(cli, arguments, input=source)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


# --- fixes ----------------------------------------------------------------------------------------


def test_mending_may_be_a_failure() -> None:
    for arguments, code in (
        (["--fix"], 0),
        (["--fix", "--exit-non-zero-on-fix"], 1),
        (["--fix-only", "--exit-non-zero-on-fix"], 1),
        (["--fix", "--exit-non-zero-on-fix", "--exit-zero"], 0),
    ):
        write("a.py", DISCARDED)
        assert mllint(*arguments, "a.py").exit_code == code
        assert Path("a.py").read_text("utf-8") == MENDED
    assert mllint("--fix", "--exit-non-zero-on-fix", "a.py").exit_code == 0


def test_only_mending() -> None:
    source = DISCARDED + "y = x == float('nan')\n"
    write("a.py", source)
    result = mllint("--fix-only", "--unfixable", "ML501", "a.py")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Fixed 1 finding in 1 file.\n")
    assert Path("a.py").read_text("utf-8") == MENDED + "y = x == float('nan')\n"
    again = mllint("--fix-only", "--unfixable", "ML501", "a.py")
    assert (again.exit_code, again.stderr) == (0, "Nothing to fix.\n")
    assert mllint("--fix-only", "-q", "a.py").stderr == ""
    piped = mllint("--fix-only", "-", source=DISCARDED)
    assert (piped.exit_code, piped.stdout) == (0, MENDED)


def test_only_mending_still_says_what_could_not_be_checked() -> None:
    write("a.py", DISCARDED)
    write("b.py", BROKEN)
    result = mllint("--fix-only", ".")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("b.py:3:7: ML001 ")


def test_what_was_mended_is_listed() -> None:
    write("a.py", DISCARDED + "x.cpu()\ny = x == float('nan')\n")
    write("b.py", DISCARDED)
    write("c.py", "x = 1\n")
    expected = [
        "a.py:",
        "  2 × ML101 discarded-tensor-result",
        "  1 × ML501 nan-comparison",
        "b.py:",
        "  1 × ML101 discarded-tensor-result",
    ]
    assert mllint("--diff", "--show-fixes", ".").stderr.splitlines()[1:] == expected
    result = mllint("--fix", "--show-fixes", ".")
    assert result.stderr.splitlines() == ["Fixed 4 findings, 0 left.", *expected]
    assert mllint("--fix", "--show-fixes", ".").stderr == "No findings in 3 files.\n"


# --- arguments in a file --------------------------------------------------------------------------


def test_a_dash_is_the_standard_output() -> None:
    write("b.py", DISCARDED)
    assert mllint("b.py", "-o", "-").stdout == mllint("b.py").stdout != ""
    assert not Path("-").exists()


def test_arguments_may_stand_in_a_file() -> None:
    write("a file.py", DISCARDED)
    write("b.py", DISCARDED)
    write("arguments.txt", "--output-format\nconcise\na file.py\n")
    result = mllint("@arguments.txt", "b.py")
    assert result.stdout.count("\n") == 2
    assert result.stdout.startswith("a file.py:4:1: ML101")
    assert mllint("check", "@arguments.txt").stdout.count("\n") == 1
    write("many.txt", "\n".join(["b.py"] * 50_000))
    assert mllint("@many.txt", "--output-format", "concise").stdout.count("\n") == 1


def test_a_file_without_arguments_does_not_mean_the_folder() -> None:
    write("b.py", DISCARDED)
    write("empty.txt", "\n")
    result = mllint("--fix", "@empty.txt")
    assert result.exit_code == 2
    assert "the file with arguments is empty" in result.stderr
    assert Path("b.py").read_text(encoding="utf-8") == DISCARDED
    assert mllint("b.py", "@empty.txt").stdout.count("ML101") == 1


def test_a_file_of_that_name_can_still_be_checked() -> None:
    write("@a.py", DISCARDED)
    assert mllint("./@a.py").exit_code == 1
    assert mllint("@gone").exit_code == 2
    assert mllint("@gone").stderr == (
        "mllint: error: `@gone`: the file with arguments cannot be read: no such file or directory\n"
    )


# --- shell completion -----------------------------------------------------------------------------


def completed(words: str, index: int) -> list[str]:
    """What the program offers to bash for a word."""
    environment = os.environ | {"_MLLINT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_options_and_commands_are_offered() -> None:
    assert "--statistics" in completed("mllint --sta", 1)
    assert "--statistics" in completed("mllint check --sta", 2)
    assert "--statistics" in completed("mllint a.py --sta", 2)
    assert {"--version", "--select", "--fix"} <= set(completed("mllint --", 1))
    first = completed("mllint ", 1)
    assert {"check", "rule"} <= set(first)
    assert completed("mllint --output-format s", 2) == ["sarif"]
    assert completed("mllint rule nan", 2) == ["nan-comparison"]
    assert completed("mllint check a", 2) == ["a"]  # bash looks for files


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes(folder: Path) -> None:
    program = folder / "bin" / "mllint"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{PROGRAM}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = (
        'eval "$(_MLLINT_COMPLETE=bash_source mllint)"; COMP_WORDS=(mllint --sele); COMP_CWORD=1; '
        '_mllint_completion mllint; echo "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["--select"], done.stderr


# --- the bar --------------------------------------------------------------------------------------


def test_a_bar_counts_the_files_and_goes_away() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    items = list(range(500))
    assert list(with_progress(iter(items), len(items), delay=0, console=console)) == items
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "Checking" in text
    assert "/500 files" in text
    # Nothing is left of it: the last thing it does is to clear its line.
    assert screen.getvalue().rstrip().endswith("\x1b[2K")


def test_short_work_needs_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert list(with_progress(iter("abc"), 3)) == list("abc")


def test_an_error_takes_the_bar_away_too() -> None:
    screen = io.StringIO()

    def failing() -> "list[int]":
        yield 1  # type: ignore[misc]
        yield 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(with_progress(iter(failing()), 3, delay=0, console=Console(file=screen, force_terminal=True)))
    assert screen.getvalue().rstrip().endswith("\x1b[2K")


SLOW = """
import sys, time
from mllint.output import progress
progress._DELAY = 0.0
progress.with_progress.__kwdefaults__["delay"] = 0.0
from mllint.cli import main
sys.argv[1:] = {arguments!r}
main()
"""


def on_terminal(*arguments: str, stderr: bool = True, stdout: bool = True) -> str:
    """What the program writes to a terminal."""
    ours, theirs = pty.openpty()
    program = SLOW.format(arguments=list(arguments))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout else subprocess.DEVNULL,
        stderr=theirs if stderr else subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm", "NO_COLOR": "1"},
    )
    os.close(theirs)
    read = b""
    try:
        while piece := os.read(ours, 4096):
            read += piece
    except OSError:  # the other end is closed
        pass
    process.wait()
    os.close(ours)
    return read.decode()


@pytest.mark.slow
def test_a_bar_is_for_people_at_a_terminal_only() -> None:
    for index in range(30):
        write(f"a{index}.py", DISCARDED)
    assert "Checking" in on_terminal(".")
    assert "30 findings in 30 files" in on_terminal(".")
    for options in (["-q"], ["--output-format", "json"], ["--output-format", "sarif"]):
        assert "Checking" not in on_terminal(*options, ".")
    assert "Checking" not in on_terminal(".", stdout=False)
    assert "Checking" not in on_terminal(".", stderr=False)
