"""Decorators that put something around a function, and keep it nowhere: who wants it has to name it."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.values import Function
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo


def are_only_wrapped(function: "FunctionInfo") -> bool:
    """Whether all decorators of a function are known to keep it nowhere: ``@torch.no_grad()``, and those of the project
    that give back a function which calls it.
    """
    return function.is_transparent or all(
        is_transparent or _only_wraps(function.model, item.decorator)
        for is_transparent, item in zip(function.are_transparent, function.node.decorators, strict=True)
    )


def _only_wraps(model: "Model", decorator: cst.BaseExpression) -> bool:
    made = model.value(decorator.func if isinstance(decorator, cst.Call) else decorator)
    if not isinstance(made, Function):
        return False
    decorating: FunctionInfo | None = made.definition
    if isinstance(decorator, cst.Call):  # `@timed("training")`
        decorating = given_back(made.definition)
    wrapper = None if decorating is None else given_back(decorating)
    if decorating is None or wrapper is None or len(decorating.parameters) != 1:
        return False
    word, inside = decorating.parameters[0].name.value, {id(item) for item in subtree(wrapper.node)}
    named = [item for item in subtree(decorating.node.body) if isinstance(item, cst.Name) and item.value == word]
    return all(_is_read(wrapper, name) or (id(name) in inside and _is_called(wrapper, name)) for name in named)


def _is_read(wrapper: "FunctionInfo", name: cst.Name) -> bool:
    """``function.__name__``."""
    parent = wrapper.model.tree.parent(name)
    return isinstance(parent, cst.Attribute) and parent.value is name


def _is_called(wrapper: "FunctionInfo", name: cst.Name) -> bool:
    """``function(*args)``, ``@functools.wraps(function)``."""
    tree = wrapper.model.tree
    parent = tree.parent(name)
    if isinstance(parent, cst.Arg):
        return any(isinstance(around, cst.Decorator) for around in tree.ancestors(name))
    return isinstance(parent, cst.Call) and parent.func is name


def given_back(function: "FunctionInfo") -> "FunctionInfo | None":
    """The function inside that a function gives back; ``None`` where it may be something else."""
    returned = {getattr(statement.value, "value", None) for statement in function.scope.returns}
    inner = [item for item in function.node.body.body if isinstance(item, cst.FunctionDef)]
    found = [item for item in inner if returned == {item.name.value}]
    return function.model.function_info(found[0]) if len(found) == 1 else None
