"""The hooks, through the real pre-commit, installed from this very source tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

ROOT = Path(__file__).parents[1]
FINDING = "import torch\n\nx = torch.zeros(3)\nx.cuda()\n"
FIXED = "import torch\n\nx = torch.zeros(3)\nx = x.cuda()\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return done.stdout


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=state")


def test_manifest_is_valid_and_runs_the_command() -> None:
    from pre_commit.clientlib import load_manifest

    report, fix = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert (report["id"], report["entry"]) == ("mllint", "mllint check --force-exclude")
    assert (fix["id"], fix["entry"]) == ("mllint-fix", "mllint check --force-exclude --fix")
    for hook in (report, fix):
        assert hook["require_serial"]
        assert hook["types_or"] == ["python", "pyi", "jupyter"]
        program = [sys.executable, "-m", *hook["entry"].split(), "--help"]
        assert subprocess.run(program, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the source tree as it is now, committed or not."""
    if not (ROOT / ".git").exists():
        pytest.skip("the source tree is no git repository")
    folder = tmp_path_factory.mktemp("hooks")
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    commit_all(folder)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(FINDING, encoding="utf-8")
    (tmp_path / "notes.md").write_text("import torch\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.mllint]\nextend-exclude = ["generated"]\n', encoding="utf-8")
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "train.py").write_text(FINDING, encoding="utf-8")
    commit_all(tmp_path)
    return tmp_path


@pytest.fixture
def configured(hooks: Path, project: Path) -> None:
    """The project asks for both hooks as its users would."""
    revision = git(hooks, "rev-parse", "HEAD").strip()
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: mllint\n  - id: mllint-fix\n",
        encoding="utf-8",
    )
    commit_all(project)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environments it builds: one for all tests here."""
    return tmp_path_factory.mktemp("home")


def pre_commit(folder: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments],
        cwd=folder,
        env=os.environ | {"PRE_COMMIT_HOME": str(home), "NO_COLOR": "1"},
        capture_output=True, text=True, encoding="utf-8", timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_hook_reports_many_files_in_one_call(hooks: Path, project: Path, home: Path) -> None:
    for index in range(299):
        (project / f"module_{index}.py").write_text(FINDING, encoding="utf-8")
    git(project, "add", "--all")
    done = pre_commit(project, home, "try-repo", str(hooks), "mllint", "--verbose", "--all-files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "exit code: 1" in done.stdout
    assert done.stdout.count("ML101") == 300
    # One summary: the files were not dealt out to several calls. What is excluded stays excluded.
    assert done.stdout.count("300 findings in 300 files") == 1
    assert "generated" not in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("configured")
def test_fix_hook_mends_and_then_passes(project: Path, home: Path) -> None:
    done = pre_commit(project, home, "run", "mllint-fix", "--all-files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "files were modified by this hook" in done.stdout
    assert (project / "train.py").read_text(encoding="utf-8") == FIXED
    assert (project / "generated" / "train.py").read_text(encoding="utf-8") == FINDING
    done = pre_commit(project, home, "run", "mllint-fix", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["mllint", "mllint-fix"])
@pytest.mark.parametrize("files", [["notes.md"], ["generated/train.py"]])
@pytest.mark.usefixtures("configured")
def test_hook_passes_without_files(project: Path, home: Path, hook: str, files: list[str]) -> None:
    done = pre_commit(project, home, "run", hook, "--files", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("(no files to check)" in done.stdout) == (files == ["notes.md"])
    assert "ML" not in done.stdout
