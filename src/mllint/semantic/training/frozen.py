"""Whether the parameters of what a run calls may ask for no gradients, so that no graph of them is recorded."""

from functools import partial

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.modules.weights import asks_for_no_gradients, have_weights
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.outputs import are_read_as_arrays
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import (
    is_loaded_program,
    is_one,
    is_trained,
    may_concern,
    training_forwards,
)
from mllint.semantic.values import Module


def is_frozen(run: Run, forwards: tuple[Event, ...]) -> bool:
    """Whether the parameters of all the models that are called may ask for no gradients at all."""
    called = [value for value in map(module_called, forwards) if isinstance(value, Module)]
    classes = [value.definition for value in called if value.definition is not None]
    is_said = len(classes) == len(forwards) and all(map(asks_for_no_gradients, classes))
    if is_said or (not any(map(have_weights, called)) and are_read_as_arrays(forwards)):
        return True
    concerned = [item for item in forwards if _may_be_frozen(run, item) or is_loaded_program(item)]
    others = (module_called(item) for item in forwards if item not in concerned)
    return bool(concerned) and not any(isinstance(value, Module) and have_weights(value) for value in others)


def _may_be_frozen(run: Run, forward: Event) -> bool:
    """Whether the parameters of a module may be frozen when it is called.

    They are not where it was trained last: what was frozen before that were other modules, or a part of it.
    """
    module = forward.thing
    freezes = [event for event in run.events if event.kind is Kind.FREEZE and may_concern(run, event, module)]
    if not freezes or module is None or not is_trained(run, module):
        return bool(freezes)
    paths: Paths[bool] = run.derived(("frozen", module), partial(_paths, run, module))
    return True in paths.before(forward)


def _paths(run: Run, module: Thing) -> Paths[bool]:
    """The ways through a run; the state is whether something may have frozen a module since it was trained."""
    trained = {event for event in training_forwards(run) if is_one(event.thing, module)}

    def advance(state: bool, event: Event) -> bool:
        if event in trained:
            return False
        return state or (event.kind is Kind.FREEZE and may_concern(run, event, module))

    return Paths(run.steps, False, advance)
