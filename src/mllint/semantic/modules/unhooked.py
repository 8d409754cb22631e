"""Modules on which nobody can have put a hook, or has a reason to."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.modules.module_keys import module_keys
from mllint.semantic.names.definitions import class_around
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Module

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# With a module of which nothing else is asked nobody trains, and nobody has got hold of it.
_ONLY_RUN = frozenset({"forward", "to", "cuda", "cpu", "half", "float", "double", "eval", "train"})


def is_unhooked(model: "Model", node: cst.BaseExpression, module: Module) -> bool:
    """Whether the module that an expression stands for is made for one call, is only run, or is a loss."""
    return module.call is node or _is_only_run(model, node, module) or _is_loss(model, node, module)


def _is_only_run(model: "Model", node: cst.BaseExpression, module: Module) -> bool:
    """Whether a module is made right there, and nothing is done with it but to move it and to call ``forward``."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    if len(bindings) != 1 or module.call is None:
        return False
    made = bindings[0].value
    while isinstance(made, cst.Call) and made is not module.call and isinstance(made.func, cst.Attribute):
        made = made.func.value  # `Net().cuda()`
    if made is not module.call:
        return False
    for use in uses(model, bindings[0]):
        attribute = model.tree.parent(use)
        if not isinstance(attribute, cst.Attribute) or attribute.attr.value not in _ONLY_RUN:
            return False
    return True


def _is_loss(model: "Model", node: cst.BaseExpression, module: Module) -> bool:
    """Whether a module is a loss of the library, or one of the project without weights that is no part of another."""
    if module.wrappers or module.others:
        return False
    if module.definition is None:
        known = None if module.name is None else lookup.class_(module.name)
        return known is not None and known.kind == "loss"
    holder = class_around(model, node)
    is_part = holder is not None and (holder.framework is not None or holder.has_unknown_base)
    return not is_part and module_keys(model, node, module).is_empty
