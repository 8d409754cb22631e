"""Modules that nobody moves: what stays behind when such a module moves is no loss."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.imports import imported_files
from mllint.semantic.names.remembered import worked_out_once

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_MAX_IMPORTERS = 8


def is_never_moved(definition: "ClassInfo") -> bool:
    """Whether a class is made in its own file, and neither that nor another one that has it, or what holds one, nor
    what these import, says a word of devices or types of numbers.
    """
    model = definition.model
    if model.project is None or definition.name not in model.calls_by_word or not _says_nothing_of_moves(model):
        return False
    words = _with_what_holds_it(model, definition.name)
    importers = list(dict.fromkeys(path for word in words for path in model.project.importers(model.path, word)))
    others = [model.neighbour(path) for path in importers[:_MAX_IMPORTERS]]
    is_all = len(importers) <= _MAX_IMPORTERS
    return is_all and all(other is not None and _says_nothing_of_moves(other) for other in others)


def _with_what_holds_it(model: "Model", name: str) -> list[str]:
    """A class, and the other classes and functions of its file that name it, or one that does: who has one of these
    may have an object of it.
    """
    found = [name]
    for word in found:  # which grows
        for node in model.names_by_word.get(word, ()):
            around = [item for item in model.tree.ancestors(node) if isinstance(item, (cst.ClassDef, cst.FunctionDef))]
            if around and around[-1].name.value not in found:
                found.append(around[-1].name.value)
    return found


@worked_out_once
def _says_nothing_of_moves(model: "Model") -> bool:
    project = model.project
    files = () if project is None else (model.path, *imported_files(model, project))
    return project is not None and not any(project.moves_modules(path, model.path) for path in files)
