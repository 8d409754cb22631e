"""Optimizer steps for which nobody computes gradients: a loop that clears them, runs the network, and steps."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.steps import Event, Kind, events
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.training.outputs import may_reach
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.training_modes import covers, records_graph
from mllint.semantic.training.zeroing import clears, computes_by_itself
from mllint.semantic.values import Module

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMPUTING = frozenset({Kind.BACKWARD, Kind.MINIMIZE, Kind.WRITE_GRADIENT, Kind.UPDATE})


def steps_on_nothing(model: "Model", step: cst.Call) -> bool:
    """Whether a step finds no gradients on every way there, since nothing on the way computes any.

    In the same loop they are cleared, and the network runs whose parameters the optimizer has: this is a training.
    """
    return model.runs.always(step, _finds_none, accelerated=True)


def _finds_none(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or step.thing is None or not step.loops:
        return False
    if any(event.kind in _COMPUTING for event in run.events) or computes_by_itself(step):
        return False
    modules = modules_of_optimizer(step.frame, step.thing)
    inside = list(events(step.loops[-1].body))
    passes = [
        event
        for event in inside
        if event.kind is Kind.FORWARD
        and event.thing is not None
        and any(module is not None and covers(module, event.thing) for module in modules)
        and records_graph(event) is not False
    ]
    if not all(map(_is_in_sight, passes)):
        return False
    is_training = None not in modules and bool(passes) and any(clears(event, step) for event in inside)
    return is_training and not any(_may_compute(event, step, passes) for event in run.events)


def _is_in_sight(forward: Event) -> bool:
    """Whether what runs is of the project, of a framework, or said to be a module: others may compute by themselves."""
    callee = forward.node.func if isinstance(forward.node, cst.Call) else None
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
