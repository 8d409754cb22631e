"""What one process of flake8 keeps from file to file: settings, and what is known of projects or was found before."""

import ast
import os
from functools import partial
from typing import TYPE_CHECKING

from mllint.configuration.files import Resolver
from mllint.configuration.settings import Overrides
from mllint.running import baseline
from mllint.running.cache import Cache, default_folder
from mllint.running.memory import AT_ONCE, Memory
from mllint.running.runner import Mode, Runner, Task, garbage_left_alone, set_aside
from mllint.semantic.files.project_root import ProjectRoots
from mllint.syntax.source import DecodingError, Source, bytes_of
from mllint.syntax.suppressions import Suppressions

if TYPE_CHECKING:
    from mllint.diagnostics import Diagnostic

_KEPT_NODES = 500_000
"""How many nodes the models may have that are kept from file to file: more than twice what the command keeps.

Beside what flake8 itself takes for a file every model that is made again counts, and 60 MiB do not.
"""
_OFF = frozenset({"", "0", "f", "false", "n", "no", "off"})
"""What click takes for no, when the command reads ``MLLINT_NO_CACHE``."""


class Session:
    """The checks of one process with one set of options."""

    def __init__(
        self, selectors: tuple[str, ...], torch_version: str | None, paddle_version: str | None, uses_cache: bool
    ) -> None:
        """``selectors`` are selected besides what the settings select; the versions hold where there are any."""
        self.process = os.getpid()
        overrides = Overrides(
            extend_select=_known(selectors),
            torch_version=torch_version,
            paddle_version=paddle_version,
        )
        self._resolver = Resolver(overrides)
        self._baseline = baseline.load(None)
        self._roots = ProjectRoots()
        self._memory = _memory() if uses_cache else None
        self._runner = Runner(Mode(), remembers=self._memory is not None, kept_nodes=_KEPT_NODES)
        self._unlearned = 0

    def diagnostics(self, filename: str, text: str, tree: ast.AST) -> tuple["Diagnostic", ...]:
        """The findings in a file that are not accepted; ``text`` is what flake8 shows of it.

        Raises:
            ConfigurationError: the settings of the file's folder cannot be read.
            UnknownSelectorError: a selector of the settings names no rule.
        """
        folder = os.path.dirname(os.path.abspath(filename))
        settings = self._resolver.for_folder(folder).settings
        saved = _content_of(filename)
        data = _original_bytes(filename, text, saved)
        task = Task(filename, settings, data, in_project=os.path.isfile(filename), noqa=False)
        # What an editor shows before it is saved is not worth keeping.
        found = self._remembered(task, data) if data is saved else None
        if found is None:
            found = self._found(task, tree)
        return self._without_accepted(found, filename, data)

    def _remembered(self, task: Task, data: bytes) -> tuple["Diagnostic", ...] | None:
        if self._memory is None:
            return None
        outcome = self._memory.outcome(task, data, str(self._roots.of(task.path)))
        return None if outcome is None else outcome.result.diagnostics

    def _found(self, task: Task, tree: ast.AST) -> tuple["Diagnostic", ...]:
        with garbage_left_alone():
            outcome = self._runner.outcome(task, tree)
            set_aside(len(task.data or b""))
        if self._memory is not None:
            self._memory.see(outcome)
            self._unlearned += 1
            if self._unlearned == AT_ONCE:
                self._learn(self._memory)
        return outcome.result.diagnostics

    def _learn(self, memory: Memory) -> None:
        memory.learn(self._runner.known())
        self._unlearned = 0

    def close(self) -> None:
        """Write down what was learned."""
        if self._memory is not None:
            self._learn(self._memory)
            self._memory.close()

    def _without_accepted(
        self, diagnostics: tuple["Diagnostic", ...], filename: str, data: bytes
    ) -> tuple["Diagnostic", ...]:
        """The findings without those that the list of accepted findings counts.

        It does not count what a ``noqa`` silences. That is left to flake8, which may have been told to show it.
        """
        accepted = self._baseline
        if not diagnostics or accepted.key_of(filename) not in accepted.counts:
            return diagnostics
        try:
            suppressions = Suppressions(Source.from_bytes(data, filename))
        except DecodingError:
            return diagnostics
        counted = [item for item in diagnostics if not suppressions.silences(item.code, item.noqa_row, item.name)]
        hidden = accepted.hidden_codes(filename, counted)
        return tuple(item for item in diagnostics if item not in counted or item.code not in hidden)


def _known(selectors: tuple[str, ...]) -> tuple[str, ...]:
    """Those that name rules: flake8 takes any code for granted, so must the plugin."""
    if not selectors:
        return ()
    from mllint.registry import is_selector

    return tuple(filter(is_selector, selectors))


def _memory() -> Memory | None:
    """What was found before, unless the environment says that nobody is to ask."""
    if os.environ.get("MLLINT_NO_CACHE", "").strip().lower() not in _OFF:
        return None
    folder = os.environ.get("MLLINT_CACHE_DIR") or default_folder()
    return Memory(partial(Cache, folder), Mode())


def _original_bytes(filename: str, text: str, saved: bytes | None) -> bytes:
    """The bytes that the file consists of, or could consist of; ``saved`` is what the disk holds under its name.

    ``saved`` itself where that is what flake8 shows, whatever it made of line ends: other files of the project rest on
    these bytes. flake8 reads a file that its encoding does not fit as Latin-1 and says nothing. To the core such a file
    is shown as it is, so that the finding about it is not lost.
    """
    data = bytes_of(text)
    if saved is None:
        return data
    shown = _unified(saved)
    if data in (saved, shown.removeprefix(b"\xef\xbb\xbf")):
        return saved
    if not text.isascii() and max(text) <= "\xff" and shown == text.encode("latin-1"):
        try:
            is_as_saved = not Source.from_bytes(saved, filename).is_writable
        except DecodingError:
            is_as_saved = True
        return saved if is_as_saved else data
    return data


def _content_of(filename: str) -> bytes | None:
    try:
        with open(filename, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _unified(data: bytes) -> bytes:
    """The bytes with the line ends that flake8 makes of theirs."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
