"""What is wrong with a tensor that is assigned to an attribute of a module, which does not take it up."""

import enum
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules import carried_state, fitted_state, handed_over, plain_tensors, unsaved_draws
from mllint.semantic.modules.lost_parameters import becomes_parameter, parameter_inside
from mllint.semantic.modules.lost_registrations import undoing
from mllint.semantic.modules.plain_lists import tensors_stay_behind
from mllint.semantic.modules.ways_to_tensors import made_for_nothing, unpacked_into
from mllint.semantic.names.classes import Assignment
from mllint.semantic.names.definitions import function_around
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.classes import Members
    from mllint.semantic.names.definitions import ClassInfo

_EXPRESSIONS = (cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Subscript, cst.Name, cst.IfExp, cst.Comparison)
_CONTAINERS = (cst.List, cst.ListComp, cst.Dict, cst.DictComp)


class Loss(enum.Enum):
    """How a tensor is lost to its module."""

    CONTAINED = enum.auto()
    """It lies in a list or dict, which stays behind when the module moves."""
    UNDONE = enum.auto()
    """What registers it gives ``None``, and that is assigned in its place."""
    COMPUTED = enum.auto()
    """It is computed from a parameter that nothing else holds."""
    UNTRAINED = enum.auto()
    """It asks for gradients, and nobody trains it."""
    LEFT_BEHIND = enum.auto()
    """It stays behind when the module moves."""
    LEAF_LEFT_BEHIND = enum.auto()
    """The same of one that asks for gradients, which somebody trains."""
    REDRAWN = enum.auto()
    """It is drawn at random and not saved."""
    FORGOTTEN = enum.auto()
    """It is state that the module keeps up to date, and not saved."""
    FITTED = enum.auto()
    """It is what was fitted to data, and not saved."""
    OUTDATED = enum.auto()
    """It is computed of parameters once, and does not follow them."""


class Lost(msgspec.Struct, frozen=True):
    """A lost tensor: ``setter`` is the method that registered it, ``parameter`` what it is computed from.

    ``is_given``: on another way it is what the constructor is given.
    """

    how: Loss
    setter: str | None = None
    parameter: cst.Call | None = None
    is_given: bool = False


def lost(
    model: "Model", owner: "ClassInfo", statement: cst.Assign | cst.AnnAssign, target: cst.Attribute
) -> Lost | None:
    """What the module ``owner`` loses where a statement assigns to an attribute of it; ``None``: nothing."""
    written = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    if written is not target:
        return _lost_among_others(model, owner, statement, target)
    return None if statement.value is None else _lost(model, owner, target.attr.value, statement, statement.value)


def _lost(
    model: "Model", owner: "ClassInfo", name: str, statement: cst.Assign | cst.AnnAssign, value: cst.BaseExpression
) -> Lost | None:
    found = _lost_tensor(model, owner, name, statement, value)
    if found is not None or type(value) not in _EXPRESSIONS or is_test_code(model):
        return found
    beginning = Assignment(model, function_around(model, statement), statement, value)
    if carried_state.is_carried(owner.members, name, beginning):
        return Lost(Loss.FORGOTTEN)
    if fitted_state.is_fitted(owner.members, name, beginning):
        return Lost(Loss.FITTED)
    return Lost(Loss.OUTDATED) if fitted_state.is_outdated(model, owner.members, name, beginning) else None


def _lost_tensor(
    model: "Model", owner: "ClassInfo", name: str, statement: cst.Assign | cst.AnnAssign, value: cst.BaseExpression
) -> Lost | None:
    members, is_torch = owner.members, owner.framework == "torch"
    if type(value) in _CONTAINERS:
        is_left = is_torch and tensors_stay_behind(members, name) and not is_test_code(model)
        return Lost(Loss.CONTAINED) if is_left else None
    if type(value) not in _EXPRESSIONS:
        return None
    setter = undoing(model, owner, name, value)
    if setter is not None:
        return Lost(Loss.UNDONE, setter=setter)
    inner = parameter_inside(model, value)
    if inner is not None:
        is_no_loss = becomes_parameter(members, name, statement) or _is_left_aside(model, members, name, statement)
        return None if is_no_loss else Lost(Loss.COMPUTED, parameter=inner)
    is_leaf = plain_tensors.is_leaf_to_train(model, value)
    is_asked = plain_tensors.is_asked_for_gradients_later(members, name) and plain_tensors.is_new(model, value)
    if (is_leaf or is_asked) and not handed_over.is_handed_over(members, name):
        return Lost(Loss.UNTRAINED)
    if is_leaf:
        return None
    by_default = made_for_nothing(model, value) if is_torch else []
    if not all(plain_tensors.is_plain(model.value(made)) for made in by_default or (value,)) or is_test_code(model):
        return None
    if is_torch and any(lookup.may_register(base, name) for base in owner.library_bases):
        return None  # what is assigned to a buffer is one, also where it was ``None`` before
    if is_torch and plain_tensors.stays_behind(members, name):
        function = model.enclosing_function(statement)
        is_set_up = function is not None and model.function_info(function) in members.setting_up
        left = Loss.LEAF_LEFT_BEHIND if is_asked else Loss.LEFT_BEHIND
        return Lost(left, is_given=bool(by_default)) if is_set_up else None
    if by_default:
        return None
    is_drawn = unsaved_draws.draws(model, value) or unsaved_draws.is_filled_at_random(members, name)
    is_redrawn = is_drawn and unsaved_draws.is_lost(members, name)
    return Lost(Loss.REDRAWN) if is_redrawn else None


def _lost_among_others(
    model: "Model", owner: "ClassInfo", statement: cst.Assign | cst.AnnAssign, target: cst.Attribute
) -> Lost | None:
    """The same of an attribute to which a statement assigns together with others: ``self.a, self.b = self.made()``."""
    name = target.attr.value
    made = unpacked_into(model, statement, dotted_path(target) or "")
    if len(made) == 1 and made[0][0] is model and isinstance(statement.value, (cst.Tuple, cst.List)):
        return _lost(model, owner, name, statement, made[0][1])
    if not made or owner.framework != "torch" or is_test_code(model):
        return None
    function = function_around(model, statement)
    if function not in owner.members.setting_up or not plain_tensors.is_plain(owner.attribute(name)):
        return None
    if any(lookup.may_register(base, name) for base in owner.library_bases):
        return None
    return Lost(Loss.LEFT_BEHIND) if plain_tensors.stays_behind(owner.members, name) else None


def _is_left_aside(model: "Model", members: "Members", name: str, statement: cst.CSTNode) -> bool:
    """Whether nobody reads an attribute, and a method sets it that neither the constructor nor ``forward`` calls."""
    method = function_around(model, statement)
    is_run = method in members.setting_up or method in members.reachable("forward")
    is_read = members.reads_computed_names or any(True for _ in members.reads(name))
    return not (is_run or is_read or handed_over.is_given_on(members, name))


def has_to_be_saved(model: "Model", owner: "ClassInfo", name: str, value: cst.BaseExpression) -> bool:
    """Whether a tensor cannot be computed again as it was: it is drawn at random, or changes later."""
    is_drawn = unsaved_draws.draws(model, value) or unsaved_draws.is_filled_at_random(owner.members, name)
    return is_drawn or plain_tensors.changes_later(owner.members, name)
