"""Losses of the project's own classes that are computed where no graph is recorded, whoever uses the class."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.cuts import is_guarded
from mllint.semantic.graph.dependence import may_be_computed_from
from mllint.semantic.names.assigned import all_assigned
from mllint.semantic.names.definitions import function_around
from mllint.semantic.values import Output, Tensor

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CALLED = frozenset({"forward", "__call__"})
_COMPUTING = (cst.Call, cst.BinaryOperation, cst.UnaryOperation)


def given_back_without_graph(model: "Model", statement: cst.With) -> Iterator[cst.BaseExpression]:
    """What a class that is called a loss computes of its inputs under ``no_grad()``, and gives back as it is.

    A decorator that switches the gradients off for all of it is meant.
    """
    info = function_around(model, statement)
    if info is None or info.owner is None or info.name not in _CALLED or not info.owner.name.endswith(("Loss", "loss")):
        return
    if model.gradients.inside(statement) != "untouched" or is_guarded(model, statement, ""):
        return
    given = {id(parameter) for parameter in info.parameters[1:]}
    for line in info.scope.returns:
        is_off = model.tree.is_below(line, statement) and model.gradients.inside(line) == "off"
        value = line.value if is_off else None
        is_made = value is not None and _is_computed_in(model, value, statement)
        if value is not None and is_made and not given.isdisjoint(may_be_computed_from(model, value)):
            yield value


def _is_computed_in(model: "Model", node: cst.BaseExpression, holder: cst.CSTNode) -> bool:
    """Whether an expression computes what may be a tensor, or names what is computed inside of a statement."""
    if isinstance(node, cst.Name):
        made = all_assigned(model, node)
        return bool(made) and all(
            model.tree.is_below(item, holder) and _is_computed_in(model, item, holder) for item in made
        )
    value = model.value(node)
    return isinstance(node, _COMPUTING) and (value is None or isinstance(value, (Tensor, Output)))
