"""What becomes of the output of a forward pass: whether anybody could want its graph."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.owners import run_of
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.training.training_modes import is_one
from mllint.syntax.walk import Tree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CUTTING = frozenset({"detach", "item", "tolist"})
_WITHOUT_GRAPH = frozenset({"data", "argmax", "argmin", "argsort", "shape", "size", "ndim", "dtype", "device"})
_MAX_STEPS = 3


def are_detached(forwards: tuple[Event, ...]) -> bool:
    """Whether the code takes what some forward passes give off its graph, wherever it reads it.

    What one of them gives to another is as good as that one's output.
    """
    found = [_is_output_cut(forward, forwards) for forward in forwards]
    return True in found and False not in found


def _is_output_cut(forward: Event, forwards: tuple[Event, ...]) -> bool | None:
    if not isinstance(forward.node, cst.Call):
        return False
    calls = {id(item.node) for item in forwards if item.frame is forward.frame}
    return _is_cut(forward.frame.model, forward.node, calls, _MAX_STEPS)


def _is_cut(model: "Model", node: cst.CSTNode, calls: set[int], steps: int) -> bool | None:
    """Whether a value is detached where it is read; ``None``: nothing is read of it that has a graph."""
    end, word = _end_of(model.tree, node)
    if word is not None:
        return True if word in _CUTTING else None
    holder = model.tree.parent(end)
    if isinstance(holder, cst.Arg) and id(model.tree.parent(holder)) in calls:
        return None
    if steps == 0 or not isinstance(holder, cst.Assign) or holder.value is not end:
        return False
    found = [_is_binding_cut(model, item, calls, steps) for item in bound_by(model, holder)]
    if not found or False in found:
        return False
    return True if True in found else None


def _is_binding_cut(model: "Model", binding: Binding, calls: set[int], steps: int) -> bool | None:
    if binding.kind is not BindingKind.ASSIGN or "." in binding.key:
        return False
    found = [_is_cut(model, node, calls, steps - 1) for node in uses(model, binding)]
    if False in found:
        return False
    return True if True in found else None


def _end_of(tree: Tree, node: cst.CSTNode) -> tuple[cst.CSTNode, str | None]:
    """What a chain of methods and indices on a value comes to, and the word in it that leaves the graph behind."""
    while True:
        parent = tree.parent(node)
        if isinstance(parent, cst.Attribute) and parent.value is node:
            word = parent.attr.value
            if word in _CUTTING or word in _WITHOUT_GRAPH:
                return parent, word
            node = parent
        elif (isinstance(parent, cst.Call) and parent.func is node) or (
            isinstance(parent, cst.Subscript) and parent.value is node
        ):
            node = parent
        else:
            return node, None


def is_held_by_another(inside: Iterable[Event], forwards: tuple[Event, ...]) -> bool:
    """Whether something unknown in a loop was made with a model, and may want gradients: ``Saliency(network)``."""
    for event in inside:
        call = event.node if event.kind is Kind.UNKNOWN else None
        holder = call.func.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) else None
        thing = None if holder is None else event.frame.thing(holder)
        for root in () if thing is None else thing.roots:
            made = root.value if isinstance(root, Binding) else None
            if isinstance(root, Binding) and isinstance(made, cst.Call):
                home = run_of(event.frame, root)
                given = [home.thing(arg.value) for arg in made.args]
                if any(is_one(item, forward.thing) for item in given for forward in forwards):
                    return True
    return False
