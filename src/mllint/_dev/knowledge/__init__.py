"""Collect the facts about an installed framework into ``mllint/knowledge/<framework>.txt``.

``python -m mllint._dev knowledge torch|paddle [--check]`` runs in an interpreter that has the framework; it imports
nothing else but the standard library and ``mllint.knowledge.schema``, so that mllint's own dependencies need not be
installed there.
"""

import argparse
import difflib
import importlib
import sys
from pathlib import Path

_KNOWLEDGE = Path(__file__).parents[2] / "knowledge"


def main(arguments: list[str]) -> int:
    """Write the tables of one framework; with ``--check`` only say whether they differ (exit code 1)."""
    parser = argparse.ArgumentParser(prog="python -m mllint._dev knowledge", description=__doc__)
    parser.add_argument("framework", choices=("torch", "paddle", "neighbours"))
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    path = _KNOWLEDGE / ("neighbour_tables.py" if options.framework == "neighbours" else f"{options.framework}.txt")
    text = _render(options.framework)
    if not options.check:
        path.write_text(text, encoding="utf-8")
        return 0
    committed = path.read_text(encoding="utf-8")
    difference = difflib.unified_diff(
        committed.splitlines(keepends=True), text.splitlines(keepends=True), path.name, "installed framework", n=0
    )
    sys.stdout.writelines(difference)
    return int(committed != text)


def _render(what: str) -> str:
    text: str
    if what == "neighbours":
        text = importlib.import_module("mllint._dev.knowledge.neighbours").render()
    else:
        text = importlib.import_module("mllint._dev.knowledge.tables").render(what)
    return text
