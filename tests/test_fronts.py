"""The command and flake8 report what the engine finds; nothing depends on the hash seed."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mllint
from harness.cases import FIXTURES, all_cases
from harness.dump import EVERY
from mllint.registry import all_rules

TESTS = Path(__file__).parent
# The package under test, wherever it was imported from.
PATHS = os.pathsep.join((str(TESTS), str(Path(mllint.__file__).parents[1])))
OPTIONAL = [rule.code for rule in all_rules() if not rule.is_default]
Place = tuple[str, int, int, str]


@pytest.fixture(scope="module")
def copied_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All fixtures, each folder with the mark that makes it a project of its own."""
    root = tmp_path_factory.mktemp("fronts") / "rules"
    shutil.copytree(FIXTURES, root)
    for case in all_cases():
        marked = root / case.root.relative_to(FIXTURES) / "pyproject.toml"
        marked.write_text("", encoding="utf-8")
    return root


def run(arguments: Sequence[str], folder: Path, **environment: str) -> str:
    """The standard output of a command that must succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def engine_places() -> list[Place]:
    """What the engine finds: path, row, column, code."""
    return sorted(
        (
            case.path.relative_to(FIXTURES).as_posix(),
            found.location.row,
            found.location.column,
            found.code,
        )
        for case in all_cases()
        for found in case.lint_for_newest().diagnostics
    )


def of_the_cases(places: Sequence[Place]) -> list[Place]:
    """The files beside a case that carry no marker are there to be looked at, not to be reported on."""
    cases = {case.path.relative_to(FIXTURES).as_posix() for case in all_cases()}
    return sorted(place for place in places if place[0] in cases)


@pytest.mark.slow
def test_command_reports_the_same(copied_fixtures: Path, engine_places: list[Place]) -> None:
    options = ["--isolated", "--no-cache", "--exit-zero", "--output-format", "json"]
    selected = ["--select", ",".join(["ML", *OPTIONAL])]
    output = run(["-m", "mllint", "check", *options, *selected, "."], copied_fixtures)
    found = [
        (
            Path(item["filename"]).relative_to(copied_fixtures).as_posix(),
            item["location"]["row"],
            item["location"]["column"],
            item["code"],
        )
        for item in json.loads(output)
    ]
    assert of_the_cases(found) == engine_places


@pytest.mark.slow
def test_flake8_reports_the_same(copied_fixtures: Path, engine_places: list[Place]) -> None:
    selected = f"--select={','.join(['ML', *OPTIONAL])}"
    output = run(["-m", "flake8", "--isolated", "--exit-zero", selected, "."], copied_fixtures)
    found = []
    for line in output.splitlines():
        match = re.fullmatch(r"(.+?):(\d+):(\d+): (ML\d{3}) .+", line)
        assert match is not None, line
        path, row, column, code = match.groups()
        found.append((Path(path).as_posix(), int(row), int(column), code))
    assert of_the_cases(found) == engine_places


@pytest.mark.slow
def test_nothing_depends_on_the_hash_seed() -> None:
    def dumped(seed: str) -> str:
        return run(["-m", "harness.dump"], TESTS, PYTHONHASHSEED=seed, PYTHONPATH=PATHS)

    with ThreadPoolExecutor() as both:
        outputs = set(both.map(dumped, ("0", "4321")))
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == len(all_cases()[::EVERY])
