"""What goes through an iterable that it is given."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.values import ClassObject, Function, Symbol
from mllint.syntax.shape import dotted_path, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 2
"""Into how many functions of the project an iterable is followed."""

_EXHAUSTING = frozenset({
    "builtins.list", "builtins.tuple", "builtins.set", "builtins.sorted", "builtins.sum", "builtins.max",
    "builtins.min", "builtins.dict", "builtins.frozenset",
    # Run (tests/evidence/test_exhausted_parameters_generator.py).
    "torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_value_",
    "torch.nn.utils.parameters_to_vector", "torch.autograd.grad",
    "paddle.nn.utils.clip_grad_norm_", "paddle.nn.utils.clip_grad_value_",
})  # fmt: skip
_ITERATING = frozenset({"builtins.any", "builtins.all"})
_LAZY = frozenset({
    "builtins.filter", "builtins.map", "builtins.zip", "builtins.enumerate", "builtins.reversed", "itertools.chain",
})  # fmt: skip
_OPTIMIZERS = frozenset({"torch.optim", "paddle.optimizer"})
_GROUP_KEYS = frozenset({"params", "parameters"})


class Consumer(NamedTuple):
    """A place that goes through an iterable, what does it, and whether it surely goes to the end."""

    node: cst.BaseExpression
    by: str
    exhausts: bool


def consumer(model: "Model", node: cst.BaseExpression) -> Consumer | None:
    """What goes through the iterable that an expression stands for; ``None`` when that is not certain."""
    found = _by(model, node, MAX_STEPS)
    return None if found is None else Consumer(node, *found)


def _by(model: "Model", node: cst.CSTNode, steps: int) -> tuple[str, bool] | None:
    parent = model.tree.parent(node)
    match parent:
        case cst.For() if parent.iter is node:
            return "the loop", not _may_stop(parent)
        case cst.CompFor() if parent.iter is node:
            return _by_comprehension(model, parent, steps)
        case cst.StarredElement():
            return "`*`", True
        case cst.DictElement() if string_literal(parent.key) in _GROUP_KEYS:
            return _by_group(model, parent)
        case cst.Arg(star="*"):
            return "`*`", True
        case cst.Arg():
            return _by_call(model, parent, steps)
    return None


def _may_stop(loop: cst.For) -> bool:
    """Whether a loop may end before its iterable does."""
    return any(isinstance(part, (cst.Break, cst.Return, cst.Raise, cst.Yield)) for part in subtree(loop.body))


def _by_comprehension(model: "Model", clause: cst.CompFor, steps: int) -> tuple[str, bool] | None:
    holder = model.tree.parent(clause)
    if isinstance(holder, cst.CompFor):
        return None
    if isinstance(holder, cst.GeneratorExp):
        return _by(model, holder, steps)
    return "the comprehension", True


def _by_group(model: "Model", element: cst.DictElement) -> tuple[str, bool] | None:
    """The optimizer that is given ``[{"params": iterable}]``."""
    group = model.tree.parent(element)
    holder = None if group is None else model.tree.parent(group)
    groups = None if holder is None else model.tree.parent(holder)
    if not isinstance(holder, cst.Element) or not isinstance(groups, (cst.List, cst.Tuple)):
        return None
    arg = model.tree.parent(groups)
    call = None if arg is None else model.tree.parent(arg)
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call) or not _makes_optimizer(model, call):
        return None
    return f"`{_word(call)}`", True


def _by_call(model: "Model", arg: cst.Arg, steps: int) -> tuple[str, bool] | None:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call):
        return None
    word = f"`{_word(call)}`"
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "extend" and len(call.args) == 1:
        return word, True
    if _makes_optimizer(model, call):
        is_first = call.args[0] is arg and arg.keyword is None
        named = arg.keyword is not None and arg.keyword.value in ("params", "parameters", "parameter_list")
        return (word, True) if is_first or named else None
    callee = model.value(call.func)
    match callee:
        case Symbol(name=name) if name in _EXHAUSTING:
            is_right = call.args[1:2] == [arg] if name == "torch.autograd.grad" else call.args[0] is arg
            return (word, True) if is_right else None
        case Symbol(name=name) if name in _ITERATING:
            return word, False
        case Symbol(name=name) if name in _LAZY and steps > 0:
            return _by(model, call, steps - 1)
        case Function() if steps > 0:
            return _by_function(call, arg, callee, steps)
    return None


def _makes_optimizer(model: "Model", call: cst.Call) -> bool:
    callee = model.value(call.func)
    match call.func:
        case cst.Call(func=asking, args=[cst.Arg(value=holder), *_]):
            if model.qualified_name(asking) == "builtins.getattr":
                return model.qualified_name(holder) in _OPTIMIZERS  # one of them, by its name
    if isinstance(callee, ClassObject):
        return callee.definition.kind == "optimizer" and callee.definition.method("__init__") is None
    known = lookup.class_(callee.name) if isinstance(callee, Symbol) else None
    return known is not None and known.kind == "optimizer"


def _by_function(call: cst.Call, arg: cst.Arg, callee: Function, steps: int) -> tuple[str, bool] | None:
    """A function of the project that surely goes through its parameter."""
    info = callee.definition
    if not info.is_transparent or not info.is_plain:
        return None
    for use in uses_inside(info, call, arg, filled_by(callee)) or ():
        found = _by(info.model, use, steps - 1)
        if found is not None and _is_unconditional(info.model, use):
            return f"`{_word(call)}`", found[1]
    return None


def _is_unconditional(model: "Model", node: cst.CSTNode) -> bool:
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.If, cst.IfExp, cst.Try, cst.While, cst.Lambda, cst.BooleanOperation)):
            return False
        if isinstance(ancestor, cst.FunctionDef):
            return True
    return False


def _word(call: cst.Call) -> str:
    return (dotted_path(call.func) or "").rpartition(".")[2] or "a call"
