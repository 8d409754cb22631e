"""Files that are read before they are written: a loop over old files puts each in another form."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import path_given
from mllint.semantic.names.conditions import MAYBE
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_rewritten(content: FromFile, saved: Saved) -> bool:
    """Whether each round of a loop reads a file of its own, and then saves to it: what it read was there before."""
    model, read, given = content.place.model, content.place.node, path_given(content)
    write = _in_function_of(model, read, saved)
    if given is None or write is None or saved.place.node is read:
        return False
    loop = next((item for item in model.tree.loops_around(read) if model.tree.is_inside(write, item)), None)
    if not isinstance(loop, cst.For) or not _is_of_round(model, given, loop) or not _comes_first(model, read, loop):
        return False
    return next(item for item in subtree(loop.body) if item is read or item is write) is read


def _in_function_of(model: "Model", read: cst.CSTNode, saved: Saved) -> cst.CSTNode | None:
    """The call that saves, or through which that is reached, in the function in which a file is read."""
    places = [(saved.place.model, saved.place.node)]
    route = None if saved.tracer is None else saved.tracer.route
    while route is not None:
        places.append((route.caller.model, route.call))
        route = route.caller.route
    function = model.enclosing_function(read)
    return next((node for home, node in places if home is model and home.enclosing_function(node) is function), None)


def _is_of_round(model: "Model", path: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether a path has the variable of a loop in it."""
    names = [item for item in subtree(path) if isinstance(item, cst.Name)]
    return any(binding.node is loop for name in names for binding in model.reaching(name))


def _comes_first(model: "Model", read: cst.CSTNode, loop: cst.For) -> bool:
    """Whether each round of a loop reads, whatever it finds."""
    for ancestor in model.tree.ancestors(read):
        if ancestor is loop:
            return True
        if type(ancestor) in MAYBE:
            return False
    return False
