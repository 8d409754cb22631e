"""Loops that evaluate a model: what is called in them, in which mode, with or without a graph."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.events.participants import places_of
from mllint.semantic.events.steps import UPDATES, Event, Kind, Loop, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.weights import is_trainable
from mllint.semantic.names.in_use import is_named, is_never_named, outermost_function
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.adversaries import is_held_by_another, may_be_attacked
from mllint.semantic.training.called_modules import is_loss
from mllint.semantic.training.data_loops import (
    EVALUATION,
    as_bound,
    is_named_evaluation,
    is_next,
    may_evaluate_each,
    role_of,
)
from mllint.semantic.training.data_rounds import (
    TRAINING,
    AnyLoop,
    DataRound,
    all_rounds,
    code_of,
    feeds,
    hands_on,
    in_sight,
    is_given_output,
    rounds_of,
    trains_in,
)
from mllint.semantic.training.frozen import is_frozen
from mllint.semantic.training.handed_on import as_given
from mllint.semantic.training.loaded_weights import load_before
from mllint.semantic.training.made_up import are_made_up
from mllint.semantic.training.nearby import trains_in_every_round
from mllint.semantic.training.outputs import are_detached, is_used_for_backward
from mllint.semantic.training.runs import LoopRun, Run
from mllint.semantic.training.touched import may_switch_unseen
from mllint.semantic.training.training_modes import (
    EVAL,
    LOADED,
    has_mode_from_file,
    is_as_loaded,
    is_made_within,
    is_switched_to_training,
    is_trained,
    keeps_its_output,
    modes_before,
    records_graph,
)
from mllint.semantic.training.turns import is_without_training
from mllint.semantic.training.unseen_callers import has_unseen_callers, may_run_without_gradients, puts_module_aside
from mllint.semantic.training.wanted_gradients import (
    GRADIENT_WORDS,
    GRAPH_WORDS,
    calls_for_gradients,
    computes_gradients,
    failed_without,
    is_of_volatile,
    may_compute_gradients,
    only_generates,
    says_gradients,
    wants_no_gradients,
)
from mllint.syntax.shape import called_on, string_literal
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.project import Project


def trains_too(model: "Model", node: AnyLoop) -> bool:
    """Whether a loop that evaluates trains in other runs: ``run(loader, train=True)``."""
    return any(trains_in(events(found.loop.body)) for found in model.runs.loops_at(node))


# -- with a graph ------------------------------------------------------------------------------------------------------


def evaluates_with_graph(model: "Model", node: AnyLoop) -> bool:
    """Whether a loop surely evaluates and records a graph of every forward pass in it, for nothing.

    Where one of those who call its function forgets to switch gradients off, as the others do, it does so then.
    """
    if model.gradients.inside(node) == "off":
        return False
    return all_rounds(model, node, _records_for_nothing, _may_record) or _records_where_others_do_not(model, node)


def is_let_be(model: "Model", node: cst.CSTNode) -> bool:
    """Whether nobody evaluates by a place any more, without gradients it did not work, or another one says it all."""
    is_said = isinstance(node, cst.CompFor) and _is_behind_another(model, node)
    return is_said or is_left_over(model, node) or failed_without(model, node)


def only_evaluating(model: "Model", node: AnyLoop | cst.Call) -> cst.FunctionDef | None:
    """The function around a loop or call that evaluates, where nothing in it wants gradients, or may train that."""
    function = model.enclosing_function(node)
    if function is None or not wants_no_gradients(model, function) or _may_train_beside(model, node):
        return None
    return function


def _is_behind_another(model: "Model", clause: cst.CompFor) -> bool:
    """Whether the statement right above a comprehension has one that evaluates: what is put around it takes both in."""
    line = model.tree.nearest(clause, cst.SimpleStatementLine)
    block = None if line is None else model.tree.parent(line)
    body = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    above = next((before for before, item in pairwise(body) if item is line), None)
    others = () if above is None else (item for item in subtree(above) if type(item) is cst.CompFor)
    return any(may_evaluate_each(model, item) and evaluates_with_graph(model, item) for item in others)


def _recorded(found: DataRound) -> DataRound:
    """A round without the passes of other modules that surely record nothing, as of one that only makes features, and
    those of functions that are called beside, as of one that draws a picture.

    Of one module all passes of a function, or by one call, count: who switches gradients off for some of them may want
    those of the others.
    """
    off = [forward for forward in found.forwards if records_graph(forward) is False]
    if not off:
        return found
    on = [forward for forward in found.forwards if forward not in off]
    meant = {forward.thing for forward in off for other in on if not _are_beside(forward, other)}
    others = [forward for forward in on if forward.thing not in meant]
    return replace(found, forwards=tuple(others)) if others else found


def _are_beside(one: Event, other: Event) -> bool:
    """Whether two forward passes stand in different functions that a third one calls one after the other."""
    calls = {id(frame): node for frame, node in places_of(other.frame, other.node)}
    met = ((node, calls[id(frame)]) for frame, node in places_of(one.frame, one.node) if id(frame) in calls)
    first, second = next(met, (None, None))
    return one.frame.function is not other.frame.function and first is not second


def may_need_the_graph(model: "Model", node: AnyLoop) -> bool:
    """Whether a model that a loop evaluates may ask for gradients of what it computes, such as forces."""
    rounds = rounds_of(model.runs.loops_at(node))
    return any(may_compute_gradients(forward) for item in rounds for forward in item.forwards)


def _may_train_beside(model: "Model", node: AnyLoop | cst.Call) -> bool:
    """Whether the function of a loop or call that evaluates trains in another place, or something may that it calls
    there and that cannot be looked into: it is given what is evaluated, or holds it. What gives the data does not.
    """
    if isinstance(node, cst.Call):
        found = model.runs.at(node)
        return any(_trains_beside(item.run, item.event.frame, node, (item.event,)) for item in found)
    rounds = [(item.found.run, item.found.loop.frame, item.forwards) for item in rounds_of(model.runs.loops_at(node))]
    return any(_trains_beside(run, frame, code_of(model, node), forwards) for run, frame, forwards in rounds)


def _trains_beside(run: Run, frame: Frame, node: cst.CSTNode, forwards: tuple[Event, ...]) -> bool:
    return any(
        event.kind in TRAINING or any(may_switch_unseen(event, forward.thing) for forward in forwards)
        for event in run.events
        if _is_beside(event, frame, node)
    )


def _is_beside(event: Event, frame: Frame, node: cst.CSTNode) -> bool:
    """Whether an event comes about in the run of a body, or by a call there, but not in a statement or call of it."""
    led = list(event.frame.led_by())
    places = [event.node, *(home.call for home in led if home.call is not None)]
    return frame in led and not any(frame.model.tree.is_inside(place, node) for place in places)


def _records_where_others_do_not(model: "Model", node: AnyLoop) -> bool:
    """Whether a loop that evaluates records a graph in some runs, and all others are kept from it by who calls it, or
    have a model that is frozen.
    """
    recording = some_rounds(model, node, _records_of_unfrozen, _may_record)
    return bool(recording) and all(
        _may_record(item)
        and _records_for_nothing(item)
        and all(is_evaluated(item.found.run, forward) for forward in item.forwards)
        for item in recording
    )


def some_rounds(
    model: "Model",
    node: AnyLoop,
    is_meant: Callable[[DataRound], bool],
    may_be: Callable[[DataRound], bool],
) -> list[DataRound]:
    """The runs of a loop that evaluates of which something holds, where it does not hold of all.

    None where none of all may be wrong.
    """
    rounds = [] if trains_in_every_round(model, node) else in_sight(list(rounds_of(model.runs.loops_at(node))))
    if len(rounds) < 2 or not any(map(may_be, rounds)):
        return []
    meant = [item for item in rounds if is_meant(item)]
    return meant if len(meant) < len(rounds) else []


def is_recording(found: DataRound) -> bool:
    return any(records_graph(forward) is not False for forward in found.forwards)


def _records_of_unfrozen(found: DataRound) -> bool:
    return is_recording(found) and not is_frozen(found.found.run, _recorded(found).forwards)


def is_evaluated(run: Run, forward: Event) -> bool:
    return forward.thing is not None and modes_before(run, forward.thing, forward) == {EVAL}


def _may_record(found: DataRound) -> bool:
    found = _recorded(found)
    return all(records_graph(forward) is not False for forward in found.forwards) and not wants_gradients(found)


def _records_for_nothing(found: DataRound) -> bool:
    found = _recorded(found)
    node, run = found.found.loop.node, found.found.run
    is_in_sight = run.frame.function is None or any(event.kind is Kind.BACKWARD for event in run.events)
    if not is_in_sight and (trains_too(found.found.loop.frame.model, node) or has_unseen_callers(run.frame.function)):
        return False  # those who call it to evaluate are not in sight, nor is under what they do
    asked = [forward for forward in found.forwards if not is_loss(forward)]
    evaluated = [forward for forward in asked if _is_evaluation(found, forward)]
    return (
        (bool(evaluated) or _is_detached(found))
        and all(records_graph(forward) for forward in found.forwards)
        and not is_frozen(run, found.forwards)
        and not wants_gradients(found)
        and not any(may_be_attacked(found.found.loop, forward) for forward in found.forwards)
        and not is_held_by_another(events(found.found.loop.body), found.forwards)
        and not is_used_for_backward(run, found.found.loop.frame, code_of(found.found.loop.frame.model, node))
        and not _feeds_a_training(found)
        and not _is_demonstration(found)
        and not any(map(keeps_its_output, found.forwards))
        and not any(map(only_generates, found.forwards))
        and (is_in_sight or not may_run_without_gradients(run.frame.function))
        and not any(map(is_of_volatile, found.forwards))
        # Asked last: the constructors of all layers are read for it.
        and (any(map(_is_trainable, evaluated)) or (any(map(_is_trainable, asked)) and _is_detached(found)))
    )


def _feeds_a_training(found: DataRound) -> bool:
    """Whether a method out of sight, of a module that was put to training mode, is given an output: it may train."""
    return any(
        _is_told_to_trained(found.found.run, event) and any(is_given_output(event, item) for item in found.forwards)
        for event in events(found.found.loop.body)
        if event.kind is Kind.UNKNOWN
    )


def _is_told_to_trained(run: Run, event: Event) -> bool:
    holder = called_on(event.node) if isinstance(event.node, cst.Call) else None
    told = None if holder is None else event.frame.thing(holder)
    switches = (item.thing for item in run.events if item.kind is Kind.TRAIN)
    is_switched = told is not None and any(item is not None and item.roots & told.roots for item in switches)
    return is_switched and told is not None and is_switched_to_training(run, told, event)


def _is_demonstration(found: DataRound) -> bool:
    """Whether numbers that were drawn go through models that a run makes, and neither loads nor trains: there is
    nothing to evaluate.
    """
    run, outer = found.found.run, found.found.loop.frame
    for forward in found.forwards:
        args = forward.node.args if isinstance(forward.node, cst.Call) else ()
        given = [part for arg in args for part in as_given(forward.frame, arg.value, outer)]
        known = [part for part in given if id(part) in outer.model.tree.parents]
        if not are_made_up(outer.model, known) or not _has_first_weights(run, forward):
            return False
    return True


def _has_first_weights(run: Run, forward: Event) -> bool:
    """Whether the weights of a module are those that it was made with in a run."""
    module = forward.thing
    if module is None or has_mode_from_file(forward) or is_trained(run, module):
        return False
    if not is_made_within(run, Thing(module.roots)):
        return False
    changing = (event for event in run.events if event.kind in (Kind.LOAD, Kind.UNKNOWN))
    return not any(event.concerns(module) for event in changing)


def _is_detached(found: DataRound) -> bool:
    """Whether the outputs of a model are taken off their graph wherever they are read. In a test they are compared."""
    model = found.found.loop.frame.model
    if isinstance(found.found.loop.node, cst.While):
        return False  # which may draw what a later training learns from
    if is_test_code(model) or not are_detached(found.forwards) or hands_on(found):
        return False
    if is_held_by_another(events(found.found.loop.body), found.forwards):
        return False
    return any(map(_is_trainable, found.forwards))


def _is_trainable(forward: Event) -> bool:
    """Whether what a forward pass calls may have parameters."""
    return forward.called is not None and is_trainable(forward.frame.model, forward.called)


def _is_evaluation(found: DataRound, forward: Event) -> bool:
    """Whether a forward pass evaluates: by its mode, the data, or the data's name where it is trained elsewhere."""
    run, module = found.found.run, forward.thing
    assert module is not None
    if is_evaluated(run, forward) or _is_used_as_loaded(run, forward, module):
        return True
    loop = found.found.loop
    if isinstance(loop.node, cst.While):
        return False
    if role_of(loop.frame, loop.node.iter) == EVALUATION or is_without_training(found.found):
        return True
    is_meant = is_called_evaluation(found) and not hands_on(found)
    return is_meant and (is_trained(run, module) or _is_loaded_and_kept(run, forward, module))


def _is_loaded_and_kept(run: Run, forward: Event, module: Thing) -> bool:
    """Whether a run makes a model, loads its weights from a file, and trains nothing: it is there to be evaluated."""
    if run.is_cut or any(event.kind in UPDATES or event.kind is Kind.BACKWARD for event in run.events):
        return False
    return is_made_within(run, Thing(module.roots)) and load_before(run, forward) is not None


def _is_used_as_loaded(run: Run, forward: Event, module: Thing) -> bool:
    """Whether a run makes a model that is in evaluation mode as a library gives it, keeps it, and trains nothing."""
    if not is_as_loaded(forward) or not is_made_within(run, Thing(module.roots)):
        return False
    if any(event.kind in TRAINING for event in run.events) or modes_before(run, module, forward, LOADED) != {LOADED}:
        return False
    names = {root.key for root in module.roots if isinstance(root, Binding)}
    returned = () if run.frame.function is None else run.frame.function.scope.returns
    return not any(item.value is not None and names & names_in(item.value) for item in returned)


def is_called_evaluation(found: DataRound) -> bool:
    """Whether the data of a loop, or what it runs in, is called test or validation. Only a hint: who asks must know
    more.

    Each sample of one loop may be compared with all of another: the data of both go into the model.
    """
    run = found.found.run
    loops = (found.found.loop, *_loops_around_that_feed(found))
    return any(_is_over_called_evaluation(run, loop) for loop in loops) or is_in_called_evaluation(found.found)


def _loops_around_that_feed(found: DataRound) -> Iterator[Loop]:
    """The loops around one in its function whose data go into all the forward passes in it, too."""
    inner, frame = found.found.loop, found.found.loop.frame
    for loop in found.forwards[0].loops:
        if loop is inner:
            return
        node = loop.node if loop.frame is frame else None
        if isinstance(node, cst.For) and all(feeds(frame, node, forward) for forward in found.forwards):
            yield loop


def _is_over_called_evaluation(run: Run, loop: Loop) -> bool:
    node, frame = loop.node, loop.frame
    assert isinstance(node, (cst.For, cst.CompFor))
    iterable = as_bound(frame.model, node.iter)
    # A batch is no data set.
    given = (part for part in as_given(frame, iterable, run.frame) if not is_next(part))
    parts = (node.iter, iterable, *given)
    names = [item for part in parts for item in subtree(part) if isinstance(item, cst.Name)]
    words = (*(name.value for name in names), *(word for name in names for word in _literal_words(frame, name)))
    return any(map(is_named_evaluation, words))


def _literal_words(frame: Frame, name: cst.Name) -> Iterator[str]:
    """The text that the variable of a loop over literals stands for in its round: ``loaders[phase]``."""
    if frame.literals:
        for binding in frame.model.reaching(name):
            text = string_literal(frame.literals[binding]) if binding in frame.literals else None
            yield from () if text is None else (text,)


def is_in_called_evaluation(found: LoopRun) -> bool:
    """Whether the function around a loop is called an evaluation, and trains nothing itself. No test case is meant."""
    frame = found.loop.frame
    name = "" if frame.function is None else frame.function.name
    if not is_named_evaluation(name) or (frame.caller is None and name.startswith("test_")):
        return False
    return not any(event.kind in TRAINING for event in found.run.events if event.frame is frame)


# -- what is wanted of the gradients -----------------------------------------------------------------------------------


def wants_gradients(found: DataRound) -> bool:
    """Whether a word of gradients stands in the loop, or in a function of the project or a module called from it."""
    loop = found.found.loop
    if any(computes_gradients(forward) for forward in found.forwards):
        return True
    function, named = loop.frame.function, loop.frame.model.names_by_word
    if (
        function is not None
        and not GRAPH_WORDS.isdisjoint(named)
        and says_gradients(function.model, function.node.body, GRAPH_WORDS)
    ):
        return True
    words = GRADIENT_WORDS
    if all(records_graph(forward) is False for forward in found.forwards):
        words -= {"set_grad_enabled"}  # which is what switches them off
    bodies: dict[int, tuple[Frame, cst.CSTNode]] = {id(loop.node): (loop.frame, code_of(loop.frame.model, loop.node))}
    for event in events(loop.body):
        if event.frame is not loop.frame and event.frame.function is not None:
            bodies[id(event.frame.function.node)] = (event.frame, event.frame.function.node)
    called = {forward.thing for forward in found.forwards if forward.thing is not None}
    if any(
        says_gradients(at.model, body, words, at) or puts_module_aside(body, at, called) for at, body in bodies.values()
    ):
        return True
    return calls_for_gradients(loop.frame.model, code_of(loop.frame.model, loop.node))


def is_left_over(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in a function of a file that nothing in the project names, also not in a notebook, or by
    an attribute of its name; and another function, which something names, and that is given something as well, or a
    file that imports this one, switches a model to evaluation mode: that is what the project evaluates with.
    """
    project, function = model.project, outermost_function(model, node)
    if project is None or function is None or not is_never_named(model, function):
        return False
    return _evaluates_elsewhere(model, project, function)


def _evaluates_elsewhere(model: "Model", project: "Project", function: cst.FunctionDef) -> bool:
    """Whether a file that imports one, or something else in it that is in use, switches to evaluation mode."""
    if project.importers(model.path, ".eval("):
        return True
    switching = {outermost_function(model, call) for call in model.calls_by_word.get("eval", ())} - {function, None}
    return bool(function.params.params) and any(
        other is not None and other.params.params and is_named(model, other) for other in switching
    )
