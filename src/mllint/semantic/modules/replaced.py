"""Submodules that a constructor makes and replaces before anything has used them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.modules.fresh import is_fresh
from mllint.semantic.modules.weights import has_only_statistics, has_weights
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Module
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_LEAVING = (cst.Return, cst.Break, cst.Continue)


def replaced_submodules(definition: "ClassInfo") -> Iterator[tuple[str, cst.CSTNode, Sequence[cst.CSTNode]]]:
    """The new submodules with weights that the same block replaces before they are read: their names, their statements
    and the lines from there to what replaces them.
    """
    constructor = definition.methods.get("__init__")
    if constructor is None or constructor.self_name is None or definition.framework is None:
        return
    prefix = f"{constructor.self_name}."
    for key, bindings in constructor.scope.bindings.items():
        name = key.removeprefix(prefix)
        if len(bindings) > 1 and key.startswith(prefix) and "." not in name:
            made = [item for item in bindings if _is_assigned_alone(item)]
            for binding, later in pairwise(made):
                lines = _lines(constructor, binding.node, later.node)
                if lines is not None and _is_replaced(definition, constructor, name, binding, later, lines[1:-1]):
                    yield name, binding.node, lines


def _is_assigned_alone(binding: Binding) -> bool:
    """Whether the result of a call is assigned to the attribute and to nothing else."""
    statement = binding.node
    is_one = isinstance(statement, cst.AnnAssign) or (isinstance(statement, cst.Assign) and len(statement.targets) == 1)
    return is_one and binding.kind is not BindingKind.AUGMENTED and not binding.path and type(binding.value) is cst.Call


def _is_replaced(
    definition: "ClassInfo",
    constructor: "FunctionInfo",
    name: str,
    binding: Binding,
    later: Binding,
    between: Sequence[cst.CSTNode],
) -> bool:
    model, value, other = constructor.model, binding.value, later.value
    if value is None or other is None or not isinstance(model.value(other), Module):
        return False
    if any(_may_use(definition, constructor, name, part) for part in (*between, other)):
        return False
    return is_fresh(model, value) and has_weights(model, value) is True and not has_only_statistics(model, value)


def _lines(constructor: "FunctionInfo", start: cst.CSTNode, end: cst.CSTNode) -> Sequence[cst.CSTNode] | None:
    """The lines from one statement to another of a block that surely runs to its end; ``None`` where it may not."""
    tree = constructor.model.tree
    first, last = tree.parent(start), tree.parent(end)
    block = None if first is None else tree.parent(first)
    if not isinstance(block, cst.IndentedBlock) or first is last or isinstance(tree.parent(block), cst.Try):
        return None
    lines: list[cst.CSTNode] = list(block.body)
    if first not in lines or last not in lines:
        return None
    lines = lines[lines.index(first) : lines.index(last) + 1]
    return None if any(isinstance(node, _LEAVING) for line in lines[1:-1] for node in subtree(line)) else lines


def _may_use(definition: "ClassInfo", constructor: "FunctionInfo", name: str, part: cst.CSTNode) -> bool:
    """Whether a piece of the constructor may do anything with an attribute: by its name, or with the whole object."""
    tree, members = constructor.model.tree, definition.members
    for node in subtree(part):
        if not isinstance(node, cst.Name) or node.value not in (constructor.self_name, "super"):
            continue
        attribute = tree.parent(node)
        if not isinstance(attribute, cst.Attribute) or attribute.value is not node:
            return True
        word = attribute.attr.value
        if isinstance(tree.parent(attribute), cst.AssignTarget):
            continue
        methods = members.reachable(word)
        if word == name or not (methods or any(True for _ in members.assignments(word))):
            return True
        if any(read.method in methods for read in members.reads(name)):
            return True
    return False
