"""Loops in which nobody clears the gradients, though others do who call the same function that steps the optimizer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.expressions.imports import is_library
from mllint.semantic.training.nearby import clears_beside, steps_no_optimizer
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.zeroing import accumulates_without_end, clearing_of
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

_STEP = "step"


def forgetful_calls(model: "Model", step: cst.Call) -> Iterator[cst.Call]:
    """The calls, in loops of this file, of a function that steps an optimizer whose gradients nobody clears there.

    For a step that is right where others call its function.
    """
    function = model.enclosing_function(step)
    if function is None or len(model.calls_by_word.get(function.name.value, ())) < 2:
        return
    if any(model.tree.loops_around(step)) or steps_no_optimizer(model, step) or clears_beside(model, step):
        return
    found: dict[int, tuple[cst.Call, list[bool]]] = {}
    for item in model.runs.each(step, accelerated=True):
        call = _call_in_loop(model, item.event)
        if call is not None:
            found.setdefault(id(call), (call, []))[1].append(_is_never_cleared(item))
    yield from (call for call, never in found.values() if all(never))


def _call_in_loop(model: "Model", step: Event) -> cst.Call | None:
    """The call in the body of the innermost loop, of this file, that leads to a step."""
    loop = step.loops[-1] if step.loops else None
    if loop is None or loop.frame.model is not model:
        return None
    return next((frame.call for frame in step.frame.led_by() if frame.caller is loop.frame), None)


def _is_never_cleared(occurrence: Occurrence) -> bool:
    return bool(occurrence.event.loops) and clearing_of(occurrence) == "never"


def forgetful_calls_of_others(model: "Model", loop: cst.For) -> Iterator[cst.Call]:
    """As ``forgetful_calls``, of functions that the file imports."""
    for call in model.tree.calls_in(loop.body):
        function = _imported(model, call)
        steps = () if function is None else _steps_in(function)
        if function is None or len(steps) != 1 or next(model.tree.loops_around(call), None) is not loop:
            continue
        events = [item for item in model.runs.within(call, accelerated=True) if item.event.kind is Kind.STEP]
        own = [item for item in events if item.event.node is steps[0]]
        if own and all(map(_is_never_cleared, own)) and accumulates_without_end(function.model, steps[0]) is None:
            yield call


def _imported(model: "Model", call: cst.Call) -> "FunctionInfo | None":
    """The function of another file of the project that a call runs by its name."""
    if type(call.func) is not cst.Name or not call.args or call.func.value not in _names_of_project(model):
        return None
    value = model.value(call.func)
    return value.definition if isinstance(value, Function) and value.definition.model is not model else None


def _names_of_project(model: "Model") -> frozenset[str]:
    """The names that a file imports from others that are no library."""
    key = ("names", "of the project")
    if key not in model.remembered:
        found = set()
        for statement in model.tree.by_type.get(cst.ImportFrom, ()):
            module = dotted_path(statement.module) if statement.module is not None else ""
            is_own = module is not None and (statement.relative or not is_library(model, module))
            if is_own and not isinstance(statement.names, cst.ImportStar):
                found |= {alias.evaluated_alias or alias.evaluated_name for alias in statement.names}
        model.remembered[key] = frozenset(found)
    names: frozenset[str] = model.remembered[key]
    return names


def _steps_in(function: "FunctionInfo") -> tuple[cst.Call, ...]:
    """The calls of ``step()`` right in a function, in no loop."""
    model = function.model
    calls = model.calls_by_word.get(_STEP, ())
    return tuple(
        call
        for call in calls
        if model.enclosing_function(call) is function.node
        and not any(model.tree.loops_around(call))
        and not steps_no_optimizer(model, call)
        and not clears_beside(model, call)
    )
