"""From files to outcomes: read, lint, fix, one file after the other, and written at the end.

The engine and the rules (and with them LibCST) are imported only for a file that passes the first
gate: ``mllint`` on a file without a framework starts in a tenth of the time.
"""

import ast
import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mllint.configuration.patterns import Patterns
from mllint.configuration.policy import policy_of
from mllint.configuration.requirements import Requirements
from mllint.configuration.settings import Settings, parse_version
from mllint.diagnostics import Diagnostic, Location, Result, Severity, Status
from mllint.running.discovery import Unreadable, reason_of
from mllint.running.stack import with_room
from mllint.running.writer import WriteError, write
from mllint.selectors import UnknownSelectorError, best
from mllint.semantic.files.disk import content_digest
from mllint.semantic.files.project_root import ProjectRoots
from mllint.semantic.files.reads import Asker, Facts
from mllint.syntax.gate import may_concern_rules

if TYPE_CHECKING:
    from mllint.context import Targets
    from mllint.fixer import FixResult
    from mllint.registry import RuleSet
    from mllint.semantic.project import Project


_GARBAGE = 3_000_000
"""How many objects may be left over from files before cyclic garbage is looked for."""


class Mode(msgspec.Struct, frozen=True):
    """What is done with each file."""

    fixes: bool = False
    unsafe: bool = False


class Task(msgspec.Struct, frozen=True):
    """One file to do; picklable.

    ``data`` is its content where that does not come from the disk (standard input).
    ``in_project``: sibling files may be read, and where the settings name no framework version, the
    project's dependencies do. Without ``noqa`` only mllint's own suppression comments count, for a
    front that reads the others itself; it does not fix.
    """

    path: str
    settings: Settings
    data: bytes | None = None
    in_project: bool = True
    noqa: bool = True


class Known(msgspec.Struct, frozen=True):
    """What the results of some files of one project rest on; picklable."""

    root: str
    facts: tuple[Facts, ...]
    files: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Path, digest of the content, and which of ``facts`` its result rests on."""


class Change(msgspec.Struct, frozen=True):
    """What a fix makes of a file."""

    before: bytes
    after: bytes


class Outcome(msgspec.Struct, frozen=True):
    """What came of one file; picklable.

    ``result`` is what remains to be said, ``source`` the bytes that it is said about (empty where
    there is nothing to say), ``fixed`` what was mended. ``problem`` says why fixes were not made, or
    what went wrong on the way; ``write_failed`` that they were made but are not on the disk.
    ``unfixed`` is what there was to say before fixes were tried.
    """

    result: Result
    source: bytes = b""
    fixed: tuple[Diagnostic, ...] = ()
    change: Change | None = None
    problem: str | None = None
    write_failed: bool = False
    unfixed: Result | None = None


class Runner:
    """Does tasks one after the other, keeping what it learned about their projects.

    It holds nothing that a process of its own could not hold as well, so tasks may be spread over
    several runners.
    """

    def __init__(self, mode: Mode, *, remembers: bool = False, kept_nodes: int | None = None) -> None:
        """``remembers``: what the results rest on is kept for ``known``.

        ``kept_nodes`` is how many nodes the models of files may have that are kept for others, where not the usual
        number.
        """
        self._mode = mode
        self._kept_nodes = kept_nodes
        self._remembers = remembers
        self._checked: list[tuple[str, str]] = []
        self._known: list[Known] = []
        self._roots = ProjectRoots()
        self._requirements = Requirements()
        self._open: list[Project] = []

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        """The outcomes of the tasks, in their order.

        While it runs, cyclic garbage is looked for between files only: a tree is large, has no
        cycles, and would be searched again and again while it grows.
        """
        with garbage_left_alone():
            for task in tasks:
                yield self.outcome(task)
                if gc.get_count()[0] > _GARBAGE:
                    gc.collect()

    def outcome(self, task: Task, python_tree: ast.AST | None = None) -> Outcome:
        """Do one file; nothing that the file or the disk holds makes it raise.

        ``python_tree`` is the file's ``ast``, where the caller has it already.
        """
        data = task.data
        if data is None:
            try:
                data = Path(task.path).read_bytes()
            except OSError as error:
                return Outcome(unreadable(Unreadable(task.path, reason_of(error))))
        if not may_concern_rules(data, task.path):
            return Outcome(Result(task.path, Status.SKIPPED))
        project, settings = self._surroundings(task)
        result = lint(data, task.path, settings, project, noqa=task.noqa, python_tree=python_tree)
        if self._remembers and project is not None:
            self._checked.append((task.path, content_digest(data)))
        if not self._mode.fixes or not can_be_fixed(result, unsafe=self._mode.unsafe):
            return Outcome(result, data if result.diagnostics else b"")
        return self._fixed(data, result, settings, project)

    def _fixed(self, data: bytes, result: Result, settings: Settings, project: "Project | None") -> Outcome:
        """The outcome of a file with findings that can be mended.

        What is tried on the way is seen by a project of its own, so that every other file is judged beside the files
        as they are on the disk, whichever of them come first.
        """
        apart = None if project is None else type(project)(project.root)
        fixed = fix(data, result, settings, apart, unsafe=self._mode.unsafe)
        if apart is not None:
            apart.drop_models()
        is_changed = fixed.data != data
        return Outcome(
            fixed.result,
            fixed.data if fixed.result.diagnostics else b"",
            fixed.applied,
            Change(data, fixed.data) if is_changed else None,
            fixed.refused,
            unfixed=result,
        )

    def known(self) -> list[Known]:
        """What the results since the last call rest on."""
        self._gather()
        found, self._known = self._known, []
        return found

    def _gather(self) -> None:
        """Note what the results of files of the project at hand rest on."""
        if not self._checked or not self._open:
            return
        project = self._open[-1]
        disk, reads = project.disk, project.reads
        numbers: dict[Asker, int] = {}
        files = []
        for path, digest in self._checked:
            askers = reads.askers(str(disk.real(path)))
            files.append((path, digest, tuple(numbers.setdefault(asker, len(numbers)) for asker in askers)))
        facts = tuple(reads.facts(asker) for asker in numbers)
        self._known.append(Known(str(project.root), facts, tuple(files)))
        self._checked = []

    def _surroundings(self, task: Task) -> "tuple[Project | None, Settings]":
        """The project of a file, and the settings with the versions that the project asks for.

        Tasks come sorted by path: of all projects only the last one is kept, and those that it lies in.
        """
        if not task.in_project:
            return None, task.settings
        project = self._opened(self._roots.of(task.path))
        return project, with_versions(task.settings, self._requirements, task.path, str(project.root))

    def _opened(self, root: Path) -> "Project":
        """The project of a root, from before if a file of it, or of one inside it, was the last."""
        if self._open and self._open[-1].root == root:
            return self._open[-1]
        self._gather()
        while self._open and not root.is_relative_to(self._open[-1].root):
            self._open.pop().drop_models()
        if not self._open or self._open[-1].root != root:
            self._open.append(self._project(root))
        return self._open[-1]

    def _project(self, root: Path) -> "Project":
        """A new project, for the files of a root."""
        from mllint.semantic.project import Project

        if self._open:
            return self._open[-1].inner(root)
        return Project(root) if self._kept_nodes is None else Project(root, self._kept_nodes)


def with_versions(settings: Settings, requirements: Requirements, path: str, root: str) -> Settings:
    """The settings with the framework versions that they do not name themselves, but the project of a file does."""
    lowest = requirements.of(path, root)
    below = None if settings.torch_version else requirements.below(path, root).get("torch")
    return msgspec.structs.replace(
        settings,
        torch_version=settings.torch_version or lowest.get("torch"),
        torch_below=below,
        paddle_version=settings.paddle_version or lowest.get("paddle"),
    )


def can_be_fixed(result: Result, *, unsafe: bool) -> bool:
    """Whether a finding of the result has a fix that may be applied."""
    return any(
        item.fix is not None and item.fix.edits and item.fix.applicability.allows(unsafe) for item in result.diagnostics
    )


def written(outcome: Outcome) -> Outcome:
    """The outcome once its change is on the disk; where it could not be written, that of the file as it was.

    Files are written when all have been looked at: none is judged by what was made of another.
    """
    if outcome.change is None:
        return outcome
    try:
        write(outcome.result.path, outcome.change.after, expected=outcome.change.before)
    except WriteError as error:
        unfixed = outcome.unfixed or outcome.result
        return Outcome(unfixed, outcome.change.before, problem=str(error), write_failed=True)
    return outcome


def followed(first: Outcome, second: Outcome) -> Outcome:
    """What came of a file that was done twice, the second time with what the first one had made of it."""
    changes = [outcome.change for outcome in (first, second) if outcome.change is not None]
    return msgspec.structs.replace(
        second,
        fixed=(*first.fixed, *second.fixed),
        change=Change(changes[0].before, changes[-1].after) if changes else None,
        problem=second.problem or first.problem,
        write_failed=first.write_failed or second.write_failed,
        unfixed=first.unfixed or second.unfixed,
    )


def set_aside(size: int) -> None:
    """Take what is kept of the files so far out of the collector's sight; ``size`` is the last one's, in characters.

    For a process of somebody else's, who goes on collecting: models are large, and would be searched each time. To be
    called while the collector is off: it searches what is new as soon as it is on.
    """
    global _size_aside
    _size_aside += size
    if _size_aside > _SIZE_BETWEEN_COLLECTIONS:
        _size_aside = 0
        gc.unfreeze()
        gc.collect()
    gc.freeze()


_size_aside = 0
_SIZE_BETWEEN_COLLECTIONS = 20_000_000


@contextmanager
def garbage_left_alone() -> Iterator[None]:
    """Keep the collector from searching trees again and again while they grow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@with_room
def lint(
    data: bytes,
    path: str,
    settings: Settings,
    project: "Project | None",
    *,
    noqa: bool = True,
    python_tree: ast.AST | None = None,
) -> Result:
    """The findings in a file's bytes. Without ``noqa`` such comments are not read.

    Raises:
        UnknownSelectorError: a selector of the settings names no rule.
    """
    from mllint import engine

    rules, targets = chosen_rules(settings, path), _targets(settings)
    result = engine.lint(data, path, rules, targets=targets, project=project, noqa=noqa, python_tree=python_tree)
    return policy_of(settings).judge(result)


def fix(data: bytes, found: Result, settings: Settings, project: "Project | None", *, unsafe: bool) -> "FixResult":
    """A file's bytes with the findings in them mended.

    Raises:
        UnknownSelectorError: a selector of the settings names no rule.
    """
    from mllint import fixer

    rules, targets = chosen_rules(settings, found.path), _targets(settings)
    judge = policy_of(settings).judge
    return fixer.fix(data, found.path, rules, unsafe=unsafe, targets=targets, project=project, judge=judge, found=found)


def unreadable(problem: Unreadable) -> Result:
    """The result of a path that could not be read: one ML003."""
    start = Location(1, 1)
    diagnostic = Diagnostic(
        code="ML003",
        name="unreadable-file",
        message=f"cannot be read: {problem.reason}",
        help="name a file that exists and may be read; the other files were checked",
        path=problem.path,
        location=start,
        end_location=start,
        noqa_row=1,
        severity=Severity.ERROR,
    )
    return Result(problem.path, Status.UNREADABLE, (diagnostic,))


def chosen_rules(settings: Settings, path: str) -> "RuleSet":
    """The rules that hold for a file.

    Raises:
        UnknownSelectorError: a selector of the settings names no rule.
    """
    return _rule_set((*settings.select, *settings.extend_select), settings.ignore, _ignored_for(settings, path))


@lru_cache(maxsize=256)
def _rule_set(select: tuple[str, ...], ignore: tuple[str, ...], ignored_here: tuple[str, ...]) -> "RuleSet":
    from mllint import registry

    chosen = registry.select(select, ignore)
    if not ignored_here:
        return chosen
    for selector in ignored_here:
        if not registry.is_selector(selector):
            raise UnknownSelectorError(selector)
    # Unlike `ignore`, what is ignored for a file holds however exactly a rule was selected.
    return registry.RuleSet(
        (rule for rule in chosen.rules if not any(registry.matches(rule, selector) for selector in ignored_here)),
        checks_suppressions=chosen.checks_suppressions and not best(ignored_here, *registry.UNUSED_SUPPRESSION),
    )


def _ignored_for(settings: Settings, path: str) -> tuple[str, ...]:
    """The selectors that ``per_file_ignores`` holds for a path."""
    if not settings.per_file_ignores:
        return ()
    if settings.pattern_root:
        path = os.path.relpath(path, settings.pattern_root)
    path = path.replace(os.sep, "/").removeprefix("./")
    while path.startswith("../"):
        path = path.removeprefix("../")
    ignored: list[str] = []
    for pattern, selectors in settings.per_file_ignores:
        matched = Patterns((pattern.removeprefix("!"),)).verdict(path.lstrip("/"))
        if bool(matched) is not pattern.startswith("!"):
            ignored += selectors
    return tuple(dict.fromkeys(ignored))


def _targets(settings: Settings) -> "Targets":
    from mllint.context import Targets

    versions = (settings.torch_version, settings.paddle_version, settings.torch_below)
    return Targets(*(None if version is None else parse_version(version) for version in versions))
