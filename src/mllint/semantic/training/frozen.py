"""Whether the parameters of what a run calls may ask for no gradients, so that no graph of them is recorded."""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.elements import EVERY
from mllint.semantic.events.given import truth
from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.steps import UPDATES, Event, Kind, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.module_lists import put_in_list
from mllint.semantic.modules.made_with import is_left_out, making_run
from mllint.semantic.modules.weights import asks_for_no_gradients, have_weights, parts_with_weights
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.training.called_modules import module_called, records_nothing
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
from mllint.semantic.training.unfolding import unfold
from mllint.semantic.values import Module

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_frozen(run: Run, forwards: tuple[Event, ...]) -> bool:
    """Whether the parameters of all the models that are called may ask for no gradients at all."""
    called = [value for value in map(module_called, forwards) if isinstance(value, Module)]
    classes = [value.definition for value in called if value.definition is not None]
    is_said = len(classes) == len(forwards) and all(map(asks_for_no_gradients, classes))
    is_made_so = len(classes) == len(forwards) and all(map(_is_made_frozen, forwards))
    if is_said or is_made_so or (not any(map(have_weights, called)) and are_read_as_arrays(forwards)):
        return True
    concerned = [
        item
        for item in forwards
        if _may_be_frozen(run, item) or is_loaded_program(item) or records_nothing(item) or _is_listed(item)
    ]
    return bool(concerned) and not any(_has_weights(run, item) for item in forwards if item not in concerned)


def _has_weights(run: Run, forward: Event) -> bool:
    """Whether what is called surely has parameters: as it is known, or because an optimizer that has them steps."""
    value, module = module_called(forward), forward.thing
    if isinstance(value, Module) and have_weights(value):
        return True
    updating = (event for event in run.events if event.kind in UPDATES)
    owned = (item for event in updating for item in modules_of_optimizer(event.frame, event.thing))
    return module is not None and any(item is not None and is_one(item, module) for item in owned)


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


def _is_listed(forward: Event) -> bool:
    """Whether what is called is one of a list of modules that ask for no gradients, as far as they are known."""
    frame, thing = forward.frame, forward.thing
    owner = frame.instance_of or (None if frame.function is None else frame.function.owner)
    if owner is None or thing is None or thing.path[-1:] != (EVERY,) or len(thing.path) < 2:
        return False
    listed = [module.definition for module in put_in_list(owner, thing.path[-2].removeprefix("."))]
    return bool(listed) and all(definition and asks_for_no_gradients(definition) for definition in listed)


def _paths(run: Run, module: Thing) -> Paths[bool]:
    """The ways through a run; the state is whether something may have frozen a module since it was trained."""
    trained = {event for event in training_forwards(run) if is_one(event.thing, module)}

    def advance(state: bool, event: Event) -> bool:
        if event in trained:
            return False
        return state or (event.kind is Kind.FREEZE and may_concern(run, event, module))

    return Paths(run.steps, False, advance)


def _is_made_frozen(forward: Event) -> bool:
    """Whether the constructor of what is called may freeze all its parameters, given what it is given itself."""
    value = module_called(forward)
    definition = value.definition if isinstance(value, Module) else None
    if not isinstance(value, Module) or definition is None:
        return False
    making = next((frame.model for frame in forward.frame.led_by() if id(value.call) in frame.model.tree.parents), None)
    return making is not None and _makes_frozen(making, value.call, definition)


def _makes_frozen(making: "Model", call: cst.Call | None, made: ClassInfo, above: tuple[ClassInfo, ...] = ()) -> bool:
    """Whether a call makes a module whose parameters its constructor may freeze, or has none but in parts made so."""
    run = making_run(making, call, made, None)
    if run is None or run.function is None:
        return False
    frozen = thawed = False
    for event in events(unfold(run)[0]):
        is_whole = event.thing is not None and not event.thing.path
        if event.kind is Kind.THAW:
            frozen, thawed = False, True
        elif event.kind is Kind.FREEZE and is_whole and not is_left_out(event.node, event.frame):
            frozen = frozen or not _is_thawed(event.frame, event.node)
    if frozen or thawed or made in above:
        return frozen
    parts = [(model, part) for model, node, part in parts_with_weights(made) if not is_left_out(node, run)]
    return bool(parts) and all(
        part.definition is not None and _makes_frozen(model, part.call, part.definition, (*above, made))
        for model, part in parts
    )


def _is_thawed(run: Frame, node: cst.CSTNode) -> bool:
    """Whether a flag is written that asks for gradients, as a constructor is told: ``requires_grad = trainable``."""
    if not isinstance(node, cst.Assign):
        return False
    target = node.targets[0].target
    is_stop = isinstance(target, cst.Attribute) and target.attr.value == "stop_gradient"
    return truth(run, node.value) is (not is_stop)
