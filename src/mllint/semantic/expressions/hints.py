"""What the spelling of an expression hints at where nothing else is known of it. A last resort, never a proof."""

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.tensors import is_reduced_fully
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.values import Function, Tensor
from mllint.syntax.shape import dotted_path, string_literal, subscript_index
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo
    from mllint.semantic.values import Framework, Value

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# What Python's own containers, texts and files have.
_METHODS = frozenset(name for kind in (list, dict, set, str, io.TextIOBase) for name in dir(kind))
_KNOWN = frozenset({"torch", "paddle", "numpy", "builtins"})
"""Libraries of which it is known what they give, or that it is no tensor."""
_OF_EACH_ITEM = re.compile(r"""Loss\((?:[^()]|\([^()]*\))*\b(?:reduce\s*=\s*False|reduction\s*=\s*["']none["'])""")
_MAX_STEPS = 3
"""Through how many names what computes a loss, or tells a version, is followed."""
_CRITERION = frozenset({"criterion", "crit"})
_STEPS = frozenset({"data", "cpu", "detach", "numpy", "clone"})
"""What ``.item()`` makes needless between a tensor and an index."""


def is_called_loss(node: cst.BaseExpression) -> bool:
    """Whether an expression is spelled as one loss: ``g_loss``, ``losses["a"]``, ``out["loss"]``, ``criterion(x)``."""
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return is_name_of_loss(name)
        case cst.Subscript() if is_name_of_loss(string_literal(subscript_index(node)) or ""):
            return True
        case cst.Subscript(value=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
            return (is_name_of_loss(name) or "losses" in _words(name)) and subscript_index(node) is not None
        case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
            return is_name_of_loss(name) or not _CRITERION.isdisjoint(_words(name))
    return False


def is_spelled_as_loss(node: cst.BaseExpression) -> bool:
    """Whether an expression is called a loss, or is a sum of several that are."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        return is_spelled_as_loss(node.left) and is_spelled_as_loss(node.right)
    return is_called_loss(node)


def makes_row_losses(model: "Model") -> bool:
    """Whether a file makes losses, to be handed on, that it tells to keep a number for each item."""
    return _OF_EACH_ITEM.search(model.source.text) is not None


def is_of_other_library(model: "Model", node: cst.BaseExpression, steps: int = _MAX_STEPS) -> bool:
    """Whether an object or function of a library that is no framework computes something: who knows its dimensions?"""
    match node:
        case cst.BinaryOperation():
            return is_of_other_library(model, node.left, steps) or is_of_other_library(model, node.right, steps)
        case cst.Call():
            name = model.qualified_name(node.func)
            if name is not None:
                return name.partition(".")[0] not in _KNOWN
            return is_of_other_library(model, node.func, steps)
        case cst.Name() | cst.Attribute() if steps:
            values = _assigned_here_or_outside(model, node)
            return any(is_of_other_library(model, value, steps - 1) for value in values)
    return False


def is_added_to_row(model: "Model", node: cst.BaseExpression, steps: int = _MAX_STEPS) -> bool:
    """Whether a function of the project computes something, and adds to what it has made with a dimension.

    ``total = paddle.zeros([1])``, ``total += criterion(x, y)``: what comes back has that dimension.
    """
    for part in subtree(node):
        if isinstance(part, cst.Call):
            callee = model.value(part.func)
            if isinstance(callee, Function) and _adds_to_row(callee.definition):
                return True
        elif isinstance(part, cst.Name) and steps:
            values = [item.value for item in model.reaching(part) if item.kind is BindingKind.ASSIGN]
            if any(value is not None and is_added_to_row(model, value, steps - 1) for value in values):
                return True
    return False


def _adds_to_row(function: "FunctionInfo") -> bool:
    model = function.model
    return any(
        isinstance(part, cst.AugAssign) and any(map(_is_row, map(model.binding_value, model.reaching(part.target))))
        for part in subtree(function.node.body)
    )


def _is_row(value: "Value | None") -> bool:
    return isinstance(value, Tensor) and value.scalar is False


def is_spelled_as_reduction(node: cst.BaseExpression, framework: "Framework") -> bool:
    """Whether an expression calls what, if it is a method of a tensor, reduces all dimensions to one: ``x.sum()``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    fact = lookup.tensor_method(framework, node.func.attr.value)
    return fact is not None and fact.returns == "scalar" and is_reduced_fully(fact, node, own_input=False)


def is_scaled_scalar(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name stands for what is 0-d times, or plus, something unknown: a number, most likely."""
    value = model.value(node)
    if not isinstance(value, Tensor) or value.scalar is not None:
        return False
    bindings = model.reaching(node)
    for binding in bindings:
        made = binding.value if binding.kind is BindingKind.ASSIGN else None
        sides = [model.value(made.left), model.value(made.right)] if isinstance(made, cst.BinaryOperation) else []
        if None not in sides or not any(isinstance(side, Tensor) and side.scalar for side in sides):
            return False
    return bool(bindings)


def is_for_one_version(model: "Model", node: cst.CSTNode) -> bool:
    """Whether it stands in a branch that a test of some version chooses: the other one may have another spelling."""
    branches = (item for item in model.tree.ancestors(node) if isinstance(item, (cst.If, cst.IfExp)))
    pending: list[cst.CSTNode] = [item.test for item in branches]
    followed = 0
    while pending:
        part = pending.pop()
        if isinstance(part, cst.Name) and "version" in part.value.lower():
            return True
        if isinstance(part, cst.Call) and _compares_versions(model.value(part.func)):
            return True
        if isinstance(part, cst.Name) and followed < _MAX_STEPS:
            followed += 1
            pending += _assigned_here_or_outside(model, part)
        pending += children(part)
    return False


def _compares_versions(value: "Value | None") -> bool:
    """Whether a function of the project asks for the version of something: ``torch.__version__``."""
    if not isinstance(value, Function):
        return False
    home, body = value.definition.model, value.definition.node
    return any(home.tree.is_below(name, body) for name in home.names_by_word.get("__version__", ()))


def _assigned_here_or_outside(model: "Model", node: cst.Name | cst.Attribute) -> list[cst.BaseExpression]:
    """What a name is assigned where it is read, or in the body around; an attribute of the own object anywhere."""
    bindings: Iterable[Binding] = model.reaching(node)
    if isinstance(node, cst.Attribute):
        owner = owner_of_attribute(model, node)
        bindings = bindings if owner is None else owner.assignments(node.attr.value)
    elif not bindings:
        home = model.scope_of(node).home_of(node.value)
        bindings = () if home is None else home.bindings.get(node.value, ())
    return [value for item in bindings if (value := assigned(item)) is not None]


_MAKERS_OF_TENSORS = ("from_numpy", "as_tensor", "tensor", "asarray", "array")


def is_moved_to_itself(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function says ``x = x.to(...)`` or ``x = x.cuda()`` of a thing: a tensor or a module of torch then.

    Not of what the function also makes a tensor of: that may be an array. Nor of what it has bound the name to anew
    where the expression stands: ``x = x.numpy()``.
    """
    key = dotted_path(node)
    if key is None or model.framework != "torch":
        return False
    function = model.enclosing_function(node)
    for word in _MAKERS_OF_TENSORS:
        for call in model.calls_by_word.get(word, ()):
            if call.args and dotted_path(call.args[0].value) == key and model.enclosing_function(call) is function:
                return False
    for word in ("to", "cuda", "cpu"):
        for call in model.calls_by_word.get(word, ()):
            statement = model.tree.parent(call)
            if isinstance(call.func, cst.Attribute) and dotted_path(call.func.value) == key:
                is_own = isinstance(statement, cst.Assign) and dotted_path(statement.targets[0].target) == key
                if is_own and model.enclosing_function(call) is function:
                    moved = model.reaching(call.func.value)
                    return all(item in moved or item.node is statement for item in model.reaching(node))
    return False


def may_name_layer(model: "Model", callee: cst.BaseExpression) -> bool:
    """Whether what is called may be a layer by its name alone: an attribute may be a method instead.

    It spares looking at what the attribute belongs to; it is asked of every statement that is a call.
    """
    if not isinstance(callee, cst.Attribute):
        return True
    name = callee.attr.value
    is_method = name.endswith("_") or name in _METHODS or name in model.function_names
    return not is_method and dotted_path(callee) is not None


def is_name_of_loss(name: str) -> bool:
    """``loss``, also with one letter at either end (``dloss``, ``lossd``); not ``losses`` or ``lossless``."""
    return any(word == "loss" or (len(word) == 5 and "loss" in word) for word in _words(name))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def without_steps(node: cst.BaseExpression) -> tuple[cst.BaseExpression, frozenset[str]]:
    """``loss`` of ``loss.data.cpu()``, and the names of the steps, which ``.item()`` makes needless."""
    steps: set[str] = set()
    while True:
        if isinstance(node, cst.Call) and not node.args and isinstance(node.func, cst.Attribute):
            callee = node.func
        elif isinstance(node, cst.Attribute) and node.attr.value == "data":
            callee = node
        else:
            break
        if callee.attr.value not in _STEPS:
            break
        steps.add(callee.attr.value)
        node = callee.value
    return node, frozenset(steps)
