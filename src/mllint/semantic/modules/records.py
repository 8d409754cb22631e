"""Fields of a record: where what is put into a named tuple or a dataclass is read again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.names.assigned import assigned
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import ClassObject, Function
from mllint.syntax.shape import has_star_arguments, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_NAMED_TUPLES = frozenset({"collections.namedtuple", "typing.NamedTuple"})
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
    fields = () if has_star_arguments(call) else _fields(model, call.func)
    if arg.keyword is not None:
        return arg.keyword.value if arg.keyword.value in fields else None
    position = call.args.index(arg)
    return fields[position] if position < len(fields) else None


def _fields(model: "Model", callee: cst.BaseExpression) -> tuple[str, ...]:
    value = model.value(callee)
    if isinstance(value, ClassObject):
        return _of_class(value.definition)
    if not isinstance(callee, cst.Name):
        return ()
    scope = model.scope_of(callee)
    while scope.parent is not None and callee.value not in scope.bindings:
        scope = scope.parent
    bound = scope.bindings.get(callee.value, ())
    made = assigned(bound[0]) if len(bound) == 1 else None
    if not isinstance(made, cst.Call) or model.library_name(made.func) not in _NAMED_TUPLES or len(made.args) < 2:
        return ()
    listed = made.args[1].value
    text = string_literal(listed)
    if text is not None:
        return tuple(text.replace(",", " ").split())
    items = listed.elements if isinstance(listed, (cst.List, cst.Tuple)) else ()
    names = [string_literal(item.value) for item in items]
    return tuple(name for name in names if name is not None) if None not in names else ()


def _of_class(definition: "ClassInfo") -> tuple[str, ...]:
    """The fields that a dataclass or a class of named tuples declares; of one with bases in the project, none."""
    names = (definition.model.qualified_name(_called(item.decorator)) for item in definition.node.decorators)
    is_record = definition.library_bases == ("typing.NamedTuple",) or "dataclasses.dataclass" in names
    if not is_record or len(definition.lineage) > 1 or definition.has_unknown_base:
        return ()
    lines = (line for line in definition.node.body.body if isinstance(line, cst.SimpleStatementLine))
    return tuple(
        statement.target.value
        for line in lines
        for statement in line.body
        if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name)
    )


def _called(decorator: cst.BaseExpression) -> cst.BaseExpression:
    return decorator.func if isinstance(decorator, cst.Call) else decorator
