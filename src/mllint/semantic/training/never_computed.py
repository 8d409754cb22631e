"""Updates for which nobody computes gradients: a loop that clears them, runs the network, and steps; and ``minimize``
of Paddle in dynamic mode, which uses the gradients that are there.
"""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.owners import maker, modules_of_optimizer
from mllint.semantic.events.participants import goes_through_scaler, is_given, is_given_optimizer
from mllint.semantic.events.steps import UPDATES, Event, Kind, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.flow import optimizer_of
from mllint.semantic.graph.taken_off import computes_loss
from mllint.semantic.modules.fresh import is_fresh
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.outputs import comes_from, may_reach
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.scaling import is_computed
from mllint.semantic.training.training_modes import covers, is_one, records_graph
from mllint.semantic.training.zeroing import clears, computes_by_itself
from mllint.semantic.values import Module, Object, Symbol, Value
from mllint.syntax.shape import argument, called_on, constant
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMPUTING = frozenset({Kind.BACKWARD, Kind.MINIMIZE, Kind.WRITE_GRADIENT, Kind.UPDATE})


def steps_on_nothing(model: "Model", step: cst.Call) -> bool:
    """Whether a step finds no gradients on every way there, since nothing on the way computes any.

    In the same loop they are cleared, and the network runs whose parameters the optimizer has: this is a training.
    """
    return model.runs.always(step, _finds_none, accelerated=True, by_hand=True)


def _finds_none(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or step.thing is None or not step.loops:
        return False
    if any(event.kind in _COMPUTING for event in run.events) or computes_by_itself(step):
        return False
    inside = list(events(step.loops[-1].body))
    if not any(clears(event, step) for event in inside):
        return False
    passes = _passes_in_sight(step, inside) or _losses_of_library(step)
    return bool(passes) and not any(_may_compute(event, step, passes) for event in run.events)


def _passes_in_sight(step: Event, inside: list[Event]) -> list[Event]:
    """The passes of the networks whose parameters an optimizer has; none where one of them may compute by itself."""
    modules = modules_of_optimizer(step.frame, step.thing)
    passes = [
        event
        for event in inside
        if event.kind is Kind.FORWARD
        and event.thing is not None
        and any(module is not None and covers(module, event.thing) for module in modules)
        and records_graph(event) is not False
    ]
    return passes if None not in modules and all(map(_is_in_sight, passes)) else []


def _losses_of_library(step: Event) -> list[Event]:
    """The losses of a framework that the loop around a step computes in its own body, of whatever network: for these
    no gradients have been computed yet.
    """
    loop = step.loops[-1]
    if step.frame is not loop.frame or isinstance(loop.node, cst.CompFor):
        return []
    model = loop.frame.model
    calls = [part for part in subtree(loop.node.body) if isinstance(part, cst.Call)]
    losses = [call for call in calls if _is_of_library(model.value(call.func)) and computes_loss(model, call)]
    return [
        event
        for event in (Event(Kind.FORWARD, call, loop.frame) for call in losses)
        if records_graph(event) is not False
    ]


def _is_of_library(value: Value | None) -> bool:
    return isinstance(value, Symbol) or (isinstance(value, Module) and value.name is not None)


def _is_in_sight(forward: Event) -> bool:
    """Whether what runs is of the project, of a framework, or said to be a module: others may compute by themselves."""
    callee = forward.called
    value = None if callee is None else forward.frame.value(callee)
    return isinstance(value, Module) and "?" not in value.wrappers


def _may_compute(event: Event, step: Event, passes: list[Event]) -> bool:
    """Whether something unknown is given what it takes to compute gradients.

    Not in the pass of a module itself, nor by a method that tensors have; and what is called a loss only gives one.
    """
    call = event.node
    if event.kind is not Kind.UNKNOWN or not isinstance(call, cst.Call):
        return False
    if event.concerns(step.thing):
        return True
    if is_called_loss(call) or _is_tensor_method(call) or any(map(_is_of_pass, event.frame.led_by())):
        return False
    held = [call.func.value] if isinstance(call.func, cst.Attribute) else []
    given = [*held, *(arg.value for arg in call.args)]
    return any(may_reach(event.frame, part, forward) for part in given for forward in passes)


def _is_of_pass(frame: Frame) -> bool:
    return frame.function is not None and frame.function.name == "forward" and frame.function.owner is not None


def _is_tensor_method(call: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name != "backward" and any(lookup.tensor_method(one, name) is not None for one in ("torch", "paddle"))


_STATIC = ("enable_static", "program_guard", "Program", "fluid", "default_main_program", "dygraph_to_static")
"""What is named in files that build static graphs, for which ``minimize`` does add the computation of gradients."""


def minimized_loss(call: cst.Call, event: Event) -> cst.BaseExpression | None:
    """The loss that a call of ``minimize`` is given."""
    given = argument(call, 1, None) if goes_through_scaler(event) else argument(call, 0, "loss")
    return None if given is None else given.value


def loss_without_backward(model: "Model", call: cst.Call) -> cst.BaseExpression | None:
    """The loss of a call of ``minimize`` before which nobody computes gradients, in dynamic mode."""
    found: cst.BaseExpression | None = None
    for occurrence in model.runs.each(call):
        found = _loss_without_backward(occurrence, call)
        if found is None:
            return None
    return found


def _loss_without_backward(occurrence: Occurrence, call: cst.Call) -> cst.BaseExpression | None:
    run, event = occurrence.run, occurrence.event
    if run.is_cut or event.kind is not Kind.MINIMIZE or not _is_dynamic(run, event):
        return None
    loss = minimized_loss(event.node, event) if isinstance(event.node, cst.Call) else None
    if loss is None or not is_computed(event.frame, loss, through_functions=True):
        return None
    within = _made_within(event)
    others = frozenset(item for item in run.events if item.kind is Kind.BACKWARD and _is_of_another(run, item, event))
    paths = run.derived(("minimizing", within, others), partial(_paths, run, within, others))
    return minimized_loss(call, event) if paths.before(event) == {False} else None


def _is_of_another(run: Run, backward: Event, event: Event) -> bool:
    """Whether the gradients of a ``backward()`` are surely not those of a minimized loss: in the same body the update
    that uses them is of other networks, and neither of the losses is made of the other one.
    """
    loss = minimized_loss(event.node, event) if isinstance(event.node, cst.Call) else None
    source = called_on(backward.node)
    update = _used_by(run, backward) if backward.frame is event.frame else None
    if loss is None or source is None or update is None or update.thing in (None, event.thing):
        return False
    own, foreign = (modules_of_optimizer(item.frame, item.thing) for item in (event, update))
    is_apart = all((own, foreign)) and all(
        one is not None and other is not None and not is_one(one, other) and not is_one(other, one)
        for one in own
        for other in foreign
    )
    return is_apart and not (_holds(event.frame, source, loss) or _holds(event.frame, loss, source))


def _used_by(run: Run, backward: Event) -> Event | None:
    """The first update behind a ``backward()``, where it stands in the same body."""
    later = run.events[run.events.index(backward) + 1 :]
    first = next((item for item in later if item.kind in (*UPDATES, Kind.BACKWARD, Kind.UPDATE)), None)
    is_update = first is not None and first.kind in UPDATES and first.frame is backward.frame
    return first if is_update else None


def _holds(frame: Frame, whole: cst.BaseExpression, part: cst.BaseExpression) -> bool:
    """Whether one expression is made of something that another names."""
    names = (item for item in subtree(part) if isinstance(item, cst.Name))
    return any(comes_from(frame, whole, binding.node) for name in names for binding in frame.model.reaching(name))


def _is_dynamic(run: Run, event: Event) -> bool:
    """Whether the optimizer is Paddle's and was given parameters, as it has to be in dynamic mode only."""
    optimizer = optimizer_of(event.frame.model, event.node) if isinstance(event.node, cst.Call) else None
    value = None if optimizer is None else event.frame.value(optimizer)
    if not isinstance(value, Object) or value.framework != "paddle":
        return False
    made = maker(event.frame, event.thing) or value.call
    given = None if made is None else argument(made, 1, "parameters")
    models = {id(item.frame.model): item.frame.model for item in (event, *run.events)}
    is_static = any(word in model.names_by_word for model in models.values() for word in _STATIC)
    return given is not None and constant(given.value) is not None and not is_static


def _made_within(event: Event) -> FunctionInfo | None:
    """The function that makes the one module whose parameters are updated, in the very call that leads to an event."""
    modules = modules_of_optimizer(event.frame, event.thing)
    root = next(iter(modules[0].roots)) if len(modules) == 1 and modules[0] is not None else None
    if not isinstance(root, Binding) or not isinstance(root.scope.node, cst.FunctionDef) or root.value is None:
        return None
    model = root.scope.model
    if modules[0] != Thing(frozenset({root})) or root.path or not is_fresh(model, root.value):
        return None
    function = model.function_info(root.scope.node)
    return function if event.frame.runs(function) else None


def _paths(run: Run, within: FunctionInfo | None, others: frozenset[Event]) -> Paths[bool]:
    """Whether anybody may have computed gradients of a module, in the function that makes it, but for ``others``."""
    calls = [(event, event.node) for event in run.events if event.kind is Kind.MINIMIZE]
    given = [(event, minimized_loss(node, event)) for event, node in calls if isinstance(node, cst.Call)]
    losses = [event.frame.thing(loss) for event, loss in given if loss is not None]

    def advance(state: bool, event: Event) -> bool:
        if within is not None and not event.frame.runs(within):
            return state
        match event.kind:
            case Kind.BACKWARD | Kind.WRITE_GRADIENT:
                return state or event not in others
            case Kind.UNKNOWN:
                return state or is_given_optimizer(event) or is_given(event, losses)
        return state

    return Paths(run.steps, False, advance)
