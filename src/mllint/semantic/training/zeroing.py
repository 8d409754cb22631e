"""Optimizer steps with gradients that nobody cleared."""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.made_anew import is_made_in, picks_another
from mllint.semantic.events.owners import maker, modules_of_optimizer
from mllint.semantic.events.participants import value_called_on
from mllint.semantic.events.steps import Around, Attempt, Branches, Event, Helper, Kind, Loop, Step, events
from mllint.semantic.events.things import Thing
from mllint.semantic.graph.data_sources import yields_data
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.guards import (
    counts_rounds,
    counts_to_length,
    exclude_each_other,
    is_seldom,
    is_setting,
    stays,
)
from mllint.semantic.training.holders import (
    is_cleared_by_handler,
    is_given,
    is_sister,
    may_act_on,
    was_made_with,
)
from mllint.semantic.training.measured import only_measures
from mllint.semantic.training.nearby import clears_beside, steps_no_optimizer
from mllint.semantic.training.one_sided import is_cleared_on_one_side
from mllint.semantic.training.own_steps import keeps_gradients
from mllint.semantic.training.passes_out_of_sight import methods_of_name
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.values import Function, Instance, Value, is_object, own_method
from mllint.syntax.iteration import sources
from mllint.syntax.shape import (
    argument,
    called_on,
    dotted_path,
    has_star_arguments,
    integer_literal,
    last_word,
    runs_once,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


_CLEARING = ("zero_grad", "clear_grad", "clear_gradients", "zero_")
_IN_PLACE = "zero_"
"""That one of them that clears whatever tensor it is called on."""
_ROUNDS = "max_iter"
"""How often an optimizer that is given a closure calls it, or more often."""
_STEP_HOOKS = ("register_step_post_hook", "register_step_pre_hook", "register_optimizer_step_post_hook")
"""What else may clear gradients, whenever an optimizer steps."""
_MAX_FILES = 8
"""Of how many files that clear gradients it is asked whose."""
_MAX_FUNCTIONS = 20
"""Into how many functions a call is followed that a run leaves out."""
_SAYS_CLEARING = re.compile(r"(?:zero|clear|reset|clean|empty).*grad|grad.*(?:zero|clear|reset|clean)", re.IGNORECASE)
"""How functions are called that clear gradients: ``clear_grads(model)``."""
_SAYS_KEEPING = re.compile(r"^_?(?:save|dump|log|print|report)(?:_|$)")
"""How functions are called that write down what they are given: ``save_checkpoint(model, optimizer)``."""
_SAYS_TRAINING = re.compile(r"grad|optim|step|backward|minimize", re.IGNORECASE)
_SWITCHING_GRADIENTS = frozenset({"no_grad", "enable_grad", "set_grad_enabled"})
# `agent.network.zero_grad()`: of what another object keeps.
_CLEARS_PART = re.compile(rb"\b(?!self\b)\w+(?:\.\w+)+\.(?:zero_grad|clear_grad|clear_gradients)\(")


Clearing = Literal["never", "further out", "on one side", "in some rounds", "not in closure"]
"""When the gradients are cleared that a loop adds up: not at all, by a loop around it, on one side, or in some rounds.

Or not by the closure that a step calls several times, whatever is done before.
"""
_CLEARINGS = get_args(Clearing)


def accumulates_without_end(model: "Model", step: cst.Call) -> Clearing | None:
    """When gradients are cleared that are added up over all rounds of a training loop; ``None``: they are not.

    Or over all calls of a method that updates with an optimizer its object keeps, or of the closure of one step.
    """
    if _may_repeat_closure(model, step) and model.runs.always(step, _adds_up_in_closure):
        return "not in closure"
    if steps_no_optimizer(model, step) or clears_beside(model, step) or is_cleared_by_handler(model, step):
        return None
    alone: list[Occurrence] = []
    found: set[Clearing] = set()
    for item in model.runs.each(step, accelerated=True, by_hand=True):
        clearing = clearing_of(item) if item.event.loops else None
        if item.event.loops and clearing is None:
            return None
        if clearing is None:
            alone.append(item)
        else:
            found.add(clearing)
    if found:
        return next(clearing for clearing in _CLEARINGS if clearing in found)
    return "never" if alone and all(map(_updates_without_clearing, alone)) else None


def clearing_of(occurrence: Occurrence) -> Clearing | None:
    """When gradients are cleared that a loop adds up for a step; ``None``: they are not, or that is not known."""
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind not in (Kind.STEP, Kind.MINIMIZE) or step.thing is None:
        return None
    loop = _loop_of_backward(step)
    # In a loop that makes the optimizer, and with it most often a model, every round begins anew.
    inside = [
        item for item in step.loops if not is_made_in(item, step, step.thing) and not picks_another(item, step.thing)
    ]
    if loop is None or loop not in inside or _clears_by_itself(step):
        return None
    within = list(events(inside[0].body))
    clearing = [event for event in within if may_clear(event, step)]
    is_in_every_round = step.happens_in_every_round(loop) and bool(clearing)
    if is_in_every_round and all(event.kind is Kind.ZERO and is_seldom(event, loop) for event in clearing):
        return "in some rounds"
    if not clearing or is_cleared_on_one_side(step, loop, clearing):
        is_held = any(_may_clear_held(item, step.thing, run, loop) for item in within if item not in clearing)
        return None if is_held else "on one side" if clearing else "never"
    is_misplaced = _runs_over_batches(loop, step) and all(_is_further_out(event, loop) for event in clearing)
    return "further out" if is_misplaced else None


def _may_repeat_closure(model: "Model", step: cst.Call) -> bool:
    """Whether a step may be given a function that its optimizer calls several times, to go by its file."""
    optimizer = called_on(step)
    if optimizer is None or len(step.args) != 1 or not isinstance(step.args[0].value, (cst.Name, cst.Attribute)):
        return False
    value = model.value(optimizer)
    return value is None or _repeats_closure(value)


def _repeats_closure(value: Value | None) -> bool:
    """Whether something is an optimizer that calls the closure of a step more than once, as it is made."""
    if not is_object(value, "optimizer") or value.call is None or value.name.rpartition(".")[2] != "LBFGS":
        return False
    names = lookup.parameters(value.name)
    given = argument(value.call, names.index(_ROUNDS) if _ROUNDS in names else None, _ROUNDS)
    rounds = None if given is None else integer_literal(given.value)
    return not has_star_arguments(value.call) and (given is None or (rounds is not None and rounds > 1))


def _adds_up_in_closure(occurrence: Occurrence) -> bool:
    """Whether a step is given a closure that computes gradients and never clears them, and is called several times."""
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or _clears_by_itself(step):
        return False
    if not _repeats_closure(value_called_on(step)):
        return False
    inside = [event for event in run.events if any(_is_closure_of(around.step, step) for around in event.around)]
    is_computing = any(event.kind is Kind.BACKWARD for event in inside)
    return is_computing and not any(may_clear(event, step) for event in inside)


def _is_closure_of(around: Step, step: Event) -> bool:
    """Whether a step around an event is the run of the function that an optimizer's step is given."""
    return isinstance(around, Helper) and around.node is step.node and around.frame.caller is step.frame


def _may_clear_held(event: Event, optimizer: Thing, run: Run, loop: Loop) -> bool:
    """Whether an unknown object may clear the gradients of an optimizer that it was given before.

    What steps beside the optimizer itself is no other optimizer around it: a schedule, or an average of the weights.
    """
    callee = event.node.func if isinstance(event.node, cst.Call) else None
    if not may_act_on(event, optimizer, run, loop) or _only_gives_context(event):
        return False
    return callee is None or last_word(callee) != "step"


def _runs_over_batches(loop: Loop, step: Event) -> bool:
    """Whether a loop runs over the batches of a loader, with a step for each, or for each few of them."""
    if not isinstance(loop.node, cst.For) or not all(map(partial(_goes_on, loop=loop), step.within(loop))):
        return False
    values = [loop.frame.value(item.node) for item in sources(loop.node.iter)]
    return yields_data(loop.node.iter) or (bool(values) and all(is_object(value, "loader") for value in values))


def _goes_on(around: Around, loop: Loop) -> bool:
    """Whether what stands around a step in a round lets it happen again and again: no test, one that comes out alike
    in every round, or one that counts to fewer rounds than there are.
    """
    if isinstance(around.step, Attempt):
        return False
    if not isinstance(around.step, Branches) or (stays(around.step) and is_setting(around.step)):
        return True
    return counts_rounds(around.step, loop) and not counts_to_length(around.step)


def _is_further_out(event: Event, loop: Loop) -> bool:
    """Whether gradients are cleared once for all rounds of a loop, and by nothing that cannot be looked into."""
    return event.kind is Kind.ZERO and loop not in event.loops


def _updates_without_clearing(occurrence: Occurrence) -> bool:
    """Whether a method computes gradients and steps with an optimizer of its object, and nobody ever clears them.

    It is called again and again, by whoever trains: nothing in its class, nor in the files that import it, may clear.
    """
    run, step = occurrence.run, occurrence.event
    function, thing = run.frame.function, step.thing
    if run.is_cut or step.kind is not Kind.STEP or function is None or thing is None or len(thing.path) != 1:
        return False
    owner = next(iter(thing.roots))
    if (
        function.owner is None
        or not isinstance(owner, ClassInfo)
        or len(thing.roots) != 1
        or function.name == "__init__"
    ):
        return False
    if not isinstance(step.node, cst.Call) or step.node.args or _clears_by_itself(step):
        return False
    earlier = run.events[: run.events.index(step)]
    if not any(event.kind is Kind.BACKWARD for event in earlier) or maker(run.frame, thing) is None:
        return False
    if any(may_clear(event, step) for event in run.events):
        return False
    lineage = {id(info): info for info in (*owner.lineage, *function.owner.lineage)}.values()
    models = {id(info.model): info.model for info in lineage}.values()
    return all(_leaves_alone(model, thing.path[0], owner) for model in models)


def _leaves_alone(model: "Model", optimizer: str, owner: ClassInfo) -> bool:
    """Whether a file, and those that import it, never clear gradients, but of optimizers with other names.

    Or of those that objects keep whose class is neither the ``owner`` of this one, nor one of its bases, nor derived.
    """
    calls = _clearing_calls(model)
    if not all(_clears_another(model, call, optimizer) or _is_kept_by_others(model, call, owner) for call in calls):
        return False
    if model.project is None:
        return True
    home = model.path
    paths = dict.fromkeys(path for word in _CLEARING[:3] for path in model.project.importers(home, word))
    for other in map(model.neighbour, paths) if len(paths) <= _MAX_FILES else (None,):
        calls = iter(()) if other is None else _clearing_calls(other)
        if other is None or not all(
            _is_kept_by_others(other, call, owner)
            or (_is_kept(other, call) and _clears_another(other, call, optimizer))
            for call in calls
        ):
            return False
    return not model.project.is_written_near(home, _CLEARS_PART)


def _clearing_calls(model: "Model") -> Iterator[cst.Call]:
    """The calls in a file that may clear gradients; what `layer.bias.data.zero_()` sets to zero is no gradient."""
    for word in _CLEARING:
        for call in model.calls_by_word.get(word, ()):
            if word != _IN_PLACE or not _is_of_parameter(called_on(call)):
                yield call


def _is_of_parameter(cleared: cst.BaseExpression | None) -> bool:
    """Whether an expression is an attribute of something that by no name on the way is a gradient."""
    words = [] if cleared is None else (dotted_path(cleared) or "").split(".")
    return len([word for word in words if word != "data"]) > 1 and not any("grad" in word for word in words)


def _clears_another(model: "Model", call: cst.Call, optimizer: str) -> bool:
    """Whether gradients are cleared through an optimizer that has another name."""
    holder = called_on(call)
    is_optimizer = holder is not None and is_object(model.value(holder), "optimizer")
    return is_optimizer and (dotted_path(call.func) or "").split(".")[-2:-1] != [optimizer.removeprefix(".")]


def _is_kept(model: "Model", call: cst.Call) -> bool:
    holder = called_on(call)
    return holder is not None and owner_of_attribute(model, holder) is not None


def _is_kept_by_others(model: "Model", call: cst.Call, owner: ClassInfo) -> bool:
    """Whether gradients are cleared through ``self.optimizer``, or its like, of an object of another class: of none of
    the bases of one, and of none that derives from it.
    """
    holder = called_on(call)
    other = None if holder is None else owner_of_attribute(model, holder)
    if other is None or other.has_unknown_base:
        return False
    return other.name not in {info.name for info in owner.lineage} and owner.name not in {
        info.name for info in other.lineage
    }


def _loop_of_backward(step: Event) -> Loop | None:
    """The innermost loop around a step in which gradients are computed too, and that goes round more than once."""
    for loop in reversed(step.loops):
        if step.thing is not None and picks_another(loop, step.thing):
            continue
        if any(event.kind is Kind.BACKWARD for event in events(loop.body)):
            return None if _runs_once(loop) or only_measures(loop) else loop
    return None


def _runs_once(loop: Loop) -> bool:
    return not isinstance(loop.node, cst.CompFor) and runs_once(loop.node)


def _clears_by_itself(step: Event) -> bool:
    """Whether the optimizer is of a class of the project whose own ``step`` may clear, or hooks may run with it."""
    hooks = (word in frame.model.names_by_word for frame in step.frame.led_by() for word in _STEP_HOOKS)
    return any(hooks) or (has_step_of_its_own(step) and not _leaves_gradients(step))


def _leaves_gradients(step: Event) -> bool:
    """Whether the own ``step`` of an optimizer surely leaves the gradients that it uses, given no closure."""
    value = value_called_on(step)
    method = own_method(value, "step")
    if not isinstance(value, Instance) or method is None or is_given_more(step):
        return False
    return value.definition.kind == "optimizer" and keeps_gradients(method.model, value.definition)


def has_step_of_its_own(step: Event) -> bool:
    """Whether the optimizer is of a class of the project that has a ``step`` of its own: that may do anything."""
    value = value_called_on(step)
    return isinstance(value, Instance) and own_method(value, "step") is not None


def may_clear(event: Event, step: Event) -> bool:
    """Whether an event may clear the gradients that an optimizer steps with."""
    optimizer = step.thing
    if event.kind is Kind.UNKNOWN:
        is_idle = _speaks_of_keeping(event) or _only_gives_context(event)
        may_do_so = (is_given(event, step) and not is_idle) or _speaks_of_clearing(event)
        return may_do_so and not exclude_each_other(event, step)
    if event.kind not in (Kind.ZERO, Kind.WRITE_GRADIENT) or exclude_each_other(event, step):
        return False
    if is_sister(event, optimizer):
        return False
    if event.thing is None or optimizer is None or event.thing.may_be(optimizer):
        return True
    mine = modules_of_optimizer(step.frame, optimizer)
    value = value_called_on(event)
    if event.is_proven and is_object(value, "optimizer"):
        other = modules_of_optimizer(event.frame, event.thing)
        return None in mine or None in other or bool(set(mine) & set(other))
    return any(module is None or _may_cover(event.thing, module) for module in mine)


def _may_cover(cleared: Thing, module: Thing) -> bool:
    """Whether what is cleared may be a module, a part of it, or made of it: `head` of `net = Tagger(encoder, head)`."""
    return module.may_be(cleared) or _may_be_given(module, cleared) or was_made_with(cleared, module)


def _may_be_given(one: Thing, other: Thing) -> bool:
    """Whether one of two things is what somebody out of sight gives to a function: it may give the other."""
    is_given = [
        any(isinstance(root, Binding) and root.kind is BindingKind.PARAMETER for root in thing.roots)
        for thing in (one, other)
    ]
    return is_given[0] is not is_given[1]


def _speaks_of_keeping(event: Event) -> bool:
    """Whether a call that cannot be looked into is of a function or method that by its name only writes things down."""
    word = last_word(event.node.func) if isinstance(event.node, cst.Call) else None
    return word is not None and _SAYS_KEEPING.search(word) is not None


def _speaks_of_clearing(event: Event) -> bool:
    """Whether a call that was not followed any further is of a function that clears, by its name or what it calls."""
    callee = event.node.func if isinstance(event.node, cst.Call) else None
    word = None if callee is None else last_word(callee) or ""
    if isinstance(callee, cst.Attribute) and word == _IN_PLACE and isinstance(callee.value, cst.Call):
        return False  # of what was just made: `labels.new(3).zero_()`
    if callee is None or word is None or word in _CLEARING or _SAYS_CLEARING.search(word):
        return callee is not None
    return _clears_in(event.frame.value(callee))


def _only_gives_context(event: Event) -> bool:
    """Whether a method that cannot be told, and is given nothing, gives the context of a block and does no more: what
    the project has of its name speaks of no gradients, and of no optimizer.
    """
    call, model = event.node, event.frame.model
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return False
    if not isinstance(model.tree.parent(call), cst.WithItem) or event.frame.value(call.func) is not None:
        return False
    methods = methods_of_name(model, call.func.attr.value)
    words = {part.value for method in methods for part in subtree(method.node) if isinstance(part, cst.Name)}
    is_said = any(_SAYS_TRAINING.search(word) for word in words - _SWITCHING_GRADIENTS)
    return bool(methods) and not is_said and not any(_clears_in(Function(method)) for method in methods)


def _clears_in(value: Value | None) -> bool:
    """Whether a function of the project clears gradients, to go by its words and those of the functions it calls."""
    pending = [value]
    seen: list[FunctionInfo] = []
    while pending and len(seen) < _MAX_FUNCTIONS:
        value = pending.pop()
        if not isinstance(value, Function) or value.definition in seen:
            continue
        info = value.definition
        seen.append(info)
        parts = list(subtree(info.node))
        words = {part.value for part in parts if isinstance(part, cst.Name)}
        if words & set(_CLEARING) - {_IN_PLACE} or (_IN_PLACE in words and any("grad" in word for word in words)):
            return True
        pending += [info.model.value(part.func) for part in parts if isinstance(part, cst.Call)]
    return False


def computes_by_itself(event: Event) -> bool:
    """Whether a step may compute gradients: it is given losses or a closure, or a class of the project defines it."""
    return is_given_more(event) or _clears_by_itself(event)


def is_given_more(step: Event) -> bool:
    """Whether a step is given something, such as a closure that computes the gradients; a scaler is no such thing."""
    return isinstance(step.node, cst.Call) and bool(step.node.args) and step.other is None


def clears(event: Event, step: Event) -> bool:
    """Whether an event surely clears all gradients that an optimizer steps with."""
    if event.kind is not Kind.ZERO or event.thing is None:
        return False
    if event.thing == step.thing:
        return True
    return all(is_within(module, event.thing) for module in modules_of_optimizer(step.frame, step.thing))


def is_within(module: Thing | None, whole: Thing) -> bool:
    """Whether something is a thing itself, or a part of it: ``net.head`` of ``net``."""
    return module is not None and module.roots == whole.roots and module.path[: len(whole.path)] == whole.path
