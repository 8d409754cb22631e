"""What one call of a function gives back, where that depends on the options it is called with, or on the class that a
classmethod is called on.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import GIVING_ITSELF
from mllint.semantic.expressions.passed_graph import with_graph_of_arguments
from mllint.semantic.names.scopes import BindingKind, all_assigned, only_assigned
from mllint.semantic.values import (
    ClassObject,
    Elements,
    Function,
    Instance,
    Mapping,
    Module,
    Nothing,
    Tensor,
    Value,
    join,
    under_gradients,
)
from mllint.syntax.shape import argument, before_methods, constant, has_star_arguments, is_super_call, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_MAX_CALLS = 2
"""Through how many functions an option is followed that one hands on to the other."""


def returned_to(caller: "Model", call: cst.Call, function: Function) -> Value | None:
    """What a function of the project gives to this call: ``None`` when its returns disagree, or are not known.

    A ``return`` under ``if option:`` is none of this call where the option is a parameter that it leaves, or sets, to
    ``False``.
    """
    info = function.definition
    handed_back = _module_handed_back(caller, call, function)
    if handed_back is not None:
        return handed_back
    found = info.model.returned(info)
    if found is not None:
        found = of_called_class(caller, call, function, found)
        given = with_graph_of_arguments(caller, call, info, found, 0 if function.receiver is None else 1) or found
        # Computed without gradients, unless it was there before.
        return under_gradients(given, None) if caller.gradients.off(call) is True else given
    if len(info.scope.returns) < 2 or not info.is_transparent or not info.is_plain:
        return None
    possible = [item for item in info.scope.returns if not _is_passed_by(caller, item, info, call, function, {})]
    if not possible or len(possible) == len(info.scope.returns):
        return None
    result: Value | None = None
    for position, statement in enumerate(possible):
        value = Nothing() if statement.value is None else info.model.value(statement.value)
        result = value if position == 0 else join(result, value)
        if result is None:
            return None
    return result and of_called_class(caller, call, function, result)


def gets_scalar(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a thing is what a call of a project function gives that reduces everything as that call wants it."""
    call = node if isinstance(node, cst.Call) else only_assigned(model, node)
    callee = model.value(call.func) if isinstance(call, cst.Call) else None
    return isinstance(call, cst.Call) and isinstance(callee, Function) and _rank(model, call, callee, {}) is True


def _rank(caller: "Model", call: cst.Call, function: Function, known: dict[str, bool], calls: int = 0) -> bool | None:
    """Whether what this call gets has no dimension, where the others may get something else.

    ``known`` are the options that the function around has for certain; it may pass them on.
    """
    info = function.definition
    if not info.is_transparent or not info.is_plain or calls > _MAX_CALLS:
        return None
    ranks: set[bool | None] = set()
    for item in info.scope.returns:
        if _is_passed_by(caller, item, info, call, function, known):
            continue
        value = None if item.value is None else info.model.value(item.value)
        rank = value.scalar if isinstance(value, Tensor) else None
        inner = info.model.value(item.value.func) if isinstance(item.value, cst.Call) and rank is None else None
        if isinstance(item.value, cst.Call) and isinstance(inner, Function):
            options = {part.name.value: _option(caller, call, info, part, function, known) for part in info.parameters}
            certain = {name: set_to for name, set_to in options.items() if set_to is not None}
            rank = _rank(info.model, item.value, inner, certain, calls + 1)
        ranks.add(rank)
    return ranks.pop() if len(ranks) == 1 else None


def _module_handed_back(caller: "Model", call: cst.Call, function: Function) -> Module | None:
    """The module that a call gives to a function which returns just that: ``model = load_weights(model, path)``."""
    info, parameters = function.definition, list[cst.CSTNode]()
    if not info.is_transparent or not info.is_plain:
        return None
    for statement in info.scope.returns:
        bindings = info.model.reaching(statement.value) if isinstance(statement.value, cst.Name) else ()
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER or bindings[0].scope is not info.scope:
            return None
        parameters.append(bindings[0].node)
    if not parameters or any(parameter is not parameters[0] for parameter in parameters):
        return None
    position = next((index for index, item in enumerate(info.parameters) if item is parameters[0]), None)
    if position is None or has_star_arguments(call):
        return None
    given = argument(call, position - (function.receiver is not None), info.parameters[position].name.value)
    value = None if given is None else caller.value(given.value)
    return value if isinstance(value, Module) else None


def _is_passed_by(
    caller: "Model",
    statement: cst.Return,
    info: "FunctionInfo",
    call: cst.Call,
    function: Function,
    known: dict[str, bool],
) -> bool:
    """Whether a ``return`` stands in a branch that this call surely does not take."""
    child: cst.CSTNode = statement
    for ancestor in info.model.tree.ancestors(statement):
        if isinstance(ancestor, cst.If):
            outcome = _outcome(caller, ancestor.test, info, call, function, known)
            if outcome is not None and outcome is not (child is ancestor.body):
                return True
        elif isinstance(ancestor, cst.IndentedBlock):
            before = ancestor.body[: list(ancestor.body).index(child)]  # type: ignore[arg-type]
            ifs = (item for item in before if isinstance(item, cst.If))
            if any(_leaves_there(caller, item, info, call, function, known) for item in ifs):
                return True
        if ancestor is info.node:
            break
        child = ancestor
    return False


def _leaves_there(
    caller: "Model",
    branches: cst.If,
    info: "FunctionInfo",
    call: cst.Call,
    function: Function,
    known: dict[str, bool],
) -> bool:
    """Whether this call surely leaves the function in the first branch of an ``if``."""
    last = branches.body.body[-1] if branches.body.body else None
    ends = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    is_end = isinstance(ends, (cst.Return, cst.Raise))
    return is_end and _outcome(caller, branches.test, info, call, function, known) is True


def _may_set(caller: "Model", call: cst.Call, option: str) -> bool:
    """Whether ``*args`` or ``**options`` of a call may set an option; not options that are written out as a dict."""
    for arg in call.args:
        given = caller.value(arg.value) if arg.star == "**" else None
        display = given.node if isinstance(given, Mapping) else None
        if arg.star and not isinstance(display, cst.Dict):
            return True
        if isinstance(display, cst.Dict):
            keys = [string_literal(item.key) for item in display.elements if isinstance(item, cst.DictElement)]
            if len(keys) < len(display.elements) or None in keys or option in keys:
                return True
    return False


def _outcome(
    caller: "Model",
    test: cst.BaseExpression,
    info: "FunctionInfo",
    call: cst.Call,
    function: Function,
    known: dict[str, bool],
) -> bool | None:
    """What ``if option:`` or ``if not option:`` comes to in this call; ``None``: not known."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        opposite = _outcome(caller, test.expression, info, call, function, known)
        return None if opposite is None else not opposite
    bindings = info.model.reaching(test) if isinstance(test, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return None
    parameter = bindings[0].node
    return _option(caller, call, info, parameter, function, known) if isinstance(parameter, cst.Param) else None


def _option(
    caller: "Model",
    call: cst.Call,
    info: "FunctionInfo",
    parameter: cst.Param,
    function: Function,
    known: dict[str, bool],
) -> bool | None:
    """What a parameter is set to in this call, or left at; ``None``: not known, or neither ``True`` nor ``False``."""
    name = parameter.name.value
    if parameter.default is None or _may_set(caller, call, name):
        return None
    positions = [index for index, item in enumerate(info.parameters) if item is parameter]
    skipped = 0 if function.receiver is None else 1
    passed = argument(call, positions[0] - skipped if positions else None, name)
    written = parameter.default if passed is None else passed.value
    if passed is not None and isinstance(written, cst.Name) and written.value in known:
        bindings = caller.reaching(written)
        is_handed_on = len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER
        return known[written.value] if is_handed_on else None
    set_to = constant(written)
    return set_to if isinstance(set_to, bool) else None


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

    ``Net.from_pretrained(path)`` gives a ``Net``; the body sees the class around it, which ``Net`` may derive from.
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
