"""Modules that get their weights from a file in a run."""

import libcst as cst

from mllint.semantic.checkpoints.read_from_file import is_read_from_file
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import covers


def load_before(run: Run, forward: Event) -> Event | None:
    """The first event before a forward pass that loads weights from a file into its module, or what holds it."""
    module, earlier = forward.thing, run.events[: run.events.index(forward)]
    loads = (item for item in earlier if item.thing is not None and is_from_file(item))
    return next((item for item in loads if module and item.thing and covers(item.thing, module)), None)


def is_from_file(load: Event) -> bool:
    """Whether an event loads what was read from a file."""
    call = load.node
    given = call.args[0].value if load.kind is Kind.LOAD and isinstance(call, cst.Call) and call.args else None
    return given is not None and is_read_from_file(load.frame, given)
