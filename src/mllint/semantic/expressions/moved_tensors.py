"""What is moved to a device and otherwise computed with: a tensor, whatever it was taken from.

A module has ``to()`` as well, and so has a batch of tokens or a graph, and it changes in place. But nobody adds them
up, compares them and counts where they agree, or cuts them along several dimensions; and an array, with
which all of this is done, has no ``to()``. (Paddle's tensors changed in place by that once, so they are left alone.)
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Number, Output, Tensor

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MOVES = frozenset({"to", "cuda", "cpu", "detach"})
"""Methods that arrays and numbers do not have."""
_OF_DATA = frozenset({"numpy", "cpu", "cuda", "item"})
"""What is asked of the ``data`` of a tensor: that of an array is a buffer, which has none of them."""
_BINDING = (BindingKind.ASSIGN, BindingKind.PARAMETER, BindingKind.LOOP)
_COUNTED = frozenset({"sum", "float", "mean", "all", "any", "long", "int", "nonzero"})
"""What is asked of the tensor that a comparison of tensors gives."""
_OF_NUMBERS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)


def is_moved_tensor(model: "Model", receiver: cst.BaseExpression, method: str) -> bool:
    """Whether a name that is moved there is a tensor, to go by what the function computes with the very same thing."""
    if method not in MOVES or not isinstance(receiver, cst.Name) or model.framework != "torch":
        return False
    bindings = model.reaching(receiver)
    if len(bindings) != 1 or bindings[0].kind not in _BINDING:
        return False
    return any(_is_computed_with(model, use) for use in uses(model, bindings[0]) if model.reaching(use) == bindings)


def _is_computed_with(model: "Model", use: cst.BaseExpression) -> bool:
    parent = model.tree.parent(use)
    match parent:
        case cst.Subscript(value=value, slice=parts):
            return value is use and len(parts) > 1
        case cst.Attribute(attr=cst.Name(value="data")):
            asked = model.tree.parent(parent)
            return isinstance(asked, cst.Attribute) and asked.attr.value in _OF_DATA
        case cst.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, _OF_NUMBERS):
            return isinstance(model.value(right if left is use else left), (Tensor, Output, Number))
        case cst.Comparison():
            return _is_counted(model, parent)
        case cst.ComparisonTarget():
            comparison = model.tree.parent(parent)
            return isinstance(comparison, cst.Comparison) and _is_counted(model, comparison)
    return False


def _is_counted(model: "Model", comparison: cst.Comparison) -> bool:
    """Whether what a comparison gives is counted: ``(predicted == labels).sum()``."""
    attribute = model.tree.parent(comparison)
    if not isinstance(attribute, cst.Attribute) or len(comparison.comparisons) > 1:
        return False
    return attribute.attr.value in _COUNTED and model.tree.call_of(attribute) is not None
