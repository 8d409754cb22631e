"""How long each phase of linting takes, measured from inside one run.

Seconds are seconds of the processor, and exclusive: what a phase calls into is counted there.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from mllint import context, engine, registry
from mllint.diagnostics import Status
from mllint.output.style import Style
from mllint.output.text import concise
from mllint.semantic import project as siblings
from mllint.syntax.source import Source

PHASES = ("read", "gate", "parse", "siblings", "walk", "model", "rules", "places", "output")
"""In the order in which a file goes through them. ``siblings``: parsing what a file imports."""

_STEPS: tuple[tuple[Any, str, str], ...] = (
    (registry.RuleSet, "may_fire", "gate"),
    (Source, "from_bytes", "parse"),
    (engine, "parse", "parse"),
    (engine, "Tree", "walk"),
    (engine, "Model", "model"),
    (engine, "Context", "model"),
    (engine, "_place", "places"),
    (siblings, "parse", "siblings"),
    (siblings, "Tree", "siblings"),
    *((context.Context, name, "model") for name in ("value", "qualified_name", "library_name", "bindings")),
    *((context.Context, name, "model") for name in ("function", "class_")),
)


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of each phase over all files, and what they were spent on."""

    seconds: dict[str, float]
    analysed: tuple[str, ...]
    """The files that came past the gate and were parsed."""
    findings: int

    @property
    def total(self) -> float:
        """All phases together."""
        return sum(self.seconds.values())


class Stopwatch:
    """Seconds by phase; at any moment one phase runs, the innermost that was entered."""

    def __init__(self, phases: tuple[str, ...]) -> None:
        self.seconds = dict.fromkeys(phases, 0.0)
        self._running: list[str] = []
        self._since = 0.0

    @contextlib.contextmanager
    def phase(self, name: str) -> Any:
        """Let a phase run for the block."""
        self._enter(name)
        try:
            yield
        finally:
            self._leave()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, as a phase."""

        def call(*arguments: Any, **named: Any) -> Any:
            self._enter(name)
            try:
                return function(*arguments, **named)
            finally:
                self._leave()

        return call

    def _enter(self, name: str) -> None:
        self._charge()
        self._running.append(name)

    def _leave(self) -> None:
        self._charge()
        self._running.pop()

    def _charge(self) -> None:
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


def measure(paths: list[str], select: tuple[str, ...]) -> Phases:
    """Lint every file as the command does, with a clock around each step of the engine."""
    watch = Stopwatch(PHASES)
    rules = registry.select(select, ())
    rules.may_fire(b"")  # what is prepared once
    projects: dict[Path, siblings.Project] = {}
    analysed = []
    findings = 0
    with contextlib.ExitStack() as stack:
        for owner, name, phase in _STEPS:
            step = watch.timed(phase, getattr(owner, name))
            # A class method is looked up bound already: it must not be bound again.
            replacement = staticmethod(step) if owner is Source else step
            stack.enter_context(mock.patch.object(owner, name, replacement))
        for path in paths:
            with watch.phase("read"):
                data = Path(path).read_bytes()
            with watch.phase("rules"):
                project = siblings.Project.containing(Path(path))
                project = projects.setdefault(project.root, project)
                result = engine.lint(data, path, rules, project=project)
            with watch.phase("output"):
                findings += len(list(concise(result.diagnostics, Style(), unsafe=False)))
            if result.status in (Status.OK, Status.INTERNAL_ERROR):
                analysed.append(path)
    return Phases(watch.seconds, tuple(analysed), findings)
