"""Functions that something names: the file outside of any function, a function that is named itself, or an importer."""

import re
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMMENT = re.compile(r"#.*")


def outermost_function(model: "Model", node: cst.CSTNode) -> cst.FunctionDef | None:
    """The function of a file in which a place stands, itself or in a function of its own."""
    around = [item for item in (node, *model.tree.ancestors(node)) if isinstance(item, cst.FunctionDef)]
    return around[-1] if around else None


def is_named(model: "Model", function: cst.FunctionDef, above: tuple[cst.CSTNode, ...] = ()) -> bool:
    """Whether a file names a function outside of any, or in one that is named itself, or one that imports it does.

    ``above`` are the functions that are asked for already.
    """
    word, is_method = function.name.value, model.function_info(function).owner is not None
    names = (
        name
        for name in model.names_by_word.get(word, ())
        if name is not function.name and _may_name(model, name, is_method=is_method)
    )
    homes = {outermost_function(model, name) for name in names} - {function, *above}
    return (
        None in homes
        or (model.project is not None and bool(model.project.importers(model.path, word)))
        or any(home is not None and is_named(model, home, (function, *above)) for home in homes)
    )


def _may_name(model: "Model", name: cst.Name, *, is_method: bool) -> bool:
    """Whether a word may stand for a function: of a method as an attribute, of another one as what is read by it.

    ``from torch import save as write`` and ``save(path=path)`` say nothing of functions that are called like this.
    """
    parent = model.tree.parent(name)
    if isinstance(parent, cst.Attribute) and parent.attr is name:
        return is_method
    is_read = not isinstance(parent, (cst.ImportAlias, cst.Param, cst.AssignTarget))
    return not is_method and is_read and not (isinstance(parent, cst.Arg) and parent.keyword is name)


def is_said_once(model: "Model", function: cst.FunctionDef) -> bool:
    """Whether a file has the name of a function nowhere else, also not in a text such as those of ``__all__``."""
    word = re.escape(function.name.value)
    return len(re.findall(rf"\b{word}\b", _COMMENT.sub("", model.source.text))) == 1


def is_idle(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in a function that nothing names, no notebook either, beside others that something does.

    No method: those are called by names that nobody writes, by a trainer, or by a class above.
    """
    function, project = outermost_function(model, node), model.project
    if function is None or project is None or function.decorators or model.function_info(function).owner is not None:
        return False
    if is_named(model, function) or not is_said_once(model, function):
        return False
    if project.mentions(model.path).are_in_a_notebook(function.name.value):
        return False
    others = (line for line in model.tree.module.body if isinstance(line, cst.FunctionDef) and line is not function)
    return any(is_named(model, other) for other in others)
