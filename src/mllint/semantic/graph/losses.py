"""What a ``backward()`` call is made on, and with which options; what losses of the libraries are given."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import CLEARING
from mllint.semantic.construction.constants import constant_of
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.values import Module, Symbol, Value
from mllint.syntax.shape import argument, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Calls that walk the graph backwards, and those that may.
WALKING = frozenset({
    "backward", "manual_backward", "grad", "minimize", "scale_loss", "autograd_backward", "jacobian", "hessian", "vjp",
})  # fmt: skip

_REDUCTIONS = frozenset({"torch.mean", "torch.sum", "paddle.mean", "paddle.sum"})

_WALKING_OR_SCALING = WALKING | {"scale"}

OF_INDEXES = frozenset({"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "multi_margin_loss"})
"""Losses of which the second argument is an index: nobody learns by it."""


def loss_of(call: cst.Call) -> cst.BaseExpression | None:
    """``loss`` of ``loss.backward()``, ``scaler.scale(loss).backward()``, ``torch.autograd.backward(loss)``."""
    if not isinstance(call.func, cst.Attribute):
        return None
    positional = [arg.value for arg in call.args if arg.keyword is None]
    receiver = call.func.value
    is_function = (dotted_path(receiver) or "").rpartition(".")[2] == "autograd"
    if call.func.attr.value == "manual_backward" or is_function:
        return positional[0] if positional else None
    if positional and is_called_loss(positional[0]) and not is_called_loss(receiver):
        return positional[0]
    if isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Attribute):
        is_scaled = receiver.func.attr.value == "scale" and len(receiver.args) == 1
        return receiver.args[0].value if is_scaled else receiver
    return receiver


def before_reduction(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """``loss`` of ``loss.mean()`` and ``torch.mean(loss)``, if it is called a loss; any other thing as it is."""
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="mean" | "sum")), args=[]):
            return inner if is_called_loss(inner) else node
        case cst.Call(func=func, args=[cst.Arg(value=inner, star="")]) if model.qualified_name(func) in _REDUCTIONS:
            return inner if is_called_loss(inner) else node
    return node


def may_walk(model: "Model", call: cst.Call) -> bool:
    """Whether a call may walk the graphs of what it is given.

    Also by a part of its name, or as a method of what clears gradients: ``optimizer.pc_backward(losses)``,
    ``optimizer.step(losses)``.
    """
    word = last_word(call.func) or ""
    if word in _WALKING_OR_SCALING or "backward" in word:
        return True
    path = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    clearing = (item.func for name in CLEARING for item in model.calls_by_word.get(name, ()))
    return (
        path is not None
        and any(isinstance(func, cst.Attribute) and dotted_path(func.value) == path for func in clearing)
        and isinstance(call.func, cst.Attribute)
        and not isinstance(model.value(call.func.value), Module)
    )


def retaining(model: "Model", call: cst.Call) -> cst.Arg | None:
    """The argument of a ``backward()`` call that surely keeps the graph; ``None`` when there is none."""
    found = argument(call, None, "retain_graph")
    if found is None and isinstance(call.func, cst.Attribute) and loss_of(call) is call.func.value:
        found = argument(call, 1)
    creating = argument(call, None, "create_graph")
    if found is None or constant_of(model, found.value) is not True:
        return None
    return found if creating is None or constant_of(model, creating.value) is False else None


def is_library_loss(module: Module) -> bool:
    """Whether a module is a loss of the libraries."""
    fact = None if module.name is None else lookup.class_(module.name)
    return fact is not None and fact.kind == "loss"


def index_target(callee: Value | None, call: cst.Call) -> cst.Arg | None:
    """The target of a loss of the libraries that is the index of a class, on which no graph hangs."""
    name = callee.name if isinstance(callee, (Symbol, Module)) else None
    if name is None or lookup.framework_of(name) is None or name.rpartition(".")[2] not in OF_INDEXES:
        return None
    return argument(call, 1, "target") or argument(call, None, "label")
