"""``--watch``, driven as a user does: edit a file, read what is said."""

import importlib.util
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mllint.cli import cli
from mllint.command import watch

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or importlib.util.find_spec("watchfiles") is None,
    reason="ends the process with a signal; needs watchfiles",
)

LIBRARY = "import torch\n\n\ndef make():\n    return torch.zeros(3)\n"
USER = "from net import make\n\n# torch\nx = make()\nx.cuda()\nprint(x)\n"
SECONDS = 60


class Watched:
    """A running ``mllint --watch`` and what it says."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-u", "-m", "mllint", "--watch", "--output-format", "concise", *options]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip())

    def said(self) -> list[str]:
        """Everything up to the end of the next check."""
        lines: list[str] = []
        while not lines or not lines[-1].startswith("Watching"):
            lines.append(self._lines.get(timeout=SECONDS))
        return lines

    def found(self) -> list[str]:
        return [line.partition(" ")[0] + " " + line.split()[1] for line in self.said() if ".py:" in line]

    def is_silent(self) -> bool:
        try:
            self._lines.get(timeout=0.7)
        except queue.Empty:
            return True
        return False


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "net.py").write_text(LIBRARY)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text(USER)
    return tmp_path


@pytest.fixture(
    params=[
        pytest.param(["."], id="folder"),
        pytest.param(["scripts/train.py", "--no-cache"], id="file", marks=pytest.mark.slow),
    ]
)
def watched(
    folder: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Watched]:
    monkeypatch.delenv("MLLINT_NO_CACHE")
    monkeypatch.setenv("MLLINT_CACHE_DIR", str(tmp_path_factory.mktemp("store")))
    running = Watched(folder, *request.param)
    yield running
    running.process.kill()
    running.process.wait()


def test_what_changes_is_checked_again(folder: Path, watched: Watched) -> None:
    found = ["scripts/train.py:5:1: ML101"]
    assert watched.found() == found
    # Nothing that matters.
    (folder / "notes.txt").write_text("x")
    assert watched.is_silent()
    # The file itself.
    (folder / "scripts" / "train.py").write_text("import torch\n" + USER)
    lines = watched.said()
    assert [line.partition(" ")[0] for line in lines if "ML101" in line] == ["scripts/train.py:6:1:"]
    assert any("changed: scripts/train.py" in line for line in lines)
    # A file that it depends on, also outside of what was named; as editors do: another file in its place.
    (folder / "net.py.tmp").write_text(LIBRARY.replace("torch.zeros(3)", "torch.nn.Linear(2, 3)"))
    os.replace(folder / "net.py.tmp", folder / "net.py")
    assert watched.found() == []
    (folder / "net.py").write_text(LIBRARY)
    assert watched.found() == ["scripts/train.py:6:1: ML101"]
    # The configuration, also when it is wrong for a while.
    (folder / "mllint.toml").write_text('[lint]\nignore = ["ML101"]\n')
    assert watched.found() == []
    (folder / "mllint.toml").write_text("[lint]\nignored = 1\n")
    assert any("unknown key" in line for line in watched.said())
    (folder / "mllint.toml").unlink()
    assert watched.found() == ["scripts/train.py:6:1: ML101"]
    # A folder that comes with its files.
    (folder / "net.py").unlink()
    assert watched.found() == []
    watched.process.send_signal(signal.SIGINT)
    assert watched.process.wait(SECONDS) == 130


def test_without_watchfiles_a_clear_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    done = CliRunner().invoke(cli, ["--watch", str(folder)])
    assert done.exit_code == 2
    assert "--watch needs the package watchfiles: pip install 'flake8-mllint[watch]'" in done.output


@pytest.mark.parametrize("options", [["--fix"], ["--diff"], ["--suppress-all"], ["--add-noqa"]])
def test_a_watch_writes_nothing(folder: Path, options: list[str]) -> None:
    done = CliRunner().invoke(cli, ["--watch", *options, str(folder)])
    assert done.exit_code == 2
    assert "--watch only shows findings" in done.output


def test_standard_input_cannot_be_watched() -> None:
    done = CliRunner().invoke(cli, ["--watch", "-"], input="")
    assert done.exit_code == 2
    assert "standard input cannot be watched" in done.output


def test_which_folders_are_watched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    root = str(folder.resolve())
    assert watch._folders(["scripts"]) == [root]
    assert watch._folders(["scripts/train.py", "."]) == [root]
    assert watch._folders(["missing/folder"]) in ([], [root])


@pytest.mark.parametrize(
    ("path", "matters"),
    [
        ("/a/b.py", True),
        ("/a/b.pyi", True),
        ("/a/pyproject.toml", True),
        ("/a/folder", True),
        ("/a/b.txt", False),
        ("/a/.git/index.py", False),
        ("/a/__pycache__/b.py", False),
        ("/a/.mypy_cache/x/b.py", False),
        ("/a/b.py.swp", False),
        ("/a/.git", False),
    ],
)
def test_which_changes_matter(path: str, matters: bool) -> None:
    assert watch._matters(path.replace("/", os.sep), is_new=True) is matters
    assert watch._matters(path.replace("/", os.sep), is_new=False) is (matters and "." in path)
