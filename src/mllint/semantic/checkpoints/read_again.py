"""What is read from a file and then taken for the path of another: ``torch.load(checkpoint["model"])``."""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.checkpoints.contents import FromFile, Record, State, Whole, entry_at
from mllint.semantic.checkpoints.counterparts import with_the_other_entries
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load, of_known_file
from mllint.semantic.checkpoints.places import Place
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, path_given

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class ReadAgain(msgspec.Struct, frozen=True):
    """The key of what is taken for a path, and what saves something else there."""

    key: str
    saved: Saved
    is_state: bool


def read_again(model: "Model", read: cst.Call) -> ReadAgain | None:
    """What a call of ``load`` is given in the place of a path; ``None`` where that may be one."""
    given = path_given(FromFile(Place(model, read)))
    content = Tracer(model).content(given) if isinstance(given, cst.Subscript) else None
    if given is None or not isinstance(content, FromFile) or content.renames or not content.trail:
        return None
    load = Load(model, read, given, None, given, None)
    if is_guarded(load):
        return None
    found = list(of_known_file(load, content))
    if not found:
        saves = with_the_other_entries(model, given, content)
        found = [(saved, entry_at(saved.content, content.trail)) for saved in saves]
    if not found or not all(isinstance(inner, (State, Record, Whole)) for _, inner in found):
        return None
    return ReadAgain(content.trail[-1], found[0][0], all(isinstance(inner, State) for _, inner in found))
