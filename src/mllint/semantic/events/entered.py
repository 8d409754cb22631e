"""The run of a function of the project that a call begins, and the object whose method it is."""

import libcst as cst

from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.values import Function, Instance, Module
from mllint.syntax.shape import last_word


def entered(frame: Frame, call: cst.Call, called: Function) -> Frame:
    """The run of what a call in a run calls."""
    return Frame(called.definition.model, called.definition, frame, call, receiver_of(frame, call, called))


def receiver_of(frame: Frame, call: cst.Call, called: Function) -> Thing | None:
    """The object whose method a call in a run calls, or that it makes."""
    if isinstance(called.receiver, (Module, Instance)) and frame.value(call.func) == called.receiver:
        return frame.thing(call.func)  # the object itself is called
    if called.definition.name == "__init__" and last_word(call.func) != "__init__":
        return frame.made_by(call)
    if called.receiver is None or not isinstance(call.func, cst.Attribute):
        return None
    if isinstance(call.func.value, cst.Call):  # `super().method()`
        return frame.receiver
    return frame.thing(call.func.value)
