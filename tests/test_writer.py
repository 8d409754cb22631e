"""Writing files back: whole or not at all, and only over what was read."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mllint.running import writer
from mllint.running.writer import WriteError, write


@pytest.fixture(params=[True, False], ids=["complete before it has a name", "under a name from the start"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_HAS_NAMELESS", request.param and writer._HAS_NAMELESS)


pytestmark = pytest.mark.usefixtures("_either_way")


def test_the_new_content_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\r\n")
    write(str(path), b"new\r\n", b"old\r\n")
    assert path.read_bytes() == b"new\r\n"
    assert os.listdir(tmp_path) == ["a.py"]


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o751)
    write(str(path), b"new", b"old")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "a.py"
    target.write_bytes(b"old")
    (tmp_path / "middle.py").symlink_to("real/a.py")
    (tmp_path / "link.py").symlink_to(tmp_path / "middle.py")
    write(str(tmp_path / "link.py"), b"new", b"old")
    assert (tmp_path / "link.py").is_symlink()
    assert os.readlink(tmp_path / "middle.py") == "real/a.py"
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path / "real") == ["a.py"]


def test_nothing_is_touched_where_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"same")
    before = path.stat()
    write(str(path), b"same", b"same")
    assert path.stat() == before


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"edited by somebody")
    with pytest.raises(WriteError, match="the file was changed meanwhile"):
        write(str(path), b"new", b"old")
    assert path.read_bytes() == b"edited by somebody"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="cannot be written: no such file"):
        write(str(tmp_path / "a.py"), b"new", b"old")
    assert os.listdir(tmp_path) == []


def test_a_read_only_file_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    # Root may write to it all the same.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(WriteError, match="the file is read-only"):
        write(str(path), b"new", b"old")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(WriteError, match="cannot be written: no space left on device"):
        write(str(path), b"new", b"old")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


def test_who_cannot_name_a_file_afterwards_does_it_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def fail(*arguments: object, **others: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    write(str(path), b"new", b"old")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.py"]


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(str(path), b"new", b"old")
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.skipif(not writer._HAS_NAMELESS, reason="the system gives every file a name")
def test_a_killed_process_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    program = (
        "import os, signal, sys\n"
        "from mllint.running.writer import write\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write(sys.argv[1], b'new', b'old')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 250 + ".py")
    path.write_bytes(b"old")
    write(str(path), b"new", b"old")
    assert path.read_bytes() == b"new"
