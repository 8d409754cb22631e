"""Whether a name holds data: what a loader yields, or a part of it, which hangs on no graph."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.scopes import Binding, BindingKind
from mllint.semantic.values import Array, Batch, Elements, Nothing, Number, Other, Repeated, Tensor, Text, Value
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What iterables of batches are called where nothing else is known of them.
_LOADER = re.compile(r"loader|dataset|data_?iter|train_?iter|test_?iter|batches", re.IGNORECASE)
_PASSING = frozenset({"enumerate", "tqdm", "iter", "next", "islice", "track", "progressbar", "zip", "cycle"})


def hangs_on_nothing(value: Value | None) -> bool:
    """Whether a thing surely hangs on no graph: data, numbers, texts."""
    match value:
        case Number() | Text() | Nothing() | Array() | Batch() | Other():
            return True
        case Tensor():
            return value.attached is False
        case Elements():
            return all(hangs_on_nothing(item) for item in value.items)
        case Repeated():
            return hangs_on_nothing(value.item)
    return False


def is_data(model: "Model", binding: Binding) -> bool:
    """Whether a loop binds a key to what a loader yields, to go by what is iterated over or what that is called."""
    if binding.kind is not BindingKind.LOOP or binding.value is None:
        return False
    return hangs_on_nothing(model.binding_value(binding)) or yields_data(binding.value)


def yields_data(iterable: cst.BaseExpression) -> bool:
    """Whether something that is iterated over is spelled as a loader, also behind ``enumerate`` and its like."""
    if isinstance(iterable, cst.Call):
        name = (dotted_path(iterable.func) or "").rpartition(".")[2]
        if name not in _PASSING:
            return not iterable.args and yields_data(iterable.func)  # Paddle's older loaders are called
        positional = [arg.value for arg in iterable.args if arg.keyword is None and not arg.star]
        return bool(positional) and all(yields_data(item) for item in positional[: None if name == "zip" else 1])
    if isinstance(iterable, cst.Subscript):
        return yields_data(iterable.value)
    path = dotted_path(iterable)
    return path is not None and _LOADER.search(path.rpartition(".")[2]) is not None
