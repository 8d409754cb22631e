"""Loss scaling: which gradients are still multiplied by a scaler's factor, and what is done with them."""

from functools import partial
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.events.kinds import kind_at_sight
from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.owners import maker, updates
from mllint.semantic.events.participants import (
    goes_through_scaler,
    is_given_optimizer,
    is_given_scaler,
    value_called_on,
)
from mllint.semantic.events.steps import Event, Kind, Loop, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import reads
from mllint.semantic.training.guards import exclude_each_other, is_left_out, not_excluded
from mllint.semantic.training.nearby import steps_no_optimizer, word_before
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.values import Function, Instance, Module, Object, Symbol
from mllint.syntax.shape import (
    argument,
    called_on,
    constant,
    fingerprint,
    has_star_arguments,
    last_word,
    string_literal,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MIXED = "mixed"
"""Gradients of several losses, or written by somebody: whether they are scaled cannot be said."""
_State = Event | str | None
"""What a thing's gradients are: nothing in particular, mixed, or what the event (backward or unscale_) left."""
_STEPS = 8


# -- the protocol ------------------------------------------------------------------------------------------------------


def has_scaler(model: "Model", step: cst.CSTNode) -> bool:
    """Whether a scaler takes part in a run of a step."""
    if isinstance(step, cst.Call) and (steps_no_optimizer(model, step) or _uses_plain_gradients(model, step)):
        return False
    return any(item.run.derived("has scaler", partial(_has_scaler, item.run)) for item in model.runs.each(step))


def _uses_plain_gradients(model: "Model", step: cst.Call) -> bool:
    """Whether an optimizer's own step comes right behind a ``loss.backward()``, in a file that scales nothing."""
    if step.args or "scale" in model.calls_by_word or last_word(step.func) != "step":
        return False
    stepped = called_on(step)
    if stepped is None or kind_at_sight(model, stepped) != "optimizer" or word_before(model, step) != "backward":
        return False
    # A function of that name, which is given the loss, may scale it.
    return all(
        isinstance(call.func, cst.Attribute) and not any(arg.keyword is None for arg in call.args)
        for call in model.calls_by_word["backward"]
    )


def _has_scaler(run: Run) -> bool:
    return any(event.kind is Kind.SCALE or event.other is not None for event in run.events)


def steps_past_scaler(model: "Model", step: cst.CSTNode) -> bool:
    """Whether an optimizer uses scaled gradients as they are: its own ``step`` is called, not the scaler's."""
    return model.runs.always(step, _steps_past_scaler)


def _steps_past_scaler(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind not in (Kind.STEP, Kind.MINIMIZE) or may_know_scaler(step):
        return False
    states = [state for state in states_of(run, step) if isinstance(state, Event) and state.kind is Kind.BACKWARD]
    scaled = [state for state in states if is_scaled(state)]
    if not scaled or len(states) < len(states_of(run, step)) or any(is_idle(run, state.other) for state in scaled):
        return False
    # Where the loss is scaled in one branch only, the other may be the way to this step.
    return len(scaled) == len(states) or not any(uses_scaled(event, step) for event in run.events)


def may_know_scaler(step: Event) -> bool:
    """Whether a step may be one through a scaler: it is the scaler's, or is given it, ``optim.step(scaler=scaler)``, or
    what steps is of a class of the project.
    """
    if step.thing is None or goes_through_scaler(step) or isinstance(value_called_on(step), Instance):
        return True
    return is_given_scaler(step) or any(map(_comes_out_of_project, step.thing.roots))


def _comes_out_of_project(root: object) -> bool:
    """Whether a function of the project gives back a thing of which nothing is known: ``self.prepare(net, opt)``."""
    if not isinstance(root, Binding) or not isinstance(root.value, cst.Call):
        return False
    model = root.scope.model
    return model.binding_value(root) is None and isinstance(model.value(root.value.func), Function)


def is_taken_again(model: "Model", step: cst.Call) -> bool:
    """Whether a scaler's ``minimize()`` in the same block below takes the step of an optimizer, too."""
    block = model.scope_of(step).place_of(step)
    optimizer = called_on(step)
    for call in model.calls_by_word.get("minimize", ()):
        there = model.scope_of(call).place_of(call)
        if block is None or there is None or there[0] is not block[0] or there[1] <= block[1] or not call.args:
            continue
        if optimizer is not None and fingerprint(call.args[0].value) == fingerprint(optimizer):
            return True
    return False


def backward_of(model: "Model", step: cst.CSTNode) -> cst.Call | None:
    """The one ``backward()`` of the same body whose gradients a step uses; ``None``: several, or elsewhere."""
    found: dict[int, cst.CSTNode] = {}
    for item in model.runs.each(step):
        for state in states_of(item.run, item.event):
            if isinstance(state, Event) and state.kind is Kind.UNSCALE:
                continue  # of gradients that a `backward()` on another way leaves as they are
            if not isinstance(state, Event) or state.frame is not item.event.frame:
                return None
            node = model.runs.node_here(state)
            if node is None:
                return None
            found[id(node)] = node
    only = next(iter(found.values())) if len(found) == 1 else None
    return only if isinstance(only, cst.Call) else None


def is_updated(model: "Model", step: cst.CSTNode) -> bool:
    """Whether a scaler's ``update()`` is called in the run of a step."""
    return any(event.kind is Kind.UPDATE_SCALE for item in model.runs.each(step) for event in item.run.events)


Missing = Literal["never", "in some rounds"]
"""When the ``update()`` is missing that belongs to a scaler's step."""


def misses_update(model: "Model", step: cst.CSTNode) -> Missing | None:
    """When a scaler steps in a training loop without its ``update()``: always, or where a test leaves it out."""
    found = [_misses_update(item) for item in model.runs.at(step) if item.event.loops]
    return None if not found or None in found else "in some rounds" if "in some rounds" in found else "never"


def _misses_update(occurrence: Occurrence) -> Missing | None:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or not goes_through_scaler(step) or step.other is None:
        return None
    loop = next((loop for loop in reversed(step.loops) if _has(loop, Kind.BACKWARD)), None)
    if loop is None or is_idle(run, step.other) or _has_fixed_scale(run, step.other):
        return None
    inside = list(events(loop.body))
    if any(event.kind is Kind.UNKNOWN and event.concerns(step.other) for event in inside):
        return None
    ends = [event for event in inside if _ends_round(event, step.other)]
    if not all(is_left_out(event, step, loop) for event in ends) or _is_made_in(step.other, loop):
        return None
    if step.frame.model.calls_by_word.get("update") and _is_updated_by_name(step, ends):
        return None
    return "in some rounds" if ends else "never"


def _ends_round(event: Event, scaler: Thing) -> bool:
    """Whether an event is the update of a scaler, or a step that updates it too."""
    ends = event.kind is Kind.UPDATE_SCALE or (event.kind is Kind.MINIMIZE and goes_through_scaler(event))
    return ends and (event.other is None or event.other.may_be(scaler))


def _is_updated_by_name(step: Event, known: list[Event]) -> bool:
    """Whether its file calls ``update()`` on something that is written as the scaler is, where it may be the scaler.

    What is ``known`` has been looked at.
    """
    looked_at = {id(event.node) for event in known}
    model = step.frame.model
    function = _only_home(step.other, model)
    word = called_on(step.node)
    name = None if word is None else last_word(word)
    return any(
        isinstance(call.func, cst.Attribute)
        and id(call) not in looked_at
        and last_word(call.func.value) == name
        and (function is None or model.tree.is_inside(call, function))
        and not _updates_another(step, call)
        for call in model.calls_by_word.get("update", ())
    )


def _updates_another(step: Event, update: cst.Call) -> bool:
    """Whether an ``update()`` is surely that of a scaler other than the one that steps."""
    occurrences = step.frame.model.runs.at(update)
    return bool(occurrences) and all(_are_made_apart(step.other, item.event) for item in occurrences)


def _are_made_apart(scaler: Thing | None, update: Event) -> bool:
    """Whether two scalers are made in different places, or one of them comes from outside the file to a function."""
    one, other = _makings(scaler), _makings(update.other)
    if other is None and update.other is not None and not update.other.path:
        function = update.frame.function
        is_given = all(isinstance(root, Binding) and root.kind is BindingKind.PARAMETER for root in update.other.roots)
        if is_given and function is not None and function.owner is None and update.frame.caller is None:
            return one is not None and next(reads(function.model, function.name), None) is None
    return one is not None and other is not None and one.isdisjoint(other)


def _makings(scaler: Thing | None) -> set[Binding] | None:
    """The places where a scaler is made; ``None`` where it may come from elsewhere."""
    roots = () if scaler is None or len(scaler.path) > 1 else scaler.roots
    found = {binding for root in roots for binding in makers_of(root, scaler.path)} if scaler is not None else set()
    is_made = all(
        binding.kind is BindingKind.ASSIGN and not binding.path and isinstance(binding.value, cst.Call)
        for binding in found
    )
    return found if found and is_made else None


def _only_home(scaler: Thing | None, model: "Model") -> cst.FunctionDef | None:
    """The function of a file that makes a scaler for a name of its own: the same name elsewhere is another one."""
    root = next(iter(scaler.roots)) if scaler is not None and len(scaler.roots) == 1 and not scaler.path else None
    if not isinstance(root, Binding) or root.kind is not BindingKind.ASSIGN or root.scope.model is not model:
        return None
    return root.scope.node if isinstance(root.scope.node, cst.FunctionDef) else None


def _has(loop: Loop, kind: Kind) -> bool:
    return any(event.kind is kind for event in events(loop.body))


def _is_made_in(thing: Thing, loop: Loop) -> bool:
    return any(
        root.scope.model.tree.is_below(root.node, loop.node)
        for root in thing.roots
        if hasattr(root, "scope") and root.kind is not BindingKind.PARAMETER
    )


def steps_unscaled_loss(model: "Model", step: cst.CSTNode) -> bool:
    """Whether a scaler steps with gradients of a loss that it was never given to scale."""
    return model.runs.always(step, _steps_unscaled_loss)


def _steps_unscaled_loss(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind not in (Kind.STEP, Kind.MINIMIZE) or step.thing is None or step.other is None:
        return False
    if is_idle(run, step.other) or not goes_through_scaler(step):
        return False
    states = states_of(run, step)
    scales_nothing = _scales_nothing(run, step.other)
    return bool(states) and all(
        isinstance(state, Event) and state.kind is Kind.BACKWARD and _is_surely_plain(state, scales_nothing)
        for state in states
    )


def _scales_nothing(run: Run, scaler: Thing) -> bool:
    """Whether a scaler that is made in sight is given nothing to scale, nor to anybody who may."""
    models = {id(event.frame.model): event.frame.model for event in run.events}
    if any("scale" in model.names_by_word for model in models.values()):
        return False
    is_made = not scaler.path and all(
        isinstance(root, Binding)
        and root.kind is BindingKind.ASSIGN
        and isinstance(value := root.scope.model.binding_value(root), Object)
        and value.kind == "scaler"
        and "scale" not in root.scope.model.names_by_word
        for root in scaler.roots
    )
    return is_made and not any(event.kind is Kind.UNKNOWN and event.concerns(scaler) for event in run.events)


def _is_surely_plain(backward: Event, scales_nothing: bool) -> bool:
    """Whether the loss of a ``backward()`` surely comes straight from a computation, not from a scaler."""
    node = backward.node
    if backward.other is not None or not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return not node.args and (scales_nothing or is_computed(backward.frame, node.func.value))


def is_computed(
    frame: Frame, node: cst.BaseExpression, *, through_functions: bool = False, steps: int = _STEPS
) -> bool:
    """Whether a loss surely comes straight from layers and functions of the framework.

    ``through_functions``: or from functions of the project, whatever they do.
    """
    again = partial(is_computed, through_functions=through_functions, steps=steps - 1)
    if steps <= 0:
        return False
    match node:
        case cst.BinaryOperation(left=left, right=right):
            if through_functions:  # whatever it is made of, it is made here
                return again(frame, left) or again(frame, right)
            return all(again(frame, side) or constant(side) is not ... for side in (left, right))
        case cst.UnaryOperation(expression=inner):
            return again(frame, inner)
        case cst.Call(func=callee):
            value = frame.value(callee)
            if isinstance(value, Symbol):
                return value.name.partition(".")[0] in ("torch", "paddle")
            if isinstance(value, (Module, Function)):
                return through_functions or isinstance(value, Module)
            if not isinstance(callee, cst.Attribute):
                return False
            if callee.attr.value == "scale":
                return through_functions and len(node.args) == 1 and again(frame, node.args[0].value)
            return again(frame, callee.value)
        case cst.Name():
            bindings = frame.model.reaching(node)
            given = frame.given(bindings[0]) if len(bindings) == 1 else None
            if given is not None:
                return again(*given)
            return bool(bindings) and all(
                binding.value is not None
                and binding.kind in (BindingKind.ASSIGN, BindingKind.AUGMENTED)
                and not binding.path
                and again(frame, binding.value)
                for binding in bindings
            )
    return False


def uses_scaled(event: Event, clip: Event) -> bool:
    is_step = event.kind in (Kind.STEP, Kind.MINIMIZE) and goes_through_scaler(event)
    return is_step and updates(event.frame, event.thing, clip.thing) is not False


# -- what the gradients of a thing are ---------------------------------------------------------------------------------


def is_scaled(state: Event) -> bool:
    """Whether an event leaves scaled gradients."""
    return state.kind is Kind.BACKWARD and state.other is not None


def states_of(run: Run, event: Event, *, in_round: bool = False) -> set[_State]:
    """In which states the gradients of an event's thing may be before it, ways that it excludes left out.

    ``in_round``: of what the rounds before have left nothing counts.
    """
    rounds = event.loops if in_round else ()
    paths = run.derived(("scaling", event.thing, rounds), partial(_paths, run, event.thing, rounds))
    return not_excluded(paths.before(event), event)


def _paths(run: Run, target: Thing | None, rounds: tuple[Loop, ...]) -> Paths[_State]:
    """``target`` is an optimizer or module; ``None``: parameters of which nobody knows whose they are.

    ``rounds`` are the loops of which each round is looked at alone.
    """

    def advance(state: _State, event: Event) -> _State:
        if isinstance(state, Event) and event.kind not in _ENDING and exclude_each_other(state, event):
            return state  # no round goes this way
        match event.kind:
            case Kind.BACKWARD:
                return event if state is None or _is_alike(state, event) else _mixed(state)
            case Kind.UNSCALE if updates(event.frame, event.thing, target) is not False:
                return event
            case Kind.STEP | Kind.MINIMIZE if updates(event.frame, event.thing, target) is not False:
                return None
            case Kind.ZERO if target is None or _concerns(event, target):
                return None
            case Kind.WRITE_GRADIENT:
                return state if adds(event.node) else event
            case Kind.UNKNOWN if state is not None and _may_unscale(event, target):
                return event
        return state

    return Paths(run.steps, None, advance, restarts=lambda loop: loop in rounds)


_ENDING = (Kind.STEP, Kind.MINIMIZE, Kind.ZERO)
"""After these, the gradients are those of another round."""


def adds(node: cst.CSTNode) -> bool:
    """Whether a statement or call adds something to a gradient, such as noise: what is scaled stays so."""
    if isinstance(node, cst.Call):
        return last_word(node.func) in ("add_", "sub_")
    return isinstance(node, cst.AugAssign) and isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))


def _mixed(state: _State) -> _State:
    """What gradients are to which others are added: whatever was done to them was done to a part only."""
    return state if isinstance(state, Event) and state.kind in (Kind.UNKNOWN, Kind.WRITE_GRADIENT) else MIXED


def _is_alike(state: _State, backward: Event) -> bool:
    """Whether the gradients that are there already are scaled if, and only if, those that come are."""
    return isinstance(state, Event) and state.kind is Kind.BACKWARD and is_scaled(state) == is_scaled(backward)


def _concerns(event: Event, target: Thing) -> bool:
    """Whether clearing the gradients of one thing may clear those of another."""
    cleared = event.thing
    if cleared is None or cleared.may_be(target):
        return True
    return updates(event.frame, cleared, target) is not False or updates(event.frame, target, cleared) is True


def _may_unscale(event: Event, target: Thing | None) -> bool:
    """Whether something unknown is given the thing itself, or what may be its optimizer or a scaler."""
    return event.concerns(target) or is_given_optimizer(event)


# -- scalers that do nothing -------------------------------------------------------------------------------------------


def is_idle(run: Run, scaler: Thing | None) -> bool:
    """Whether a scaler is switched off where it is made, or may be, as its file computes in bfloat16 only.

    In Torch one that is switched on scales what is computed in bfloat16, too; in Paddle it switches itself off.
    """
    is_on = run.derived(("switched on", scaler), partial(_is_switched_on, run, scaler))
    return not is_on if is_on is not None else run.derived(("bfloat16", scaler), partial(_is_bfloat16_only, run))


def _is_switched_on(run: Run, scaler: Thing | None) -> bool | None:
    """Whether a scaler is made to scale whatever is computed; ``None``: a setting says so, or it is made out of sight.

    https://github.com/PaddlePaddle/Paddle/blob/v3.3.1/python/paddle/amp/grad_scaler.py: ``AmpScaler.scale``
    """
    made = maker(run.frame, scaler)
    if made is None:
        return None
    is_paddle = run.frame.model.framework == "paddle"
    given = argument(made, 0 if is_paddle else None, "enable") or argument(made, None, "enabled")
    if given is None:
        is_plain = last_word(made.func) == "GradScaler" and not has_star_arguments(made)
        return True if is_plain and not is_paddle else None
    chosen = constant(given.value)
    return chosen if isinstance(chosen, bool) and not (chosen and is_paddle) else None


def _has_fixed_scale(run: Run, scaler: Thing) -> bool:
    """Whether a scaler of Paddle never changes its factor, and so needs no update."""
    made = maker(run.frame, scaler)
    given = None if made is None else argument(made, 6, "use_dynamic_loss_scaling")
    return given is not None and constant(given.value) is not True


def _is_bfloat16_only(run: Run) -> bool:
    models = {id(event.frame.model): event.frame.model for event in run.events}
    calls = [
        call
        for model in models.values()
        for word in ("autocast", "auto_cast")
        for call in model.calls_by_word.get(word, ())
    ]
    return bool(calls) and all(_is_bfloat16(argument(call, 4, "dtype")) for call in calls)


def _is_bfloat16(given: cst.Arg | None) -> bool:
    if given is None:
        return False
    return string_literal(given.value) == "bfloat16" or last_word(given.value) == "bfloat16"
