"""Whether a tensor surely hangs on a graph, also where only those who call its function tell.

``Model.value`` says what a parameter is whoever calls. A change in place that spoils the graph of one call is wrong
already, so here one caller of the file is enough: one that gives what certainly hangs on a graph.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import calls_of, given_to
from mllint.semantic.graph.runs_of_class import runs_of
from mllint.semantic.graph.spent_sources import hangs_on_all_sources
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Module, Output, Symbol, Tensor

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 12
"""Through how many names, operations and callers a tensor is followed."""


def is_attached(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an expression is a tensor that surely hangs on a graph, in one call of its function at least."""
    if _is_attached(model, node, MAX_STEPS):
        return True
    value = model.value(node)
    return getattr(value, "attached", None) is None and hangs_on_all_sources(model, node)


def _is_attached(model: "Model", node: cst.CSTNode, steps: int) -> bool:
    value = model.value(node)
    if isinstance(value, (Tensor, Output)):
        if value.attached is not None:
            return value.attached
    elif value is not None:
        return False
    if steps == 0:
        return False
    match node:
        case cst.Name():
            own = model.tree.parent(node)  # `x += y` hands its own result to the next round
            bindings = [binding for binding in model.reaching(node) if binding.node is not own]
            return bool(bindings) and all(_is_bound_to_attached(model, binding, steps - 1) for binding in bindings)
        case cst.BinaryOperation(left=left, right=right):
            return _is_attached(model, left, steps - 1) or _is_attached(model, right, steps - 1)
        case cst.Call() if value is not None and model.gradients.off(node) is False:
            return any(_is_attached(model, operand, steps - 1) for operand in _operands(model, node))
    return False


def _operands(model: "Model", call: cst.Call) -> list[cst.BaseExpression]:
    """What a function, layer or method of a library computes a tensor from."""
    given = [arg.value for arg in call.args if not arg.star]
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        return given
    if isinstance(callee, Module) and callee.definition is None and callee.call is not None:
        return given[:1]
    return []


def _is_bound_to_attached(model: "Model", binding: Binding, steps: int) -> bool:
    if binding.scope.model is not model:
        return False
    if binding.kind is BindingKind.ASSIGN and binding.value is not None and not binding.path:
        return _is_attached(model, binding.value, steps)
    if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
        return _is_attached(model, binding.node.target, steps) or _is_attached(model, binding.node.value, steps)
    if binding.kind is not BindingKind.PARAMETER or not isinstance(binding.scope.node, cst.FunctionDef):
        return False
    info = model.function_info(binding.scope.node)
    return any(_is_attached(model, given, steps) for given in _given(model, info, binding.node))


def _given(model: "Model", info: "FunctionInfo", parameter: cst.CSTNode) -> list[cst.BaseExpression]:
    """What the calls of a function in its file give for a parameter, as far as a graph is recorded and walked there."""
    if not info.is_transparent:
        return []
    if info.owner is not None and info.owner.called is info:
        calls = [(call, 1) for call in runs_of(model, info.owner)]
    else:
        calls = calls_of(model, info)
    return [
        arg.value
        for call, skipped in calls
        for arg in call.args
        if given_to(info, call, arg, skipped) is parameter and _is_trained_through(model, call)
    ]


def _is_trained_through(model: "Model", call: cst.Call) -> bool:
    """Whether a place belongs to a module, or to a function that runs a backward pass: others may only evaluate."""
    if model.gradients.off(call) is not False:
        return False
    function = model.enclosing_function(call)
    info = None if function is None else model.function_info(function)
    if info is not None and info.owner is not None and info.owner.framework is not None:
        return True
    return any(True for _ in model.names_within("backward", model.scope_of(call)))
