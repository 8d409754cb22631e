"""Entries that are read of a file though the code that writes it writes none of that name.

``torch.save({"step": step}, path)``, and then ``torch.load(path)["epoch"]``. Entries that are loaded into something at
once are those of ``loads``, unless a class of the project says what its ``load_state_dict`` does with them. What code
writes that has most entries in common may be another file: an export. Not where the function that reads goes on
training, and writes such files itself, or loads the state of an optimizer, too.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Absent, FromFile, Record
from mllint.semantic.checkpoints.counterparts import (
    is_of_own_training,
    is_of_the_project,
    is_written_near,
    never_saved,
    saved_beside,
)
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load, load_of, of_known_file
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.names.uses import uses_of_bound
from mllint.syntax.shape import last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def never_written(model: "Model", read: cst.Call) -> Iterator[tuple[cst.Subscript, Absent, Saved]]:
    """The entries that are read of what a call of ``load`` reads, and what is saved there instead."""
    for item in entries(model, read):
        load = Load(model, read, read, None, item, None)
        content = Tracer(model).content(item)
        if not isinstance(content, FromFile) or is_guarded(load):
            continue
        found = list(of_known_file(load, content))
        if not found and _is_told(model, item, content):
            found = list(never_saved(model, item, content))
        absent = [(inner, saved) for saved, inner in found if isinstance(inner, Absent) and saved is not None]
        is_whole = all(isinstance(inner.holder, Record) for inner, _ in absent)
        if found and len(absent) == len(found) and is_whole and not may_be_of_another(model, *absent[0]):
            yield item, *absent[0]


def may_be_of_another(model: "Model", absent: Absent, saved: Saved) -> bool:
    """Whether code around writes a dict with the key that is missing in what another file of the project saves.

    Who has written the file is told by its path alone then, and it may have been that code.
    """
    if saved.place.model is model or model.project is None or not isinstance(absent.holder, Record):
        return False
    return is_written_near(model, absent.key)


def _is_told(model: "Model", item: cst.Subscript, content: FromFile) -> bool:
    """Whether an entry is loaded, or read by code of which it is known what writes the file."""
    is_loaded = _loading(model, item) is not None
    is_beside = is_loaded or any(saved_beside(model, content.place))
    return is_beside or is_of_own_training(model, item, content) or is_of_the_project(model, item, content)


def entries(model: "Model", read: cst.Call) -> Iterator[cst.Subscript]:
    """Where a string key is taken of what is read, at once or of the name that the same function gives it.

    To what is kept in an attribute, any method may add entries.
    """
    statement, function = model.tree.parent(read), model.enclosing_function(read)
    holders: list[cst.BaseExpression] = [read]
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        is_named = isinstance(statement.targets[0].target, cst.Name)
        found = uses_of_bound(model, statement) if is_named else ()
        holders = [node for node in found if model.enclosing_function(node) is function]
    for holder in holders:
        item = model.tree.parent(holder)
        if isinstance(item, cst.Subscript) and item.value is holder and _is_read(model, item):
            yield item


def _loading(model: "Model", item: cst.Subscript) -> cst.Call | None:
    """The call that loads an entry into something at once."""
    above = model.tree.parent(item)
    call = model.tree.parent(above) if isinstance(above, cst.Arg) else None
    return call if isinstance(call, cst.Call) and last_word(call.func) in LOADING else None


def _is_read(model: "Model", item: cst.Subscript) -> bool:
    """Whether an entry with a string key is read, and not loaded into something of a library at once."""
    call = _loading(model, item)
    is_loaded = call is not None and load_of(model, call) is not None
    is_written = isinstance(model.tree.parent(item), (cst.AssignTarget, cst.AugAssign, cst.Del))
    return string_literal(subscript_index(item)) is not None and not is_loaded and not is_written
