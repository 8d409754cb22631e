"""Calls that cannot be looked into, and may put a module to another mode."""

import libcst as cst

from mllint.semantic.events.kinds import is_named_switch
from mllint.semantic.events.makers import is_accelerator
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Frame, Thing
from mllint.syntax.shape import called_on, constant, last_word
from mllint.syntax.walk import names_in


def may_switch_unseen(event: Event, module: Thing | None) -> bool:
    """Whether an event is a call out of sight that is given a module, or holds it, and may switch its mode."""
    if event.kind is not Kind.UNKNOWN or not event.concerns(module):
        return False
    receiver = called_on(event.node)
    is_of_accelerator = receiver is not None and is_accelerator(event.frame.thing(receiver))
    return not (is_of_accelerator or _is_call_of(event, module))


def _is_call_of(event: Event, module: Thing | None) -> bool:
    """Whether what cannot be looked into is just a call of the module, or of a part of it."""
    call = event.node
    if not isinstance(call, cst.Call) or is_named_switch(call):
        return False  # `network.adapters_train()`
    called = _own_part(event.frame, call) or event.frame.thing(call.func)
    return called is not None and module is not None and called.may_be(module)


def _own_part(frame: Frame, call: cst.Call) -> Thing | None:
    """The module of which one of its own methods calls a part by a name that is put together, and gives it something:
    ``getattr(self, name)(inputs)``. A switch would be given nothing, or a mode.
    """
    owner, maker = None if frame.function is None else frame.function.owner, call.func
    if owner is None or owner.framework is None or not call.args or not isinstance(maker, cst.Call):
        return None
    if last_word(maker.func) != "getattr" or not maker.args or getattr(maker.args[0].value, "value", None) != "self":
        return None
    is_mode = len(call.args) == 1 and (constant(call.args[0].value) is not ... or "train" in names_in(call.args[0]))
    return None if is_mode else frame.thing(maker.args[0].value)
