"""What a module computes once, in a plain attribute: fitted to data by a method, or made of parameters at first.

The first is in no state dict. The second stays as it was when an optimizer steps, and holds a graph that is freed then.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.modules.carried_state import begins, is_looked_after, is_reduced, is_used
from mllint.semantic.modules.handed_over import is_given_on_by_others
from mllint.semantic.modules.other_objects import is_assigned_from_outside
from mllint.semantic.names.classes import Assignment, Members, Role
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.values import Tensor
from mllint.syntax.shape import constant_given, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FITTING = frozenset({"fit", "partial_fit"})
_MAKING = frozenset({"Parameter", "create_parameter"})
_STEPS = 4
# What only shows the numbers of a tensor, so that they follow it, or asks what it is like.
_SHOWING = frozenset({
    "view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "flatten", "size", "dim", "numel",
    "detach", "item", "numpy", "tolist", "requires_grad_", "to", "cuda", "cpu", "float", "double", "half", "type",
    "contiguous", "view_as", "expand_as", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like",
    "full_like", "requires_grad", "register_hook", "diag", "diagonal", "chunk", "split", "unbind", "narrow", "select",
})  # fmt: skip
_NO_GRAPH = frozenset({"data", "shape", "dtype", "device", "grad", "size", "ndim", "T", "mT"})


def is_fitted(members: Members, name: str, beginning: Assignment) -> bool:
    """Whether an attribute is what ``fit`` computes of the data it is given, and ``forward`` computes with it.

    ``beginning`` is where the module is set up. The name of the method says what scikit-learn means by it.
    """
    if not any(word in beginning.model.names_by_word for word in _FITTING):
        return False
    if beginning.method not in members.setting_up or not begins(members, name, beginning):
        return False
    places = list(members.assignments(name))
    if is_looked_after(members, places):
        return False
    fitting = [place for place in places if place.method is not None and place.method not in members.setting_up]
    if not fitting or not all(_fits(members, place) for place in fitting):
        return False
    if is_assigned_from_outside(members.definition, name) or is_given_on_by_others(members, name):
        return False
    return any(is_used(members, read, [place.node for place in fitting]) for read in members.reads(name))


def _fits(members: Members, place: Assignment) -> bool:
    """Whether ``fit`` sets an attribute to what it computes of all the data that it is given."""
    method, value = place.method, place.value
    if method is None or value is None or method.name not in _FITTING or method in members.reachable("forward"):
        return False
    given = {parameter.name.value for parameter in method.named_parameters[1:]}
    return is_reduced(place.model, value) and _is_made_of(place.model, value, given, _STEPS)


def _is_made_of(model: "Model", node: cst.BaseExpression, given: set[str], steps: int) -> bool:
    names = [part for part in subtree(node) if isinstance(part, cst.Name)]
    if any(name.value in given for name in names):
        return True
    made = [only_assigned(model, name) for name in names] if steps > 0 else []
    return any(item is not None and _is_made_of(model, item, given, steps - 1) for item in made)


def is_outdated(model: "Model", members: Members, name: str, beginning: Assignment) -> bool:
    """Whether an attribute is computed of parameters once, when the module is set up, and a method goes on with it."""
    value, node = beginning.value, beginning.node
    if not isinstance(value, (cst.BinaryOperation, cst.Call)) or beginning.method not in members.setting_up:
        return False
    if not any(word in model.calls_by_word for word in _MAKING) or not _computes_with_parameter(model, value):
        return False
    made = model.value(value)
    if not isinstance(made, Tensor) or made.parameter or made.attached is False:
        return False
    if model.gradients.off(node) is not False:
        return False
    others = [place for place in members.assignments(name) if place.node is not node]
    if is_looked_after(members, others) or not all(place.is_empty for place in others):
        return False
    if is_assigned_from_outside(members.definition, name) or _are_frozen(members):
        return False
    return any(is_used(members, read, [], anywhere=True) for read in members.reads(name))


def _computes_with_parameter(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether numbers are computed of a parameter that asks for gradients, by what stands at the top."""
    match node:
        case cst.BinaryOperation():
            return any(_is_trained(model, side) for side in (node.left, node.right))
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=word))):
            if word in _SHOWING or word[:1].isupper():
                return False  # a class is called by the other names
            return any(_is_trained(model, item) for item in (inner, *(arg.value for arg in node.args)))
        case cst.Call(func=cst.Name(value=word)):  # `exp(self.low)`
            return not word[:1].isupper() and any(_is_trained(model, arg.value) for arg in node.args)
    return False


def _is_trained(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a parameter of the module that asks for gradients, or is computed of one."""
    if isinstance(node, (cst.BinaryOperation, cst.Call)):
        return _computes_with_parameter(model, node)
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(_is_trained(model, element.value) for element in node.elements)
    owner = owner_of_attribute(model, node)
    if owner is None or not isinstance(node, cst.Attribute) or node.attr.value in _NO_GRAPH:
        return False
    places = list(owner.members.assignments(node.attr.value))
    return bool(places) and all(
        _looks_made(place) and place.role is Role.PARAMETER and _asks_for_gradients(place) for place in places
    )


def _looks_made(place: Assignment) -> bool:
    return isinstance(place.value, cst.Call) and last_word(place.value.func) in _MAKING


def _asks_for_gradients(place: Assignment) -> bool:
    return isinstance(place.value, cst.Call) and constant_given(place.value, 1, "requires_grad", True) is True


def _are_frozen(members: Members) -> bool:
    """Whether the class switches gradients of its own parameters off, perhaps of those."""
    words = ("requires_grad", "requires_grad_", "stop_gradient")
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in words
        for info in members.definition.lineage
        if any(word in info.model.names_by_word for word in words)
        for node in subtree(info.node)
    )
