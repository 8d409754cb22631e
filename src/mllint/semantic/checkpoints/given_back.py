"""Calls of ``state_dict`` that are given a state, as ``load_state_dict`` is: ``net.state_dict(torch.load(path))``.

They copy the weights of the module into the dict, and leave the module as it is.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.uses import uses
from mllint.semantic.values import Instance, Loaded, Module, StateDict, own_method
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_given_back(model: "Model", call: cst.Call) -> bool:
    """Whether a call of ``state_dict``, for nothing but its effect, is given what was read, or the state of a thing."""
    if len(call.args) != 1 or call.args[0].star or not isinstance(model.tree.parent(call), cst.Expr):
        return False
    given = call.args[0].value
    value = model.value(given)
    is_state = isinstance(value, StateDict) and not _is_read_below(model, call, given)  # else of two modules, together
    is_read = isinstance(value, Loaded) or (value is None and _is_of_old_file(model, given))
    return (is_state or is_read) and not _is_own(model, call.func)


def _is_of_old_file(model: "Model", given: cst.BaseExpression) -> bool:
    """Whether a name is bound to a part of what old Paddle read."""
    read = [binding.value for binding in model.reaching(given)]
    return bool(read) and all(isinstance(node, cst.Call) and last_word(node.func) == "load_dygraph" for node in read)


def _is_read_below(model: "Model", call: cst.Call, given: cst.BaseExpression) -> bool:
    """Whether the function reads what a call is given once more, behind it or in the next round of a loop."""
    scope = model.scope_of(call)
    others = (node for binding in model.reaching(given) for node in uses(model, binding) if node is not given)
    places = [scope.place_of(node) for node in others if model.scope_of(node) is scope]
    here = scope.place_of(call)
    return here is None or any(place is None or place[1] > here[1] for place in places)


def _is_own(model: "Model", method: cst.BaseExpression) -> bool:
    """Whether a class of the project says what its ``state_dict`` does."""
    owner = model.value(method.value) if isinstance(method, cst.Attribute) else None
    if isinstance(owner, (Module, Instance)) and owner.definition is not None:
        return own_method(owner, "state_dict") is not None
    return owner is None and "state_dict" in model.function_names
