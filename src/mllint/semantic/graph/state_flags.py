"""Gradient flags of the values of a state dict, the same for all of them, as PyTorch gives them out detached; and
flags that are called, as though they were methods.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.files.testing import is_meant_to_fail
from mllint.semantic.graph.flags import is_parameter, is_state_value
from mllint.semantic.names.uses import attributes, reads
from mllint.semantic.values import Batch, Module, Tensor
from mllint.syntax.shape import constant, dotted_path, is_target

if TYPE_CHECKING:
    from mllint.semantic.model import Model

FLAGS = {
    "torch": frozenset({"requires_grad", "requires_grad_"}),
    "paddle": frozenset({"requires_grad", "stop_gradient", "trainable"}),
}
"""The gradient flags of each framework, also as they are misspelled."""
ALWAYS = {
    "requires_grad": "`state_dict()` gives detached tensors: their `requires_grad` is always `False`",
    "grad": "`state_dict()` gives detached tensors: their `grad` is always `None`",
}
"""Attributes that all values of a state dict have alike, as long as nobody sets them, and how a message says so."""
_SETTING = ("requires_grad_", "retain_grad")


def flags_of_state(model: "Model") -> Iterator[cst.Attribute]:
    """The attributes that are read of a value of a state dict, as if it were a parameter of the module."""
    if "state_dict" not in model.calls_by_word or "keep_vars" in model.source.text:
        return
    for word in ALWAYS:
        for place in attributes(model, word):
            if not _is_set(model, place) and is_state_value(model, place.value) and not _may_be_set(model, place):
                yield place


def _is_set(model: "Model", place: cst.Attribute) -> bool:
    parent = model.tree.parent(place)
    return is_target(parent, place) or isinstance(parent, (cst.AugAssign, cst.Del))


def _may_be_set(model: "Model", place: cst.Attribute) -> bool:
    """Whether the function gives what it asks a flag of its own, or may put something else into the dict."""
    holder = place.value.value if isinstance(place.value, cst.Subscript) else place.value
    name = dotted_path(holder)
    if name is None:
        return False
    function = model.enclosing_function(place)
    for word in (*ALWAYS, *_SETTING):
        for other in attributes(model, word):
            is_meant = word in _SETTING or _is_set(model, other)
            if is_meant and model.enclosing_function(other) is function and _is_of(other.value, name):
                return True
    if holder is place.value:
        return False
    indexed = model.tree.by_type.get(cst.Subscript, ())
    written = [item for item in indexed if dotted_path(item.value) == name and is_target(model.tree.parent(item), item)]
    return any(model.enclosing_function(item) is function for item in written)


def _is_of(node: cst.BaseExpression, name: str) -> bool:
    return dotted_path(node.value if isinstance(node, cst.Subscript) else node) == name


OF_TENSORS = {"torch": ("requires_grad",), "paddle": ("requires_grad", "stop_gradient")}
"""The gradient flags of a tensor, in each framework."""
_DEFINING = re.compile(rb"def\s+requires_grad\s*\(\s*self\b|\brequires_grad\s*=\s*lambda\b")
_ANSWERING = ("__getattr__", "__getattribute__")


def holder_of_called_flag(model: "Model", call: cst.Call) -> Tensor | Module | None:
    """The tensor of which a gradient flag is called, or the module, which has none; ``None`` where it may be a method.

    So it is with an object of which the class is not known: its own method may have that name.
    """
    if not isinstance(call.func, cst.Attribute) or is_meant_to_fail(model, call):
        return None
    holder, flag = _holder(model, call.func.value), call.func.attr.value
    if holder is None and _is_told_as_flag(model, call):
        holder = Tensor("torch")
    return (
        holder if holder is not None and flag in OF_TENSORS[holder.framework] and not _has_own(holder, flag) else None
    )


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


def _is_told_as_flag(model: "Model", call: cst.Call) -> bool:
    """Whether an item of something unknown is told so in a file for PyTorch, ``batch[key].requires_grad(True)``, where
    nothing in the project has a method of that name.
    """
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if len(given) != 1 or len(call.args) > 1 or not isinstance(constant(given[0]), bool):
        return False
    item = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    is_item = isinstance(item, cst.Subscript) and model.value(item) is None
    if model.framework != "torch" or not is_item or not isinstance(model.tree.parent(call), cst.Expr):
        return False
    return model.project is not None and not model.project.is_written_anywhere(model.path, _DEFINING)


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
