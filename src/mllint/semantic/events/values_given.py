"""What an expression is, as far as the callers tell, or those who made the object whose method runs."""

from functools import reduce
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.events.held import held, unpacked_from
from mllint.semantic.events.places import handed_through, inside_of, itself_of
from mllint.semantic.expressions.attributes import attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Method, Module, Value, join

if TYPE_CHECKING:
    from mllint.semantic.events.things import Frame


def value_given(frame: "Frame", node: cst.BaseExpression) -> Value | None:
    """What an expression is in a run, where its file does not say, or not well."""
    if type(node) is cst.Name:
        values = [_value_bound(frame, binding) for binding in frame.model.reaching(node)]
        return reduce(join, values) if values and None not in values else None
    if type(node) is cst.Call and (inner := inside_of(frame.model, node)) is not None:
        return _wrapped(frame, node, inner)
    if (receiver := itself_of(frame.model, node)) is not None:
        return frame.value(receiver)
    known = _value_of_attribute(frame, node) if type(node) is cst.Attribute else None
    if known is not None and not isinstance(known, Method) and not (isinstance(known, Module) and known.is_only_some):
        return known
    kept = held(frame, node)
    return (None if kept is None else kept[0].value(kept[1])) or known


def _value_bound(frame: "Frame", binding: Binding) -> Value | None:
    """What a name stands for: what the caller gives, a part of that, or that in a wrapper: ``net = state.net``."""
    given = frame.given(binding) or unpacked_from(frame, binding)
    if given is not None:
        return given[0].value(given[1])
    value = binding.value
    if value is None or binding.path or binding.kind is not BindingKind.ASSIGN or binding in frame.valued:
        return None
    is_read = value.__class__ in (cst.Attribute, cst.Subscript)
    # An attribute may be put around itself: `self.net = DataParallel(self.net)`.
    is_handed_on = value.__class__ is cst.Call and isinstance(handed_through(frame.model, value), cst.Name)
    if not (is_read or is_handed_on) or binding.scope is not frame.scope:
        return None
    frame.valued.append(binding)
    known = frame.value(value)
    frame.valued.pop()
    return known


def _wrapped(frame: "Frame", call: cst.Call, inner: cst.BaseExpression) -> Module | None:
    """What a wrapper is that is put around what the callers know: ``DataParallel(net)`` of a parameter ``net``."""
    if not isinstance(handed_through(frame.model, inner), cst.Name):
        return None
    inside, whole = frame.value(inner), frame.model.value(call)
    if not isinstance(inside, Module) or not isinstance(whole, Module) or not whole.wrappers:
        return None
    return replace(inside, wrappers=(whole.wrappers[0], *inside.wrappers), inside=None)


def _value_of_attribute(frame: "Frame", node: cst.Attribute) -> Value | None:
    holding = frame.model.value(node.value)
    if holding is None:
        return attribute(frame.model, frame.value(node.value), node.attr.value)
    if type(holding) is Module and holding.is_only_some:
        known = frame.value(node.value)  # whoever made it knows its class, and so its methods
        return None if known is holding else attribute(frame.model, known, node.attr.value)
    # `self.net` of an evaluator: what it was given where it was made
    is_called = frame.receiver is not None or frame.caller is not None
    holder = frame.thing(node.value) if is_called and isinstance(node.value, cst.Name) else None
    kept = None if holder is None else frame.kept(holder, node.attr.value)
    return None if kept is None else kept[0].value(kept[1])
