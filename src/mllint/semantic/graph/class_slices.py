"""What losses are computed from that the methods of a class hand on in attributes: ``self.fake = self.net(self.real)``.

Two backward passes of a class share a graph where what both losses are computed from meets, in an attribute or name
that is not taken off its graph on the way.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import passed_for
from mllint.semantic.graph.data_sources import TAKING_SHAPES, comes_from_data, hangs_on_nothing, is_of_data
from mllint.semantic.graph.looked_at import CUTTING
from mllint.semantic.graph.losses import WALKING, loss_of
from mllint.semantic.graph.settings import is_set_before
from mllint.semantic.graph.statefulness import carries_nothing, computes_afresh
from mllint.semantic.names.classes import Assignment
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import ClassObject, Elements, Function, Mapping, Module, Object, Symbol, Tensor
from mllint.syntax.shape import dotted_path, last_word, string_literal, subscript_index
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 300
"""How many expressions are looked at for one loss."""
_OPENING = (cst.Await, cst.Yield, cst.Lambda, cst.NamedExpr)
_FOLLOWED = (BindingKind.ASSIGN, BindingKind.ANNOTATED, BindingKind.LOOP, BindingKind.AUGMENTED)


def is_walked_apart(model: "Model", call: cst.Call) -> bool:
    """Whether no other backward pass of the class goes through anything that the loss of one is computed from.

    All of it is understood, and made anew whenever that pass is.
    """
    method = function_around(model, call)
    loss = loss_of(call)
    if method is None or method.owner is None or loss is None or method.owner.has_unknown_base:
        return False
    reach = _Reach(method)
    reach.follow(method, loss)
    return not reach.is_open and not any(_shares(reach, other) for other in _other_passes(method, call))


def _other_passes(method: FunctionInfo, call: cst.Call) -> list[tuple[FunctionInfo, cst.Call]]:
    assert method.owner is not None
    found = []
    for info in (*method.owner.lineage, *method.owner.members.subclasses):
        for word in WALKING:
            for other in info.model.calls_by_word.get(word, ()):
                around = function_around(info.model, other) if other is not call else None
                if around is not None and around.owner is info:
                    found.append((around, other))
    return found


def _shares(reach: "_Reach", other: tuple[FunctionInfo, cst.Call]) -> bool:
    """Whether another pass may come to what a loss is computed from."""
    method, call = other
    loss = loss_of(call)
    if loss is None or last_word(call.func) not in ("backward", "manual_backward"):
        return True
    there = _Reach(method)
    there.follow(method, loss)
    return there.is_open or not there.attributes.isdisjoint(reach.attributes) or bool(there.bindings & reach.bindings)


class _Reach:
    """What an expression in a method is computed from: names of methods, and attributes of the object."""

    def __init__(self, method: FunctionInfo) -> None:
        assert method.owner is not None
        self.owner = method.owner
        self.method = method
        self.attributes = set[str]()
        self.bindings = set[int]()
        self.is_open = False
        self._within = set[str]()  # the attributes whose sources are being looked at
        self._steps = 0

    def follow(self, method: FunctionInfo, node: cst.CSTNode) -> None:
        """Note what an expression is computed from, as long as that is understood."""
        self._steps += 1
        self.is_open = self.is_open or self._steps > MAX_STEPS
        if self.is_open or self._ends(method.model, node):
            return
        match node:
            case cst.Name(value=name):
                if name != method.self_name:
                    self._name(method, node)
            case cst.Attribute(attr=cst.Name(value=name)) if name in CUTTING:
                return
            case cst.Attribute(value=cst.Name(value=own), attr=cst.Name(value=name)) if own == method.self_name:
                bound = method.model.reaching(node)
                if bound:
                    self.attributes.add(name)
                    self._bindings(method, bound)
                else:
                    self._attribute(name)
            case cst.Call():
                self._call(method, node)
            case cst.Subscript() if _is_entry(method, node):
                return
            case cst.Comparison() | cst.FormattedString() | cst.SimpleString():
                return
            case _:
                self.is_open = isinstance(node, _OPENING)
                for child in children(node):
                    self.follow(method, child)

    def _ends(self, model: "Model", node: cst.CSTNode) -> bool:
        value = model.value(node) if isinstance(node, cst.BaseExpression) else None
        if isinstance(value, (Module, Object, Symbol, ClassObject, Function)):
            return True
        if isinstance(value, Tensor) and value.parameter:
            return True
        if isinstance(node, (cst.Name, cst.Attribute)) and is_set_before(model, node):
            return True
        return hangs_on_nothing(value) and not (isinstance(value, Elements) and value.mutable)

    def _name(self, method: FunctionInfo, node: cst.Name) -> None:
        bound = method.model.reaching(node)
        self.is_open = not bound or method.model.scope_of(node) is not method.scope
        self._bindings(method, bound)

    def _bindings(self, method: FunctionInfo, bound: tuple[Binding, ...]) -> None:
        for binding in bound:
            if id(binding) in self.bindings or self.is_open or comes_from_data(method.model, binding):
                continue
            self.bindings.add(id(binding))
            if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
                self._parameter(method, binding.node)
            elif binding.kind not in _FOLLOWED:
                self.is_open = True
            elif isinstance(binding.node, cst.AugAssign):
                self.follow(method, binding.node.target)
                self.follow(method, binding.node.value)
            elif binding.value is not None:
                self.follow(method, binding.value)

    def _parameter(self, method: FunctionInfo, parameter: cst.Param) -> None:
        """What the methods of the class give for a parameter."""
        passed = passed_for(method.model, method, parameter)
        self.is_open = not passed
        for item in passed:
            caller = function_around(method.model, item)
            self.is_open = self.is_open or caller is None or caller.owner is None or caller.self_name is None
            if caller is not None and not self.is_open:
                self.follow(caller, item)

    def _call(self, method: FunctionInfo, call: cst.Call) -> None:
        word = last_word(call.func) or ""
        if isinstance(call.func, cst.Attribute) and word in CUTTING:
            return
        callee = method.model.value(call.func)
        for arg in call.args:
            self.follow(method, arg.value)
        if isinstance(callee, Function):
            self._function(callee.definition)
        elif isinstance(call.func, cst.Attribute) and not self._is_part(method, call.func):
            self.follow(method, call.func.value)

    def _is_part(self, method: FunctionInfo, callee: cst.Attribute) -> bool:
        """Whether what is called is a part of the object that its constructor has set up, or a method of one."""
        own, _, rest = (dotted_path(callee) or "").partition(".")
        name, _, of_part = rest.partition(".")
        if own != method.self_name or (of_part and lookup.tensor_method(method.model.framework or "torch", of_part)):
            return False
        places = list(self.owner.members.assignments(name))
        return not of_part or all(place.method is not None and place.method.name == "__init__" for place in places)

    def _function(self, info: FunctionInfo) -> None:
        """What a function gives back hangs on what it is given, and a method's on the attributes that it reads."""
        if computes_afresh(info):
            return
        self.is_open = self.is_open or info.owner is None or info.owner not in self.owner.lineage
        for statement in info.scope.returns:
            if statement.value is not None:
                self.follow(info, statement.value)

    def _attribute(self, name: str) -> None:
        """What other methods have put into an attribute, before the pass, in the same round."""
        if name in self._within:
            self.is_open = True  # it goes from one round to the next
        if self.is_open or name in self.attributes:
            return
        places = list(self.owner.members.assignments(name))
        values = [None if place.value is None else place.model.value(place.value) for place in places]
        if places and all(
            carries_nothing(value) or _is_of_batch(place) for place, value in zip(places, values, strict=True)
        ):
            return
        self.attributes.add(name)
        self._within.add(name)
        may_be_filled = any(isinstance(value, Mapping) or getattr(value, "mutable", False) for value in values)
        self.is_open = not places or may_be_filled or not all(map(self._is_made_anew, places))
        for place in places:
            value = getattr(place.node, "value", None)
            if place.method is not None and value is not None:
                self.follow(place.method, value)
        self._within.discard(name)

    def _is_made_anew(self, place: Assignment) -> bool:
        """Whether an attribute is set in a method that runs in the same round as the one with the pass."""
        if place.method is None or place.method.name == "__init__" or place.method.owner is None:
            return False
        return place.method is not self.method and place.method in self._of_round

    @cached_property
    def _of_round(self) -> frozenset[FunctionInfo]:
        """The methods that are called by the one with the pass, or beside it by one that calls both."""
        members, found = self.owner.members, set[FunctionInfo]()
        for info in self.owner.lineage:
            for name in info.methods:
                reached = members.reachable(name) if name != "__init__" else frozenset()
                found |= reached if self.method in reached else frozenset()
        return frozenset(found)


def _is_of_batch(place: Assignment) -> bool:
    """Whether an attribute is set to an entry of the batch that a method is given: ``batch["real"].to(device)``."""
    node = place.value
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in TAKING_SHAPES:
        node = node.func.value
    if node is None or place.method is None:
        return False
    is_entry = isinstance(node, cst.Subscript) and _is_entry(place.method, node)
    return is_entry or is_of_data(place.model, node)


def _is_entry(method: FunctionInfo, node: cst.Subscript) -> bool:
    """Whether something is taken out of a parameter by the name of a key."""
    index = subscript_index(node)
    keys = (index.body, index.orelse) if isinstance(index, cst.IfExp) else (index,)
    bound = method.model.reaching(node.value) if isinstance(node.value, cst.Name) else ()
    is_given = bool(bound) and all(binding.kind is BindingKind.PARAMETER for binding in bound)
    return is_given and all(string_literal(key) is not None for key in keys)
