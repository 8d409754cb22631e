"""Files that are run, and what is left over in them."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.files.testing import is_main_guard

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_left_over(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place is in a function of a script that nothing mentions: no code, no text, no comment, no other file.

    In a module somebody else may call it.
    """
    function = _outermost_function(model, node)
    if function is None or function.decorators or not _is_script(model):
        return False
    name = function.name.value
    if len(re.findall(rf"\b{re.escape(name)}\b", model.source.text)) > 1:
        return False
    return model.project is None or not model.project.importers(model.path, name)


def _outermost_function(model: "Model", node: cst.CSTNode) -> cst.FunctionDef | None:
    """The function of the module around a place, or that it is; ``None`` for a method."""
    around = [node, *model.tree.ancestors(node)]
    if any(isinstance(item, cst.ClassDef) for item in around):
        return None
    return next((item for item in reversed(around) if isinstance(item, cst.FunctionDef)), None)


def _is_script(model: "Model") -> bool:
    """Whether a file is there to be run: it has a part for that, or a loop outside of its functions."""
    return any(
        isinstance(item, (cst.For, cst.While)) or (isinstance(item, cst.If) and is_main_guard(item.test))
        for item in model.tree.module.body
    )
