"""What a classmethod makes of the class that it is called on: ``Net.from_pretrained(path)`` gives a ``Net``.

Its body sees the class around it, which may be one that ``Net`` derives from.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import GIVING_ITSELF
from mllint.semantic.names.scopes import BindingKind, all_assigned
from mllint.semantic.values import ClassObject, Elements, Function, Instance, Module, Nothing, Value
from mllint.syntax.shape import before_methods, is_super_call

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_MAX_STEPS = 6
"""Through how many names and classmethods it is followed where an object was made."""


def made_of(model: "Model", call: cst.Call, callee: ClassObject) -> Value:
    """What a call of a class makes; ``cls()`` of a class from which others of its file derive may make one of these.

    Others may derive from it in files that import its own, which a value does not rest on.
    """
    definition = callee.definition
    is_open = bool(definition.members.subclasses) and is_called_class(model, call.func)
    return definition.instance(None if is_open else call)


def is_called_class(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name is the class that the classmethod around was called on."""
    around = model.enclosing_function(node) if isinstance(node, cst.Name) else None
    return around is not None and _is_class(model.function_info(around), node)


def of_called_class(caller: "Model", call: cst.Call, function: Function, found: Value) -> Value:
    """What a call of a classmethod gives, where the method gives something that its own class makes.

    ``found`` is what it gives when it is called on the class in which it stands.
    """
    info = function.definition
    if info.owner is None or "builtins.classmethod" not in info.decorators:
        return found
    called_on = _class_called_on(caller, call, function)
    if called_on is None or called_on is info.owner or info.owner not in called_on.lineage:
        return found
    returned = [item.value for item in info.scope.returns if item.value is not None]
    values = [value for value in returned if not isinstance(info.model.value(value), Nothing)]
    return _made_by(found, info, called_on, values)


def _class_called_on(caller: "Model", call: cst.Call, function: Function) -> "ClassInfo | None":
    """The class on which a classmethod is called: ``super().load()`` runs it on the class of the caller."""
    receiver = function.receiver
    if isinstance(call.func, cst.Attribute) and is_super_call(call.func.value):
        around = caller.enclosing_function(call)
        return None if around is None else caller.function_info(around).owner
    return receiver.definition if isinstance(receiver, (ClassObject, Module, Instance)) else None


def _made_by(found: Value, info: "FunctionInfo", called_on: "ClassInfo", values: list[cst.BaseExpression]) -> Value:
    if isinstance(found, Elements):
        displays = [item for item in values if isinstance(item, cst.Tuple) and len(item.elements) == len(found.items)]
        if not displays or len(displays) < len(values):
            return found
        columns = zip(*([element.value for element in item.elements] for item in displays), strict=True)
        parts = zip(found.items, columns, strict=True)
        return Elements(
            tuple(part and _made_by(part, info, called_on, list(column)) for part, column in parts), found.mutable
        )
    if not isinstance(found, (Module, Instance)) or found.definition is not info.owner:
        return found
    if isinstance(found, Module) and (found.wrappers or found.others):
        return found
    if not values or not all(_is_made_by_class(info, value, _MAX_STEPS) for value in values):
        return found
    return called_on.instance(found.call if isinstance(found, Module) else None)


def _is_made_by_class(info: "FunctionInfo", node: cst.BaseExpression, steps: int) -> bool:
    """Whether an expression of a classmethod is a new object of the class that the method is called on."""
    model, node = info.model, before_methods(node, GIVING_ITSELF)
    if isinstance(node, cst.Name):
        made = all_assigned(model, node)
        return steps > 0 and bool(made) and all(_is_made_by_class(info, value, steps - 1) for value in made)
    if not isinstance(node, cst.Call):
        return False
    if _is_class(info, node.func):
        return True
    if steps > 0 and isinstance(model.value(node.func), Function) and _is_of_own_class(info, node):
        return any(_is_made_by_class(info, arg.value, steps - 1) for arg in node.args)  # `return filled(model, path)`
    method = node.func
    if steps == 0 or not isinstance(method, cst.Attribute):
        return False
    callee = model.value(method) if is_super_call(method.value) or _is_class(info, method.value) else None
    inner = callee.definition if isinstance(callee, Function) else None
    if inner is None or "builtins.classmethod" not in inner.decorators or not inner.is_plain:
        return False
    values = [item.value for item in inner.scope.returns]
    return bool(values) and all(value and _is_made_by_class(inner, value, steps - 1) for value in values)


def _is_of_own_class(info: "FunctionInfo", node: cst.Call) -> bool:
    """Whether a call gives an object of the class around, as far as its function tells."""
    value = info.model.value(node)
    return isinstance(value, (Module, Instance)) and value.definition is info.owner


def _is_class(info: "FunctionInfo", node: cst.BaseExpression) -> bool:
    """Whether a name is the class that a classmethod is called on: its first parameter."""
    if not isinstance(node, cst.Name) or node.value != info.self_name:
        return False
    bindings = info.model.reaching(node)
    return len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER and bindings[0].scope is info.scope
