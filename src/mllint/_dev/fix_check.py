"""What the fixes of a file promise, checked without trusting the fixer.

1. A file that parsed still parses.
2. A second run changes nothing.
3. The bytes that differ are those of the edits that were reported as applied.
4. The fixed findings are gone, and no other finding came.
"""

import ast
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from mllint import engine, fixer
from mllint.diagnostics import Diagnostic, Edit
from mllint.registry import RuleSet
from mllint.semantic.project import Project
from mllint.syntax.source import Source


@dataclass(frozen=True, slots=True)
class FixCheck:
    """How many fixes were applied, by rule, and what is wrong with the outcome."""

    applied: tuple[tuple[str, int], ...]
    problems: tuple[str, ...]
    refused: str | None = None


def check_fixes(data: bytes, path: str, rules: RuleSet, project: Project | None, *, unsafe: bool = False) -> FixCheck:
    """Fix the bytes of one file in memory and check the promises."""
    fixed = fixer.fix(data, path, rules, unsafe=unsafe, project=project)
    applied = Counter(diagnostic.code for diagnostic in fixed.applied)
    problems = []
    if fixed.data == data:
        if fixed.applied:
            problems.append("fixes were reported as applied, but nothing changed")
        return FixCheck(tuple(sorted(applied.items())), tuple(problems), fixed.refused)
    if _parses(data, path) and not _parses(fixed.data, path):
        problems.append("does not parse after the fix")
    again = fixer.fix(fixed.data, path, rules, unsafe=unsafe, project=project)
    if again.data != fixed.data:
        problems.append("a second run changes the file again")
    if replay(Source.from_bytes(data, path), fixed.applied, fixed.rounds) != fixed.data:
        problems.append("bytes outside the reported edits changed")
    before = Counter(d.code for d in engine.lint(data, path, rules, project=project).diagnostics)
    after = Counter(d.code for d in engine.lint(fixed.data, path, rules, project=project).diagnostics)
    for code, count in sorted((after - before).items()):
        problems.append(f"{count} more {code} after the fix")
    # What a later round mends may have shown only when the first was done.
    first = Counter(diagnostic.code for diagnostic in fixed.applied[: fixed.rounds[0]])
    for code, count in sorted(first.items()):
        if after[code] > before[code] - count:
            problems.append(f"{code}: {count} fixed, {before[code]} before, {after[code]} after")
    return FixCheck(tuple(sorted(applied.items())), tuple(problems), fixed.refused)


def replay(source: Source, applied: Sequence[Diagnostic], rounds: Sequence[int]) -> bytes:
    """The file's bytes after the applied fixes, worked out from the reported edits alone.

    The fixer works in rounds, and the edits of a round count from the text it began with.
    """
    text = source.text
    remaining = iter(applied)
    for count in rounds:
        fixes = [found.fix for found in islice(remaining, count) if found.fix is not None]
        text = apply_edits(text, [edit for fix in fixes for edit in fix.edits])
    return source.encode(text)


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits applied; an edit that occurs twice (an import) counts once."""
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.content + text[edit.end :]
    return text


def _parses(data: bytes, path: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data, path)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
