"""Groups of parameters that are made for an optimizer, and that none is given."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import GIVING_PARAMETERS
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.names.uses import uses
from mllint.semantic.values import is_object
from mllint.syntax.shape import last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_GROWING = frozenset({"append", "extend", "insert", "update"})
_KEY = "params"
_MAX_STEPS = 3
"""Through how many names it is followed whether something is made of parameters."""


def lost_group(model: "Model", statement: cst.Assign) -> str | None:
    """The name to which a statement binds groups of parameters, in a function that makes an optimizer without them."""
    if GIVING_PARAMETERS.isdisjoint(model.calls_by_word) or lookup.last_words("optimizer").isdisjoint(
        model.calls_by_word
    ):
        return None
    name, scope = statement.targets[0].target, model.scope_of(statement)
    if not isinstance(name, cst.Name) or len(statement.targets) > 1 or not scope.is_function:
        return None
    binding = next((item for item in scope.bindings.get(name.value, ()) if item.node is statement), None)
    if binding is None or name.value in scope.outer_names or "locals" in model.calls_by_word:
        return None
    given = list(_values_of_key(statement.value))
    for place in uses(model, binding):
        filled = _filled(model, place)
        if filled is None:
            return None
        given += filled
    if not any(_is_of_parameters(model, node, _MAX_STEPS) for node in given) or is_in_a_test(model, statement):
        return None
    return binding.key if _makes_optimizer(model, scope) else None


def _values_of_key(display: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What stands under the key of the parameters, in a dict or in those of a list."""
    groups = [element.value for element in display.elements] if isinstance(display, cst.List) else [display]
    for group in groups:
        items = group.elements if isinstance(group, cst.Dict) else ()
        yield from (
            item.value for item in items if isinstance(item, cst.DictElement) and string_literal(item.key) == _KEY
        )


def _filled(model: "Model", place: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """What is put into a group, or a list of them, where it is mentioned; ``None`` where it is read."""
    holder, above = place, model.tree.parent(place)
    is_of_parameters = True
    if isinstance(above, cst.Subscript):
        index = subscript_index(above)
        is_of_parameters = string_literal(index) == _KEY
        holder, above = above, model.tree.parent(above)
    value: cst.BaseExpression | None = None
    if isinstance(above, cst.AssignTarget) and holder is not place:
        statement = model.tree.parent(above)
        value = statement.value if isinstance(statement, cst.Assign) else None
    elif isinstance(above, cst.AugAssign) and above.target is holder:
        value = above.value
    elif isinstance(above, cst.Attribute) and above.attr.value in _GROWING:
        call = model.tree.call_of(above)
        if call is not None and call.args and isinstance(model.tree.parent(call), cst.Expr):
            value = call.args[-1].value
    if value is None:
        return None
    return [value] if is_of_parameters else []


def _is_of_parameters(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether something is made of the parameters of a module: all, some, or those that a loop puts into a list."""
    return steps > 0 and any(
        last_word(part.func) in GIVING_PARAMETERS
        if isinstance(part, cst.Call)
        else isinstance(part, cst.Name) and any(_binds_them(model, item, steps) for item in model.reaching(part))
        for part in subtree(node)
    )


def _binds_them(model: "Model", binding: Binding, steps: int) -> bool:
    value = binding.value
    if value is None or binding.kind not in (BindingKind.ASSIGN, BindingKind.LOOP):
        return False
    if _is_of_parameters(model, value, steps - 1):
        return True
    filled = (
        (_filled(model, place) for place in uses(model, binding)) if isinstance(value, (cst.List, cst.Tuple)) else ()
    )
    return any(_is_of_parameters(model, item, steps - 1) for items in filled for item in items or ())


def _makes_optimizer(model: "Model", scope: Scope) -> bool:
    calls = (call for word in lookup.last_words("optimizer") for call in model.calls_by_word.get(word, ()))
    return any(model.scope_of(call) is scope and is_object(model.value(call), "optimizer") for call in calls)
