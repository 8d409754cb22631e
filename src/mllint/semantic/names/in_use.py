"""Functions that something names: the file outside of any function, a function that is named itself, or an importer."""

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def outermost_function(model: "Model", node: cst.CSTNode) -> cst.FunctionDef | None:
    """The function of a file in which a place stands, itself or in a function of its own."""
    around = [item for item in (node, *model.tree.ancestors(node)) if isinstance(item, cst.FunctionDef)]
    return around[-1] if around else None


def is_named(model: "Model", function: cst.FunctionDef, above: tuple[cst.CSTNode, ...] = ()) -> bool:
    """Whether a file names a function outside of any, or in one that is named itself, or one that imports it does.

    ``above`` are the functions that are asked for already.
    """
    word = function.name.value
    names = (name for name in model.names_by_word.get(word, ()) if name is not function.name)
    homes = {outermost_function(model, name) for name in names} - {function, *above}
    return (
        None in homes
        or (model.project is not None and bool(model.project.importers(model.path, word)))
        or any(home is not None and is_named(model, home, (function, *above)) for home in homes)
    )
