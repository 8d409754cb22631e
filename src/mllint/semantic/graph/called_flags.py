"""Gradient flags that are called, as though they were methods."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.files.testing import is_meant_to_fail
from mllint.semantic.graph.flags import is_parameter
from mllint.semantic.names.uses import reads
from mllint.semantic.values import Batch, Module, Tensor

if TYPE_CHECKING:
    from mllint.semantic.model import Model

FLAGS = {"torch": ("requires_grad",), "paddle": ("requires_grad", "stop_gradient")}
"""The gradient flags of a tensor, in each framework."""
_ANSWERING = ("__getattr__", "__getattribute__")


def holder_of_called_flag(model: "Model", call: cst.Call) -> Tensor | Module | None:
    """The tensor of which a gradient flag is called, or the module, which has none; ``None`` where it may be a method.

    So it is with an object of which the class is not known: its own method may have that name.
    """
    if not isinstance(call.func, cst.Attribute) or is_meant_to_fail(model, call):
        return None
    holder, flag = _holder(model, call.func.value), call.func.attr.value
    return holder if holder is not None and flag in FLAGS[holder.framework] and not _has_own(holder, flag) else None


def _holder(model: "Model", node: cst.BaseExpression) -> Tensor | Module | None:
    value = model.value(node)
    match value:
        case Tensor() | Module():
            return value
        case Batch(opaque=False):  # a tensor, or a list, tuple or dict, all of which raise
            return Tensor(value.framework)
        case None if is_parameter(model, node):
            return Tensor("torch", parameter=True)
        case None if _is_asked_for_gradient(model, node):
            return Tensor("torch")
    return None


def _is_asked_for_gradient(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function of a file for PyTorch reads the gradient of a thing that it is given, as only tensors have."""
    if not isinstance(node, cst.Name) or model.framework != "torch":
        return False
    return any(True for _ in reads(model, f"{node.value}.grad", model.scope_of(node)))


def _has_own(holder: Tensor | Module, flag: str) -> bool:
    """Whether a module may have something of its own under the name of a flag, or is of a class that is not known."""
    if isinstance(holder, Tensor):
        return False
    definition = holder.definition
    if definition is None:
        return holder.name is None
    if definition.has_unknown_base or any(definition.method(name) is not None for name in (flag, *_ANSWERING)):
        return True
    return any(True for _ in definition.assignments(flag))
