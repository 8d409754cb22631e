"""The cache: never a stale result, never an error, and little work."""

import ast
import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import mllint
from harness.cases import FIXTURES
from mllint.cli import cli
from mllint.configuration.settings import Settings
from mllint.diagnostics import Result
from mllint.running import batch, cache, runner
from mllint.running.cache import Cache
from mllint.running.runner import Mode, Outcome, Runner, Task
from mllint.semantic.files.disk import Question
from mllint.semantic.files.reads import Reads
from mllint.semantic.project import Project

LIBRARY = "import torch\n\n\ndef make():\n    return torch.zeros(3)\n"
OTHER_LIBRARY = "import torch\n\n\ndef make():\n    return torch.nn.Linear(2, 3)\n"
USER = "from net import make\n\n# torch\nx = make()\nx.cuda()\nprint(x)\n"
FAR_USER = "import torch\nfrom package.middle import make\n\nx = make()\nx.cuda()\nprint(x)\n"


_PARTS = {path.relative_to(FIXTURES).parts for path in FIXTURES.rglob("*.py")}
_PROJECTS = sorted({FIXTURES.joinpath(*parts[:2]) for parts in _PARTS if len(parts) > 2})

EVERY = Settings(select=("ALL",))


class Folder:
    """A project, and a cache of its own."""

    def __init__(self, root: Path, store: Path) -> None:
        self.root = root
        self.store = store
        self.linted: list[str] = []

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(
        self, *, cached: bool = True, mode: Mode | None = None, settings: Settings | None = None, jobs: int = 1
    ) -> list[Outcome]:
        self.linted.clear()
        paths = sorted(str(path) for path in self.root.rglob("*.py"))
        tasks = [Task(path, settings or Settings()) for path in paths]
        store = (lambda: Cache(str(self.store))) if cached else None
        return list(batch.outcomes(tasks, mode or Mode(), jobs=jobs, cache=store))

    def codes(self, *, cached: bool = True, settings: Settings | None = None) -> dict[str, list[str]]:
        found = self.run(cached=cached, settings=settings)
        return {
            os.path.relpath(outcome.result.path, self.root): [item.code for item in outcome.result.diagnostics]
            for outcome in found
            if outcome.result.diagnostics
        }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty project; what is linted there is noted."""
    monkeypatch.delenv("MLLINT_NO_CACHE", raising=False)
    root = tmp_path / "project"
    root.mkdir()
    (root / "setup.py").write_text("")
    found = Folder(root, tmp_path / "store")
    real = runner.lint

    def lint(data: bytes, path: str, *arguments: object, **options: object) -> Result:
        found.linted.append(os.path.relpath(path, root))
        return real(data, path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "lint", lint)
    return found


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take text only")
@pytest.mark.parametrize("name", [b"bad\xff.py", b"bad\xff/net.py"])
def test_a_name_that_is_no_text_is_not_remembered_and_the_others_are(folder: Folder, name: bytes) -> None:
    folder.write("train.py", LIBRARY)
    folder.write(os.fsdecode(name), "import torch\nx = torch.zeros(3)\nx.cuda()\n")
    first = folder.run()
    assert len(folder.linted) == 2
    assert [item.code for outcome in first for item in outcome.result.diagnostics] == ["ML101"]
    assert folder.run() == first
    assert folder.linted == [os.fsdecode(name)]


# --- What is not done again -----------------------------------------------------------------------


def test_what_has_not_changed_is_not_checked_again(folder: Folder) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("train.py", USER)
    first = folder.run()
    assert folder.linted == ["net.py", "train.py"]
    second = folder.run()
    assert folder.linted == []
    assert second == first == folder.run(cached=False)
    assert [item.code for item in first[2].result.diagnostics] == ["ML101"]


def test_a_file_that_changed_costs_one_file(folder: Folder) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("train.py", USER)
    folder.write("alone.py", "import torch\n")
    folder.run()
    folder.write("alone.py", "import torch\nx = 1\n")
    folder.run()
    assert folder.linted == ["alone.py"]
    folder.write("train.py", USER + "\n")
    folder.run()
    assert folder.linted == ["train.py"]
    # A file that is only touched is as it was.
    os.utime(folder.root / "train.py", (1, 1))
    folder.run()
    assert folder.linted == []


def test_the_same_file_called_by_another_name(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("sub/train.py", "import torch\nx = torch.zeros(3)\nx.cuda()\n")
    seen = []
    for where, path in ((folder.root, "sub/train.py"), (folder.root / "sub", "train.py")):
        monkeypatch.chdir(where)
        tasks = [Task(path, Settings())]
        (outcome,) = batch.outcomes(tasks, Mode(), cache=lambda: Cache(str(folder.store)))
        assert outcome.result.path == path
        assert [item.path for item in outcome.result.diagnostics] == [path]
        seen.append(len(folder.linted))
    assert seen == [1, 1]


# --- What a result rests on -----------------------------------------------------------------------


def test_a_changed_sibling_is_noticed_through_other_files(folder: Folder) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("package/__init__.py", "")
    folder.write("package/middle.py", "from .deep import make\n")
    folder.write("package/deep.py", LIBRARY)
    folder.write("train.py", FAR_USER)
    folder.write("alone.py", "import torch\n")
    assert folder.codes() == {"train.py": ["ML101"]}
    folder.write("package/deep.py", OTHER_LIBRARY)
    assert folder.codes() == {}
    assert folder.linted == ["package/deep.py", "train.py"]
    folder.write("package/deep.py", LIBRARY)
    assert folder.codes() == {"train.py": ["ML101"]}


EVALUATING = """\
import torch
from torch import nn


def make():
    return torch.zeros(3)


def evaluate(model: nn.Linear, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
    return right
"""
CALLING = """\
import torch
from torch import nn
from measure import evaluate

net = nn.Linear(3, 2)
loader = torch.utils.data.DataLoader(torch.load("images.pt"))
with {context}:
    print(evaluate(net, loader))
"""


def test_a_changed_caller_concerns_what_it_calls_and_not_all_who_import_that(folder: Folder) -> None:
    folder.write("measure.py", EVALUATING)
    folder.write("main.py", CALLING.format(context="torch.no_grad()"))
    folder.write("train.py", USER.replace("net", "measure"))
    assert folder.codes() == {"train.py": ["ML101"]}
    folder.write("main.py", CALLING.format(context="open('log')"))
    assert folder.codes() == {"measure.py": ["ML311"], "train.py": ["ML101"]}
    assert folder.linted == ["main.py", "measure.py"]
    folder.write("main.py", CALLING.format(context="torch.no_grad()"))
    assert folder.codes() == {"train.py": ["ML101"]}


def test_what_a_file_is_asked_for_by_others_does_not_rest_on_who_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a name is, is remembered for everybody who asks; who uses code is known only to the check that asked."""
    asked = []
    note = Reads.note_of_users
    projects: list[Project] = []
    create = Project.__init__

    def noted(reads: Reads, question: Question) -> str:
        (project,) = [project for project in projects if project.reads is reads]
        asked.append((question, project.derivation.is_active))
        return note(reads, question)

    def created(project: Project, root: Path, *limit: int) -> None:
        create(project, root, *limit)
        projects.append(project)

    monkeypatch.setattr(Reads, "note_of_users", noted)
    monkeypatch.setattr(Project, "__init__", created)
    for folder in _PROJECTS[::5]:
        tasks = [Task(str(path), Settings(select=("ALL", "ML9"))) for path in sorted(folder.rglob("*.py"))]
        for _ in Runner(Mode(), remembers=True).run(tasks):
            pass
    assert len(asked) > 200
    assert [question for question, is_derived in asked if is_derived] == []


def test_files_that_come_and_go(folder: Folder) -> None:
    folder.write("train.py", USER)
    assert folder.codes() == {}
    folder.write("net.py", LIBRARY)
    assert folder.codes() == {"train.py": ["ML101"]}
    # A package of that name comes first.
    folder.write("net/__init__.py", OTHER_LIBRARY)
    assert folder.codes() == {}
    shutil.rmtree(folder.root / "net")
    assert folder.codes() == {"train.py": ["ML101"]}
    (folder.root / "net.py").unlink()
    assert folder.codes() == {}
    folder.write("src/net.py", LIBRARY)
    assert folder.codes() == {"train.py": ["ML101"]}


def test_the_root_of_the_project_moves(folder: Folder) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("sub/train.py", USER)
    assert folder.codes() == {"sub/train.py": ["ML101"]}
    folder.write("sub/pyproject.toml", "")
    assert folder.codes() == {}
    (folder.root / "sub" / "pyproject.toml").unlink()
    assert folder.codes() == {"sub/train.py": ["ML101"]}


@pytest.mark.skipif(sys.platform == "win32", reason="needs the right to make links")
def test_a_link_that_leads_elsewhere(folder: Folder) -> None:
    folder.write("first/net.py", LIBRARY)
    folder.write("second/net.py", OTHER_LIBRARY)
    (folder.root / "net.py").symlink_to("first/net.py")
    folder.write("train.py", USER)
    assert folder.codes() == {"train.py": ["ML101"]}
    (folder.root / "net.py").unlink()
    (folder.root / "net.py").symlink_to("second/net.py")
    assert folder.codes() == {}


def test_settings_versions_and_requirements(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("train.py", "import torch\nx = torch.zeros(3)\nx.cuda()\n")
    folder.run()
    for options in (
        {"settings": Settings(ignore=("ML102",))},
        {"settings": Settings(torch_version="1.9")},
        {"settings": Settings(per_file_ignores=(("train.py", ("ML1",)),), pattern_root=str(folder.root))},
    ):
        found = folder.run(**options)  # type: ignore[arg-type]
        assert folder.linted == ["train.py"], options
        assert found == folder.run(cached=False, **options)  # type: ignore[arg-type]
        folder.run(**options)  # type: ignore[arg-type]
        assert folder.linted == []
    folder.write("requirements.txt", "torch>=2.1\n")
    folder.run()
    assert folder.linted == ["train.py"]
    monkeypatch.setattr(cache, "version_digest", lambda: b"another mllint")
    folder.run()
    assert folder.linted == ["train.py"]


def test_another_parser_is_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.version_digest()
    cache.version_digest.cache_clear()
    assert cache.version_digest() == before
    monkeypatch.setattr(cache, "_libcst_version", lambda: b"99")
    cache.version_digest.cache_clear()
    assert cache.version_digest() != before
    monkeypatch.undo()
    cache.version_digest.cache_clear()
    assert b"version" in cache._libcst_version()


def test_whatever_judges_a_file_is_in_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def read_bytes(path: Path) -> bytes:
        read.append(path)
        return b""

    source = Path(mllint.__file__).parent
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    cache.version_digest.cache_clear()
    cache.version_digest()
    cache.version_digest.cache_clear()
    judging = [path for path in source.rglob("*.py") if "_dev" not in path.parts]
    assert {*judging, *source.glob("knowledge/*.txt")} <= set(read)


def test_models_and_rules_ask_the_disk_where_it_is_noted() -> None:
    """Whoever reads another file by himself has findings that rest on something that nobody remembers."""
    source = Path(mllint.__file__).parent
    asks = re.compile(
        r"\.(?:read_bytes|read_text|exists|is_file|is_dir|iterdir|glob|rglob|walk|listdir|scandir|stat|isfile|isdir)\("
        r"|\bopen\("
    )
    looked_at = 0
    for path in sorted([*source.glob("semantic/**/*.py"), *source.glob("rules/**/*.py"), source / "context.py"]):
        # What the root of the project is, is part of the key.
        if path.name not in ("disk.py", "project_root.py"):
            tree = ast.parse(path.read_text("utf-8"))
            calls = [ast.unparse(node.func) + "(" for node in ast.walk(tree) if isinstance(node, ast.Call)]
            assert not list(filter(asks.search, calls)), path
            looked_at += 1
    assert looked_at > 50


LOADING = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, x):
        return self.layer(x)


def main():
    model = Net()
    model.load_state_dict(torch.load("parallel.pt", weights_only=True))
"""
SAVING = """\
import torch
from torch import nn
from evaluate import Net

model = nn.DataParallel(Net())
torch.save(model.state_dict(), "parallel.pt")
"""


def test_a_script_that_is_not_imported_but_saves_what_is_loaded(folder: Folder) -> None:
    folder.write("evaluate.py", LOADING)
    assert folder.codes(settings=EVERY) == {}
    folder.write("train.py", SAVING)
    found = folder.codes(settings=EVERY)
    assert "ML422" in found["evaluate.py"]
    assert found == folder.codes(cached=False, settings=EVERY)
    folder.write("train.py", "import torch\n")
    assert folder.codes(settings=EVERY) == folder.codes(cached=False, settings=EVERY) == {}
    folder.write("train.py", SAVING)
    assert folder.codes(settings=EVERY) == found
    (folder.root / "train.py").rename(folder.root / "other.py")
    assert folder.codes(settings=EVERY)["evaluate.py"] == found["evaluate.py"]
    (folder.root / "other.py").unlink()
    assert folder.codes(settings=EVERY) == {}


def _edited(root: Path, chance: random.Random) -> str:
    """Change something at random, as people and tools do; what."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    pythons = [path for path in files if path.suffix == ".py"]
    path = chance.choice(pythons or files)
    kind = chance.choice(["delete", "append", "swap", "cut", "copy", "move", "shadow", "mark", "require", "restore"])
    text = path.read_bytes()
    if kind == "delete" and len(pythons) > 2:
        path.unlink()
    elif kind == "append":
        path.write_bytes(text + chance.choice([b"\nimport torch\n", b"# comment\n", b"\nprint(model.head)\n"]))
    elif kind == "swap":
        path.write_bytes(chance.choice(pythons or files).read_bytes())
    elif kind == "cut":
        lines = text.splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: chance.randrange(len(lines) + 1)]))
    elif kind == "copy":
        # A copy may be the very file that is copied, when it was copied before.
        path.with_name(chance.choice(pythons or files).name + ".bak.py").write_bytes(text)
    elif kind == "move":
        path.rename(path.with_name(f"moved{chance.randrange(3)}.py"))
    elif kind == "shadow":
        package = path.with_suffix("")
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_bytes(chance.choice([b"", text]))
    elif kind == "mark":
        (path.parent / chance.choice(["setup.py", "__init__.py", "README.md"])).write_text("")
    elif kind == "require":
        (root / "requirements.txt").write_text(f"torch>={chance.choice(['1.9', '2.1', '2.6'])}\n")
    return f"{kind} {path.relative_to(root)}"


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(
            path,
            id=path.relative_to(FIXTURES).as_posix(),
            marks=[pytest.mark.slow, *([pytest.mark.thorough] if index % 5 else [])] if index % 18 else [],
        )
        for index, path in enumerate(_PROJECTS)
    ],
)
def test_after_any_edit_the_cache_says_what_a_fresh_run_says(folder: Folder, project: Path) -> None:
    """Random edits of the small projects that the rules are tested with; every rule, every kind of question."""
    chance = random.Random(project.name)
    shutil.copytree(project, folder.root, dirs_exist_ok=True)
    settings = Settings(select=("ALL", "ML9"))
    edits = []
    remembered = 0
    for step in range(25):
        if step:
            edits.append(_edited(folder.root, chance))
        if chance.random() < 0.2:
            shutil.rmtree(folder.root)
            shutil.copytree(project, folder.root)
            edits.append("restore")
        cached = folder.run(settings=settings)
        count = len(folder.linted)
        assert cached == folder.run(cached=False, settings=settings), edits
        remembered += len(folder.linted) - count
    assert remembered > 0


def test_fixing_with_a_cache(folder: Folder) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("train.py", USER)
    folder.write("other.py", "import torch\n")
    folder.run()
    fresh = folder.run(cached=False, mode=Mode(fixes=True))
    assert fresh == folder.run(mode=Mode(fixes=True))
    assert folder.linted == ["train.py"]
    assert fresh[3].fixed
    runner.written(fresh[3])
    assert folder.codes() == {}
    assert folder.linted == ["train.py"]


def test_several_processes_fill_one_cache(folder: Folder) -> None:
    for number in range(6):
        folder.write(f"project{number}/setup.py", "")
        folder.write(f"project{number}/net.py", LIBRARY)
        folder.write(f"project{number}/train.py", USER)
    fresh = folder.run(cached=False)
    assert folder.run(jobs=3) == fresh
    assert folder.run() == fresh
    assert folder.linted == []


# --- The database ---------------------------------------------------------------------------------


def _database(folder: Folder) -> Path:
    return folder.store / cache.NAME


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    chance = random.Random(3)
    for _ in range(400):
        data[chance.randrange(100, len(data))] = chance.randrange(256)
    path.write_bytes(bytes(data))


def _drop_tables(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE facts")
        connection.commit()


def _set_version(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("ALTER TABLE results RENAME TO others")
        connection.commit()


def _forge(path: Path) -> None:
    """Rows that are whole, but not what was written."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        results = connection.execute("SELECT result FROM results ORDER BY length(result)").fetchall()
        connection.execute("UPDATE results SET result = ?", results[0])
        connection.commit()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no database at all" * 1000),
        _truncate,
        _scribble,
        _drop_tables,
        _set_version,
        _forge,
    ],
    ids=["empty", "text", "truncated", "scribbled", "without-a-table", "another-version", "forged"],
)
def test_a_damaged_cache_is_made_anew(folder: Folder, damage: Callable[[Path], object]) -> None:
    for number in range(30):
        folder.write(f"net{number}.py", LIBRARY)
        folder.write(f"train{number}.py", USER.replace("net", f"net{number}"))
    fresh = folder.run(cached=False)
    assert folder.run() == fresh
    damage(_database(folder))
    assert folder.run() == fresh
    assert folder.run() == fresh
    assert folder.run() == fresh
    assert folder.linted == []


def test_a_locked_cache_is_left_alone(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_PATIENCE", 0.01)
    folder.write("train.py", "import torch\n")
    folder.run()
    folder.write("other.py", "import torch\nx = torch.zeros(3)\nx.cuda()\n")
    with contextlib.closing(sqlite3.connect(_database(folder), isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert folder.run() == folder.run(cached=False)
        connection.execute("ROLLBACK")
    folder.run()
    assert folder.linted == ["other.py"]


@pytest.mark.parametrize("what", ["a file", "below a file", "a folder of that name"])
def test_a_folder_that_cannot_be_used(folder: Folder, what: str) -> None:
    folder.write("train.py", "import torch\nx = torch.zeros(3)\nx.cuda()\n")
    if what == "a folder of that name":
        _database(folder).mkdir(parents=True)
    else:
        folder.store.write_text("")
    if what == "below a file":
        folder.store /= "below"
    for _ in range(2):
        assert folder.run() == folder.run(cached=False)
        assert folder.linted == ["train.py"]


class _Failing(sqlite3.Connection):
    """A connection that fails as on a full disk or a read-only one, once it has to write."""

    message = ""

    def execute(self, query: str, *values: object) -> sqlite3.Cursor:
        if query.startswith(("INSERT", "COMMIT", "CREATE")):
            raise sqlite3.OperationalError(self.message)
        return super().execute(query, *values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "message", ["database or disk is full", "attempt to write a readonly database", "disk I/O error"]
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_disk_that_is_full_or_read_only(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, message: str, exists: bool
) -> None:
    folder.write("net.py", LIBRARY)
    if exists:
        folder.run()
    folder.write("train.py", USER)
    real = sqlite3.connect
    monkeypatch.setattr(_Failing, "message", message)
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, **k, factory=_Failing))
    for _ in range(2):
        assert folder.run() == folder.run(cached=False)
    monkeypatch.undo()


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts a disk")
def test_a_disk_that_really_is_full(folder: Folder) -> None:
    folder.store.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder.store)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no disk may be mounted here")
    try:
        for number in range(60):
            folder.write(f"net{number}.py", LIBRARY)
            folder.write(f"train{number}.py", USER.replace("net", f"net{number}"))
        fresh = folder.run(cached=False)
        for _ in range(3):
            assert folder.run() == fresh
        assert os.statvfs(folder.store).f_blocks * os.statvfs(folder.store).f_frsize == 65536
    finally:
        subprocess.run(["umount", str(folder.store)], check=True)


_COMMAND = [sys.executable, "-m", "mllint", "--output-format", "concise", "--quiet", "--exit-zero"]


def _large_project(folder: Folder, count: int) -> None:
    for number in range(count):
        folder.write(f"net{number}.py", LIBRARY)
        folder.write(f"train{number}.py", USER.replace("net", f"net{number}"))


def _command(folder: Folder, *options: str) -> list[str]:
    return [*_COMMAND, *options, str(folder.root)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills with a signal")
def test_a_run_that_is_killed_leaves_a_cache_that_can_be_used(folder: Folder) -> None:
    _large_project(folder, 150)
    expected = subprocess.run(_command(folder, "--no-cache"), capture_output=True, check=True).stdout
    assert expected.count(b"ML101") == 150
    cached = _command(folder, "--cache-dir", str(folder.store), "-j1")
    chance = random.Random(1)
    for _ in range(4):
        process = subprocess.Popen(cached, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.5, 1.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
    for _ in range(2):
        done = subprocess.run(cached, capture_output=True, check=True)
        assert done.stdout == expected
        assert done.stderr == b""


@pytest.mark.slow
def test_several_runs_at_once(folder: Folder) -> None:
    _large_project(folder, 60)
    expected = subprocess.run(_command(folder, "--no-cache"), capture_output=True, check=True).stdout
    cached = _command(folder, "--cache-dir", str(folder.store), "-j1")
    for _ in range(2):
        runs = [subprocess.Popen(cached, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        for run in runs:
            assert run.communicate() == (expected, b"")


def test_old_results_are_dropped(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("train.py", USER)
    folder.run()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400 * (cache.KEPT_DAYS + 2))
    (folder.root / "net.py").unlink()
    folder.write("train.py", "import torch\n")
    folder.run()
    with contextlib.closing(sqlite3.connect(_database(folder))) as connection:
        assert connection.execute("SELECT count(*) FROM results").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (0,)
    folder.run()
    assert folder.linted == []
    monkeypatch.setattr(cache, "MOST_BYTES", 10)
    folder.run()
    assert folder.linted == ["train.py"]


# --- The command ----------------------------------------------------------------------------------


@pytest.fixture
def invoke(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Runs ``mllint`` in the project, where ``train.py`` has a finding; gives what it wrote to both streams."""
    folder.write("train.py", "import torch\nx = torch.zeros(3)\nx.cuda()\n")
    monkeypatch.chdir(folder.root)

    def run(*arguments: str, exit_code: int = 1) -> str:
        folder.linted.clear()
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == exit_code, done.output
        return done.output

    return run


def test_where_the_cache_is(folder: Folder, invoke: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder.root.parent / "home"
    monkeypatch.setattr(cache, "default_folder", lambda: str(home))
    invoke("-n")
    assert not home.exists()
    invoke()
    assert sorted(path.name for path in home.iterdir()) == [".gitignore", "CACHEDIR.TAG", cache.NAME]
    assert (home / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    invoke()
    assert folder.linted == []
    invoke("--cache-dir", str(folder.store))
    assert folder.linted == ["train.py"]
    monkeypatch.setenv("MLLINT_CACHE_DIR", str(folder.store))
    invoke()
    assert folder.linted == []
    monkeypatch.setenv("MLLINT_NO_CACHE", "1")
    invoke()
    assert folder.linted == ["train.py"]


def test_cleaning(folder: Folder, invoke: Callable[..., str]) -> None:
    (folder.store).mkdir()
    (folder.store / "mine.txt").write_text("")
    invoke("--cache-dir", str(folder.store))
    assert "Deleted the cache" in invoke("clean", "--cache-dir", str(folder.store), exit_code=0)
    assert [path.name for path in folder.store.iterdir()] == ["mine.txt"]
    assert "There is no cache" in invoke("clean", "--cache-dir", str(folder.store), exit_code=0)
    assert (folder.root / "train.py").exists()


@pytest.mark.parametrize("form", ["full", "json", "sarif", "github"])
def test_output_is_the_same_warm_and_cold(folder: Folder, invoke: Callable[..., str], form: str) -> None:
    options = ("--output-format", form, "--cache-dir", str(folder.store))
    cold = invoke("--output-format", form, "--no-cache")
    assert invoke(*options) == cold
    assert folder.linted == ["train.py"]
    assert invoke(*options) == cold
    assert folder.linted == []


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "~/.cache/mllint"),
        ("linux", {"XDG_CACHE_HOME": "/x/y"}, "/x/y/mllint"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "~/.cache/mllint"),
        ("darwin", {"XDG_CACHE_HOME": "/x/y"}, "~/Library/Caches/mllint"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/mllint/Cache"),
        ("win32", {}, "~/AppData/Local/mllint/Cache"),
    ],
)
def test_the_folder_of_each_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.default_folder() == os.path.expanduser(expected)


def test_a_warm_run_loads_neither_parser_nor_rules(folder: Folder) -> None:
    folder.write("net.py", LIBRARY)
    folder.write("train.py", USER)
    code = (
        "import sys\n"
        "from mllint.cli import main\n"
        f"sys.argv = ['mllint', '--cache-dir', {str(folder.store)!r}, '-j2', {str(folder.root)!r},\n"
        "    '--select', 'ML101,nan-comparison', '--extend-ignore', 'ML102']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert end.code == 1, end.code\n"
        "heavy = {'libcst', 'rich', 'multiprocessing', 'mllint.registry', 'mllint.rule'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)\n"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert "libcst" in runs[0].stderr
    assert runs[1].stderr.splitlines()[-1] == "[]"
    assert runs[0].stdout == runs[1].stdout
