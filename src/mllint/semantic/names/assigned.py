"""What a name stands for where nothing but assignments bind it, each to one expression."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import Binding, BindingKind

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def assigned(binding: Binding) -> cst.BaseExpression | None:
    """The expression that an assignment binds as a whole, declared or not; ``None`` for every other binding."""
    is_assignment = binding.kind is BindingKind.ASSIGN or binding.kind is BindingKind.ANNOTATED
    return binding.value if is_assignment and not binding.path else None


def only_assigned(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The one expression that a name or dotted path is assigned; ``None`` where anything else may be bound to it."""
    bindings = model.reaching(node)
    return assigned(bindings[0]) if len(bindings) == 1 else None


def all_assigned(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The expressions one of which a name or dotted path is assigned; none where anything else may be bound to it."""
    values = [assigned(binding) for binding in model.reaching(node)]
    return [] if None in values else [value for value in values if value is not None]


def grown_from(model: "Model", local: cst.Name) -> list[Binding]:
    """What binds a local name where it is read, and by what it has grown or changed in place: ``layers += [...]``."""
    found: list[Binding] = []
    pending: list[cst.BaseExpression] = [local]
    while pending:
        for binding in model.reaching(pending.pop()):
            if binding not in found:
                found.append(binding)
                if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
                    pending.append(binding.node.target)
    return found
