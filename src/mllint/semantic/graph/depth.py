"""How much a graph keeps: that of a forward pass a lot, that of a few sums and products next to nothing."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.losses import is_library_loss
from mllint.semantic.values import Choice, Function, Instance, Method, Module, Symbol, Value
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FUNCTIONAL = ".functional."
_FLAT = frozenset({"normalize", "cosine_similarity", "pairwise_distance", "one_hot", "pad", "softplus"})
"""Functions of the libraries that no network consists of."""


def may_be_deep(model: "Model", call: cst.Call, callee: Value | None) -> bool:
    """Whether a call may be a forward pass: not of a loss, nor what a tensor or a function of the library does."""
    word = last_word(call.func) or ""
    match callee:
        case Symbol():
            return _FUNCTIONAL in callee.name and not is_called_loss(call) and word not in _FLAT
        case Module():
            return not is_library_loss(callee)
        case Function() | Choice() | Instance():
            return True
        case Method():
            return False
    if isinstance(call.func, cst.Name):
        return not is_called_loss(call)
    return word in model.function_names or lookup.tensor_method(model.framework or "torch", word) is None
