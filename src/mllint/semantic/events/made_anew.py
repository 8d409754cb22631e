"""Things that every round of a loop makes anew: what happened to them in an earlier round is gone."""

import libcst as cst

from mllint.semantic.events.steps import Event, Helper, Loop
from mllint.semantic.events.things import Thing
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.syntax.shape import fingerprint


def is_made_in(loop: Loop, event: Event, thing: Thing) -> bool:
    """Whether every round makes the thing of an event anew, in the loop or in a function that is called there."""
    called = [around.step.frame.function for around in event.within(loop) if isinstance(around.step, Helper)]
    inside = [loop.node, *(function.node for function in called if function is not None)]
    return any(
        root.scope.model.tree.is_below(root.node, holder)
        for root in thing.roots
        if isinstance(root, Binding) and root.kind is not BindingKind.PARAMETER
        for holder in inside
    )


def makes_anew(loop: Loop, thing: Thing) -> bool:
    """Whether every round of a loop binds a thing to something new in its own body."""
    return bool(thing.roots) and all(
        isinstance(root, Binding)
        and root.kind is BindingKind.ASSIGN
        and root.scope.model is loop.frame.model
        and root.scope.model.tree.is_below(root.node, loop.node)
        for root in thing.roots
    )


def picks_another(loop: Loop, thing: Thing) -> bool:
    """Whether every round of a loop takes another element of a collection: ``nets[i]`` in ``for i in range(n)``."""
    target = loop.node.target if isinstance(loop.node, cst.For) else None
    names = [target, *(item.value for item in target.elements)] if isinstance(target, cst.Tuple) else [target]
    return any(f"[{fingerprint(name)}]" in thing.path for name in names if isinstance(name, cst.Name))
