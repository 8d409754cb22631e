"""Which files a path comes to."""

import os
import subprocess
from pathlib import Path

import pytest

from mllint.configuration.files import Resolver
from mllint.configuration.settings import Overrides
from mllint.running.discovery import Discovery, discover, is_excluded


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(*paths: str, text: str = "") -> None:
    for name in paths:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def found(*paths: str, force_exclude: bool | None = None, overrides: Overrides | None = None) -> list[str]:
    """The paths of the files, nothing else having happened."""
    discovery = discover(paths, Resolver(overrides or Overrides(force_exclude=force_exclude)))
    assert not discovery.unreadable
    assert not discovery.configuration_errors
    return [file.path for file in discovery.files]


def refused(discovery: Discovery) -> list[tuple[str, str]]:
    return [(problem.path, problem.reason) for problem in discovery.unreadable]


def test_python_files_below_a_folder_sorted() -> None:
    make("b.py", "a/c.pyi", "a/b.py", "a/b/d.py", "a/data.txt", "a/nb.ipynb", "a/script", "é.py")
    expected = ["a/b.py", "a/b/d.py", "a/c.pyi", "b.py", "é.py"]
    assert found(".") == expected
    assert found("./") == expected
    assert found("./a") == ["a/b.py", "a/b/d.py", "a/c.pyi"]
    assert found("a/") == ["a/b.py", "a/b/d.py", "a/c.pyi"]
    assert found(os.path.abspath("a")) == [os.path.abspath(name) for name in ("a/b.py", "a/b/d.py", "a/c.pyi")]


def test_a_file_is_met_once() -> None:
    make("a/b.py", "a/c.py")
    assert found("a/b.py", "a", ".", "./a/b.py") == ["a/b.py", "a/c.py"]


def test_a_file_named_explicitly_is_taken_whatever_its_suffix() -> None:
    make("script", "notes.txt")
    assert found("script", "notes.txt") == ["notes.txt", "script"]


def test_a_folder_that_looks_like_a_file_is_a_folder() -> None:
    make("a.py/b.py")
    assert found(".") == ["a.py/b.py"]


def test_folders_of_tools_and_builds_are_not_looked_into() -> None:
    make(".venv/a.py", "build/b.py", "x/.git/c.py", "x/node_modules/d.py", "x/y.py", "x/.hidden/e.py")
    assert found(".") == ["x/.hidden/e.py", "x/y.py"]


def test_an_excluded_path_named_explicitly_is_taken() -> None:
    make("build/a.py", "build/b/c.py", "build/.venv/d.py")
    assert found("build/a.py") == ["build/a.py"]
    assert found("build") == ["build/a.py", "build/b/c.py"]
    assert found("build/b") == ["build/b/c.py"]


def test_unless_exclusion_is_forced() -> None:
    make("build/a.py", "build/b/c.py", "d.py")
    assert found("build/a.py", "build", "build/b", "d.py", force_exclude=True) == ["d.py"]
    make("pyproject.toml", text="[tool.mllint]\nforce-exclude = true\n")
    assert found("build/a.py", "d.py") == ["d.py"]


def test_exclude_replaces_and_extend_exclude_adds() -> None:
    make("build/a.py", "old/b.py", "x/old/c.py", "x/gen/d_pb2.py", "x/e.py")
    make("pyproject.toml", text='[tool.mllint]\nexclude = ["/old", "*_pb2.py"]\n')
    assert found(".") == ["build/a.py", "x/e.py", "x/old/c.py"]
    make("pyproject.toml", text='[tool.mllint]\nextend-exclude = ["x/gen/", "old"]\n')
    assert found(".") == ["x/e.py"]
    assert found("x/gen") == ["x/gen/d_pb2.py"]


def test_patterns_are_relative_to_the_folder_of_their_file() -> None:
    make("a/src/gen/x.py", "src/gen/y.py", "a/src/z.py")
    make("a/pyproject.toml", text='[tool.mllint]\nextend-exclude = ["src/gen"]\n')
    assert found(".") == ["a/src/z.py", "src/gen/y.py"]
    assert found("a/src") == ["a/src/z.py"]


def test_each_folder_has_its_own_configuration() -> None:
    make("a/x.py", "b/y.py", "a/build/z.py")
    make("pyproject.toml", text='[tool.mllint]\nselect = ["ML1"]\n')
    make("b/pyproject.toml", text='[tool.mllint]\nselect = ["ML5"]\n')
    files = discover(["."], Resolver()).files
    assert [(file.path, file.configuration.settings.select) for file in files] == [
        ("a/x.py", ("ML1",)),
        ("b/y.py", ("ML5",)),
    ]


def test_a_configuration_that_cannot_be_used_costs_only_its_own_files() -> None:
    make("a/x.py", "b/y.py", "b/c/z.py", "b/c/w.py")
    make("b/pyproject.toml", text="[tool.mllint\n")
    discovery = discover([".", "b/y.py"], Resolver())
    assert [file.path for file in discovery.files] == ["a/x.py"]
    assert len(discovery.configuration_errors) == 1
    assert "pyproject.toml: is not valid TOML" in str(discovery.configuration_errors[0])


def test_gitignore_files_are_respected_at_every_level() -> None:
    make("a.py", "gen/b.py", "x/gen/c.py", "x/keep.py", "x/local.py", "x/y/local.py", "out/d.py")
    make(".gitignore", text="gen/\nlocal.py\n/out\n# comment\n\n")
    make("x/y/.gitignore", text="!local.py\n")
    assert found(".") == ["a.py", "x/keep.py", "x/y/local.py"]


def test_gitignore_may_be_switched_off() -> None:
    make("a.py", ".gitignore")
    make(".gitignore", text="*.py\n")
    assert found(".") == []
    make("pyproject.toml", text="[tool.mllint]\nrespect-gitignore = false\n")
    assert found(".") == ["a.py"]


def test_gitignore_files_further_up_count_within_a_repository() -> None:
    make("a/b/x.py", "a/b/y.py")
    make(".gitignore", text="/a/b/x.py\n")
    assert found("a/b") == ["a/b/x.py", "a/b/y.py"]
    Path(".git").mkdir()
    assert found("a/b") == ["a/b/y.py"]


def test_an_ignored_path_named_explicitly_is_taken() -> None:
    Path(".git").mkdir()
    make("gen/x.py", "gen/sub/y.py")
    make(".gitignore", text="gen/\n")
    assert found(".") == []
    assert found("gen") == ["gen/sub/y.py", "gen/x.py"]
    assert found("gen/x.py") == ["gen/x.py"]


def test_a_gitignore_that_git_would_accept_breaks_nothing() -> None:
    make("a.py", "b.py", "c/d.py")
    Path(".gitignore").write_bytes(b"!\n\\\nx/[z-a]\n\xff\xfe\nb.py\n")
    Path("c/.gitignore").mkdir()
    assert found(".") == ["a.py", "c/d.py"]


def test_the_same_as_git(tmp_path: Path) -> None:
    make(*(f"{folder}/{name}.py" for folder in ("a", "a/b", "c", "c/doc") for name in ("x", "y")))
    make(".gitignore", text="a/*\n!a/b\n/c/doc/\ny.py\n**/b/x.py\n")
    make("c/.gitignore", text="x.py\n!y.py\n")
    subprocess.run(["git", "init", "-q"], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found(".") == sorted(listed.stdout.split())
    assert found(".")


def test_links_to_files_are_followed_and_links_to_folders_are_not() -> None:
    make("a/x.py", "other.txt")
    make("../outside/y.py")
    Path("link.py").symlink_to("../outside/y.py")
    Path("loop").symlink_to(".")
    Path("a/up").symlink_to("..")
    Path("folder.py").symlink_to("a")
    assert found(".") == ["a/x.py", "link.py"]
    assert found("loop/a") == ["loop/a/x.py"]


def test_a_file_that_is_met_by_its_name_and_by_links_goes_by_its_name() -> None:
    make("b/x.py", "../outside/y.py")
    Path("a.py").symlink_to("b/x.py")
    Path("b/z.py").symlink_to("x.py")
    Path("b/one.py").symlink_to("../../outside/y.py")
    Path("b/two.py").symlink_to("../../outside/y.py")
    assert found(".") == ["b/one.py", "b/x.py"]
    assert found("a.py", "b/z.py") == ["a.py", "b/z.py"]
    assert found("a.py", "b") == ["a.py", "b/one.py", "b/x.py"]


def test_notebooks_in_folders_are_found_where_that_is_wanted() -> None:
    make("a.ipynb", "b.py", "c/d.ipynb", "c/.ipynb_checkpoints/d-checkpoint.ipynb", "c/e.txt", "old/f.ipynb")
    assert found(".") == ["b.py"]
    assert found("a.ipynb", "c") == ["a.ipynb"]
    wanted = Overrides(extend_include=("*.ipynb",))
    assert found(".", overrides=wanted) == ["a.ipynb", "b.py", "c/d.ipynb", "old/f.ipynb"]
    assert found(".", overrides=Overrides(extend_include=("*.ipynb",), extend_exclude=("old",))) == [
        "a.ipynb", "b.py", "c/d.ipynb",
    ]  # fmt: skip
    Path("pyproject.toml").write_text('[tool.mllint]\nextend-include = ["/c/*.ipynb"]\n', encoding="utf-8")
    assert found(".") == ["b.py", "c/d.ipynb"]
    Path("c/mllint.toml").write_text('extend = "../pyproject.toml"\n', encoding="utf-8")
    assert found("c") == ["c/d.ipynb"]


def test_links_that_lead_nowhere_are_said_and_the_rest_goes_on() -> None:
    make("a.py")
    Path("dangling.py").symlink_to("gone.py")
    Path("ring.py").symlink_to("ring.py")
    Path(".#edited.py").symlink_to("user@host.123")  # an editor's lock
    for paths in ((".",), ("a.py", "dangling.py", "ring.py")):
        discovery = discover(paths, Resolver())
        assert [file.path for file in discovery.files] == ["a.py"]
        assert refused(discovery) == [
            ("dangling.py", "the symbolic link leads nowhere"),
            ("ring.py", "the symbolic links go round in a circle"),
        ]
        assert not discovery.nothing_exists


def test_missing_paths() -> None:
    make("a.py")
    discovery = discover(["a.py", "gone.py", "a.py/b"], Resolver())
    assert [file.path for file in discovery.files] == ["a.py"]
    assert refused(discovery) == [
        ("a.py/b", "no such file or folder"),
        ("gone.py", "no such file or folder"),
    ]
    assert not discovery.nothing_exists
    assert discover(["gone.py", "gone2"], Resolver()).nothing_exists
    assert not discover([], Resolver()).nothing_exists


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read() -> None:
    make("a.py", "b/c.py")
    Path("b").chmod(0)
    try:
        discovery = discover(["."], Resolver())
    finally:
        Path("b").chmod(0o755)
    assert [file.path for file in discovery.files] == ["a.py"]
    assert refused(discovery) == [("b", "folder: permission denied")]


def test_a_folder_whose_reading_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    make("a.py", "b/c.py")
    scan = os.scandir

    def fails_for_b(path: str) -> object:
        if path == "b":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", fails_for_b)
    discovery = discover(["."], Resolver())
    assert [file.path for file in discovery.files] == ["a.py"]
    assert refused(discovery) == [("b", "folder: permission denied")]


def test_pipes_and_the_like_are_no_files() -> None:
    make("a.py")
    os.mkfifo("pipe.py")
    assert found(".") == ["a.py"]


def test_names_that_are_not_text() -> None:
    make("a.py")
    Path(os.fsdecode(b"\xff.py")).write_text("")
    assert found(".") == ["a.py", os.fsdecode(b"\xff.py")]


def test_what_is_outside_the_configuration_folder_is_excluded_by_name_only() -> None:
    configuration = Resolver(isolated=True).for_folder(".")
    assert is_excluded("../build/x.py", configuration)
    assert is_excluded("build", configuration)
    assert not is_excluded("../x.py", configuration)
    assert not is_excluded(".", configuration)
