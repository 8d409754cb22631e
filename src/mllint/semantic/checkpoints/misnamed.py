"""Loads from a path to which nothing is written, where the same state is written to one that nearly is it.

``weights/last`` beside ``weights/last.pth``, ``weight/last.pth`` beside ``weights/last.pth``.
"""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.syntax.shape import dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.checkpoints.loads import Load


class Misnamed(msgspec.Struct, frozen=True):
    """The path that is read, and the save that was meant."""

    path: Path
    saved: Saved


def misnamed(load: "Load") -> Misnamed | None:
    """What a load was to read; ``None`` where the path may be that of any file, or is written to.

    Only what this very file saves of a thing of the same name tells that it is no other file.
    """
    content = Tracer(load.model).content(load.given)
    if not isinstance(content, FromFile) or content.place.model is not load.model:
        return None
    path = read_path(content)
    if path is None or path.is_blank:
        return None
    everything = load.model.surroundings.saved
    if any(saved.path is None or saved.path.is_blank or saved.path.is_same_as(path) for saved in everything):
        return None
    close = [saved for saved in everything if saved.path is not None and saved.path.is_nearly(path)]
    return next((Misnamed(path, saved) for saved in close if _is_of_receiver(saved.content, load)), None)


def _is_of_receiver(content: Content | None, load: "Load") -> bool:
    """Whether the state of something that is called like the receiver, in this file, is in there."""
    if isinstance(content, Record):
        return any(_is_of_receiver(item, load) for item in content.items.values() if isinstance(item, State))
    call = content.place.node if isinstance(content, State) and content.place.model is load.model else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    owner = dotted_path(call.func.value) or ""
    return owner.removesuffix(".module").rpartition(".")[2] == last_word(load.receiver)
