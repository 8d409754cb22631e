"""What IPython reads in a cell of a notebook beside Python: commands and magics, which are left out of the program.

Each goes, and everything else keeps its place: what stands there instead is as long.

- A cell that begins with ``%%bash``, or another magic that takes something else than Python, is no part of the program.
  Of ``%%time`` and the like only that line goes.
- ``!pip install x``, ``%matplotlib inline``, ``model?`` become ``0#...``, a statement that does nothing; what a command
  gives, ``files = !ls``, is the name ``_``, of which nobody knows what it is.
- ``%time train()`` and the like run a statement; it stays.

Whether a line is a command is asked only where Python finds that line wrong: a formula may go on with ``% 2``.
"""

import ast
import re
from keyword import iskeyword
from typing import NamedTuple

from mllint.syntax.former import MOST_WORK, readable_tree, said_of
from mllint.syntax.leftovers import leftover
from mllint.syntax.source import syntax_tree

_WITH_PYTHON = frozenset({
    "capture", "debug", "ipytest", "lprun", "memit", "mprun", "prun", "pyinstrument", "pypy", "python", "python3",
    "scalene", "snakeviz", "time", "timeit", "wandb",
})  # fmt: skip
"""Magics of cells whose rest is Python."""
_AUTOMAGIC = frozenset({
    "alias", "apt", "apt-get", "bookmark", "cat", "cd", "clear", "conda", "cp", "cpaste", "debug", "dhist", "dirs",
    "edit", "env", "gui", "hist", "history", "less", "lf", "lk", "ll", "load", "load_ext", "logoff", "logon",
    "logstart", "logstate", "logstop", "ls", "lsmagic", "lx", "magic", "mamba", "man", "matplotlib", "micromamba",
    "mkdir", "more", "mv", "notebook", "page", "paste", "pdb", "pdef", "pdoc", "pfile", "pinfo", "pinfo2", "pip",
    "popd", "pprint", "precision", "prun", "psearch", "psource", "pushd", "pwd", "pycat", "pylab", "quickref",
    "recall", "rehashx", "reload_ext", "rerun", "reset", "reset_selective", "rm", "rmdir", "run", "save", "sc",
    "set_env", "sx", "system", "tb", "time", "timeit", "unalias", "uv", "who", "who_ls", "whos", "xdel", "xmode",
})  # fmt: skip
"""Magics that need no ``%`` where a cell is one line."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_CELL_MAGIC = re.compile(r"%%(\w*)")
_COMMAND = re.compile(r"\A([ \t]*+)([\w.,*\[\]'\" \t]++=[ \t]*+)?(?:!|%{1,2}[ \t]*+[A-Za-z])")
_FOLLOWING = re.compile(r"\A([ \t]*+)(?:!|%[A-Za-z])")
_QUESTION = re.compile(r"\A([ \t]*+)(?:\?|[^#'\"\r\n]*\?[ \t]*+(?:#[^\r\n]*+)?[\r\n]*+\Z)")
_RUNNING = re.compile(r"\A([ \t]*+)(%(?:time|timeit|prun|memit))([ \t]++(?![-\s]))")
_USED = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_BOUND = re.compile(
    r"\A[ \t]*+(?:(?:async[ \t]++)?(?:def|class)[ \t]++(?P<defined>[A-Za-z_]\w*+)|(?P<set>[A-Za-z_]\w*+)[ \t]*+=(?!=))"
)
_INDENTED = "if 1:\n"


class Problem(NamedTuple):
    """What is wrong with a cell; ``row`` and ``column`` are 1-based in it."""

    message: str
    row: int
    column: int
    help: str | None = None


class Reading(NamedTuple):
    """The program that a cell is: as long as its text, below a ``head`` of whole lines.

    Where there is a ``problem``, it says no more than that something is done with what the cell names. ``commands`` are
    the lines that were left out.
    """

    program: str
    head: str = ""
    problem: Problem | None = None
    commands: tuple[str, ...] = ()


def reading_of(text: str) -> Reading | None:
    """How the text of a cell is to be read; ``None`` where it is none of Python."""
    lines = _LINE.findall(text)
    start = _behind_magics(lines)
    if start is None:
        return None
    commands = [lines[index].strip() for index in range(start) if lines[index].lstrip().startswith("%%")]
    for index in range(start):
        if lines[index].startswith("%%"):
            lines[index] = f"#{lines[index][1:]}"
    reader = _Reader(lines)
    error = reader.read()
    if error is None:
        return Reading("".join(lines), commands=(*commands, *reader.commands))
    if len(lines) == 1 and _first_word(text) in _AUTOMAGIC:
        return None
    if _begins_indented(lines) and _reads(_INDENTED + "".join(lines)):
        # IPython takes away what all the lines are indented by.
        return Reading("".join(lines), _INDENTED, commands=(*commands, *reader.commands))
    if _was_python("".join(lines)):
        return Reading("".join(lines), commands=(*commands, *reader.commands))
    return Reading("".join(map(_unknown, _LINE.findall(text))), problem=_problem(error, "".join(lines)))


def _behind_magics(lines: list[str]) -> int | None:
    """How many lines there are up to the last magic of the cell; ``None`` where what follows that is no Python."""
    start = 0
    for index, line in enumerate(lines):
        found = _CELL_MAGIC.match(line)
        if found is not None:
            if found[1] not in _WITH_PYTHON:
                return None
            start = index + 1
        elif line.strip():
            break
    return start


class _Reader:
    """Leaves commands out of the lines of a cell, one after the other, until Python can read them."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._running: dict[int, str] = {}
        self.commands: list[str] = []

    def read(self) -> Exception | None:
        """What Python has against the lines, when all commands are left out that it finds."""
        work = 0
        while True:
            text = "".join(self._lines)
            work += len(text)
            try:
                syntax_tree(text)
            except SyntaxError as error:
                if work > MOST_WORK or not self._leaves_out((error.lineno or 0) - 1):
                    return error
            except (ValueError, RecursionError, MemoryError) as error:
                return error
            else:
                return None

    def _leaves_out(self, row: int) -> bool:
        """Whether there was a command in a row; what stands there now does nothing, or is what it runs."""
        if not 0 <= row < len(self._lines):
            return False
        if row in self._running:
            self._lines[row] = self._running.pop(row)
            return self._replaces(row, _COMMAND)
        line = self._lines[row]
        running = _RUNNING.match(line)
        if running is not None:
            self._running[row] = line
            self.commands.append(running[2])
            blanks = " " * (len(running[2]) - 2) + running[3]
            self._lines[row] = f"{running[1]}1;{blanks}{line[running.end() :]}"
            return True
        return self._replaces(row, _COMMAND) or self._replaces(row, _QUESTION)

    def _replaces(self, row: int, pattern: re.Pattern[str]) -> bool:
        """Leave a command out with the lines that it goes on in, and those that follow."""
        found = pattern.match(self._lines[row])
        if found is None:
            return False
        while found is not None:
            row = self._replace(row, found)
            following = self._lines[row] if row < len(self._lines) else ""
            found = None if _RUNNING.match(following) else _FOLLOWING.match(following)
        return True

    def _replace(self, row: int, found: re.Match[str]) -> int:
        """Leave one command out, and give the row behind it."""
        before = found[1] + (found[2] or "" if found.re is _COMMAND else "")
        line = self._lines[row]
        self.commands.append(line.strip())
        sign = "_" if len(before) > len(found[1]) else "0"
        rest = line[len(before) + 1 :]
        goes_on = rest.rstrip("\r\n").endswith("\\")
        self._lines[row] = f"{before}{sign}{'#' if rest.strip() else ''}{rest[1:] if rest.strip() else rest}"
        row += 1
        while goes_on and row < len(self._lines):
            goes_on = self._lines[row].rstrip("\r\n").endswith("\\")
            self.commands.append(self._lines[row].strip())
            self._lines[row] = _as_comment(self._lines[row])
            row += 1
        return row


def _as_comment(line: str) -> str:
    """As long a line that is a comment."""
    return f"#{line[1:]}" if line.rstrip("\r\n") else line


def _first_word(text: str) -> str:
    return next(iter(text.split()), "")


def _unknown(line: str) -> str:
    """As long a line, of a cell that cannot be read: its first name is given a value, or its names to a function, of
    which nobody knows what it is. So nothing is taken for missing that the cell may do.
    """
    content = line.rstrip("\r\n")
    found = _BOUND.match(content)
    bound = "" if found is None else found["defined"] or found["set"]
    names = [name for name in dict.fromkeys(_USED.findall(content)) if not iskeyword(name) and name != "__debug__"]
    while names and len(_given(names)) > len(content):
        names.pop()
    said = _given(names) if names else ""
    if bound.isascii() and bound.isidentifier() and not iskeyword(bound) and len(bound) + 2 <= len(content):
        said = f"{bound}=_"
    rest = content[len(said) :]
    shown = f"{said}#{rest[1:]}" if rest else said
    return shown.replace("\0", " ").encode("utf-8", "replace").decode() + line[len(content) :]


def _given(names: list[str]) -> str:
    return f"_({','.join(names)})"


def _begins_indented(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    return first[:1] in (" ", "\t")


def _reads(text: str) -> bool:
    try:
        syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _was_python(text: str) -> bool:
    """Whether a former Python reads a text."""
    try:
        return isinstance(readable_tree(text)[0], ast.Module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _problem(error: Exception, text: str) -> Problem:
    if not isinstance(error, SyntaxError):
        message = "this cell is nested too deep" if isinstance(error, RecursionError | MemoryError) else str(error)
        return Problem(" ".join(message.split()), 1, 1)
    said = said_of(error, text)
    row = min(said.row, max(len(_LINE.findall(text)), 1))
    left = leftover(text, row)
    return Problem(said.message, row, said.column) if left is None else Problem(left.message, row, 1, left.help)
