"""Which ways through a block are left by the options that it was built with: ``ConvBlock(3, 8, activation="relu")``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import Module
from mllint.syntax.shape import argument, constant, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MAX_STEPS = 6
"""Through how many conditions and attributes an option is followed."""
_OBJECT = object()
"""What a constructor sets an attribute to that is no constant: a layer, which is true and not ``None``."""


def is_reached(model: "Model", node: cst.CSTNode, block: Module | None, steps: int = MAX_STEPS) -> bool | None:
    """Whether the forward pass of a block surely comes to a place, or never; ``None`` where its options do not tell."""
    found: bool | None = True
    for test, turn in verdicts(model, node):
        told = None if block is None else _holds(model, test, block, steps)
        if told is not None and told is not turn:
            return False
        found = found if told is not None else None
    return found


def left_by_options(
    model: "Model", bindings: tuple[Binding, ...], block: Module | None, steps: int = MAX_STEPS
) -> tuple[Binding, ...]:
    """Those of several bindings of one name that the options of a block leave."""
    if block is None or len(bindings) < 2:
        return bindings
    turns = [(binding, is_reached(model, binding.node, block, steps)) for binding in bindings]
    last = max((binding.order for binding, turn in turns if turn is True), default=-1)
    return tuple(binding for binding, turn in turns if turn is not False and binding.order >= last)


def chosen(
    model: "Model", node: cst.BaseExpression, block: Module | None, steps: int = MAX_STEPS
) -> cst.BaseExpression:
    """The side of ``a if option else b`` that is taken; the expression itself where that is not known."""
    if block is None or steps <= 0 or not isinstance(node, cst.IfExp):
        return node
    told = _holds(model, node.test, block, steps - 1)
    return node if told is None else chosen(model, node.body if told else node.orelse, block, steps - 1)


def _holds(model: "Model", test: cst.BaseExpression, block: Module, steps: int = MAX_STEPS) -> bool | None:
    match test:
        case _ if steps <= 0:
            return None
        case cst.UnaryOperation(operator=cst.Not()):
            told = _holds(model, test.expression, block, steps - 1)
            return None if told is None else not told
        case cst.BooleanOperation():
            sides = [_holds(model, side, block, steps - 1) for side in (test.left, test.right)]
            ends = isinstance(test.operator, cst.Or)  # what decides it all
            return ends if ends in sides else None if None in sides else not ends
        case cst.Comparison(comparisons=[target]):
            return _compares(_option(model, test.left, block, steps), target.operator, constant(target.comparator))
    value = _option(model, test, block, steps)
    return None if value is ... else bool(value)


def _compares(value: object, operator: cst.BaseCompOp, other: object) -> bool | None:
    is_same = isinstance(operator, (cst.Equal, cst.Is))
    if value is ... or other is ... or not (is_same or isinstance(operator, (cst.NotEqual, cst.IsNot))):
        return None
    if value is _OBJECT and other is not None:
        return None
    return (value == other) is is_same


def _option(model: "Model", node: cst.BaseExpression, block: Module, steps: int) -> object:
    """What an attribute of a block, or a parameter of its constructor, stands for; ``...`` where that is not known."""
    if isinstance(node, cst.Name):
        return constant(node) if constant(node) is not ... else _given(model, node, block)
    owner = owner_of_attribute(model, node)
    if owner is None or not isinstance(node, cst.Attribute):
        return ...
    set_once = _set_by_constructor(owner, node.attr.value, block, steps - 1)
    if set_once is None or set_once.value is None:
        return ...
    home = set_once.scope.model
    value = chosen(home, set_once.value, block, steps - 1)
    if isinstance(value, cst.Name):
        return _option(home, value, block, steps - 1)
    is_layer = isinstance(value, cst.Call) and isinstance(home.value(value), Module)
    return _OBJECT if is_layer else constant(value)


def _set_by_constructor(owner: "ClassInfo", name: str, block: Module, steps: int) -> Binding | None:
    """The only binding of an attribute that the options of a block leave, where the constructor alone binds it."""
    bound = tuple(owner.assignments(name))
    home = bound[0].scope.node if bound else None
    if not isinstance(home, cst.FunctionDef) or home.name.value != "__init__" or owner.method(name) is not None:
        return None
    if any(item.path or item.scope.node is not home for item in bound):
        return None
    model = bound[0].scope.model
    left = left_by_options(model, bound, block, steps)
    return left[0] if len(left) == 1 and is_reached(model, left[0].node, block, steps) else None


def _given(model: "Model", name: cst.Name, block: Module) -> object:
    """What the call that has built a block gives for a parameter of the constructor, if that is a constant."""
    bindings = model.reaching(name)
    constructor = None if block.definition is None else block.definition.method("__init__")
    if constructor is None or block.call is None or len(bindings) != 1 or has_star_arguments(block.call):
        return ...
    for position, parameter in enumerate(constructor.named_parameters):
        if parameter is bindings[0].node:
            is_positional = position < len(constructor.parameters)
            given = argument(block.call, position - 1 if is_positional else None, parameter.name.value)
            return constant(parameter.default if given is None else given.value)
    return ...
