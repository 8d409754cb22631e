"""Tensors of random numbers in plain attributes of a module: who loads the module again has others."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.modules.fates import Fate, fate
from mllint.semantic.modules.fresh import maker_or_self
from mllint.semantic.modules.handed_over import is_given_on
from mllint.semantic.modules.inputs import is_input
from mllint.semantic.modules.made_on_cpu import FACTORIES, MAX_STEPS, OLD_WRAPPER
from mllint.semantic.modules.plain_tensors import changes_later, is_new
from mllint.semantic.names.classes import Assignment, Members, Read, makes_parameter
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.definitions import class_around
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import calls_of_path, uses_of_bound
from mllint.syntax.shape import dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_DRAWING = tuple(
    f"{framework}.{name}"
    for framework in ("torch", "paddle")
    for name in ("rand", "normal", "uniform", "standard_normal", "bernoulli", "multinomial", "poisson")
)
_FILLING = frozenset({"normal_", "uniform_", "bernoulli_", "exponential_", "random_", "cauchy_", "log_normal_"})
# What is in the names of functions that fill a tensor with random numbers: ``kaiming_uniform_``.
_KINDS_OF_DRAWS = ("normal", "uniform", "xavier", "kaiming", "orthogonal")
_INITIALIZERS = "paddle.nn.initializer."
# What makes the same numbers come again.
_SEEDING = ("manual_seed", "manual_seed_all", "seed", "set_rng_state", "fork_rng", "seed_everything", "set_seed")
# Methods with which a module saves and loads more than its parameters and buffers.
SAVING = frozenset({
    "state_dict", "load_state_dict", "set_state_dict", "_save_to_state_dict", "_load_from_state_dict",
    "get_extra_state", "set_extra_state", "__getstate__", "__setstate__", "on_save_checkpoint", "on_load_checkpoint",
})  # fmt: skip


def draws(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether random numbers are drawn for an expression, in it or for a name in it."""
    made = (model.qualified_name(item.func) or "" for item in subtree(node) if isinstance(item, cst.Call))
    return any(item.startswith(_DRAWING) for item in made) or _is_drawn(model, node, None, MAX_STEPS)


def is_lost(members: Members, name: str) -> bool:
    """Whether an attribute holds random numbers, drawn while the module is set up, that ``forward`` computes with.

    They are in no state dict, so a module that is made anew and loaded computes something else. What is computed from
    the attribute itself, and assigned to it again, is the same as far as that goes.
    """
    running = members.reachable("forward")
    places = [place for place in members.assignments(name) if not place.is_empty]
    if not places or any(place.method not in members.setting_up or place.setter is not None for place in places):
        return False
    if not (
        all(isinstance(place.node, cst.AugAssign) or _is_drawn_at(place, name) for place in places)
        or (all(map(_is_new_at, places)) and is_filled_at_random(members, name))
    ):
        return False
    if any(_is_seeded(place) for place in places) or changes_later(members, name) or is_given_on(members, name):
        return False
    used = False
    for read in members.reads(name):
        model = read.method.model
        if read.method.name in SAVING or (read.method not in members.setting_up and _is_written(model, read.node)):
            return False
        if _is_a_sample(model, read):
            return False
        if read.method in running and not _is_for_training(model, read.node):
            used = used or fate(model, read.node, MAX_STEPS) is Fate.MEETS_INPUT or _picks_of_input(model, read.node)
    return used


def _picks_of_input(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether items of what comes from outside are picked by a tensor: ``x[:, self.order]``."""
    call = model.tree.call_given(node)
    if call is not None and model.qualified_name(call.func) == OLD_WRAPPER:
        node = call
    index = model.tree.parent(node)
    element = model.tree.parent(index) if isinstance(index, cst.Index) else None
    item = None if element is None else model.tree.parent(element)
    return isinstance(item, cst.Subscript) and is_input(model, item.value)


def is_filled_at_random(members: Members, name: str) -> bool:
    """Whether random numbers are drawn into the tensor in an attribute where the module is set up.

    ``self.table.data.normal_()``, ``nn.init.xavier_uniform_(self.table)``.
    """
    return any(
        read.method in members.setting_up and _is_filled(read.method.model, read.node) for read in members.reads(name)
    )


def _is_filled(model: "Model", node: cst.BaseExpression) -> bool:
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "data":
        node, parent = parent, model.tree.parent(parent)
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and call.args[0] is parent:
        function = maker_or_self(model, call.func)
        word = last_word(function) or ""
        if not any(kind in word.lower() for kind in _KINDS_OF_DRAWS):
            return False
        return word.endswith("_") or (model.qualified_name(function) or "").startswith(_INITIALIZERS)
    method = parent if isinstance(parent, cst.Attribute) else None
    return method is not None and method.attr.value in _FILLING and model.tree.call_of(method) is not None


def _is_new_at(place: Assignment) -> bool:
    """Whether a new tensor is assigned, that is no parameter."""
    if not isinstance(place.value, cst.Call) or makes_parameter(place.model, place.value):
        return False
    return place.model.qualified_name(place.value.func) in FACTORIES or is_new(place.model, place.value)


def _is_drawn_at(place: Assignment, name: str) -> bool:
    return place.value is not None and _is_drawn(place.model, place.value, name, MAX_STEPS)


def _is_drawn(model: "Model", node: cst.BaseExpression, name: str | None, steps: int) -> bool:
    """Whether a tensor is drawn from the generator that all share, or computed from one that is."""
    if steps == 0:
        return False
    match node:
        case cst.Call():
            return _is_drawn_by_call(model, node, name, steps - 1)
        case cst.BinaryOperation():
            return any(_is_drawn(model, side, name, steps - 1) for side in (node.left, node.right))
        case cst.UnaryOperation():
            return _is_drawn(model, node.expression, name, steps - 1)
        case cst.Subscript():
            return _is_drawn(model, node.value, name, steps - 1)
        case cst.Attribute():
            return node.attr.value == name and method_of_receiver(model, node.value) is not None
        case cst.Name():
            bindings = model.reaching(node)
            binding = bindings[0] if len(bindings) == 1 else None
            if binding is None or binding.kind is not BindingKind.ASSIGN or not binding.scope.is_function:
                return False
            return binding.value is not None and _is_drawn(model, binding.value, name, steps - 1)
    return False


def _is_drawn_by_call(model: "Model", call: cst.Call, name: str | None, steps: int) -> bool:
    if any(arg.star or (arg.keyword is not None and arg.keyword.value == "generator") for arg in call.args):
        return False
    called = model.qualified_name(call.func)
    if called is not None:
        if called.startswith(_DRAWING):
            return True
        fact = lookup.function(called)
        is_operation = fact is not None and fact.returns in ("tensor", "tensors")
        return is_operation and any(_is_drawn(model, arg.value, name, steps) for arg in call.args)
    if not isinstance(call.func, cst.Attribute):
        return False
    return call.func.attr.value in _FILLING or _is_drawn(model, call.func.value, name, steps)


def _is_seeded(place: Assignment) -> bool:
    """Whether the method that draws sees to it that the same numbers come each time."""
    model, method = place.model, place.method
    calls = (call for word in _SEEDING for call in model.calls_by_word.get(word, ()))
    return method is None or any(model.enclosing_function(call) is method.node for call in calls)


def _is_a_sample(model: "Model", read: Read) -> bool:
    """Whether methods of the class draw others anew to give them to the same function: any of them is as good."""
    statement = model.tree.parent(read.node)
    places = uses_of_bound(model, statement) if isinstance(statement, cst.Assign) else [read.node]
    for place in places:
        arg = model.tree.parent(place)
        call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call):
            continue
        index = next(index for index, item in enumerate(call.args) if item is arg)
        for other in calls_of_path(model, dotted_path(call.func) or ""):
            is_own = class_around(model, other) is read.method.owner and index < len(other.args)
            if is_own and _is_drawn(model, other.args[index].value, None, MAX_STEPS):
                return True
    return False


def _is_written(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a part of the tensor is set where it is read: ``self.queue[:, index] = x``."""
    part = model.tree.parent(node)
    return isinstance(part, cst.Subscript) and isinstance(model.tree.parent(part), (cst.AssignTarget, cst.AugAssign))


def _is_for_training(model: "Model", node: cst.BaseExpression) -> bool:
    return any(last_word(part) == "training" for test in conditions(model, node) for part in subtree(test))
