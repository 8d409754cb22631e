"""Evaluations behind which a function puts the module back to training mode, though nothing has put it out of it."""

from mllint.semantic.events.steps import UPDATES, Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import FRESH, SWITCHES, TRAIN, TRAINED, is_one, modes_before

_TRAINING = UPDATES | {Kind.BACKWARD, Kind.UPDATE}


def is_put_back(run: Run, forward: Event) -> bool:
    """Whether a module is put back to training mode behind a forward pass, and its `eval()` before it is missing.

    The switch comes last: what calls the module, or trains, behind it in the same function is what it may be for. Who
    switches what holds the module, and that itself, need not mean it: ``self.train()`` behind a pass of one part.
    """
    module = forward.thing
    if module is None or run.is_cut:
        return False
    modes = modes_before(run, module, forward)
    if not modes <= {FRESH, TRAIN, TRAINED} or modes == {TRAIN}:
        return False
    own = [event for event in run.events if event.frame is forward.frame]
    place = own.index(forward)
    before = [event for event in own[:place] if _switches(event, module)]
    back = next((event for event in own[place + 1 :] if _switches(event, module)), None)
    if back is None or any(event.kind is not Kind.TRAIN for event in (*before, back)):
        return False
    if not _is_reached_from(back, forward) or back.thing is None or len(back.thing.path) != len(module.path):
        return False
    return not any(event.kind in _TRAINING or _is_given(event, module) for event in _behind(run, back))


def _switches(event: Event, module: Thing) -> bool:
    return event.kind in SWITCHES and (event.thing is None or is_one(event.thing, module))


def _is_given(event: Event, module: Thing) -> bool:
    """Whether a module is called, or given to something that is not known: ``trainer.fit(model)``."""
    if event.kind is Kind.UNKNOWN:
        return any(is_one(item, module) for item in event.touched)
    return event.kind is Kind.FORWARD and is_one(event.thing, module)


def _is_reached_from(switch: Event, forward: Event) -> bool:
    """Whether each way from a forward pass comes by a switch: it stands in no branch or loop of its own."""
    ways = {(id(around.step), around.arm) for around in forward.around}
    return all((id(around.step), around.arm) in ways for around in switch.around)


def _behind(run: Run, switch: Event) -> list[Event]:
    """What happens in the function behind a switch, until it is left or the round of the loop around it is over."""
    later = run.events[run.events.index(switch) + 1 :]
    loop = switch.loops[-1] if switch.loops else None
    return [
        event
        for event in later
        if any(frame is switch.frame for frame in event.frame.led_by()) and (loop is None or loop in event.loops)
    ]
