"""What iterating over a value yields."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.attributes import MODULE_SEQUENCES
from mllint.semantic.expressions.module_lists import MODULE_LISTS, listed_module
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
from mllint.syntax.shape import argument, constant

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Loaders that collate with their framework's own default when they are not told otherwise.
_COLLATING = frozenset({"torch.utils.data.DataLoader", "paddle.io.DataLoader"})


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
    listed = listed_module(model, node) if isinstance(value, Module) and value.name in MODULE_LISTS else None
    return listed or element_of(value)


def _collated(loader: Object) -> Value | None:
    if loader.name not in _COLLATING or loader.framework is None:
        return None
    if loader.call is None:
        return Batch(loader.framework, opaque=True)
    if any(arg.star == "**" for arg in loader.call.args) or argument(loader.call, 6, "collate_fn") is not None:
        return None
    size = argument(loader.call, 1, "batch_size")
    return None if size is not None and constant(size.value) is None else Batch(loader.framework)
