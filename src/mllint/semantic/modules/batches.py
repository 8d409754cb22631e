"""Batches of one, tensors and loaders whose size is written down; and which mode a module is in then, where the file
says so.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind, only_assigned
from mllint.semantic.names.uses import attributes, uses
from mllint.semantic.values import Module, Number, Object, Symbol
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import argument, before_methods, constant, constant_given, dotted_path, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 6
"""Through how many names and methods a batch is followed."""

_FILLED = frozenset({"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"})
SOURCES = (*sorted(name.rpartition(".")[2] for name in _FILLED), "DataLoader")
"""The last words of what batches of a known size come from."""

# Methods that leave the shape as it is.
_SAME_SHAPE = frozenset({
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "detach", "clone", "contiguous", "requires_grad_",
    "type", "pin_memory",
})  # fmt: skip


class Batch(NamedTuple):
    """A batch of one; ``rank`` is how many dimensions it has, batch included, where that is known."""

    rank: int | None


def batch_of_one(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> Batch | None:
    """The batch that an expression stands for, if it surely has one sample."""
    if steps == 0:
        return None
    if isinstance(node, cst.Name):
        bindings = model.reaching(node)
        value = bindings[0].value if len(bindings) == 1 else None
        if value is None:
            return None
        if bindings[0].kind is BindingKind.LOOP:
            return _drawn(model, value)
        if bindings[0].kind is not BindingKind.ASSIGN:
            return None
        found = batch_of_one(model, value, steps - 1)
        # A part of what a loader yields (`images, labels = batch`) has as many samples; a part of a tensor has not.
        return None if found is not None and bindings[0].path and found.rank is not None else found
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _SAME_SHAPE:
        return batch_of_one(model, node.func.value, steps - 1)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "unsqueeze":
        rank = _rank(model, node.func.value, steps - 1) if constant_given(node, 0, "dim") == 0 else None
        return None if rank is None else Batch(rank + 1)
    filled = _filled(node)
    wrapped = batch_of_one(model, node.args[0].value, steps - 1) if node.args else None
    if filled is None and wrapped is None:
        return None
    # Asked last: most calls are given nothing from which a batch of one could come.
    callee = model.value(node.func)
    name = callee.name if isinstance(callee, Symbol) else None
    return filled if name in _FILLED else wrapped if name == "torch.autograd.Variable" else None


def _filled(call: cst.Call) -> Batch | None:
    """``torch.randn(1, 8)``, ``torch.zeros((1, 8))``."""
    sizes = _sizes(call)
    return Batch(len(sizes)) if sizes and constant(sizes[0]) == 1 and len(sizes) > 1 else None


def _sizes(call: cst.Call) -> list[cst.BaseExpression]:
    """The sizes that are written down in a call, in a tuple or one by one; none where not all are."""
    sizes = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if has_star_arguments(call):
        return []
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        if any(isinstance(element, cst.StarredElement) for element in sizes[0].elements):
            return []
        sizes = [element.value for element in sizes[0].elements]
    return sizes


def _rank(model: "Model", node: cst.BaseExpression, steps: int) -> int | None:
    """How many dimensions a tensor has that is made with all its sizes written down: ``torch.zeros(width)`` has one."""
    node = before_methods(node, _SAME_SHAPE)
    if isinstance(node, cst.Name) and steps > 0:
        made = only_assigned(model, node)
        return None if made is None else _rank(model, made, steps - 1)
    if not isinstance(node, cst.Call) or model.qualified_name(node.func) not in _FILLED:
        return None
    sizes = _sizes(node)
    # A name alone may stand for a tuple of sizes.
    return len(sizes) if len(sizes) > 1 or (sizes and _is_number(model, sizes[0])) else None


def _is_number(model: "Model", size: cst.BaseExpression) -> bool:
    """Whether a size is one number: a parameter is where its default is."""
    if isinstance(model.value(size), Number):
        return True
    bindings = model.reaching(size)
    parameters = [item.node for item in bindings if item.kind is BindingKind.PARAMETER]
    return (
        bool(parameters)
        and all(isinstance(item, cst.Param) and isinstance(item.default, cst.Integer) for item in parameters)
        and len(parameters) == len(bindings)
    )


def _drawn(model: "Model", loader: cst.BaseExpression) -> Batch | None:
    """What a loader yields, or a part of it, where the loader is told to make batches of one, or not told at all."""
    value = model.value(run_over(loader))
    if not isinstance(value, Object) or value.name != "torch.utils.data.DataLoader" or value.call is None:
        return None
    call = value.call
    if has_star_arguments(call) or any(argument(call, None, name) for name in ("batch_sampler", "collate_fn")):
        return None
    if len([arg for arg in call.args if arg.keyword is None]) > 2:
        return None
    return Batch(None) if constant_given(call, 1, "batch_size", 1) == 1 else None


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
