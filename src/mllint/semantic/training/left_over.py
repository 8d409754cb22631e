"""Functions that are left over: nothing names them any more, and the project evaluates elsewhere."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.in_use import is_named, is_never_named, outermost_function

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.project import Project


def is_left_over(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in a function of a file that nothing in the project names, also not in a notebook, or by
    an attribute of its name; and another function, which something names, and that is given something as well, or a
    file that imports this one, switches a model to evaluation mode: that is what the project evaluates with.
    """
    project, function = model.project, outermost_function(model, node)
    if project is None or function is None or not is_never_named(model, function):
        return False
    return _evaluates_elsewhere(model, project, function)


def _evaluates_elsewhere(model: "Model", project: "Project", function: cst.FunctionDef) -> bool:
    """Whether a file that imports one, or something else in it that is in use, switches to evaluation mode."""
    if project.importers(model.path, ".eval("):
        return True
    switching = {outermost_function(model, call) for call in model.calls_by_word.get("eval", ())} - {function, None}
    return bool(function.params.params) and any(
        other is not None and other.params.params and is_named(model, other) for other in switching
    )
