"""Text to tree, with every way to fail turned into one kind of error.

LibCST's native parser recurses on the machine stack: nesting that no person writes ends the whole process with a
segmentation fault, and long chains take quadratic time. So nesting is bounded before the parser sees the text.
"""

import gc
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import libcst as cst

from mllint.syntax.former import readable_tree, said_of
from mllint.syntax.pieces import SIZE, UncertainError, joined, pieces
from mllint.syntax.source import Source

MAX_DEPTH = 200
"""Deepest nesting of brackets that is parsed; CPython's own parser stops at 200 too."""
MAX_CHAIN = 1000
"""Longest chain of operators, attributes or calls in one statement that is parsed."""
MAX_BRANCHES = 2000
"""Longest ``elif`` chain that is parsed."""

# Without one of these, no statement can come near a bound: a long line, or many lines in a row that continue one.
_SUSPICIOUS = re.compile(
    r"""
    ^[^\r\n]{400}
    | (?:^[ \t]*(?:[-+*/%@|&^~.<>=)\]}]|(?:and|or|not|elif)\b)[^\r\n]*(?:\r\n?|\n)){40}
    | (?:^[^\r\n]*[-+*/%@|&^~.<>=([{\\][ \t]*(?:\r\n?|\n)){40}
    | (?:^[^\r\n]*(?:\band|\bor|\bnot)[ \t]*(?:\r\n?|\n)){40}
    """,
    re.VERBOSE | re.MULTILINE,
)
# What a line begins with that is blank or a comment.
_INDENTED = re.compile(r"^([ \t]+)(#?)", re.MULTILINE)
_TOKEN = re.compile(
    r"""
    (?P<skip> \#[^\r\n]* | \\(?:\r\n?|\n)
      | \"{3}(?:[^\\"]|\\.|"(?!""))*\"{3} | '{3}(?:[^\\']|\\.|'(?!''))*'{3}
      | "(?:[^\\"\r\n]|\\.)*" | '(?:[^\\'\r\n]|\\.)*' )
    | (?P<open>[(\[{]) | (?P<close>[)\]}]) | (?P<comma>,)
    | (?P<branch>^[ \t]*(?:el)?if\b)
    | (?P<chain>[-+*/%@|&^~.<>=]+ | \b(?:and|or|not|await|lambda|if|in|is)\b)
    | (?P<line>[\r\n;]+)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

# Tabs and blanks in one indentation, or a line that begins with tabs in a file where another begins with blanks.
_TAB, _BLANK = re.compile(r"^\t", re.MULTILINE), re.compile(r"^[ \t]* ", re.MULTILINE)
_BETWEEN_STATEMENTS = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_LONE_RETURN = re.compile(r"\r(?!\n)")
_FORM_FEED = re.compile(r"(?<!\\)(\r\n|(?<!\r)\n)(\f+)")
_LOST_BEGINNING = re.compile(r"\A(?:\f|\\\r?\n)+(?=[^\s\\])")
_FIELD_TOKEN = re.compile(r"\{\{|[(\[{)\]}]|[-+*/%@|&^~.<>=]|\b(?:and|or|not|await|lambda|if|in|is)\b")


class ParseError(Exception):
    """The text is not Python that mllint can read; ``row`` and ``column`` are 1-based."""

    def __init__(self, message: str, row: int, column: int) -> None:
        super().__init__(message)
        self.row = row
        self.column = column


def parse(source: Source) -> cst.Module:
    """The tree of a file.

    Raises:
        ParseError: a syntax error, or nesting beyond the bounds of this module.
    """
    if source.program.count("elif") > MAX_BRANCHES or _SUSPICIOUS.search(source.program) is not None:
        _bound_nesting(source)
    try:
        with _unchecked_nodes():
            return _parsed(parsable(source.program))
    except cst.ParserSyntaxError as error:
        raise _as_python_says(source, error) from None


def _parsed(text: str) -> cst.Module:
    parts = pieces(text) if len(text) > 2 * SIZE else [text]
    if len(parts) > 1:
        # What is no program in pieces may be one as a whole; and where it is none, its error has its row.
        with suppress(UncertainError, cst.ParserSyntaxError):
            return joined([cst.parse_module(part) for part in parts])
    return cst.parse_module(text)


def parsable(text: str) -> str:
    r"""The text as it is shown to LibCST: as long, and the same program.

    LibCST loses a lone ``\r`` at the end of a file and a form feed at the beginning of a line. The
    one becomes ``\n``, the other goes to the end of the line before. At the beginning of the file it
    also loses continued lines that hold nothing: they become comments, and a form feed a blank line.
    Behind the last statement it loses blank lines that a line with indentation follows, so nothing there is indented.
    It takes a block for deeper only where its indentation begins as the one around it does: tabs beside blanks become
    blanks.
    """
    if "\r" in text:
        text = _LONE_RETURN.sub("\n", text)
    if "\f" in text:
        text = _FORM_FEED.sub(r"\2\1", text)
    if text.startswith(("\f", "\\")):
        text = _LOST_BEGINNING.sub(lambda lost: lost.group().replace("\f", "\n").replace("\\", "#"), text)
    if "\t" in text and _TAB.search(text) is not None and _BLANK.search(text) is not None:
        text = _indented_by_blanks(text)
    end = _end_of_statements(text)
    tail = text[end:]
    if _INDENTED.search(tail) is None or '"""' in tail or "'''" in tail:
        return text
    return text[:end] + _INDENTED.sub(lambda line: (line[2] or "\n") * len(line[1]) + line[2], tail)


def _indented_by_blanks(text: str) -> str:
    """The same program, with as many blanks in the place of what its statements are indented by.

    Python takes only text in which deeper means longer, too, however wide a tab is.
    """
    lines = list(io.StringIO(text, newline=""))
    begins = True
    try:
        for token in tokenize.generate_tokens(iter(lines).__next__):
            if token.type == tokenize.NEWLINE:
                begins = True
            elif begins and token.type not in _BETWEEN_STATEMENTS:
                begins = False
                row, column = token.start
                lines[row - 1] = " " * column + lines[row - 1][column:]
    except (tokenize.TokenError, SyntaxError):
        return text
    return "".join(lines)


def _end_of_statements(text: str) -> int:
    """Where the lines begin that are blank or comments up to the end of the file."""
    end = len(text)
    while end > 0:
        start = text.rfind("\n", 0, end - 1) + 1
        line = text[start:end].strip()
        if line and not line.startswith("#"):
            return len(text) if line.endswith("\\") else end
        end = start
    return end


@contextmanager
def _unchecked_nodes() -> Iterator[None]:
    """Build nodes as the parser hands them over.

    Every node checks itself in Python when it is made by hand; what the native parser makes is valid, and the checks
    are a fifth of its time. The tree holds no cycles either, so the collector would only count it again and again.
    """
    check, collecting = cst.CSTNode.__post_init__, gc.isenabled()
    cst.CSTNode.__post_init__ = _accept  # type: ignore[method-assign,assignment]
    gc.disable()
    try:
        yield
    finally:
        cst.CSTNode.__post_init__ = check  # type: ignore[method-assign]
        if collecting:
            gc.enable()


def _accept(node: cst.CSTNode) -> None:
    """Take a node as it is."""


def _as_python_says(source: Source, error: cst.ParserSyntaxError) -> ParseError:
    """The same error in the words of Python's own parser, which knows the usual mistakes by name."""
    try:
        said = readable_tree(source.program)[1]
    except SyntaxError as python_error:
        said = said_of(python_error, source.program)
    except (ValueError, RecursionError, MemoryError):
        # Python gives up on this text for a reason of its own; LibCST's words are all there is.
        said = None
    if said is not None and said.message:
        return ParseError(said.message, min(said.row, source.rows), said.column)
    row = min(max(error.raw_line, 1), source.rows)
    return ParseError(error.message.partition("\n")[0], row, error.raw_column + 1)


def _bound_nesting(source: Source) -> None:
    """Raise where brackets, chains or ``elif`` branches go beyond the bounds."""
    levels = [0]  # the length of the chain that is open at each bracket level
    total = 0
    branches: dict[str, int] = {}
    for token in _TOKEN.finditer(source.program):
        kind = token.lastgroup
        if kind == "open":
            levels.append(0)
        elif kind == "close":
            if len(levels) > 1:
                total -= levels.pop()
            # `a().b()` goes on where the bracket began.
            levels[-1] += 1
            total += 1
        elif kind == "comma" or (kind == "line" and len(levels) == 1):
            total -= levels[-1]
            levels[-1] = 0
        elif kind == "branch":
            keyword = token.group().lstrip()
            indent = token.group().removesuffix(keyword)
            branches[indent] = branches.get(indent, 0) + 1 if keyword == "elif" else 0
            if branches[indent] > MAX_BRANCHES:
                raise _too_deep(source, token.start(), f"more than {MAX_BRANCHES} `elif` branches")
        elif kind == "chain":
            # A run of signs such as `--x` is one token here; each of them nests.
            length = len(token.group()) if not token.group().isalpha() else 1
            levels[-1] += length
            total += length
        elif kind == "skip" and _is_formatted(source.program, token.start()):
            _bound_fields(source, token)
        if total > MAX_CHAIN:
            raise _too_deep(source, token.start(), f"an expression of more than {MAX_CHAIN} operations")
        if len(levels) > MAX_DEPTH:
            raise _too_deep(source, token.start(), f"more than {MAX_DEPTH} nested brackets")


def _is_formatted(text: str, quote: int) -> bool:
    """Whether the string that begins with this quote has a prefix with ``f`` or ``t``."""
    return text[quote] in "'\"" and not set("fFtT").isdisjoint(text[max(quote - 2, 0) : quote])


def _bound_fields(source: Source, string: re.Match[str]) -> None:
    """Raise where an expression in the braces of an f-string goes beyond the bounds."""
    depth = chain = 0
    for token in _FIELD_TOKEN.finditer(source.program, string.start(), string.end()):
        text = token.group()
        if depth == 0 and text != "{":
            continue  # outside of the braces, where `{{` is a brace too
        if text in ")]}":
            depth -= 1
            chain = chain if depth else 0
        elif text[0] in "([{":
            depth += len(text)
        else:
            chain += 1
        if chain > MAX_CHAIN or depth > MAX_DEPTH:
            raise _too_deep(source, string.start(), "an expression in an f-string")


def _too_deep(source: Source, offset: int, what: str) -> ParseError:
    place = source.location(offset)
    return ParseError(f"{what}: too deep to analyse", place.row, place.column)
