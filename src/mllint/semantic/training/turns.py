"""Loops that come about more than once in a run, and train in some of these turns only; what comes behind all training,
or again and again with the same input.
"""

import libcst as cst

from mllint.semantic.events.steps import UPDATES, Event, Kind, Loop, events
from mllint.semantic.training.handed_on import as_given
from mllint.semantic.training.runs import LoopRun, Run
from mllint.syntax.walk import names_in, subtree

_TRAINING = UPDATES | {Kind.BACKWARD}
_BINDING = frozenset({cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor})


def is_without_training(found: LoopRun) -> bool:
    """Whether a loop trains in another turn of the run, and not in this one.

    ``run_epoch(batches)`` beside ``run_epoch(batches, optimizer)``: a function that is given no optimizer evaluates.
    """
    others = (loop for loop in found.run.loops if loop.node is found.loop.node and loop is not found.loop)
    return not _trains(found.loop) and any(map(_trains, others))


def is_behind_training(run: Run, event: Event) -> bool:
    """Whether an event comes when all the training of its run is over, and not in a round of it.

    Where several optimizers step, networks play against each other: what they make is only looked at. No samples are
    meant that are drawn with dropout.
    """
    if steps_several(run) or any(map(_trains, event.loops)) or is_sampled(event):
        return False
    place = run.events.index(event)
    trains = [item.kind in _TRAINING for item in run.events]
    return any(trains[:place]) and not any(trains[place:])


def steps_several(run: Run) -> bool:
    """Whether several optimizers step in a run."""
    return len({event.thing for event in run.events if event.kind in UPDATES}) > 1


def is_sampled(forward: Event) -> bool:
    """Whether the same input is given in every round of a loop: dropout is left on to draw samples."""
    args = forward.node.args if isinstance(forward.node, cst.Call) else ()
    for loop in forward.loops:
        if isinstance(loop.node, cst.While):
            continue
        bound = (getattr(item, "target", None) for item in subtree(loop.node) if type(item) in _BINDING)
        changing = set[str]().union(*(names_in(target) for target in bound if target is not None))
        given = (part for arg in args for part in as_given(forward.frame, arg.value, loop.frame))
        if not any(changing & names_in(part) for part in given):
            return True
    return False


def _trains(loop: Loop) -> bool:
    return any(event.kind in _TRAINING for event in events(loop.body))
