"""Lists to which a loop appends a loss and calls ``backward()`` on their last item: ``losses[-1].backward()``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.mentions import method_calls
from mllint.syntax.shape import called_on, constant, dotted_path, subscript_index, targets_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CHANGES = frozenset({"append", "extend", "insert", "pop", "clear", "remove", "sort", "reverse"})
_LOOPS = (cst.For, cst.While, cst.FunctionDef)


def spent_last(model: "Model", append: cst.CSTNode, key: str, loop: cst.CSTNode) -> cst.Call | None:
    """The ``backward()`` of the last item of a list, which behind an ``append`` in the same round is what was added."""
    if not isinstance(append, cst.Call):
        return None
    found = [
        call
        for call in model.backward.calls_in(loop)
        if _is_of_last(call, key) and model.tree.nearest(call, *_LOOPS) is loop
    ]
    if len(found) != 1 or _is_changed_besides(model, append, key, loop):
        return None
    calls = model.tree.by_type[cst.Call]
    places = [next(index for index, call in enumerate(calls) if call is node) for node in (append, found[0])]
    return found[0] if places[0] < places[1] else None


def _is_of_last(call: cst.Call, key: str) -> bool:
    """Whether a call is ``key[-1].backward()``."""
    item = called_on(call)
    if not isinstance(item, cst.Subscript) or dotted_path(item.value) != key:
        return False
    index = subscript_index(item)
    return index is not None and constant(index) == -1


def _is_changed_besides(model: "Model", append: cst.Call, key: str, loop: cst.CSTNode) -> bool:
    """Whether the loop does anything else to the list, or appends only under a condition."""
    if model.tree.nearest(append, *_LOOPS) is not loop or any(
        isinstance(item, (cst.If, cst.Try, cst.With))
        for item in model.tree.ancestors(append)
        if model.tree.is_inside(item, loop)
    ):
        return True
    changes = method_calls(model, key, _CHANGES)
    if any(call is not append and model.tree.is_inside(call, loop) for call in changes):
        return True
    for assign in (*model.tree.by_type.get(cst.Assign, ()), *model.tree.by_type.get(cst.AugAssign, ())):
        held = [target.value if isinstance(target, cst.Subscript) else target for target in targets_of(assign)]
        if any(dotted_path(node) == key for node in held) and model.tree.is_inside(assign, loop):
            return True
    return False
