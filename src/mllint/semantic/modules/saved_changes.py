"""Changes in place of tensors that ``backward()`` will need as they were: by statements, by calls, by layers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import saved_tensors
from mllint.semantic.expressions.arguments import calls_of, given_to
from mllint.semantic.graph.given_graphs import is_attached
from mllint.semantic.graph.in_place import ACTIVATIONS, changes_by, works_in_place
from mllint.semantic.graph.placement import is_read_below
from mllint.semantic.graph.saved import (
    giver_of_several,
    in_next_round,
    is_view,
    is_wanted,
    keeper_before,
    keeper_of_input,
    keeper_of_result,
    keeps_result,
    views,
)
from mllint.semantic.modules.drop_rates import rate_of
from mllint.semantic.modules.known_rates import surely_drops
from mllint.semantic.modules.modes import MAX_STEPS, runs_in_one_mode
from mllint.semantic.names.conditions import always_runs, verdicts
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.scopes import BindingKind, assigned
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.names.writes import write
from mllint.semantic.values import Module, Output, Tensor
from mllint.syntax.shape import constant, fingerprint, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Parts of names in conditions of what is only done where no gradient is wanted.
_SPECIAL = ("trac", "script", "export", "onnx", "deploy", "grad", "inplace", "in_place", "compil", "memory")
_ALWAYS_SPECIAL = "grad"
"""Of this one it does not matter how the test turns out: where no gradient is asked for, nothing is kept."""
# What takes no more than the numbers of a tensor, or what it looks like.
_CUTTING = frozenset({"detach", "item", "numpy", "tolist", "data", "shape", "size"})
# Methods that end in an underscore and change the shape alone.
_RESHAPING = frozenset({
    "squeeze_()", "unsqueeze_()", "t_()", "transpose_()", "swapaxes_()", "reshape_()", "flatten_()", "resize_()",
    "exponential_()", "copy_()",
})  # fmt: skip


class Kept(msgspec.Struct, frozen=True):
    """A kept tensor that is changed: by which operation it was kept, and its name; empty for what has none.

    ``is_view``: it is not kept, but one of the views that the operation gives, of which none may be changed.
    """

    name: str
    tensor: str
    is_view: bool = False


def kept_and_changed(model: "Model", statement: cst.BaseSmallStatement) -> Kept | None:
    """What a statement changes in place although ``backward()`` needs it as it was."""
    change = write(model, statement)
    if change is None or change.by_initialiser or change.how in _RESHAPING:
        return None
    if isinstance(statement, cst.AugAssign) and _is_no_write(model, statement):
        return None
    target = _root(model, change.target)
    if target is None:
        return None
    if change.how == "[...] =" and not _is_tensor(model, target, statement):
        kept = _kept_item(model, target, statement)
        return kept if kept is not None and may_be_needed(model, statement) else None
    kept = _kept(model, target, statement)
    if kept is None and change.how == "[...] =" and isinstance(statement, (cst.Assign, cst.AugAssign)):
        found = in_next_round(model, target, statement)
        kept = None if found is None else Kept(found.name, target.value)
    if kept is None or (kept.is_view and change.how == "out=") or not may_be_needed(model, statement):
        return None  # what `out=` is given raises for another reason
    return kept


def _kept(model: "Model", target: cst.Name, change: cst.CSTNode) -> Kept | None:
    name = keeper_of_result(model, target)
    if name is not None and is_attached(model, target) and _goes_on(model, target, change):
        return Kept(name, target.value)
    return _kept_before(model, target, change)


def _kept_before(model: "Model", target: cst.Name, change: cst.CSTNode) -> Kept | None:
    giver = giver_of_several(model, target)
    if giver is not None:
        return Kept(giver, target.value, is_view=True)
    found = keeper_before(model, target, change)
    is_tensor = isinstance(model.value(target), (Tensor, Output)) or (found is not None and found.is_layer)
    if not is_tensor and isinstance(change, cst.AugAssign):
        return None  # a number, perhaps, of which `x += y` makes a new one
    return None if found is None else Kept(found.name, target.value)


def _is_tensor(model: "Model", target: cst.Name, statement: cst.BaseSmallStatement) -> bool:
    """Whether what is written to by an index is surely a tensor: a list has no more than one."""
    if isinstance(model.value(target), Tensor):
        return True
    if not isinstance(model.value(target), Output):
        return False
    written = statement.target if isinstance(statement, cst.AugAssign) else statement.targets[0].target  # type: ignore[attr-defined]
    is_table = isinstance(written, cst.Subscript) and len(written.slice) > 1
    return is_table or keeper_of_result(model, target) is not None


def _kept_item(model: "Model", target: cst.Name, statement: cst.BaseSmallStatement) -> Kept | None:
    """What is kept of an item of a list, or a part of a tensor, whichever it is: ``xs[i] += conv(xs[i])``."""
    if model.framework == "paddle" or not isinstance(statement, cst.AugAssign):
        return None
    item = statement.target
    if not isinstance(item, cst.Subscript) or item.value is not target:
        return None
    for binding in model.reaching(target):
        made = assigned(binding)
        name = keeper_of_result(model, made.elt) if isinstance(made, cst.ListComp) else None
        if name is not None and is_attached(model, made.elt):  # type: ignore[union-attr]
            return Kept(name, f"{target.value}[...]")
    text = fingerprint(item)
    for part in subtree(statement.value):
        if isinstance(part, cst.Subscript) and part.value.__class__ is cst.Name and fingerprint(part) == text:
            found = keeper_of_input(model, part) if always_runs(model, part, statement) else None
            if found is not None and is_wanted(model, found.node):
                return Kept(found.name, f"{target.value}[...]")
    return None


def _goes_on(model: "Model", target: cst.Name, change: cst.CSTNode) -> bool:
    """Whether what was changed is read again, and not only cut off its graph."""
    if isinstance(change, cst.AugAssign) and change.target is target:
        return not all(_is_cut(model.tree.parent(use)) for use in uses_of_bound(model, change))
    return is_read_below(model, target, change)


def _is_cut(parent: cst.CSTNode | None) -> bool:
    """Whether what stands around a tensor takes it off its graph."""
    return isinstance(parent, cst.Attribute) and parent.attr.value in _CUTTING


def _is_no_write(model: "Model", statement: cst.AugAssign) -> bool:
    """Whether ``x += y`` makes a new thing: of a tensor in Paddle, and of what looks like a counter."""
    target = statement.target
    if not isinstance(target, cst.Name):
        return False
    if model.framework == "paddle":
        return True
    is_computed = any(isinstance(item.value, (cst.Call, cst.BinaryOperation)) for item in model.reaching(target))
    return constant(statement.value) is not ... and not is_computed


def _root(model: "Model", node: cst.BaseExpression) -> cst.Name | None:
    """The name of the tensor whose numbers an expression shows."""
    while True:
        if isinstance(node, cst.Subscript) and is_view(model, node):
            node = node.value
        elif (
            isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in views(model)
        ):
            node = node.func.value
        else:
            return node if isinstance(node, cst.Name) else None


def kept_and_changed_by_call(model: "Model", call: cst.Call) -> Iterator[tuple[cst.Call, Kept]]:
    """The calls by which an activation in place, or a layer that works in place, changes what ``backward()`` needs."""
    is_method = last_word(call.func) in ACTIVATIONS and model.library_name(call.func) is None
    if is_method and isinstance(model.tree.parent(call), cst.Expr):
        return  # a statement, which is asked about as one
    if _may_drop_nothing(model, call):
        return
    for place, changed in changes_by(model, call):
        target = _root(model, changed)
        made = changed if target is None else target  # `dropout(relu(x))`: what is changed has no name
        name = keeper_of_result(model, made)
        if name is not None and is_attached(model, made):
            kept: Kept | None = Kept(name, "" if target is None else target.value)
        else:
            kept = None if target is None else _kept_before(model, target, place)
        if kept is not None and may_be_needed(model, place):
            yield place, kept
    name = _kept_in_sequence(model, call)
    if name is not None:
        yield call, Kept(name, "")


def _may_drop_nothing(model: "Model", call: cst.Call) -> bool:
    """Whether a call makes a dropout of which nobody in sight says that it drops anything: it may change nothing."""
    value = model.value(call)
    if not isinstance(value, Module) or value.name is None or "Dropout" not in value.name:
        return False
    rate = rate_of(call)
    return rate is not None and not surely_drops(model, rate)


def _kept_in_sequence(model: "Model", call: cst.Call) -> str | None:
    """What keeps its result in front of a layer that works in place, in the same ``Sequential``."""
    arg = model.tree.parent(call)
    outer = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    if (
        not isinstance(outer, cst.Call)
        or last_word(outer.func) != "Sequential"
        or any(item.star for item in outer.args)
    ):
        return None
    position = outer.args.index(arg)
    own = model.value(call)
    if position == 0 or not isinstance(own, Module) or own.name is None or not works_in_place(call, own.name):
        return None
    layers = [model.value(item.value) for item in outer.args[:position]]
    known = [saved_tensors.layer(item.name) for item in layers if isinstance(item, Module) and item.name is not None]
    if len(known) < len(layers) or known[-1] is None or not any(item is not None and item[1] for item in known):
        return None
    return known[-1][0] if keeps_result(known[-1][0], layers[-1]) else None


def may_be_needed(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place records a graph in a training, as far as its conditions and those who call it tell."""
    function = model.enclosing_function(node)
    # A function that walks the graph itself is for training, whatever it is called.
    is_walked = function is not None and bool(model.backward.calls_in(function))
    if model.gradients.off(node) is not False or runs_in_one_mode(model, node, 0 if is_walked else MAX_STEPS):
        return False
    if function is not None and is_walked and _is_walked_before(model, function, node):
        return False
    if any(_is_special(test, holds) for test, holds in verdicts(model, node)):
        return False
    info = None if function is None else model.function_info(function)
    if info is not None and any(
        holds and _is_asked_by_others(model, info, test) for test, holds in verdicts(model, node)
    ):
        return False
    if info is None or info.owner is None or info.owner.framework is None or info.name in ("forward", "__call__"):
        return True
    return any(call for call in model.calls_by_word.get(info.name, ()) if isinstance(call.func, cst.Attribute))


def _is_asked_by_others(model: "Model", info: FunctionInfo, test: cst.BaseExpression) -> bool:
    """Whether a test is an option of a method, off by default, for which none but others than ``forward`` ask.

    So it is with what only ``predict`` wants, of which no ``backward()`` comes.
    """
    bindings = model.reaching(test) if isinstance(test, cst.Name) and info.owner is not None else ()
    parameter = bindings[0].node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    if not isinstance(parameter, cst.Param) or parameter.default is None or constant(parameter.default) is not False:
        return False
    asking = [
        function_around(model, call)
        for call, skipped in calls_of(model, info)
        for arg in call.args
        if given_to(info, call, arg, skipped) is parameter and constant(arg.value) is not False
    ]
    running = frozenset[FunctionInfo]() if info.owner is None else info.owner.members.reachable("forward")
    return bool(asking) and not any(
        asker is None or asker in running or model.backward.calls_in(asker.node) for asker in asking
    )


def _is_special(test: cst.BaseExpression, holds: bool) -> bool:
    """Whether a test asks for what is only done where no gradient is wanted: ``if exporting:``, not its ``else``."""
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, holds = test.expression, not holds
    is_other_way = not holds and isinstance(test, (cst.Name, cst.Attribute, cst.Call))
    words = (part.value.lower() for part in subtree(test) if isinstance(part, cst.Name))
    return any(word in part and not (is_other_way and word != _ALWAYS_SPECIAL) for part in words for word in _SPECIAL)


def _is_walked_before(model: "Model", function: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """Whether a function walks its graph only above a place, and in no loop with it: ``loss.backward(); x += step``."""
    here = model.scope_of(node).place_of(node)
    around = list(model.tree.loops_around(node))
    for call in model.backward.calls_in(function):
        there = model.scope_of(call).place_of(call) if model.scope_of(call) is model.scope_of(node) else None
        if here is None or there is None or there[1] > here[1]:
            return False
        if any(model.tree.is_below(call, loop) for loop in around):
            return False
    return True
