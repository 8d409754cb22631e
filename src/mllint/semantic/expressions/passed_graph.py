"""Whether what a function computes hangs on the graph of what one call gives it."""

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.values import Elements, Function, Module, Output, Tensor, Value
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_CALLS = 3
"""Through how many functions of the project a cut is looked for."""

# Words of a function that may take its result off the graph.
_CUTTING = (
    "detach", "detach_", "no_grad", "data", "item", "argmax", "numpy", "round", "long", "int", "byte", "bool", "sign",
    "tensor", "Tensor", "FloatTensor", "as_tensor", "to_tensor", "stop_gradient", "requires_grad", "requires_grad_",
    "set_grad_enabled", "inference_mode", "isnan", "eq", "ne", "gt", "lt", "ge", "le", "tolist", "apply",
)  # fmt: skip


def with_graph_of_arguments(
    model: "Model", call: cst.Call, function: "FunctionInfo", value: Value | None, skipped: int
) -> Value | None:
    """What a function gives back is on the graph if what it is computed from is, and nothing cuts it off.

    ``skipped`` leading parameters are filled by the call itself.
    """
    if not _is_open(value):
        return value
    attached = [arg for arg in call.args if _is_attached(model.value(arg.value))]
    if not attached or model.gradients.off(call) is not False:
        return value
    if isinstance(value, Tensor) and value.scalar is True:
        return value if may_cut(function) else replace(value, attached=True)
    given = [given_to(function, call, arg, skipped) for arg in attached]
    return _carrying(value, function, [parameter for parameter in given if parameter is not None])


def _is_open(value: Value | None) -> bool:
    """Whether it is a tensor of which it is not known if it hangs on a graph, or has one in it."""
    if isinstance(value, Elements):
        return any(isinstance(item, (Tensor, Output)) and item.attached is None for item in value.items)
    return isinstance(value, (Tensor, Output)) and value.attached is None


def _carrying(
    value: Value | None, function: "FunctionInfo", given: list[cst.Param], part: tuple[int, ...] = ()
) -> Value | None:
    """A value, or each in a tuple, on the graph where it is surely computed from what has one."""
    match value:
        case Tensor(attached=None) | Output(attached=None):
            carries = function.model.gradients.carries
            return replace(value, attached=True) if any(carries(function, item, part) for item in given) else value
        case Elements() if not part:
            items = enumerate(value.items)
            return Elements(tuple(_carrying(item, function, given, (at,)) for at, item in items), value.mutable)
    return value


def _is_attached(value: Value | None) -> bool:
    match value:
        case Tensor() | Output():
            return value.attached is True
        case Elements():
            return any(_is_attached(item) for item in value.items)
    return False


def may_cut(function: "FunctionInfo", calls: int = MAX_CALLS) -> bool:
    """Whether a function, or one of the project that it calls, may take something off the graph."""
    model = function.model
    if calls == 0 or any(model.names_within(word, function.scope) for word in _CUTTING):
        return True
    parts = list(subtree(function.node.body))
    if any(isinstance(part, cst.Comparison) and not _is_test(model, part) for part in parts):
        return True
    return any(_is_cut_by(model, part, calls - 1) for part in parts if isinstance(part, cst.Call))


def _is_test(model: "Model", comparison: cst.Comparison) -> bool:
    """Whether a comparison only says which way the function goes."""
    child: cst.CSTNode = comparison
    for ancestor in model.tree.ancestors(comparison):
        if isinstance(ancestor, (cst.If, cst.While, cst.Assert, cst.IfExp)):
            return child is ancestor.test
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return False
        child = ancestor
    return False


def _is_cut_by(model: "Model", call: cst.Call, calls: int) -> bool:
    """Whether what a call gives may be off the graph; a method of something unknown is taken for one of a tensor."""
    callee = model.value(call.func)
    match callee:
        case Function():
            return may_cut(callee.definition, calls)
        case Module():
            forward = None if callee.definition is None else callee.definition.called
            return forward is not None and may_cut(forward, calls)
        case None:
            return not isinstance(call.func, cst.Attribute)
    return False
