"""The shipped examples show what they are there to show."""

import ast
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mllint.cli import cli

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(EXAMPLES.rglob("*.py"))


def findings(folder: Path, *options: str) -> list[tuple[str, str]]:
    """File and code of every finding."""
    result = CliRunner().invoke(cli, ["--isolated", "--output-format", "json", *options, str(folder)])
    return [(Path(entry["filename"]).name, entry["code"]) for entry in json.loads(result.stdout)]


def test_they_show_rules_of_every_topic_in_both_frameworks() -> None:
    found = findings(EXAMPLES)
    codes = {code for _, code in found}
    assert len(codes) >= 7
    assert {code[:3] for code in codes} >= {"ML1", "ML2", "ML4", "ML5"}
    assert len({code for name, code in found if name == "forecast_paddle.py"}) >= 3
    assert {name for name, _ in found} == {"train.py", "evaluate.py", "forecast_paddle.py"}


def test_they_can_be_mended(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    before = findings(EXAMPLES)
    # What is mended in one file may decide about another file that came before it: the second run settles that.
    findings(tmp_path / "examples", "--fix")
    after = findings(tmp_path / "examples", "--fix")
    assert len(before) - len(after) >= 7
    assert findings(tmp_path / "examples", "--fix") == after
    for path in (tmp_path / "examples").rglob("*.py"):
        ast.parse(path.read_text("utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_they_say_what_they_are(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))
