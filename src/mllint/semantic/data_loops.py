"""Loops at a glance: whether one may call a model with what it binds, to go by the text of its file."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.data_sources import yields_data
from mllint.semantic.kinds import may_name_module
from mllint.semantic.scopes import BindingKind
from mllint.semantic.unfolding import matters
from mllint.semantic.values import Function, Module, Object, Value
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_TELLING = ("eval", "train", "backward", "no_grad", "inference_mode", "minimize")
"""What a file calls in which anything is known of the modes of models, or of gradients."""


def may_evaluate(model: "Model", node: cst.For) -> bool:
    """Whether a loop may call a model, to go by its text: what this denies need not be followed."""
    if not any(word in model.calls_by_word for word in _TELLING):
        return False
    known = model.runs.may_evaluate
    if id(node) not in known:
        known[id(node)] = _may_evaluate(model, node)
    return known[id(node)]


def _may_evaluate(model: "Model", node: cst.For) -> bool:
    calls = [item for item in subtree(node.body) if type(item) is cst.Call]
    bound = bound_by(node) if calls else set()
    fed = [
        call
        for call in calls
        if any(bound & names_in(part) or is_next(part) or _is_iterator(model, part) for part in _given_to(call))
    ]
    if any(may_be_model(model, call.func) for call in fed):
        return True
    # What a loader gives may also reach the model through an object that keeps it.
    return any(may_be_model(model, call.func) for call in calls) and (
        is_spelled_as_loader(model, node.iter) or is_loader(model.value(node.iter))
    )


def _is_iterator(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name stands for ``iter(...)``: what it is given to may take the next batch from it."""
    if "iter" not in model.calls_by_word or type(node) is not cst.Name:
        return False
    made = (binding.value for binding in model.reaching(node))
    return any(type(value) is cst.Call and dotted_path(value.func) == "iter" for value in made)


def _given_to(call: cst.Call) -> list[cst.BaseExpression]:
    """What a call is given; the receiver of a method, too."""
    receiver = [call.func.value] if isinstance(call.func, cst.Attribute) else []
    return [*receiver, *(arg.value for arg in call.args)]


def may_be_model(model: "Model", callee: cst.BaseExpression) -> bool:
    """Whether a callee may be a model, to go by its text and its file."""
    path = dotted_path(callee)
    if path is None:
        return isinstance(callee, cst.Subscript) or (
            isinstance(callee, cst.Attribute) and _may_run_model(model, callee.attr.value)
        )
    last = path.rpartition(".")[2]
    if last == "forward" or may_name_module(last) or path in model.runs.used_as_modules:
        return True
    value = model.value(callee)
    if isinstance(value, Function):
        return matters(value.definition)
    return isinstance(value, Module) or _may_run_model(model, last)


def _may_run_model(model: "Model", name: str) -> bool:
    """Whether a function of the file has a name, and anything happens in it that a training is about."""
    return name in model.function_names and any(
        matters(model.function_info(function))
        for function in model.tree.by_type[cst.FunctionDef]
        if function.name.value == name
    )


def is_loader(value: Value | None) -> bool:
    """Whether a value is surely a loader."""
    return isinstance(value, Object) and value.kind == "loader"


def is_spelled_as_loader(model: "Model", iterable: cst.BaseExpression) -> bool:
    """Whether what a loop runs over is called a loader, or a name is bound to what is."""
    return yields_data(iterable) or yields_data(as_bound(model, iterable))


def as_bound(model: "Model", iterable: cst.BaseExpression) -> cst.BaseExpression:
    """What a name is bound to that a loop runs over, ``bar = tqdm(loader)``; everything else as it is."""
    bindings = model.reaching(iterable) if isinstance(iterable, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].path or bindings[0].kind not in (BindingKind.ASSIGN, BindingKind.WITH):
        return iterable
    return bindings[0].value if isinstance(bindings[0].value, cst.Call) else iterable


def bound_by(node: cst.For) -> set[str]:
    """The names in a loop that hold what it binds, what it takes from an iterator, or what is made of that."""
    bound = set() if _counts(node.iter) else names_in(node.target)
    for statement in subtree(node.body):
        if type(statement) is cst.Assign and (is_next(statement.value) or bound & _data_names(statement.value)):
            bound |= {name for target in statement.targets for name in names_in(target.target)}
    return bound


def _data_names(node: cst.BaseExpression) -> set[str]:
    """The names in an expression but for the functions that it calls: `layer(x)` is made of `x`."""
    parts = list(subtree(node))
    called = {id(item.func) for item in parts if type(item) is cst.Call}
    return {item.value for item in parts if type(item) is cst.Name and id(item) not in called}


def is_next(node: cst.BaseExpression) -> bool:
    """``next(batches)``, ``batches.next()``."""
    return isinstance(node, cst.Call) and (dotted_path(node.func) or "").rpartition(".")[2] in ("next", "__next__")


def _counts(iterable: cst.BaseExpression) -> bool:
    """``range(n)``: numbers, and no data."""
    callee = iterable.func if isinstance(iterable, cst.Call) else None
    name = (dotted_path(callee) or "").rpartition(".")[2] if callee is not None else ""
    if name in ("range", "trange", "xrange", "count"):
        return True
    first = iterable.args[0] if isinstance(iterable, cst.Call) and iterable.args else None
    return name in ("tqdm", "enumerate") and first is not None and _counts(first.value)


def names_in(node: cst.CSTNode) -> set[str]:
    """The names in some code."""
    return {item.value for item in subtree(node) if type(item) is cst.Name}
