"""What is wrong with a tensor that is assigned to an attribute of a module, which does not take it up, and the words
for it.
"""

import enum
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules import carried_state, fitted_state, handed_over, plain_tensors, unsaved_draws
from mllint.semantic.modules.fates import Fate, fate
from mllint.semantic.modules.lost_parameters import becomes_parameter, parameter_inside
from mllint.semantic.modules.made_on_cpu import MAX_STEPS, is_made_on_cpu
from mllint.semantic.modules.never_filled import is_moved_and_sized, made_of
from mllint.semantic.modules.never_moved import is_never_moved
from mllint.semantic.modules.other_objects import from_outside, is_touched_from_outside
from mllint.semantic.modules.plain_tensors import has_no_elements, is_leaf_to_train, is_plain
from mllint.semantic.modules.trained_by_hand import is_trained_by_hand
from mllint.semantic.modules.unsaved_draws import SAVING
from mllint.semantic.modules.ways_to_tensors import made_for_nothing, unpacked_into
from mllint.semantic.names.classes import Assignment, Members
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Framework, Nothing, Tensor, Value
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import (
    argument,
    called_on,
    constant_given,
    dotted_path,
    is_super_call,
    last_word,
    part_at,
    string_literal,
    subscript_index,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

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
    UNTRAINED_ITEMS = enum.auto()
    """The same of all tensors in a list or dict."""
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
    UNFILLED = enum.auto()
    """It is nothing but zeros or ones, and nobody fills or learns it."""
    OUTDATED = enum.auto()
    """It is computed of parameters once, and does not follow them."""


class Lost(msgspec.Struct, frozen=True):
    """A lost tensor: ``setter`` is the method that registered it, or the numbers of which it is made; ``parameter``
    what it is computed from.

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
        found = _lost_among_others(model, owner, statement, target)
    else:
        value = statement.value
        found = None if value is None else _lost(model, owner, target.attr.value, statement, value)
    is_of_moves = found is not None and found.how in (Loss.LEFT_BEHIND, Loss.CONTAINED)
    if not is_of_moves or not is_never_moved(owner):
        return found
    return _lost_where_it_stays(model, owner.members, target.attr.value, statement.value)


def _lost_where_it_stays(
    model: "Model", members: "Members", name: str, value: cst.BaseExpression | None
) -> Lost | None:
    """What a module loses that nobody moves: what is never filled, or drawn anew."""
    numbers = made_of(members, name)
    if numbers is not None:
        return Lost(Loss.UNFILLED, setter=numbers)
    is_one = value is not None and type(value) in _EXPRESSIONS and _is_redrawn(model, members, name, value)
    return Lost(Loss.REDRAWN) if is_one else None


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
        if is_test_code(model):
            return None
        if is_torch and tensors_stay_behind(members, name):
            return Lost(Loss.CONTAINED)
        is_untrained = _meet_input(members, name, is_leaf_to_train) and not handed_over.is_handed_over(members, name)
        return Lost(Loss.UNTRAINED_ITEMS) if is_untrained else None
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
    is_asked = plain_tensors.is_asked_for_gradients_later(members, name)
    is_new = is_leaf or (is_asked and plain_tensors.is_new_or_scaled(model, value))
    if is_new and not handed_over.is_handed_over(members, name):
        return Lost(Loss.UNTRAINED)
    if is_leaf or (is_asked and is_trained_by_hand(members, name)):
        return None
    by_default = made_for_nothing(model, value) if is_torch else []
    values = [model.value(made) for made in by_default or (value,)]
    if is_torch and not by_default and _is_single_number(values[0]):
        numbers = None if is_test_code(model) else made_of(members, name)
        return None if numbers is None else Lost(Loss.UNFILLED, setter=numbers)
    if not all(map(plain_tensors.is_plain, values)) or is_test_code(model):
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
    # What is moved on PyTorch may be what is begun with, if it is of one number or of few.
    numbers = None if is_torch and not is_moved_and_sized(model, value) else made_of(members, name)
    if numbers is not None:
        return Lost(Loss.UNFILLED, setter=numbers)
    return Lost(Loss.REDRAWN) if _is_redrawn(model, members, name, value) else None


def _is_single_number(value: Value | None) -> bool:
    """Whether a tensor has no dimension: it works with those on any device."""
    return isinstance(value, Tensor) and value.scalar is True and not value.parameter and not value.attached


def _is_redrawn(model: "Model", members: "Members", name: str, value: cst.BaseExpression) -> bool:
    is_drawn = unsaved_draws.draws(model, value) or unsaved_draws.is_filled_at_random(members, name)
    return is_drawn and unsaved_draws.is_lost(members, name)


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


# The methods that give nothing back. Paddle's `add_sublayer` and `add_parameter` give what they are given.
_GIVING_NOTHING = {
    "torch": {
        "register_buffer": "tensor",
        "register_parameter": "param",
        "add_module": "module",
        "register_module": "module",
    },
    "paddle": {"register_buffer": "tensor"},
}


def undoing(model: "Model", definition: "ClassInfo", name: str, value: cst.BaseExpression) -> str | None:
    """The method by which ``self.name = self.register_buffer("name", x)`` registers what the assignment takes away.

    What is registered as ``None`` is ``None`` afterwards, too.
    """
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute) or definition.framework is None:
        return None
    word = value.func.attr.value
    keyword = _GIVING_NOTHING[definition.framework].get(word)
    if keyword is None or method_of_receiver(model, value.func.value) is None:
        return None
    if definition.has_unknown_base or definition.method(word) is not None:
        return None  # a method of the project of that name may give something
    named, given = argument(value, 0, "name"), argument(value, 1, keyword)
    if named is None or given is None or string_literal(named.value) != name:
        return None
    return None if isinstance(model.value(given.value), Nothing) else word


_DISPLAYS = (cst.List, cst.ListComp, cst.Dict, cst.DictComp)


def tensors_stay_behind(members: Members, name: str) -> bool:
    """Whether a list holds nothing but tensors made on the CPU, and ``forward`` computes with them and the input."""
    return _meet_input(members, name, _is_made_on_cpu)


def _meet_input(members: Members, name: str, is_one: "Callable[[Model, cst.BaseExpression], bool]") -> bool:
    """Whether a list is made of nothing but tensors of one kind, and ``forward`` computes with them and the input."""
    found = False
    for place in members.assignments(name):
        if place.method is None or place.method not in members.setting_up or not isinstance(place.value, _DISPLAYS):
            return False
        elements = list(_elements(place.value))
        if any(has_no_elements(place.model, element) for element in elements):
            return False  # a place that is filled later
        if not all(is_one(place.model, element) for element in elements):
            return False
        found = found or bool(elements)
    if is_touched_from_outside(members.definition, name):
        return False
    fates: set[tuple[Fate, bool]] = set()
    for read in members.reads(name):
        model, is_early = read.method.model, read.method in members.setting_up
        put = _put_in(model, read.node)
        if put is None:
            fates |= {(item, is_early) for item in _fates(model, read.node, MAX_STEPS)}
        elif is_early and is_one(model, put):
            found = True
        else:
            return False
    return found and (Fate.MEETS_INPUT, False) in fates and all(item is not Fate.MOVED for item, _ in fates)


def _elements(display: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match display:
        case cst.List() | cst.Dict():
            yield from (element.value for element in display.elements)
        case cst.ListComp():
            yield display.elt
        case cst.DictComp():
            yield display.value


def _is_made_on_cpu(model: "Model", node: cst.BaseExpression) -> bool:
    return is_plain(model.value(node)) and is_made_on_cpu(model, node)


def _put_in(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is put into the list where it is read: ``self.tables.append(x)``, ``self.tables[key] = x``."""
    parent = model.tree.parent(node)
    above = None if parent is None else model.tree.parent(parent)
    if isinstance(parent, cst.Attribute) and isinstance(above, cst.Call) and parent.attr.value == "append":
        return above.args[0].value if above.func is parent and len(above.args) == 1 else None
    if isinstance(parent, cst.Subscript) and parent.value is node and isinstance(above, cst.AssignTarget):
        statement = model.tree.parent(above)
        return statement.value if isinstance(statement, cst.Assign) else None
    return None


def _fates(model: "Model", node: cst.BaseExpression, steps: int) -> set[Fate]:
    """What becomes of the elements of a list where it is read; what is done with it as a whole is not followed."""
    parent = model.tree.parent(node)
    if steps == 0:
        return {Fate.MOVED}
    match parent:
        case cst.Subscript() if parent.value is node:
            if subscript_index(parent) is None:
                return _fates(model, parent, steps - 1)
            return {fate(model, parent, steps - 1)}
        case cst.For() | cst.CompFor() if parent.iter is node:
            return _of_elements(model, parent, (), steps)
        case cst.Arg():
            call = model.tree.parent(parent)
            assert isinstance(call, cst.Call)
            around, path = model.tree.parent(call), handed_on(call, parent)
            if dotted_path(call.func) == "len":
                return {Fate.NOTHING}
            if call.args[0] is parent and handed_over.is_operation(model, call):
                return {fate(model, call, steps - 1)}  # `torch.stack(self.tables)`
            if path is not None and isinstance(around, (cst.For, cst.CompFor)) and around.iter is call:
                return _of_elements(model, around, path, steps)
    return {Fate.MOVED}


def _of_elements(model: "Model", loop: cst.For | cst.CompFor, path: tuple[int, ...], steps: int) -> set[Fate]:
    """What becomes of what a loop binds at a place of its target."""
    target = part_at(loop.target, path)
    if not isinstance(target, cst.Name):
        return {Fate.MOVED}
    if isinstance(loop, cst.For):
        bound = [item for item in bound_by(model, loop) if item.key == target.value]
        places = [use for binding in bound for use in uses(model, binding)]
    else:
        whole = next(item for item in model.tree.ancestors(loop) if isinstance(item, cst.BaseComp))
        named = model.names_by_word.get(target.value, ())
        places = [name for name in named if name is not target and model.tree.is_below(name, whole)]
    return {fate(model, place, steps - 1) for place in places}


_RUNNING = "forward"


def registered_late(model: "Model", call: cst.Call) -> str | None:
    """The name of a buffer that is saved, and registered nowhere but in the ``forward`` of its module."""
    receiver, name = called_on(call), argument(call, 0, "name")
    method = None if receiver is None else method_of_receiver(model, receiver)
    owner = None if method is None else method.owner
    word = None if name is None else string_literal(name.value)
    if method is None or owner is None or owner.framework is None or word is None or is_test_code(model):
        return None
    if not _is_saved(call, owner.framework) or owner.has_unknown_base or owner.members.sets_computed_names:
        return None
    if any(saving in info.methods for info in owner.lineage for saving in SAVING):
        return None
    members = owner.members
    running, begun = members.reachable(_RUNNING), members.reachable("__init__")
    if method not in running or method in begun or _runs_before(owner, method):
        return None
    places = list(members.assignments(word))
    return word if all(place.method in running and place.method not in begun for place in places) else None


def _is_saved(call: cst.Call, framework: str) -> bool:
    keyword = "persistent" if framework == "torch" else "persistable"
    return not any(arg.star for arg in call.args) and constant_given(call, 2, keyword, True) is True


def _runs_before(owner: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether somebody may call the method before a state is loaded: those who have an object, or another method."""
    members, model = owner.members, method.model
    if method.name == _RUNNING:
        return False
    callers = [model.enclosing_function(call) for call, _ in calls_of(model, method)]
    running = {id(info.node) for info in members.reachable(_RUNNING)}
    if any(id(caller) not in running for caller in callers):
        return True
    return any(
        not is_super_call(node.value)
        for home in (*members.models, *owner.model.importers(method.name))
        for node in from_outside(owner, home, method.name)
    )


_REGISTER = 'write `self.register_buffer("{name}", ...{persistence})`'
# What is said of each, and what to write; of `{name}`, the method `{setter}`, and how the framework makes a parameter.
_WORDS = {
    Loss.CONTAINED: (
        "the tensors in `self.{name}` stay behind when the module moves to a device",
        "register each with `register_buffer`, or put parameters into an `nn.ParameterList`",
    ),
    Loss.UNDONE: (
        "`{setter}` gives `None`, and assigning that takes `{name}` away again",
        "write only `self.{setter}(...)`",
    ),
    Loss.COMPUTED: (
        "`self.{name}` is a tensor computed from a parameter, and no parameter itself",
        "compute the value first, and make a parameter of it",
    ),
    Loss.UNTRAINED: ("`self.{name}` asks for gradients and is no parameter: nothing trains it", "assign {parameter}"),
    Loss.UNTRAINED_ITEMS: (
        "what `self.{name}` holds asks for gradients and is no parameter: nothing trains it",
        "put parameters into a `ParameterList`, or a `ParameterDict`",
    ),
    Loss.LEFT_BEHIND: (
        "`self.{name}` is no buffer: it stays behind when the module moves to a device",
        _REGISTER,
    ),
    Loss.LEAF_LEFT_BEHIND: (
        "`self.{name}` is no parameter: it is not saved, and stays behind when the module moves",
        "assign {parameter}",
    ),
    Loss.REDRAWN: (
        "`self.{name}` is drawn at random and not saved: a module that is loaded has another",
        _REGISTER + ", or make it a parameter if it is to be learned",
    ),
    Loss.FORGOTTEN: (
        "`self.{name}` changes with the data and is not saved: a loaded module begins anew",
        _REGISTER,
    ),
    Loss.FITTED: ("`self.{name}` is fitted to data and not saved: a loaded module begins anew", _REGISTER),
    Loss.UNFILLED: (
        "`self.{name}` is all {setter}: nobody fills or learns it, so it has no use in `forward`",
        "assign {parameter} if it is to be learned",
    ),
    Loss.OUTDATED: (
        "`self.{name}` is computed once of parameters, and does not change with them",
        "compute it where it is used",
    ),
}
_PARAMETERS = {"torch": "an `nn.Parameter`", "paddle": "what `self.create_parameter(...)` gives"}


def words(found: Lost, name: str, framework: Framework, persistence: str) -> tuple[str, str]:
    """The message about an attribute and what helps; ``persistence`` is what else ``register_buffer`` is told."""
    message, help_ = _WORDS[found.how]
    if found.how is Loss.LEFT_BEHIND and not persistence:
        message = "`self.{name}` is no buffer: it is not saved, and stays behind when the module moves"
    known = {"name": name, "setter": found.setter, "parameter": _PARAMETERS[framework]}
    return message.format(**known), help_.format(**known, persistence=persistence)


def words_of_late(name: str, is_paddle: bool) -> tuple[str, str]:
    """The same about a buffer that ``forward`` registers."""
    happens = "a layer that is loaded leaves it out" if is_paddle else "loading it into a new module raises"
    message = f"`{name}` is registered in `forward`: {happens}"
    return message, "register it in the constructor" + ("" if is_paddle else ", or with `persistent=False`")


def words_of_replaced(model: "Model") -> tuple[str, str]:
    """The same about what is assigned to a parameter of a layer, and is none."""
    ways = "assign {parameter}, or write into the one that is there: `{writing}(...)`"
    framework = model.framework or "torch"
    writing = "weight.set_value" if framework == "paddle" else "weight.data.copy_"
    help_ = ways.format(parameter=_PARAMETERS[framework], writing=writing)
    return "this is no parameter: assigning it to one raises", help_


def words_of_registered(model: "Model", value: cst.BaseExpression, inner: cst.Call | None) -> tuple[str, str]:
    """The same about what is registered as a parameter and is none, or only computed from one, ``inner``."""
    if inner is None:
        return (
            "this is no parameter: registering it as one raises",
            f"give it {_PARAMETERS[model.framework or 'torch']}",
        )
    moves = isinstance(value, cst.Call) and called_on(value) is inner and last_word(value.func) in ("to", "cuda")
    message = (
        "on another device this is no parameter any more, and registering it raises"
        if moves
        else "this is computed from a parameter, and no parameter itself: registering it raises"
    )
    return message, _WORDS[Loss.COMPUTED][1]
