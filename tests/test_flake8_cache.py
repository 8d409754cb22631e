"""What flake8 found before, mllint's plugin does not look for again; and nothing that it says is ever out of date."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mllint import flake8_plugin
from mllint.flake8_plugin import Plugin

# Each of them starts flake8 several times.
pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from flake8.main.cli import main
main(json.loads(sys.argv[1]))
print("parsed" if "libcst" in sys.modules else "remembered", file=sys.stderr)
"""

LIBRARY = "import torch\n\n\ndef make():\n    return torch.zeros(3)\n"
OTHER_LIBRARY = "import torch\n\n\ndef make():\n    return torch.nn.Linear(2, 3)\n"
USER = "import torch\nfrom net import make\n\nx = make()\nx.cuda()\nprint(x)\n"
FOUND = "train.py:5:1: ML101"
TRAINING = """\
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def learn(self, batch):
        loss = self.model(batch).mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()
"""


class Folder:
    """A project, and a cache of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root.parent / "store"

    def write(self, name: str, text: str | bytes) -> None:
        (self.root / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def run(self, *arguments: str, stdin: str = "", cached: bool = True) -> tuple[list[str], str]:
        """The places and codes that flake8 prints, and whether the process that was started had to parse."""
        environment = os.environ | {"MLLINT_CACHE_DIR": str(self.store), "MLLINT_NO_CACHE": "" if cached else "1"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(["--select=ML", *(arguments or ("-j1", "train.py"))])],
            cwd=self.root, input=stdin, env=environment, timeout=60,
            capture_output=True, text=True, encoding="utf-8", check=True,
        )  # fmt: skip
        return [" ".join(line.split()[:2]) for line in done.stdout.splitlines()], done.stderr.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "project"
    root.mkdir()
    found = Folder(root)
    found.write("setup.py", "")
    found.write("pyproject.toml", "")
    found.write("net.py", LIBRARY)
    found.write("train.py", USER)
    return found


def test_what_has_not_changed_is_remembered(folder: Folder) -> None:
    assert folder.run() == ([FOUND], "parsed")
    assert folder.run() == ([FOUND], "remembered")
    folder.write("train.py", f"# another row\n{USER}")
    assert folder.run() == (["train.py:6:1: ML101"], "parsed")


def test_a_changed_sibling_is_noticed(folder: Folder) -> None:
    assert folder.run()[0] == [FOUND]
    folder.write("net.py", OTHER_LIBRARY)
    assert folder.run() == ([], "parsed")
    assert folder.run() == ([], "remembered")
    (folder.root / "net.py").unlink()
    assert folder.run() == ([], "parsed")


def test_a_file_that_only_lies_near_is_noticed(folder: Folder) -> None:
    """flake8 names files as they were given, relative to where it runs; what is read for one is kept all the same."""
    folder.write("train.py", TRAINING)
    folder.write("parts.py", "import torch\n")
    assert folder.run("-j1", "./train.py") == (["./train.py:13:9: ML301"], "parsed")
    folder.write("parts.py", "import torch\n\n\ndef clear(task):\n    task.model.zero_grad()\n")
    assert folder.run("-j1", "./train.py") == ([], "parsed")


def test_changed_settings_are_noticed(folder: Folder) -> None:
    assert folder.run()[0] == [FOUND]
    folder.write("pyproject.toml", '[tool.mllint]\nignore = ["ML101"]\n')
    assert folder.run() == ([], "parsed")
    folder.write("pyproject.toml", "")
    assert folder.run() == ([FOUND], "remembered")


def test_workers_write_down_what_they_found(folder: Folder) -> None:
    for number in range(4):
        folder.write(f"part{number}.py", USER)
    found = sorted(folder.run("-j2", ".")[0])
    assert len(found) == 5
    again, how = folder.run("-j1", ".")
    assert (sorted(again), how) == (found, "remembered")


def test_the_command_and_flake8_do_not_mix_what_they_remember(folder: Folder) -> None:
    """flake8 reads ``noqa`` comments itself, and may be told not to."""
    folder.write("train.py", USER.replace("x.cuda()", "x.cuda()  # noqa: ML101"))
    command = [sys.executable, "-m", "mllint", "--output-format=concise", "--cache-dir", str(folder.store), "train.py"]
    environment = os.environ | {"MLLINT_NO_CACHE": ""}
    for _ in range(2):
        assert subprocess.run(command, cwd=folder.root, env=environment, check=False).returncode == 0
        assert folder.run("-j1", "--disable-noqa", "train.py")[0] == [FOUND]
        assert folder.run()[0] == []


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf" + USER.encode(), USER.replace("\n", "\r\n").encode()])
def test_line_ends_and_byte_order_mark(folder: Folder, text: bytes) -> None:
    folder.write("train.py", text)
    assert folder.run() == ([FOUND], "parsed")
    assert folder.run() == ([FOUND], "remembered")


@pytest.mark.parametrize("library", [b"\xef\xbb\xbf" + LIBRARY.encode(), LIBRARY.replace("\n", "\r\n").encode()])
def test_a_file_that_is_read_for_another_and_then_shown_otherwise(folder: Folder, library: bytes) -> None:
    """flake8 hands over neither the byte-order mark nor the line ends that the disk has."""
    folder.write("net.py", library)
    folder.write("app.py", USER)
    found = ["./app.py:5:1: ML101", f"./{FOUND}"]
    assert folder.run("-j1", ".") == (found, "parsed")
    assert folder.run("-j1", ".") == (found, "remembered")


def test_a_buffer_is_remembered_once_it_is_saved(folder: Folder) -> None:
    buffer = ("-j1", "--stdin-display-name", "train.py", "-")
    changed = f"\n{USER}"
    for _ in range(2):
        assert folder.run(*buffer, stdin=changed) == (["train.py:6:1: ML101"], "parsed")
    assert folder.run() == ([FOUND], "parsed")
    assert folder.run(*buffer, stdin=USER) == ([FOUND], "remembered")


def test_nobody_is_asked_where_it_is_not_wanted(folder: Folder) -> None:
    for _ in range(2):
        assert folder.run("-j1", "--mllint-no-cache", "train.py") == ([FOUND], "parsed")
        assert folder.run(cached=False) == ([FOUND], "parsed")
    assert not folder.store.exists()


def test_a_cache_that_cannot_be_used(folder: Folder) -> None:
    folder.store.write_text("in the way")
    for _ in range(2):
        assert folder.run() == ([FOUND], "parsed")


def test_a_process_that_goes_on_looks_again_with_each_run(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some editors keep flake8 in one process; each run begins with its options."""
    from flake8.main.cli import main

    monkeypatch.setenv("MLLINT_CACHE_DIR", str(folder.store))
    monkeypatch.delenv("MLLINT_NO_CACHE")
    monkeypatch.setattr(Plugin, "_choice", Plugin._choice)
    monkeypatch.chdir(folder.root)
    arguments = ["-j1", "--select=ML", "-q", "train.py"]
    assert main(arguments) == 1
    folder.write("net.py", OTHER_LIBRARY)
    assert main(arguments) == 0
    folder.write("net.py", LIBRARY)
    assert main(arguments) == 1
    flake8_plugin._end_session()
    assert folder.run() == ([FOUND], "remembered")


def test_a_forked_process_has_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = flake8_plugin._Choice(uses_cache=False)
    mine = flake8_plugin._session(choice)
    assert flake8_plugin._session(choice) is mine
    monkeypatch.setattr(os, "getpid", lambda: -1)
    other = flake8_plugin._session(choice)
    assert other is not mine
    flake8_plugin._end_session()
