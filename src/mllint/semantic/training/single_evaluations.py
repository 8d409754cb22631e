"""Evaluations without a loop over the data: all of it at once, or one batch, of a model in training mode."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.kinds import may_name_module
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.data_loops import (
    data_names,
    is_named_evaluation,
    is_next,
)
from mllint.semantic.training.data_rounds import is_given_output
from mllint.semantic.training.in_training_mode import is_made_evaluating, is_put_to_training
from mllint.semantic.training.left_as_comments import is_taken_out
from mllint.semantic.training.made_up import are_made_up, is_made_up
from mllint.semantic.training.nearby import may_be_in_training_mode
from mllint.semantic.training.outputs import is_dropped, is_used_for_backward
from mllint.semantic.training.put_back import is_put_back
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.single_passes import calls_in, is_of_round, runs_pass
from mllint.semantic.training.sisters import is_left_by_sister
from mllint.semantic.training.training_modes import (
    TRAINED,
    is_switched_to_training,
    is_trained,
    mode_matters,
    modes_before,
    records_graph,
    training_forwards,
)
from mllint.semantic.training.turns import is_behind_training, steps_several
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, says_gradients
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_BY_HAND = GRADIENT_WORDS - {"backward", "requires_grad", "requires_grad_", "stop_gradient", "set_grad_enabled"}
"""Words of code that computes gradients otherwise than by ``backward()``."""


def single_evaluations(model: "Model", node: cst.With | cst.FunctionDef) -> Iterator[cst.Call]:
    """The forward passes right in a block without gradients that surely evaluate a model in training mode."""
    if is_test_code(model):
        return
    calls = [call for call in calls_in(node) if may_be_in_training_mode(model, call) or runs_pass(model, call)]
    if not calls or says_gradients(model, node.body):
        return
    for call in calls:
        if runs_pass(model, call):
            found = _asking_passes(model, call)
            is_meant = bool(found) and all(_is_helped_in_training_mode(call, item) for item in found)
        else:
            is_meant = model.runs.always(call, partial(_is_in_training_mode, call), accelerated=True)
        if is_meant:
            yield call


def _asking_passes(model: "Model", call: cst.Call) -> list[Occurrence]:
    """The forward passes in a function that a call runs, each time, of what may ask for its mode."""
    inside = (item for item in model.runs.within(call, accelerated=True) if item.event.kind is Kind.FORWARD)
    return [item for item in inside if mode_matters(item.event, item.run) is not False]


def _is_helped_in_training_mode(call: cst.Call, occurrence: Occurrence) -> bool:
    """Whether a forward pass in a function evaluates in training mode, to go by the call that runs the function."""
    run, forward = occurrence.run, occurrence.event
    caller = forward.frame.caller
    if caller is None or records_graph(forward) is not False or is_of_round(forward):
        return False
    if are_made_up(caller.model, [arg.value for arg in call.args]):
        return False
    name = "" if caller.function is None else caller.function.name
    is_asked = (is_named_evaluation(name) or _is_given_test_data(caller.model, call)) and not steps_several(run)
    return (is_asked or is_behind_training(run, forward)) and _is_of_trained(run, forward)


def evaluations_with_graph(model: "Model", function: cst.FunctionDef) -> Iterator[cst.Call]:
    """The forward passes right in a function called an evaluation that records a graph, but trains nothing with it."""
    name = function.name.value
    if not is_named_evaluation(name) or name.startswith("test_") or is_test_code(model):
        return
    if says_gradients(model, function.body):
        return
    for call in calls_in(function):
        if may_be_in_training_mode(model, call) and model.runs.always(call, _is_kept_from_training, accelerated=True):
            yield call


def evaluations_behind_training(model: "Model") -> Iterator[cst.Call]:
    """The forward passes of all the test data at once, when all training of the run is over, that record a graph.

    Those in a function that is called an evaluation are left to the questions about it.
    """
    if is_test_code(model):
        return
    used = {path.rpartition(".")[2] for path in model.runs.used_as_modules}
    for word in (word for word in model.calls_by_word if word in used or may_name_module(word)):
        for call in model.calls_by_word[word]:
            function = model.enclosing_function(call)
            if function is not None and is_named_evaluation(function.name.value):
                continue
            is_asked = may_be_in_training_mode(model, call) and _is_given_test_data(model, call)
            if is_asked and model.runs.always(call, partial(_is_graph_behind_training, call), accelerated=True):
                yield call


def _is_graph_behind_training(call: cst.Call, occurrence: Occurrence) -> bool:
    """Whether a forward pass of all the test data, behind all the training, records a graph, as nobody meant it to."""
    run, forward = occurrence.run, occurrence.event
    if not records_graph(forward) or not is_behind_training(run, forward) or not _is_of_trained(run, forward):
        return False
    model = forward.frame.model
    is_batch = is_of_round(forward) and not any(map(_is_batch_of_its_own, _test_data_behind(model, call)))
    return not is_batch and _is_only_looked_at(run, forward)


def _is_only_looked_at(run: Run, forward: Event) -> bool:
    """Whether no gradients are computed from an output, and nobody who cannot be looked into may do so."""
    function = forward.frame.function
    body = forward.frame.model.tree.module if function is None else function.node.body
    if says_gradients(forward.frame.model, body, _BY_HAND) or is_used_for_backward(run, forward.frame, forward.node):
        return False
    unknown = (event for event in run.events if event.kind is Kind.UNKNOWN and event.frame is forward.frame)
    return not any(is_given_output(event, forward) for event in unknown)


def evaluations_of_drawn_batches(model: "Model") -> Iterator[cst.Call]:
    """The forward passes of a batch of test data, ``next(iter(test_loader))``, that record a graph but train nothing.

    Between the rounds of its training a model is asked how it does on one.
    """
    if is_test_code(model):
        return
    for drawn in model.calls_by_word.get("next", ()):
        if not is_next(drawn) or not any(map(is_named_evaluation, _drawn_from(model, drawn))):
            continue
        for call in _fed_behind(model, drawn):
            if not may_be_in_training_mode(model, call):
                continue
            if model.runs.always(call, _is_drawn_beside_training, accelerated=True):
                yield call


def _drawn_from(model: "Model", drawn: cst.Call) -> set[str]:
    """The names of what ``next()`` takes a batch from, and of what an iterator is made of."""
    names = [item for arg in drawn.args for item in subtree(arg.value) if type(item) is cst.Name]
    made = (item.value for name in names for item in model.reaching(name) if item.kind is BindingKind.ASSIGN)
    return {name.value for name in names}.union(*(data_names(value) for value in made if value is not None))


def _fed_behind(model: "Model", drawn: cst.Call) -> Iterator[cst.Call]:
    """The calls behind the statement that draws a batch, in the same block, that are given it or what is made of it."""
    statement = model.tree.parent(drawn)
    line = None if statement is None else model.tree.parent(statement)
    block = None if line is None else model.tree.parent(line)
    if not isinstance(statement, cst.Assign) or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return
    fed = {name for target in statement.targets for name in names_in(target.target)}
    place = next(position for position, item in enumerate(block.body) if item is line)
    for part in (part for item in block.body[place + 1 :] for part in subtree(item)):
        if type(part) is cst.Assign and fed & data_names(part.value):
            fed |= {name for target in part.targets for name in names_in(target.target)}
        elif type(part) is cst.Call and any(fed & names_in(arg) for arg in part.args):
            yield part


def _is_drawn_beside_training(occurrence: Occurrence) -> bool:
    """Whether a forward pass of a drawn batch evaluates what a loop around it trains.

    Where several optimizers step, networks play against each other: what they make is only looked at.
    """
    run, forward = occurrence.run, occurrence.event
    if steps_several(run):
        return False
    if not records_graph(forward) or forward in training_forwards(run) or not _is_of_trained(run, forward):
        return False
    return _is_only_looked_at(run, forward)


def _is_kept_from_training(occurrence: Occurrence) -> bool:
    run, forward = occurrence.run, occurrence.event
    if forward in training_forwards(run) or forward.frame.caller is None or not forward.loops:
        return False
    return not is_of_round(forward) and _is_of_trained(run, forward)


def _is_given_test_data(model: "Model", call: cst.Call) -> bool:
    """Whether what a call is given is called test or validation data, or what that was taken from is."""
    given = [name for arg in call.args for name in names_in(arg)]
    return any(map(is_named_evaluation, given)) or any(True for _ in _test_data_behind(model, call))


def _test_data_behind(model: "Model", call: cst.Call) -> Iterator[Binding]:
    """What binds the names in the arguments of a call to something of what is called test or validation data."""
    names = (item for arg in call.args for item in subtree(arg.value) if type(item) is cst.Name)
    for binding in (binding for name in names for binding in model.reaching(name)):
        is_taken = binding.kind is BindingKind.ASSIGN or type(binding.node) is cst.CompFor
        if is_taken and binding.value is not None and any(map(is_named_evaluation, data_names(binding.value))):
            yield binding


def _is_batch_of_its_own(binding: Binding) -> bool:
    """Whether a name is bound to a batch of ``next(iter(loader))``, or by a comprehension to one after the other."""
    return type(binding.node) is cst.CompFor or (binding.value is not None and is_next(binding.value))


def _is_in_training_mode(call: cst.Call, occurrence: Occurrence) -> bool:
    run, forward = occurrence.run, occurrence.event
    name = "" if forward.frame.function is None else forward.frame.function.name
    model = forward.frame.model
    is_asked = is_named_evaluation(name) or _is_given_test_data(model, call)
    # Adversaries are looked at while they train, or asked how far they are.
    is_evaluation = (is_asked and not steps_several(run)) or is_behind_training(run, forward)
    if records_graph(forward) is not False:
        return False
    is_batch = is_of_round(forward) and not any(map(_is_batch_of_its_own, _test_data_behind(model, call)))
    if is_batch:
        return False
    return (is_evaluation and _is_of_trained(run, forward)) or _is_left_to_others(run, forward, is_named=is_asked)


def _is_left_to_others(run: Run, forward: Event, *, is_named: bool) -> bool:
    """Whether a forward pass takes the mode as it finds it, and what comes behind it in its function, or other methods
    of the class do, show that it should not. Of several passes of a module it is the first.
    """
    module = forward.thing
    if forward.kind is not Kind.FORWARD or module is None or mode_matters(forward, run) is False:
        return False
    if is_dropped(forward) or is_taken_out(forward) or is_made_up(forward) or _is_drawn_from(forward):
        return False
    if is_made_evaluating(forward) or is_used_for_backward(run, forward.frame, forward.node):
        return False
    first = next(item for item in run.events if item.kind is Kind.FORWARD and item.thing == module)
    return first is forward and (is_put_back(run, forward) or is_left_by_sister(run, forward, is_named=is_named))


def _is_drawn_from(forward: Event) -> bool:
    """Whether a function draws from what it computes: the next word of a text, which somebody reads."""
    model, function = forward.frame.model, forward.frame.function
    body = None if function is None else function.node
    return any(model.enclosing_function(call) is body for call in model.calls_by_word.get("multinomial", ()))


def _is_of_trained(run: Run, forward: Event) -> bool:
    """Whether the output is wanted of a model that is in the training mode of its own training."""
    module = forward.thing
    if forward.kind is not Kind.FORWARD or module is None or run.is_cut:
        return False
    if is_made_evaluating(forward) and not is_switched_to_training(run, module, forward):
        return False
    if is_dropped(forward) or is_taken_out(forward) or is_made_up(forward) or _is_drawn_from(forward):
        return False
    modes = modes_before(run, module, forward)
    return (
        TRAINED in modes and is_put_to_training(modes) and bool(mode_matters(forward, run)) and is_trained(run, module)
    )
