"""Learning-rate schedulers that are made, given their optimizer, and never stepped."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Function, Method, Object, Symbol, Text
from mllint.syntax.shape import argument, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 2
"""Into how many functions of the project a scheduler is followed."""

# https://huggingface.co/docs/transformers/main_classes/optimizer_schedules: each gives a LambdaLR or its like.
_FROM_TRANSFORMERS = re.compile(r"transformers\.(?:\w+\.)*get_\w*(?:schedule|scheduler)\w*")
# What is read of a scheduler without stepping it.
_HARMLESS = frozenset({
    "get_lr", "get_last_lr", "last_epoch", "last_lr", "base_lrs", "state_dict", "load_state_dict", "set_state_dict",
    "set_dict", "optimizer", "verbose", "print_lr", "gamma", "milestones", "step_size", "T_max", "eta_min",
})  # fmt: skip
_SHOWING = frozenset({"builtins.print", "builtins.type", "builtins.id", "builtins.repr", "builtins.str"})
# Words that say that somebody else may step what an optimizer of Paddle holds.
_STEPPED_THROUGH = (
    "_learning_rate",
    "_lr_scheduler",
    "lr_scheduler",
    "LRScheduler",
    "prepare",
    "fleet",
    "distributed_optimizer",
)
_MAKES_STEPS = ("step", "minimize")


class NeverStepped(NamedTuple):
    """A scheduler that nobody steps: the call that makes it, and what it is bound to, if it is bound."""

    call: cst.Call
    key: str | None


def never_stepped(model: "Model") -> Iterator[NeverStepped]:
    """The schedulers of a file that trains which nothing ever steps."""
    words = [word for word in model.calls_by_word if word in _words() or "schedule" in word]
    if not words or not any(model.calls_by_word.get(word) for word in _MAKES_STEPS) or "locals" in model.calls_by_word:
        return
    for word in words:
        for call in model.calls_by_word[word]:
            framework = _makes_scheduler(model, call)
            if framework is None or is_in_a_test(model, call) or _is_only_shown(model, call):
                continue
            found = _judge(model, call, framework)
            if found is not None:
                yield found


@cache
def _words() -> frozenset[str]:
    """The last words of the names of all schedulers."""
    return frozenset(name.rpartition(".")[2] for name in lookup.classes_of_kind("scheduler"))


def _makes_scheduler(model: "Model", call: cst.Call) -> str | None:
    """The framework whose scheduler a call makes."""
    callee = model.value(call.func)
    if isinstance(callee, Function):
        return _gives_scheduler(model, call, callee)
    if not isinstance(callee, Symbol):
        return None
    if _FROM_TRANSFORMERS.fullmatch(callee.name):
        return "torch"
    known = lookup.class_(callee.name)
    return None if known is None or known.kind != "scheduler" else lookup.framework_of(callee.name)


def _gives_scheduler(model: "Model", call: cst.Call, callee: Function) -> str | None:
    """The framework of the scheduler that a function of the project makes, and only gives back: it steps it nowhere."""
    value, info = model.value(call), callee.definition
    if not isinstance(value, Object) or value.kind != "scheduler" or value.call is None or not info.is_transparent:
        return None
    home = info.model
    framework = lookup.framework_of(value.name)
    if (
        framework is None
        or home.tree.parent(value.call) is None
        or home.enclosing_function(value.call) is not info.node
    ):
        return None
    parent = home.tree.parent(value.call)
    if isinstance(parent, cst.Return):
        return framework
    bindings = bound_by(home, parent) if isinstance(parent, (cst.Assign, cst.AnnAssign)) else []
    if len(bindings) != 1 or bindings[0].path or "." in bindings[0].key:
        return None
    is_kept = all(
        isinstance(home.tree.parent(node), cst.Return) or _is_harmless(home, node, framework)
        for node in uses(home, bindings[0])
    )
    return framework if is_kept else None


def _is_only_shown(model: "Model", call: cst.Call) -> bool:
    """Whether nothing is done with the optimizer of a scheduler but making schedulers for it: a lesson shows them."""
    given = argument(call, 0, "optimizer")
    bindings = model.reaching(given.value) if given is not None and isinstance(given.value, cst.Name) else ()
    if not bindings or any(binding.kind is not BindingKind.ASSIGN for binding in bindings):
        return False
    return all(_is_shown(model, node) for binding in bindings for node in uses(model, binding))


def _is_shown(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a place that reads an optimizer makes a scheduler for it, or looks at its settings."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value == "param_groups"
    maker = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(maker, cst.Call) and _makes_scheduler(model, maker) is not None


def _judge(model: "Model", call: cst.Call, framework: str) -> NeverStepped | None:
    parent = model.tree.parent(call)
    if isinstance(parent, cst.Expr):
        return NeverStepped(call, None)
    if isinstance(parent, cst.Arg):
        is_held = framework == "paddle" and _is_rate_of_idle_optimizer(model, parent)
        return NeverStepped(call, None) if is_held else None
    if not isinstance(parent, (cst.Assign, cst.AnnAssign)) or parent.value is not call:
        return None
    bindings = bound_by(model, parent)
    if len(bindings) != 1 or bindings[0].path:
        return None
    key = bindings[0].key
    reads = _reads(model, bindings[0])
    if reads is None or not all(_is_harmless(home, node, framework) for home, node in reads):
        return None
    return None if _is_replaced(model, bindings[0]) else NeverStepped(call, key)


def _is_replaced(model: "Model", binding: Binding) -> bool:
    """Whether another scheduler takes the name of one: that is the one that counts."""
    scope = binding.scope
    return any(
        isinstance(other.value, cst.Call)
        and _makes_scheduler(model, other.value) is not None
        and binding in scope.reaching(binding.key, other.node).bindings
        for other in scope.bindings[binding.key]
        if other is not binding
    )


def _reads(model: "Model", binding: Binding) -> "list[tuple[Model, cst.BaseExpression]] | None":
    """The places that read what was bound, each with its file; ``None`` when others may read it too."""
    if "." not in binding.key:
        return [(model, node) for node in uses(model, binding)]
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
    if any(_is_read_of_others(home, name) for home in members.models) or members.may_be_read_elsewhere(name):
        return None
    return [(read.method.model, read.node) for read in members.reads(name)]


def _is_read_of_others(model: "Model", name: str) -> bool:
    """Whether the file reads an attribute of this name of something that is not the instance: it may be the same."""
    for word in model.names_by_word.get(name, ()):
        attribute = model.tree.parent(word)
        if not isinstance(attribute, cst.Attribute) or attribute.attr is not word:
            continue
        # `paddle.optimizer` is no attribute of an object.
        if method_of_receiver(model, attribute.value) is None and model.library_name(attribute) is None:
            return True
    return False


def _is_harmless(model: "Model", node: cst.BaseExpression, framework: str, steps: int = MAX_STEPS) -> bool:
    """Whether a place that reads a scheduler surely does not step it, and hands it to nobody who may."""
    parent = model.tree.parent(node)
    match parent:
        case cst.Attribute():
            return parent.value is node and parent.attr.value in _HARMLESS
        case cst.Arg():
            call = model.tree.parent(parent)
            if not isinstance(call, cst.Call):
                return False
            if framework == "paddle" and _is_rate_of_idle_optimizer(model, parent):
                return True
            callee = model.value(call.func)
            if isinstance(callee, Function):
                return steps > 0 and _is_left_alone_by(callee, call, parent, framework, steps - 1)
            is_formatted = isinstance(callee, Method) and isinstance(callee.receiver, Text) and callee.name == "format"
            return is_formatted or (isinstance(callee, Symbol) and callee.name in _SHOWING)
        case cst.Comparison() | cst.ComparisonTarget() | cst.FormattedStringExpression() | cst.Expr():
            return True
        case cst.If() | cst.While() | cst.IfExp():
            return parent.test is node
        case cst.UnaryOperation():
            return isinstance(parent.operator, cst.Not)
    return False


def _is_left_alone_by(callee: Function, call: cst.Call, arg: cst.Arg, framework: str, steps: int) -> bool:
    """Whether a function of the project that is given a scheduler never steps it."""
    info = callee.definition
    if not info.is_transparent or has_star_arguments(call):
        return False
    position = call.args.index(arg) + (0 if callee.receiver is None else 1)
    for index, parameter in enumerate(info.named_parameters):
        name = parameter.name.value
        if name == arg.keyword.value if arg.keyword is not None else index == position:
            (binding, *others) = info.scope.bindings.get(name, [])
            read = uses(info.model, binding)
            return not others and all(_is_harmless(info.model, node, framework, steps) for node in read)
    return False


# -- paddle: the optimizer holds the scheduler -------------------------------------------------------------------------


def _is_rate_of_idle_optimizer(model: "Model", arg: cst.Arg) -> bool:
    """Whether a scheduler is given as the learning rate of an optimizer of Paddle through which nobody steps it."""
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call) or not _is_rate(model, call, arg):
        return False
    if any(word in model.names_by_word for word in _STEPPED_THROUGH):
        return False
    statement = model.tree.parent(call)
    if not isinstance(statement, (cst.Assign, cst.AnnAssign)):
        return False
    bindings = bound_by(model, statement)
    if len(bindings) != 1 or bindings[0].path:
        return False
    reads = _reads(model, bindings[0])
    return reads is not None and all(_stays(home, node) for home, node in reads)


def _is_rate(model: "Model", call: cst.Call, arg: cst.Arg) -> bool:
    callee = model.value(call.func)
    known = lookup.class_(callee.name) if isinstance(callee, Symbol) else None
    if known is None or known.kind != "optimizer":
        return False
    return argument(call, 0, "learning_rate") is arg


def _stays(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an optimizer stays in this file: its own methods are called, or a function of the file is given it."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    callee = model.value(call.func) if isinstance(call, cst.Call) else None
    return isinstance(callee, Function) and callee.definition.model is model
