"""Tensors that are made anew: what makes them, and whether data goes into them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.syntax.shape import constant

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 12
"""Through how many names and operations data is sought."""
# What makes a tensor anew from what it is given, and how it is told that the new one needs a gradient.
MAKERS = {
    "torch.tensor": ("requires_grad", True),
    "torch.autograd.Variable": ("requires_grad", True),
    "torch.nn.Parameter": ("requires_grad", True),
    "torch.Tensor": ("requires_grad", True),
    "torch.FloatTensor": ("requires_grad", True),
    "torch.cuda.FloatTensor": ("requires_grad", True),
    "torch.from_numpy": ("requires_grad", True),
    "paddle.to_tensor": ("stop_gradient", False),
}
# Functions that make a tensor of nothing but its size: what is made of these is a beginning, not a loss.
_BEGINNINGS = frozenset({
    "zeros", "ones", "full", "empty", "rand", "randn", "randint", "zeros_like", "ones_like", "randn_like", "arange",
    "rand_like", "full_like", "empty_like", "normal", "uniform", "linspace", "eye",
})  # fmt: skip


def is_computed(model: "Model", node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether data goes into an expression: it is no constant, and no tensor of a given size."""
    if depth > _MAX_STEPS or constant(node) is not ...:
        return False
    match node:
        case cst.List(elements=[]):
            return True  # it is filled later
        case cst.List() | cst.Tuple():
            return any(is_computed(model, element.value, depth + 1) for element in node.elements)
        case cst.BinaryOperation():
            return is_computed(model, node.left, depth + 1) or is_computed(model, node.right, depth + 1)
        case cst.UnaryOperation():
            return is_computed(model, node.expression, depth + 1)
        case cst.Call(func=cst.Attribute(value=receiver)) if model.qualified_name(node.func) is None:
            return is_computed(model, receiver, depth + 1)
        case cst.Call():
            name = model.qualified_name(node.func)
            last = "" if name is None else name.rpartition(".")[2]
            if name in MAKERS or last == "float":
                return bool(node.args) and is_computed(model, node.args[0].value, depth + 1)
            return last not in _BEGINNINGS
        case cst.Name() | cst.Attribute():
            bindings = model.reaching(node)
            return not bindings or any(
                binding.value is None or is_computed(model, binding.value, depth + 1) for binding in bindings
            )
    return True
