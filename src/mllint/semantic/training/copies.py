"""Copies of a module, ``copy.deepcopy(net)``: they have the mode that it has where they are made."""

from collections.abc import Iterator

import libcst as cst

from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.places import as_itself
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.training.runs import Run
from mllint.syntax.shape import last_word

_COPYING = "deepcopy"


def copyings(run: Run, module: Thing) -> tuple[Event, ...]:
    """The events of a run by which a module is made as a copy of another."""
    made = {id(call) for call in _copying_calls(module)}
    return tuple(event for event in run.events if event.kind is Kind.COPY and id(event.node) in made) if made else ()


def originals(run: Run, module: Thing) -> list[Thing]:
    """What a module is a copy of."""
    return [event.thing for event in copyings(run, module) if event.thing is not None and event.thing != module]


def _copying_calls(module: Thing) -> Iterator[cst.Call]:
    for root in module.roots:
        for maker in makers_of(root, module.path):
            made = None if maker.value is None or maker.path else as_itself(maker.value)
            if isinstance(made, cst.Call) and last_word(made.func) == _COPYING:
                yield made
