"""What takes part in an event besides its thing: the scaler of a step, the losses, what a call is given."""

from collections.abc import Iterator, Sequence

import libcst as cst

from mllint.semantic.events.kinds import kind_of
from mllint.semantic.events.steps import Event
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.values import Value
from mllint.syntax.shape import called_on


def goes_through_scaler(event: Event) -> bool:
    """Whether a step is one of ``scaler.step(optimizer)`` or ``scaler.minimize(optimizer, loss)``."""
    receiver = called_on(event.node)
    called = None if receiver is None else kind_of(event.frame, receiver)
    return called is not None and called.kind == "scaler"


def is_given_scaler(event: Event) -> bool:
    """Whether a call is given a scaler, or several arguments at once: what they are cannot be told."""
    args = event.node.args if isinstance(event.node, cst.Call) else ()
    kinds = (kind_of(event.frame, arg.value) for arg in args if not arg.star)
    return any(arg.star for arg in args) or any(called is not None and called.kind == "scaler" for called in kinds)


def is_given_optimizer(event: Event) -> bool:
    """Whether a call that cannot be looked into is given an optimizer or a scaler, or is a method of one."""
    call = event.node
    parts = [arg.value for arg in call.args] if isinstance(call, cst.Call) else []
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        parts.append(call.func.value)
    kinds = [called.kind for called in (kind_of(event.frame, part) for part in parts) if called is not None]
    return any(kind in ("optimizer", "scaler") for kind in kinds)


def is_given(event: Event, things: Sequence[Thing | None]) -> bool:
    """Whether a call that cannot be looked into is given one of some things."""
    given = [arg.value for arg in event.node.args] if isinstance(event.node, cst.Call) else []
    return any(event.frame.thing(node) in things for node in given if isinstance(node, (cst.Name, cst.Attribute)))


def losses_of(backward: Event) -> list[Thing]:
    """What the loss of a ``backward()`` is put together from: ``a`` and ``b`` of ``(a + b.mean()).backward()``."""
    receiver = called_on(backward.node)
    pending = [] if receiver is None else [receiver]
    found: list[Thing] = []
    while pending:
        node = pending.pop()
        match node:
            case cst.Name() | cst.Attribute():
                thing = backward.frame.thing(node)
                found += [] if thing is None else [thing]
            case cst.Call(func=cst.Attribute(value=inner)):
                pending.append(inner)
            case cst.BinaryOperation(left=left, right=right):
                pending += (left, right)
    return found


def value_called_on(event: Event) -> Value | None:
    """The value of what a method is called on; ``None`` where it is not known, or no method is called."""
    receiver = called_on(event.node)
    return None if receiver is None else event.frame.value(receiver)


def places_of(frame: Frame, node: cst.CSTNode) -> Iterator[tuple[Frame, cst.CSTNode]]:
    """Where a node of a run comes about: there, and in each of the runs that led to it, as the call that did."""
    place: cst.CSTNode | None = node
    for run in frame.led_by():
        if place is None:
            return
        yield run, place
        place = run.call
