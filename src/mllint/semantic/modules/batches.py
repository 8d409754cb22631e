"""Batches of one: tensors and loaders whose size is written down."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.names.assigned import only_assigned
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Number, Object, Symbol
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import argument, before_methods, constant, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 6
"""Through how many names and methods a batch is followed."""

_FILLED = frozenset({"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"})
SOURCES = (*sorted(name.rpartition(".")[2] for name in _FILLED), "DataLoader")
"""The last words of what batches of a known size come from."""

# Methods that leave the shape as it is.
_SAME_SHAPE = frozenset({
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "detach", "clone", "contiguous", "requires_grad_",
    "type", "pin_memory",
})  # fmt: skip


class Batch(NamedTuple):
    """A batch of one; ``rank`` is how many dimensions it has, batch included, where that is known."""

    rank: int | None


def batch_of_one(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> Batch | None:
    """The batch that an expression stands for, if it surely has one sample."""
    if steps == 0:
        return None
    if isinstance(node, cst.Name):
        bindings = model.reaching(node)
        value = bindings[0].value if len(bindings) == 1 else None
        if value is None:
            return None
        if bindings[0].kind is BindingKind.LOOP:
            return _drawn(model, value)
        if bindings[0].kind is not BindingKind.ASSIGN:
            return None
        found = batch_of_one(model, value, steps - 1)
        # A part of what a loader yields (`images, labels = batch`) has as many samples; a part of a tensor has not.
        return None if found is not None and bindings[0].path and found.rank is not None else found
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _SAME_SHAPE:
        return batch_of_one(model, node.func.value, steps - 1)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "unsqueeze":
        dimension = argument(node, 0, "dim")
        rank = None if dimension is None or constant(dimension.value) != 0 else _rank(model, node.func.value, steps - 1)
        return None if rank is None else Batch(rank + 1)
    filled = _filled(node)
    wrapped = batch_of_one(model, node.args[0].value, steps - 1) if node.args else None
    if filled is None and wrapped is None:
        return None
    # Asked last: most calls are given nothing from which a batch of one could come.
    callee = model.value(node.func)
    name = callee.name if isinstance(callee, Symbol) else None
    return filled if name in _FILLED else wrapped if name == "torch.autograd.Variable" else None


def _filled(call: cst.Call) -> Batch | None:
    """``torch.randn(1, 8)``, ``torch.zeros((1, 8))``."""
    sizes = _sizes(call)
    return Batch(len(sizes)) if sizes and constant(sizes[0]) == 1 and len(sizes) > 1 else None


def _sizes(call: cst.Call) -> list[cst.BaseExpression]:
    """The sizes that are written down in a call, in a tuple or one by one; none where not all are."""
    sizes = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if has_star_arguments(call):
        return []
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        if any(isinstance(element, cst.StarredElement) for element in sizes[0].elements):
            return []
        sizes = [element.value for element in sizes[0].elements]
    return sizes


def _rank(model: "Model", node: cst.BaseExpression, steps: int) -> int | None:
    """How many dimensions a tensor has that is made with all its sizes written down: ``torch.zeros(width)`` has one."""
    node = before_methods(node, _SAME_SHAPE)
    if isinstance(node, cst.Name) and steps > 0:
        made = only_assigned(model, node)
        return None if made is None else _rank(model, made, steps - 1)
    if not isinstance(node, cst.Call) or model.qualified_name(node.func) not in _FILLED:
        return None
    sizes = _sizes(node)
    # A name alone may stand for a tuple of sizes.
    return len(sizes) if len(sizes) > 1 or (sizes and _is_number(model, sizes[0])) else None


def _is_number(model: "Model", size: cst.BaseExpression) -> bool:
    """Whether a size is one number: a parameter is where its default is."""
    if isinstance(model.value(size), Number):
        return True
    bindings = model.reaching(size)
    parameters = [item.node for item in bindings if item.kind is BindingKind.PARAMETER]
    return (
        bool(parameters)
        and all(isinstance(item, cst.Param) and isinstance(item.default, cst.Integer) for item in parameters)
        and len(parameters) == len(bindings)
    )


def _drawn(model: "Model", loader: cst.BaseExpression) -> Batch | None:
    """What a loader yields, or a part of it, where the loader is told to make batches of one, or not told at all."""
    value = model.value(run_over(loader))
    if not isinstance(value, Object) or value.name != "torch.utils.data.DataLoader" or value.call is None:
        return None
    call = value.call
    if has_star_arguments(call) or any(argument(call, None, name) for name in ("batch_sampler", "collate_fn")):
        return None
    if len([arg for arg in call.args if arg.keyword is None]) > 2:
        return None
    size = argument(call, 1, "batch_size")
    return Batch(None) if size is None or constant(size.value) == 1 else None
