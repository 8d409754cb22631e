"""States that are saved a second time, under the key of another thing.

``{"net": net.state_dict(), "optimizer": net.state_dict()}``: whoever reads the optimizer's finds that of the network.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.checkpoints.counterparts import OF_TRAINING
from mllint.semantic.checkpoints.saving import Part, parts, saved
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_STATES = ("state_dict", "get_state_dict")


class SavedTwice(NamedTuple):
    """A state under the key of an optimizer, or the like, of the thing that ``path`` names."""

    node: cst.BaseExpression
    key: str
    path: str


def saved_twice(model: "Model", call: cst.Call) -> Iterator[SavedTwice]:
    """The states that a call saves under the key of an optimizer beside the very same under another key."""
    what = saved(model, call)
    if what is None or what.parameter is not None:
        return
    states = [(part.keys[-1], path, part) for part in parts(model, what.node) if (path := _owner(part)) is not None]
    under_own = {path for key, path, _ in states if key is not None and not _is_of_training(key)}
    for key, path, part in states:
        if key is not None and _is_of_training(key) and path in under_own:
            yield SavedTwice(part.node, key, path)


def _owner(part: Part) -> str | None:
    """What an entry of a dict is the state of, ``net`` of ``net.state_dict()``; ``None`` of everything else."""
    node = part.node
    if not part.keys or not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return dotted_path(node.func.value) if node.func.attr.value in _STATES else None


def _is_of_training(key: str) -> bool:
    return key.lower() == "opt" or key.lower().startswith(OF_TRAINING)
