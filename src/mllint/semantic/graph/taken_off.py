"""What a loss is computed of without a graph: outputs that were taken off theirs before, and tensors that are made
anew.

Nobody detaches what has no graph: what a call has given, of which nothing else is known, counts as an output there.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.names.changes import is_flagged
from mllint.semantic.names.scopes import Binding, all_assigned
from mllint.semantic.values import Module, Output, Symbol, Tensor
from mllint.syntax.shape import constant, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 12
"""Through how many names, methods and copies an output is followed."""
_COPYING = frozenset({
    "torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.Tensor", "torch.FloatTensor", "numpy.array",
    "torch.cuda.FloatTensor", "torch.autograd.Variable", "paddle.to_tensor", "numpy.asarray",
})  # fmt: skip
"""What gives the numbers of its first argument, and nothing of its graph."""
_KEEPING = frozenset({
    "cpu", "cuda", "to", "float", "double", "half", "numpy", "squeeze", "unsqueeze", "view", "reshape", "flatten",
    "clone", "contiguous", "astype", "cast", "permute", "transpose",
})  # fmt: skip
"""Methods that give the same numbers."""


def computes_alone(model: "Model", call: cst.Call) -> bool:
    """Whether a method of a tensor computes something of that and of written numbers alone: ``error.pow(2)``."""
    name, framework = last_word(call.func) or "", model.framework
    fact = None if framework is None else lookup.tensor_method(framework, name)
    if fact is None or fact.returns not in ("tensor", "scalar") or name.startswith("new_") or name.endswith("_"):
        return False
    return all(not arg.star and constant(arg.value) is not ... for arg in call.args)


def taken_off(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> cst.BaseExpression | None:
    """The place at which what a call has given was taken off its graph: ``output.detach()``, ``net(x).data``."""
    if steps <= 0:
        return None
    match node:
        case cst.Name():
            if is_flagged(model, node):
                return None  # its own gradient is wanted
            made = [taken_off(model, item, steps - 1) for item in all_assigned(model, node)]
            return made[0] if made and None not in made else None
        case cst.Call(func=cst.Attribute(value=source, attr=cst.Name(value="detach")), args=[]):
            return node if _is_output(model, source, steps - 1) else None
        case cst.Attribute(value=source, attr=cst.Name(value="data")) if model.framework == "torch":
            return node if _is_output(model, source, steps - 1) else None
        case cst.Call(func=cst.Attribute(value=source, attr=cst.Name(value=name))) if name in _KEEPING:
            return taken_off(model, source, steps - 1)
        case cst.Subscript(value=source):
            return taken_off(model, source, steps - 1)
        case cst.Call(args=[first]) if not first.star and model.qualified_name(node.func) in _COPYING:
            return taken_off(model, first.value, steps - 1)  # one that is told more may want a gradient itself
    return None


def _is_output(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether something hangs on a graph, or is what a call of something unknown has computed."""
    value = model.value(node)
    if isinstance(value, (Tensor, Output)) and value.attached is not None:
        return value.attached and not (isinstance(value, Tensor) and value.leaf)
    if not isinstance(value, (Tensor, Output, type(None))) or steps <= 0:
        return False
    if isinstance(node, cst.Name):
        made = all_assigned(model, node)
        return bool(made) and all(isinstance(item, cst.Call) and _is_output(model, item, steps - 1) for item in made)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPING:
        return _is_output(model, node.func.value, steps - 1)
    if not isinstance(node, cst.Call) or not node.args:
        return False
    callee = model.value(node.func)
    return callee is None or isinstance(callee, Module)


def computes_loss(model: "Model", call: cst.Call) -> bool:
    """Whether a call computes a loss: one of the libraries, or of what is spelled so and not known."""
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        function = lookup.function(callee.name)
        return ".nn.functional." in callee.name and function is not None and "reduction" in function.parameters
    if isinstance(callee, Module) and callee.name is not None:
        fact = lookup.class_(callee.name)
        return fact is not None and fact.kind == "loss"
    return (callee is None or isinstance(callee, Module)) and is_called_loss(call)


def adds_loss(binding: Binding) -> bool:
    """Whether ``total += loss.item()`` adds what is called a loss."""
    parts = subtree(binding.node.value) if isinstance(binding.node, cst.AugAssign) else ()
    return any(isinstance(part, (cst.Name, cst.Attribute)) and is_called_loss(part) for part in parts)


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
