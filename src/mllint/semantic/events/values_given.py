"""What an expression is, as far as the callers tell, or those who made the object whose method runs."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.held import held, unpacked_from
from mllint.semantic.events.places import itself_of
from mllint.semantic.expressions.attributes import attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Method, Module, Value

if TYPE_CHECKING:
    from mllint.semantic.events.things import Frame


def value_given(frame: "Frame", node: cst.BaseExpression) -> Value | None:
    """What an expression is in a run, where its file does not say, or not well."""
    if type(node) is cst.Name:
        bindings = frame.model.reaching(node)
        return _value_bound(frame, bindings[0]) if len(bindings) == 1 else None
    if (receiver := itself_of(frame.model, node)) is not None:
        return frame.value(receiver)
    known = _value_of_attribute(frame, node) if type(node) is cst.Attribute else None
    if known is not None and not isinstance(known, Method) and not (isinstance(known, Module) and known.is_only_some):
        return known
    kept = held(frame, node)
    return (None if kept is None else kept[0].value(kept[1])) or known


def _value_bound(frame: "Frame", binding: Binding) -> Value | None:
    """What a name stands for: what the caller gives, or a part of that: ``net = state.net``."""
    given = frame.given(binding) or unpacked_from(frame, binding)
    if given is not None:
        return given[0].value(given[1])
    value = binding.value
    is_read = value.__class__ in (cst.Attribute, cst.Subscript) and binding.kind is BindingKind.ASSIGN
    if not is_read or value is None or binding.path or binding.scope is not frame.scope or binding in frame.valued:
        return None
    frame.valued.append(binding)
    known = frame.value(value)
    frame.valued.pop()
    return known


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
