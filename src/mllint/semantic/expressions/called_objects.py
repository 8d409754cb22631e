"""Objects of the frameworks that are called as though they were functions: ``scheduler()`` for ``scheduler.step()``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import STATEFUL
from mllint.semantic.expressions.arguments import is_asked_about, passed_anywhere
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Nothing, Object
from mllint.syntax.shape import last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ASKING = frozenset({"isinstance", "callable", "hasattr", "type"})


def object_called(model: "Model", call: cst.Call) -> Object | None:
    """The optimizer, scheduler or scaler that is called, which raises; the schedulers of Paddle can be called."""
    word = last_word(call.func)
    if word is None or word in model.function_names or not _may_be_kept(model, call.func):
        return None
    value = model.value(call.func)
    known = value if value is not None else _given(model, call.func)
    if not isinstance(known, Object) or known.kind not in STATEFUL or known.framework is None:
        return None
    if known.framework == "paddle" and known.kind == "scheduler":
        return None
    asked = (part for test in conditions(model, call) for part in subtree(test) if isinstance(part, cst.Call))
    return None if any(last_word(part.func) in _ASKING for part in asked) else known


def _may_be_kept(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a name, none of Python's own or of the imports, or an attribute of the instance."""
    if isinstance(node, cst.Attribute):
        return owner_of_attribute(model, node) is not None
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    return any(item.kind in (BindingKind.ASSIGN, BindingKind.PARAMETER) for item in bindings)


def _given(model: "Model", node: cst.BaseExpression) -> Object | None:
    """What everybody gives for a parameter, or for the one that an attribute is set to: such objects or ``None``."""
    owner = owner_of_attribute(model, node)
    if owner is not None and isinstance(node, cst.Attribute):
        assigned = [place.value for place in owner.members.assignments(node.attr.value) if not place.is_empty]
        names = [item for item in assigned if isinstance(item, cst.Name)]
        bindings = [binding for name in names for binding in owner.model.reaching(name)]
        if len(names) < len(assigned) or owner.members.sets_computed_names:
            return None
    else:
        bindings = without_narrowing(model.reaching(node))
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return None
    return _passed(bindings[0])


def _passed(binding: Binding) -> Object | None:
    parameter, home = binding.node, binding.scope.model
    info = function_around(home, parameter)
    if info is None or not isinstance(parameter, cst.Param) or not info.is_transparent:
        return None
    if is_asked_about(home, info, parameter) or not (info.name == "__init__" or info.owner is None):
        return None
    found: list[Object] = []
    for model, node in passed_anywhere(info, parameter):
        ways = [model.binding_value(item) for item in model.reaching(node)] or [model.value(node)]
        objects = [value for value in ways if isinstance(value, Object)]
        if len(objects) + sum(isinstance(value, Nothing) for value in ways) < len(ways):
            return None
        found += objects
    return found[0] if found else None
