"""How much is dropped, as far as anybody in sight says: a literal, a default, a setting, or what a caller gives."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.modules.drop_rates import default_of_field, drops_nothing_in_sight, given_by_settings, rate_of
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Module, Options
from mllint.syntax.shape import constant, integer_literal, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 5
"""Through how many names and constructors a rate is followed."""
_CONVERTING = ("float", "int", "abs", "min", "max")
_PICKING = ("get", "pop", "getattr")
_DEFAULT = 0.5
"""What a dropout layer drops that is told nothing."""


def surely_drops(model: "Model", rate: cst.BaseExpression) -> bool:
    """Whether somebody in sight says a rate that is more than zero."""
    return any(value > 0 for value in _said(model, rate, _MAX_STEPS))


def is_switched_off(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an option around a place is off, and nobody in sight switches it on: ``if self.dropout:``."""
    return any(
        holds and isinstance(test, (cst.Name, cst.Attribute)) and drops_nothing_in_sight(model, test)
        for test, holds in verdicts(model, node)
    )


def _said(model: "Model", rate: cst.BaseExpression, steps: int) -> Iterator[float]:
    """The numbers that are said for a rate; none of what is not known."""
    known = constant(rate)
    if isinstance(known, (int, float)) and not isinstance(known, bool):
        yield known
        return
    if steps == 0:
        return
    match rate:
        case cst.Name():
            yield from _said_of_name(model, rate, steps - 1)
        case cst.Attribute():
            yield from _said_of_attribute(model, rate, steps - 1)
        case cst.BinaryOperation():
            yield from _said_of_sum(model, rate, steps)
        case cst.IfExp():
            yield from (*_said(model, rate.body, steps - 1), *_said(model, rate.orelse, steps - 1))
        case cst.List() | cst.Tuple():
            yield from (said for item in rate.elements for said in _said(model, item.value, steps - 1))
        case cst.Subscript():
            yield from _said_of_item(model, rate, steps - 1)
        case cst.Call() if last_word(rate.func) in _CONVERTING:
            yield from (said for arg in rate.args for said in _said(model, arg.value, steps - 1))
        case cst.Call() if last_word(rate.func) in _PICKING and len(rate.args) > 1:
            yield from _said(model, rate.args[-1].value, steps - 1)


def _said_of_sum(model: "Model", rate: cst.BinaryOperation, steps: int) -> Iterator[float]:
    """Of ``1 - keep`` what is left, of ``2 * rate`` more than nothing where the rate is, of ``[rate] * 3`` each."""
    left, right = list(_said(model, rate.left, steps - 1)), list(_said(model, rate.right, steps - 1))
    for one in left:
        for other in right:
            match rate.operator:
                case cst.Subtract():
                    yield one - other
                case cst.Add():
                    yield one + other
                case cst.Multiply():
                    yield one * other
                case cst.Divide() if other:
                    yield one / other


def _said_of_name(model: "Model", name: cst.Name, steps: int) -> Iterator[float]:
    scope = model.scope_of(name)
    home = scope.home_of(name.value)
    bound = model.reaching(name) if home in (scope, None) else tuple(home.bindings[name.value])
    for binding in without_narrowing(bound):
        yield from _said_of_binding(model, binding, steps)


def _said_of_binding(model: "Model", binding: Binding, steps: int) -> Iterator[float]:
    if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
        yield from _said_of_parameter(model, binding.node, steps)
    elif binding.value is not None and not binding.path and binding.kind is not BindingKind.IMPORT:
        yield from _said(model, binding.value, steps)


def _said_of_parameter(model: "Model", parameter: cst.Param, steps: int) -> Iterator[float]:
    """The default of a parameter, and what the callers in sight give."""
    if parameter.default is not None:
        yield from _said(model, parameter.default, steps)
    function = function_around(model, parameter)
    for home, given in () if function is None or steps == 0 else passed_anywhere(function, parameter):
        yield from _said(home, given, steps)


def _said_of_attribute(model: "Model", attribute: cst.Attribute, steps: int) -> Iterator[float]:
    """What is said of an attribute of the instance, of the rate of a layer, of an option, or of a field of settings."""
    word = attribute.attr.value
    holder = model.value(attribute.value)
    if isinstance(holder, Module) and holder.call is not None and holder.definition is None and word == "p":
        rate = rate_of(holder.call)
        yield from [_DEFAULT] if rate is None and not holder.call.args else []
        yield from () if rate is None else _said(model, rate, steps)
        return
    owner = owner_of_attribute(model, attribute)
    if owner is not None:
        for bound in owner.assignments(word):
            home = bound.scope.model
            yield from () if bound.value is None or bound.path else _said(home, bound.value, steps)
        return
    declaring = holder.model if isinstance(holder, Options) else model
    default = default_of_option(declaring, model, word)
    if default is None:
        default = default_of_field(model, attribute)
    yield from () if default is None else _said(declaring, default, steps)


def _said_of_item(model: "Model", item: cst.Subscript, steps: int) -> Iterator[float]:
    """What is said of an item of a list, or what the settings of the file have under a key."""
    key = string_literal(subscript_index(item))
    if key is not None:
        yield from (value for value in given_by_settings(model, key) if isinstance(value, (int, float)))
    elif integer_literal(subscript_index(item)) is not None or isinstance(subscript_index(item), cst.Name):
        yield from _said(model, item.value, steps)
