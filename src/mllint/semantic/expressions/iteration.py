"""What iterating over a value yields, and what stands at one place of what is gone through."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.attributes import MODULE_SEQUENCES
from mllint.semantic.expressions.module_lists import MODULE_LISTS, listed_module, module_in_display
from mllint.semantic.values import (
    Array,
    Batch,
    Elements,
    Mapping,
    Module,
    Object,
    Output,
    Repeated,
    StateDict,
    Tensor,
    Text,
    Unfinished,
    Value,
    join,
)
from mllint.syntax.shape import (
    argument,
    called_on,
    constant_given,
    fingerprint,
    items_of,
    last_word,
    subscript_index,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Loaders that collate with their framework's own default when they are not told otherwise.
_COLLATING = frozenset({"torch.utils.data.DataLoader", "paddle.io.DataLoader"})


def yields_batches(value: Value | None) -> bool:
    """Whether a loop over a value runs over the batches of a data loader."""
    match value:
        case Object(kind="loader"):
            return True
        case Repeated(item=Batch() | Output()):
            return True
        case Repeated(item=Elements(items=items)):
            return any(isinstance(item, Batch) for item in items)
    return False


def element_of(value: Value | None) -> Value | None:
    """What iterating over a value yields; ``None`` when that is not certain."""
    match value:
        case Unfinished():
            return value
        case Repeated():
            return value.item
        case Elements() if value.items:
            result: Value | None = value.items[0]
            for item in value.items[1:]:
                result = join(result, item)
            return result
        case Object(kind="loader"):
            return _collated(value)
        case Batch():
            return Batch(value.framework)
        case Output():
            return value
        case Tensor(scalar=True):
            return None  # that raises: it is no such tensor where the code runs
        case Tensor():
            return Tensor(value.framework, value.attached)
        case Array():
            return Array()
        case StateDict() | Mapping():
            return Text()
        case Module() if value.name in MODULE_SEQUENCES:
            return Module(value.framework)
    return None


def item_of(model: "Model", node: cst.BaseExpression) -> Value | None:
    """What iterating over an expression yields."""
    value = model.value(node)
    if isinstance(value, Module) and value.name in MODULE_LISTS:
        return listed_module(model, node) or module_in_display(model, value) or element_of(value)
    return element_of(value)


def _collated(loader: Object) -> Value | None:
    if loader.name not in _COLLATING or loader.framework is None:
        return None
    if loader.call is None:
        return Batch(loader.framework, opaque=True)
    if any(arg.star == "**" for arg in loader.call.args) or argument(loader.call, 6, "collate_fn") is not None:
        return None
    return None if constant_given(loader.call, 1, "batch_size") is None else Batch(loader.framework)


def is_one_place(model: "Model", target: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    """Whether what is assigned to holds the very thing that an expression is: ``nets[key]`` or, in a loop over the
    items of ``nets``, the name that the loop gives it.
    """
    if fingerprint(target) == fingerprint(node):
        return isinstance(target, (cst.Name, cst.Attribute, cst.Subscript))
    key = subscript_index(target) if isinstance(target, cst.Subscript) else None
    if key is None or not isinstance(target, cst.Subscript):
        return False
    item = [fingerprint(target.value), fingerprint(key), fingerprint(node)]
    return any(
        isinstance(loop, cst.For)
        and isinstance(loop.iter, cst.Call)
        and last_word(loop.iter.func) == "items"
        and item == [fingerprint(part) for part in (called_on(loop.iter) or key, *items_of(loop.target))]
        for loop in model.tree.loops_around(target)
    )
