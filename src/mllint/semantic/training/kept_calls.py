"""What a name calls that stands for a lambda, or for ``functools.partial`` of a function of the project."""

from functools import partial
from typing import NamedTuple

import libcst as cst

from mllint.semantic.events.given import truth
from mllint.semantic.events.participants import places_of
from mllint.semantic.events.things import Frame, Named
from mllint.semantic.names.assigned import assigned
from mllint.semantic.names.scopes import BindingKind, Scope
from mllint.semantic.values import Function
from mllint.syntax.shape import has_star_arguments

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
