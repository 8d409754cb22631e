"""Modules that are left in training mode where others, which are trained with them, are put to evaluation mode."""

from mllint.semantic.events.steps import Event
from mllint.semantic.events.things import Thing
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import EVAL, TRAINED, is_one, is_trained, mode_matters, modes_before


def are_left_in_training(run: Run, left: list[Event], asking: list[Event]) -> bool:
    """Whether forward passes that run in training mode are all to which the mode makes a difference.

    Where a loop is trained for several modules, and the others are put to evaluation mode, those count that are surely
    not: one was forgotten.
    """
    others = [forward for forward in asking if forward not in left]
    return bool(left) and (not others or all(_is_forgotten_beside(run, forward, others) for forward in left))


def _is_forgotten_beside(run: Run, forward: Event, others: list[Event]) -> bool:
    """Whether a module is left in the mode of its training where others, which are trained with it, are switched."""
    module = forward.thing
    return (
        module is not None
        and TRAINED in modes_before(run, module, forward)
        and mode_matters(forward, run) is True
        and all(_is_switched_beside(run, item, module) for item in others)
    )


def _is_switched_beside(run: Run, other: Event, module: Thing) -> bool:
    """Whether another module is trained, too, and is in evaluation mode."""
    switched = other.thing
    if switched is None or is_one(switched, module) or not is_trained(run, switched):
        return False
    return modes_before(run, switched, other) == {EVAL}
