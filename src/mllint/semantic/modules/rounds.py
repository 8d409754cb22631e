"""Layers that every round of a loop adds to the same list, of which a model is built then."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Module
from mllint.syntax.shape import constant, leaves_loop, runs_once

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COUNTING = "range"


def is_appended_each_round(model: "Model", call: cst.Call) -> bool:
    """Whether ``layers.append(layer)`` stands right in a counting loop, above which both of them were made.

    The list must become the layers of a model: ``nn.Sequential(*layers)``, ``nn.ModuleList(layers)``.
    """
    loop = next(model.tree.loops_around(call), None)
    holder = call.func.value if isinstance(call.func, cst.Attribute) else None
    layer = call.args[0].value
    if not isinstance(loop, cst.For) or not isinstance(holder, cst.Name) or not isinstance(layer, cst.Name):
        return False
    line = model.tree.parent(model.tree.parent(call))  # type: ignore[arg-type]
    is_plain = isinstance(line, cst.SimpleStatementLine) and model.tree.parent(line) is loop.body
    if not is_plain or not _counts(loop) or leaves_loop(loop.body):
        return False
    return _is_made_above(model, layer, loop) and _is_made_above(model, holder, loop) and _is_built(model, holder)


def _counts(loop: cst.For) -> bool:
    """``for _ in range(n)``: more than one round, as far as is known."""
    call = loop.iter
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name) or call.func.value != _COUNTING:
        return False
    return not runs_once(loop) and not any(constant(arg.value) in (0, 1) for arg in call.args if len(call.args) == 1)


def _is_made_above(model: "Model", name: cst.Name, loop: cst.For) -> bool:
    """Whether a name is bound by one assignment of the function, that stands above the loop."""
    bindings = model.reaching(name)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGN or bindings[0].path:
        return False
    return bindings[0].scope is model.scope_of(loop) and not model.tree.is_inside(bindings[0].node, loop)


def _is_built(model: "Model", holder: cst.Name) -> bool:
    """Whether a model is made of a list."""
    for use in uses(model, model.reaching(holder)[0]):
        call = model.tree.call_given(use)
        if isinstance(call, cst.Call) and isinstance(model.value(call), Module):
            return True
    return False
