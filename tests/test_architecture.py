"""The shape of the code: layers, sizes, and what a module may be called."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mllint"
MODULES = sorted(SOURCE.rglob("*.py"))

# One process parses the modules once for all.
pytestmark = pytest.mark.xdist_group("architecture")


@cache
def parsed() -> dict[str, ast.Module]:
    """The tree of each module, by its name below the package."""
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in MODULES}


def test_a_module_imports_only_from_lower_layers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Contracts: 4 kept, 0 broken" in done.stdout


def test_modules_can_be_read_in_one_sitting() -> None:
    for name, tree in parsed().items():
        is_rule = re.fullmatch(r"rules/\w+/(?!__init__)\w+\.py", name)
        rows = (SOURCE / name).read_text("utf-8").count("\n")
        assert not is_rule or rows <= 220, f"{name}: {rows} rows with its page"
        if is_rule:
            rows -= (ast.get_docstring(tree, clean=False) or "").count("\n")  # it is the rule's page
        assert rows < (150 if is_rule else 500), f"{name}: {rows} rows"


def test_functions_fit_a_screen() -> None:
    for name, tree in parsed().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                rows = (node.end_lineno or 0) - node.lineno + 1
                assert rows <= 75, f"{name}: {node.name} has {rows} rows"


def test_modules_say_what_they_are_about() -> None:
    for name, tree in parsed().items():
        assert Path(name).stem not in ("utils", "util", "helpers", "common", "misc"), name
        assert ast.get_docstring(tree), f"{name} has no docstring"


@pytest.mark.parametrize("path", sorted((SOURCE / "semantic").rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_package_says_what_is_in_it(path: Path) -> None:
    text = path.read_text("utf-8")
    parts = {item.stem for item in path.parent.iterdir() if item.suffix == ".py" or (item / "__init__.py").exists()}
    named = set(re.findall(r"``(\w+)``", text))
    assert named >= parts - {"__init__"}
    assert named <= parts


@pytest.mark.parametrize("folder", ["src", "docs", "tests", ".ci"])
def test_no_merge_is_left_half_done(folder: str) -> None:
    marks = re.compile(rf"^(?:{'<' * 7}|{'>' * 7}) ", re.MULTILINE)  # put together, so that this file has none
    texts = (path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".toml", ".txt", ""))
    found = [path for path in texts if path.is_file() and marks.search(path.read_bytes().decode("utf-8", "replace"))]
    assert found == []


def test_nothing_is_left_to_be_done() -> None:
    # The scaffold of a rule asks its author to rewrite it; everything else is finished.
    assert [path for path in MODULES if re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text("utf-8"))] == []


def test_command_and_plugin_start_without_the_parser() -> None:
    code = (
        "import sys, mllint, mllint.flake8_plugin, mllint.cli\n"
        "heavy = {'libcst', 'rich', 'torch', 'paddle', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
