"""Terms of a sum on which ``backward()`` works without a gradient: the sum has one number, and so has each of them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import Binding, BindingKind

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 40
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
    while pending and len(seen) < MAX_STEPS:
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
