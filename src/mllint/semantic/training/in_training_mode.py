"""Loops that evaluate a model in training mode."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event, Helper, Kind
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.called_modules import is_loss, is_out_of_sight, module_called, ways_made
from mllint.semantic.training.data_loops import EVALUATION, role_of
from mllint.semantic.training.data_rounds import DataRound, all_rounds, hands_on, is_over_loader, rounds_of
from mllint.semantic.training.evaluation import (
    is_called_evaluation,
    is_evaluated,
    is_recording,
    some_rounds,
    wants_gradients,
)
from mllint.semantic.training.left_as_comments import is_taken_out
from mllint.semantic.training.loaded_weights import load_before
from mllint.semantic.training.made_in_mode import (
    has_own_train,
    is_switched_by_maker,
    puts_itself_to_evaluation,
    switches_itself,
)
from mllint.semantic.training.nearby import calls_what_was_switched
from mllint.semantic.training.outputs import are_detached, is_dropped
from mllint.semantic.training.put_back import is_put_back
from mllint.semantic.training.runs import Run
from mllint.semantic.training.sisters import is_left_by_sister, is_switched_in_class
from mllint.semantic.training.training_modes import (
    EVAL,
    FRESH,
    TRAIN,
    TRAINED,
    has_mode_from_file,
    is_copy_of_trained,
    is_made_of_evaluated,
    is_made_within,
    is_one,
    is_switched_to_training,
    is_trained,
    learns,
    mode_matters,
    modes_before,
    records_graph,
)
from mllint.semantic.training.turns import is_behind_training, is_without_training
from mllint.semantic.values import Elements, Instance, Mapping, Module
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def evaluates_in_training_mode(model: "Model", node: cst.For) -> bool:
    """Whether a loop surely evaluates a model that is in training mode, on every way there.

    Or on some, without gradients, while those who lead there on all others have switched it.
    """
    if is_test_code(model) or calls_what_was_switched(model, node):
        return False
    if all_rounds(model, node, _is_in_training_mode, _may_train, any):
        return True
    left = some_rounds(model, node, lambda item: not _is_switched(item), _may_be_left)
    return bool(left) and all(_may_be_left(item) and _is_in_training_mode(item) for item in left)


def _may_be_left(found: DataRound) -> bool:
    return _may_train(found) and not is_recording(found)


def _is_switched(found: DataRound) -> bool:
    """Whether all that asks for its mode was put to evaluation mode."""
    # For what is in evaluation mode nobody need read the classes of all its layers.
    run = found.found.run
    return all(is_evaluated(run, forward) or mode_matters(forward) is False for forward in found.forwards)


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
    if found.found.run.is_cut or wants_gradients(found) or _is_meant(found.found.run, found.forwards):
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
    matters = {id(forward): _mode_matters(run, forward) for forward in found.forwards}
    is_known = True in matters.values() or is_one_switched(run, found.forwards)
    asking = [forward for forward in found.forwards if _asks(run, forward, matters[id(forward)], is_known)]
    trained = [forward for forward in asking if forward.thing is not None and learns(run, forward.thing)]
    return trained or asking


def _mode_matters(run: Run, forward: Event) -> bool | None:
    """Whether the mode makes a difference to a module, also to go by what others, or the function itself, do for it."""
    matters = mode_matters(forward, run)
    is_taken_to = matters is None and (
        is_put_back(run, forward) or is_left_by_sister(run, forward) or is_switched_in_class(forward)
    )
    return True if is_taken_to else matters


def _asks(run: Run, forward: Event, matters: bool | None, is_known: bool) -> bool:
    if matters is not None or forward.thing is None:
        return matters is True
    return is_known and is_trained(run, forward.thing)


def _trains_while_it_evaluates(found: DataRound, forward: Event) -> bool:
    run, module, loop = found.found.run, forward.thing, found.found.loop
    assert module is not None
    assert isinstance(loop.node, cst.For)
    is_back = is_put_back(run, forward)
    is_evaluation = (
        ((is_back or load_before(run, forward) is not None) and are_detached(found.forwards))
        or role_of(loop.frame, loop.node.iter) == EVALUATION
        or is_without_training(found.found)
        or records_graph(forward) is False
        or (is_called_evaluation(found) and not hands_on(found))
    )
    if (
        not is_evaluation
        or not (is_back or _is_over_evaluation_data(found) or _is_over_data_behind_training(found, forward))
        or is_dropped(forward)
        or is_told_its_mode(forward)
        or (is_made_evaluating(forward) and not is_switched_to_training(run, module, forward))
    ):
        return False
    modes = modes_before(run, module, forward)
    if not modes or not is_put_to_training(modes):
        return False
    if is_back or is_left_by_sister(run, forward):
        return True
    if not is_trained(run, module) and is_copy_of_trained(run, module):
        # A teacher may well be meant to learn from what it says in training mode of the data to train with.
        return TRAINED in modes and is_called_evaluation(found)
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
        or is_called_evaluation(found)
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


def is_switched_on_behind(model: "Model", node: cst.For) -> bool:
    """Whether the function of a loop itself puts what the loop evaluates to training mode behind it."""
    rounds = rounds_of(model.runs.loops_at(node))
    return any(is_put_back(item.found.run, forward) for item in rounds for forward in item.forwards)


def lacks_switch(model: "Model", node: cst.For | cst.Call) -> bool:
    """Whether what a loop or a call evaluates has a ``train`` of its own in the place of the switch."""
    if isinstance(node, cst.Call):
        return has_own_train(model.value(node.func))
    return any(has_own_train(module_called(forward)) for _, forward in _evaluated(model, node))


def written_module(forward: Event, frame: Frame) -> str | None:
    """The module of ``net(x)``, of ``net.forward(x)``, and of ``net.encode(x)``, if that is what a run calls."""
    if forward.frame is frame:
        called = dotted_path(forward.called or forward.node)
        return None if called is None else called.removesuffix(".forward")
    for step in (around.step for around in forward.around):
        if isinstance(step, Helper) and step.frame.caller is frame and isinstance(step.node.func, cst.Attribute):
            return _written_of_object(frame, step.node.func.value, forward)
    return None


def _written_of_object(frame: Frame, node: cst.BaseExpression, forward: Event) -> str | None:
    """The module that a method of an object calls: the object itself, or of one that is none what it keeps."""
    holder, path = frame.thing(node), dotted_path(node)
    if holder is None or path is None or not _holds(holder, forward) or forward.thing is None:
        return None
    kept = forward.thing.path[len(holder.path) :]
    if not isinstance(frame.value(node), Instance):
        return path
    return path + "".join(kept) if kept and all(part.startswith(".") for part in kept) else None


def _holds(holder: Thing, forward: Event) -> bool:
    """Whether what a forward pass calls is a thing, or a part of it."""
    part = forward.thing
    return part is not None and holder.roots == part.roots and part.path[: len(holder.path)] == holder.path


def are_left_in_training(run: Run, left: list[Event], asking: list[Event]) -> bool:
    """Whether forward passes that run in training mode are all to which the mode makes a difference.

    Where a loop is trained for several modules, and the others are put to evaluation mode, those count that are surely
    not: one was forgotten.
    """
    others = [forward for forward in asking if forward not in left]
    return bool(left) and (not others or all(_is_forgotten_beside(run, forward, others) for forward in left))


def is_one_switched(run: Run, forwards: Iterable[Event]) -> bool:
    """Whether a module of a class out of sight is trained in a run, and in evaluation mode.

    Who switches it takes the mode to matter, for those that are trained with it, too.
    """
    return any(
        forward.thing is not None
        and is_out_of_sight(forward)
        and modes_before(run, forward.thing, forward) == {EVAL}
        and is_trained(run, forward.thing)
        for forward in forwards
    )


def _is_forgotten_beside(run: Run, forward: Event, others: list[Event]) -> bool:
    """Whether a module is left in the mode of its training where others, which are trained with it, are switched."""
    module = forward.thing
    if module is None or TRAINED not in modes_before(run, module, forward):
        return False
    matters = mode_matters(forward, run)
    if matters is None:
        matters = is_out_of_sight(forward) and not is_loss(forward)
    return matters and all(_is_switched_beside(run, item, module) for item in others)


def _is_switched_beside(run: Run, other: Event, module: Thing) -> bool:
    """Whether another module is trained, too, and is in evaluation mode."""
    switched = other.thing
    if switched is None or is_one(switched, module) or not is_trained(run, switched):
        return False
    return modes_before(run, switched, other) == {EVAL}


_MODE_WORDS = ("training", "train", "is_training", "is_train")
"""What a forward pass calls the mode that it is given."""


def is_told_its_mode(forward: Event) -> bool:
    """Whether a forward pass is told what it is for, and the module may make something of it.

    Where its class is in sight, and does nothing with it but to choose what it gives back, the layers have their modes.

    ``net(x, train=False)``.
    """
    args = forward.node.args if isinstance(forward.node, cst.Call) else ()
    words = [arg.keyword.value for arg in args if arg.keyword is not None and arg.keyword.value in _MODE_WORDS]
    return bool(words) and not all(_only_chooses_results(forward, word) for word in words)


def _only_chooses_results(forward: Event, word: str) -> bool:
    methods = list(_methods_run(forward))
    return bool(methods) and all(item is not None and _leaves_layers_alone(item, word) for item in methods)


def _methods_run(forward: Event) -> Iterator[FunctionInfo | None]:
    """What runs in each of the modules of which a forward pass calls one; ``None`` among them for what is not known."""
    value = module_called(forward)
    known = isinstance(value, Module) and value.definition is not None
    for way in (value,) if known else ways_made(forward):
        definition = way.definition if isinstance(way, Module) else None
        yield None if definition is None else definition.called


def _leaves_layers_alone(method: FunctionInfo, word: str) -> bool:
    """Whether a method takes a flag only to ask for it, and calls nothing of its object for the answer."""
    if not any(item.name.value == word for item in method.parameters):
        return False
    tree = method.model.tree
    used = [item for item in subtree(method.node.body) if type(item) is cst.Name and item.value == word]
    tests = [_asked_in(tree.parents, item) for item in used]
    return all(test is not None and not _calls_own(method, _hanging_on(method, test)) for test in tests)


def _asked_in(parents: dict[int, cst.CSTNode], name: cst.CSTNode) -> cst.If | cst.IfExp | None:
    """What a flag decides: ``if train:``, ``if not train:``, ``a if train else b``."""
    child, parent = name, parents.get(id(name))
    while isinstance(parent, (cst.UnaryOperation, cst.BooleanOperation, cst.Comparison)):
        child, parent = parent, parents.get(id(parent))
    return parent if isinstance(parent, (cst.If, cst.IfExp)) and parent.test is child else None


def _hanging_on(method: FunctionInfo, test: cst.If | cst.IfExp) -> Iterator[cst.CSTNode]:
    """What is run for one answer alone: the arms, and where one leaves the method, what comes behind."""
    yield test.body
    if test.orelse is not None:
        yield test.orelse
    if isinstance(test, cst.If) and any(isinstance(item, cst.Return) for item in subtree(test)):
        child: cst.CSTNode = test
        for parent in method.model.tree.ancestors(test):
            if isinstance(parent, cst.IndentedBlock):
                place = next(index for index, item in enumerate(parent.body) if item is child)
                yield from parent.body[place + 1 :]
            if parent is method.node:
                return
            child = parent


def _calls_own(method: FunctionInfo, parts: Iterator[cst.CSTNode]) -> bool:
    calls = (item for part in parts for item in subtree(part) if type(item) is cst.Call)
    return any((dotted_path(call.func) or "self.").startswith(f"{method.self_name}.") for call in calls)
