"""Files that are read and written again in another form: read before they are written, by a loop over old files, or
exported, which says nothing of the files that an export is made of.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import path_given
from mllint.semantic.names.conditions import MAYBE
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by
from mllint.semantic.values import Loaded
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


_MAX_STEPS = 4
"""Through how many names what is saved is followed back."""


def is_converted(saved: Saved) -> bool:
    """Whether a function saves parts of what it has read itself, whichever way it went.

    A training that goes on, ``best = ckpt["best"] if resume else 0``, has them from elsewhere, too.
    """
    return _saves_what_it_read(saved.place.model, saved.place.node)


@worked_out_once
def _saves_what_it_read(model: "Model", call: cst.CSTNode) -> bool:
    function = model.enclosing_function(call)
    read: set[Binding] = set()
    for load in model.calls_by_word.get("load", ()):
        statement = model.tree.parent(load)
        is_beside = isinstance(statement, cst.Assign) and model.enclosing_function(load) is function
        if is_beside and statement is not None and isinstance(model.value(load), Loaded):
            read.update(bound_by(model, statement))
    return bool(read) and isinstance(call, cst.Call) and any(_is_made_of(model, arg.value, read) for arg in call.args)


def _is_made_of(model: "Model", node: cst.CSTNode, read: set[Binding], steps: int = _MAX_STEPS) -> bool:
    """Whether something in an expression surely is, or was made of, what was read."""
    for name in subtree(node) if steps else ():
        bindings = model.reaching(name) if isinstance(name, cst.Name) else ()
        if bindings and all(
            binding in read
            or (
                binding.kind is BindingKind.ASSIGN
                and binding.value is not None
                and _is_made_of(model, binding.value, read, steps - 1)
            )
            for binding in bindings
        ):
            return True
    return False
