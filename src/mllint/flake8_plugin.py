"""mllint as a flake8 plugin: the same findings as the command line, in flake8's form.

What flake8 demands of a plugin, and where this module answers it:

- flake8 loses all results of all files when a plugin raises, and may hang with ``--jobs``. So
  nothing raises here (``Plugin.run``).
- What flake8 hands over is text whose line ends and byte-order mark are gone, under a name that
  need not be a file's (standard input, a notebook's cells). So the text decides, not the name.
- Class attributes set in ``parse_options`` are the only state that its worker processes see.
- flake8 starts in a tenth of a second. So LibCST, the rules and the settings are imported for the
  first file that mentions a framework, and not before.
- A user's ``ignore`` replaces every default one, so advice (ML9xx) cannot be kept off by flake8's
  own means. It is off here unless ``select`` or ``extend-select`` names it by more than the bare
  ``ML``, or ``[tool.mllint]`` does.
- ``noqa`` comments are flake8's business; only mllint's own are read here.
"""

import argparse
import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from mllint import __version__
from mllint.syntax.gate import may_concern_rules

if TYPE_CHECKING:
    from mllint.baseline import Baseline
    from mllint.configuration import Resolver
    from mllint.diagnostics import Diagnostic
    from mllint.runner import Runner

_VERSION = re.compile(r"\d+(\.\d+)*")


@dataclass(frozen=True, slots=True)
class _Choice:
    """What flake8's options say about mllint."""

    selectors: tuple[str, ...] = ()
    """Entries of ``select`` and ``extend-select`` that are longer than the bare ``ML``."""
    is_wanted: bool = True
    """Whether flake8 would show any finding of mllint."""
    torch_version: str | None = None
    paddle_version: str | None = None


class Plugin:
    """One file, as flake8 hands it over."""

    name: ClassVar[str] = "mllint"
    version: ClassVar[str] = __version__
    _choice: ClassVar[_Choice] = _Choice()

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        """``tree`` is the file as ``ast`` reads it: what flake8 has parsed need not be parsed again."""
        self._tree = tree
        self._filename = filename
        self._lines = lines

    @staticmethod
    def add_options(manager: Any) -> None:
        """Register ``--mllint-target-torch`` and ``--mllint-target-paddle``."""
        for framework in ("torch", "paddle"):
            manager.add_option(
                f"--mllint-target-{framework}",
                type=_version,
                metavar="VERSION",
                parse_from_config=True,
                help=f"Oldest {framework} that the code must run with, such as 2.6. "
                "(Default: what [tool.mllint] or the project's requirements say)",
            )

    @classmethod
    def parse_options(cls, manager: object, options: argparse.Namespace, args: object) -> None:
        """Keep what the options say, where worker processes find it."""
        selected = (*(options.select or ()), *(options.extend_select or ()))
        cls._choice = _Choice(
            selectors=tuple(code for code in selected if code.startswith("ML") and code != "ML"),
            is_wanted=options.select is None
            or any(code.startswith("ML") or "ML".startswith(code) for code in selected),
            torch_version=options.mllint_target_torch,
            paddle_version=options.mllint_target_paddle,
        )
        _surroundings.cache_clear()

    def run(self) -> Iterator[tuple[int, int, str, type["Plugin"]]]:
        """The findings as flake8 wants them: row, column from 0, code and message, and the plugin."""
        if not self._choice.is_wanted:
            return
        try:
            findings = self._findings()
        # flake8 would drop the results of every file, and with several jobs wait for ever, if any
        # exception left this method. The one thing to do about a bug in here is to say so.
        except Exception as error:  # noqa: BLE001
            findings = [(1, 0, _one_line(f"ML000 mllint failed on this file: {error!r}"))]
        for row, column, text in findings:
            # Some editors look the row up in their buffer without asking whether it is there.
            yield min(max(row, 1), max(len(self._lines), 1)), max(column, 0), text, type(self)

    def _findings(self) -> list[tuple[int, int, str]]:
        text = "".join(self._lines)
        if not may_concern_rules(text.encode("utf-8", "surrogatepass")):
            return []
        from mllint.registry import UnknownSelectorError
        from mllint.settings import ConfigurationError

        try:
            diagnostics = self._lint(_original_bytes(self._filename, text))
        except (ConfigurationError, UnknownSelectorError) as error:
            return [(1, 0, _one_line(f"ML000 {error}"))]
        return [
            (item.location.row, item.location.column - 1, _one_line(f"{item.code} {item.message}"))
            for item in diagnostics
        ]

    def _lint(self, data: bytes) -> tuple["Diagnostic", ...]:
        from mllint.runner import Task, garbage_left_alone, set_aside

        resolver, runner, baseline = _surroundings(self._choice)
        folder = os.path.dirname(os.path.abspath(self._filename))
        settings = resolver.for_folder(folder).settings
        in_project = os.path.isfile(self._filename)
        task = Task(self._filename, settings, data, in_project=in_project, noqa=False)
        with garbage_left_alone():
            diagnostics = runner.outcome(task, self._tree).result.diagnostics
            set_aside(len(data))
        return _without_accepted(diagnostics, self._filename, data, baseline)


@cache
def _surroundings(choice: _Choice) -> tuple["Resolver", "Runner", "Baseline"]:
    """Where settings come from, what is known of projects, what is accepted: once a process and set of options."""
    from mllint import baseline
    from mllint.configuration import Resolver
    from mllint.registry import is_selector
    from mllint.runner import Mode, Runner
    from mllint.settings import Overrides

    overrides = Overrides(
        # flake8 takes any code for granted; so must the plugin.
        extend_select=tuple(filter(is_selector, choice.selectors)),
        torch_version=choice.torch_version,
        paddle_version=choice.paddle_version,
    )
    return Resolver(overrides), Runner(Mode()), baseline.load(None)


def _without_accepted(
    diagnostics: tuple["Diagnostic", ...], filename: str, data: bytes, baseline: "Baseline"
) -> tuple["Diagnostic", ...]:
    """The findings without those that the list of accepted findings counts.

    It does not count what a ``noqa`` silences. That is left to flake8, which may have been told to show it.
    """
    if not diagnostics or baseline.key_of(filename) not in baseline.counts:
        return diagnostics
    from mllint.syntax.source import DecodingError, Source
    from mllint.syntax.suppressions import Suppressions

    try:
        suppressions = Suppressions(Source.from_bytes(data, filename))
    except DecodingError:
        return diagnostics
    counted = [item for item in diagnostics if not suppressions.silences(item.code, item.noqa_row, item.name)]
    hidden = baseline.hidden_codes(filename, counted)
    return tuple(item for item in diagnostics if item not in counted or item.code not in hidden)


def _original_bytes(filename: str, text: str) -> bytes:
    """The bytes that the file consists of, or could consist of.

    flake8 reads a file that its encoding does not fit as Latin-1 and says nothing. To the core such
    a file is shown as it is, so that the finding about it is not lost.
    """
    from mllint.syntax.source import DecodingError, Source, bytes_of

    if not text.isascii() and max(text) <= "\xff":
        as_read = text.encode("latin-1")
        original = _content_of(filename)
        if original is not None and _unified(original) == as_read:
            try:
                Source.from_bytes(original, filename)
            except DecodingError:
                return original
    return bytes_of(text)


def _content_of(filename: str) -> bytes | None:
    try:
        with open(filename, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _unified(data: bytes) -> bytes:
    """The bytes with the line ends that flake8 makes of theirs."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _one_line(text: str) -> str:
    return " ".join(text.split("\n"))


def _version(text: str) -> str:
    if _VERSION.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 2.6")
    return text
