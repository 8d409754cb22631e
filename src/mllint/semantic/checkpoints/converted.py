"""Saves of what was read from another file, in another form: an export says nothing of the files that it is made of."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by
from mllint.semantic.values import Loaded
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 4
"""Through how many names what is saved is followed back."""


def is_converted(saved: Saved) -> bool:
    """Whether a function saves parts of what it has read itself, whichever way it went.

    A training that goes on, ``best = ckpt["best"] if resume else 0``, has them from elsewhere, too.
    """
    model, call = saved.place.model, saved.place.node
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
