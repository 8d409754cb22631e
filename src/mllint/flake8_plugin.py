"""mllint as a flake8 plugin: the same findings as the command line, in flake8's form.

What flake8 demands of a plugin, and where this module answers it:

- flake8 loses all results of all files when a plugin raises, and may hang with ``--jobs``. So
  nothing raises here (``Plugin.run``).
- What flake8 hands over is text whose line ends and byte-order mark are gone, under a name that
  need not be a file's (standard input, a notebook's cells). So the text decides, not the name.
- Class attributes set in ``parse_options`` are the only state that its worker processes see.
- flake8 starts in a tenth of a second. So LibCST, the rules and the settings are imported for the
  first file that mentions a framework, and not before.
- A process may be forked from one that has checked files, serve an editor for days, or end without another word. So
  what it keeps from file to file (``flake8_session``) is its own, and ends when options are parsed anew or it ends.
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
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any, ClassVar

from mllint import __version__
from mllint.syntax.gate import is_notebook, may_concern_rules

if TYPE_CHECKING:
    from mllint.flake8_session import Session

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
    uses_cache: bool = True


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
        """Register ``--mllint-target-torch``, ``--mllint-target-paddle`` and ``--mllint-no-cache``."""
        for framework in ("torch", "paddle"):
            manager.add_option(
                f"--mllint-target-{framework}",
                type=_version,
                metavar="VERSION",
                parse_from_config=True,
                help=f"Oldest {framework} that the code must run with, such as 2.6. "
                "(Default: what [tool.mllint] or the project's requirements say)",
            )
        manager.add_option(
            "--mllint-no-cache",
            action="store_true",
            default=False,
            parse_from_config=True,
            help="Neither ask nor tell mllint's cache what was found before.",
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
            uses_cache=not options.mllint_no_cache,
        )
        _end_session()

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
        data = text.encode("utf-8", "surrogatepass")
        # flake8 takes the JSON of a notebook for Python; what it says of rows would be about that.
        if not may_concern_rules(data) or is_notebook(data, self._filename):
            return []
        from mllint.configuration.settings import ConfigurationError
        from mllint.selectors import UnknownSelectorError

        try:
            diagnostics = _session(self._choice).diagnostics(self._filename, text, self._tree)
        except (ConfigurationError, UnknownSelectorError) as error:
            return [(1, 0, _one_line(f"ML000 {error}"))]
        return [
            (item.location.row, item.location.column - 1, _one_line(f"{item.code} {item.message}"))
            for item in diagnostics
        ]


def _session(choice: _Choice) -> "Session":
    """What this process keeps: of its own, where it was forked from one that had checked files."""
    global _open_session
    if _open_session is None or _open_session.process != os.getpid():
        from mllint.flake8_session import Session

        _open_session = Session(choice.selectors, choice.torch_version, choice.paddle_version, choice.uses_cache)
        # Unlike those of atexit, these are called in the workers of multiprocessing too.
        Finalize(None, _end_session, exitpriority=10)
    return _open_session


def _end_session() -> None:
    """Write down what was learned; what comes next may be checked days later, or by other rules."""
    global _open_session
    session, _open_session = _open_session, None
    if session is not None and session.process == os.getpid():
        session.close()


_open_session: "Session | None" = None


def _one_line(text: str) -> str:
    return " ".join(text.split("\n"))


def _version(text: str) -> str:
    if _VERSION.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 2.6")
    return text
