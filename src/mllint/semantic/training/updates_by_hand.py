"""Parameters that a loop updates by hand, ``w -= rate * w.grad``, with gradients that nobody ever clears."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path, has_one_round, last_word, root_of, runs_once
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CLEARING = re.compile(r"zero_|zero.*grad|grad.*zero|clear|reset|clean|fill_|empty_|set_to_none", re.IGNORECASE)
"""What is in the name of everything that clears a gradient: `zero_`, `zero_grad`, `clear_gradients`."""
# What changes a tensor in place by what it is given.
_ADDING = frozenset({"add_", "sub_", "copy_", "set_value", "assign_sub", "subtract_", "addcmul_", "addcdiv_"})


def updates_by_hand(model: "Model") -> Iterator[tuple[cst.CSTNode, str]]:
    """The statements that update with gradients which add up over all rounds, each with whose gradient it reads."""
    seen: set[int] = set()
    for gradient in attributes(model, "grad"):
        owner = dotted_path(gradient.value)
        statement = None if owner is None else _update(model, gradient, owner)
        if owner is None or statement is None or id(statement) in seen:
            continue
        seen.add(id(statement))
        loop = _loop_of_backward(model, statement)
        if loop is None:
            is_endless = _is_called_in_rounds(model, gradient, statement)
        else:
            is_endless = _is_kept(model, gradient, loop) and not _may_clear(model, loop)
        if is_endless:
            yield statement, owner


def _update(model: "Model", gradient: cst.Attribute, owner: str) -> cst.CSTNode | None:
    """The statement that changes a tensor in place by its gradient."""
    statement: cst.CSTNode | None = gradient
    while statement is not None and not isinstance(statement, (cst.BaseSmallStatement, cst.BaseSuite)):
        statement = model.tree.parent(statement)
    match statement:
        case cst.AugAssign(target=target, operator=cst.SubtractAssign() | cst.AddAssign()):
            # Paddle's `w -= x` makes another tensor.
            return statement if model.framework == "torch" and _is_of(model, target, owner) else None
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="data")) as target)]):
            return statement if _is_of(model, target, owner) else None
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=target, attr=cst.Name(value=method)))):
            return statement if method in _ADDING and _is_of(model, target, owner) else None
    return None


def _is_of(model: "Model", target: cst.BaseExpression, owner: str) -> bool:
    """Whether a target is the tensor of that name, where it may be changed in place, or its data."""
    path = dotted_path(target)
    return path == f"{owner}.data" or (path == owner and model.gradients.off(target) is True)


def _loop_of_backward(model: "Model", statement: cst.CSTNode) -> cst.For | cst.While | None:
    """The innermost loop around an update in which gradients are computed, and that goes round more than once."""
    for loop in model.tree.loops_around(statement):
        if any(last_word(call.func) == "backward" for call in model.tree.calls_in(loop)):
            is_one = (isinstance(loop, cst.For) and has_one_round(loop)) or runs_once(loop)
            return None if is_one else loop
    return None


def _is_kept(model: "Model", gradient: cst.Attribute, loop: cst.For | cst.While) -> bool:
    """Whether the tensor is the same in every round: what its name is bound to is bound before the loop.

    The variable of a loop over ``net.parameters()`` is what it runs over.
    """
    node = root_of(gradient)
    for _ in range(2):
        bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
        inside = [binding for binding in bindings if model.tree.is_inside(binding.node, loop)]
        # `w -= w.grad` binds the name anew, to the same tensor.
        inside = [item for item in inside if item.kind is not BindingKind.AUGMENTED]
        if not inside:
            return bool(bindings)
        over = inside[0].value
        if len(inside) > 1 or inside[0].kind is not BindingKind.LOOP or over is None:
            return False
        while isinstance(over, (cst.Attribute, cst.Call)):
            if isinstance(over, cst.Call) and last_word(over.func) in ("enumerate", "zip", "list"):
                over = over.args[0].value if over.args else over.func
            else:
                over = over.func if isinstance(over, cst.Call) else over.value
        node = over
    return False


def _is_called_in_rounds(model: "Model", gradient: cst.Attribute, statement: cst.CSTNode) -> bool:
    """Whether all in sight who call the method around an update do so in the rounds of a loop, none of which clears.

    The method computes the gradients, nothing in the class speaks of clearing, and the tensor is one that the
    constructor has made, or of a module that it has.
    """
    info = function_around(model, statement)
    owner = None if info is None else info.owner
    if info is None or owner is None or owner.has_unknown_base or any(owner.subclasses):
        return False
    if not any(last_word(call.func) == "backward" for call in model.tree.calls_in(info.node)):
        return False
    if not _is_made_once(model, gradient, info) or owner.members.may_be_read_elsewhere(info.name):
        return False
    loops = [_loop_of_rounds(model, call) for call, _ in calls_of(model, info)]
    if not loops or any(loop is None or _may_clear(model, loop) for loop in loops):
        return False
    return not any(_speaks_of_clearing(part.node) for part in owner.lineage) and not _calls_clearing(model, info.node)


def _loop_of_rounds(model: "Model", call: cst.Call) -> cst.For | cst.While | None:
    """The innermost loop around a call that goes round more than once."""
    loops = model.tree.loops_around(call)
    return next(
        (loop for loop in loops if not (has_one_round(loop) if isinstance(loop, cst.For) else runs_once(loop))), None
    )


def _is_made_once(model: "Model", gradient: cst.Attribute, info: FunctionInfo) -> bool:
    """Whether a tensor is an attribute, or of one, that nothing sets but what the constructor runs."""
    node: cst.BaseExpression = gradient.value
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP and bindings[0].value is not None:
        node = bindings[0].value
        while isinstance(node, cst.Call):
            is_wrapped = last_word(node.func) in ("enumerate", "list") and node.args
            node = node.args[0].value if is_wrapped else node.func
    receiver, _, rest = (dotted_path(node) or "").partition(".")
    if receiver != info.self_name or info.owner is None or not rest:
        return False
    members = info.owner.members
    places = [  # `self.w -= self.w.grad` sets it to the same tensor
        place for place in members.assignments(rest.partition(".")[0]) if not isinstance(place.node, cst.AugAssign)
    ]
    return bool(places) and all(place.method in members.setting_up for place in places)


def _may_clear(model: "Model", loop: cst.For | cst.While) -> bool:
    """Whether anything in the function of a loop, or what it calls, may clear gradients, by its name."""
    function = model.enclosing_function(loop)
    return _speaks_of_clearing(model.tree.module if function is None else function) or _calls_clearing(model, loop)


def _speaks_of_clearing(code: cst.CSTNode) -> bool:
    """Whether some code has a name that speaks of clearing, or sets gradients."""
    return any(
        (isinstance(part, cst.Name) and _CLEARING.search(part.value))
        or (isinstance(part, (cst.Assign, cst.AnnAssign, cst.Del)) and _writes_gradient(part))
        for part in subtree(code)
    )


def _calls_clearing(model: "Model", code: cst.CSTNode) -> bool:
    """Whether a function that some code calls speaks of clearing."""
    called = [model.value(call.func) for call in model.tree.calls_in(code)]
    functions = [value.definition for value in called if isinstance(value, Function)]
    return any(
        isinstance(part, cst.Name) and _CLEARING.search(part.value) for info in functions for part in subtree(info.node)
    )


def _writes_gradient(statement: cst.Assign | cst.AnnAssign | cst.Del) -> bool:
    targets = [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
    return any(
        isinstance(part, cst.Attribute) and part.attr.value == "grad" for item in targets for part in subtree(item)
    )
