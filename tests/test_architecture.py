"""The shape of the code: layers, sizes, and what a module may be called."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mllint"
MODULES = sorted(SOURCE.rglob("*.py"))
RULES = [path for path in MODULES if path.parent.parent == SOURCE / "rules"]

every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())


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


@every_module
def test_module_can_be_read_in_one_sitting(path: Path) -> None:
    limit = 150 if path in RULES and path.name != "__init__.py" else 500
    code = path.read_text("utf-8")
    docstring = ast.get_docstring(ast.parse(code), clean=False) or ""
    rows = code.count("\n")
    if path in RULES:
        rows -= docstring.count("\n")  # a rule's docstring is its page
    assert rows < limit, f"{rows} rows"


@every_module
def test_functions_fit_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            rows = (node.end_lineno or 0) - node.lineno + 1
            assert rows <= 75, f"{path.name}: {node.name} has {rows} rows"


@every_module
def test_module_says_what_it_is_about(path: Path) -> None:
    assert path.stem not in ("utils", "util", "helpers", "common", "misc")
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no docstring"


@pytest.mark.parametrize("path", sorted((SOURCE / "semantic").rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_package_says_what_is_in_it(path: Path) -> None:
    text = path.read_text("utf-8")
    parts = {item.stem for item in path.parent.iterdir() if item.suffix == ".py" or (item / "__init__.py").exists()}
    named = set(re.findall(r"``(\w+)``", text))
    assert named >= parts - {"__init__"}
    assert named <= parts


@every_module
def test_nothing_is_left_to_be_done(path: Path) -> None:
    text = path.read_text("utf-8")
    # The scaffold of a rule asks its author to rewrite it; everything else is finished.
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


def test_command_and_plugin_start_without_the_parser() -> None:
    code = (
        "import sys, mllint, mllint.flake8_plugin, mllint.cli\n"
        "heavy = {'libcst', 'rich', 'torch', 'paddle', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
