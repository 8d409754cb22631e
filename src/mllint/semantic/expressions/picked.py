"""What is picked at run time, and what calling it gives: ``getattr(nn, name)``, ``models.__dict__[name]``, a parameter
that stands for a class.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Member, Module, Object, Symbol, Tensor, Value
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Packages that hold nothing but functions which fill the tensor that they are given, and give it back.
FILLING = frozenset({"torch.nn.init"})
# A package of which one group of functions is picked by name: windows, each a new tensor of numbers.
WINDOWS = "torch"
_LAYERS = {"torch.nn": None, "paddle.nn": None, "torchvision.models": "torchvision.models.get_model",
           "paddle.vision.models": None, "pretrainedmodels": None}  # fmt: skip
"""Packages of which modules are picked, and the function that makes what it is told by name in the same way."""
_OBJECTS = {
    "torch.optim": ("optimizer", "torch.optim.Optimizer"),
    "paddle.optimizer": ("optimizer", "paddle.optimizer.Optimizer"),
    "torch.optim.lr_scheduler": ("scheduler", "torch.optim.lr_scheduler.LRScheduler"),
    "paddle.optimizer.lr": ("scheduler", "paddle.optimizer.lr.LRScheduler"),
}


def member(model: "Model", call: cst.Call, package: Value | None) -> Member | Symbol | None:
    """What ``getattr(package, name)`` picks: what is called so, or for any name the same kind of thing."""
    if not isinstance(package, Symbol) or len(call.args) < 2 or any(arg.star for arg in call.args):
        return None
    if package.name == WINDOWS:
        return Member(package.name) if _names_window(model, call.args[1].value) else None
    return _picked(package.name, call.args[1].value)


def entry(namespace: str, name: cst.BaseExpression | None) -> Member | Symbol | None:
    """What ``package.__dict__[name]`` picks."""
    package, _, attribute = namespace.rpartition(".")
    return _picked(package, name) if attribute == "__dict__" and name is not None else None


def by_default(model: "Model", callee: cst.BaseExpression) -> Member | None:
    """What a parameter picks whose default is an optimizer: whoever gives another class gives one of its kind."""
    bindings = model.reaching(callee) if isinstance(callee, cst.Name) else ()
    parameter = bindings[0].node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    default = parameter.default if isinstance(parameter, cst.Param) else None
    name = None if default is None else model.library_name(default)
    known = None if name is None else lookup.class_(name)
    if name is None or known is None or known.kind != "optimizer":
        return None
    return Member("paddle.optimizer" if lookup.framework_of(name) == "paddle" else "torch.optim")


def _picked(package: str, name: cst.BaseExpression) -> Member | Symbol | None:
    if package not in FILLING | _LAYERS.keys() | _OBJECTS.keys():
        return None
    written = string_literal(name)
    return Member(package) if written is None else Symbol(lookup.canonical(f"{package}.{written}"))


def result(model: "Model", call: cst.Call, package: str) -> Value | None:
    """What calling it gives."""
    if package in FILLING:
        return model.value(call.args[0].value) if call.args and not call.args[0].star else None
    if package in _LAYERS:
        return Module("paddle" if package.startswith("paddle") else "torch", _LAYERS[package], call=call)
    if package == WINDOWS:
        return Tensor("torch", False, scalar=False)
    return Object(*_OBJECTS[package], call)


def _names_window(model: "Model", name: cst.BaseExpression) -> bool:
    """Whether an expression is a parameter that stands for the name of a window function, as its default says."""
    bindings = model.reaching(name) if isinstance(name, cst.Name) else ()
    if len(bindings) != 1 or not isinstance(bindings[0].node, cst.Param) or bindings[0].node.default is None:
        return False
    return (string_literal(bindings[0].node.default) or "").endswith("_window")
