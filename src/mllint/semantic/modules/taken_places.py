"""Plain lists and dicts that are assigned where a module is registered: a module refuses them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.classes import Assignment
from mllint.semantic.names.conditions import conditions
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_TAKING_OUT = ("delattr", "__delattr__", "_modules", "_sub_layers", "__dict__")
"""By what a registered module may lose its name, beside ``del``."""


def takes_registered_place(definition: "ClassInfo", method: "FunctionInfo", name: str) -> bool:
    """Whether a module surely is registered under a name when a method runs that the constructor does not call."""
    constructing = definition.members.reachable("__init__")
    if method in constructing or definition.has_unknown_base or definition.method("__setattr__") is not None:
        return False
    places = [
        item for item in definition.members.assignments(name) if item.method is None or item.method in constructing
    ]
    if not any(_is_sure(item, name) for item in places):
        return False
    if not all(_is_module(item) for item in places) and not any(_registers_itself(item, name) for item in places):
        return False
    return not any(_may_take_out(model, name) for model in definition.members.models)


def _is_module(place: Assignment) -> bool:
    return place.value is not None and isinstance(place.model.value(place.value), Module)


def _is_sure(place: Assignment, name: str) -> bool:
    """Whether a constructor runs an assignment whatever it is given, or a method registers what is in the list."""
    if not _is_module(place) or place.method is None:
        return False
    line = place.model.tree.parent(place.node)
    is_first = line is not None and place.model.tree.parent(line) is place.method.node.body
    return (place.method.name == "__init__" and is_first) or _registers_itself(place, name)


def _registers_itself(place: Assignment, name: str) -> bool:
    """Whether an assignment registers the list that was there: ``self.layers = nn.ModuleList(self.layers)``.

    Nothing is asked before but whether it is done already.
    """
    call = place.value
    if place.method is None or not isinstance(call, cst.Call) or len(call.args) != 1 or not _is_module(place):
        return False
    path = f"{place.method.self_name}.{name}"
    tests = conditions(place.model, place.node)
    return dotted_path(call.args[0].value) == path and all(_asks_for_kind(test, path) for test in tests)


def _asks_for_kind(test: cst.BaseExpression, path: str) -> bool:
    asked = test.expression if isinstance(test, cst.UnaryOperation) else test
    return (
        isinstance(asked, cst.Call)
        and last_word(asked.func) == "isinstance"
        and dotted_path(asked.args[0].value) == path
    )


def _may_take_out(model: "Model", name: str) -> bool:
    """Whether a file may take the name of a registered module away."""
    deleted = (part for statement in model.tree.by_type.get(cst.Del, ()) for part in subtree(statement))
    is_deleted = any(isinstance(part, cst.Attribute) and part.attr.value == name for part in deleted)
    return is_deleted or any(word in model.names_by_word for word in _TAKING_OUT)
