"""What is kept where something does better than what was kept before: ``if loss < best: best = loss``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path, items_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_kept_for_better(model: "Model", statement: cst.CSTNode, *, in_calls: bool) -> bool:
    """Whether a statement runs where something does better than what is then set to it.

    ``in_calls``: the test may also stand around every call of the method that has the statement.
    """
    for ancestor in model.tree.ancestors(statement):
        if isinstance(ancestor, cst.FunctionDef):
            return in_calls and _is_called_for_better(model, ancestor)
        if isinstance(ancestor, (cst.For, cst.While)):
            return False
        if isinstance(ancestor, cst.If) and _sets_what_is_compared(ancestor, ancestor.body):
            return True
    return False


def is_asked_from_outside(model: "Model", node: cst.CSTNode) -> bool:
    """Whether nobody in the file calls the method that has a node: it is not run as soon as something is kept."""
    function = model.enclosing_function(node)
    if function is None:
        return False
    named = (model.tree.parent(name) for name in model.names_by_word.get(function.name.value, ()))
    values = (model.value(node) for node in named if isinstance(node, cst.Attribute))
    own = model.function_info(function)
    return not any(value is None or (isinstance(value, Function) and value.definition is own) for value in values)


def _is_called_for_better(model: "Model", function: cst.FunctionDef) -> bool:
    calls = calls_of(model, model.function_info(function))
    around = ([item for item in model.tree.ancestors(call) if isinstance(item, cst.If)] for call, _ in calls)
    return bool(calls) and all(any(_sets_what_is_compared(item, function.body) for item in items) for items in around)


def _sets_what_is_compared(test: cst.If, body: cst.BaseSuite) -> bool:
    tested = (part for part in subtree(test.test) if isinstance(part, (cst.Name, cst.Attribute)))
    compared = {path for path in map(dotted_path, tested) if path is not None}
    targets = (part.target for part in subtree(body) if isinstance(part, cst.AssignTarget))
    set_here = (part for target in targets for part in items_of(target))  # `best, kept = loss, model.state_dict()`
    return any(path in compared for path in map(dotted_path, set_here))
