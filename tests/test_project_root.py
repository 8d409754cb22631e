"""Where the project of a file begins."""

from pathlib import Path

import pytest

from mllint.semantic.files.project_root import MAX_FOLDERS, project_root


def _files(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a home folder of its own, deep enough that nothing outside is looked at."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path / "code"


@pytest.mark.parametrize("marker", [".git", "pyproject.toml", "setup.py", "setup.cfg"])
def test_strong_mark_however_far_up(folder: Path, marker: str) -> None:
    deep = "/".join("abcdefghij")
    _files(folder, marker, "a/README.md", "a/b/requirements.txt", f"{deep}/train.py")
    assert project_root(folder / deep / "train.py") == folder


def test_nearest_strong_mark(folder: Path) -> None:
    _files(folder, ".git", "sub/setup.py", "sub/net.py")
    assert project_root(folder / "sub/net.py") == folder / "sub"


def test_a_build_file_in_an_inner_package_compiles_a_part_of_it(folder: Path) -> None:
    _files(folder, "setup.py", "package/__init__.py", "package/ops/__init__.py", "package/ops/setup.py")
    assert project_root(folder / "package/ops/net.py") == folder
    # A project that is a package itself, in a folder of scripts.
    _files(folder, "other/__init__.py", "other/setup.py")
    assert project_root(folder / "other/net.py") == folder / "other"


@pytest.mark.parametrize("marker", ["LICENSE", "requirements.txt", "environment.yml", ".gitignore"])
def test_licence_or_requirements_before_a_readme(folder: Path, marker: str) -> None:
    _files(folder, marker, "README.md", "models/README.md", "models/net.py")
    assert project_root(folder / "models/net.py") == folder


def test_readme(folder: Path) -> None:
    _files(folder, "README.md", "models/net.py")
    assert project_root(folder / "models/net.py") == folder


def test_no_mark_cuts_a_package(folder: Path) -> None:
    _files(folder, "package/__init__.py", "package/README.md", "package/inner/__init__.py", "package/inner/net.py")
    assert project_root(folder / "package/inner/net.py") == folder


def test_a_checkout_that_is_said_to_be_a_package(folder: Path) -> None:
    _files(folder, "other/train.py", "net/__init__.py", "net/requirements.txt", "net/part/__init__.py", "net/part/a.py")
    assert project_root(folder / "net/part/a.py") == folder / "net"
    # A package that is shipped with its licence is imported from outside.
    _files(folder, "lib/__init__.py", "lib/LICENSE", "lib/a.py")
    assert project_root(folder / "lib/a.py") == folder
    # What lies in a project of its own belongs to that.
    _files(folder, "LICENSE")
    assert project_root(folder / "net/part/a.py") == folder


def test_without_any_mark(folder: Path) -> None:
    _files(folder, "train.py", "utils/tools.py", "package/__init__.py", "package/net.py")
    assert project_root(folder / "train.py") == folder
    assert project_root(folder / "utils/tools.py") == folder / "utils"
    assert project_root(folder / "package/net.py") == folder


def test_a_script_imports_from_a_folder_that_is_no_package(folder: Path) -> None:
    _files(folder, "models/parts/blocks.py", "other/tools.py", "deep/er/still/net.py")
    (folder / "train.py").write_text("import os\nfrom models.parts.blocks import Block\nimport otherwise\n")
    assert project_root(folder / "models/parts/blocks.py") == folder
    assert project_root(folder / "models/net.py") == folder
    assert project_root(folder / "other/tools.py") == folder / "other"
    assert project_root(folder / "deep/er/still/net.py") == folder / "deep/er/still"
    (folder / "run.py").write_text("def main():\n    import other.tools as tools\n")
    assert project_root(folder / "other/tools.py") == folder
    # A home folder holds projects, whatever a script in it imports.
    (folder.parent / "run.py").write_text("import code\n")
    _files(folder, "net.py")
    assert project_root(folder / "net.py") == folder


def test_weak_marks_far_away_or_in_the_home_folder_say_nothing(folder: Path) -> None:
    deep = "/".join("abcdefghij"[:MAX_FOLDERS])
    _files(folder, "LICENSE", "README.md", f"{deep}/train.py")
    assert project_root(folder / deep / "train.py") == folder / deep
    _files(folder.parent, "LICENSE", "README.md", "scratch/train.py")
    assert project_root(folder.parent / "scratch/train.py") == folder.parent / "scratch"


def test_without_a_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    _files(folder, "LICENSE", "models/net.py")
    assert project_root(folder / "models/net.py") == folder
