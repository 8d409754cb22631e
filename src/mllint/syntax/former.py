"""Programs that only a former Python can run: ``print loss``, ``except E, error``, ``tensor.cuda(async=True)``; and
those that only IPython can: ``!pip install torch``, ``%matplotlib inline``.

PyTorch had the argument ``async`` until 0.4 and calls it ``non_blocking`` since; it is a keyword from Python 3.7 on.
Much code of that time says nothing else that a later Python does not understand, so the rest of it can be checked: it
is read as if it said the same in today's words. Nearly everything keeps its place by that; what stands behind such a
statement on the same line moves by a character or two.

A notebook that was saved as a program has commands of IPython in it, on lines of their own. Whoever saves one knows
that, so nothing is said of these, and the rest is checked.
"""

import ast
import re
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import libcst as cst

from mllint.syntax.source import syntax_tree

MOST_WORK = 10_000_000
"""How many characters may be parsed again, one mended statement after the other, before it is given up."""
_ARGUMENT = re.compile(r"(?<=[(,\s])async(?=\s*=[^=])")
_NAME = re.compile(r"(?<![\w\"'])async(?![\w\"'])(?!\s+(?:def|for|with)\b)")
_STAND_IN = "asynk"
"""As long as the word itself, so that everything keeps its place."""
_STATEMENT = re.compile(r"Missing parentheses in call to '(print|exec)'")
_CAUGHT = re.compile(r"(\bexcept\s+[^:#]+?)\s*,\s*(\w+\s*:)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_COMMAND = re.compile(r"([ \t]*)([A-Za-z_]\w*[ \t]*=[ \t]*)?(?:!|%{1,2}[A-Za-z])")
_RAISED = re.compile(r"(\s*raise\s+[\w.]+\s*),\s*([^#]+?)(\s*)$")


class FormerPython(NamedTuple):
    """What Python has against a text that could be read nonetheless; ``row`` and ``column`` are 1-based.

    There is no message where it has nothing against it but commands of IPython.
    """

    message: str
    row: int
    column: int


def readable_tree(text: str) -> tuple[ast.Module, FormerPython | None]:
    """The tree of a text, and what Python has against it.

    Raises what ``ast`` raises where the text cannot be read: the first error that is not about a command of IPython.
    """
    try:
        return syntax_tree(text), None
    except SyntaxError as error:
        present = error
    told: SyntaxError | None = None
    mended, is_argument, work = text, False, 0
    while work <= MOST_WORK:
        lines = _LINE.findall(mended)
        if _is_without_command(lines, present):
            mended = "".join(lines)
        elif not is_argument and "async" in mended and present.msg == "invalid syntax":
            mended, is_argument, told = _ARGUMENT.sub(_STAND_IN, mended), True, told or present
        else:
            if not _is_mended(lines, present):
                raise told or present
            mended, told = "".join(lines), told or present
        work += len(mended)
        try:
            tree = syntax_tree(mended)
        except SyntaxError as following:
            present = following
            continue
        for node in ast.walk(tree) if is_argument else ():
            if isinstance(node, ast.keyword) and node.arg == _STAND_IN:
                node.arg = "async"
        return tree, FormerPython("", 1, 1) if told is None else said_of(told, text)
    raise told or present


def refused_by_compiler(text: str, functions: Iterable[cst.Parameters]) -> FormerPython | None:
    """What Python has against a text that it can parse, and no Python can run: a function has a parameter twice.

    The compiler is asked only where there is one: it takes as long as most of what is done here.
    """
    if not any(map(_has_one_twice, functions)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "", "exec", dont_inherit=True)
    except SyntaxError as error:
        return said_of(error, text) if error.msg.startswith("duplicate ") else None
    return None


def _has_one_twice(function: cst.Parameters) -> bool:
    every = [*function.posonly_params, *function.params, *function.kwonly_params]
    names = [item.name.value for item in (*every, function.star_arg, function.star_kwarg) if type(item) is cst.Param]
    return len(names) > len(set(names))


def said_of(error: SyntaxError, text: str) -> FormerPython:
    """What Python has against a text; of ``async`` as a name it says nothing but that something is wrong."""
    row, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
    lines = _LINE.findall(text)
    line = lines[row - 1].partition("#")[0] if row <= len(lines) else ""
    is_told = error.msg.startswith("invalid syntax")
    name = (_ARGUMENT.search(line) or _NAME.search(line)) if is_told else None
    if name is not None:
        message = "`async` is a keyword since Python 3.7: no later Python can run this file"
        return FormerPython(message, row, name.start() + 1)
    return FormerPython(error.msg, row, column)


def _is_without_command(lines: list[str], error: SyntaxError) -> bool:
    """Whether the line that an error is about was a command of IPython; what stands there now does nothing."""
    row = (error.lineno or 0) - 1
    found = _COMMAND.match(lines[row]) if 0 <= row < len(lines) else None
    if found is None:
        return False
    last = row
    while last + 1 < len(lines) and lines[last].rstrip("\r\n").endswith("\\"):
        last += 1
    for index in range(row, last + 1):
        text = lines[index].rstrip("\r\n")
        instead = f"{found[1]}{found[2]}None" if found[2] else f"{found[1]}pass"
        lines[index] = (instead if index == row else "") + lines[index][len(text) :]
    return True


def _is_mended(lines: list[str], error: SyntaxError) -> bool:
    """Whether the statement that an error is about could be said in today's words, in its line."""
    first, last = (error.lineno or 0) - 1, (error.end_lineno or 0) - 1
    if not 0 <= first <= last < len(lines) or error.offset is None or error.end_offset is None:
        return False
    found = _STATEMENT.match(error.msg)
    if found is not None:
        # The end first: it may be on the same line. In another line Python takes it for no longer than the first one.
        end, begin = error.end_offset - 1, error.offset - 1 + len(found[1])
        if first != last:
            end = len(lines[last].partition("#")[0].rstrip())
        lines[last] = f"{lines[last][:end]}){lines[last][end:]}"
        behind = lines[first][begin:]
        lines[first] = f"{lines[first][:begin]}({behind[1:] if behind[:1].isspace() else behind}"
        return True
    line = lines[first]
    if error.msg.startswith("multiple exception types"):
        lines[first] = _CAUGHT.sub(r"\1 as \2", line)
    elif error.msg.startswith("invalid syntax"):
        lines[first] = _RAISED.sub(r"\1(\2)\3", line)
        if lines[first] == line:
            lines[first] = _NAME.sub(_STAND_IN, line)
    return lines[first] != line
