"""Loads of the state of another thing, which that is given as well, while the own one in the file is never read.

``a.load_state_dict(file["a"])``, ``b.load_state_dict(file["a"])``: the code saves ``b`` under ``"b"``.
"""

from typing import NamedTuple

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile, Record, State
from mllint.semantic.checkpoints.handling import branches_without, items_of_same
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.syntax.shape import last_word, string_literal, subscript_index


class ReadForTwo(NamedTuple):
    """The key under which the own state is saved, and what the loaded one belongs to."""

    own: str
    other: str


def read_for_two(load: Load) -> ReadForTwo | None:
    """The entry that should be read in the place of the one that is loaded into another thing, too."""
    model, given, name = load.model, load.given, last_word(load.receiver)
    key = string_literal(subscript_index(given)) if isinstance(given, cst.Subscript) else None
    if not isinstance(given, cst.Subscript) or key is None or name is None:
        return None
    beside = [item for item in items_of_same(given.value, model) if item is not given]
    others = {_receiver(load, item) for item in beside if string_literal(subscript_index(item)) == key} - {None, name}
    content = Tracer(model).content(given) if others else None
    path = read_path(content) if isinstance(content, FromFile) else None
    if not isinstance(content, FromFile) or content.renames or path is None or path.is_of_others:
        return None
    read = {string_literal(subscript_index(item)) for item in beside}
    found: ReadForTwo | None = None
    for record in (saved.content.items for saved in model.surroundings.saved if isinstance(saved.content, Record)):
        if key not in record:
            continue
        state = record[key]
        owner = state.name if isinstance(state, State) else None
        own = [word for word, item in record.items() if isinstance(item, State) and item.name == name]
        if owner not in others or len(own) != 1 or own[0] in read:
            return None
        found = ReadForTwo(own[0], owner or "")
    return found


def _receiver(load: Load, item: cst.Subscript) -> str | None:
    """What another entry is loaded into, whenever this load runs."""
    model = load.model
    arg = model.tree.parent(item)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    other = load_of(model, call) if isinstance(call, cst.Call) else None
    if other is None or other.given is not item or branches_without(item, load.given, model):
        return None
    return None if branches_without(load.given, item, model) else last_word(other.receiver)
