"""Loops in which nobody clears the gradients, though others do who call the same function that steps the optimizer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.expressions.imports import is_library
from mllint.semantic.names.remembered import worked_out_once
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
    """The calls of this file that lead from a loop to a step of an optimizer whose gradients nobody clears there.

    For a step that is right where others call its function.
    """
    function = model.enclosing_function(step)
    if function is None or len(model.calls_by_word.get(function.name.value, ())) < 2:
        return
    if any(model.tree.loops_around(step)) or steps_no_optimizer(model, step) or clears_beside(model, step):
        return
    found: dict[int, bool] = {}
    leading: dict[tuple[int, ...], tuple[cst.Call, ...]] = {}
    for item in model.runs.each(step, accelerated=True):
        calls = tuple(_calls_from_loop(model, item.event))
        leading[tuple(map(id, calls))] = calls
        for call in calls:
            found[id(call)] = found.get(id(call), True) and _is_never_cleared(item)
    # Of the calls that lead to one step the last that is to blame.
    blamed = (next((call for call in calls if found[id(call)]), None) for calls in leading.values())
    yield from {id(call): call for call in blamed if call is not None}.values()


def _calls_from_loop(model: "Model", step: Event) -> Iterator[cst.Call]:
    """The calls of this file that lead from the body of the innermost loop to a step, from the inside out."""
    loop = step.loops[-1] if step.loops else None
    for frame in step.frame.led_by() if loop is not None else ():
        if loop is None or frame is loop.frame or frame.caller is None or frame.call is None:
            return
        if frame.caller.model is model and not model.tree.is_standing_in(frame.call):
            yield frame.call


def _is_never_cleared(occurrence: Occurrence) -> bool:
    return bool(occurrence.event.loops) and clearing_of(occurrence) == "never"


def forgetful_calls_of_others(model: "Model") -> Iterator[cst.Call]:
    """As ``forgetful_calls``, of functions that the file imports."""
    for name in sorted(_names_of_project(model)):
        for call in model.calls_by_word.get(name, ()):
            function = _imported(model, call)
            steps = () if function is None else _steps_in(function)
            if function is None or len(steps) != 1:
                continue
            events = [item for item in model.runs.within(call, accelerated=True) if item.event.kind is Kind.STEP]
            own = [item for item in events if item.event.node is steps[0]]
            if own and all(map(_is_never_cleared, own)) and accumulates_without_end(function.model, steps[0]) is None:
                yield call


def _imported(model: "Model", call: cst.Call) -> "FunctionInfo | None":
    """The function of another file of the project that a call runs by its name."""
    if type(call.func) is not cst.Name or not call.args:
        return None
    value = model.value(call.func)
    return value.definition if isinstance(value, Function) and value.definition.model is not model else None


@worked_out_once
def _names_of_project(model: "Model") -> frozenset[str]:
    """The names that a file imports from others that are no library."""
    found = set()
    for statement in model.tree.by_type.get(cst.ImportFrom, ()):
        module = dotted_path(statement.module) if statement.module is not None else ""
        is_own = module is not None and (statement.relative or not is_library(model, module))
        if is_own and not isinstance(statement.names, cst.ImportStar):
            found |= {alias.evaluated_alias or alias.evaluated_name for alias in statement.names}
    return frozenset(found)


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
