"""What is asked of the values of a state dict, and is the same for all of them: PyTorch gives them out detached."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.flags import is_state_value
from mllint.semantic.names.uses import attributes
from mllint.syntax.shape import dotted_path, is_target

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
