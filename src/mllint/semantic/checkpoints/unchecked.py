"""Loads that skip the keys that do not match, where nobody looks at what was skipped."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State, Whole
from mllint.semantic.checkpoints.handling import MAX_NAMES, uses
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.scopes import BindingKind
from mllint.semantic.values import Module, Object
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.definitions import ClassInfo
    from mllint.semantic.model import Model


def is_unchecked(load: Load) -> bool:
    """Whether a load skips keys that do not match, may meet such keys, and nothing around it has looked at them."""
    if load.is_strict is not False or isinstance(load.value, Object) or dotted_path(load.receiver) is None:
        return False
    content = Tracer(load.model).content(load.given)
    if isinstance(content, State) and _is_of_same_class(load, content):
        return False
    if _compares_keys(load) or _selects_entries(load.given, load.model):
        return False
    if load.method == "load_state_dict":
        return load.framework is not None
    return load.framework == "paddle" and _is_foreign(load, content)


def _is_foreign(load: Load, content: Content | None) -> bool:
    """Whether what is loaded comes from a file that nothing around saves."""
    if not isinstance(content, FromFile):
        return False
    if load.value is None and "opt" in (dotted_path(load.receiver) or "").lower():
        return False
    return not any(_may_hold_module(saved.content) for saved in load.model.surroundings.saved)


def _may_hold_module(content: Content | None) -> bool:
    """Whether something that is saved may be, or hold, the state of a module."""
    match content:
        case State():
            return not isinstance(content.owner, Object)
        case Record():
            return content.is_open or any(map(_may_hold_module, content.items.values()))
    return content is None or isinstance(content, Whole)


def _is_of_same_class(load: Load, content: State) -> bool:
    owner, value = content.owner, load.value
    if not isinstance(owner, Module) or not isinstance(value, Module):
        return False
    if owner.definition is None or value.definition is None:
        return owner.name is not None and owner.name == value.name
    return _is_same(owner.definition, value.definition)


def _is_same(one: "ClassInfo", other: "ClassInfo") -> bool:
    """Whether two definitions are one, though they may come from two readings of their file."""
    return one is other or (one.name == other.name and one.model.source.path == other.model.source.path)


def _compares_keys(load: Load) -> bool:
    """Whether the function asks for the state dict of the module itself, to see what it has."""
    model = load.model
    receiver = f"{dotted_path(load.receiver)}."
    function = model.enclosing_function(load.call)
    for call in model.calls_by_word.get("state_dict", ()):
        if model.enclosing_function(call) is function and isinstance(call.func, cst.Attribute):
            asked = f"{dotted_path(call.func.value)}."
            if asked.startswith(receiver) and not _is_kept(call, model):
                return True
    return False


def _is_kept(call: cst.Call, model: "Model") -> bool:
    """Whether a state dict is put into a file, or into another dict, as it is."""
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, cst.Dict):
            return True
        if isinstance(ancestor, cst.Call) and "save" in (dotted_path(ancestor.func) or ""):
            return True
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            break
    return False


def _selects_entries(node: cst.BaseExpression, model: "Model", depth: int = 0) -> bool:
    """Whether entries of the dict were chosen under a condition on the way here."""
    if isinstance(node, cst.DictComp):
        return bool(node.for_in.ifs)
    if isinstance(node, cst.Subscript):
        return _selects_entries(node.value, model, depth)
    if dotted_path(node) is None or depth > MAX_NAMES:
        return False
    if any(_is_written_under_condition(use, model) for use in uses(node, model)):
        return True
    values = [binding.value for binding in model.reaching(node) if binding.kind is BindingKind.ASSIGN]
    return any(value is not None and _selects_entries(value, model, depth + 1) for value in values)


def _is_written_under_condition(use: cst.BaseExpression, model: "Model") -> bool:
    """Whether a use is ``for ...: if ...: use[k] = v``."""
    item = model.tree.parent(use)
    if not isinstance(item, cst.Subscript) or item.value is not use:
        return False
    if not isinstance(model.tree.parent(item), (cst.AssignTarget, cst.Del)):
        return False
    is_conditional = False
    for ancestor in model.tree.ancestors(item):
        if isinstance(ancestor, cst.For):
            return is_conditional
        is_conditional = is_conditional or isinstance(ancestor, cst.If)
    return False
