"""Tensors that want no gradient and are given to an optimizer all the same: it never moves them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.graph.leaves import FLAGS, sets_flags
from mllint.semantic.graph.lost_leaves import is_given_to_optimizer
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import attributes, bound_by, uses
from mllint.semantic.values import Function, Module, Tensor
from mllint.syntax.shape import has_star_arguments, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ASKED = frozenset({*FLAGS, "requires_grad_", "grad", "retain_grad", "register_hook"})
"""What is asked of a tensor by those who see to its gradient themselves."""
_MAKING = frozenset(
    {"empty", "eye", "full", "linspace", "normal", "ones", "rand", "randn", "uniform", "zeros"}
    | {"as_tensor", "from_numpy", "tensor", "to_tensor", "detach"}
    | {"empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like"}
)
"""The words of what makes a tensor without a graph."""


def is_never_learned(model: "Model", statement: cst.Assign) -> bool:
    """Whether a statement makes a tensor without gradient that an optimizer is given and a loss is computed from.

    It has one name, and nothing near it says later that it wants a gradient, or gives it one.
    """
    if len(statement.targets) != 1 or not isinstance(statement.targets[0].target, cst.Name):
        return False
    made = statement.value
    if not isinstance(made, (cst.Call, cst.BinaryOperation)) or "backward" not in model.calls_by_word:
        return False
    calls = [part for part in subtree(made) if type(part) is cst.Call]
    if not any(last_word(call.func) in _MAKING for call in calls) or any(map(has_star_arguments, calls)):
        return False
    binding = next(iter(bound_by(model, statement)), None)
    places = [] if binding is None else list(uses(model, binding))
    given = [node for node in places if _is_given(model, node)]
    if not given or any(set(model.reaching(node)) != {binding} for node in given):
        return False
    if _sees_to_gradients(model) or all(node in given for node in places):
        return False
    return not any(_may_want_gradient(model, node) for node in places) and _has_no_graph(model, made)


def _has_no_graph(model: "Model", made: cst.BaseExpression) -> bool:
    value = model.value(made)
    if not isinstance(value, Tensor) or value.attached is not False:
        return False
    return not (value.leaf or value.parameter or value.or_number)


def _sees_to_gradients(model: "Model") -> bool:
    """Whether a file sets flags of tensors, or gives them gradients by hand."""
    is_written = any(isinstance(model.tree.parent(node), cst.AssignTarget) for node in attributes(model, "grad"))
    return is_written or sets_flags(model)


def _is_given(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an optimizer is built with what stands at a place, there or in a function that is given it."""
    if is_given_to_optimizer(model, node):
        return True
    called = _called_with(model, node)
    if called is None:
        return False
    call, arg, function = called
    info = function.definition
    parameter = given_to(info, call, arg, 0 if info.self_name is None or function.receiver is None else 1)
    if parameter is None or sets_flags(info.model):
        return False
    bindings = info.scope.bindings.get(parameter.name.value, ())
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return False
    return any(is_given_to_optimizer(info.model, use) for use in uses(info.model, bindings[0]))


def _called_with(model: "Model", node: cst.BaseExpression) -> tuple[cst.Call, cst.Arg, Function] | None:
    """The call of a function of the project that is given what stands at a place, as it is."""
    arg = model.tree.parent(node)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
        return None
    value = model.value(call.func)
    return (call, arg, value) if isinstance(value, Function) else None


def _may_want_gradient(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether somebody asks for the gradient of a tensor where it stands, or may say that it wants one."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in _ASKED
    if not isinstance(parent, cst.Arg):
        return False
    call = model.tree.parent(parent)
    value = model.value(call.func) if isinstance(call, cst.Call) else None
    if isinstance(value, Function):
        return sets_flags(value.definition.model)
    if isinstance(value, Module):
        return value.definition is not None and sets_flags(value.definition.model)
    return isinstance(model.tree.parent(call), cst.Expr) if call is not None else False
