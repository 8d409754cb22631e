"""Tensors of nothing but zeros or ones in plain attributes, with which ``forward`` computes and which nobody fills.

Adding zeros and multiplying by ones has no effect, and multiplying by zeros leaves nothing: who writes that means a
tensor that is learned, or filled.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from mllint.knowledge.words import MOVING
from mllint.semantic.modules.handed_over import is_handed_over
from mllint.semantic.modules.inputs import is_input
from mllint.semantic.modules.other_objects import is_assigned_from_outside, is_touched_from_outside
from mllint.semantic.names.classes import Assignment, Members, Role
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Tensor
from mllint.syntax.shape import before_methods, constant, dotted_path, items_of, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MADE_OF = {
    "torch.zeros": "zeros",
    "torch.ones": "ones",
    "paddle.zeros": "zeros",
    "paddle.ones": "ones",
}
_OF_VALUES = frozenset({"torch.tensor", "paddle.to_tensor"})
_SHAPING = frozenset({
    "to", "cuda", "cpu", "float", "type_as", "astype", "view", "reshape", "unsqueeze", "squeeze", "expand", "expand_as",
    "t", "T", "permute", "transpose", "contiguous", "flatten", "repeat", "gather", "index_select",
})  # fmt: skip
"""What gives a tensor of the same numbers, or of some of them."""
_MAX_STEPS = 12


def made_of(members: Members, name: str) -> str | None:
    """What an attribute is made of, ``"zeros"`` or ``"ones"``, where nobody fills it and ``forward`` computes with it
    as if there were other numbers in it; ``None`` otherwise.
    """
    found = {_numbers_at(place) for place in members.assignments(name)}
    numbers = found.pop() if len(found) == 1 else None
    if numbers is None or members.reads_computed_names or members.sets_computed_names:
        return None
    running, in_vain = members.reachable("forward"), False
    for read in members.reads(name):
        if read.method not in running:
            return None
        for operation, operand in _operations(read.method.model, read.node, _MAX_STEPS):
            if operation is None:
                return None
            in_vain = in_vain or _is_in_vain(read.method.model, operation, operand, numbers)
    if not in_vain or is_touched_from_outside(members.definition, name) or is_handed_over(members, name):
        return None
    return None if is_assigned_from_outside(members.definition, name) else numbers


def _numbers_at(place: Assignment) -> str | None:
    """Of what a statement of the constructor makes an attribute, also one in a branch."""
    if place.value is None or place.method is None or place.role in (Role.BUFFER, Role.PARAMETER):
        return None
    if place.setter is not None or place.method.name != "__init__" or not isinstance(place.node, cst.Assign):
        return None
    return _numbers(place.model, before_methods(place.value, MOVING))


def is_moved_and_sized(model: "Model", value: cst.BaseExpression) -> bool:
    """Whether such a tensor is put on a device where it is made, and has a size that is computed: it is no start of a
    sum, and no number to compare with.
    """
    made = before_methods(value, MOVING)
    if made is value or not isinstance(made, cst.Call) or model.qualified_name(made.func) not in _MADE_OF:
        return False
    sizes = [arg.value for arg in made.args if arg.keyword is None or arg.keyword.value in ("size", "shape")]
    return any(constant(part) is ... for size in sizes for part in items_of(size))


def _numbers(model: "Model", value: cst.BaseExpression) -> str | None:
    name = model.qualified_name(value.func) if isinstance(value, cst.Call) else None
    if not isinstance(value, cst.Call) or name is None or not isinstance(model.value(value), Tensor):
        return None
    if name in _OF_VALUES and value.args:
        given = constant(value.args[0].value)
        return {0.0: "zeros", 1.0: "ones"}.get(given) if isinstance(given, float) else None
    return _MADE_OF.get(name)


_Operation: TypeAlias = cst.BinaryOperation | cst.AugAssign


def _operations(
    model: "Model", node: cst.BaseExpression, steps: int
) -> Iterator[tuple[_Operation | None, cst.BaseExpression]]:
    """The operations of which an attribute, perhaps in another shape or under a name, is an operand; ``None`` where
    something else is done with it.
    """
    parent = model.tree.parent(node) if steps > 0 else None
    match parent:
        case cst.BinaryOperation():
            # A sum may begin with nothing: `total = self.nothing`, and then `total = total + x`.
            yield (None if isinstance(node, cst.Name) and _is_bound_anew(model, node) else parent), node
        case cst.AugAssign() if parent.value is node:
            yield parent, node
        case cst.Attribute(attr=cst.Name(value=word)) if word in _SHAPING:
            yield from _operations(model, model.tree.call_of(parent) or parent, steps - 1)
        case cst.Subscript() if parent.value is node:
            yield from _operations(model, parent, steps - 1)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]):
            for use in uses_of_bound(model, parent):
                yield from _operations(model, use, steps - 1)
        case _:
            yield None, node


def _is_bound_anew(model: "Model", name: cst.Name) -> bool:
    """Whether the statement around a name gives it to something else."""
    statement = model.tree.statement_around(name)
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    return any(dotted_path(item.target) == name.value for item in targets)


def _is_in_vain(model: "Model", operation: _Operation, operand: cst.BaseExpression, numbers: str) -> bool:
    """Whether an operation of what came from outside with such numbers has no effect, or leaves nothing."""
    is_left = isinstance(operation, cst.BinaryOperation) and operation.left is operand
    other = operation.right if isinstance(operation, cst.BinaryOperation) and is_left else _left(operation)
    match operation.operator:
        case cst.Add() | cst.AddAssign():
            is_vain = numbers == "zeros"
        case cst.Subtract() | cst.SubtractAssign():
            is_vain = numbers == "zeros" and not is_left
        case cst.Multiply() | cst.MultiplyAssign():
            is_vain = True
        case cst.Divide() | cst.DivideAssign():
            is_vain = numbers == "ones" and not is_left
        case _:
            is_vain = False
    return is_vain and last_word(other) != "shape" and is_input(model, other)


def _left(operation: _Operation) -> cst.BaseExpression:
    return operation.left if isinstance(operation, cst.BinaryOperation) else operation.target
