"""Evaluations without a loop over the data: all of it at once, or one batch, where no graph is recorded."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.kinds import may_name_module
from mllint.semantic.events.steps import Event, Kind, Loop, events
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.weights import is_trainable
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.adversaries import is_held_by_another, may_be_attacked
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.callers import may_run_without_gradients
from mllint.semantic.training.data_loops import (
    data_names,
    fed_names,
    is_named_evaluation,
    is_next,
    may_be_forward_pass,
)
from mllint.semantic.training.data_rounds import TRAINING, is_given_output, loop_over_data
from mllint.semantic.training.evaluation import evaluates_with_graph
from mllint.semantic.training.frozen import is_frozen
from mllint.semantic.training.handed_on import as_given
from mllint.semantic.training.in_training_mode import is_made_evaluating, is_put_to_training
from mllint.semantic.training.made_up import is_made_up
from mllint.semantic.training.nearby import may_be_in_training_mode
from mllint.semantic.training.outputs import is_detached, is_dropped, is_used_for_backward
from mllint.semantic.training.put_back import is_put_back
from mllint.semantic.training.relevance import is_pass
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.sisters import is_left_by_sister
from mllint.semantic.training.training_modes import (
    EVAL,
    TRAINED,
    is_switched_to_training,
    is_taken_out,
    is_trained,
    mode_matters,
    modes_before,
    records_graph,
    training_forwards,
)
from mllint.semantic.training.turns import is_behind_training, steps_several
from mllint.semantic.training.wanted_gradients import (
    GRADIENT_WORDS,
    computes_gradients,
    is_of_volatile,
    only_generates,
    says_gradients,
)
from mllint.semantic.values import Function, Module
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import children, names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

OFF = ("no_grad", "inference_mode")
"""What switches gradients off for a block or a function, to go by the words."""

_BY_HAND = GRADIENT_WORDS - {"backward", "requires_grad", "requires_grad_", "stop_gradient", "set_grad_enabled"}
"""Words of code that computes gradients otherwise than by ``backward()``."""
_OF_THEIR_OWN = frozenset({cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.CompFor})


def single_evaluations(model: "Model", node: cst.With | cst.FunctionDef) -> Iterator[cst.Call]:
    """The forward passes right in a block without gradients that surely evaluate a model in training mode."""
    if is_test_code(model):
        return
    calls = [call for call in _calls_in(node) if may_be_in_training_mode(model, call)]
    if not calls or says_gradients(node.body):
        return
    for call in calls:
        if model.runs.always(call, partial(_is_in_training_mode, call), accelerated=True):
            yield call


def evaluations_with_graph(model: "Model", function: cst.FunctionDef) -> Iterator[cst.Call]:
    """The forward passes right in a function called an evaluation that records a graph, but trains nothing with it."""
    name = function.name.value
    if not is_named_evaluation(name) or name.startswith("test_") or is_test_code(model):
        return
    if says_gradients(function.body):
        return
    for call in _calls_in(function):
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
    is_batch = _is_of_round(forward) and not any(map(_is_batch_of_its_own, _test_data_behind(model, call)))
    return not is_batch and _is_only_looked_at(run, forward)


def _is_only_looked_at(run: Run, forward: Event) -> bool:
    """Whether no gradients are computed from an output, and nobody who cannot be looked into may do so."""
    function = forward.frame.function
    body = forward.frame.model.tree.module if function is None else function.node.body
    if says_gradients(body, _BY_HAND) or is_used_for_backward(run, forward.frame, forward.node):
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
    return not _is_of_round(forward) and _is_of_trained(run, forward)


def evaluations_recorded(model: "Model", function: cst.FunctionDef) -> Iterator[cst.Call]:
    """The forward passes right in a function that surely evaluate a model in evaluation mode, and record a graph.

    All of the data goes through the model at once, such as a graph in a graph network, in a run that trains it too.
    So it does by a method of the model that only calls the model itself. Of several in statements one right behind the
    other it is the first.
    """
    found = list(_evaluations(model, function))
    return _first_of_neighbours(model, found, found)


def _evaluations(model: "Model", function: cst.FunctionDef) -> Iterator[cst.Call]:
    name = function.name.value
    if not is_named_evaluation(name) or name.startswith("test_") or says_gradients(function.body):
        return
    for call in _calls_in(function):
        if _calls_by_method(model, call):
            inside = list(model.runs.within(call, accelerated=True))
            if (
                inside
                and all(map(_is_recorded_for_nothing, inside))
                and not isinstance(model.tree.parent(call), cst.Expr)
            ):
                yield call
        elif may_be_forward_pass(model, call) and model.runs.always(call, _is_recorded_for_nothing, accelerated=True):
            yield call


def _calls_by_method(model: "Model", call: cst.Call) -> bool:
    """Whether a method of a module of the project is called from outside that may be one of its forward passes."""
    called = model.value(call.func)
    if not isinstance(called, Function) or not isinstance(called.receiver, Module):
        return False
    method = called.definition
    return method.name != "forward" and is_pass(called) and not says_gradients(method.node.body)


def inferences_recorded(model: "Model", switch: cst.Call) -> Iterator[cst.Call]:
    """The forward passes that record a graph, but are detached from it wherever they are read, of a model that a call
    in the same body puts to evaluation mode. Where a loop is reported, those in it are left to that. Of several in
    statements one right behind the other, of whichever models the body switches, it is the first.
    """
    home, found = model.enclosing_function(switch), _inferences(model, switch)
    others = (item for item in model.calls_by_word.get("eval", ()) if found and model.enclosing_function(item) is home)
    return _first_of_neighbours(model, found, [call for other in others for call in _inferences(model, other)])


@worked_out_once
def _inferences(model: "Model", switch: cst.Call) -> list[cst.Call]:
    return list(_find_inferences(model, switch))


def _find_inferences(model: "Model", switch: cst.Call) -> Iterator[cst.Call]:
    path = dotted_path(switch.func.value) if isinstance(switch.func, cst.Attribute) and not switch.args else None
    if path is None:
        return
    function = model.enclosing_function(switch)
    for call in _passes_of(model, path):
        if model.enclosing_function(call) is not function:
            continue
        if model.gradients.off(call) is True:
            continue  # as its body says: no run need be followed
        body = model.tree.module if function is None else function.body
        loops = list(model.tree.loops_around(call))
        # A single graph of what is only looked at is gone at once; those of all the rounds take their time.
        is_read = is_detached(model, call, also_places=bool(loops))
        if not is_read or says_gradients(body, GRADIENT_WORDS - {"backward"}):
            continue
        inferred = partial(_is_inferred_with_graph, beside_training=says_gradients(body))
        if _holds_of_passes(model, call, inferred) and not any(evaluates_with_graph(model, loop) for loop in loops):
            yield call


def _first_of_neighbours(model: "Model", found: list[cst.Call], beside: list[cst.Call]) -> Iterator[cst.Call]:
    """Of the forward passes in statements one right behind the other the first: what is put around it takes them in."""
    holders = {id(_statement(model, call)) for call in beside}
    for call in found:
        statement = _statement(model, call)
        block = None if statement is None else model.tree.parent(statement)
        body = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
        at = next((index for index, item in enumerate(body) if item is statement), 0)
        if at == 0 or id(body[at - 1]) not in holders:
            yield call


def _statement(model: "Model", call: cst.Call) -> cst.CSTNode | None:
    return model.tree.nearest(call, cst.SimpleStatementLine)


def _passes_of(model: "Model", path: str) -> Iterator[cst.Call]:
    """The calls in a file of what has a name: also by ``forward``, or by a method of a known class that calls parts."""
    for word in (path.rpartition(".")[2], "forward"):
        yield from (
            call for call in model.calls_by_word.get(word, ()) if dotted_path(call.func) in (path, f"{path}.forward")
        )
    for name in model.names_by_word.get(path.rpartition(".")[2], ()):
        parent = model.tree.parent(name)
        whole = parent if isinstance(parent, cst.Attribute) and parent.attr is name else name
        method = model.tree.parent(whole)
        call = model.tree.parent(method) if isinstance(method, cst.Attribute) and method.value is whole else None
        is_called = isinstance(call, cst.Call) and call.func is method and dotted_path(whole) == path
        if isinstance(call, cst.Call) and is_called and _calls_by_method(model, call):
            yield call


def _holds_of_passes(model: "Model", call: cst.Call, holds: Callable[[Occurrence], bool]) -> bool:
    """Whether something holds of the forward pass that a call is, or of all in the method that it calls, every time."""
    if not _calls_by_method(model, call):
        return model.runs.always(call, holds, accelerated=True)
    inside = [item for item in model.runs.within(call, accelerated=True) if item.event.kind is Kind.FORWARD]
    return bool(inside) and all(map(holds, inside)) and not isinstance(model.tree.parent(call), cst.Expr)


def _is_inferred_with_graph(occurrence: Occurrence, *, beside_training: bool) -> bool:
    run, forward = occurrence.run, occurrence.event
    if forward.kind is not Kind.FORWARD or forward.thing is None or run.is_cut or not records_graph(forward):
        return False
    if beside_training and not is_trained(run, forward.thing):
        return False  # what the body computes gradients of by `backward()` is something else: an input, say
    if _is_of_round(forward) or any(_is_left(loop, forward) for loop in forward.loops if loop.frame is forward.frame):
        return False
    if is_dropped(forward) or is_made_up(forward) or _is_all_of_a_script(run, forward):
        return False
    if is_frozen(run, (forward,)) or computes_gradients(forward) or _switches_gradients_off_itself(forward):
        return False
    if forward.called is None or not is_trainable(forward.frame.model, forward.called):
        return False
    return modes_before(run, forward.thing, forward) == {EVAL} and not may_run_without_gradients(run.frame.function)


def _is_all_of_a_script(run: Run, forward: Event) -> bool:
    """Whether a script runs its model once, and does not train it, or nothing any more: no graph outlives another."""
    if run.frame.function is not None or forward.loops or forward.thing is None:
        return False
    later = run.events[run.events.index(forward) :]
    return not any(event.kind in TRAINING for event in later) or not is_trained(run, forward.thing)


def _is_left(loop: Loop, forward: Event) -> bool:
    """Whether a loop is over modules or the like, or something out of sight in it may attack the model."""
    if isinstance(loop.node, cst.CompFor) or may_be_attacked(loop, forward):
        return True
    return is_held_by_another(events(loop.body), (forward,))


def _switches_gradients_off_itself(forward: Event) -> bool:
    """Whether the method that a module's call runs may run without gradients, to go by the words in it.

    Or on volatile variables, to go by the words around.
    """
    value = module_called(forward)
    method = value.definition.called if isinstance(value, Module) and value.definition is not None else None
    words = () if method is None else (node.value for node in subtree(method.node) if type(node) is cst.Name)
    return any(word in OFF for word in words) or is_of_volatile(forward) or only_generates(forward)


def _is_recorded_for_nothing(occurrence: Occurrence) -> bool:
    run, forward = occurrence.run, occurrence.event
    module = forward.thing
    if forward.kind is not Kind.FORWARD or module is None or run.is_cut or not records_graph(forward):
        return False
    if isinstance(forward.frame.model.tree.parent(forward.node), cst.Expr) or _is_of_round(forward):
        return False
    if is_frozen(run, (forward,)) or _switches_gradients_off_itself(forward):
        return False
    if modes_before(run, module, forward) != {EVAL} or not is_trained(run, module):
        return False
    if computes_gradients(forward) or is_used_for_backward(run, forward.frame, forward.node):
        return False
    return not may_run_without_gradients(run.frame.function)


def _is_of_round(forward: Event) -> bool:
    """Whether a forward pass is given a batch, by a loop in its own function or around it."""
    loop = loop_over_data(forward)
    return (loop is not None and loop.frame is forward.frame) or _is_given_round(forward)


def _is_given_round(forward: Event) -> bool:
    """Whether a forward pass is given what a loop around it runs over: a batch."""
    args = forward.node.args if isinstance(forward.node, cst.Call) else ()
    return any(
        fed_names(loop.frame.model, loop.node) & names_in(part)
        for loop in forward.loops
        if isinstance(loop.node, cst.For)
        for arg in args
        for part in as_given(forward.frame, arg.value, loop.frame)
    )


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


def switches_gradients_off(node: cst.With | cst.FunctionDef) -> bool:
    """Whether a block is one of ``with no_grad():``, or a function is decorated so, to go by the words."""
    makers: list[cst.BaseExpression]
    if isinstance(node, cst.With):
        makers = [item.item for item in node.items]
    else:
        makers = [decorator.decorator for decorator in node.decorators]
    paths = [dotted_path(maker.func if isinstance(maker, cst.Call) else maker) or "" for maker in makers]
    return any(path.rpartition(".")[2] in OFF for path in paths)


def _calls_in(node: cst.With | cst.FunctionDef) -> Iterator[cst.Call]:
    """The calls in a block that stand in no loop, and no block or function, of their own."""
    pending: list[cst.CSTNode] = [node.body]
    while pending:
        item = pending.pop(0)
        kind = type(item)
        if kind in _OF_THEIR_OWN or (kind is cst.With and switches_gradients_off(item)):  # type: ignore[arg-type]
            continue
        if kind is cst.Call:
            yield item  # type: ignore[misc]
        pending += children(item)


def _is_in_training_mode(call: cst.Call, occurrence: Occurrence) -> bool:
    run, forward = occurrence.run, occurrence.event
    name = "" if forward.frame.function is None else forward.frame.function.name
    model = forward.frame.model
    is_asked = is_named_evaluation(name) or _is_given_test_data(model, call)
    # Adversaries are looked at while they train, or asked how far they are.
    is_evaluation = (is_asked and not steps_several(run)) or is_behind_training(run, forward)
    if records_graph(forward) is not False:
        return False
    is_batch = _is_of_round(forward) and not any(map(_is_batch_of_its_own, _test_data_behind(model, call)))
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
    if is_made_evaluating(forward):
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
