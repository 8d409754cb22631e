"""Loops that come about more than once in a run, and train in some of these turns only."""

from mllint.semantic.events.steps import Kind, Loop, events
from mllint.semantic.training.runs import LoopRun

_TRAINING = frozenset({Kind.BACKWARD, Kind.STEP, Kind.MINIMIZE})


def is_without_training(found: LoopRun) -> bool:
    """Whether a loop trains in another turn of the run, and not in this one.

    ``run_epoch(batches)`` beside ``run_epoch(batches, optimizer)``: a function that is given no optimizer evaluates.
    """
    others = (loop for loop in found.run.loops if loop.node is found.loop.node and loop is not found.loop)
    return not _trains(found.loop) and any(map(_trains, others))


def _trains(loop: Loop) -> bool:
    return any(event.kind in _TRAINING for event in events(loop.body))
