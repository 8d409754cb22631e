"""Calls that cannot be looked into, and may put a module to another mode."""

import libcst as cst

from mllint.semantic.events.kinds import is_named_switch
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.flow import names_of_makers
from mllint.syntax.shape import called_on


def may_switch_unseen(event: Event, module: Thing | None) -> bool:
    """Whether an event is a call out of sight that is given a module, or holds it, and may switch its mode."""
    if event.kind is not Kind.UNKNOWN or not event.concerns(module):
        return False
    return not (_is_call_of(event, module) or _is_of_accelerator(event))


def _is_call_of(event: Event, module: Thing | None) -> bool:
    """Whether what cannot be looked into is just a call of the module, or of a part of it."""
    call = event.node
    if not isinstance(call, cst.Call) or is_named_switch(call):
        return False  # `network.adapters_train()`
    called = event.frame.thing(call.func)
    return called is not None and module is not None and called.may_be(module)


def _is_of_accelerator(event: Event) -> bool:
    """Whether a method of accelerate's ``Accelerator`` is called: it wraps modules, moves, saves and clips them, and
    leaves their modes alone.

    Source: https://github.com/huggingface/accelerate/blob/v1.10.1/src/accelerate/accelerator.py
    """
    receiver = called_on(event.node)
    makers = [] if receiver is None else names_of_makers(event.frame, receiver)
    return bool(makers) and all(name in _ACCELERATORS for name in makers)


_ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
