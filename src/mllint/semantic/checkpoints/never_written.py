"""Entries that are read of a file though the code that writes it writes none of that name, or a test asks for another.

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
from mllint.semantic.checkpoints.handling import is_guarded, uses_in_function
from mllint.semantic.checkpoints.loads import Load, load_of, of_known_file
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.names.conditions import parts_of_test, verdicts
from mllint.semantic.names.uses import uses_of_bound
from mllint.syntax.shape import last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

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
    call = model.tree.call_given(item)
    return call if isinstance(call, cst.Call) and last_word(call.func) in LOADING else None


def _is_read(model: "Model", item: cst.Subscript) -> bool:
    """Whether an entry with a string key is read, and not loaded into something of a library at once."""
    call = _loading(model, item)
    is_loaded = call is not None and load_of(model, call) is not None
    is_written = isinstance(model.tree.parent(item), (cst.AssignTarget, cst.AugAssign, cst.Del))
    return string_literal(subscript_index(item)) is not None and not is_loaded and not is_written


def asked_under_another(load: Load) -> tuple[str, str] | None:
    """The key that the tests around a load ask for, and the one that is read: one of the two begins or ends the other.

    The first is mentioned nowhere else, the second nowhere in the tests.

    ``if state["lr_scheduler"] is not None: scheduler.load_state_dict(state["scheduler"])``: only one of the two is
    there.
    """
    model, item = load.model, load.given
    key = string_literal(subscript_index(item)) if isinstance(item, cst.Subscript) else None
    if key is None or not isinstance(item, cst.Subscript):
        return None
    tests = [test for test, is_true in verdicts(model, load.call) if is_true]
    found = [part for test in tests for part in parts_of_test(test) if _is_there_where_true(part)]
    inside = {id(node) for part in found for node in subtree(part)}
    if not inside:
        return None
    asked, read = set[str](), set[str]()
    for use in uses_in_function(item.value, model):
        for name, node in _keys_at(model, use):
            (asked if id(node) in inside else read).add(name)
    others = [name for name in asked - read if name != key and (name in key or key in name)]
    return (others[0], key) if len(others) == 1 and key not in asked else None


def _is_there_where_true(test: cst.BaseExpression) -> bool:
    """Whether a test that asks for an entry holds where the entry is there, and is something."""
    if not isinstance(test, cst.Comparison):
        return isinstance(test, (cst.Subscript, cst.Call))
    operators = [target.operator for target in test.comparisons]
    return len(operators) == 1 and isinstance(operators[0], (cst.In, cst.IsNot))


def _keys_at(model: "Model", use: cst.BaseExpression) -> Iterator[tuple[str, cst.CSTNode]]:
    """The string keys that are taken of a dict, or looked for in it, where a name of it stands."""
    above = model.tree.parent(use)
    if isinstance(above, cst.Subscript) and above.value is use:
        name = string_literal(subscript_index(above))
    elif isinstance(above, cst.ComparisonTarget) and isinstance(above.operator, (cst.In, cst.NotIn)):
        comparison = model.tree.parent(above)
        name = string_literal(comparison.left) if isinstance(comparison, cst.Comparison) else None
    elif isinstance(above, cst.Attribute) and above.attr.value in ("get", "pop"):
        call = model.tree.parent(above)
        name = string_literal(call.args[0].value) if isinstance(call, cst.Call) and call.args else None
    else:
        return
    if name is not None:
        yield name, above
