"""Files that only the running program can have written: in a folder of its own, in its memory, or just now."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.saved_objects import parts_of_path, saves_to_same
from mllint.semantic.checkpoints.tracing import path_given
from mllint.semantic.names.conditions import conditions, is_above, is_in_another_branch, leaves
from mllint.semantic.values import Tensor
from mllint.syntax.shape import called_on, dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_IN_MEMORY = "io.BytesIO"
_BYTES = frozenset({"numpy", "tobytes"})
_THERE = frozenset({"exists", "isfile", "is_file", "lexists"})
_NOT_THERE = frozenset({"FileNotFoundError", "OSError", "IOError"})


def is_own_file(model: "Model", load: cst.Call) -> bool:
    """Whether a call reads what the same code has written where no other program writes, or where it does so itself
    unless the file is there.

    ``with TemporaryDirectory() as folder:``, ``NamedTemporaryFile()``, ``buffer = io.BytesIO()``; the bytes of a
    tensor; what the lines above in the same function save; a cache.
    """
    given = path_given(FromFile(Place(model, load)))
    parts = [] if given is None else list(parts_of_path(model, given))
    if any(isinstance(part, cst.Call) and _is_of_tensor(model, part) for part in parts):
        return True
    saves = [place.node for place in saves_to_same(model, load) if place.model is model]
    if saves and any(isinstance(part, cst.Call) and _makes_own_place(model, part) for part in parts):
        return True
    return any(_is_written_above(model, save, load) or _is_cache(model, save, load) for save in saves)


def _makes_own_place(model: "Model", call: cst.Call) -> bool:
    name = model.qualified_name(call.func) or ""
    return name.startswith("tempfile.") or (name == _IN_MEMORY and not call.args)


def _is_of_tensor(model: "Model", call: cst.Call) -> bool:
    """Whether a file in memory is made of the bytes of a tensor, as what other processes of a program send are."""
    given = call.args[0].value if len(call.args) == 1 and model.qualified_name(call.func) == _IN_MEMORY else None
    while isinstance(given, cst.Call) and last_word(given.func) in _BYTES:
        given = called_on(given)
        if given is not None and isinstance(model.value(given), Tensor):
            return True
    return False


def _is_written_above(model: "Model", save: cst.CSTNode, load: cst.Call) -> bool:
    """Whether the lines above in the same function save, and no ``if`` decides which of the two is done."""
    function = model.enclosing_function(load)
    if model.enclosing_function(save) is not function or is_in_another_branch(model, save, load):
        return False
    return is_above(model.scope_of(load), save, load)


def _is_cache(model: "Model", save: cst.CSTNode, load: cst.Call) -> bool:
    """Whether something is computed and saved where a file is not there, and read where it is."""
    if model.enclosing_function(save) is not model.enclosing_function(load):
        return False
    if any(_asks_whether_there(test) for test in conditions(model, load)):
        return is_in_another_branch(model, save, load) or _is_given_back_at_once(model, save, load)
    tries = (item for item in model.tree.ancestors(load) if isinstance(item, cst.Try))
    tried = [item for item in tries if model.tree.is_inside(load, item.body)]
    handlers = (handler for item in tried for handler in item.handlers if _catches_missing(handler))
    return any(model.tree.is_inside(save, handler) for handler in handlers)


def _is_given_back_at_once(model: "Model", save: cst.CSTNode, load: cst.Call) -> bool:
    """Whether a function is left where a file is read, and what it saves stands behind that."""
    inside = (item for item in model.tree.ancestors(load) if isinstance(item, cst.If))
    return any(leaves(item.body) and not model.tree.is_inside(save, item) for item in inside)


def _asks_whether_there(test: cst.BaseExpression) -> bool:
    return any(isinstance(part, cst.Call) and last_word(part.func) in _THERE for part in subtree(test))


def _catches_missing(handler: cst.ExceptHandler) -> bool:
    return handler.type is not None and dotted_path(handler.type) in _NOT_THERE
