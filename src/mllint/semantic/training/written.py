"""How the module of a forward pass is written in a function that leads to it."""

import libcst as cst

from mllint.semantic.events.steps import Event, Helper
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.values import Instance
from mllint.syntax.shape import dotted_path


def written_module(forward: Event, frame: Frame) -> str | None:
    """The module of ``net(x)``, of ``net.forward(x)``, and of ``net.encode(x)``, if that is what a run calls."""
    if forward.frame is frame:
        called = dotted_path(getattr(forward.node, "func", forward.node))
        return None if called is None else called.removesuffix(".forward")
    for step in (around.step for around in forward.around):
        if isinstance(step, Helper) and step.frame.caller is frame and isinstance(step.node.func, cst.Attribute):
            return _written_of_object(frame, step.node.func.value, forward)
    return None


def _written_of_object(frame: Frame, node: cst.BaseExpression, forward: Event) -> str | None:
    """The module that a method of an object calls: the object itself, or of one that is none what it keeps."""
    holder, path = frame.thing(node), dotted_path(node)
    if holder is None or path is None or not _holds(holder, forward) or forward.thing is None:
        return None
    kept = forward.thing.path[len(holder.path) :]
    if not isinstance(frame.value(node), Instance):
        return path
    return path + "".join(kept) if kept and all(part.startswith(".") for part in kept) else None


def _holds(holder: Thing, forward: Event) -> bool:
    """Whether what a forward pass calls is a thing, or a part of it."""
    part = forward.thing
    return part is not None and holder.roots == part.roots and part.path[: len(holder.path)] == holder.path
