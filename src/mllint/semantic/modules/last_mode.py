"""Which mode a module is in, where the file says so."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.uses import attributes, uses
from mllint.semantic.values import Module
from mllint.syntax.shape import constant, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


_SWITCHING = re.compile(rb"\beval\s*\(|\btrain\s*\(\s*[^)\s]|\btraining\s*=")
"""What may switch a module to evaluation, however it came there."""


def surely_trains(model: "Model", module: cst.BaseExpression, place: cst.CSTNode) -> bool:
    """Whether a module is in training mode at a place of the scope that it is named in.

    Every ``train()`` and ``eval()`` above the place in its scope must switch to training. Without any, it must be a new
    module that was handed to nobody since, or the file must not switch anything to evaluation.
    """
    path = dotted_path(module)
    scope = model.scope_of(place)
    here = scope.place_of(place)
    if path is None or here is None:
        return False
    switches: list[tuple[int, bool | None]] = []
    elsewhere = False
    for word in ("train", "eval"):
        for call in model.calls_by_word.get(word, ()):
            there = scope.place_of(call) if model.scope_of(call) is scope else None
            is_this = isinstance(call.func, cst.Attribute) and dotted_path(call.func.value) == path
            if there is None or not is_this:
                elsewhere = elsewhere or word == "eval" or _mode(call) is not True
            elif there[1] < here[1]:
                switches.append((there[1], _mode(call)))
    if not all(mode is True for _, mode in switches):
        return False
    if "." in path and not switches:
        return not elsewhere and _is_made_for_object(model, module) and not _is_switched_anywhere(model)
    if "." in path:  # an attribute: any method of its object may switch it
        return not _may_be_switched_between(model, module, max(switches)[0], here[1])
    return bool(switches) or not elsewhere or _is_new(model, module, here[1])


def switched_to_training(callee: cst.BaseExpression) -> cst.BaseExpression | None:
    """The module of ``net.train()``, which gives that very module back."""
    if not isinstance(callee, cst.Call) or not isinstance(callee.func, cst.Attribute):
        return None
    return callee.func.value if callee.func.attr.value == "train" and _mode(callee) is True else None


def _may_be_switched_between(model: "Model", module: cst.BaseExpression, first: int, last: int) -> bool:
    """Whether anything is called between two places of a scope that may know the object which holds a module."""
    scope, holder = model.scope_of(module), (dotted_path(module) or "").partition(".")[0]
    for name in model.names_in(holder, scope):
        place, parent = scope.place_of(name), model.tree.parent(name)
        if place is None or not first < place[1] < last:
            continue
        if not isinstance(parent, cst.Attribute):
            return True
        if model.tree.call_of(parent) is not None and not isinstance(model.value(parent), Module):
            return True
    return False


def _is_made_for_object(model: "Model", module: cst.BaseExpression) -> bool:
    """Whether an attribute is a module that the constructor of its object makes, and nothing sets anew."""
    method = method_of_receiver(model, module.value) if isinstance(module, cst.Attribute) else None
    if method is None or method.owner is None or not isinstance(module, cst.Attribute):
        return False
    value = model.value(module)
    word, start = module.attr.value, method.owner.methods.get("__init__")
    set_there = [
        item
        for item in attributes(model, word)
        if isinstance(model.tree.parent(item), (cst.AssignTarget, cst.AnnAssign, cst.Element))
        and ((of := method_of_receiver(model, item.value)) is None or of.owner is method.owner)
    ]
    if start is None or len(set_there) != 1 or not isinstance(value, Module) or value.call is None:
        return False
    statement = model.tree.nearest(set_there[0], cst.Assign)
    is_made = isinstance(statement, cst.Assign) and statement.value is value.call
    return is_made and model.enclosing_function(set_there[0]) is start.node


def _is_switched_anywhere(model: "Model") -> bool:
    """Whether a file of the project may switch a module to evaluation: it may be one that it knows by its object."""
    return model.project is None or model.project.is_written_anywhere(model.path, _SWITCHING)


def _is_new(model: "Model", module: cst.BaseExpression, order: int) -> bool:
    """Whether a name stands for a module that is made in its scope and given to nobody up to a place."""
    bindings = model.reaching(module)
    if len(bindings) != 1 or bindings[0].value is None or bindings[0].scope is not model.scope_of(module):
        return False
    if _is_switched(bindings[0].value):
        return False
    made, scope = model.value(bindings[0].value), bindings[0].scope
    if not isinstance(made, Module) or made.call is None or id(made.call) not in model.tree.parents:
        return False
    if scope is not model.scope_of(made.call):
        return False
    for use in uses(model, bindings[0]):
        place = scope.place_of(use) if model.scope_of(use) is scope else None
        is_before = place is None or place[1] < order
        if is_before and isinstance(model.tree.parent(use), (cst.Arg, cst.BaseElement, cst.Assign)):
            return False
    return True


def _is_switched(node: cst.BaseExpression) -> bool:
    """Whether a module is switched off training in the very expression that makes it: ``Net().eval()``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in ("train", "eval") and _mode(node) is not True:
            return True
        node = node.func.value
    return False


def _mode(call: cst.Call) -> bool | None:
    """The mode that ``x.train(...)`` or ``x.eval()`` switches to; ``None`` when that is not certain."""
    assert isinstance(call.func, (cst.Attribute, cst.Name))
    word = call.func.attr.value if isinstance(call.func, cst.Attribute) else call.func.value
    if word == "eval":
        return False
    if not call.args:
        return True
    mode = constant(call.args[0].value)
    return mode if isinstance(mode, bool) else None
