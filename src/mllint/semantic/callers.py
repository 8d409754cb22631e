"""The bodies from which a function is reached: where the ways of a training begin."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.definitions import FunctionInfo
from mllint.semantic.values import Function

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_DEPTH = 5
_MAX_ROOTS = 12


@dataclass(frozen=True, slots=True)
class Root:
    """A body that nobody in sight calls: a function, or (no function) a file. ``is_open``: somebody else may."""

    model: "Model"
    function: FunctionInfo | None
    is_open: bool = False


def roots_of(model: "Model", function: FunctionInfo | None) -> tuple[Root, ...]:
    """The bodies from which a function of a file is reached, in source order; the file itself for its own statements.

    Empty where there are more than anybody would follow.
    """
    found: dict[tuple[int, int], Root] = {}
    if not _climb(model, function, found, (), False):
        return ()
    return tuple(found.values())


def _climb(
    model: "Model",
    function: FunctionInfo | None,
    found: "dict[tuple[int, int], Root]",
    below: tuple[FunctionInfo, ...],
    is_open: bool,
) -> bool:
    if function is None:
        found.setdefault((id(model), 0), Root(model, None, is_open))
        return True
    if function in below or len(below) >= _MAX_DEPTH:
        return function in below
    calls = list(_calls(function))
    others = _has_other_callers(function)
    is_open = is_open or others
    if not calls:
        found.setdefault((id(model), id(function.node)), Root(model, function, is_open))
    for call in calls:
        caller = model.enclosing_function(call)
        caller_info = None if caller is None else model.function_info(caller)
        if not _climb(model, caller_info, found, (*below, function), is_open) or len(found) > _MAX_ROOTS:
            return False
    return True


def _calls(function: FunctionInfo) -> Iterator[cst.Call]:
    """The calls in its file that surely reach a function, also through ``step(closure)``."""
    model = function.model
    for call in model.calls_by_word.get(function.name, ()):
        value = model.value(call.func)
        if isinstance(value, Function) and value.definition is function:
            yield call
    for call in _given_to(function):
        yield call


def _given_to(function: FunctionInfo) -> Iterator[cst.Call]:
    """The calls of ``step`` that are given a function to call."""
    model = function.model
    for name in model.names_by_word.get(function.name, ()):
        arg = model.tree.parent(name)
        call = None if arg is None else model.tree.parent(arg)
        if isinstance(arg, cst.Arg) and arg.value is name and isinstance(call, cst.Call):
            callee = call.func
            if isinstance(callee, cst.Attribute) and callee.attr.value in ("step", "minimize"):
                value = model.value(name)
                if isinstance(value, Function) and value.definition is function:
                    yield call


def _has_other_callers(function: FunctionInfo) -> bool:
    """Whether a function's name is used otherwise than in the calls that surely reach it."""
    model = function.model
    sure = {id(call) for call in _calls(function)}
    for name in model.names_by_word.get(function.name, ()):
        if name is function.node.name:
            continue
        parent = model.tree.parent(name)
        node: cst.CSTNode = name
        if isinstance(parent, cst.Attribute):
            if parent.attr is not name:
                continue
            node, parent = parent, model.tree.parent(parent)
        if isinstance(parent, cst.Call) and parent.func is node:
            if id(parent) not in sure and model.value(parent.func) is None:
                return True
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            continue
        if isinstance(parent, cst.Arg) and id(model.tree.parent(parent)) in sure:
            continue
        value = model.value(node) if isinstance(node, cst.BaseExpression) else None
        if isinstance(value, Function) and value.definition is function:
            return True
    return False
