"""Which functions have to do with a training: only these are followed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import MODES
from mllint.semantic import flow
from mllint.semantic.events.handed_switches import FOR_EACH
from mllint.semantic.events.kinds import may_name_module, may_name_thing
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.values import Function, Module, as_called, functions_of
from mllint.syntax.shape import called_on, dotted_path, is_super_call, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_LOOKS = 400
"""How many functions are looked at, at most, to tell whether one matters."""


def matters(function: FunctionInfo) -> bool:
    """Whether anything that a training is about can happen in a function, or in what it calls."""
    known = function.model.runs.relevance
    if id(function.node) not in known:
        _look(function, [_MAX_LOOKS], [])
    return known.get(id(function.node), True)


def calls_what_matters(function: FunctionInfo, instance_of: ClassInfo) -> bool:
    """Whether a method of a base class calls one that matters in the class of the object."""
    return any(map(matters, _dispatched(function, instance_of)))


def _dispatched(function: FunctionInfo, instance_of: ClassInfo) -> list[FunctionInfo]:
    """The methods, as the class of the object has them, that a method of a base class calls of its object."""
    names = {
        call.func.attr.value
        for call in function.model.tree.calls_in(function.node.body)
        if isinstance(call.func, cst.Attribute) and getattr(call.func.value, "value", None) == function.self_name
    }
    methods = [instance_of.method(name) for name in sorted(names)]
    return [method for method in methods if method is not None and method is not function]


def _look(function: FunctionInfo, budget: list[int], running: list[FunctionInfo]) -> bool:
    known = function.model.runs.relevance
    if id(function.node) in known:
        return known[id(function.node)]
    budget[0] -= 1
    if function in running:
        return False
    if budget[0] < 0:
        return True
    running.append(function)
    found = _has_event(function) or any(
        is_pass(called, function) or _look(called.definition, budget, running) for called in _called(function)
    )
    running.pop()
    if found or not running:
        known[id(function.node)] = found
    return found


def names_event(function: FunctionInfo) -> bool:
    """Whether a word of training stands in a function."""
    return id(function.node) in function.model.runs.worded


def _has_event(function: FunctionInfo) -> bool:
    """Whether a word of training stands in a function, or it hands what it was given to something unknown."""
    model = function.model
    if names_event(function):
        return True
    own = _own_words(function)
    given = frozenset(parameter.name.value for parameter in function.parameters)
    for call in model.tree.calls_in(function.node.body):
        callee = call.func
        if type(callee) is cst.Name and (callee.value in given or callee.value in flow.WORDS):
            return True  # what a caller gives is called: it may be a module
        if type(callee) is cst.Subscript and _may_be_part(function, callee, given):
            return True  # so may a part of it: `nets["student"](inputs)`
        if type(callee) is cst.Call and last_word(callee.func) == "getattr":
            return True  # whatever it is: `getattr(net, "train" if learns else "eval")()`
        if _may_be_forward(model, callee) or _switches_each(model, call):
            return True
        if _is_known_pass(function, call):
            return True
        if type(callee) is cst.Attribute and call.args and dotted_path(callee.value) in switched_paths(model):
            return True  # a method of a module, as somebody switches it
        # `getattr(callback, name)(trainer)`: who is called may know what it is given better than its name says.
        words = given if type(callee) is cst.Call or type(callee) is cst.Subscript else own
        if any(type(arg.value) is cst.Name and arg.value.value in words for arg in call.args):
            value = model.value(callee)
            if value is None and not _is_method_of_data(model, call):
                return True
    return False


def _is_known_pass(function: FunctionInfo, call: cst.Call) -> bool:
    """Whether a call is surely one of a module, whatever its name, in what is none of a module's own methods."""
    owner = function.owner
    if (owner is not None and owner.framework is not None) or dotted_path(call.func) is None or not call.args:
        return False
    return isinstance(function.model.value(call.func), Module) and not is_called_loss(call)


@worked_out_once
def switched_paths(model: "Model") -> frozenset[str]:
    """The dotted paths of what a file puts to a mode."""
    calls = (call for word in MODES for call in model.calls_by_word.get(word, ()))
    paths = (dotted_path(call.func.value) for call in calls if isinstance(call.func, cst.Attribute))
    return frozenset(path for path in paths if path is not None)


def _may_be_part(function: FunctionInfo, callee: cst.Subscript, given: frozenset[str]) -> bool:
    """Whether what is called under a key or at a place may be a module, of what was given or what an object keeps."""
    return getattr(callee.value, "value", None) in given or isinstance(function.model.value(callee), Module)


def _may_be_forward(model: "Model", callee: cst.BaseExpression) -> bool:
    """Whether what is called may be a module, by its name or by what else the file does with it."""
    while type(callee) is cst.Subscript:
        callee = callee.value
    path = dotted_path(callee)
    return path is not None and (
        path in model.runs.used_as_modules
        or path == "self"
        or path.endswith(("forward", *lookup.APPLYING))
        or may_name_module(path.rpartition(".")[2])
    )


def _switches_each(model: "Model", call: cst.Call) -> bool:
    """Whether a function of the project that names a switch is called for each part of a thing: ``net.apply(fix)``."""
    if last_word(call.func) not in FOR_EACH:
        return False
    given = (function for arg in call.args for function in functions_of(model.value(arg.value)))
    return any(names_event(function.definition) for function in given)


def _is_method_of_data(model: "Model", call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and model.value(call.func.value) is not None


def _own_words(function: FunctionInfo) -> frozenset[str]:
    """The parameters by which an optimizer, a scheduler or a module could come in: an object may hold them all."""
    return frozenset(
        parameter.name.value
        for parameter in function.named_parameters
        if may_name_thing(parameter.name.value) or parameter.name.value == function.self_name
    )


def _called(function: FunctionInfo) -> Iterable[Function]:
    """The functions of the project that a function calls; of ``super().train()`` also the methods of its own class that
    the base class calls there.
    """
    for call in function.model.tree.calls_in(function.node.body):
        if flow.is_about_data(function.model, call):
            continue
        for called in functions_of(as_called(function.model.value(call.func))):
            yield called
            if function.owner is not None and is_super_call(called_on(call)):
                for method in _dispatched(called.definition, function.owner):
                    yield Function(method, called.receiver)


def is_pass(called: Function, caller: FunctionInfo | None = None) -> bool:
    """Whether a call from outside of a module gives something to parts of it: ``net.encode(inputs)``.

    What a module does in its own ``forward`` is one event, whichever of its methods it calls.
    """
    if not isinstance(called.receiver, Module) or called.definition.name == "forward":
        return False
    owner = caller.owner if caller is not None and caller.name == "forward" else None
    is_in_forward = owner is not None and owner.framework is not None
    return not is_in_forward and _calls_parts(called.definition)


def _calls_parts(method: FunctionInfo) -> bool:
    """Whether a method of a module calls modules, or methods of its object that do."""
    known = method.model.runs.passes
    if id(method.node) not in known:
        known[id(method.node)] = False  # until it is known: a method may call itself
        calls = method.model.tree.calls_in(method.node.body)
        known[id(method.node)] = any(_is_part_called(method, call) for call in calls)
    return known[id(method.node)]


def _is_part_called(method: FunctionInfo, call: cst.Call) -> bool:
    if flow.is_about_data(method.model, call):
        return False
    value = method.model.value(call.func)
    return isinstance(value, Module) or any(
        isinstance(called.receiver, Module) and called.definition.owner is not None and _calls_parts(called.definition)
        for called in functions_of(value)
    )
