"""What one call of a function gives back, where that depends on the options it is called with."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.class_methods import of_called_class
from mllint.semantic.expressions.passed_graph import with_graph_of_arguments
from mllint.semantic.names.scopes import BindingKind, only_assigned
from mllint.semantic.values import Function, Mapping, Module, Nothing, Tensor, Value, join, under_gradients
from mllint.syntax.shape import argument, constant, has_star_arguments, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

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
