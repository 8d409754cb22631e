"""Which fields a named tuple or a dataclass has, in the order in which a call fills them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import assigned
from mllint.semantic.values import ClassObject
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_NAMED_TUPLES = frozenset({"collections.namedtuple", "typing.NamedTuple"})


def fields_of(model: "Model", callee: cst.BaseExpression) -> tuple[str, ...]:
    """The fields of what a call of something makes; none where it makes no record."""
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
