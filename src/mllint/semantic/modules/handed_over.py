"""Whether somebody may look after a tensor in a plain attribute of a module: train it by hand, or save it."""

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.modules.contents import PUTTING
from mllint.semantic.modules.fates import NOT_NUMBERS, Fate, of_element
from mllint.semantic.modules.fresh import is_set_up_by
from mllint.semantic.modules.made_on_cpu import MAX_STEPS, OLD_WRAPPER
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.modules.plain_tensors import is_new
from mllint.semantic.names.classes import Assignment, Members
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import ClassObject, Function, Instance, Method, Module, Nothing, Symbol
from mllint.syntax.shape import before_methods, last_word, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MAX_READERS = 24
"""With more files than this that may read an attribute, nobody knows what becomes of it."""
_CALLS = 2
"""Through how many functions a tensor is followed that is given away."""
_PARAMETER_LIST = "torch.nn.ParameterList"
_ABOUT = NOT_NUMBERS | {"device", "ndimension"}
_COPYING = frozenset({"detach", "clone", "cpu", "cuda", "to", "type", "contiguous", "float", "double", "half", "data"})
_ASKING = frozenset({"builtins.isinstance", "builtins.hasattr", "builtins.id", "builtins.type", "builtins.print"})
# What sets numbers that have nothing to do with those that were there.
_SETTING = frozenset({"zero_", "fill_", "normal_", "uniform_"})


def is_given_on(members: Members, name: str) -> bool:
    """Whether somebody else may have a tensor in an attribute: it is given away, or read by another class or file."""
    return any(_is_given_away(members, read.method.model, read.node) for read in members.reads(name)) or (
        is_given_on_by_others(members, name)
    )


def is_given_on_by_others(members: Members, name: str) -> bool:
    """Whether another class, or another file, may do more with an attribute than to compute with it, and ask for its
    shape.
    """
    definition = members.definition
    places = ((model, node) for model in members.models for node in from_outside(definition, model, name))
    return not all(_only_computes(model, node) for model, node in places) or is_given_on_elsewhere(members, name)


def is_handed_over(members: Members, name: str) -> bool:
    """Whether somebody may train a tensor in an attribute by hand: it is given away, or its gradient is read."""
    if is_given_on(members, name):
        return True
    running = members.reachable("forward")
    values = [
        place
        for place in members.assignments(name)
        if not _adds_nothing(place, name) and (place.method in running or not _begins_anew(place))
    ]
    return any(
        one.model is not other.model or not is_in_another_branch(one.model, one.node, other.node)
        for one, other in combinations(values, 2)
    )


def _begins_anew(place: Assignment) -> bool:
    """Whether a method other than the constructor sets a tensor to new numbers, so that nothing is kept of the old.

    Who trains a tensor by hand goes on from what it was.
    """
    if place.method is None or place.method.name == "__init__" or not isinstance(place.value, cst.Call):
        return False
    name = place.model.qualified_name(place.value.func) or ""
    return name.endswith("_like") or is_new(place.model, place.value)


def _adds_nothing(place: Assignment, name: str) -> bool:
    """Whether an assignment is ``None``, or only goes on with the tensor: ``self.x = self.x.repeat(10, 1)``."""
    if place.value is None:
        return False
    if isinstance(place.model.value(place.value), Nothing):
        return True
    node = before_methods(place.value)
    return (
        node is not place.value
        and isinstance(node, cst.Attribute)
        and node.attr.value == name
        and method_of_receiver(place.model, node.value) is not None
    )


# -- in the methods of the class ---------------------------------------------------------------------------------------


def _is_given_away(members: Members, model: "Model", node: cst.BaseExpression, calls: int = _CALLS) -> bool:
    parent = model.tree.parent(node)
    match parent:
        case cst.Attribute(attr=cst.Name(value="data")):
            return not _is_set_up_at(members, model, node) and _is_changed(model, parent)
        case cst.Attribute(attr=cst.Name(value=word)):
            return word in ("grad", "retain_grad", "backward")
        case cst.Arg():
            return _is_argument_given_away(members, model, parent, calls)
        case cst.Element():
            is_held = of_element(model, parent, MAX_STEPS) in (Fate.NOTHING, Fate.GIVEN_BACK)
            return is_held and not _is_copied(model, parent)
        case cst.Return() | cst.Yield() | cst.DictElement() | cst.StarredElement():
            return True
    return False


def _is_set_up_at(members: Members, model: "Model", node: cst.BaseExpression) -> bool:
    function = model.enclosing_function(node)
    return function is not None and model.function_info(function) in members.setting_up


def _is_changed(model: "Model", data: cst.Attribute) -> bool:
    """Whether the numbers of a tensor are set, changed in place or handed on where its ``data`` is named."""
    parent = model.tree.parent(data)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value not in _ABOUT and parent.attr.value.endswith("_")
    return not isinstance(parent, (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget))


def _is_argument_given_away(members: Members, model: "Model", arg: cst.Arg, calls: int) -> bool:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call):
        return True
    callee = model.value(call.func)
    if _sets_numbers(model, arg):
        return False
    if isinstance(callee, Symbol) and callee.name == OLD_WRAPPER:
        return _is_given_away(members, model, call, calls)
    if isinstance(callee, Symbol):
        # To checkpointing a tensor is given that asks for gradients, since its inputs may not.
        is_for_graph = "grad" in callee.name or "checkpoint" in callee.name
        return is_for_graph or lookup.function(callee.name) is None
    if isinstance(callee, Function):
        used = uses_inside(callee.definition, call, arg, filled_by(callee)) if calls else None
        home = callee.definition.model
        return used is None or any(_is_passed_on(members, home, use, calls - 1) for use in used)
    if isinstance(callee, Module):
        return False
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value in PUTTING:
        return True
    return not (isinstance(callee, Method) or _is_operation_of_project(model, call.func))


def _is_passed_on(members: Members, model: "Model", use: cst.BaseExpression, calls: int) -> bool:
    """The same for what a function is given, also under another name; what it computes and gives back is no leaf."""
    pending, seen = [use], set[int]()
    while pending:
        node = pending.pop()
        statement = model.tree.parent(node)
        if not isinstance(statement, cst.Assign):
            if _is_given_away(members, model, node, calls):
                return True
        elif id(statement) not in seen:
            seen.add(id(statement))
            target = statement.targets[0].target
            if len(statement.targets) > 1 or not isinstance(target, cst.Name):
                return True
            pending += (
                name
                for name in model.names_by_word.get(target.value, ())
                if name is not target and any(item.node is statement for item in model.reaching(name))
            )
    return False


def _is_operation_of_project(model: "Model", called: cst.Attribute) -> bool:
    """Whether what is called is ``apply`` of an ``autograd.Function``."""
    owner = model.value(called.value) if called.attr.value == "apply" else None
    return isinstance(owner, ClassObject) and "torch.autograd.Function" in owner.definition.library_bases


def _sets_numbers(model: "Model", arg: cst.Arg) -> bool:
    """Whether an argument is given to a function that by its name sets numbers: ``trunc_normal_(self.table)``."""
    call = model.tree.parent(arg)
    word = (last_word(call.func) or "") if isinstance(call, cst.Call) else ""
    return is_set_up_by(model, arg) or (word.endswith("_") and not word.endswith("__"))


def _is_copied(model: "Model", element: cst.Element) -> bool:
    """Whether a ``ParameterList`` that has no name makes a parameter of a tensor: the optimizer is given another one.

    ``Adam(nn.ParameterList([self.x]))``: the two share their numbers, and have a gradient each.
    """
    holder = model.tree.parent(model.tree.parent(element) or element)
    call = model.tree.parent(holder) if isinstance(holder, cst.Arg) else None
    if not isinstance(call, cst.Call) or model.qualified_name(call.func) != _PARAMETER_LIST:
        return False
    return isinstance(model.tree.parent(call), (cst.Arg, cst.Attribute))


# -- in the code of others ---------------------------------------------------------------------------------------------


def _only_computes(model: "Model", node: cst.Attribute) -> bool:
    """Whether a place that reads an attribute only computes with it, sets its numbers, or asks what it is like.

    So does one that reads something else of that name: what is called, or imported, or has an attribute that neither
    tensors nor lists and dicts of them have, as ``block`` in ``net.block.weight``.
    """
    parent = model.tree.parent(node)
    match parent:
        case cst.Call() if parent.func is node:
            return True
        case cst.ImportAlias() | cst.ImportFrom():
            return True
        case cst.Attribute(attr=cst.Name(value=word)) if not _is_of_tensors_or_containers(word):
            return True
        case cst.Attribute(attr=cst.Name(value="data")):
            method = model.tree.parent(parent)
            return isinstance(method, cst.Attribute) and method.attr.value in _SETTING
        case cst.Attribute(attr=cst.Name(value=word)):
            return word in _ABOUT or word in _SETTING or _gives_something_new(word)
        case cst.BinaryOperation() | cst.Comparison() | cst.ComparisonTarget() | cst.UnaryOperation() | cst.If():
            return True
        case cst.Arg():
            call = model.tree.parent(parent)
            if not isinstance(call, cst.Call):
                return False
            return is_operation(model, call) or _asks(model, call) or _sets_numbers(model, parent)
    return False


def is_operation(model: "Model", call: cst.Call) -> bool:
    """Whether a call is one of a function of the framework that computes tensors of what it is given."""
    name = model.qualified_name(call.func)
    fact = None if name is None or "grad" in name else lookup.function(name)
    return fact is not None and fact.returns in ("tensor", "scalar", "tensors")


def _asks(model: "Model", call: cst.Call) -> bool:
    return model.qualified_name(call.func) in _ASKING


@cache
def _is_of_tensors_or_containers(word: str) -> bool:
    """Whether tensors, lists or dicts have an attribute of this name."""
    if word.startswith("_") or any(hasattr(kind, word) for kind in (list, dict)):
        return True
    return any(
        word in lookup.tensor_methods(framework) or lookup.tensor_attribute(framework, word) is not None
        for framework in ("torch", "paddle")
    )


def _gives_something_new(word: str) -> bool:
    """Whether a method of a tensor computes something else, and no copy."""
    fact = lookup.tensor_method("torch", word)
    is_operation = fact is not None and fact.returns in ("tensor", "scalar")
    return is_operation and word not in _COPYING and not word.endswith("_")


def is_given_on_elsewhere(members: Members, name: str) -> bool:
    """Whether another file of the project may do more with the attribute than to compute with it."""
    paths = members.readers_elsewhere(name)
    if paths is None or len(paths) > MAX_READERS:
        return True
    for path in paths:
        model = members.definition.model.neighbour(path)
        if model is None or (_is_given_on_in(members, model, name) and not is_only_tested(members, model)):
            return True
    return False


def is_only_tested(members: Members, model: "Model") -> bool:
    """Whether a file tests a class that is none of tests itself: nobody else gets what it does there."""
    return is_test_code(model) and not is_test_code(members.definition.model)


def _is_given_on_in(members: Members, model: "Model", name: str) -> bool:
    definition = members.definition
    for node in attributes(model, name):
        method = method_of_receiver(model, node.value)
        if method is not None and method.owner is not None:
            is_own = _is_one_of(method.owner, definition)
            if is_own and (
                isinstance(model.tree.parent(node), cst.AssignTarget) or _is_given_away(members, model, node)
            ):
                return True
        elif may_be_of(definition, model, node.value) and not _only_computes(model, node):
            return True
    return bool(model.calls_by_word.get("getattr")) and any(
        string_literal(text) == name and not _is_asked_for(model, text)
        for text in model.tree.by_type.get(cst.SimpleString, ())
    )


def _is_asked_for(model: "Model", text: cst.SimpleString) -> bool:
    """Whether a name is only given to ``hasattr``."""
    call = model.tree.call_given(text)
    return call is not None and last_word(call.func) == "hasattr"


def may_be_of(definition: "ClassInfo", model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression of another file may be an object of a class, or of one that derives from it."""
    value = model.value(node)
    if value is None and model.qualified_name(node) is not None:
        return False  # it is imported: `numpy`
    if value is None or (isinstance(value, Module) and (value.others or (value.name or value.definition) is None)):
        return True
    made = value.definition if isinstance(value, (Module, Instance)) else None
    return made is not None and (_is_one_of(made, definition) or _is_one_of(definition, made))


def _is_one_of(one: "ClassInfo", other: "ClassInfo") -> bool:
    """Whether a class is another one, or derives from it."""
    return any(info.is_same_as(other) for info in one.lineage)
