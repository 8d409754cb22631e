"""Whether a tensor surely hangs on a graph, also where only those who call its function tell.

``Model.value`` says what a parameter is whoever calls. A change in place that spoils the graph of one call is wrong
already, so here one caller is enough, in this file or in one that imports it: one that gives what certainly hangs on a
graph.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import callers, calls_of, given_to
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.sources import paths_in
from mllint.semantic.graph.data_sources import TAKING_SHAPES, comes_from_data, hangs_on_nothing
from mllint.semantic.graph.dependence import Dependence, hands_on
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.graph.runs_of_class import runs_of, stands_behind_weights
from mllint.semantic.graph.weighted_ways import may_have_weights
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.values import Function, Method, Module, Object, Output, Symbol, Tensor, Value
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 12
"""Through how many names, operations and callers a tensor is followed."""
STEPS_AT_HOME = 5
"""After how many of them the callers in other files are no longer asked."""


def is_attached(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an expression is a tensor that surely hangs on a graph, in one call of its function at least."""
    if _is_attached(model, node, MAX_STEPS):
        return True
    value = model.value(node)
    return getattr(value, "attached", None) is None and hangs_on_all_sources(model, node)


def _is_attached(model: "Model", node: cst.CSTNode, steps: int, asks_callers: bool = True) -> bool:
    value = model.value(node)
    if isinstance(value, (Tensor, Output)):
        if value.attached is not None:
            return value.attached
    elif value is not None:
        return False
    if steps == 0:
        return False

    def is_attached(part: cst.CSTNode) -> bool:
        return _is_attached(model, part, steps - 1, asks_callers)

    match node:
        case cst.Name():
            own = model.tree.parent(node)  # `x += y` hands its own result to the next round
            bindings = [binding for binding in model.reaching(node) if binding.node is not own]
            return bool(bindings) and all(
                _is_bound_to_attached(model, binding, steps - 1, asks_callers) for binding in bindings
            )
        case cst.BinaryOperation(left=left, right=right):
            return is_attached(left) or is_attached(right)
        case cst.Call() if value is not None and model.gradients.off(node) is False:
            return any(map(is_attached, _operands(model, node))) or _comes_back_attached(model, node, steps - 1)
        case cst.Call(func=callee) if model.gradients.off(node) is False:
            return may_have_weights(model, callee)
    return False


def _operands(model: "Model", call: cst.Call) -> list[cst.BaseExpression]:
    """What a function, layer or method of a library computes a tensor from."""
    given = [arg.value for arg in call.args if not arg.star]
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        return given
    if isinstance(callee, Method) and isinstance(call.func, cst.Attribute):
        return [call.func.value, *([] if call.func.attr.value in TAKING_SHAPES else given)]
    if isinstance(callee, Module) and callee.definition is None and callee.call is not None:
        return given[:1]
    info = called_by(callee)
    if info is None:
        return []
    skipped = 0 if isinstance(callee, Function) and callee.receiver is None else 1
    passed = ((arg.value, given_to(info, call, arg, skipped)) for arg in call.args)
    return [node for node, parameter in passed if parameter is not None and hands_on(info, parameter, ())]


def _comes_back_attached(model: "Model", call: cst.Call, steps: int) -> bool:
    """Whether all that a function or module gives back hangs on a graph, whatever it is given."""
    info = called_by(model.value(call.func))
    if info is None or not info.is_plain or not info.is_transparent or not info.scope.returns:
        return False
    values = [statement.value for statement in info.scope.returns]
    return all(value is not None and _is_attached(info.model, value, steps, asks_callers=False) for value in values)


def called_by(value: Value | None) -> "FunctionInfo | None":
    """The function of the project that runs when something is called."""
    if isinstance(value, Module) and value.definition is not None and not value.wrappers:
        return value.definition.called
    return value.definition if isinstance(value, Function) else None


def _is_bound_to_attached(model: "Model", binding: Binding, steps: int, asks_callers: bool) -> bool:
    if binding.scope.model is not model:
        return False
    if (made := assigned(binding)) is not None:
        return _is_attached(model, made, steps, asks_callers)
    if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
        sides = (binding.node.target, binding.node.value)
        return any(_is_attached(model, side, steps, asks_callers) for side in sides)
    function = binding.scope.node
    if not asks_callers or not isinstance(binding.node, cst.Param) or not isinstance(function, cst.FunctionDef):
        return False
    info = model.function_info(function)
    if any(_is_attached(home, given, steps) for home, _, given in given_by_callers(info, binding.node, steps)):
        return True
    is_forward = info.owner is not None and info.owner.called is info and info.parameters[1:2] == (binding.node,)
    return is_forward and info.owner is not None and stands_behind_weights(model, info.owner)


def given_by_callers(
    info: "FunctionInfo", parameter: cst.Param, steps: int = MAX_STEPS
) -> "Iterator[tuple[Model, cst.Call, cst.BaseExpression]]":
    """What calls of a function give for a parameter, as far as a graph is recorded and walked there.

    Those of its own file come first; other files are only read where these do not tell. A ``Sequential`` of which the
    function's module is a part may have changed it before.
    """
    position = next((index for index, item in enumerate(info.parameters) if item is parameter), None)
    if position is None or not info.is_transparent:
        return
    for model, seen in callers(info, at_home=steps < MAX_STEPS - STEPS_AT_HOME):
        if seen.owner is not None and seen.owner.called is seen:
            calls = [(call, 1) for call in runs_of(model, seen.owner)]
        else:
            calls = calls_of(model, seen)
        for call, skipped in calls:
            for arg in call.args:
                is_given = given_to(seen, call, arg, skipped) is seen.parameters[position]
                if is_given and _is_trained_through(model, call):
                    yield model, call, arg.value


def _is_trained_through(model: "Model", call: cst.Call) -> bool:
    """Whether a place belongs to a module, or to a function that runs a backward pass: others may only evaluate."""
    if model.gradients.off(call) is not False:
        return False
    info = function_around(model, call)
    if info is not None and info.owner is not None and info.owner.framework is not None:
        return True
    return any(True for _ in model.names_within("backward", model.scope_of(call)))


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
