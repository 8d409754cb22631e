"""Parts of a network that are made anew after its parameters were given to the optimizer: that has the old ones."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import GIVING_PARAMETERS
from mllint.semantic.modules.fresh import is_fresh
from mllint.semantic.modules.second_passes import runs_before
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Module, is_object
from mllint.syntax.shape import argument, called_on, constant, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.scopes import Binding, Scope

STEPS = ("step", "minimize")
_LATER = ("add_param_group", "param_groups", "_parameter_list", "_param_groups")
_OFF = (("requires_grad", False), ("stop_gradient", True))


def may_be_part(statement: cst.Assign) -> bool:
    """Whether an attribute of something with a name, that is not the object itself, is assigned what a call makes."""
    if len(statement.targets) != 1 or statement.value.__class__ is not cst.Call:
        return False
    target = statement.targets[0].target
    if target.__class__ is not cst.Attribute:
        return False
    root = _root(target)
    return root.__class__ is cst.Name and root.value != "self"


def optimizer_without(model: "Model", statement: cst.Assign) -> cst.BaseExpression | None:
    """The optimizer that steps below and has surely got the parameters of a network before a part of it is made anew.

    ``None`` also where somebody tells it of more parameters, or another optimizer is made behind the part.
    """
    target, made = statement.targets[0].target, statement.value
    if not isinstance(target, cst.Attribute) or not isinstance(made, cst.Call):
        return None
    network, scope = _root(target), model.scope_of(statement)
    if any(word in model.names_by_word for word in _LATER) or not any(_calls_of(model, STEPS, scope)):
        return None
    if method_of_receiver(model, network) is not None or not isinstance(model.value(network), Module):
        return None
    if not _is_to_learn(model, made) or _is_taken_below(model, statement, network):
        return None
    bound = model.reaching(network)
    for call in _calls_of(model, STEPS, scope):
        owner = called_on(call)
        if owner is None or model.scope_of(call) is not scope or not is_above(scope, statement, call):
            continue
        makers = model.reaching(owner)
        is_one = len(bound) == 1 and len(makers) == 1 and is_object(model.value(owner), "optimizer")
        if is_one and _is_made_before(model, makers[0], bound[0], network, statement):
            return owner
    return None


def _calls_of(model: "Model", words: Iterable[str], scope: "Scope") -> Iterator[cst.Call]:
    """The calls in a scope, and in those inside it, of methods of some names."""
    for name in (name for word in words for name in model.names_within(word, scope)):
        holder = model.tree.parent(name)
        call = model.tree.call_of(holder) if isinstance(holder, cst.Attribute) and holder.attr is name else None
        if call is not None:
            yield call


def _root(target: cst.Attribute) -> cst.BaseExpression:
    node: cst.BaseExpression = target
    while isinstance(node, cst.Attribute):
        node = node.value
    return node


def _is_to_learn(model: "Model", made: cst.Call) -> bool:
    """Whether a call makes a parameter that asks for gradients, or a new module with weights."""
    if makes_parameter(model, made):
        flags = ((argument(made, None, name), value) for name, value in _OFF)
        return all(flag is None or constant(flag.value) is not value for flag, value in flags)
    return isinstance(model.value(made), Module) and is_fresh(model, made) and has_weights(model, made) is True


def _is_made_before(
    model: "Model", optimizer: "Binding", network: "Binding", name: cst.BaseExpression, statement: cst.Assign
) -> bool:
    """Whether an optimizer has the parameters of the network as it was: both came into the function from outside, or
    it was made above, in the same run of the lines.
    """
    if optimizer.kind is BindingKind.PARAMETER:
        return network.kind is BindingKind.PARAMETER and _is_only_network(model, network)
    maker = optimizer.node
    if optimizer.kind is not BindingKind.ASSIGN or not isinstance(optimizer.value, cst.Call):
        return False
    if not runs_before(model.scope_of(statement), maker, statement):
        return False
    for call in model.calls_by_word.get("parameters", ()):
        taken = call.func.value if isinstance(call.func, cst.Attribute) else None
        if taken is None or not model.tree.is_inside(call, optimizer.value):
            continue
        if dotted_path(taken) == dotted_path(name):
            return list(model.reaching(taken)) == [network]
    return False


def _is_only_network(model: "Model", network: "Binding") -> bool:
    """Whether a function gets one module: whatever its optimizer was given, it is that."""
    function = network.scope.node
    if not isinstance(function, cst.FunctionDef):
        return False
    info = model.function_info(function)
    own = (item for found in info.scope.bindings.values() for item in found if item.kind is BindingKind.PARAMETER)
    return info.self_name is None and sum(isinstance(model.binding_value(item), Module) for item in own) == 1


def _is_taken_below(model: "Model", statement: cst.Assign, network: cst.BaseExpression) -> bool:
    """Whether the function asks for parameters of the network again behind the new part, but to clip their gradients:
    somebody may train them.
    """
    scope, root = model.scope_of(statement), dotted_path(network)
    for call in _calls_of(model, GIVING_PARAMETERS, scope):
        holder, taker = called_on(call), model.tree.call_given(call)
        is_clipped = taker is not None and (last_word(taker.func) or "").startswith("clip_grad")
        path = None if holder is None else dotted_path(holder)
        is_meant = path is not None and path.partition(".")[0] == root and not is_clipped
        if is_meant and (model.scope_of(call) is not scope or is_above(scope, statement, call)):
            return True
    return False
