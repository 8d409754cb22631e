"""Fixtures of rules and the expectations written into them.

A case is ``tests/fixtures/rules/<rule-name>/<case>.py``, or a folder beside such files: a small
project, whose files with markers are cases and whose other files are what those import.

Markers are comments:

- ``# expect: ML101`` on the first row of a finding. Several codes are separated by commas. What fix
  is offered is the rule's own applicability unless a suffix says otherwise: ``ML101[unsafe]``,
  ``ML101[display]``, ``ML101[none]``. ``# expect[-2]: ML101`` speaks of the row two above, for
  rows that cannot carry a comment.
- ``# ok: ML101 why silence is right`` on a row that looks wrong and is not.
- ``# variants: off, because ...`` once in a file whose point is how a name is imported.
- ``# target-version: torch=2.1`` where the lowest version that a project allows is the point; it may
  stand in the examples of a rule's page too.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mllint.context import Targets
from mllint.diagnostics import Diagnostic, Result
from mllint.engine import lint
from mllint.registry import RuleSet, all_rules, select
from mllint.rule import Rule
from mllint.semantic.project import Project
from mllint.syntax.source import Source

FIXTURES = Path(__file__).parent.parent / "fixtures" / "rules"
SNAPSHOTS = Path(__file__).parent.parent / "snapshots" / "rules"

_EXPECT = re.compile(r"#\s*expect(?:\[([+-]\d+)\])?:\s*([^\s,]+(?:\s*,\s*[^\s,]+)*)")
_EXPECTED_CODE = re.compile(r"(ML\d{3})(?:\[(safe|unsafe|display|none)\])?")
_OK = re.compile(r"#\s*ok:\s*(ML\d{3})\s*(.*)")
_TARGET = re.compile(r"#\s*target-version:\s*(torch|paddle)=(\d+)\.(\d+)")
_BELOW = re.compile(r"#\s*target-version:\s*(torch)=[\d.]+,<(\d+)\.(\d+)")
_VARIANTS_OFF = re.compile(r"#\s*variants: off, because \S+")


class MarkerError(ValueError):
    """A marker that cannot be read."""


@dataclass(frozen=True, order=True)
class Expected:
    """One finding: its row, its code, and its fix (``None``: the rule's own applicability)."""

    row: int
    code: str
    fix: str | None


@dataclass(frozen=True)
class Case:
    """One fixture file."""

    rule_name: str
    path: Path
    root: Path
    """Where its siblings are looked up."""

    @property
    def name(self) -> str:
        """``case`` or ``project/case``, unique within the rule."""
        return self.path.relative_to(FIXTURES / self.rule_name).with_suffix("").as_posix()

    @property
    def id(self) -> str:
        """The name that pytest shows."""
        return f"{self.rule_name}/{self.name}"

    @property
    def rule(self) -> Rule:
        """The rule whose fixture this is."""
        return rules_by_name()[self.rule_name]

    @property
    def rules(self) -> RuleSet:
        """The rules that a case is linted with: all of them."""
        return whole_rule_set()

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.path.read_bytes()

    @property
    def markers(self) -> "Markers":
        """The expectations in the file."""
        return read_markers(self.data, str(self.path))

    @property
    def targets(self) -> Targets:
        """The target versions that the file asks for."""
        return read_targets(Source.from_bytes(self.data, str(self.path)).text)

    @property
    def stands_alone(self) -> bool:
        """Whether it is a file beside others that are no part of it, not a folder with siblings."""
        return self.root == FIXTURES / self.rule_name

    def project(self) -> Project:
        """The project of the file: the folder of a case of several files, else the file alone."""
        project = Project(self.root)
        if self.stands_alone:
            project.disk.files = (self.path,)
            project.disk.scripts = lambda _: (self.path,)  # type: ignore[method-assign]
        return project

    def lint(self, data: bytes | None = None, rules: RuleSet | None = None) -> Result:
        """Lint the file, or other bytes in its place, with the rules of the case or others."""
        if data is None and rules is None:
            return _lint_unchanged(self)
        return lint(
            self.data if data is None else data,
            str(self.path),
            rules or self.rules,
            targets=self.targets,
            project=self.project(),
        )

    def lint_for_newest(self) -> Result:
        """Lint the file as who knows of no target version does."""
        return lint(self.data, str(self.path), self.rules, project=self.project())


@dataclass(frozen=True)
class Markers:
    """All markers of one file."""

    expected: tuple[Expected, ...]
    ok: tuple[tuple[int, str], ...]
    variants_off: bool


@cache
def _lint_unchanged(case: Case) -> Result:
    return lint(case.data, str(case.path), case.rules, targets=case.targets, project=case.project())


def read_targets(text: str) -> Targets:
    """The target versions that comments in a text ask for."""
    lowest = {name: (int(major), int(minor)) for name, major, minor in _TARGET.findall(text)}
    below = {f"{name}_below": (int(major), int(minor)) for name, major, minor in _BELOW.findall(text)}
    return Targets(**lowest, **below)


@cache
def rules_by_name() -> dict[str, Rule]:
    """Every rule, by its name."""
    return {rule.name: rule for rule in all_rules()}


@cache
def whole_rule_set() -> RuleSet:
    """All rules, those too that are off by default: what a fixture shows does not hang on which ones are."""
    return select([rule.code for rule in all_rules()], ())


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case of every rule, in a stable order."""
    return tuple(sorted(_find_cases(), key=lambda case: case.id))


def _find_cases() -> Iterator[Case]:
    for folder in sorted(FIXTURES.iterdir()):
        if folder.is_dir() and folder.name in rules_by_name():
            for path in folder.rglob("*.py"):
                if path.parent == folder:
                    yield Case(folder.name, path, folder)
                elif has_markers(path.read_bytes(), str(path)):
                    project = folder / path.relative_to(folder).parts[0]
                    yield Case(folder.name, path, project)


def has_markers(data: bytes, path: str) -> bool:
    """Whether the file expects anything."""
    markers = read_markers(data, path)
    return bool(markers.expected or markers.ok)


@cache
def read_markers(data: bytes, path: str) -> Markers:
    """The markers in the comments of a file.

    Raises:
        MarkerError: a marker is malformed or an ``ok`` gives no reason.
    """
    expected: list[Expected] = []
    ok: list[tuple[int, str]] = []
    variants_off = False
    for row, comment in _comments(Source.from_bytes(data, path).text):
        place = f"{path}:{row}"
        if (match := _EXPECT.search(comment)) is not None:
            wanted_row = row + int(match[1] or 0)
            for part in re.split(r"\s*,\s*", match[2]):
                code = _EXPECTED_CODE.fullmatch(part)
                if code is None:
                    raise MarkerError(f"{place}: `{part}` is not `ML101` or `ML101[unsafe]`")
                expected.append(Expected(wanted_row, code[1], code[2]))
        elif re.search(r"#\s*expect\b", comment):
            raise MarkerError(f"{place}: an expectation is written `# expect: ML101`")
        if (match := _OK.search(comment)) is not None:
            if not match[2].strip():
                raise MarkerError(f"{place}: say after `# ok: {match[1]}` why silence is right")
            ok.append((row, match[1]))
        elif re.search(r"#\s*ok:", comment):
            raise MarkerError(f"{place}: silence is written `# ok: ML101 why`")
        variants_off = variants_off or _VARIANTS_OFF.search(comment) is not None
    return Markers(tuple(sorted(expected)), tuple(ok), variants_off)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def observed(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[int, str]]:
    """Findings as ``(row, code)``, sorted: what markers are compared with."""
    return sorted((found.location.row, found.code) for found in diagnostics)
