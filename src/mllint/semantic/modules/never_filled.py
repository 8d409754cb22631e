"""Tensors of nothing but zeros or ones in plain attributes, with which ``forward`` computes and which nobody fills.

Adding zeros and multiplying by ones has no effect, and multiplying by zeros leaves nothing: who writes that means a
tensor that is learned, or filled.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.modules.handed_over import is_handed_over
from mllint.semantic.modules.inputs import is_input
from mllint.semantic.modules.other_objects import is_assigned_from_outside, is_touched_from_outside
from mllint.semantic.names.classes import Members, Role
from mllint.semantic.values import Tensor
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MADE_OF = {
    "torch.zeros": "zeros",
    "torch.ones": "ones",
    "paddle.zeros": "zeros",
    "paddle.ones": "ones",
}
_SHAPING = frozenset({
    "to", "cuda", "cpu", "float", "type_as", "astype", "view", "reshape", "unsqueeze", "squeeze", "expand", "expand_as",
    "t", "T",
})  # fmt: skip
"""What gives a tensor of the same numbers."""


def made_of(members: Members, name: str) -> str | None:
    """What an attribute is made of, ``"zeros"`` or ``"ones"``, where nobody fills it and ``forward`` computes with it
    as if there were other numbers in it; ``None`` otherwise.
    """
    places = list(members.assignments(name))
    place = places[0] if len(places) == 1 else None
    if place is None or place.value is None or place.method is None or place.role in (Role.BUFFER, Role.PARAMETER):
        return None
    if place.setter is not None or place.method.name != "__init__" or not isinstance(place.node, cst.Assign):
        return None
    numbers = _numbers(place.model, place.value)
    if numbers is None or members.reads_computed_names or members.sets_computed_names:
        return None
    running, in_vain = members.reachable("forward"), False
    for read in members.reads(name):
        operation, operand = _operation(read.method.model, read.node)
        if operation is None or read.method not in running:
            return None
        in_vain = in_vain or _is_in_vain(read.method.model, operation, operand, numbers)
    if not in_vain or is_touched_from_outside(members.definition, name) or is_handed_over(members, name):
        return None
    return None if is_assigned_from_outside(members.definition, name) else numbers


def _numbers(model: "Model", value: cst.BaseExpression) -> str | None:
    name = model.qualified_name(value.func) if isinstance(value, cst.Call) else None
    made = None if name is None else _MADE_OF.get(name)
    return made if made is not None and isinstance(model.value(value), Tensor) else None


def _operation(model: "Model", node: cst.BaseExpression) -> tuple[cst.BinaryOperation | None, cst.BaseExpression]:
    """The operation of which an attribute, perhaps in another shape, is an operand."""
    while True:
        parent = model.tree.parent(node)
        if not isinstance(parent, cst.Attribute) or parent.attr.value not in _SHAPING:
            return (parent, node) if isinstance(parent, cst.BinaryOperation) else (None, node)
        node = model.tree.call_of(parent) or parent


def _is_in_vain(model: "Model", operation: cst.BinaryOperation, operand: cst.BaseExpression, numbers: str) -> bool:
    """Whether an operation of what came from outside with such numbers has no effect, or leaves nothing."""
    is_left = operation.left is operand
    other = operation.right if is_left else operation.left
    match operation.operator:
        case cst.Add():
            is_vain = numbers == "zeros"
        case cst.Subtract():
            is_vain = numbers == "zeros" and not is_left
        case cst.Multiply():
            is_vain = True
        case cst.Divide():
            is_vain = numbers == "ones" and not is_left
        case _:
            is_vain = False
    return is_vain and last_word(other) != "shape" and is_input(model, other)
