"""The outcomes of many files, in their order: which of them have anything to do, and how many processes do it."""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING

from mllint.diagnostics import Result, Status
from mllint.discovery import Unreadable, reason_of
from mllint.requirements import lower_bounds
from mllint.runner import (
    Known,
    Mode,
    Outcome,
    Runner,
    Task,
    can_be_fixed,
    unreadable,
    with_versions,
)
from mllint.semantic.project_root import ProjectRoots
from mllint.settings import Settings
from mllint.shares import Share, processes_for
from mllint.syntax.gate import may_concern_rules

if TYPE_CHECKING:
    from mllint.cache import Cache

_AT_ONCE = 50
"""After so many files what was learned is written down."""


def outcomes(
    tasks: Sequence[Task],
    mode: Mode,
    *,
    jobs: int | None = None,
    cache: "Callable[[], Cache] | None" = None,
) -> Iterator[Outcome]:
    """The outcome of each task, in the order of the tasks, the same for any number of ``jobs`` and any ``cache``.

    ``jobs`` is how many processes may work; 1 is this one alone, ``None`` as many as pay. The cache, opened where there
    is a use for it, is asked first, and told what is found.
    """
    if jobs == 1 and cache is None:
        yield from Runner(mode).run(tasks)
        return
    memory = None if cache is None else _Memory(cache, mode)
    known, shares = _looked_at(tasks, memory)
    if memory is None:
        yield from _in_order(len(tasks), known, shares, mode, jobs, None)
    else:
        with closing(memory):
            yield from _in_order(len(tasks), known, shares, mode, jobs, memory)


def _in_order(
    count: int,
    known: dict[int, Outcome],
    shares: Sequence[Share],
    mode: Mode,
    jobs: int | None,
    memory: "_Memory | None",
) -> Iterator[Outcome]:
    """All outcomes: those that are known, and those of the shares."""
    processes = processes_for(shares, jobs)
    if memory is not None and shares:
        memory.pause()
    with closing(_done(shares, mode, processes, None if memory is None else memory.learn)) as done:
        for index in range(count):
            while index not in known:
                found, outcome = next(done)
                known[found] = outcome
                if memory is not None:
                    memory.see(outcome)
            yield known.pop(index)
        # What was learned last is told after the last outcome.
        next(done, None)


Learn = Callable[[list[Known]], None]


def _done(
    shares: Sequence[Share], mode: Mode, processes: int, learn: Learn | None
) -> Generator[tuple[int, Outcome], None, None]:
    """The outcomes of the shares with their indices, in whatever order they come."""
    if not shares:
        return
    if processes > 1:
        from mllint.pool import spread

        yield from spread(shares, mode, processes, learn)
        return
    runner = Runner(mode, remembers=learn is not None)
    results = runner.run(share.task for share in shares)
    for count, (share, outcome) in enumerate(zip(shares, results, strict=True), start=1):
        yield share.index, outcome
        if learn is not None and count % _AT_ONCE == 0:
            learn(runner.known())
    if learn is not None:
        learn(runner.known())


def _looked_at(tasks: Sequence[Task], memory: "_Memory | None") -> tuple[dict[int, Outcome], list[Share]]:
    """The outcomes of the tasks that need no rule or are remembered, and what is left to do."""
    known: dict[int, Outcome] = {}
    shares: list[Share] = []
    roots = ProjectRoots()
    for index, task in enumerate(tasks):
        try:
            data = _content(task.path) if task.data is None else task.data
        except OSError as error:
            known[index] = Outcome(unreadable(Unreadable(task.path, reason_of(error))))
            continue
        if not may_concern_rules(data):
            known[index] = Outcome(Result(task.path, Status.SKIPPED))
            continue
        root = str(roots.of(task.path))
        remembered = None if memory is None else memory.outcome(task, data, root)
        if remembered is None:
            shares.append(Share(index, task, len(data), root))
        else:
            known[index] = remembered
    return known, shares


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class _Memory:
    """What the cache knows of the tasks of one run, and what it will be told."""

    def __init__(self, cache: "Callable[[], Cache]", mode: Mode) -> None:
        self._open = cache
        self._mode = mode
        self._versions: dict[str, Mapping[str, str]] = {}
        self._settings: dict[tuple[Settings, str, bool], bytes] = {}
        self._asked: dict[str, tuple[bytes, str]] = {}
        self._seen: dict[str, Result] = {}

    @cached_property
    def _cache(self) -> "Cache":
        return self._open()

    def pause(self) -> None:
        """Let go of the cache until there is something to be written."""
        if "_cache" in self.__dict__:
            self._cache.pause()

    def close(self) -> None:
        """Put the cache in order, if it was used."""
        if "_cache" in self.__dict__:
            self._cache.close()

    def outcome(self, task: Task, data: bytes, root: str) -> Outcome | None:
        """The outcome of a file, if it was checked before and nothing has changed."""
        from mllint.cache import key_of, renamed
        from mllint.semantic.disk import content_digest

        if task.data is not None or not task.in_project or not task.noqa:
            return None
        disk, content = self._cache.disk(root), content_digest(data)
        real = disk.real(task.path)
        disk.note_read(real, data)
        key = key_of(os.path.abspath(task.path), str(real), root, self._settings_digest(task, root))
        found = self._cache.find(key, content, root)
        if found is None or (self._mode.fixes and can_be_fixed(found, unsafe=self._mode.unsafe)):
            self._asked[task.path] = (key, root)
            return None
        return Outcome(renamed(found, task.path), data if found.diagnostics else b"")

    def _settings_digest(self, task: Task, root: str) -> bytes:
        from mllint.cache import settings_digest

        of = (task.settings, root, task.reads_requirements)
        found = self._settings.get(of)
        if found is None:
            settings = task.settings
            if task.reads_requirements:
                if root not in self._versions:
                    self._versions[root] = lower_bounds(root)
                settings = with_versions(settings, self._versions[root])
            found = self._settings[of] = settings_digest(settings)
        return found

    def see(self, outcome: Outcome) -> None:
        """Take note of an outcome; what it rests on is learned later."""
        result = outcome.unfixed or outcome.result
        self._seen[result.path] = result

    def learn(self, known: list[Known]) -> None:
        """Keep results that were seen, now that it is known what they rest on."""
        from mllint.cache import Entry

        for project in known:
            entries = []
            for path, content, numbers in project.files:
                key, root = self._asked.pop(path, (b"", ""))
                result = self._seen.pop(path, None)
                if result is not None and root == project.root:
                    entries.append(Entry(key, content, numbers, result))
            self._cache.add(project.root, project.facts, entries)
