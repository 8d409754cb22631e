"""mllint's own code is clean: lint, format, types, and mllint itself on it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = ["src", "tests"]


def check(arguments: Sequence[str]) -> str:
    """Run a tool at the project's root; its output. It must succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ruff_finds_nothing() -> None:
    check(["-m", "ruff", "check", *CODE, "docs"])


def test_ruff_would_not_change_the_format() -> None:
    check(["-m", "ruff", "format", "--check", *CODE, "docs"])


def test_types_are_right() -> None:
    assert "Success" in check(["-m", "mypy", "--strict"])


def test_mllint_finds_nothing_in_itself() -> None:
    fixtures = ["--config", 'extend-exclude = ["fixtures"]']
    assert not check(["-m", "mllint", "check", "--no-cache", "--quiet", *fixtures, *CODE])


@pytest.mark.slow
def test_flake8_with_mllint_finds_nothing() -> None:
    assert not check(["-m", "flake8", "--isolated", "--select=ML", "--exclude=fixtures", *CODE])
