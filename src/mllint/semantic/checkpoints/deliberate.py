"""Loads that leave keys out on purpose, by what stands around them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.handling import MAX_NAMES
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.scopes import BindingKind
from mllint.semantic.uses import without_narrowing
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_PARTS = 60
"""How many parts of an expression, and of what its names are bound to, are looked at."""

_DOWNLOADING = ("url", "download")


def is_download(load: Load) -> bool:
    """Whether what is loaded is downloaded by the code itself: the same file every time, known to whoever wrote it."""
    pending: list[cst.CSTNode] = [load.given]
    for _ in range(MAX_PARTS):
        if not pending:
            return False
        part = pending.pop()
        if isinstance(part, cst.Call):
            name = (dotted_path(part.func) or "").rpartition(".")[2].lower()
            if any(word in name for word in _DOWNLOADING):
                return True
        if isinstance(part, cst.BaseExpression):
            pending += _bound(part, load.model)
        pending += children(part)
    return False


def _bound(node: cst.BaseExpression, model: "Model") -> list[cst.BaseExpression]:
    return [
        binding.value
        for binding in without_narrowing(model.reaching(node))
        if binding.kind is BindingKind.ASSIGN and binding.value is not None
    ]


def is_handed_in(load: Load) -> bool:
    """Whether the dict comes in as an argument: what is not in it, the caller may know."""
    return _is_handed_in(load.given, load.model, 0)


def _is_handed_in(node: cst.BaseExpression, model: "Model", depth: int) -> bool:
    match node:
        case cst.Subscript():
            return _is_handed_in(node.value, model, depth)
        case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="get" | "pop" | "copy"))):
            return _is_handed_in(holder, model, depth)
        case cst.Call(func=cst.Name(value="copy" | "deepcopy"), args=[cst.Arg(value=original), *_]):
            return _is_handed_in(original, model, depth)
        case cst.Name() if depth <= MAX_NAMES:
            bindings = without_narrowing(model.reaching(node))
            return any(binding.kind is BindingKind.PARAMETER for binding in bindings) or any(
                _is_handed_in(value, model, depth + 1) for value in _bound(node, model)
            )
    return False


def is_strict_otherwise(load: Load) -> bool:
    """Whether another branch of an ``if`` around it loads strictly: the condition says which of them may be partial."""
    model = load.model
    branches = _branches(load.call, model)
    return bool(branches) and any(
        _is_in_another_branch(_branches(call, model), branches)
        for call in model.calls_by_word.get(load.method, ())
        if _is_strict(call, model)
    )


def _branches(node: cst.CSTNode, model: "Model") -> dict[int, cst.CSTNode]:
    """For each ``if`` of the function around a node the branch in which the node stands."""
    found: dict[int, cst.CSTNode] = {}
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.If) and child is not ancestor.test:
            found[id(ancestor)] = child
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            break
        child = ancestor
    return found


def _is_in_another_branch(one: dict[int, cst.CSTNode], other: dict[int, cst.CSTNode]) -> bool:
    return any(statement in other and other[statement] is not branch for statement, branch in one.items())


def _is_strict(call: cst.Call, model: "Model") -> bool:
    load = load_of(model, call)
    return load is not None and load.is_strict is True
