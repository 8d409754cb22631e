"""Classes of the project that change the learning rate of an optimizer step by step, and derive from no library."""

import libcst as cst

from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.syntax.shape import string_literal
from mllint.syntax.walk import subtree

_MAX_METHODS = 12
"""Into how many methods of an object its step is followed."""


def framework_of_own(definition: ClassInfo) -> str | None:
    """The framework whose optimizers a class changes in its ``step()`` and nowhere else; ``None``: that is no such one.

    PyTorch has the rate in ``optimizer.param_groups[0]["lr"]``, Paddle takes it from ``optimizer.set_lr(rate)``.
    """
    step = definition.method("step")
    if step is None or definition.has_unknown_base or definition.library_bases or definition.method("__call__"):
        return None
    found: str | None = None
    pending, seen = [step], list[FunctionInfo]()
    while pending and len(seen) < _MAX_METHODS:
        method = pending.pop()
        if method in seen:
            continue
        seen.append(method)
        found = found or _sets_rate(method)
        called = (definition.method(name) for name in _own_calls(method))
        pending += [item for item in called if item is not None]
    others = [item for info in definition.lineage for item in info.methods.values() if item not in seen]
    return None if any(_sets_rate(item) for item in others if item.name != "__init__") else found


def _sets_rate(method: FunctionInfo) -> str | None:
    """The framework whose optimizers are given another rate in a method."""
    for part in subtree(method.node.body):
        if isinstance(part, cst.AssignTarget) and isinstance(part.target, cst.Subscript):
            index = part.target.slice[0].slice
            if isinstance(index, cst.Index) and string_literal(index.value) == "lr":
                return "torch"
        elif isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value == "set_lr":
            return "paddle"
    return None


def _own_calls(method: FunctionInfo) -> list[str]:
    """The names of the methods of its own object that a method calls, or reads as properties."""
    return [
        part.attr.value
        for part in subtree(method.node.body)
        if isinstance(part, cst.Attribute) and getattr(part.value, "value", None) == method.self_name
    ]
