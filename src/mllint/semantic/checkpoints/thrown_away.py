"""What is written to the dict that a call of ``state_dict`` has just made, and that nobody has: it is thrown away."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.new_results import is_defined_beside
from mllint.semantic.values import Module, Object, Value, own_method
from mllint.syntax.shape import is_super_call, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

WORD = "state_dict"
_CHANGING = frozenset({"update", "pop", "popitem", "clear", "setdefault", "move_to_end"})
_GROUPS = "param_groups"
_DEEPEST = 3
_KINDS = frozenset({"optimizer", "scheduler", "scaler"})


def may_write(statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement looks as if it wrote to what ``state_dict()`` gives, and to nothing else."""
    return _written(statement) is not None


def written(model: "Model", statement: cst.BaseSmallStatement) -> cst.Call | None:
    """The call whose result a statement writes to, and which surely makes a new dict each time.

    The tensors in it are those of the module: what is written into one of them stays. The groups of parameters are
    copied, too.
    """
    target = _written(statement)
    if target is None:
        return None
    call, is_of_groups = target
    assert isinstance(call.func, cst.Attribute)
    owner = call.func.value
    if is_super_call(owner) or not _makes_new(model, owner, is_of_groups):
        return None
    value = statement.value if isinstance(statement, cst.Assign) else None
    is_in_place = isinstance(value, cst.Call) and (last_word(value.func) or "").endswith("_")
    return None if is_in_place else call


def _written(statement: cst.BaseSmallStatement) -> tuple[cst.Call, bool] | None:
    """The call of ``state_dict``, and whether it is a group of parameters that is written to."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)]):
            return _below(target, 1)
        case cst.Del(target=cst.Subscript() as target):
            return _below(target, 1)
        case cst.AugAssign(target=cst.Subscript() as target):  # of a tensor in the dict it changes that
            return _below(target, _DEEPEST)
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Call() as call, attr=cst.Name(value=word)))):
            return (call, False) if word in _CHANGING and _is_state(call) else None
    return None


def _below(target: cst.Subscript, least: int) -> tuple[cst.Call, bool] | None:
    """The call of which an item is written to, or one of the numbers in its groups of parameters."""
    indexes, node = [target], target.value
    while isinstance(node, cst.Subscript):
        indexes.append(node)
        node = node.value
    is_of_groups = len(indexes) == _DEEPEST and string_literal(subscript_index(indexes[-1])) == _GROUPS
    if not (is_of_groups or len(indexes) == 1) or len(indexes) < least:
        return None
    return (node, is_of_groups) if isinstance(node, cst.Call) and _is_state(node) else None


def _is_state(call: cst.Call) -> bool:
    return not call.args and isinstance(call.func, cst.Attribute) and call.func.attr.value == WORD


def _makes_new(model: "Model", owner: cst.BaseExpression, is_of_groups: bool) -> bool:
    """Whether the state of a thing is a new dict each time it is asked for: unless its class says otherwise."""
    value: Value | None = model.value(owner)
    if own_method(value, WORD) is not None:
        return False
    if isinstance(value, Module):
        return not is_of_groups
    if isinstance(value, Object):
        return value.kind in _KINDS
    if value is not None or model.framework is None:
        return False
    return WORD not in model.function_names and not is_defined_beside(model, WORD)
