"""What is moved to a device and otherwise computed with: a tensor, whatever it was taken from.

A module has ``to()`` as well, and so has a batch of tokens or a graph, and it changes in place. But nobody adds them
up, compares them and counts where they agree, cuts them along several dimensions or has them masked; and an array,
with which all of this is done, has no ``to()``. (Paddle's tensors changed in place by that once, so they are left
alone.)
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.assigned import assigned
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Number, Output, Tensor
from mllint.syntax.shape import called_on, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MOVES = frozenset({"to", "cuda", "cpu", "detach"})
"""Methods that arrays and numbers do not have."""
_OF_DATA = frozenset({"numpy", "cpu", "cuda", "item"})
"""What is asked of the ``data`` of a tensor: that of an array is a buffer, which has none of them."""
_BINDING = (BindingKind.ASSIGN, BindingKind.PARAMETER, BindingKind.LOOP)
_COUNTED = frozenset({"sum", "float", "mean", "all", "any", "long", "int", "nonzero"})
"""What is asked of the tensor that a comparison of tensors gives."""
_OF_TENSORS = frozenset({"gt", "lt", "ge", "le", "eq", "ne", "argmax"})
"""Methods that what has a ``to()`` of its own, a module, a graph or a batch of tokens, has not."""
_OF_NUMBERS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)


def is_moved_tensor(model: "Model", receiver: cst.BaseExpression, method: str) -> bool:
    """Whether a name that is moved there is a tensor, to go by what the function computes with the very same thing."""
    if method not in MOVES or not isinstance(receiver, cst.Name) or model.framework != "torch":
        return False
    bindings = model.reaching(receiver)
    if len(bindings) != 1 or bindings[0].kind not in _BINDING:
        return False
    return any(
        _is_computed_with(model, use) for use in uses(model, bindings[0]) if _stands_for(model, use, bindings[0])
    )


def _stands_for(model: "Model", use: cst.BaseExpression, binding: Binding) -> bool:
    """Whether a place reads what was bound, or that on another device: behind ``if fast: x = x.cuda()``."""
    others = [item for item in model.reaching(use) if item is not binding]
    return all(_is_moved_itself(other) for other in others)


def _is_moved_itself(binding: Binding) -> bool:
    value = assigned(binding)
    operand = called_on(value) if value is not None and last_word(getattr(value, "func", value)) in MOVES else None
    return operand is not None and dotted_path(operand) == binding.key


def _is_computed_with(model: "Model", use: cst.BaseExpression) -> bool:
    parent = model.tree.parent(use)
    match parent:
        case cst.Subscript(value=value, slice=parts):
            return value is use and len(parts) > 1
        case cst.Attribute(attr=cst.Name(value="data")):
            asked = model.tree.parent(parent)
            return isinstance(asked, cst.Attribute) and asked.attr.value in _OF_DATA
        case cst.Attribute(attr=cst.Name(value=name)) if name in _OF_TENSORS or name in lookup.tensor_only_methods():
            call = model.tree.call_of(parent)
            is_wanted = call is not None and not isinstance(model.tree.parent(call), cst.Expr)
            return is_wanted and name not in model.function_names
        case cst.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, _OF_NUMBERS):
            other = right if left is use else left
            is_cut = isinstance(other, cst.Subscript) and len(other.slice) > 1
            return is_cut or isinstance(model.value(other), (Tensor, Output, Number))
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
