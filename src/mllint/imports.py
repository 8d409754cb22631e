"""The imports that fixes need: how a file speaks of a module already, or where it is to import it."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import libcst as cst
from msgspec.structs import replace as replaced

from mllint.edits import NodeEdit, Side, insert_before
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import Tree

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement

_COME_WITH_PACKAGE = frozenset({"torch.nn", "paddle.nn"})
"""What ``import torch`` and ``import paddle`` import, too: their ``__init__`` does."""


def need_import(tree: Tree, module: str) -> tuple[str, NodeEdit | None]:
    """How to speak of a module such as ``math`` or ``torch.nn`` anywhere in the file.

    Returns the expression that names the module, and the edit that imports it; ``None`` where a
    plain import at module level does so already. Imports under ``try``, ``if`` or in a function do
    not count: they may not have run. A name that the file uses for something else is left alone,
    and the module is imported under another one.
    """
    package, _, inner = module.partition(".")
    for name in _visible_names(tree.module, module):
        if not _means_something_else(tree, name.partition(".")[0], module):
            return name, None
    for name in _visible_names(tree.module, package) if module in _COME_WITH_PACKAGE else ():
        if not _means_something_else(tree, name.partition(".")[0], package):
            return f"{name}.{inner}", None
    late = _is_imported_late(tree, package)
    if not _means_something_else(tree, package, module):
        return module, replaced(_insertion(tree.module, module, f"import {module}"), is_doubtful=late)
    alias = "_" + module.replace(".", "_")
    while any(name.value == alias for name in tree.by_type.get(cst.Name, ())):
        alias += "_"
    return alias, replaced(_insertion(tree.module, module, f"import {module} as {alias}"), is_doubtful=late)


def _is_imported_late(tree: Tree, package: str) -> bool:
    """Whether a file imports a package in functions, or under conditions, alone: it may run without it."""
    statements = (*tree.by_type.get(cst.Import, ()), *tree.by_type.get(cst.ImportFrom, ()))
    own = [statement for statement in statements if package in _packages(statement)]
    return bool(own) and not any(
        all(isinstance(holder, (cst.SimpleStatementLine, cst.Module)) for holder in tree.ancestors(statement))
        for statement in own
    )


def _packages(statement: cst.CSTNode) -> set[str]:
    """The first words of the modules that a statement imports, or imports from."""
    if isinstance(statement, cst.ImportFrom):
        return {(_absolute_package(statement) or "").partition(".")[0]}
    assert isinstance(statement, cst.Import)
    return {alias.evaluated_name.partition(".")[0] for alias in statement.names}


def _visible_names(module: cst.Module, wanted: str) -> Iterator[str]:
    """The expressions that plain imports at module level give to the wanted module."""
    for statement in module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for part in statement.body:
            if isinstance(part, cst.Import):
                for alias in part.names:
                    if alias.evaluated_name == wanted:
                        yield alias.evaluated_alias or wanted
            elif isinstance(part, cst.ImportFrom) and not isinstance(part.names, cst.ImportStar):
                package = _absolute_package(part)
                for alias in part.names:
                    if _joined(package, alias.evaluated_name) == wanted:
                        yield alias.evaluated_alias or alias.evaluated_name


def _joined(package: str | None, name: str) -> str:
    """The module that ``from package import name`` binds: ``from torch import torch`` binds ``torch``."""
    return name if package == name else f"{package}.{name}"


def _absolute_package(statement: cst.ImportFrom) -> str | None:
    if statement.relative or statement.module is None:
        return None
    return dotted_path(statement.module)


_BINDING_FIELDS = {
    cst.AnnAssign: "target",
    cst.AsName: "name",
    cst.AssignTarget: "target",
    cst.AugAssign: "target",
    cst.ClassDef: "name",
    cst.CompFor: "target",
    cst.Del: "target",
    cst.For: "target",
    cst.FunctionDef: "name",
    cst.ImportAlias: "name",
    cst.MatchAs: "name",
    cst.MatchMapping: "rest",
    cst.MatchStar: "name",
    cst.NameItem: "name",
    cst.NamedExpr: "target",
    cst.Param: "name",
    cst.ParamSpec: "name",
    cst.TypeAlias: "name",
    cst.TypeVar: "name",
    cst.TypeVarTuple: "name",
}


def _means_something_else(tree: Tree, name: str, module: str) -> bool:
    """Whether the file binds the name, in any scope, to anything but (the root of) the module."""
    return any(
        node.value == name and _binds_something_else(tree, node, module) for node in tree.by_type.get(cst.Name, ())
    )


def _binds_something_else(tree: Tree, node: cst.Name, module: str) -> bool:
    child: cst.CSTNode = node
    parent = tree.parent(child)
    while isinstance(parent, (cst.BaseElement, cst.Tuple, cst.List)):
        child, parent = parent, tree.parent(parent)
    field = _BINDING_FIELDS.get(type(parent)) if parent is not None else None
    if parent is None or field is None or getattr(parent, field) is not child:
        return False
    if isinstance(parent, cst.AsName):
        parent = tree.parent(parent)
    return not isinstance(parent, cst.ImportAlias) or _imports_something_else(tree, parent, node, module)


def _imports_something_else(tree: Tree, alias: cst.ImportAlias, node: cst.Name, module: str) -> bool:
    """Whether an import in which the name stands binds it to anything but the module.

    In a function even the module itself is something else: before that import has run, the name
    has no value there.
    """
    if alias.asname is not None and alias.asname.name is not node:
        return False  # `import name as other`
    if any(isinstance(holder, cst.FunctionDef) for holder in tree.ancestors(alias)):
        return True
    statement = tree.parent(alias)
    if isinstance(statement, cst.ImportFrom):
        return _joined(_absolute_package(statement), alias.evaluated_name) != module
    if alias.asname is not None:
        return alias.evaluated_name != module
    return node.value != module.partition(".")[0]


def _insertion(module: cst.Module, wanted: str, statement: str) -> NodeEdit:
    """Insert an import into the first block of plain imports, or behind what must stay first.

    In front of the first import that the usual order puts behind it (``import`` by name, then
    ``from``), so that sorted imports stay sorted.
    """
    body = module.body
    preamble = _preamble(body)
    block = _first_import_block(body[len(preamble) :])
    for line in block:
        if _sorts_behind(line, wanted):
            return insert_before(line, statement + _newline(module, line))
    if block:
        return _insert_line_behind(module, block[-1], statement)
    first = body[0]
    newline = _newline(module, first)
    if preamble:
        return _insert_line_behind(module, preamble[-1], newline + statement)
    if isinstance(first, (cst.FunctionDef, cst.ClassDef)) and first.decorators:
        return insert_before(first.decorators[0], statement + newline * 2)
    return insert_before(first, statement + newline * 2)


def _preamble(body: Sequence[Statement]) -> list[cst.SimpleStatementLine]:
    """The statements (docstring, ``__future__``) that must stay in front of every import."""
    preamble: list[cst.SimpleStatementLine] = []
    for statement in body:
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        part = statement.body[0]
        is_docstring = not preamble and isinstance(part, cst.Expr) and isinstance(part.value, cst.BaseString)
        is_future = isinstance(part, cst.ImportFrom) and _absolute_package(part) == "__future__"
        if not is_docstring and not is_future:
            break
        preamble.append(statement)
    return preamble


def _first_import_block(body: Sequence[Statement]) -> list[cst.SimpleStatementLine]:
    """The first run of lines that hold nothing but imports, up to an empty line or a comment."""
    block: list[cst.SimpleStatementLine] = []
    for statement in body:
        is_import = isinstance(statement, cst.SimpleStatementLine) and all(
            isinstance(part, (cst.Import, cst.ImportFrom)) for part in statement.body
        )
        if block and (not is_import or statement.leading_lines):
            break
        if is_import:
            assert isinstance(statement, cst.SimpleStatementLine)
            block.append(statement)
    return block


def _sorts_behind(line: cst.SimpleStatementLine, module: str) -> bool:
    first = line.body[0]
    if not isinstance(first, cst.Import):
        return True
    return first.names[0].evaluated_name.casefold() > module.casefold()


def _insert_line_behind(module: cst.Module, line: cst.SimpleStatementLine, statement: str) -> NodeEdit:
    """Insert a line behind another one and the comment at its end."""
    if line is module.body[-1] and not module.has_trailing_newline:
        return insert_before(line, statement.lstrip("\r\n") + _newline(module, line))
    end = line.trailing_whitespace.newline
    return NodeEdit(end, Side.END, end, Side.END, statement + _newline(module, line))


def _newline(module: cst.Module, statement: Statement) -> str:
    """The line end that the file uses at a statement."""
    if isinstance(statement, cst.SimpleStatementLine):
        return statement.trailing_whitespace.newline.value or module.default_newline
    return module.default_newline
