"""Objects of the project that add up what a method of theirs is given: meters, histories, loggers."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.accumulation import Accumulator
from mllint.semantic.graph.additions import collection
from mllint.semantic.graph.tensor_uses import TensorUses
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.operands import operands
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Function, Instance, Number
from mllint.syntax.shape import adds, argument, dotted_path, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo


class Meter(Accumulator):
    """A meter seen from the call that gives it something to add; ``total`` is the attribute it is added to."""

    def __init__(
        self,
        model: "Model",
        call: cst.Call,
        meter: cst.BaseExpression,
        key: str,
        added: cst.BaseExpression,
        loop: cst.For | cst.While,
        total: tuple["ClassInfo", str],
    ) -> None:
        super().__init__(model, call, meter, key, added, loop)
        self.total = total

    @cached_property
    def is_number(self) -> bool:
        """Whether the total in the meter begins as a Python number, and nobody takes what it holds for a tensor."""
        definition, attribute = self.total
        beginnings = [item for item in definition.assignments(attribute) if item.kind is not BindingKind.AUGMENTED]
        values = [None if item.value is None else item.scope.model.value(item.value) for item in beginnings]
        is_number = bool(values) and all(isinstance(value, Number) for value in values)
        held = (self.model.tree.parent(use.node) for use in self._uses)
        return is_number and not TensorUses().any_of(
            self.model, [item for item in held if isinstance(item, cst.Attribute)]
        )


def fed(model: "Model", call: cst.Call) -> Iterator[Meter]:
    """The accumulations that the statement ``meter.update(x)`` in a loop may be: one for each thing that it gives."""
    if not isinstance(call.func, cst.Attribute) or has_star_arguments(call):
        return
    loop = next(model.tree.loops_around(call), None)
    holder = call.func.value
    while isinstance(holder, cst.Subscript):
        holder = holder.value  # one meter for each name, in a dict
    key = dotted_path(holder) if loop is not None else None
    callee = None if key is None else model.value(call.func)
    if loop is None or key is None or not isinstance(callee, Function) or not isinstance(callee.receiver, Instance):
        return
    info = callee.definition
    for position, parameter in enumerate(info.parameters[1:]):
        given = argument(call, position, parameter.name.value)
        total = None if given is None else _total(info, parameter.name.value)
        if given is not None and total is not None:
            yield Meter(model, call, call.func.value, key, given.value, loop, (callee.receiver.definition, total))


def _total(info: FunctionInfo, parameter: str) -> str | None:
    """The attribute to which a method adds a parameter with its graph; ``None`` where it adds it to nothing.

    A class that runs backward passes itself may collect on purpose.
    """
    model, owner = info.model, info.owner
    if owner is None or any(model.tree.is_below(call, owner.node) for call in model.backward.calls):
        return None
    sums = [item for item in model.tree.by_type.get(cst.AugAssign, ()) if model.enclosing_function(item) is info.node]
    for statement in (*sums, *model.assignments_by_scope.get(id(info.scope), ())):
        parts = operands(statement.value) if adds(statement) else []
        path = collection(statement.target if isinstance(statement, cst.AugAssign) else statement.targets[0].target)
        root, _, attribute = (path or "").partition(".")
        is_own = isinstance(statement, cst.AugAssign) or path in map(dotted_path, parts)
        if root == info.self_name and is_own and any(_is_parameter(model, node, parameter) for node in parts):
            return attribute
    for call in model.calls_by_word.get("append", ()):
        if model.enclosing_function(call) is not info.node or len(call.args) != 1 or call.args[0].star:
            continue
        path = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
        root, _, attribute = (path or "").partition(".")
        if root == info.self_name and attribute and _is_parameter(model, call.args[0].value, parameter):
            return attribute
    return None


def _is_parameter(model: "Model", node: cst.BaseExpression, parameter: str) -> bool:
    """Whether a name, or an attribute that the method has just set, stands for what the parameter was given."""
    bindings = model.reaching(node)
    if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN and isinstance(bindings[0].value, cst.Name):
        return not bindings[0].path and _is_parameter(model, bindings[0].value, parameter)
    return dotted_path(node) == parameter and [item.kind for item in bindings] == [BindingKind.PARAMETER]
