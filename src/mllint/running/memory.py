"""What is remembered of earlier runs while files are checked: the cache, with what one run asks it and tells it.

Whoever checks files asks here first, and tells what came of those that were not known: ``batch`` for the command, which
writes for all of its processes; ``flake8_plugin`` in each process that flake8 starts.
"""

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from mllint.configuration.requirements import Requirements
from mllint.configuration.settings import Settings
from mllint.diagnostics import Result
from mllint.running.runner import Known, Mode, Outcome, Task, can_be_fixed, with_versions

if TYPE_CHECKING:
    from mllint.running.cache import Cache

AT_ONCE = 50
"""After so many files what was learned is written down."""


class Memory:
    """What the cache knows of the tasks of one run, and what it will be told."""

    def __init__(self, cache: "Callable[[], Cache]", mode: Mode) -> None:
        self._open = cache
        self._mode = mode
        self._requirements = Requirements()
        self._settings: dict[tuple[Settings, bool], bytes] = {}
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
        """The outcome of a file, if it was checked before and nothing has changed; ``data`` is what the disk holds."""
        from mllint.running.cache import key_of, renamed
        from mllint.semantic.files.disk import content_digest

        if not task.in_project:
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
        from mllint.running.cache import settings_digest

        settings = with_versions(task.settings, self._requirements, task.path, root)
        of = (settings, task.noqa)
        found = self._settings.get(of)
        if found is None:
            found = self._settings[of] = settings_digest(settings, noqa=task.noqa)
        return found

    def see(self, outcome: Outcome) -> None:
        """Take note of an outcome that was asked for; what it rests on is learned later."""
        result = outcome.unfixed or outcome.result
        if result.path in self._asked:
            self._seen[result.path] = result

    def learn(self, known: list[Known]) -> None:
        """Keep results that were seen, now that it is known what they rest on."""
        from mllint.running.cache import Entry

        for project in known:
            entries = []
            for path, content, numbers in project.files:
                key, root = self._asked.pop(path, (b"", ""))
                result = self._seen.pop(path, None)
                if result is not None and root == project.root:
                    entries.append(Entry(key, content, numbers, result))
            self._cache.add(project.root, project.facts, entries)
