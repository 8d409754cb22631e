"""Reports of missing and unexpected keys that are taken for the model: what ``load_state_dict`` gives back."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import callers, calls_of
from mllint.semantic.names.uses import bound_by, uses
from mllint.syntax.shape import dotted_path, targets_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

AS_MODEL = frozenset({
    "eval", "train", "cuda", "cpu", "to", "half", "float", "parameters", "state_dict", "load_state_dict", "forward",
    "named_parameters", "modules", "zero_grad", "step", "set_state_dict", "sublayers", "requires_grad_",
})  # fmt: skip
"""What a module or an optimizer is asked, and neither the report nor ``None``."""
MAX_STEPS = 3
"""Through how many functions that hand it on, and names that hold it, a report is followed."""


def is_bound_to_model(model: "Model", target: cst.BaseExpression, statement: cst.CSTNode, steps: int = 0) -> bool:
    """Whether a later use of the report that a statement binds calls it, or asks it what only a model is asked.

    Also where the function returns it, and one of those who call that takes it for a model.
    """
    bound = (binding for binding in bound_by(model, statement) if binding.key == dotted_path(target))
    return any(_is_model_at(model, use, steps) for binding in bound for use in uses(model, binding))


def _is_model_at(model: "Model", use: cst.BaseExpression, steps: int) -> bool:
    node, parent = use, model.tree.parent(use)
    if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value in AS_MODEL:
        node = parent
    if model.tree.call_of(node) is not None:
        return True
    return isinstance(parent, cst.Return) and is_returned_as_model(model, parent, steps)


def is_returned_as_model(model: "Model", statement: cst.Return, steps: int = 0) -> bool:
    """Whether one of the calls of the function, in its file or in one that imports it, takes the report for a model."""
    function = model.enclosing_function(statement)
    if function is None or steps >= MAX_STEPS:
        return False
    info = model.function_info(function)
    if not info.is_plain or not info.is_transparent:
        return False
    return any(
        _is_taken_for_model(home, call, steps + 1) for home, seen in callers(info) for call, _ in calls_of(home, seen)
    )


def _is_taken_for_model(model: "Model", call: cst.Call, steps: int) -> bool:
    if _is_model_at(model, call, steps):
        return True
    statement = model.tree.parent(call)
    if not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is not call:
        return False
    return any(is_bound_to_model(model, target, statement, steps) for target in targets_of(statement))
