"""Learning rates that the project sets itself: in a scheduler of its own, or by hand, ``group["lr"] = rate``."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path, string_literal, subscript_index, targets_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Thing: TypeAlias = tuple[str, int]
_RATE = "lr"
_SETS = "set_lr"
_GROUPS = "param_groups"


def framework_of_own(definition: ClassInfo) -> str | None:
    """The framework whose optimizers a class changes in its ``step()`` and nowhere else; ``None``: that is no such one.

    PyTorch has the rate in ``optimizer.param_groups[0]["lr"]``, Paddle takes it from ``optimizer.set_lr(rate)``.
    """
    is_plain = not definition.has_unknown_base and all(base in PLAIN_BASES for base in definition.library_bases)
    if not is_plain or definition.method("step") is None or definition.method("__call__") is not None:
        return None
    methods = [method for info in definition.lineage for method in info.methods.values() if method.name != "__init__"]
    setting = {method: framework for method in methods if (framework := sets_rate(method)) is not None}
    return next(iter(setting.values()), None) if setting.keys() <= definition.members.reachable("step") else None


def sets_rate(method: FunctionInfo) -> str | None:
    """The framework whose optimizers are given another rate in a function.

    PyTorch has the rate in ``optimizer.param_groups[0]["lr"]``, Paddle takes it from ``optimizer.set_lr(rate)``.
    """
    for part in subtree(method.node.body):
        framework = _sets(part)
        if framework is not None:
            return framework
    return None


def _sets(part: cst.CSTNode) -> str | None:
    if isinstance(part, (cst.AssignTarget, cst.AugAssign)):
        return "torch" if _is_rate(part.target) else None
    if isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value == _SETS:
        return "paddle"
    return None


def _is_rate(target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Subscript) and string_literal(subscript_index(target)) == _RATE


def named_thing(model: "Model", node: cst.CSTNode) -> Thing | None:
    """What tells a thing that has a name from those that others call the same: ``optimizer``, ``self.optimizer``.

    The name and the scope that binds it, or the class of the instance.
    """
    path = dotted_path(node)
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    if path is None or not isinstance(root, cst.Name):
        return None
    method = method_of_receiver(model, root)
    home = model.scope_of(root).home_of(root.value)
    return path.partition(".")[2] if method is not None else path, id(home if method is None else method.owner)


def is_set_by_hand(model: "Model", optimizers: Collection[Thing]) -> bool:
    """Whether the file sets the rate of one of these optimizers of PyTorch itself, or calls a function that does.

    What no call in sight reaches is left over: ``def adjust_rate(optimizer, epoch)`` of a lesson. In Paddle
    ``set_lr()`` refuses an optimizer that has a scheduler.
    """
    names = {thing[0] for thing in optimizers}
    if any(_is_of_one(model, node, optimizers) and _may_run(model, node, names) for node in _settings(model)):
        return True
    return any(_sets_for(model, call, optimizers) for calls in model.calls_by_word.values() for call in calls)


def _settings(model: "Model") -> Iterator[cst.CSTNode]:
    """The places of the file that set a rate, as PyTorch keeps it."""
    for kind in (cst.Assign, cst.AugAssign):
        for statement in model.tree.by_type.get(kind, ()):
            if any(_is_rate(target) for target in targets_of(statement)):
                yield statement


def _is_of_one(model: "Model", place: cst.CSTNode, optimizers: Collection[Thing]) -> bool:
    """Whether the body around a place looks at the parameter groups of one of some optimizers."""
    body = model.enclosing_function(place)
    groups = (node for node in attributes(model, _GROUPS) if model.enclosing_function(node) is body)
    return any(named_thing(model, node.value) in optimizers for node in groups)


def _may_run(model: "Model", place: cst.CSTNode, names: Collection[str]) -> bool:
    """Whether a place stands in no function, in the one that binds an optimizer, or in one that somebody may call."""
    function = model.enclosing_function(place)
    info = None if function is None else model.function_info(function)
    if info is None or info.owner is not None or info.scope.bindings.keys() & names:
        return True
    return bool(model.calls_by_word.get(info.name)) or any(True for _ in model.importers(info.name))


def _sets_for(model: "Model", call: cst.Call, optimizers: Collection[Thing]) -> bool:
    """Whether a call gives one of some optimizers to a function of the project that sets its rate."""
    if not any(named_thing(model, arg.value) in optimizers for arg in call.args):
        return False
    value = model.value(call.func)
    return isinstance(value, Function) and sets_rate(value.definition) == "torch"
