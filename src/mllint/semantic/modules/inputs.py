"""Whether a tensor is where the weights are: it comes from outside, or was computed with what does."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import callers, passed_for
from mllint.semantic.modules.made_on_cpu import FACTORIES, OF_VALUES
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Function, Module, Output, Tensor, Value
from mllint.syntax.shape import argument, followed, part_at
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_JOINING = frozenset({"torch.cat", "torch.concat", "torch.stack"})
_Known: TypeAlias = dict[int, bool]
"""What one question has found of bindings and functions, by their id; those it is at come from nowhere else."""
_MAX_KNOWN = 60


def is_input(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is surely a tensor that came from outside or was computed with the weights."""
    return _is_input(model, node, {})


def _is_input(model: "Model", node: cst.BaseExpression, known: _Known) -> bool:
    value: Value | None = model.value(node)
    if isinstance(value, Output):
        return True
    if isinstance(value, Tensor) and value.attached is True:
        return not _has_leaf_in_it(model, node)
    return isinstance(value, Tensor) and not value.scalar and _is_from_parameter(model, node, known)


def _has_leaf_in_it(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the graph of an expression may hang on a tensor that lies in an attribute and is no weight either."""
    parts = (model.value(part) for part in subtree(node) if isinstance(part, cst.Attribute))
    return any(isinstance(part, Tensor) and part.leaf and not part.parameter for part in parts)


def _is_from_parameter(model: "Model", node: cst.BaseExpression, known: _Known) -> bool:
    """Whether a chain of calls, items and operations starts from what ``forward`` is given, or what weights gave."""
    while not isinstance(node, cst.Name):
        match node:
            case cst.Call() if _runs_weights(model, node) or _is_joined(model, node, known) or _is_there(model, node):
                return True
            case cst.Call() if isinstance(callee := model.value(node.func), Function):
                return _gives_input(callee, (), known)
            case cst.Attribute() if isinstance(value := model.value(node), Tensor) and value.parameter:
                return True
            case cst.Call(args=[cst.Arg(value=first, star="", keyword=None), *_]) if _is_operation(
                model, node
            ) or _runs_no_weights(model, node):
                node = first
            case cst.Call(func=cst.Attribute(value=inner)) | cst.Attribute(value=inner) | cst.Subscript(value=inner):
                node = inner
            case cst.BinaryOperation():
                sides = (node.left, node.right)
                return any(_is_from_parameter(model, side, known) for side in sides)
            case cst.IfExp():
                ways = (node.body, node.orelse)
                return all(_is_from_parameter(model, way, known) for way in ways)
            case _:
                return False
    function = model.enclosing_function(node)
    if function is None or model.function_info(function).self_name == node.value:
        return False
    return any(_binds_input(model, binding, known) for binding in model.reaching(node))


def _binds_input(model: "Model", binding: Binding, known: _Known) -> bool:
    return _once(known, binding, lambda: _derive(model, binding, known))


def _once(known: _Known, thing: object, derive: Callable[[], bool]) -> bool:
    """What is so of a thing, found once, though many ways lead to it and some back to where they began."""
    if id(thing) not in known:
        if len(known) >= _MAX_KNOWN:
            return False
        known[id(thing)] = False
        known[id(thing)] = derive()
    return known[id(thing)]


def _derive(model: "Model", binding: Binding, known: _Known) -> bool:
    function, node = binding.scope.node, binding.node
    if binding.kind is BindingKind.PARAMETER and isinstance(node, cst.Param) and isinstance(function, cst.FunctionDef):
        info = model.function_info(function)
        if info.name == "forward" or any(_is_input(home, item, known) for home, item in _passed(info, node)):
            return True
        return any(_is_given_to_weights(model, use) for use in uses(model, binding))
    if binding.kind is BindingKind.AUGMENTED and isinstance(node, cst.AugAssign):
        return _is_from_parameter(model, node.target, known)  # an operation in place
    if binding.kind is not BindingKind.ASSIGN or binding.value is None:
        return False
    value, path = followed(binding.value, binding.path)
    callee = model.value(value.func) if path and isinstance(value, cst.Call) else None
    if isinstance(callee, Function):
        return _gives_input(callee, path, known)
    return _is_from_parameter(model, value, known)


def _is_given_to_weights(model: "Model", use: cst.CSTNode) -> bool:
    """Whether a layer of the object is given something as it is: it has to be where the weights are."""
    arg = model.tree.parent(use)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and _runs_weights(model, call)


def _passed(info: FunctionInfo, parameter: cst.Param) -> "Iterator[tuple[Model, cst.BaseExpression]]":
    """What the calls of a function pass for a parameter, in its file and in those that import it."""
    for home, seen in callers(info):
        named = next((item for item in seen.parameters if item.name.value == parameter.name.value), parameter)
        yield from ((home, item) for item in passed_for(home, seen, named))


def _is_operation(model: "Model", call: cst.Call) -> bool:
    """Whether a call is one of a function whose result is where its first tensor is."""
    name = model.qualified_name(call.func)
    fact = None if name is None or name.endswith(("_like", "from_numpy")) else lookup.function(name)
    return fact is not None and fact.returns in ("tensor", "scalar", "tensors") and name not in FACTORIES | OF_VALUES


def _is_joined(model: "Model", call: cst.Call, known: _Known) -> bool:
    """Whether a call joins tensors of which one came from outside: ``torch.cat([x, y])``."""
    first = call.args[0].value if call.args else None
    if not isinstance(first, (cst.List, cst.Tuple)) or model.qualified_name(call.func) not in _JOINING:
        return False
    return any(_is_from_parameter(model, element.value, known) for element in first.elements)


def _is_there(model: "Model", call: cst.Call) -> bool:
    """Whether a new tensor is made where one from outside is: ``torch.arange(n, device=x.device)``."""
    device = argument(call, None, "device")
    if device is None or not isinstance(device.value, cst.Attribute) or device.value.attr.value != "device":
        return False
    return model.qualified_name(call.func) in FACTORIES and is_input(model, device.value.value)


def _runs_weights(model: "Model", call: cst.Call) -> bool:
    """Whether a call runs a module that has weights: what it gives is where they are."""
    function = call.func
    if isinstance(function, cst.Attribute) and function.attr.value == "forward":
        function = function.value
    return isinstance(model.value(function), Module) and has_weights(model, function) is True


def _runs_no_weights(model: "Model", call: cst.Call) -> bool:
    """Whether a call runs a layer of the libraries without weights: what it gives is where its input is."""
    module = model.value(call.func)
    return isinstance(module, Module) and module.name is not None and has_weights(model, call.func) is False


def _gives_input(callee: Function, path: tuple[int | None, ...], known: _Known) -> bool:
    """Whether all that a function of the project gives back is computed from what it is given from outside.

    ``path``: what stands there of several things that it gives.
    """
    home, given = callee.definition.model, callee.definition.scope.returns
    values = [part for item in given if (part := part_at(item.value, path)) is not None]
    if not given or len(values) < len(given):
        return False
    asked = values[0] if path else callee.definition
    return _once(known, asked, lambda: all(_is_from_parameter(home, item, known) for item in values))
