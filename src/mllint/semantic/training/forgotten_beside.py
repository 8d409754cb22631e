"""Modules that are left in training mode where others, which are trained with them, are put to evaluation mode."""

from collections.abc import Iterable

from mllint.semantic.events.steps import Event
from mllint.semantic.events.things import Thing
from mllint.semantic.training.called_modules import is_loss, is_out_of_sight
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import (
    EVAL,
    TRAINED,
    is_one,
    is_trained,
    mode_matters,
    modes_before,
)


def are_left_in_training(run: Run, left: list[Event], asking: list[Event]) -> bool:
    """Whether forward passes that run in training mode are all to which the mode makes a difference.

    Where a loop is trained for several modules, and the others are put to evaluation mode, those count that are surely
    not: one was forgotten.
    """
    others = [forward for forward in asking if forward not in left]
    return bool(left) and (not others or all(_is_forgotten_beside(run, forward, others) for forward in left))


def is_one_switched(run: Run, forwards: Iterable[Event]) -> bool:
    """Whether a module of a class out of sight is trained in a run, and in evaluation mode.

    Who switches it takes the mode to matter, for those that are trained with it, too.
    """
    return any(
        forward.thing is not None
        and is_out_of_sight(forward)
        and modes_before(run, forward.thing, forward) == {EVAL}
        and is_trained(run, forward.thing)
        for forward in forwards
    )


def _is_forgotten_beside(run: Run, forward: Event, others: list[Event]) -> bool:
    """Whether a module is left in the mode of its training where others, which are trained with it, are switched."""
    module = forward.thing
    if module is None or TRAINED not in modes_before(run, module, forward):
        return False
    matters = mode_matters(forward, run)
    if matters is None:
        matters = is_out_of_sight(forward) and not is_loss(forward)
    return matters and all(_is_switched_beside(run, item, module) for item in others)


def _is_switched_beside(run: Run, other: Event, module: Thing) -> bool:
    """Whether another module is trained, too, and is in evaluation mode."""
    switched = other.thing
    if switched is None or is_one(switched, module) or not is_trained(run, switched):
        return False
    return modes_before(run, switched, other) == {EVAL}
