"""The order of a training as it is written in one body: answers that need no run to be unfolded, for the usual case.

Most trainings are right, and written in one place. What can be seen there is seen before anything is followed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CLEARING = ("zero_grad", "clear_grad", "clear_gradients")
_UPDATING = ("backward", "step", "minimize")


def clears_beside(model: "Model", step: cst.Call) -> bool:
    """Whether the gradients of the optimizer of a step are cleared in the same round of the same body."""
    names = {dotted_path(step.func.value)} if isinstance(step.func, cst.Attribute) else set()
    names |= {dotted_path(arg.value) for arg in step.args}  # `scaler.step(optimizer)`
    home = _round_of(model, step)
    return any(
        isinstance(call.func, cst.Attribute)
        and dotted_path(call.func.value) in names - {None}
        and (home is _round_of(model, call) or any(item is home for item in model.tree.ancestors(call)))
        and not _stand_in_two_arms(model, step, call)
        for word in _CLEARING
        for call in _calls_beside(model, step, word)
    )


def _calls_beside(model: "Model", node: cst.CSTNode, word: str) -> Iterator[cst.Call]:
    """The calls of what has this name in the function around a node: of a large file a small part."""
    for name in model.names_within(word, model.scope_of(node)):
        parent = model.tree.parent(name)
        callee = parent if isinstance(parent, cst.Attribute) and parent.attr is name else name
        call = model.tree.parent(callee)
        if isinstance(call, cst.Call) and call.func is callee:
            yield call


def _stand_in_two_arms(model: "Model", one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether two nodes stand in two arms of one ``if``: no round that takes the one need come by the other."""
    ways = [(node, *model.tree.ancestors(node)) for node in (one, other)]
    places = {id(item): position for position, item in enumerate(ways[1])}
    for position, item in enumerate(ways[0]):
        if id(item) in places:
            return isinstance(item, cst.If) and ways[0][position - 1] is not ways[1][places[id(item)] - 1]
    return False


def _round_of(model: "Model", node: cst.CSTNode) -> cst.CSTNode | None:
    """The innermost loop or body around a node."""
    kinds = (cst.For, cst.While, cst.FunctionDef)
    return next((item for item in model.tree.ancestors(node) if isinstance(item, kinds)), None)


def word_before(model: "Model", call: cst.CSTNode) -> str | None:
    """What is called last before a call in the same block: ``backward``, ``step`` or ``minimize``; ``None``: none."""
    return _nearest(model, call, ahead=False)


def word_behind(model: "Model", call: cst.CSTNode) -> str | None:
    """What is called first behind a call in the same block: ``backward``, ``step`` or ``minimize``; ``None``: none."""
    return _nearest(model, call, ahead=True)


def _nearest(model: "Model", call: cst.CSTNode, *, ahead: bool) -> str | None:
    line = next((item for item in model.tree.ancestors(call) if isinstance(item, cst.SimpleStatementLine)), None)
    block = None if line is None else model.tree.parent(line)
    if line is None or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    lines = {id(item): position for position, item in enumerate(block.body)}
    home, found = lines[id(line)], []
    for word in _UPDATING:
        for other in _calls_beside(model, call, word):
            position = next((lines[id(item)] for item in model.tree.ancestors(other) if id(item) in lines), None)
            if position is not None and (position > home if ahead else position < home):
                found.append((abs(position - home), word))
    return min(found)[1] if found else None
