"""Tensors that must hang on a graph because a loss does, on which ``backward()`` is called."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.data_sources import comes_from_data, hangs_on_nothing
from mllint.semantic.graph.dependence import Dependence
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.names.operands import paths_in
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Function, Method, Module, Object, Symbol, Tensor
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NAMES = (BindingKind.IMPORT, BindingKind.FUNCTION, BindingKind.CLASS)
_TOOLS = (Function, Module, Object, Symbol)
MAX_SOURCES = 30
"""How many names a loss may be computed from."""


def hangs_on_all_sources(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a tensor surely carries the graph of everything from which a loss of its function is computed.

    The loss hangs on a graph, or its ``backward()`` would raise, and it has that from one of its sources at least.
    """
    function = model.enclosing_function(node)
    calls = model.backward.calls_in(function) if function is not None else ()
    for call in calls:
        loss = loss_of(call) if model.enclosing_function(call) is function else None
        sources = None if loss is None else _sources(model, loss)
        if sources and all(_carries(model, node, source) for source in sources):
            return True
    return False


def _carries(model: "Model", node: cst.CSTNode, source: Binding) -> bool:
    return Dependence(model, lambda binding: binding is source).of(node)


def _sources(model: "Model", loss: cst.BaseExpression) -> list[Binding] | None:
    """The bindings behind a loss of which it is not known what they are computed from; ``None``: it is not bound."""
    if not _is_understood(model, loss):
        return None
    found: list[Binding] = []
    pending, seen = list(paths_in(loss)), set[int]()
    while pending:
        for binding in model.reaching(pending.pop()):
            if id(binding) in seen or hangs_on_nothing(model.binding_value(binding)):
                continue
            seen.add(id(binding))
            if binding.kind in _NAMES or isinstance(model.binding_value(binding), _TOOLS):
                continue
            value = binding.node if binding.kind is BindingKind.AUGMENTED else binding.value
            is_plain = binding.kind in (BindingKind.ASSIGN, BindingKind.AUGMENTED) and not binding.path
            if is_plain and value is not None and _is_understood(model, value):
                pending += paths_in(value)
            elif not comes_from_data(model, binding):
                found.append(binding)
        if len(seen) > MAX_SOURCES:
            return None
    return found


def _is_understood(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an expression is computed from what it names alone: by the framework's functions, by losses."""
    return all(_computes(model, call) for call in subtree(node) if isinstance(call, cst.Call))


def _computes(model: "Model", call: cst.Call) -> bool:
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        return lookup.framework_of(callee.name) is not None or callee.name.startswith("builtins.")
    if isinstance(callee, Module):
        fact = None if callee.name is None else lookup.class_(callee.name)
        return fact is not None and fact.kind == "loss"
    if isinstance(callee, Method):
        return isinstance(callee.receiver, Tensor)
    if callee is not None:
        return False
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted_path(call.func)
    framework = model.framework
    is_own = name is not None and name in model.function_names
    is_method = isinstance(call.func, cst.Attribute) and framework is not None and name is not None and not is_own
    return is_called_loss(call) or (is_method and lookup.tensor_method(framework, name) is not None)
