"""Things of which nothing is known, and that functions of the project are given to use them as modules."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.names.uses import attributes, uses
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

OF_MODULES = (
    "eval", "train", "parameters", "named_parameters", "modules", "named_modules", "children", "named_children",
    "sublayers", "named_sublayers",
)  # fmt: skip
"""Methods that nothing but a module has, called without an argument."""


def is_given_as_module(model: "Model", node: cst.BaseExpression, holder: cst.CSTNode) -> bool:
    """Whether a function of the project is given a thing that it calls, or of which it asks for what a module has.

    ``holder`` is what holds all that may be the same thing by its name.
    """
    for use in _mentions(model, node, holder):
        arg = model.tree.parent(use)
        call = model.tree.parent(arg) if isinstance(arg, cst.Arg) and not arg.star else None
        callee = model.value(call.func) if isinstance(call, cst.Call) else None
        if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call) or not isinstance(callee, Function):
            continue
        inside = uses_inside(callee.definition, call, arg, filled_by(callee)) or ()
        if any(_is_of_module(callee.definition.model, place) for place in inside):
            return True
    return False


def _mentions(model: "Model", node: cst.BaseExpression, holder: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Where else the same thing is read: by its name, or as the same attribute of the object."""
    if isinstance(node, cst.Name):
        yield from (use for binding in model.reaching(node) for use in uses(model, binding))
    path = dotted_path(node)
    for other in attributes(model, node.attr.value) if isinstance(node, cst.Attribute) and path is not None else ():
        if dotted_path(other) == path and model.tree.is_below(other, holder):
            yield other


def _is_of_module(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a thing is called, or a method of it that only modules have."""
    parent = model.tree.parent(use)
    if isinstance(parent, cst.Call):
        return parent.func is use
    call = model.tree.call_of(parent) if isinstance(parent, cst.Attribute) and parent.value is use else None
    return call is not None and not call.args and parent.attr.value in OF_MODULES  # type: ignore[union-attr]
