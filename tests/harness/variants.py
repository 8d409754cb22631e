"""The same program with its imports spelled in other ways, row for row.

Each variant rewrites the imports of the frameworks and all uses of the names that they bind, and
nothing else; every row keeps its number. A name that the file binds in any other way too is left
as it is.
"""

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

Statement = TypeVar("Statement", ast.Import, ast.ImportFrom)

LIBRARIES = ("torch", "paddle", "numpy", "math", "torchvision", "transformers")


class Replacement(NamedTuple):
    """Replace the text from one offset to another."""

    start: int
    end: int
    content: str


class _Text:
    """A parsed text and where its nodes stand, in code points."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = text.splitlines(keepends=True)

    def offset(self, row: int, utf8_column: int) -> int:
        line = self._lines[row - 1].encode()
        return self._starts[row - 1] + len(line[:utf8_column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno or 0, node.end_col_offset or 0),
        )

    def names(self, name: str) -> list[ast.Name]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name]

    def quoted_annotations(self) -> Iterator[ast.Constant]:
        """String constants in the place of an annotation."""
        for node in ast.walk(self.tree):
            for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
                for part in ast.walk(annotation) if annotation is not None else ():
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part

    def other_bindings(self) -> set[str]:
        """Names that something else than an import binds or declares."""
        names: set[str] = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    names.add(name)
                case ast.arg(arg=name):
                    names.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    names.add(name)
                case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                    names.add(name)
                case ast.Global(names=several) | ast.Nonlocal(names=several):
                    names.update(several)
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    names.add(name)
        return names


def aliased(text: str) -> str | None:
    """``import torch`` becomes ``import torch as torch_alias``; ``None`` where nothing changes."""
    parsed = _Text(text)
    taken = parsed.other_bindings()
    replacements: list[Replacement] = []
    renamed: dict[str, str] = {}
    for statement in _imports(parsed, ast.Import):
        parts = []
        for item in statement.names:
            bound = item.asname or item.name.partition(".")[0]
            if not _is_of_a_library(item.name) or bound in taken:
                parts.append(_clause(item))
            elif item.asname or "." not in item.name:
                parts.append(f"{item.name} as {bound}_alias")
                renamed[bound] = f"{bound}_alias"
            else:
                parts.append(f"{item.name}, {bound} as {bound}_alias")
                renamed[bound] = f"{bound}_alias"
        replacements.append(Replacement(*parsed.span(statement), f"import {', '.join(parts)}"))
    return _rewritten(parsed, replacements, renamed) if renamed else None


def from_imported(text: str) -> str | None:
    """``torch.nn.ReLU`` becomes ``nn.ReLU`` after ``from torch import nn``.

    A name that the file uses otherwise is imported as ``torch_nn``. A file that imports the module once more, in a
    function, stays as it is.
    """
    parsed = _Text(text)
    imported = [name for statement in _imports(parsed, ast.Import) for name in _bound(statement)]
    if len(imported) > len(set(imported)):
        return None
    taken = parsed.other_bindings()
    used = {node.id for node in ast.walk(parsed.tree) if isinstance(node, ast.Name)}
    used |= {name for statement in _imports(parsed, ast.Import) for name in _bound(statement)}
    used |= {name for statement in _imports(parsed, ast.ImportFrom) for name in _bound(statement)}
    replacements: list[Replacement] = []
    for statement in _imports(parsed, ast.Import):
        statements = [f"import {', '.join(map(_clause, statement.names))}"]
        for item in statement.names:
            bound = item.asname or item.name
            if not _is_of_a_library(item.name) or "." in bound or bound in taken:
                continue
            members: dict[str, str] = {}
            for node in ast.walk(parsed.tree):
                match node:
                    case ast.Attribute(value=ast.Name(id=name), attr=member, ctx=ast.Load()) if name == bound:
                        free = member not in used | taken
                        members[member] = member if free else f"{bound}_{member}"
                        span = parsed.span(node)
                        replacements.append(Replacement(*span, members[member]))
            clauses = [
                member if member == local else f"{member} as {local}" for member, local in sorted(members.items())
            ]
            if clauses:
                statements.append(f"from {item.name} import {', '.join(clauses)}")
            used |= set(members.values())
        if len(statements) > 1:
            replacements.append(Replacement(*parsed.span(statement), "; ".join(statements)))
    return _rewritten(parsed, replacements, {}) if replacements else None


def spelled_out(text: str) -> str | None:
    """``nn.ReLU`` after ``from torch import nn`` becomes ``torch.nn.ReLU``."""
    parsed = _Text(text)
    taken = parsed.other_bindings()
    for statement in _imports(parsed, ast.Import):
        taken |= {item.asname for item in statement.names if item.asname}
    replacements: list[Replacement] = []
    renamed: dict[str, str] = {}
    for statement in _imports(parsed, ast.ImportFrom):
        module = statement.module or ""
        names = [item.asname or item.name for item in statement.names]
        root = module.partition(".")[0]
        if statement.level or not _is_of_a_library(module) or "*" in names:
            continue
        if taken & {root, *names}:
            continue
        start, end = parsed.span(statement)
        rows = text.count("\n", start, end)
        # The first import binds the root; a submodule that only exists once imported is imported.
        inside = [f"import {root}", f"import {module}"] if module != root else [f"import {root}"]
        replacements.append(Replacement(start, end, "; ".join(inside) + "\n" * rows))
        for item in statement.names:
            renamed[item.asname or item.name] = f"{module}.{item.name}"
    return _rewritten(parsed, replacements, renamed) if renamed else None


VARIANTS: dict[str, Callable[[str], str | None]] = {
    "aliased": aliased,
    "from-imported": from_imported,
    "spelled-out": spelled_out,
}


def _rewritten(parsed: _Text, replacements: list[Replacement], renamed: dict[str, str]) -> str | None:
    """Apply the replacements and rename the uses; ``None`` if that is no longer Python."""
    for old, new in renamed.items():
        replacements += [Replacement(*parsed.span(node), new) for node in parsed.names(old)]
    for constant in parsed.quoted_annotations():
        start, end = parsed.span(constant)
        content = parsed.text[start:end]
        for old, new in renamed.items():
            content = re.sub(rf"(?<![\w.]){old}\b", new, content)
        if content != parsed.text[start:end]:
            replacements.append(Replacement(start, end, content))
    result = parsed.text
    last = len(result) + 1
    for replacement in sorted(set(replacements), reverse=True):
        if replacement.end > last:
            continue  # a part of what is replaced already
        result = result[: replacement.start] + replacement.content + result[replacement.end :]
        last = replacement.start
    ast.parse(result)
    assert result.count("\n") == parsed.text.count("\n"), "a variant must keep its rows"
    return result


def _imports(parsed: _Text, kind: type[Statement]) -> list[Statement]:
    return [node for node in ast.walk(parsed.tree) if isinstance(node, kind)]


def _bound(statement: ast.Import | ast.ImportFrom) -> set[str]:
    return {item.asname or item.name.partition(".")[0] for item in statement.names}


def _clause(item: ast.alias) -> str:
    return f"{item.name} as {item.asname}" if item.asname else item.name


def _is_of_a_library(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES
