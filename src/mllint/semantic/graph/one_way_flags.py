"""Gradient flags that are set under a test of themselves: what is frozen once is never thawed. And those by which the
code itself picks what it trains.
"""

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import passed_for
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import attributes
from mllint.syntax.shape import constant, dotted_path, fingerprint, last_word
from mllint.syntax.walk import names_in

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FREEZING = {"requires_grad": False, "stop_gradient": True}
"""The flags, and the value with which a parameter is frozen."""


def only_freezes(model: "Model", target: cst.Attribute, value: cst.BaseExpression) -> bool:
    """Whether a flag that callers choose is set where it asks for gradients already, and nowhere else:
    ``if weight.requires_grad: weight.requires_grad = wanted``.
    """
    flag, function = target.attr.value, function_around(model, target)
    if flag not in _FREEZING or function is None or not isinstance(value, cst.Name):
        return False
    tested = _test_around(model, target)
    if tested is None or not _asks_for(tested.test, target) or not _is_chosen_by_callers(model, function, value, flag):
        return False
    around = [item for item in model.tree.ancestors(tested) if isinstance(item, cst.If)]
    if any(value.value in names_in(item.test) for item in around if model.tree.is_below(item, function.node)):
        return False  # on that way it is known
    set_ = [node for node in attributes(model, flag) if isinstance(model.tree.parent(node), cst.AssignTarget)]
    calls = model.tree.calls_in(function.node)
    is_only_one = [node for node in set_ if model.tree.is_below(node, function.node)] == [target]
    return is_only_one and not any(last_word(call.func) == "requires_grad_" for call in calls)


def picks_by(model: "Model", flag: str) -> bool:
    """Whether the file picks things by a flag, ``filter(lambda p: p.requires_grad, ...)``: whoever set it is heard."""
    return any(_is_in_test(model, node) for node in attributes(model, flag))


def _is_in_test(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in what a lambda gives, or in a condition of a comprehension."""
    inside = itertools.takewhile(lambda item: not isinstance(item, cst.BaseStatement), model.tree.ancestors(node))
    return any(isinstance(holder, (cst.Lambda, cst.CompIf)) for holder in inside)


def _test_around(model: "Model", target: cst.Attribute) -> cst.If | None:
    """The ``if`` whose body a statement is that sets a flag."""
    node: cst.CSTNode | None = target
    for kind in (cst.AssignTarget, cst.Assign, cst.SimpleStatementLine, cst.IndentedBlock):
        node = None if node is None else model.tree.parent(node)
        if not isinstance(node, kind):
            return None
    test = None if node is None else model.tree.parent(node)
    return test if isinstance(test, cst.If) and test.body is node else None


def _asks_for(test: cst.BaseExpression, target: cst.Attribute) -> bool:
    """Whether a test asks whether there is a gradient already, by the same flag."""
    if target.attr.value == "stop_gradient":
        if not isinstance(test, cst.UnaryOperation) or not isinstance(test.operator, cst.Not):
            return False
        test = test.expression
    return fingerprint(test) == fingerprint(target)


def _is_chosen_by_callers(model: "Model", function: FunctionInfo, value: cst.Name, flag: str) -> bool:
    """Whether a name is a switch that a function is given, and not in sight to freeze alone."""
    bindings = model.reaching(value)
    parameter = bindings[0].node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    if not isinstance(parameter, cst.Param) or bindings[0].scope.node is not function.node:
        return False
    annotation = None if parameter.annotation is None else dotted_path(parameter.annotation.annotation)
    default = None if parameter.default is None else constant(parameter.default)
    given = [constant(item) for item in passed_for(model, function, parameter)]
    is_switch = annotation == "bool" or isinstance(default, bool)
    return is_switch and (not given or any(item is not _FREEZING[flag] for item in given))
