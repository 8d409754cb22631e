"""Parts of a sum on which a loop calls ``backward()``: ``bce`` and ``kld`` of ``loss = bce + beta * kld``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Tensor

if TYPE_CHECKING:
    from mllint.semantic.graph.accumulation import Accumulator
    from mllint.semantic.model import Model

MAX_STEPS = 40
"""How many expressions of a sum are looked at."""


def is_spent_term(accumulator: "Accumulator") -> bool:
    """Whether what is added is computed in the loop, and added to others of which the loop spends the sum.

    Nobody adds a constant to a loss: a part that is no number hangs on the graph like the others.
    """
    model, core = accumulator.model, accumulator.core
    losses = [loss_of(call) for call in model.backward.calls_in(accumulator.loop)]
    bindings = model.reaching(core) if losses and accumulator.is_in_loop else ()
    if not bindings:
        return False
    for binding in bindings:
        made = binding.value if binding.kind is BindingKind.ASSIGN and not binding.path else None
        if not isinstance(made, (cst.Call, cst.BinaryOperation)) or not model.tree.is_inside(made, accumulator.loop):
            return False
        if not isinstance(model.value(made), Tensor) and not is_called_loss(made):
            return False
    return any(model.reaching(term) == bindings for loss in losses if loss is not None for term in _terms(model, loss))


def _terms(model: "Model", loss: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The names in a sum, and in the sums that they stand for."""
    pending: list[cst.BaseExpression] = [loss]
    for _ in range(MAX_STEPS):
        if not pending:
            return
        match pending.pop():
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract(), left=left, right=right):
                pending += [left, right]
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Divide(), left=left, right=right):
                sides = [side for side in (left, right) if isinstance(model.value(side), Tensor)]
                pending += sides if len(sides) == 1 else []
            case cst.UnaryOperation(expression=part):
                pending.append(part)
            case cst.Call(func=cst.Attribute(value=part, attr=cst.Name(value="mean" | "sum")), args=[]):
                pending.append(part)
            case cst.Name() | cst.Attribute() as name:
                yield name
                for binding in model.reaching(name):
                    if binding.kind is BindingKind.ASSIGN and not binding.path and binding.value is not None:
                        pending.append(binding.value)
                    elif isinstance(binding.node, cst.AugAssign) and isinstance(binding.node.operator, cst.AddAssign):
                        pending.append(binding.node.value)
