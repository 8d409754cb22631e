"""What ``Accelerator.prepare`` gives back: what it was given, in the same order, each of the same kind."""

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Elements, Module, Object, Value
from mllint.syntax.shape import has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ACCELERATORS = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator"})


def prepared(model: "Model", call: cst.Call) -> Value | None:
    """What a call of ``prepare`` gives, where it is that of an accelerator."""
    given = [arg.value for arg in call.args if arg.keyword is None]
    if not given or has_star_arguments(call) or not isinstance(call.func, cst.Attribute):
        return None
    if not model.imports("accelerate") or not _is_accelerator(model, call.func.value):
        return None
    values = [_prepared(model.value(node)) for node in given]
    return values[0] if len(values) == 1 else Elements(tuple(values))


def _prepared(value: Value | None) -> Value | None:
    if isinstance(value, Module):
        return replace(value, wrappers=("?", *value.wrappers))  # by how many processes there are
    return value if isinstance(value, Object) else None


def _is_accelerator(model: "Model", node: cst.BaseExpression) -> bool:
    bindings = model.reaching(node)
    if not bindings and isinstance(node, cst.Attribute):
        method = method_of_receiver(model, node.value)
        owner = None if method is None else method.owner
        bindings = () if owner is None else tuple(owner.assignments(node.attr.value))
    if not bindings and isinstance(node, cst.Name):
        bindings = tuple(model.scope(model.tree.module).bindings.get(node.value, ()))
    return bool(bindings) and all(
        binding.kind is BindingKind.ASSIGN
        and isinstance(binding.value, cst.Call)
        and binding.scope.model.qualified_name(binding.value.func) in _ACCELERATORS
        for binding in bindings
    )
