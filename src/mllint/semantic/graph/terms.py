"""Parts of a sum on which a loop calls ``backward()``: ``bce`` and ``kld`` of ``loss = bce + beta * kld``."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.graph.spent_parts import is_changed
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Function, Tensor
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.graph.accumulation import Accumulator
    from mllint.semantic.model import Model

_STACKING = frozenset({"stack", "cat", "concat", "concatenate"})
MAX_STEPS = 40
"""How many expressions of a sum are looked at."""


def is_spent_term(accumulator: "Accumulator") -> bool:
    """Whether what is added is computed in the loop, and added to others of which the loop spends the sum.

    Nobody adds a constant to a loss: a part that is no number hangs on the graph like the others. Of what is a sum
    itself one term is enough.
    """
    return any(_is_spent(accumulator, part) for part in addends(accumulator.core))


def addends(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The terms of a sum or difference; of what is none, itself."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        return [*addends(node.left), *addends(node.right)]
    return [node]


def _is_spent(accumulator: "Accumulator", part: cst.BaseExpression) -> bool:
    model = accumulator.model
    losses = [loss for call in model.backward.calls_in(accumulator.loop) if (loss := loss_of(call)) is not None]
    bindings = without_narrowing(model.reaching(part)) if losses and accumulator.is_in_loop else []
    if not bindings or not all(
        binding.value is not None and model.tree.is_inside(binding.value, accumulator.loop) for binding in bindings
    ):
        return False
    return any(_is_term(model, bindings, loss) for loss in losses) or _is_returned_term(accumulator, part)


def _is_returned_term(accumulator: "Accumulator", part: cst.BaseExpression) -> bool:
    """Whether a function gave back what is added beside a sum of it and others, which the loop spends."""
    model = accumulator.model
    bindings = model.reaching(part) if accumulator.is_in_loop else ()
    if len(bindings) != 1 or not bindings[0].path or not model.tree.is_inside(bindings[0].node, accumulator.loop):
        return False
    losses = (loss_of(call) for call in model.backward.calls_in(accumulator.loop))
    return any(loss is not None and _is_of_returned_sum(model, bindings[0], loss) for loss in losses)


def is_summed(accumulator: "Accumulator") -> bool:
    """Whether what is added is several terms, of which the loop takes the sum: ``sum(losses).backward()``."""
    model, core = accumulator.model, accumulator.core
    calls = (call for call in model.calls_by_word.get("sum", ()) if model.tree.is_below(call, accumulator.loop))
    return any((several := _summed(call)) is not None and dotted_path(several) == dotted_path(core) for call in calls)


def _summed(call: cst.Call) -> cst.Name | None:
    """``losses`` of ``sum(losses)``."""
    is_sum = isinstance(call.func, cst.Name) and call.func.value == "sum" and len(call.args) == 1
    several = call.args[0].value if is_sum else None
    return several if isinstance(several, cst.Name) else None


def _stacked(model: "Model", call: cst.Call) -> cst.Name | None:
    """``losses`` of ``torch.stack(losses)``."""
    name = model.library_name(call.func)
    is_stack = name is not None and name.rpartition(".")[2] in _STACKING and len(call.args) == 1
    several = call.args[0].value if is_stack else None
    return several if isinstance(several, cst.Name) else None


def appended_to(model: "Model", several: cst.Name) -> list[cst.BaseExpression]:
    """What the function appends to the list that a name stands for."""
    bound = set(model.reaching(several))
    return [
        call.args[0].value
        for call in model.calls_by_word.get("append", ())
        if isinstance(call.func, cst.Attribute)
        and len(call.args) == 1
        and dotted_path(call.func.value) == several.value
        and bound.intersection(model.reaching(call.func.value))
    ]


def _is_term(model: "Model", bindings: Sequence[Binding], loss: cst.BaseExpression) -> bool:
    """Whether what some bindings compute is added up in an expression."""
    for binding in bindings:
        made = assigned(binding)
        while isinstance(made, cst.UnaryOperation):
            made = made.expression  # `-gain.mean()`
        if not isinstance(made, (cst.Call, cst.BinaryOperation)):
            return False
        if not isinstance(model.value(made), Tensor) and not is_called_loss(made) and not _is_of_function(model, made):
            return False
    return any(set(without_narrowing(model.reaching(term))) == set(bindings) for term in _terms(model, loss))


def _is_of_function(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether methods are called on what a function of the framework gives: ``torch.min(a, b).mean()`` is a tensor."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        node = node.func.value
        name = model.qualified_name(node.func) if isinstance(node, cst.Call) else None
        if name is not None and lookup.framework_of(name) == model.framework is not None:
            fact = lookup.function(name)
            return fact is not None and fact.returns in ("tensor", "scalar")
    return False


def _is_of_returned_sum(model: "Model", binding: Binding, loss: cst.BaseExpression) -> bool:
    """Whether a project function gives back a term beside the sum: ``loss, bce, kld = criterion(...)``."""
    others = model.reaching(loss)
    if len(others) != 1 or others[0].value is not binding.value or len(others[0].path) != 1 or len(binding.path) != 1:
        return False
    callee = model.value(binding.value.func) if isinstance(binding.value, cst.Call) else None
    if not isinstance(callee, Function) or not callee.definition.is_plain or not callee.definition.is_transparent:
        return False
    info, (whole, term) = callee.definition, (others[0].path[0], binding.path[0])
    for statement in info.scope.returns:
        items = statement.value.elements if isinstance(statement.value, cst.Tuple) else ()
        if whole is None or term is None or max(whole, term) >= len(items):
            return False
        bound = info.model.reaching(items[term].value)
        if not bound or not _is_term(info.model, bound, items[whole].value):
            return False
    return bool(info.scope.returns)


def _terms(model: "Model", loss: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The names in a sum, and in the sums that they stand for."""
    pending: list[cst.BaseExpression] = [loss]
    for _ in range(MAX_STEPS):
        if not pending:
            return
        match pending.pop():
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract(), left=left, right=right):
                pending += [left, right]
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Divide() as operator, left=left, right=right):
                sides = [side for side in (left, right) if isinstance(model.value(side), Tensor)]
                is_mean = not sides and isinstance(operator, cst.Divide)  # `sum(losses) / len(losses)`
                pending += [left] if is_mean else sides if len(sides) == 1 else []
            case cst.UnaryOperation(expression=part):
                pending.append(part)
            case cst.Call(func=cst.Attribute(value=part, attr=cst.Name(value="mean" | "sum")), args=[]):
                pending.append(part)
            case cst.IfExp(body=body, orelse=other):
                pending += [body, other]
            case cst.Call() as call if (several := _summed(call) or _stacked(model, call)) is not None:
                loop = model.tree.nearest(several, cst.For, cst.While)
                if loop is not None and not is_changed(model, several, loop):
                    yield several
                pending += appended_to(model, several)
            case cst.Name() | cst.Attribute() as name:
                yield name
                for binding in model.reaching(name):
                    if (made := assigned(binding)) is not None:
                        pending.append(made)
                    elif isinstance(binding.node, cst.AugAssign) and isinstance(binding.node.operator, cst.AddAssign):
                        pending.append(binding.node.value)


MAX_SUMS = 40
"""How many names of a sum are followed."""
_BY_ELEMENT = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_IN_PLACE = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign)


def is_term_of_spent(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what is computed element by element from a name, and others, is one number to ``backward()``.

    With more than one number in any of them there would be more in the result.
    """
    bindings = set(model.reaching(node)) if isinstance(node, cst.Name) else set[Binding]()
    if not bindings or any(binding.kind is not BindingKind.ASSIGN for binding in bindings):
        return False
    scope = model.scope_of(node)
    spent = (item for item in model.backward.spent_in(scope) if item.one_element)
    return any(_has_term(model, item.node, bindings) for item in spent)


def _has_term(model: "Model", loss: cst.BaseExpression, bindings: set[Binding]) -> bool:
    pending: list[cst.BaseExpression] = [loss]
    seen: set[int] = set()
    while pending and len(seen) < MAX_SUMS:
        match pending.pop():
            case cst.BinaryOperation(operator=operator, left=left, right=right) if isinstance(operator, _BY_ELEMENT):
                pending += [left, right]
            case cst.UnaryOperation(operator=cst.Minus(), expression=part):
                pending.append(part)
            case cst.Name() as name:
                found = model.reaching(name)
                if set(found) == bindings:
                    return True
                for binding in found:
                    if id(binding) not in seen:
                        seen.add(id(binding))
                        pending += _computed_from(binding)
    return False


def _computed_from(binding: Binding) -> list[cst.BaseExpression]:
    if isinstance(binding.node, cst.AugAssign) and isinstance(binding.node.operator, _IN_PLACE):
        return [binding.node.target, binding.node.value]
    is_whole = binding.kind is BindingKind.ASSIGN and not binding.path
    return [binding.value] if is_whole and binding.value is not None else []
