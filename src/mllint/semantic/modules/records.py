"""Fields of a record: where what is put into a named tuple or a dataclass is read again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.names.classes import fields_of
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Function
from mllint.syntax.shape import has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MOVES = ("to", "cuda")
MAX_STEPS = 4
"""Through how many functions of the project a record is followed."""


def reads_of_field(model: "Model", call: cst.Call, arg: cst.Arg) -> Iterator[tuple["Model", cst.BaseExpression]]:
    """Where a field of the record that a call makes is read, with its file; or the record itself, where it is moved."""
    field = _field(model, call, arg)
    if field is None:
        return
    statement = model.tree.parent(call)
    if isinstance(statement, cst.Assign):
        for use in uses_of_bound(model, statement):
            yield from _reads(model, use, field, MAX_STEPS)
    else:
        yield from _reads(model, call, field, MAX_STEPS)


def _reads(
    model: "Model", record: cst.BaseExpression, field: str, steps: int
) -> Iterator[tuple["Model", cst.BaseExpression]]:
    parent = model.tree.parent(record)
    if isinstance(parent, cst.Attribute) and parent.attr.value == field:
        yield model, parent
    elif isinstance(parent, cst.Attribute) and parent.attr.value in _MOVES:
        yield model, record
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) and steps else None
    if not isinstance(call, cst.Call) or not isinstance(parent, cst.Arg):
        return
    callee = model.value(call.func)
    if isinstance(callee, Function):
        home = callee.definition.model
        for use in uses_inside(callee.definition, call, parent, filled_by(callee)) or ():
            yield from _reads(home, use, field, steps - 1)


def _field(model: "Model", call: cst.Call, arg: cst.Arg) -> str | None:
    """The field into which a call puts an argument; ``None`` where it makes no record."""
    fields = () if has_star_arguments(call) else fields_of(model, call.func)
    if arg.keyword is not None:
        return arg.keyword.value if arg.keyword.value in fields else None
    position = call.args.index(arg)
    return fields[position] if position < len(fields) else None
