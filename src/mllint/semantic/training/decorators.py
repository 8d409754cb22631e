"""Decorators that may switch the mode of what a function is given: what calls it then is another function."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import MODES
from mllint.semantic.events.kinds import is_word_of_mode
from mllint.semantic.events.things import Frame
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.training.made_in_mode import may_switch
from mllint.semantic.values import ClassObject, Function, Symbol
from mllint.syntax.shape import called_on, last_word, root_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class Wrapping(NamedTuple):
    """What a decorator puts around a function: the function that is called instead, and what that one calls it.

    Where a decorator may switch anything, neither is known.
    """

    wrapper: FunctionInfo | None = None
    name: str = ""


class Wrapped(NamedTuple):
    """The function that a decorator was given, by its name there, and the call of what the decorator made of it."""

    name: str
    call: cst.Call
    called: Function
    frame: Frame


def wrapping_of(function: FunctionInfo) -> Wrapping | None:
    """What the decorators of a function, which may switch modes, put around it; ``None`` where none of them may."""
    if function.is_transparent:
        return None
    known: dict[int, Wrapping | None] = function.model.remembered.setdefault(("decorators", "wrapping"), {})
    if id(function.node) not in known:
        known[id(function.node)] = _wrapping_of(function)
    return known[id(function.node)]


def _wrapping_of(function: FunctionInfo) -> Wrapping | None:
    found = [_wrapping(function.model, item.decorator) for item in function.node.decorators]
    switching = [item for item in found if item is not None]
    if not switching:
        return None
    return switching[0] if len(switching) == 1 and function.owner is None else Wrapping()


def _wrapping(model: "Model", decorator: cst.BaseExpression) -> Wrapping | None:
    called = decorator.func if isinstance(decorator, cst.Call) else decorator
    value = model.value(called)
    if isinstance(value, ClassObject):
        methods = [method for info in value.definition.lineage for method in info.methods.values()]
        return Wrapping() if may_switch(methods) else None
    if not isinstance(value, Function):
        is_known = value is not None and not (isinstance(value, Symbol) and lookup.framework_of(value.name) is None)
        return None if is_known or not is_word_of_mode(last_word(called) or "") else Wrapping()
    if not may_switch([value.definition]):
        return None
    decorating = _given_back(value.definition) if isinstance(decorator, cst.Call) else value.definition
    wrapper = None if decorating is None or not decorating.parameters else _given_back(decorating)
    if wrapper is None or decorating is None or not _switches_what_it_names(wrapper):
        return Wrapping()
    return Wrapping(wrapper, decorating.parameters[0].name.value)


def _given_back(function: FunctionInfo) -> FunctionInfo | None:
    """The function inside that a function gives back."""
    returned = {getattr(statement.value, "value", None) for statement in function.scope.returns}
    inner = [item for item in function.node.body.body if isinstance(item, cst.FunctionDef)]
    found = [item for item in inner if returned == {item.name.value}]
    return function.model.function_info(found[0]) if len(found) == 1 else None


def _switches_what_it_names(wrapper: FunctionInfo) -> bool:
    """Whether all that a function switches right there is a parameter of its own, by name, or a part of one."""
    named = {parameter.name.value for parameter in wrapper.named_parameters}
    switched = (
        called_on(call) for call in wrapper.model.tree.calls_in(wrapper.node.body) if last_word(call.func) in MODES
    )
    roots = [None if receiver is None else root_of(receiver) for receiver in switched]
    return bool(roots) and all(getattr(root, "value", None) in named for root in roots)
