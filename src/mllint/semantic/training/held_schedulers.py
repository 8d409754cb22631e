"""Who reads what a scheduler is bound to; in Paddle the optimizer holds it, and may step it for whoever has that."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.foreign_reads import is_derived_elsewhere, is_read_of_others, may_be_read_elsewhere
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import bound_by, uses, whole
from mllint.semantic.values import Function, Symbol
from mllint.syntax.shape import argument, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 2
"""Into how many functions of the project a scheduler is followed."""
_MAX_CALLING = 6
"""In how many other files the calls of a function are looked for that returns an optimizer."""
_HOLD = ("_learning_rate", "_lr_scheduler", "lr_scheduler")
"""The attributes of an optimizer of Paddle that are the scheduler which it holds."""


def reads_of_bound(model: "Model", binding: Binding) -> "list[tuple[Model, cst.BaseExpression]] | None":
    """The places that read what was bound, each with its file; ``None`` when others may read it too."""
    if "." not in binding.key:
        is_own = binding.key not in binding.scope.outer_names  # what is `global` is every function's
        return [(model, node) for node in uses(model, binding)] if is_own else None
    function = binding.scope.node
    method = model.function_info(function) if isinstance(function, cst.FunctionDef) else None
    if method is None or method.owner is None or binding.key.count(".") != 1:
        return None
    if binding.key.partition(".")[0] != method.self_name:
        return None
    members, name = method.owner.members, binding.key.partition(".")[2]
    is_in_sight = all(base in PLAIN_BASES and "ightning" not in base for base in method.owner.library_bases)
    if method.owner.has_unknown_base or not is_in_sight or members.reads_computed_names:
        return None
    if any(is_read_of_others(members, home, name) for home in members.models) or may_be_read_elsewhere(members, name):
        return None
    return [(read.method.model, read.node) for read in members.reads(name)]


def parameter_given(callee: Function, call: cst.Call, arg: cst.Arg) -> Binding | None:
    """What a function of the project calls what it is given, if that name stands for nothing else."""
    info = callee.definition
    if not info.is_transparent or has_star_arguments(call) or _may_be_overridden(info):
        return None
    position = call.args.index(arg) + (0 if callee.receiver is None else 1)
    for index, parameter in enumerate(info.named_parameters):
        name = parameter.name.value
        if name == arg.keyword.value if arg.keyword is not None else index == position:
            (binding, *others) = info.scope.bindings.get(name, [])
            return None if others else binding
    return None


def _may_be_overridden(info: FunctionInfo) -> bool:
    """Whether a class that derives from the one of a method may define another one, which steps what it is given."""
    if info.owner is None or info.name == "__init__":
        return False
    members = info.owner.members
    return is_derived_elsewhere(members) or any(info.name in sub.methods for sub in members.subclasses)


def is_rate_of_idle_optimizer(model: "Model", arg: cst.Arg) -> bool:
    """Whether a scheduler is given as the learning rate of an optimizer of Paddle through which nobody steps it."""
    call = model.tree.parent(arg)
    return isinstance(call, cst.Call) and _is_rate(model, call, arg) and _is_idle(model, call, (), MAX_STEPS)


def _is_idle(model: "Model", call: cst.Call, path: tuple[int | None, ...], steps: int) -> bool:
    """Whether nobody steps what an optimizer of Paddle holds that a call gives, ``path`` being where in the result."""
    statement = model.tree.parent(call)
    if isinstance(statement, cst.Return) and not path:
        return _is_idle_where_called(model, statement, path, steps)
    if not isinstance(statement, (cst.Assign, cst.AnnAssign)):
        return isinstance(statement, cst.Expr)
    bindings = [binding for binding in bound_by(model, statement) if binding.path == path]
    reads = reads_of_bound(model, bindings[0]) if len(bindings) == 1 else None
    return reads is not None and all(_stays(home, node, steps) for home, node in reads)


def _is_idle_where_called(model: "Model", statement: cst.Return, path: tuple[int | None, ...], steps: int) -> bool:
    """Whether nobody in the project who calls a function steps what the optimizer holds that it returns."""
    info = function_around(model, statement)
    if steps == 0 or info is None or info.owner is not None or not info.is_transparent or not info.is_plain:
        return False
    others = list(model.importers(info.name))
    if len(others) > _MAX_CALLING:
        return False
    found = False
    for home in (model, *others):
        for name in home.names_by_word.get(info.name, ()):
            node = whole(home, name)
            parent = home.tree.parent(node)
            if isinstance(parent, cst.FunctionDef) or (isinstance(parent, cst.ImportAlias) and parent.asname is None):
                continue
            value = home.value(node)
            if value is not None and not (isinstance(value, Function) and value.definition.is_same_as(info)):
                continue
            if not isinstance(parent, cst.Call) or parent.func is not node or value is None:
                return False  # handed on, or something of which nothing is known
            if not _is_idle(home, parent, path, steps - 1):
                return False
            found = True
    return found


def _is_rate(model: "Model", call: cst.Call, arg: cst.Arg) -> bool:
    callee = model.value(call.func)
    known = lookup.class_(callee.name) if isinstance(callee, Symbol) else None
    if known is None or known.kind != "optimizer":
        return False
    return argument(call, 0, "learning_rate") is arg


def _stays(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether nobody gets at an optimizer who may step what it holds: its own methods are called, or a function of the
    project is given it that does no more. Or it is returned to where nobody does.
    """
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value not in _HOLD
    if isinstance(parent, cst.Return):
        return _is_idle_where_called(model, parent, (), steps)
    if isinstance(parent, cst.Element):
        beside = model.tree.parent(parent)
        statement = None if beside is None else model.tree.parent(beside)
        if isinstance(beside, cst.Tuple) and isinstance(statement, cst.Return):
            return _is_idle_where_called(model, statement, (list(beside.elements).index(parent),), steps)
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    callee = model.value(call.func) if isinstance(call, cst.Call) else None
    if not isinstance(parent, cst.Arg) or not isinstance(call, cst.Call) or not isinstance(callee, Function):
        return False
    info = callee.definition
    read = uses_inside(info, call, parent, filled_by(callee)) if steps else None
    return read is not None and all(is_looked_at(info.model, use) or _stays(info.model, use, steps - 1) for use in read)


def is_looked_at(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an optimizer is only asked for: ``if optimizer is not None``, ``if optimizer:``."""
    return isinstance(model.tree.parent(node), (cst.Comparison, cst.If, cst.UnaryOperation, cst.BooleanOperation))
