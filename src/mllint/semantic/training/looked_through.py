"""Backward passes of which nothing is learned: somebody looks at the gradients of an input, once in a call."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.uses import attributes

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_GRADIENT = "grad"
_STEPS = ("step", "minimize")


def only_looks(model: "Model", backward: cst.Call) -> bool:
    """Whether a function walks its graph in no loop, reads gradients afterwards, and takes no step, nor do its callers.

    What it keeps is gone when it returns: ``score.backward(); return image.grad``.
    """
    function = model.enclosing_function(backward)
    if function is None or next(model.tree.loops_around(backward), None) is not None:
        return False
    reads = (node for node in attributes(model, _GRADIENT) if model.tree.is_inside(node, function))
    if not any(reads):
        return False
    steps = [step for word in _STEPS for step in model.calls_by_word.get(word, ())]
    bodies = [function, *filter(None, map(model.enclosing_function, model.calls_by_word.get(function.name.value, ())))]
    return not any(model.tree.is_inside(step, body) for step in steps for body in bodies)
