"""What is called by a name that stands for more than a function: for a lambda, for ``functools.partial``, or for what
a decorator that may switch modes has made of it.
"""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import MODES
from mllint.semantic.events.given import truth
from mllint.semantic.events.kinds import is_word_of_mode
from mllint.semantic.events.participants import places_of
from mllint.semantic.events.things import Frame, Named
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import BindingKind, Scope, assigned
from mllint.semantic.names.wrappers import given_back
from mllint.semantic.training.made_in_mode import may_switch
from mllint.semantic.values import ClassObject, Function, Symbol
from mllint.syntax.shape import called_on, has_star_arguments, last_word, root_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 4


class Kept(NamedTuple):
    """A lambda or a call of ``partial``, and the run in which it is written."""

    frame: Frame
    node: cst.Lambda | cst.Call


def kept_call(frame: Frame, called: cst.BaseExpression, steps: int = _MAX_STEPS) -> Kept | None:
    """What a name that is called in a run stands for, also where a caller gives it."""
    if type(called) is cst.Lambda:
        return Kept(frame, called)
    if type(called) is cst.Call:
        return Kept(frame, called) if frame.model.qualified_name(called.func) == "functools.partial" else None
    bindings = frame.bindings_of(called) if type(called) is cst.Name and steps else ()
    if len(bindings) != 1:
        return None
    given = frame.given(bindings[0])
    if given is not None:
        return kept_call(*given, steps - 1)
    made, home = assigned(bindings[0]), frame.run_of(bindings[0].scope)
    return None if made is None or home is None else kept_call(home, made, steps - 1)


def filled(frame: Frame, call: cst.Call, kept: Kept) -> tuple[Function, Named] | None:
    """The function that ``partial`` was given, and what each of its parameters gets where a name of it is called."""
    made = kept.node
    if not isinstance(made, cst.Call) or not made.args or any(map(has_star_arguments, (made, call))):
        return None
    function = kept.frame.value(made.args[0].value)
    if not isinstance(function, Function) or function.receiver is not None or function.definition.self_name is not None:
        return None
    given = [(kept.frame, arg) for arg in made.args[1:]] + [(frame, arg) for arg in call.args]
    names = [parameter.name.value for parameter in function.definition.parameters]
    in_order = [(home, arg.value) for home, arg in given if arg.keyword is None]
    by_name = dict(zip(names, in_order, strict=False))
    by_name |= {arg.keyword.value: (home, arg.value) for home, arg in given if arg.keyword is not None}
    bound: Named = {}
    for name, part in by_name.items():
        for binding in function.definition.scope.bindings.get(name, ()):
            if binding.kind is BindingKind.PARAMETER:
                bound[binding] = part
    return function, bound


def can_be_entered(frame: Frame, call: cst.Call, kept: Kept) -> bool:
    """Whether the body of a lambda means where it is called what it means where it is written.

    No parameter hides a name there, and nobody on the way switches gradients on or off.
    """
    if not isinstance(kept.node, cst.Lambda):
        return False
    params = kept.node.params
    names = {item.name.value for item in (*params.params, *params.kwonly_params, *params.posonly_params)}
    scope: Scope | None = kept.frame.scope
    while scope is not None:
        if not names.isdisjoint(scope.bindings):
            return False
        scope = scope.parent
    for run, place in places_of(frame, call):
        if run is kept.frame:
            return True
        if run.model.gradients.inside(place, partial(truth, run)) != "untouched":
            return False
    return True


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
    decorating = given_back(value.definition) if isinstance(decorator, cst.Call) else value.definition
    wrapper = None if decorating is None or not decorating.parameters else given_back(decorating)
    if wrapper is None or decorating is None or not _switches_what_it_names(wrapper):
        return Wrapping()
    return Wrapping(wrapper, decorating.parameters[0].name.value)


def _switches_what_it_names(wrapper: FunctionInfo) -> bool:
    """Whether all that a function switches right there is a parameter of its own, by name, or a part of one."""
    named = {parameter.name.value for parameter in wrapper.named_parameters}
    switched = (
        called_on(call) for call in wrapper.model.tree.calls_in(wrapper.node.body) if last_word(call.func) in MODES
    )
    roots = [None if receiver is None else root_of(receiver) for receiver in switched]
    return bool(roots) and all(getattr(root, "value", None) in named for root in roots)
