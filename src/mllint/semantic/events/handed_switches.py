"""Switches of a mode that others call: a bound ``net.eval`` that is kept or handed on, a function for all parts.

When such a thing is called, and in which mode it leaves the module, need not be known: then the mode is not.
"""

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import MODES
from mllint.semantic.events.elements import EVERY
from mllint.semantic.events.held import held, parts_of
from mllint.semantic.events.kinds import kind_of, may_have_mode
from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.places import changes_of_kept, itself_of
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import ClassObject, Function, Method, Symbol, Value, own_method
from mllint.syntax.shape import integer_literal, last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

FOR_EACH = ("apply", "map")
"""What calls a function that it is given for each part of a module, or each of several things."""


class Handed(NamedTuple):
    """What is switched (``None``: cannot be told), and the method that surely does it to all of it, if one does."""

    thing: Thing | None
    word: str | None = None


def handed_switch(frame: Frame, call: cst.Call) -> Handed | None:
    """What a call may switch by a method that it is given, or that is what it calls under another name."""
    if last_word(call.func) in FOR_EACH:
        each = _for_each(frame, call)
        if each is not None:
            return each
    if last_word(call.func) == "enter_context" and any(_is_switching_context(frame, arg.value) for arg in call.args):
        return Handed(None)
    holding = frame.model.runs.holding_switches
    if not holding:
        return None
    kept = _kept(frame, call.func)
    given = [arg.value for arg in call.args if id(arg.value) in holding]
    if given and isinstance(frame.value(call.func), Function) and not any(map(_is_lambda, given)):
        given = []  # it is followed, and calls it by the name of its parameter
    things = [thing for node in (*kept, *given) for thing in _switched_in(frame, node)]
    if not things:
        return None
    return Handed(things[0] if all(thing == things[0] for thing in things) else None)


def switched_thing(frame: Frame, node: cst.BaseExpression) -> Thing | None:
    """The module that a switch is called on; ``None`` too for each of several that were put together somewhere else:
    of ``*nets``, of ``{"net": net}``, of ``self.nets = nets``.
    """
    thing = frame.thing(node)
    if thing is None or EVERY not in thing.path:
        return None if thing is not None and _is_any_of_several(frame, node) else thing
    collection = thing.path[: thing.path.index(EVERY)]
    return None if any(_is_put_together(root, collection) for root in thing.roots) else thing


def _is_any_of_several(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether a key that is not written there picks one of several things with names of their own: ``nets[name]``."""
    if not isinstance(node, cst.Subscript) or held(frame, node) is not None:
        return False
    key = subscript_index(node)
    if string_literal(key) is not None or integer_literal(key) is not None:
        return False
    return any(not isinstance(part, cst.Call) for _, part in parts_of(frame, node.value))


def _is_put_together(root: Binding | ClassInfo, path: tuple[str, ...]) -> bool:
    """Whether a collection is one of things that have names of their own, or that are given."""
    return any(
        isinstance(maker.value, cst.Name)
        or (isinstance(maker.value, cst.Dict) and not _are_made_there(root, maker, maker.value))
        or (isinstance(maker.node, cst.Param) and bool(maker.node.star))
        for maker in makers_of(root, path)
    )


def _are_made_there(root: Binding | ClassInfo, maker: Binding, display: cst.Dict) -> bool:
    """Whether all that a dict ever holds is made in its very display: ``{"encoder": Encoder(), "head": Head()}``."""
    model, values = maker.scope.model, [item.value for item in display.elements]
    if not values or not all(isinstance(value, cst.Call) and itself_of(model, value) is None for value in values):
        return False
    changes = changes_of_kept(root, maker) if isinstance(root, ClassInfo) else changes_of_bound(model, maker)
    return next(changes, None) is None


def is_class_of_modules(value: Value | None) -> bool:
    """Whether a method is called by its class, and given the module: ``nn.Module.eval(network)``."""
    if isinstance(value, ClassObject):
        return value.definition.framework is not None
    known = lookup.class_(value.name) if isinstance(value, Symbol) else None
    return known is not None and known.kind in ("layer", "loss", "container", "rnn")


def switches_its_parameter(function: cst.Lambda | cst.FunctionDef) -> str | None:
    """The method by which a function switches what it is given first; empty where not always, or one way or another.

    ``None``: it does not.
    """
    params = function.params.params
    if not params:
        return None
    own = params[0].name.value
    called = [
        item
        for item in subtree(function.body)
        if isinstance(item, cst.Call)
        and isinstance(item.func, cst.Attribute)
        and item.func.attr.value in MODES
        and getattr(item.func.value, "value", None) == own
    ]
    if not called:
        return None
    is_all = function.body is called[0] and not called[0].args
    return called[0].func.attr.value if is_all else ""  # type: ignore[attr-defined]


def _for_each(frame: Frame, call: cst.Call) -> Handed | None:
    """What ``net.apply(lambda part: part.eval())`` switches, or ``map``."""
    for arg in call.args:
        value = None if isinstance(arg.value, cst.Lambda) else frame.value(arg.value)
        function = value.definition.node if isinstance(value, Function) else arg.value
        word = switches_its_parameter(function) if isinstance(function, (cst.Lambda, cst.FunctionDef)) else None
        if word is None:
            continue
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "apply":
            return Handed(None)
        holder = frame.value(call.func.value)
        is_module = may_have_mode(holder) and not isinstance(holder, Method)
        return Handed(frame.thing(call.func.value), word or None) if is_module else None
    return None


def _is_switching_context(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether something is a context of a class of the project that does something to modes."""
    methods = [own_method(frame.value(node), word) for word in ("__enter__", "__exit__")]
    return any(method is not None and id(method.node) in method.model.runs.worded for method in methods)


def _kept(frame: Frame, called: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The expressions with a method in them of which what is called is one: ``switch`` of ``switch = net.eval``."""
    if isinstance(called, cst.Name):
        bindings = frame.bindings_of(called) if called.value in frame.model.runs.kept_switches else ()
        values = [item.value for item in bindings if item.kind is BindingKind.ASSIGN and item.value is not None]
        return [value for value in values if id(value) in frame.model.runs.holding_switches]
    if isinstance(called, cst.Subscript):
        return [called.value] if id(called.value) in frame.model.runs.holding_switches else _kept(frame, called.value)
    if isinstance(called, (cst.IfExp, cst.Call)):
        return [called] if id(called) in frame.model.runs.holding_switches else []
    return []


def _switched_in(frame: Frame, node: cst.BaseExpression) -> Iterator[Thing | None]:
    """What the methods switch that are named in an expression, and not called, or called later by a lambda."""
    for item in subtree(node):
        if isinstance(item, cst.Attribute) and id(item) in frame.model.runs.holding_switches:
            called = kind_of(frame, item.value)
            if called is not None and called.kind == "module":
                yield frame.thing(item.value)


def _is_lambda(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Lambda)
