"""Layers that a module makes anew in every call, so that their weights are never trained and their mode never set."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.modules.called_elements import is_called_as_element
from mllint.semantic.modules.fresh import is_fresh
from mllint.semantic.modules.modes import runs_in_one_mode
from mllint.semantic.modules.weights import builds_a_program, has_weights
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Function, Module
from mllint.syntax.shape import argument, called_on, constant, constant_given, dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_CALLS = 3
"""Through how many methods of the class a call is followed back to ``forward``."""

_MOVES = frozenset({"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type", "xpu", "astype"})
_DROPS = frozenset({
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Dropout1D", "Dropout2D", "Dropout3D", "AlphaDropout",
    "FeatureAlphaDropout",
})  # fmt: skip
_ASKS = frozenset({"hasattr", "getattr", "isinstance"})
# Arguments of Paddle's layers that may say what the weights are.
_GIVES_WEIGHTS = frozenset({"weight_attr", "param_attr"})
_CALLED = frozenset({"forward", "__call__"})


class Made(NamedTuple):
    """A layer that is made in every call: the call that makes it, and its class.

    ``drops``: it has no weights, but drops values, since a new layer is always in training mode. ``is_trained`` is
    false where no optimizer would change its weights.
    """

    call: cst.Call
    name: str
    drops: bool
    is_trained: bool


def made_in_forward(model: "Model") -> Iterator[Made]:
    """The layers that modules of a file make whenever they are called, and use only there."""
    for word, calls in model.calls_by_word.items():
        is_class = word[:1].isupper()
        if not is_class and word not in model.function_names:
            continue
        for call in calls:
            function = model.enclosing_function(call)
            if function is None or function.name.value == "__init__":
                continue
            method = model.function_info(function)
            if method.owner is None or method.owner.framework is None or not _is_used_at_once(model, call):
                continue
            drops = word in _DROPS
            matters = _matters(model, call, drops) if is_class else _gives_new_weights(model, call)
            made = model.value(call) if matters else None
            if isinstance(made, Module) and _runs_in_every_call(call, method):
                name = word if is_class else _class_name(made)
                yield Made(call, name, drops, not lookup.is_never_trained(made.name or ""))


def _class_name(made: Module) -> str:
    return made.definition.name if made.definition is not None else (made.name or "").rpartition(".")[2]


def _gives_new_weights(model: "Model", call: cst.Call) -> bool:
    """Whether a call runs a function of the file that does nothing but to make a layer with weights, whichever way."""
    callee = model.value(call.func) if isinstance(call.func, cst.Name) else None
    info = callee.definition if isinstance(callee, Function) else None
    if info is None or info.model is not model or not info.is_plain or info.decorators:
        return False
    made = [statement.value for statement in info.scope.returns]
    return bool(made) and all(isinstance(item, cst.Call) and _matters(model, item, drops=False) for item in made)


def _matters(model: "Model", call: cst.Call, drops: bool) -> bool:
    """Whether it makes a difference that a layer is new: it has weights, or drops values and is never told the mode."""
    value = model.value(call)
    if not isinstance(value, Module) or value.call is not call or builds_a_program(model):
        return False
    if drops:
        return constant_given(call, 0, "p") != 0 and not runs_in_one_mode(model, call)
    known = None if value.name is None else lookup.class_(value.name)
    if known is not None and (known.kind == "loss" or lookup.layer_state(value.name or "") is None):
        return False
    statistics = argument(call, None, "track_running_stats")
    if statistics is not None and constant(statistics.value) is False:
        return False  # meant as a function that normalizes
    if not is_fresh(model, call) or any(
        arg.keyword is not None and arg.keyword.value in _GIVES_WEIGHTS for arg in call.args
    ):
        return False
    return has_weights(model, call) is True


# -- how it is used ----------------------------------------------------------------------------------------------------


def _is_used_at_once(model: "Model", call: cst.Call) -> bool:
    """Whether a new layer is called where it is made, itself or through a name that is used for nothing else, or as an
    element of a local list.
    """
    node = _moved(model, call)
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Call):
        return parent.func is node
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return is_called_as_element(model, node, _is_called)
    return _is_only_called(model, parent)


def _is_called(model: "Model", node: cst.BaseExpression) -> bool:
    return model.tree.call_of(_moved(model, node)) is not None


def _moved(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """``nn.Linear(2, 2).to(device)`` of ``nn.Linear(2, 2)``."""
    while True:
        attribute = model.tree.parent(node)
        move = model.tree.call_of(attribute) if isinstance(attribute, cst.Attribute) else None
        if move is None or last_word(move.func) not in _MOVES:
            return node
        node = move


def _is_only_called(model: "Model", statement: cst.Assign, steps: int = MAX_CALLS) -> bool:
    """Whether the name or attribute of the instance that a statement binds is called, and nothing else, where it holds.

    An attribute is looked at in the function alone: whoever else reads it finds the layer of the last call.
    """
    bindings = bound_by(model, statement)
    if len(bindings) != 1 or steps == 0:
        return False
    function = model.enclosing_function(statement)
    called = False
    for use in uses(model, bindings[0]):
        if model.enclosing_function(use) is not function:
            if "." in bindings[0].key:
                continue
            return False
        node = _moved(model, use)
        parent = model.tree.parent(node)
        if model.tree.call_of(node) is not None:
            called = True
        elif isinstance(parent, cst.Assign) and node is not use:
            if not _is_only_called(model, parent, steps - 1):
                return False
            called = True
        elif not isinstance(parent, cst.Expr):
            return False
    return called


# -- when it runs ------------------------------------------------------------------------------------------------------


def _runs_in_every_call(node: cst.CSTNode, method: "FunctionInfo", steps: int = MAX_CALLS) -> bool:
    """Whether a place of a method runs whenever the module is called, unless a setting of the module leaves it out."""
    if steps == 0 or method.owner is None or method.node.decorators or _is_kept(node, method):
        return False
    if method.name in _CALLED:
        return True
    calls = [call for call in method.model.calls_by_word.get(method.name, ()) if call is not node]
    return bool(calls) and all(_comes_from_forward(call, method, steps) for call in calls)


def _comes_from_forward(call: cst.Call, method: "FunctionInfo", steps: int) -> bool:
    """Whether a call of a method is one by the instance itself, which runs in every call of the module."""
    model = method.model
    receiver = called_on(call)
    caller = None if receiver is None else method_of_receiver(model, receiver)
    if caller is None or caller is method or caller.owner is None or method.owner not in caller.owner.lineage:
        return False
    return model.enclosing_function(call) is caller.node and _runs_in_every_call(call, caller, steps - 1)


def _is_kept(node: cst.CSTNode, method: "FunctionInfo") -> bool:
    """Whether a place only runs where something is missing that is then kept: in the first call, for a new size."""
    model = method.model
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.ExceptHandler):
            return True
        if ancestor is method.node:
            break
    return any(_asks_for_something_kept(test, method) for test in conditions(model, node))


def _asks_for_something_kept(test: cst.BaseExpression, method: "FunctionInfo") -> bool:
    """Whether a condition looks at an attribute of the instance that the method sets, or asks whether it is there."""
    prefix = f"{method.self_name}."
    kept = {key for key in method.scope.bindings if key.startswith(prefix)}
    for part in subtree(test):
        if isinstance(part, cst.Call) and dotted_path(part.func) in _ASKS:
            return True
        if isinstance(part, cst.Comparison) and (dotted_path(part.left) or "").startswith(prefix):
            is_for_none = any(isinstance(item.operator, (cst.Is, cst.IsNot)) for item in part.comparisons)
            if is_for_none:
                return True
        path = dotted_path(part) if isinstance(part, cst.Attribute) else None
        if path is not None and any(f"{path}.".startswith(f"{key}.") for key in kept):
            return True
    return False
