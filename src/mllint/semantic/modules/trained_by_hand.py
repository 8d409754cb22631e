"""Tensors with a gradient of which the code that uses the module looks after itself, and of nothing else."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.classes import Members
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Array, ClassObject, Number, Tensor
from mllint.syntax.shape import called_on

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_OF_WHOLE = (
    "to", "cuda", "cpu", "half", "double", "apply", "parameters", "named_parameters", "sublayers", "state_dict",
    "load_state_dict", "set_state_dict", "save", "save_model",
)  # fmt: skip
"""What moves, saves or asks all that a module has, and so finds out what is not registered."""


def is_trained_by_hand(members: Members, name: str) -> bool:
    """Whether the gradient of an attribute is read, and nobody in sight moves, saves or asks a module as a whole.

    Then there is nothing that a parameter would be found by: ``layer.weight.data -= rate * layer.weight.grad``.
    """
    files = tuple(_files(members))
    is_read = any(
        isinstance(above := model.tree.parent(node), cst.Attribute) and above.attr.value == "grad"
        for model in files
        for node in attributes(model, name)
    )
    return is_read and not any(_asks_whole(model) for model in files)


def _files(members: Members) -> "Iterator[Model]":
    yield from members.models
    definition = members.definition
    yield from (model for model in definition.model.importers(definition.name) if model not in members.models)


def _asks_whole(model: "Model") -> bool:
    """Whether a file calls such a method of something that may be a module."""
    calls = (call for word in _OF_WHOLE for call in model.calls_by_word.get(word, ()))
    holders = (holder for call in calls if (holder := called_on(call)) is not None)
    return any(not isinstance(model.value(holder), (Tensor, Array, Number, ClassObject)) for holder in holders)
