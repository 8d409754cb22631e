"""Input that stands for any: noise, or one number all over. What is computed of it, nobody wants."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path, last_word
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 8
"""How many expressions are looked at, at most, to tell what an input is made of."""
_MADE_UP = ("rand", "zeros", "ones", "empty", "full")
_DRAWN = frozenset({"normal", "normal_", "standard_normal", "uniform", "uniform_", "gauss"})
"""Functions and methods that draw numbers: noise, of which a generator makes something that is only looked at."""


def is_made_up(forward: Event) -> bool:
    """Whether the input is noise, or stands for any: only the shape of the output is asked for."""
    assert isinstance(forward.node, cst.Call)
    return are_made_up(forward.frame.model, [arg.value for arg in forward.node.args])


def are_made_up(model: "Model", given: list[cst.BaseExpression]) -> bool:
    """Whether one of some expressions is noise, or stands for any input."""
    pending = [*given]
    for part in pending:  # which grows
        pending += _made_of(model, part) if len(pending) < _MAX_STEPS else []
    return any(_makes_up(model, part) for part in pending)


def _makes_up(model: "Model", part: cst.BaseExpression) -> bool:
    """Whether something is drawn, or is the same number all over, in an expression."""
    called = (item.func for item in _values_in(part) if isinstance(item, cst.Call))
    words = ((model.library_name(function) or last_word(function) or "").rpartition(".")[2] for function in called)
    return any(word.startswith(_MADE_UP) or word in _DRAWN for word in words)


def _made_of(model: "Model", part: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the names in an expression are bound to, but for what is only made to put data into."""
    bound = [item for item in _bound(model, part) if not _is_filled_with_data(model, item)]
    return [item.value for item in bound if item.value is not None]


def _bound(model: "Model", part: cst.BaseExpression) -> list[Binding]:
    return [item for name in _values_in(part) if isinstance(name, cst.Name) for item in model.reaching(name)]


def _values_in(part: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of an expression but for its indices: which of some samples is taken makes none of them up."""
    pending = [part]
    while pending:
        item = pending.pop()
        yield item
        pending += [item.value] if isinstance(item, cst.Subscript) else children(item)


def _is_filled_with_data(model: "Model", binding: Binding) -> bool:
    """Whether places in what a name is bound to are set to what some function gives: ``batch[i] = read(path)``.

    Not to numbers, to what is drawn, or to what a module puts out.
    """
    if binding.value is None or not _makes_up(model, binding.value):
        return False
    for change in changes_of_bound(model, binding):
        target = model.tree.parent(change)
        statement = None if target is None else model.tree.parent(target)
        if isinstance(change, cst.Subscript) and isinstance(statement, cst.Assign):
            given = [statement.value, *(item.value for item in _bound(model, statement.value) if item.value)]
            calls = [call for part in given for call in subtree(part) if isinstance(call, cst.Call)]
            read = [call for call in calls if not (model.qualified_name(call.func) or "").startswith("builtins.")]
            if (
                read
                and not any(_makes_up(model, part) for part in given)
                and not any(_is_drawn_or_put_out(model, call) for call in read)
            ):
                return True
    return False


def _is_drawn_or_put_out(model: "Model", call: cst.Call) -> bool:
    name = model.library_name(call.func) or dotted_path(call.func) or ""
    return "random" in name.split(".") or isinstance(model.value(call.func), Module)
