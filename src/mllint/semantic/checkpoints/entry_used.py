"""Entries of a file that are taken for the thing whose state they are: ``scheduler = checkpoint["scheduler"]``.

What the code saves tells what is in the file, and a call of a method that no dict has tells what the entry is taken
for: there, or where a function hands the entry on to those that call it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State, entry_at
from mllint.semantic.checkpoints.counterparts import with_the_other_entries
from mllint.semantic.checkpoints.handling import is_caught
from mllint.semantic.checkpoints.loads import Load, of_known_file
from mllint.semantic.checkpoints.mistaken import Mistaken, use_as_object
from mllint.semantic.checkpoints.never_written import entries
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.events.places import place_in_returns
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import bound_by, uses
from mllint.syntax.shape import last_word, part_at, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_QUESTIONS = frozenset({"isinstance", "hasattr", "type", "callable"})
_STEPS = 2
"""Out of how many functions an entry is followed."""


class EntryUsed(NamedTuple):
    """An entry that is taken for an object, with its key, and how it is used."""

    item: cst.Subscript
    key: str
    mistaken: Mistaken


def entries_used(model: "Model", read: cst.Call) -> Iterator[EntryUsed]:
    """The entries of what a call of ``load`` reads that are used as objects, where the file surely holds a state."""
    for item in entries(model, read):
        use = _use(model, item)
        key = string_literal(subscript_index(item))
        if use is None or key is None or is_caught(Load(model, read, read, None, item, None)):
            continue
        written = list(_written(model, read, item))
        if written and all(_is_state(content) for _, content in written) and _is_state_everywhere(model, key):
            method = use.func.attr.value if isinstance(use.func, cst.Attribute) else ""
            yield EntryUsed(item, key, Mistaken(method, written[0][0]))


def _use(model: "Model", item: cst.Subscript) -> cst.Call | None:
    """The first use of an entry as an object: of it, or of the name that it is given."""
    found = use_as_object(model, item)
    statement = model.tree.parent(item)
    if found is not None or not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return found
    places = [node for binding in bound_by(model, statement) for node in _uses(model, binding, _STEPS)]
    if any(last_word(call.func) in _QUESTIONS for node in places if (call := model.tree.call_given(node)) is not None):
        return None
    return next((use for node in places if (use := use_as_object(model, node)) is not None), None)


def _uses(model: "Model", binding: Binding, steps: int) -> Iterator[cst.BaseExpression]:
    """Where what a binding bound is read, also by those that call the function, where it returns that."""
    yield from uses(model, binding)
    function = binding.scope.node
    if not steps or not isinstance(function, cst.FunctionDef):
        return
    info = model.function_info(function)
    path = place_in_returns(info, binding) if info.is_transparent else None
    for call, _ in () if path is None else calls_of(model, info):
        statement = model.tree.parent(call)
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            target = part_at(statement.targets[0].target, path) if path else statement.targets[0].target
            for bound in bound_by(model, statement):
                if bound.path == path and isinstance(target, cst.Name) and target.value == bound.key:
                    yield from _uses(model, bound, steps - 1)


def _written(model: "Model", read: cst.Call, item: cst.Subscript) -> Iterator[tuple[Saved, Content | None]]:
    """What is saved under the key: to this file, or by the code that saves all else that is read of it."""
    content = Tracer(model).content(item)
    if not isinstance(content, FromFile) or content.renames:
        return
    known = [(saved, inner) for saved, inner in of_known_file(Load(model, read, read, None, item, None), content)]
    path = read_path(content)
    if not known and (path is None or not path.is_of_others):
        saves = with_the_other_entries(model, item, content)
        known = [(saved, entry_at(saved.content, content.trail)) for saved in saves]
    yield from known


def _is_state(content: Content | None) -> bool:
    return isinstance(content, State) and not content.is_unclear


def _is_state_everywhere(model: "Model", key: str) -> bool:
    """Whether all that the code saves under a key are states."""
    records = (saved.content.items for saved in model.surroundings.saved if isinstance(saved.content, Record))
    return all(_is_state(items[key]) for items in records if key in items)
