"""Forward passes that stand in no loop over the data, and blocks and functions without gradients, by their text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.steps import Event
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.data_loops import fed_names
from mllint.semantic.training.data_rounds import loop_over_data
from mllint.semantic.training.handed_on import as_given
from mllint.semantic.training.relevance import is_pass, matters
from mllint.semantic.training.wanted_gradients import is_of_volatile, only_generates, says_gradients
from mllint.semantic.values import Function, Module
from mllint.syntax.shape import constant, dotted_path
from mllint.syntax.walk import children, names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

OFF = ("no_grad", "inference_mode")
"""What switches gradients off for a block or a function, to go by the words."""
SWITCH = "set_grad_enabled"
"""What does so when it is told ``False``."""
_OF_THEIR_OWN = frozenset({cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.CompFor})


def switches_gradients_off(node: cst.With | cst.FunctionDef) -> bool:
    """Whether a block is one of ``with no_grad():``, or a function is decorated so, to go by the words."""
    if isinstance(node, cst.With):
        return any(_is_off(item.item) for item in node.items)
    return any(_is_off(decorator.decorator) for decorator in node.decorators)


def _is_off(maker: cst.BaseExpression) -> bool:
    call = maker if isinstance(maker, cst.Call) else None
    word = (dotted_path(maker if call is None else call.func) or "").rpartition(".")[2]
    if word == SWITCH and call is not None and call.args:
        return constant(call.args[0].value) is False
    return word in OFF


def calls_in(node: cst.With | cst.FunctionDef) -> Iterator[cst.Call]:
    """The calls in a block that stand in no loop, and no block or function, of their own."""
    pending: list[cst.CSTNode] = [node.body]
    while pending:
        item = pending.pop(0)
        kind = type(item)
        if kind in _OF_THEIR_OWN or (kind is cst.With and switches_gradients_off(item)):  # type: ignore[arg-type]
            continue
        if kind is cst.Call:
            yield item  # type: ignore[misc]
        pending += children(item)


def runs_pass(model: "Model", call: cst.Call) -> bool:
    """Whether a call runs a function of the project that may call models, wants no gradients, and gives something."""
    called = model.value(call.func)
    if not isinstance(called, Function) or isinstance(model.tree.parent(call), cst.Expr):
        return False
    function = called.definition
    return not says_gradients(function.model, function.node.body) and (matters(function) or is_pass(called))


def calls_by_method(model: "Model", call: cst.Call) -> bool:
    """Whether a method of a module of the project is called from outside that may be one of its forward passes."""
    called = model.value(call.func)
    if not isinstance(called, Function) or not isinstance(called.receiver, Module):
        return False
    method = called.definition
    return method.name != "forward" and is_pass(called) and not says_gradients(method.model, method.node.body)


def is_of_round(forward: Event) -> bool:
    """Whether a forward pass is given a batch, by a loop in its own function or around it."""
    loop = loop_over_data(forward)
    return (loop is not None and loop.frame is forward.frame) or _is_given_round(forward)


def _is_given_round(forward: Event) -> bool:
    """Whether a forward pass is given what a loop around it runs over: a batch."""
    args = forward.node.args if isinstance(forward.node, cst.Call) else ()
    return any(
        fed_names(loop.frame.model, loop.node) & names_in(part)
        for loop in forward.loops
        if isinstance(loop.node, cst.For)
        for arg in args
        for part in as_given(forward.frame, arg.value, loop.frame)
    )


def switches_gradients_off_itself(forward: Event) -> bool:
    """Whether the method that a module's call runs may run without gradients, to go by the words in it.

    Or on volatile variables, to go by the words around.
    """
    value = module_called(forward)
    method = value.definition.called if isinstance(value, Module) and value.definition is not None else None
    words = () if method is None else (node.value for node in subtree(method.node) if type(node) is cst.Name)
    return any(word in OFF for word in words) or is_of_volatile(forward) or only_generates(forward)
