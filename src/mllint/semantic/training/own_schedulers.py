"""Classes of the project that change the learning rate of an optimizer step by step, and derive from no library."""

import libcst as cst

from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.syntax.shape import string_literal, subscript_index
from mllint.syntax.walk import subtree


def framework_of_own(definition: ClassInfo) -> str | None:
    """The framework whose optimizers a class changes in its ``step()`` and nowhere else; ``None``: that is no such one.

    PyTorch has the rate in ``optimizer.param_groups[0]["lr"]``, Paddle takes it from ``optimizer.set_lr(rate)``.
    """
    is_plain = not definition.has_unknown_base and all(base in PLAIN_BASES for base in definition.library_bases)
    if not is_plain or definition.method("step") is None or definition.method("__call__") is not None:
        return None
    methods = [method for info in definition.lineage for method in info.methods.values() if method.name != "__init__"]
    setting = {method: framework for method in methods if (framework := _sets_rate(method)) is not None}
    return next(iter(setting.values()), None) if setting.keys() <= definition.members.reachable("step") else None


def _sets_rate(method: FunctionInfo) -> str | None:
    """The framework whose optimizers are given another rate in a method."""
    for part in subtree(method.node.body):
        if isinstance(part, cst.AssignTarget) and isinstance(part.target, cst.Subscript):
            if string_literal(subscript_index(part.target)) == "lr":
                return "torch"
        elif isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value == "set_lr":
            return "paddle"
    return None
