"""Inference with weights from a file: models that are made, loaded and called, or traced, and that nobody puts to
evaluation mode.

Where nothing in the whole run computes gradients, or has an optimizer, a model that is loaded is there to be used.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.events.kinds import kind_at_sight
from mllint.semantic.events.steps import Event, Helper, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.expressions.imports import imported_files
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.data_rounds import loop_over_data
from mllint.semantic.training.in_training_mode import evaluates_in_training_mode, is_put_to_training
from mllint.semantic.training.kept_networks import is_never_switched, kept_as
from mllint.semantic.training.left_as_comments import is_taken_out
from mllint.semantic.training.loaded_weights import is_from_file, load_before
from mllint.semantic.training.made_in_mode import is_switched_by_maker, switches_itself
from mllint.semantic.training.made_up import are_made_up, is_made_up
from mllint.semantic.training.nearby import may_be_in_training_mode, trains_around
from mllint.semantic.training.outputs import is_detached, is_dropped
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.training_modes import (
    FRESH,
    covers,
    has_mode_from_file,
    is_made_within,
    mode_matters,
    modes_at_end,
    modes_before,
    records_graph,
)
from mllint.semantic.training.turns import is_sampled
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, says_gradients
from mllint.semantic.values import Instance, Module
from mllint.syntax.shape import last_word
from mllint.syntax.walk import names_in

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_TRAINING = frozenset({
    Kind.BACKWARD, Kind.STEP, Kind.MINIMIZE, Kind.UPDATE, Kind.ZERO, Kind.WRITE_GRADIENT, Kind.CLIP, Kind.SCALE,
    Kind.UNSCALE, Kind.SCHEDULE,
})  # fmt: skip


def inferences(model: "Model", load: cst.Call) -> Iterator[cst.Call]:
    """The first forward pass, in the file, of each module that a call loads weights into, which infers in training
    mode.
    """
    if is_test_code(model) or _is_of_no_module(model, load) or trains_around(model, load):
        return
    found: dict[int, cst.Call] = {}
    kept: dict[Thing, None] = {}
    leading: dict[int, tuple[cst.Call, list[Occurrence]]] = {}
    for occurrence in model.runs.at(load):
        run, loaded = occurrence.run, occurrence.event
        if loaded.kind is not Kind.LOAD or loaded.thing is None or not is_from_file(loaded):
            continue
        forward = _forward_behind(run, loaded)
        is_whole = forward is not None and forward.thing == loaded.thing
        node = model.runs.node_here(forward) if forward is not None and is_whole else None
        if forward is None and _is_at_the_beginning(run):
            kept[loaded.thing] = None
        elif forward is not None and loaded is load_before(run, forward):
            if isinstance(node, cst.Call):
                found[id(node)] = node
            call = _call_towards(model, loaded, forward)
            if call is not None and (is_whole or not _is_given_what_is_made_up(model, call)):
                leading.setdefault(id(call), (call, []))[1].append(Occurrence(run, forward, occurrence.is_open))
    always = [node for node in found.values() if _always_infers(model, node)]
    yield from always
    for call, occurrences in leading.values() if not always else ():
        if all(infers_in_training_mode(item) and not _is_told_elsewhere(item) for item in occurrences):
            yield call  # one of those who call a function to infer forgets what the others do
    for thing in kept:
        node = next(calls_of_kept(model, thing), None)
        if node is not None and not found:
            yield node


def _forward_behind(run: Run, loaded: Event) -> Event | None:
    """The first forward pass behind one that loads weights, of the module; else that of a part to which the mode
    matters, by a method: ``network.decode(inputs)``.
    """
    assert loaded.thing is not None
    later = run.events[run.events.index(loaded) + 1 :]
    forwards = [event for event in later if event.kind is Kind.FORWARD and event.thing is not None]
    whole = next((event for event in forwards if event.thing == loaded.thing), None)
    if whole is not None or any(event.kind in _TRAINING for event in run.events):
        return whole
    parts = (event for event in forwards if event.thing is not None and covers(loaded.thing, event.thing))
    return next((event for event in parts if _is_by_method(event, loaded.thing) and mode_matters(event)), None)


def _is_by_method(forward: Event, module: Thing) -> bool:
    """Whether a method of a module, which somebody calls, calls a part of it."""
    return any(frame.receiver == module and frame.call is not None for frame in forward.frame.led_by())


def _is_given_what_is_made_up(model: "Model", call: cst.Call) -> bool:
    """Whether noise, or what stands for any input, is given to a method."""
    return are_made_up(model, [arg.value for arg in call.args])


def _is_of_no_module(model: "Model", load: cst.Call) -> bool:
    """Whether what is loaded is surely no module, but an optimizer or the like."""
    return isinstance(load.func, cst.Attribute) and kind_at_sight(model, load.func.value) not in (None, "module")


def _always_infers(model: "Model", node: cst.CSTNode) -> bool:
    return model.runs.always(node, infers_in_training_mode)


def _call_towards(model: "Model", loaded: Event, forward: Event) -> cst.Call | None:
    """The call in a file, behind one that loads weights, of the function in which the module is called."""
    before = {id(around.step) for around in loaded.around}
    for step in (around.step for around in forward.around):
        if isinstance(step, Helper) and id(step) not in before:
            return step.node if step.frame.caller is not None and step.frame.caller.model is model else None
    return None


def _is_told_elsewhere(occurrence: Occurrence) -> bool:
    """Whether a forward pass without a graph is one that every way there leaves in training mode: it is reported."""
    run, forward = occurrence.run, occurrence.event
    load = load_before(run, forward)
    if records_graph(forward) is not False or load is None or load.thing != forward.thing:
        return False
    return _always_infers(forward.frame.model, forward.node)


def inferences_elsewhere_loaded(model: "Model", body: cst.CSTNode) -> Iterator[cst.Call]:
    """The first forward pass, in some code, of each module that infers in training mode, loaded in another file."""
    if is_test_code(model) or not _imports_what_loads(model) or trains_around(model, body):
        return
    is_loaded_elsewhere = partial(_is_loaded_elsewhere, model)
    found: set[Thing] = set()
    for call in model.tree.calls_in(body):
        if not may_be_in_training_mode(model, call) or not model.runs.always(call, is_loaded_elsewhere):
            continue
        things = {item.event.thing for item in model.runs.at(call)}
        if len(things) == 1 and not things & found:
            found |= {thing for thing in things if thing is not None}
            yield call


@worked_out_once
def _imports_what_loads(model: "Model") -> bool:
    """Whether a file that is imported has state dicts, by the look of it: one that calls is told about its call."""
    project = model.project
    return project is not None and any(
        project.has_checkpoints(path, model.path) for path in imported_files(model, project)
    )


def _is_loaded_elsewhere(model: "Model", occurrence: Occurrence) -> bool:
    load = load_before(occurrence.run, occurrence.event)
    if load is None:
        return _is_kept_as_loaded(model, occurrence)
    is_elsewhere = load.frame.model is not model and load.thing == occurrence.event.thing
    return is_elsewhere and infers_in_training_mode(occurrence)


def _is_kept_as_loaded(model: "Model", occurrence: Occurrence) -> bool:
    """Whether a forward pass in a method that nobody in sight calls is of what its object keeps to infer with: the
    constructor has it from a function of another file, which loads it.
    """
    function, module = occurrence.run.frame.function, occurrence.event.thing
    owner = None if function is None else function.owner
    constructor = None if owner is None else owner.methods.get("__init__")
    if owner is None or constructor is None or module is None or constructor is function or owner.model is not model:
        return False
    if kept_as(model, module) != owner.name or not _is_at_the_beginning(occurrence.run):
        return False
    making = model.runs.run_of(constructor)
    loads = (item for item in making.events if item.thing == module and is_from_file(item))
    return (
        next(loads, None) is not None
        and not making.is_cut
        and modes_at_end(making, module, FRESH) == {FRESH}
        and is_never_switched(model, module, owner.name)
        and _is_left_to_infer(occurrence)
    )


def _is_at_the_beginning(run: Run) -> bool:
    """Whether a run is one of a file, or of a method of an object that is no module itself: it keeps what it loads."""
    function = run.frame.function
    if function is None or function.owner is None:
        return function is None
    return function.owner.library_bases in ((), ("builtins.object",)) and not function.owner.has_unknown_base


def calls_of_kept(model: "Model", thing: Thing) -> Iterator[cst.Call]:
    """The calls of a module that a file, or an object, keeps to infer with: in bodies that nobody in sight calls."""
    name = kept_as(model, thing)
    if name is None or not is_never_switched(model, thing, name):
        return
    word = thing.path[0].removeprefix(".") if thing.path else name
    for node in model.calls_by_word.get(word, ()):
        if model.runs.always(node, lambda item: _is(item.event.thing, thing) and _is_left_to_infer(item)):
            yield node


def _is(thing: Thing | None, kept: Thing) -> bool:
    """Whether a thing is what a file or an object keeps, also where the object has a name."""
    if thing is None or thing == kept or thing.path != kept.path:
        return thing == kept
    made = [root.scope.model.binding_value(root) for root in thing.roots if isinstance(root, Binding)]
    classes = [value.definition for value in made if isinstance(value, Instance)]
    return len(classes) == len(thing.roots) and all(kept.roots & set(info.lineage) for info in classes)


def _is_left_to_infer(occurrence: Occurrence) -> bool:
    run, forward = occurrence.run, occurrence.event
    if forward.kind is not Kind.FORWARD or forward.thing is None or run.is_cut:
        return False
    return modes_before(run, forward.thing, forward) == {FRESH} and _is_only_used(run, forward)


def infers_in_training_mode(occurrence: Occurrence) -> bool:
    """Whether a forward pass is of a module that has its weights from a file, in a run that trains nothing at all."""
    return load_before(occurrence.run, occurrence.event) is not None and is_used_as_made(occurrence)


def is_used_as_made(occurrence: Occurrence) -> bool:
    """Whether a forward pass is of a module that nothing has switched, in a run that makes it and trains nothing."""
    run, forward = occurrence.run, occurrence.event
    module = forward.thing
    if forward.kind is not Kind.FORWARD or module is None or run.is_cut:
        return False
    if modes_before(run, module, forward) != {FRESH} or not is_made_within(run, Thing(module.roots)):
        return False
    return _is_only_used(run, forward) and not _wants_gradients(run, forward)


def _is_only_used(run: Run, forward: Event) -> bool:
    """Whether the output of a forward pass may differ with the mode, and nothing in its run trains, or samples."""
    module, node = forward.thing, forward.node
    if module is None or not isinstance(node, cst.Call) or any(event.kind in _TRAINING for event in run.events):
        return False
    value = module_called(forward)
    if not isinstance(value, Module) or has_mode_from_file(forward) or mode_matters(forward) is not True:
        return False
    if is_switched_by_maker(module) or (value.definition is not None and switches_itself(value.definition)):
        return False
    if is_dropped(forward) or is_sampled(forward) or is_made_up(forward):
        return False
    if is_taken_out(forward):
        return False
    loop = loop_over_data(forward)
    if loop is None or not isinstance(loop.node, cst.For):
        return True
    return not evaluates_in_training_mode(loop.frame.model, loop.node)  # the loop is what is reported


def may_train(run: Run) -> bool:
    """Whether a module that is called in a run may be trained in it, too: a script alone shows that none is."""
    if run.frame.function is not None or run.is_cut or any(event.kind in _TRAINING for event in run.events):
        return True
    called = [event.thing for event in run.events if event.kind is Kind.FORWARD]
    return any(event.kind is Kind.UNKNOWN and any(map(event.concerns, called)) for event in run.events)


def _wants_gradients(run: Run, forward: Event) -> bool:
    """Whether something may be done with the gradients of a forward pass."""
    function = forward.frame.function
    if records_graph(forward) is False:
        return function is not None and says_gradients(
            function.model, function.node.body, GRADIENT_WORDS - {"set_grad_enabled"}
        )
    if run.frame.function is not None and not _keeps_to_itself(run, run.frame.function, forward):
        return True  # who calls it may train
    running = {item for event in run.events for item in event.frame.running()}
    whole = run.frame.model.tree.module.body if run.frame.function is None else ()
    own = (item for item in whole if not isinstance(item, (cst.FunctionDef, cst.ClassDef)))
    return any(says_gradients(run.frame.model, item) for item in own) or any(
        says_gradients(item.model, item.node.body) for item in running
    )


def _keeps_to_itself(run: Run, function: FunctionInfo, forward: Event) -> bool:
    """Whether neither the module of a forward pass nor a graph leaves the function that makes it.

    No graph does where the output is detached wherever it is read.
    """
    module, model = forward.thing, function.model
    if module is None or not function.is_plain or not function.is_transparent:
        return False
    if any(not isinstance(root, Binding) or root.scope is not function.scope for root in module.roots):
        return False
    if any(event.kind is Kind.UNKNOWN and event.concerns(module) for event in run.events):
        return False
    given_back = [statement.value for statement in function.scope.returns if statement.value is not None]
    names = {root.key for root in module.roots if isinstance(root, Binding)}
    is_cut = isinstance(forward.node, cst.Call) and is_detached(forward.frame.model, forward.node, also_places=True)
    return all(
        (is_cut and names.isdisjoint(names_in(value))) or hangs_on_nothing(model.value(value)) for value in given_back
    )


_SAVING = ("save", "_save_for_lite_interpreter")


def is_traced_in_training_mode(model: "Model", call: cst.Call) -> bool:
    """Whether a call traces a model in training mode, and what it gives is saved in the same body."""
    if is_test_code(model) or not _is_saved(model, call):
        return False
    return model.runs.always(call, _is_in_training_mode, accelerated=True)


def _is_saved(model: "Model", call: cst.Call) -> bool:
    """Whether a traced model is saved: ``torch.jit.trace(net, x).save(path)``, ``torch.jit.save(traced, path)``."""
    parent = model.tree.parent(call)
    if _is_save(model, call, parent):
        return True
    bindings = (
        (
            item
            for name in (target.target for target in parent.targets)
            if isinstance(name, cst.Name)
            for item in model.scope_of(name).bindings.get(name.value, ())
        )
        if isinstance(parent, cst.Assign)
        else ()
    )
    return any(
        _is_save(model, node, model.tree.parent(node))
        for item in bindings
        if item.value is call and item.kind is BindingKind.ASSIGN
        for node in uses(model, item)
    )


def _is_save(model: "Model", node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value in _SAVING
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and last_word(call.func) == "save"


def _is_in_training_mode(occurrence: Occurrence) -> bool:
    run, trace = occurrence.run, occurrence.event
    module = trace.thing
    if trace.kind is not Kind.TRACE or module is None or run.is_cut or not is_made_within(run, Thing(module.roots)):
        return False
    if not is_put_to_training(modes_before(run, module, trace)):
        return False
    forward = _forward_of(trace)
    value = module_called(forward)
    if not isinstance(value, Module) or has_mode_from_file(forward) or mode_matters(forward) is not True:
        return False
    is_switched = is_switched_by_maker(module) or (value.definition is not None and switches_itself(value.definition))
    return not is_switched and not is_taken_out(forward)


def _forward_of(trace: Event) -> Event:
    """The forward pass that tracing a model is."""
    assert isinstance(trace.node, cst.Call)
    return replace(trace, kind=Kind.FORWARD, node=cst.Call(trace.node.args[0].value))
