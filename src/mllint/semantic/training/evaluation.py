"""Loops that evaluate a model: what is called in them, in which mode, with or without a graph."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event, Kind, Loop, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.weights import is_trainable
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.adversaries import is_held_by_another, may_be_attacked
from mllint.semantic.training.called_modules import is_loss, module_called, ways_made
from mllint.semantic.training.data_loops import as_bound, is_named_evaluation, is_next
from mllint.semantic.training.data_rounds import (
    TRAINING,
    DataRound,
    all_rounds,
    feeds,
    hands_on,
    in_sight,
    is_given_output,
    is_over_loader,
    rounds_of,
)
from mllint.semantic.training.forgotten_beside import are_left_in_training
from mllint.semantic.training.frozen import is_frozen
from mllint.semantic.training.handed_on import as_given
from mllint.semantic.training.loaded_weights import load_before
from mllint.semantic.training.loaders import EVALUATION, role_of
from mllint.semantic.training.made_in_mode import (
    has_own_train,
    is_switched_by_maker,
    puts_itself_to_evaluation,
    switches_itself,
)
from mllint.semantic.training.made_up import are_made_up
from mllint.semantic.training.nearby import calls_what_was_switched, trains_in_every_round
from mllint.semantic.training.outputs import are_detached, is_dropped, is_used_for_backward
from mllint.semantic.training.runs import LoopRun, Run
from mllint.semantic.training.training_modes import (
    EVAL,
    FRESH,
    TRAIN,
    TRAINED,
    has_mode_from_file,
    is_copy_of_trained,
    is_made_of_evaluated,
    is_made_within,
    is_switched_to_training,
    is_taken_out,
    is_told_its_mode,
    is_trained,
    keeps_its_output,
    learns,
    mode_matters,
    modes_before,
    records_graph,
)
from mllint.semantic.training.turns import is_behind_training, is_without_training
from mllint.semantic.training.unseen_callers import has_unseen_callers, may_run_without_gradients, puts_module_aside
from mllint.semantic.training.wanted_gradients import (
    GRADIENT_WORDS,
    GRAPH_WORDS,
    computes_gradients,
    is_of_volatile,
    may_compute_gradients,
    only_generates,
    says_gradients,
)
from mllint.semantic.training.written import written_module
from mllint.semantic.values import Elements, Mapping, Module
from mllint.syntax.shape import called_on, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def trains_too(model: "Model", node: cst.For | cst.While) -> bool:
    """Whether a loop that evaluates trains in other runs: ``run(loader, train=True)``."""
    return any(event.kind in TRAINING for found in model.runs.loops_at(node) for event in events(found.loop.body))


# -- with a graph ------------------------------------------------------------------------------------------------------


def evaluates_with_graph(model: "Model", node: cst.For | cst.While) -> bool:
    """Whether a loop surely evaluates and records a graph of every forward pass in it, for nothing.

    Where one of those who call its function forgets to switch gradients off, as the others do, it does so then.
    """
    return all_rounds(model, node, _records_for_nothing, _may_record) or _records_where_others_do_not(model, node)


def may_need_the_graph(model: "Model", node: cst.For | cst.While) -> bool:
    """Whether a model that a loop evaluates may ask for gradients of what it computes, such as forces."""
    rounds = rounds_of(model.runs.loops_at(node))
    return any(may_compute_gradients(forward) for item in rounds for forward in item.forwards)


def _records_where_others_do_not(model: "Model", node: cst.For | cst.While) -> bool:
    """Whether a loop that evaluates records a graph in some runs, and all others are kept from it by who calls it."""
    recording = _some_rounds(model, node, _is_recording, _may_record)
    return bool(recording) and all(
        _may_record(item)
        and _records_for_nothing(item)
        and all(_is_evaluated(item.found.run, forward) for forward in item.forwards)
        for item in recording
    )


def _some_rounds(
    model: "Model",
    node: cst.For | cst.While,
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


def _is_recording(found: DataRound) -> bool:
    return any(records_graph(forward) is not False for forward in found.forwards)


def _is_evaluated(run: Run, forward: Event) -> bool:
    return forward.thing is not None and modes_before(run, forward.thing, forward) == {EVAL}


def _may_record(found: DataRound) -> bool:
    return all(records_graph(forward) is not False for forward in found.forwards) and not _wants_gradients(found)


def _records_for_nothing(found: DataRound) -> bool:
    node, run = found.found.loop.node, found.found.run
    assert isinstance(node, (cst.For, cst.While))
    is_in_sight = run.frame.function is None or any(event.kind is Kind.BACKWARD for event in run.events)
    if not is_in_sight and (trains_too(found.found.loop.frame.model, node) or has_unseen_callers(run.frame.function)):
        return False  # those who call it to evaluate are not in sight, nor is under what they do
    asked = [forward for forward in found.forwards if not is_loss(forward)]
    evaluated = [forward for forward in asked if _is_evaluation(found, forward)]
    return (
        (bool(evaluated) or _is_detached(found))
        and all(records_graph(forward) for forward in found.forwards)
        and not is_frozen(run, found.forwards)
        and not _wants_gradients(found)
        and not any(may_be_attacked(found.found.loop, forward) for forward in found.forwards)
        and not is_held_by_another(events(found.found.loop.body), found.forwards)
        and not is_used_for_backward(run, found.found.loop.frame, node)
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
    return isinstance(forward.node, cst.Call) and is_trainable(forward.frame.model, forward.node.func)


def _is_evaluation(found: DataRound, forward: Event) -> bool:
    """Whether a forward pass evaluates: by its mode, the data, or the data's name where it is trained elsewhere."""
    run, module = found.found.run, forward.thing
    assert module is not None
    if _is_evaluated(run, forward):
        return True
    loop = found.found.loop
    if not isinstance(loop.node, cst.For):
        return False
    if role_of(loop.frame, loop.node.iter) == EVALUATION or is_without_training(found.found):
        return True
    return _is_called_evaluation(found) and not hands_on(found) and is_trained(run, module)


def _is_called_evaluation(found: DataRound) -> bool:
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
    assert isinstance(node, cst.For)
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


# -- in training mode --------------------------------------------------------------------------------------------------


def evaluates_in_training_mode(model: "Model", node: cst.For) -> bool:
    """Whether a loop surely evaluates a model that is in training mode, on every way there.

    Or on some, without gradients, while those who lead there on all others have switched it.
    """
    if is_test_code(model) or calls_what_was_switched(model, node):
        return False
    if all_rounds(model, node, _is_in_training_mode, _may_train, any):
        return True
    left = _some_rounds(model, node, lambda item: not _is_switched(item), _may_be_left)
    return bool(left) and all(_may_be_left(item) and _is_in_training_mode(item) for item in left)


def _may_be_left(found: DataRound) -> bool:
    return _may_train(found) and not _is_recording(found)


def _is_switched(found: DataRound) -> bool:
    """Whether all that asks for its mode was put to evaluation mode."""
    # For what is in evaluation mode nobody need read the classes of all its layers.
    run = found.found.run
    return all(_is_evaluated(run, forward) or mode_matters(forward) is False for forward in found.forwards)


def _may_train(found: DataRound) -> bool:
    # Whether the mode matters is asked later: the classes of the layers may stand in files that nobody has read yet.
    return any(
        forward.thing is not None and is_put_to_training(modes_before(found.found.run, forward.thing, forward))
        for forward in found.forwards
    )


def is_put_to_training(modes: frozenset[str]) -> bool:
    """Whether a module is in training mode, and was not just put there on purpose, to sample with dropout."""
    return modes <= {FRESH, TRAINED} or (TRAINED in modes and modes <= {FRESH, TRAIN, TRAINED})


def _is_in_training_mode(found: DataRound) -> bool:
    if found.found.run.is_cut or _wants_gradients(found) or _is_meant(found.found.run, found.forwards):
        return False
    # To which modules the mode matters is asked last: the classes of all their layers are read for it.
    if not any(_trains_while_it_evaluates(found, forward) for forward in found.forwards):
        return False
    asking = _asking_for_mode(found)
    return bool(_left_in_training(found, asking)) and not any(map(is_taken_out, asking))


def _left_in_training(found: DataRound, asking: list[Event]) -> list[Event]:
    """The forward passes to which the mode makes a difference, and that are left in the one to train in."""
    left = [forward for forward in asking if _trains_while_it_evaluates(found, forward)]
    return left if are_left_in_training(found.found.run, left, asking) else []


def _is_meant(run: Run, forwards: tuple[Event, ...]) -> bool:
    """Whether something was put to training mode for a loop that evaluates: what runs beside it is meant to be, too."""
    switched = dict.fromkeys(event.thing for event in run.events if event.kind is Kind.TRAIN)
    asked = [*((item.thing, item) for item in forwards), *((thing, forwards[0]) for thing in switched)]
    return any(thing is not None and modes_before(run, thing, item) == {TRAIN} for thing, item in asked)


def _asking_for_mode(found: DataRound) -> list[Event]:
    """The forward passes in a loop to which the mode may make a difference: not those of a loss, or of what is fixed.

    Where it surely makes none to any of them, or that is not known, there are none. Beside what is trained, what is
    never updated decides nothing: the network of a perceptual loss, a teacher.
    """
    run = found.found.run
    matters = {id(forward): mode_matters(forward, run) for forward in found.forwards}
    is_known = True in matters.values()
    asking = [forward for forward in found.forwards if _asks(run, forward, matters[id(forward)], is_known)]
    trained = [forward for forward in asking if forward.thing is not None and learns(run, forward.thing)]
    return trained or asking


def _asks(run: Run, forward: Event, matters: bool | None, is_known: bool) -> bool:
    if matters is not None or forward.thing is None:
        return matters is True
    return is_known and is_trained(run, forward.thing)


def _trains_while_it_evaluates(found: DataRound, forward: Event) -> bool:
    run, module, loop = found.found.run, forward.thing, found.found.loop
    assert module is not None
    assert isinstance(loop.node, cst.For)
    is_evaluation = (
        role_of(loop.frame, loop.node.iter) == EVALUATION
        or is_without_training(found.found)
        or records_graph(forward) is False
        or (_is_called_evaluation(found) and not hands_on(found))
    )
    if (
        not is_evaluation
        or not (_is_over_evaluation_data(found) or _is_over_data_behind_training(found, forward))
        or is_dropped(forward)
        or is_told_its_mode(forward)
        or (is_made_evaluating(forward) and not is_switched_to_training(run, module, forward))
    ):
        return False
    modes = modes_before(run, module, forward)
    if not modes or not is_put_to_training(modes):
        return False
    if not is_trained(run, module) and is_copy_of_trained(run, module):
        # A teacher may well be meant to learn from what it says in training mode of the data to train with.
        return TRAINED in modes and _is_called_evaluation(found)
    if TRAINED in modes and is_trained(run, module):
        return not is_made_of_evaluated(run, forward)
    # Where others were trained before, only one that is loaded is there to be evaluated.
    if TRAINED in modes and (load_before(run, forward) is None or is_switched_to_training(run, module, forward)):
        return False
    return _is_left_as_made(run, module, forward) and not is_made_of_evaluated(run, forward)


def is_made_evaluating(forward: Event) -> bool:
    """Whether a module may be in evaluation mode as it is made: a file says so, or its constructor switches it."""
    ways = ways_made(forward)
    definitions = [way.definition for way in ways if way is not None and way.definition is not None]
    return has_mode_from_file(forward) or any(map(puts_itself_to_evaluation, definitions))


def _is_left_as_made(run: Run, module: Thing, forward: Event) -> bool:
    """Whether a module is made in a run, and neither who makes it nor it itself switches its mode.

    So is a part of it, which one of its methods calls.
    """
    if not is_made_within(run, Thing(module.roots)) or (module.path and not all(map(_is_made_module, module.roots))):
        return False
    ways = ways_made(forward)
    if not ways or any(way is None or (way.definition and switches_itself(way.definition)) for way in ways):
        return False
    return not is_switched_by_maker(module)


def _is_made_module(root: Binding | ClassInfo) -> bool:
    """Whether a name is bound to a module of a class of the project that is made there."""
    value = root.scope.model.binding_value(root) if isinstance(root, Binding) else None
    return isinstance(value, Module) and value.definition is not None and value.call is not None


def _is_over_evaluation_data(found: DataRound) -> bool:
    """Whether a loop runs over a loader, or what is called test data: no list of samples, none of cases of a test."""
    loop = found.found.loop
    assert isinstance(loop.node, cst.For)
    if isinstance(loop.frame.value(loop.node.iter), (Elements, Mapping)):
        return False
    return (
        is_over_loader(loop.frame, loop.node.iter)
        or _is_called_evaluation(found)
        or role_of(loop.frame, loop.node.iter) == EVALUATION
    )


def _is_over_data_behind_training(found: DataRound, forward: Event) -> bool:
    node = found.found.loop.node
    is_listed = isinstance(node, cst.For) and isinstance(found.found.loop.frame.value(node.iter), (Elements, Mapping))
    return not is_listed and records_graph(forward) is False and is_behind_training(found.found.run, forward)


def _evaluated(model: "Model", node: cst.For) -> Iterator[tuple[Frame, Event]]:
    """The forward passes in a loop that are left in training mode, and the run of the loop."""
    for item in rounds_of(model.runs.loops_at(node)):
        for forward in _left_in_training(item, _asking_for_mode(item)):
            yield item.found.loop.frame, forward


def evaluated_module(model: "Model", node: cst.For) -> str | None:
    """The one module that a loop of a file evaluates, as it is written in the function of the loop."""
    written = {written_module(forward, frame) for frame, forward in _evaluated(model, node)}
    return written.pop() if len(written) == 1 else None


def lacks_switch(model: "Model", node: cst.For | cst.Call) -> bool:
    """Whether what a loop or a call evaluates has a ``train`` of its own in the place of the switch."""
    if isinstance(node, cst.Call):
        return has_own_train(model.value(node.func))
    return any(has_own_train(module_called(forward)) for _, forward in _evaluated(model, node))


# -- what is wanted of the gradients -----------------------------------------------------------------------------------


def _wants_gradients(found: DataRound, words: frozenset[str] = GRADIENT_WORDS) -> bool:
    """Whether a word of gradients stands in the loop, or in a function of the project or a module called from it."""
    loop = found.found.loop
    if any(computes_gradients(forward) for forward in found.forwards):
        return True
    function, named = loop.frame.function, loop.frame.model.names_by_word
    if function is not None and not GRAPH_WORDS.isdisjoint(named) and says_gradients(function.node.body, GRAPH_WORDS):
        return True
    if all(records_graph(forward) is False for forward in found.forwards):
        words -= {"set_grad_enabled"}  # which is what switches them off
    bodies: dict[int, tuple[Frame, cst.CSTNode]] = {id(loop.node): (loop.frame, loop.node)}
    for event in events(loop.body):
        if event.frame is not loop.frame and event.frame.function is not None:
            bodies[id(event.frame.function.node)] = (event.frame, event.frame.function.node)
    called = {forward.thing for forward in found.forwards if forward.thing is not None}
    return any(says_gradients(body, words, at) or puts_module_aside(body, at, called) for at, body in bodies.values())
