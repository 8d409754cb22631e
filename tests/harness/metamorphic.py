"""The same training written in other ways: what a loop does moved into a helper, variables renamed, lines put between.

Each rewriting keeps every line with the comment at its end, so the markers go where their lines go. ``None`` means that
there is nothing in the text that it could rewrite.
"""

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple

SIBLING = "moved_steps"
"""The module that ``into_sibling`` makes."""

_Loop = ast.For | ast.While
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


class Rewritten(NamedTuple):
    """The text of the file, and of the file beside it where there is one."""

    text: str
    sibling: str | None = None


# -- a loop's body somewhere else --------------------------------------------------------------------------------------


def into_function(text: str) -> Rewritten | None:
    """The body of every innermost loop becomes a function of the file."""
    return _moved(
        text, lambda name, parameters, body: f"def {name}({parameters}):\n{textwrap.indent(body, '    ')}", "{}"
    )


def into_method(text: str) -> Rewritten | None:
    """The body of every innermost loop becomes the method of a class without state."""

    def shape(name: str, parameters: str, body: str) -> str:
        parameters = ", ".join(filter(None, ("this", parameters)))
        return f"class Class_{name}:\n    def {name}({parameters}):\n{textwrap.indent(body, ' ' * 8)}"

    return _moved(text, shape, "Class_{0}().{0}")


def into_sibling(text: str) -> Rewritten | None:
    """The body of every innermost loop that needs nothing of the file becomes a function of a file beside it.

    One that needs ``self`` needs the file: its class.
    """
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    moves = [move for move in _moves(tree, lines) if not move.needs_file]
    if not moves:
        return None
    imports = [node for node in tree.body if isinstance(node, _IMPORTS) and not _is_future(node)]
    sibling = "".join(_lines_of(node, lines) for node in imports)
    for move in moves:
        sibling += f"\n\ndef {move.name}({', '.join(move.parameters)}):\n{textwrap.indent(move.helper, '    ')}"
    for move in sorted(moves, key=lambda move: -move.first):
        lines[move.first : move.last] = [move.call(move.name)]
    first = next(node for node in tree.body if not _is_docstring(node) and not _is_future(node))
    names = ", ".join(move.name for move in moves)
    lines.insert(_first_row(first), f"from {SIBLING} import {names}\n")
    return Rewritten("".join(lines), sibling)


class _Move(NamedTuple):
    """The body of one loop as a helper: its lines (from 0), and in front of which line the helper may go."""

    name: str
    first: int
    last: int
    above: int
    indent: str
    body: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    needs_file: bool

    @property
    def helper(self) -> str:
        return self.body + (f"return {', '.join(self.results)}\n" if self.results else "")

    def call(self, name: str) -> str:
        given = f"{name}({', '.join(self.parameters)})"
        target = f"{', '.join(self.results)} = " if self.results else ""
        return f"{self.indent}{target}{given}\n"


def _moved(text: str, shape: Callable[[str, str, str], str], called: str) -> Rewritten | None:
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    moves = list(_moves(tree, lines))
    if not moves:
        return None
    # From the last to the first: what is changed does not move what is still to be changed.
    edits = [(move.first, move.last, move.call(called.format(move.name))) for move in moves]
    edits += [
        (move.above, move.above, shape(move.name, ", ".join(move.parameters), move.helper) + "\n\n") for move in moves
    ]
    for first, last, content in sorted(edits, reverse=True):
        lines[first:last] = [content]
    return Rewritten("".join(lines))


def _moves(tree: ast.Module, lines: list[str]) -> Iterator[_Move]:
    defined = {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}
    variables = {name for node in tree.body if not isinstance(node, _DEFINITIONS) for name in _stored(node)}
    for top in tree.body:
        for loop, scopes in _loops(top, ()):
            inner = [node for node in ast.walk(loop) if node is not loop]
            if any(isinstance(node, (*_LEAVING, *_DEFINITIONS, ast.For, ast.While)) for node in inner) or loop.orelse:
                continue
            scope: ast.AST = scopes[-1] if scopes else tree
            available = variables | {name for holder in scopes for name in _locals(holder)}
            local = {node.name for holder in scopes for node in ast.walk(holder) if isinstance(node, _DEFINITIONS)}
            body = ast.Module(loop.body, [])
            loaded, stored = _loaded(body), _stored(body)
            outside = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and not _is_in(node, loop.body)]
            bound_outside = {node.id for node in outside if isinstance(node.ctx, ast.Store)} | _parameters(scope)
            if scopes:
                bound_outside |= available - stored
            read_outside = {node.id for node in outside if isinstance(node.ctx, ast.Load)}
            first, last = _first_row(loop.body[0]), loop.body[-1].end_lineno or 0
            if loaded & local - defined or first == loop.lineno - 1:
                continue
            parameters = loaded & available & (bound_outside if scopes else variables) - (stored - bound_outside)
            yield _Move(
                f"moved_{loop.lineno}",
                first,
                last,
                _first_row(top),
                " " * loop.body[0].col_offset,
                textwrap.dedent("".join(lines[first:last])),
                tuple(sorted(parameters)),
                tuple(sorted(stored & (read_outside | parameters))),
                bool(loaded & (defined | {"self"})),
            )


def _loops(node: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[tuple[_Loop, tuple[ast.AST, ...]]]:
    """The loops in a statement, each with the functions around it."""
    if isinstance(node, (ast.For, ast.While)):
        yield node, scopes
    inner = (*scopes, node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scopes
    for child in ast.iter_child_nodes(node):
        yield from _loops(child, inner)


def _is_in(node: ast.Name, body: list[ast.stmt]) -> bool:
    return body[0].lineno <= node.lineno <= (body[-1].end_lineno or 0)


# -- other names, other lines ------------------------------------------------------------------------------------------


def renamed(text: str) -> Rewritten | None:
    """Every variable and parameter gets a name that says nothing."""
    tree = ast.parse(text)
    words = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    words |= {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    words |= {part for node in ast.walk(tree) if isinstance(node, _IMPORTS) for part in _bound(node)}
    names = sorted({*_stored(tree), *(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))})
    kept = words | {"self", "_"}  # `_` is a name that says something: that nobody wants it
    new = {name: f"v{index}" for index, name in enumerate(names) if name not in kept}
    places = [
        (node.lineno, node.col_offset, name)
        for node in ast.walk(tree)
        for name in [node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""]
        if name in new
    ]
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for row, column, name in sorted(places, reverse=True):
        line = lines[row - 1]
        assert line[column:].startswith(name.encode())
        lines[row - 1] = line[:column] + new[name].encode() + line[column + len(name.encode()) :]
    return Rewritten(b"".join(lines).decode()) if places else None


def between(text: str) -> Rewritten | None:
    """A statement that does not matter stands in front of every other."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    rows = {
        (_first_row(statement), statement.col_offset)
        for node in ast.walk(tree)
        if not isinstance(node, (ast.Module, ast.ClassDef))
        for block in (getattr(node, "body", None), getattr(node, "orelse", None), getattr(node, "finalbody", None))
        if isinstance(block, list) and not any(isinstance(statement, ast.Pass) for statement in block)
        for statement in block
        if not _is_docstring(statement)
    }
    for row, column in sorted(rows, reverse=True):
        if lines[row][:column].strip() or lines[row].lstrip().startswith("elif"):
            continue
        while row and lines[row - 1].lstrip().startswith("#"):
            row -= 1  # the comments above a statement belong to it
        lines.insert(row, f'{lines[row][:column]}unrelated = len("between")\n')
    return Rewritten("".join(lines)) if rows else None


# -- a script as a program ---------------------------------------------------------------------------------------------


def under_main_guard(text: str) -> Rewritten | None:
    """The statements of the file stand under ``if __name__ == "__main__"``."""
    split = _split(text)
    if split is None:
        return None
    kept, script = split
    return Rewritten(f'{kept}\n\nif __name__ == "__main__":\n{textwrap.indent(script, "    ")}')


def in_main(text: str) -> Rewritten | None:
    """The statements of the file stand in a function, where no function of the file needs their variables."""
    split = _split(text)
    tree = ast.parse(text)
    variables = {name for node in tree.body if not isinstance(node, _DEFINITIONS) for name in _stored(node)}
    needed = {name for node in tree.body if isinstance(node, _DEFINITIONS) for name in _loaded(node) - _all_bound(node)}
    if split is None or variables & needed:
        return None
    kept, script = split
    # A second function of a name would take the place of the first.
    name = "main" if "def main(" not in kept else "run_script"
    guard = f'\n\nif __name__ == "__main__":\n    {name}()\n'
    return Rewritten(f"{kept}\n\ndef {name}():\n{textwrap.indent(script, '    ')}{guard}")


def _split(text: str) -> tuple[str, str] | None:
    """What a file defines and imports, and what it does."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    doing = [node for node in tree.body if not isinstance(node, (*_DEFINITIONS, *_IMPORTS)) and not _is_docstring(node)]
    if not doing:
        return None
    script = "".join(_lines_of(node, lines) for node in doing)
    for node in reversed(doing):
        del lines[_first_row(node) : node.end_lineno]
    return "".join(lines), script


MOVES = frozenset({"into-function", "into-method", "into-sibling"})
REWRITINGS: dict[str, Callable[[str], Rewritten | None]] = {
    "into-function": into_function,
    "into-method": into_method,
    "into-sibling": into_sibling,
    "renamed": renamed,
    "between": between,
    "under-main-guard": under_main_guard,
    "in-main": in_main,
}


# -- names -------------------------------------------------------------------------------------------------------------


def _loaded(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    # `n += 1` reads what it binds.
    augmented = {part.target for part in ast.walk(node) if isinstance(part, ast.AugAssign)}
    return (names | {target.id for target in augmented if isinstance(target, ast.Name)}) - _comprehended(node)


def _stored(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return names - _comprehended(node)


def _comprehended(node: ast.AST) -> set[str]:
    """The variables of comprehensions, which only those see."""
    return {
        part.id
        for clause in ast.walk(node)
        if isinstance(clause, ast.comprehension)
        for part in ast.walk(clause.target)
        if isinstance(part, ast.Name)
    }


def _locals(function: ast.AST) -> set[str]:
    return _parameters(function) | _stored(function)


def _parameters(function: ast.AST) -> set[str]:
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return set()
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}


def _all_bound(node: ast.AST) -> set[str]:
    return _stored(node) | {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        yield alias.asname or alias.name.partition(".")[0]


# -- rows --------------------------------------------------------------------------------------------------------------


def _first_row(node: ast.stmt) -> int:
    """The row of a statement, its decorators included, from 0."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1


def _lines_of(node: ast.stmt, lines: list[str]) -> str:
    return "".join(lines[_first_row(node) : node.end_lineno])


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def has_distant_markers(text: str) -> bool:
    """Whether a marker speaks of another row than its own."""
    return re.search(r"#\s*expect\[", text) is not None
