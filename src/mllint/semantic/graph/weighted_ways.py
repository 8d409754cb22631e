"""Which ways a module may be built: attributes that are a layer with weights on one of them, and the ways through a
block that its options leave, ``ConvBlock(3, 8, activation="relu")``.

Whoever builds it may choose another class. What is wrong with the one that the file itself names is wrong already.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import saved_tensors
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Module, Symbol
from mllint.syntax.shape import argument, constant, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MAX_STEPS = 6
"""Through how many names and choices a layer is followed to what builds it."""


def may_have_weights(model: "Model", callee: cst.BaseExpression, *, at_once: bool = False) -> bool:
    """Whether an attribute is a layer with weights unless another is given, as in ``norm or nn.BatchNorm2d``.

    So is a ``Sequential`` with one, which has to be its first where what it is given must go into it ``at_once``.
    """
    owner = owner_of_attribute(model, callee)
    if owner is None or not isinstance(callee, cst.Attribute):
        return False
    ways: set[bool | None] = set()
    for binding in owner.assignments(callee.attr.value):
        made = binding.value if binding.kind is BindingKind.ASSIGN and not binding.path else None
        ways |= {False} if made is None else _ways(binding.scope.model, made, MAX_STEPS, at_once)
    return True in ways and False not in ways


def is_open_layer(model: "Model", call: cst.Call) -> bool:
    """Whether a call runs such a layer, of which nothing else is known, or only that it is one of several."""
    value = model.value(call.func)
    if isinstance(value, Module):
        is_known = value.definition is not None or (value.name is not None and not value.others)
    else:
        is_known = value is not None
    if is_known or not call.args or call.args[0].star:
        return False
    return may_have_weights(model, call.func, at_once=True)


def _ways(model: "Model", node: cst.BaseExpression, steps: int, at_once: bool) -> set[bool | None]:
    """Whether an expression gives a layer with weights on each of its ways; ``None`` for what somebody chooses."""
    if steps == 0:
        return {False}
    match node:
        case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(left=one, right=other):
            return _ways(model, one, steps - 1, at_once) | _ways(model, other, steps - 1, at_once)
        case cst.Name():
            ways: set[bool | None] = set()
            for binding in model.reaching(node):
                is_whole = binding.kind is BindingKind.ASSIGN and not binding.path and binding.value is not None
                if is_whole and binding.value is not None:
                    ways |= _ways(binding.scope.model, binding.value, steps - 1, at_once)
                else:
                    ways.add(None if binding.kind is BindingKind.PARAMETER else False)
            return ways or {False}
        case cst.Call():
            return {_is_weighted(model, node, steps - 1, at_once)}
    return {False}


def _is_weighted(model: "Model", call: cst.Call, steps: int, at_once: bool) -> bool:
    """Whether a call builds a layer with weights, or a ``Sequential`` with one."""
    value = model.value(call)
    if isinstance(value, Module) and value.name is not None and value.name.endswith(".Sequential"):
        layers = call.args[:1] if at_once else call.args
        return any(True in _ways(model, arg.value, steps, at_once) for arg in layers if not arg.star)
    if isinstance(value, Module):
        return _is_class_with_weights(value.name)
    return value is None and _names_weighted(model, call.func, steps)


def _names_weighted(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether what is called to build a layer is a class of one with weights on some way: ``norm_layer(width)``."""
    value = model.value(node)
    if isinstance(value, Symbol):
        return _is_class_with_weights(value.name)
    if value is not None or steps == 0:
        return False
    owner = owner_of_attribute(model, node)
    if owner is not None and isinstance(node, cst.Attribute):
        bindings = tuple(owner.assignments(node.attr.value))
    else:
        bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    for binding in bindings:
        made = binding.node.default if isinstance(binding.node, cst.Param) else binding.value
        sides = (made.left, made.right) if isinstance(made, cst.BooleanOperation) else (made,)
        if not binding.path and any(
            side is not None and _names_weighted(binding.scope.model, side, steps - 1) for side in sides
        ):
            return True
    return False


def _is_class_with_weights(name: str | None) -> bool:
    layer = None if name is None else saved_tensors.layer(name)
    return layer is not None and layer[1]


MAX_OPTIONS = 6
"""Through how many conditions and attributes an option is followed."""
_OBJECT = object()
"""What a constructor sets an attribute to that is no constant: a layer, which is true and not ``None``."""


def is_reached(model: "Model", node: cst.CSTNode, block: Module | None, steps: int = MAX_OPTIONS) -> bool | None:
    """Whether the forward pass of a block surely comes to a place, or never; ``None`` where its options do not tell."""
    found: bool | None = True
    for test, turn in verdicts(model, node):
        told = None if block is None else _holds(model, test, block, steps)
        if told is not None and told is not turn:
            return False
        found = found if told is not None else None
    return found


def left_by_options(
    model: "Model", bindings: tuple[Binding, ...], block: Module | None, steps: int = MAX_OPTIONS
) -> tuple[Binding, ...]:
    """Those of several bindings of one name that the options of a block leave."""
    if block is None or len(bindings) < 2:
        return bindings
    turns = [(binding, is_reached(model, binding.node, block, steps)) for binding in bindings]
    last = max((binding.order for binding, turn in turns if turn is True), default=-1)
    return tuple(binding for binding, turn in turns if turn is not False and binding.order >= last)


def chosen(
    model: "Model", node: cst.BaseExpression, block: Module | None, steps: int = MAX_OPTIONS
) -> cst.BaseExpression:
    """The side of ``a if option else b`` that is taken; the expression itself where that is not known."""
    if block is None or steps <= 0 or not isinstance(node, cst.IfExp):
        return node
    told = _holds(model, node.test, block, steps - 1)
    return node if told is None else chosen(model, node.body if told else node.orelse, block, steps - 1)


def _holds(model: "Model", test: cst.BaseExpression, block: Module, steps: int = MAX_OPTIONS) -> bool | None:
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
