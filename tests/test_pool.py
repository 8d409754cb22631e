"""Several processes: the same output, whatever happens to one of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from mllint.cli import cli
from mllint.configuration.settings import Settings
from mllint.diagnostics import Result, Status
from mllint.running import batch, pool, runner, shares
from mllint.running.runner import Mode, Outcome, Task
from mllint.running.shares import Share

MISTAKES = """\
import torch
from {module} import make

x = torch.zeros(3)
x.cuda()
y = make()
y.cuda()
print(y)
"""
LIBRARY = "import torch\n\n\ndef make():\n    return torch.zeros({number})\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups as on Unix")


@pytest.fixture(autouse=True)
def _processes_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test changes is changed in the processes too, whatever ran before in this one."""
    monkeypatch.delitem(sys.modules, "watchfiles", raising=False)


def make_tree(root: Path, projects: int = 3, files: int = 4) -> list[str]:
    """Projects whose files have findings of their own and findings that their siblings decide."""
    for project in range(projects):
        folder = root / f"project{project}"
        folder.mkdir()
        (folder / "setup.py").write_text("")
        for number in range(files):
            (folder / f"lib{number}.py").write_text(LIBRARY.format(number=number))
            (folder / f"use{number}.py").write_text(MISTAKES.format(module=f"lib{number}"))
    (root / "notes.py").write_text("import os\n")
    (root / "broken.py").write_text("import torch\ndef f(:\n")
    return sorted(str(path) for path in root.rglob("*.py"))


def run(paths: list[str], jobs: int | None, mode: Mode | None = None) -> list[Outcome]:
    return list(batch.outcomes([Task(path, Settings()) for path in paths], mode or Mode(), jobs=jobs))


@pytest.mark.parametrize("mode", [Mode(), Mode(fixes=True), Mode(fixes=True, unsafe=True)])
def test_outcomes_are_the_same_for_any_number_of_processes(tmp_path: Path, mode: Mode) -> None:
    paths = make_tree(tmp_path)
    alone = run(paths, 1, mode)
    assert [outcome.result.path for outcome in alone] == paths
    assert sum(len(outcome.result.diagnostics) + len(outcome.fixed) for outcome in alone) == 3 * 4 * 2 + 1
    assert run(paths, 2, mode) == alone
    assert run(paths, 5, mode) == alone
    assert run(paths, None, mode) == alone


@pytest.mark.parametrize("options", [["--output-format=json"], ["--output-format=full"], ["--diff"], ["--fix"]])
def test_the_same_bytes_are_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    printed = []
    for jobs in ("1", "2", "4"):
        folder = tmp_path / jobs / "same"
        folder.mkdir(parents=True)
        make_tree(folder)
        monkeypatch.chdir(folder)
        done = CliRunner().invoke(cli, [".", "-j", jobs, *options])
        assert done.exit_code == 1
        written = [path.read_bytes() for path in sorted(folder.rglob("*.py"))]
        printed.append((done.stdout.replace(str(folder), ""), done.stderr, written))
    assert printed[0] == printed[1] == printed[2]


@pytest.mark.slow
def test_processes_that_are_not_forked_do_the_same(tmp_path: Path) -> None:
    paths = make_tree(tmp_path, projects=1)
    # A lock that another thread holds would be copied locked.
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert pool._context().get_start_method() == "spawn"
        assert run(paths, 2) == run(paths, 1)
    finally:
        stop.set()
        thread.join()


def dies_on(path: Path, times: int | None, folder: Path) -> Callable[..., Result]:
    """``lint``, but the process is killed where it comes to a file: the first few times, or always."""
    real = runner.lint

    def lint(data: bytes, name: str, *arguments: object, **options: object) -> Result:
        if name == str(path):
            attempts = len(list(folder.iterdir()))
            if times is None or attempts < times:
                (folder / str(attempts)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return real(data, name, *arguments, **options)  # type: ignore[arg-type]

    return lint


def test_a_process_that_dies_takes_nothing_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "deaths").mkdir()
    paths = make_tree(tmp_path / "tree")
    before = run(paths, 1)
    victim = tmp_path / "tree" / "project1" / "use1.py"
    monkeypatch.setattr(runner, "lint", dies_on(victim, 1, tmp_path / "deaths"))
    after = run(paths, 2)
    assert [outcome.result for outcome in after] == [outcome.result for outcome in before]
    problems = {outcome.result.path: outcome.problem for outcome in after if outcome.problem}
    assert list(problems) == [str(victim)]
    assert "was ended by SIGKILL; another one could check it" in problems[str(victim)]


def test_a_file_that_no_process_survives_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "deaths").mkdir()
    paths = make_tree(tmp_path / "tree")
    before = run(paths, 1)
    victim = tmp_path / "tree" / "project0" / "lib0.py"
    monkeypatch.setattr(runner, "lint", dies_on(victim, None, tmp_path / "deaths"))
    after = run(paths, 2)
    assert len(list((tmp_path / "deaths").iterdir())) == 2
    (named,) = [outcome.result for outcome in after if outcome.result.status is Status.INTERNAL_ERROR]
    assert (named.path, named.diagnostics[0].code) == (str(victim), "ML000")
    assert named.diagnostics[0].message == "the process that checked this file was ended by SIGKILL"
    others = [outcome.result for outcome in after if outcome.result.path != str(victim)]
    assert others == [outcome.result for outcome in before if outcome.result.path != str(victim)]
    done = CliRunner().invoke(cli, [str(tmp_path / "tree"), "-j", "2", "--output-format", "concise"])
    assert done.exit_code == 2
    assert f"{victim}:1:1: ML000 the process that checked" in done.stdout


def test_all_files_are_deadly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make_tree(tmp_path, projects=1, files=2)
    monkeypatch.setattr(runner, "lint", lambda *arguments, **options: os._exit(7))
    found = [outcome.result for outcome in run(paths, 3)]
    assert [result.path for result in found] == paths
    messages = {result.diagnostics[0].message for result in found if result.diagnostics}
    assert messages == {"the process that checked this file ended with exit code 7"}


def test_where_no_process_can_be_started_the_work_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make_tree(tmp_path)
    before = run(paths, 1)

    def refuse(process: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", refuse)
    assert run(paths, 4) == before


_SLOW = """\
import sys, time
from pathlib import Path
from mllint import cli
from mllint.running import runner
real = runner.lint
started, seconds = Path(sys.argv[1]), float(sys.argv[2])
def lint(data, path, *arguments, **options):
    if path.endswith("use1.py"):
        started.touch()
        time.sleep(seconds)
    return real(data, path, *arguments, **options)
runner.lint = lint
sys.argv[:3] = ["mllint"]
cli.main()
"""


def _children_of(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text().split()]


def _wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9), (signal.SIGTERM, -15)])
@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_the_end_comes_at_once_and_leaves_nobody_behind(tmp_path: Path, sent: int, code: int, jobs: str) -> None:
    (tmp_path / "tree").mkdir()
    make_tree(tmp_path / "tree")
    started = tmp_path / "started"
    seconds = "60" if sent == signal.SIGINT else "1"
    command = [sys.executable, "-c", _SLOW, str(started), seconds, str(tmp_path / "tree"), "-j", jobs, "--fix"]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert _wait_until(started.exists)
    children = _children_of(process.pid)
    assert len(children) == (2 if jobs == "2" else 0)
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)  # as a terminal does: to all of them
    else:
        process.send_signal(sent)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert stdout == b""
    assert b"Traceback" not in stderr
    # Ctrl-C ends them on the way out; else they notice when they have something to tell.
    assert _wait_until(lambda: all(map(_is_gone, children)), 0.5 if sent == signal.SIGINT else 20)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.py")} == before


def _share(index: int, group: str, size: int) -> Share:
    return Share(index, Task(f"{group}/{index}.py", Settings()), size, group)


def test_a_project_is_cut_only_into_pieces_that_are_worth_it() -> None:
    small = [_share(number, "small", 1_000) for number in range(20)]
    large = [_share(100 + number, "large", 100_000) for number in range(40)]
    chunks = pool._chunks([*small, *large], 2)
    assert [len(chunk) for chunk in chunks["small"]] == [20]
    sizes = [pool._size(chunk) for chunk in chunks["large"]]
    assert sum(sizes) == 4_000_000
    assert max(sizes) <= 4_020_000 // 16 + 100_000
    assert [share.index for chunk in chunks["large"] for share in chunk] == [share.index for share in large]


def test_a_process_stays_with_its_project(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = pool._Pool([_share(n, group, 60_000) for group in "abc" for n in range(10)], Mode(), 2)
    first, second = (pool._Worker(None, None) for _ in range(2))  # type: ignore[arg-type]
    spread._workers = [first, second]
    groups = {id(first): [], id(second): []}  # type: ignore[var-annotated]
    while spread._chunks:
        for worker in (first, second):
            spread._next_chunk(worker)
            groups[id(worker)].append(worker.group)
    assert len(dict.fromkeys(groups[id(first)])) <= 2
    assert len(dict.fromkeys(groups[id(second)])) <= 2


def test_how_many_processes_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "cores", lambda: 8)

    def count(number: int, size: int, jobs: int | None) -> int:
        return shares.processes_for([_share(index, "a", size) for index in range(number)], jobs)

    assert count(0, 0, None) == 1
    assert count(50, 1_000, None) == 1
    assert count(100, 10_000, None) == 3
    assert count(10_000, 10_000, None) == 8
    assert count(1, 10_000_000, None) == 1
    assert count(5, 10, 3) == 3
    assert count(2, 10, 30) == 2
    # In a process of somebody else's pool there is nothing to be gained.
    monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    assert count(10_000, 10_000, None) == 1


def test_no_more_cores_than_there_are() -> None:
    assert 1 <= shares.cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
def test_a_number_of_jobs_that_makes_no_sense(tmp_path: Path, value: str) -> None:
    done = CliRunner().invoke(cli, [str(tmp_path), "-j", value])
    assert done.exit_code == 2
    assert "neither `auto` nor a number" in done.stderr
