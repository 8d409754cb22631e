"""Lines that no known call of a function reaches, by what its calls leave to a default."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.saves import calls_of_function
from mllint.semantic.expressions.arguments import MAX_CALLS
from mllint.semantic.names.conditions import decided, parts_of_test, verdicts
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import ClassObject, Function, Instance, Module
from mllint.syntax.shape import constant, dotted_path, has_star_arguments, is_target, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo


def is_never_reached(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a test around a place asks for what a default alone decides, and it is not what is asked for.

    ``if world_size > 1: self.net = DistributedDataParallel(net)`` of ``def __init__(self, net, world_size=1)``, where
    everybody who makes one gives a network alone: nothing is ever wrapped there.
    """
    for test, holds in verdicts(model, node):
        known = decided(test, lambda part: _default_of(model, part))
        if known is not None and known is not holds:
            return True
    return False


def _default_of(model: "Model", node: cst.BaseExpression) -> object:
    """The constant that is written, or the default of a parameter that every call leaves out; ``...``: not known."""
    if not isinstance(node, (cst.Name, cst.Attribute)) or constant(node) is not ...:
        return constant(node)
    bindings = _bindings(model, node)
    if len(bindings) != 1:
        return ...
    binding, value = bindings[0], assigned(bindings[0])
    if isinstance(value, cst.Name) and isinstance(node, cst.Attribute):
        return _default_of(binding.scope.model, value)
    return _of_parameter(binding) if binding.kind is BindingKind.PARAMETER else ...


def _bindings(model: "Model", node: cst.BaseExpression) -> list[Binding]:
    """What binds a name, or an attribute of the own object in any method of the class, if nobody else sets it."""
    method = method_of_receiver(model, node.value) if isinstance(node, cst.Attribute) else None
    if method is None or method.owner is None or not isinstance(node, cst.Attribute):
        return list(model.reaching(node))
    if method.owner.has_unknown_base or _is_set_by_others(method.owner, node.attr.value):
        return []
    return list(method.owner.lasting(node.attr.value))


def _is_set_by_others(owner: "ClassInfo", name: str) -> bool:
    """Whether a file that knows the class sets an attribute of that name of an object that may be one of it."""
    return any(
        is_target(model.tree.parent(node), node) and _may_be_one(model, node.value, owner)
        for model in (owner.model, *owner.model.importers(owner.name))
        for node in attributes(model, name)
    )


def _may_be_one(model: "Model", node: cst.BaseExpression, owner: "ClassInfo") -> bool:
    """Whether an expression may be an object of a class, and is not the own one of a method."""
    if method_of_receiver(model, node) is not None:
        return False
    value = model.value(node)
    definition = value.definition if isinstance(value, (Instance, Module)) else None
    return definition is None or definition.is_same_as(owner)


def _of_parameter(binding: Binding) -> object:
    function, home = binding.scope.node, binding.scope.model
    if not isinstance(function, cst.FunctionDef) or not isinstance(binding.node, cst.Param):
        return ...
    info = home.function_info(function)
    if binding.node.default is None or not info.is_transparent:
        return ...
    calls = [] if _is_called_by_subclasses(info) else list(_calls(info))
    before = 0 if info.self_name is None else 1
    position = next((at - before for at, item in enumerate(info.parameters) if item is binding.node), None)
    if not calls or len(calls) > MAX_CALLS or any(_gives(call, binding.key, position) for call in calls):
        return ...
    return constant(binding.node.default)


def _gives(call: cst.Call, name: str, position: int | None) -> bool:
    """Whether a call gives, or may give, a parameter that stands at a position of what it is to give."""
    if has_star_arguments(call) or any(arg.keyword is not None and arg.keyword.value == name for arg in call.args):
        return True
    return position is not None and sum(arg.keyword is None for arg in call.args) > position


def _files(info: "FunctionInfo") -> "Iterator[Model]":
    word = _word(info)
    yield info.model
    yield from (model for model in info.model.importers(word) if model is not info.model)


def _word(info: "FunctionInfo") -> str:
    return info.owner.name if info.owner is not None and info.name == "__init__" else info.name


def _calls(info: "FunctionInfo") -> Iterator[cst.Call]:
    """The calls of a function, or of the class that it makes objects of, in its file and in those that import it.

    A call of another object's method of the same name may be one, too.
    """
    for model in _files(info):
        for call in calls_of_function(model, _word(info)):
            callee = model.value(call.func)
            if isinstance(callee, ClassObject):
                is_it = info.owner is not None and callee.definition.is_same_as(info.owner)
            else:
                is_it = callee is None or (isinstance(callee, Function) and callee.definition.is_same_as(info))
            if is_it:
                yield call


def _is_called_by_subclasses(info: "FunctionInfo") -> bool:
    """Whether a class is derived from the one whose method that is: it may give its own arguments."""
    owner = info.owner
    return owner is not None and any(
        last_word(base.value) == owner.name
        for model in _files(info)
        for definition in model.tree.by_type.get(cst.ClassDef, ())
        if isinstance(definition, cst.ClassDef)
        for base in definition.bases
    )


def is_never_given(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place is reached only with an argument that is left out by every call that is known, at least one.

    ``if scheduler is not None: scheduler.load_state_dict(checkpoint["scheduler"])`` of ``def load(path,
    scheduler=None)``, which every script calls with a path alone: that the files have no such entry does no harm.
    """
    tests = [part for test, holds in verdicts(model, node) if holds for part in parts_of_test(test)]
    return any(_is_left_out(model, asked) for test in tests if (asked := _asked_for(test)) is not None)


def _asked_for(test: cst.BaseExpression) -> cst.Name | None:
    """What a test asks for, whether it was given: ``scheduler is not None``, ``scheduler``."""
    match test:
        case cst.Name():
            return test
        case cst.Comparison(
            left=cst.Name() as asked,
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            return asked
    return None


def _is_left_out(model: "Model", asked: cst.Name) -> bool:
    bindings = [item for item in model.reaching(asked) if item.kind is not BindingKind.NARROWED]
    function = bindings[0].scope.node if len(bindings) == 1 else None
    if not isinstance(function, cst.FunctionDef) or bindings[0].kind is not BindingKind.PARAMETER:
        return False
    info, name = model.function_info(function), asked.value
    default = next((item.default for item in info.named_parameters if item.name.value == name), None)
    if default is None or dotted_path(default) != "None":
        return False
    calls = (*model.surroundings.calls_of(info), *model.surroundings.calls_elsewhere(info))
    given = [Route(Follower(caller), call, info).argument(name) for caller, call in calls]
    return bool(given) and all(item is not None and item[1] is default for item in given)
