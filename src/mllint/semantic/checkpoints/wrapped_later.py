"""Loads into a module that is put into a wrapper afterwards: in the same function, or by another method of a class."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.wrappings import WRAPPERS, passed_elsewhere, wrappers_of
from mllint.semantic.expressions.arguments import passed_for
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo


def is_wrapped_later(load: Load) -> bool:
    """Whether the very thing that is loaded is put into a wrapper afterwards: ``model = DataParallel(model)``."""
    given = list(given_to(load))
    is_later = any(_is_wrapped_below(model, node) for model, node in given)
    return is_later or any(_is_called_before_wrapping(model, node) for model, node in given)


def given_to(load: Load) -> Iterator[tuple["Model", cst.BaseExpression]]:
    """What is loaded into, and what is passed for it where it is a parameter, also by the files that import this."""
    yield load.model, load.receiver
    bindings = load.model.reaching(load.receiver)
    function = load.model.enclosing_function(load.receiver)
    if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param) and function is bindings[0].scope.node:
        info = load.model.function_info(function)
        yield from ((load.model, node) for node in passed_for(load.model, info, bindings[0].node))
        yield from passed_elsewhere(load.model, info, bindings[0])


def _is_wrapped_below(model: "Model", node: cst.BaseExpression) -> bool:
    given = set(model.reaching(node))
    for word in WRAPPERS if given else ():
        for call in model.calls_by_word.get(word, ()):
            wrapper = lookup.wrapper(model.qualified_name(call.func) or "")
            inner = set(model.reaching(call.args[0].value)) if call.args else set()
            if wrapper is not None and wrapper.prefix and inner and given == inner:
                return True
    return False


def _is_called_before_wrapping(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a load into an attribute stands in a method that runs before another one, which wraps the attribute.

    That other one calls it, is handed out by it, or is called after it on the same object. Not where what wraps it may
    call the method afterwards too, itself or through other methods of the class.
    """
    path = dotted_path(node) or ""
    function = function_around(model, node)
    owner = None if function is None else function.owner
    if function is None or owner is None or path.count(".") != 1:
        return False
    wrapping = {name: order for name in owner.methods if (order := _wraps_at(owner, name, path)) is not None}
    is_before = bool(wrapping) and _hands_out(owner, function, wrapping)
    pending, seen = [function.name] if wrapping else [], {function.name}
    for name in pending:
        if name in wrapping:
            return False
        for call in model.calls_by_word.get(name, ()):
            caller, order = _place_in(owner, call)
            if caller in wrapping and order < wrapping[caller]:
                is_before = True
            elif "__init__" in wrapping or caller in wrapping:
                return False
            elif caller is None and name == function.name:
                if not _is_first(model, call, owner, wrapping):
                    return False
                is_before = True
            elif caller is not None and caller not in seen:
                seen.add(caller)
                pending.append(caller)
    return is_before or (bool(wrapping) and _is_first_elsewhere(owner, function, wrapping))


def _wraps_at(owner: "ClassInfo", name: str, path: str) -> int | None:
    """Where a method of a class first wraps an attribute, in the order of its statements."""
    method = owner.methods[name]
    bound = method.scope.bindings.get(path, ()) if method.model is owner.model else ()
    return min((item.order for item in bound if wrappers_of(method.model.binding_value(item))), default=None)


def _place_in(owner: "ClassInfo", call: cst.Call) -> tuple[str | None, int]:
    """In which method of a class a call stands, and where there; ``None`` where it stands in none."""
    for name, method in owner.methods.items():
        place = method.scope.place_of(call) if method.model is owner.model else None
        if place is not None:
            return name, place[1]
    return None, 0


def _hands_out(owner: "ClassInfo", function: "FunctionInfo", wrapping: dict[str, int]) -> bool:
    """Whether a method returns the only one that wraps, which nothing in the class calls: ``return self._train``."""
    returned = [statement.value for statement in function.scope.returns]
    names = {node.attr.value for node in returned if isinstance(node, cst.Attribute)}
    model = function.model
    mentioned = [node for name in wrapping for node in attributes(model, name)]
    is_only = bool(mentioned) and all(any(node is item for item in returned) for node in mentioned)
    return is_only and set(wrapping) == names and model is owner.model


def _is_first_elsewhere(owner: "ClassInfo", function: "FunctionInfo", wrapping: dict[str, int]) -> bool:
    """Whether the files that import a class call a method of an object always before one that wraps."""
    found = [
        (other, call)
        for other in owner.model.importers(owner.name)
        for call in other.calls_by_word.get(function.name, ())
        if isinstance(callee := other.value(call.func), Function) and callee.definition.is_same_as(function)
    ]
    return bool(found) and all(_is_first(other, call, owner, wrapping) for other, call in found)


def _is_first(model: "Model", call: cst.Call, owner: "ClassInfo", wrapping: dict[str, int]) -> bool:
    """Whether a call of a method of an object stands before all calls there of its methods that wrap."""
    holder = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    scope = model.scope_of(call)
    if holder is None or any(isinstance(item, (cst.For, cst.While)) for item in model.tree.ancestors(call)):
        return False
    others = [
        other
        for name in _entering(owner, wrapping)
        for other in model.calls_by_word.get(name, ())
        if isinstance(other.func, cst.Attribute) and dotted_path(other.func.value) == holder
    ]
    here, places = scope.place_of(call), [scope.place_of(other) for other in others]
    is_known = here is not None and bool(places)
    return is_known and all(place is not None and here is not None and here[1] < place[1] for place in places)


def _entering(owner: "ClassInfo", wrapping: dict[str, int]) -> list[str]:
    """The methods of a class that wrap, or call one that does."""
    pending = list(wrapping)
    for name in pending:
        for call in owner.model.calls_by_word.get(name, ()):
            caller, _ = _place_in(owner, call)
            if caller is not None and caller not in pending:
                pending.append(caller)
    return pending
