"""Loads of which only one side has the prefix of a wrapper in its keys: from one module into another, on some ways of
the program, of keys that the code reads, and in two branches.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.contents import FromFile, State
from mllint.semantic.checkpoints.handling import entries_read
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.checkpoints.wrapped import is_taken_off
from mllint.semantic.checkpoints.wrappings import WRAPPERS, prefix_of, wrappings
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.events.places import as_itself
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.modules.module_keys import module_keys
from mllint.semantic.names.conditions import conditions, is_in_another_branch
from mllint.semantic.names.scopes import BindingKind, only_assigned
from mllint.semantic.names.uses import calls_of_path
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 3
"""Through how many assignments the names in a condition are followed."""


class OneSided(msgspec.Struct, frozen=True):
    """The prefix that only one side of a load has, by which wrapper, and whether that is the side that is loaded.

    ``part``: what stands before the prefix, where only a part of the module is in the wrapper.
    """

    prefix: str
    wrapper: str
    is_given: bool
    part: str = ""


def one_sided(load: Load, content: State) -> OneSided | None:
    """The wrapper of one side of ``net.load_state_dict(other.state_dict())``, where the other side surely has none.

    Only where nothing in the function asks for the wrapper or for what decides about it.
    """
    model, call = load.model, content.place.node
    if content.place.model is not model or not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    sides = (call.func.value, load.receiver)
    for side, other in (sides, sides[::-1]):
        found = [wrappers for wrappers in wrappings(model, side) if wrappers]
        if not found or any(wrappers != found[0] for wrappers in found):
            continue
        prefix = prefix_of(found[0])
        is_given = side is sides[0]
        if (is_given and not content.keys.may_begin_with(prefix)) or not is_surely_bare(model, other):
            continue
        if not is_handled(model, side, load.call):
            return OneSided(prefix, found[0][0].rpartition(".")[2], is_given)
    return _wrapped_again(model, *sides)


def _wrapped_again(model: "Model", given: cst.BaseExpression, receiver: cst.BaseExpression) -> OneSided | None:
    """The wrapper that one side of a load was put into once more: ``copy = DataParallel(net)`` of a wrapped ``net``.

    Of what a function is given, each call of it tells.
    """
    pairs = list(_given_together(model, given, receiver))
    for is_given in (True, False) if pairs else ():
        outer = [_wrapper_around(home, *(sides if is_given else sides[::-1])) for home, *sides in pairs]
        if outer[0] is not None and all(wrapper == outer[0] for wrapper in outer):
            home, *sides = pairs[0]
            around = next((item for item in wrappings(home, sides[0 if is_given else 1]) if item), None)
            if around is not None:
                return OneSided(prefix_of(around), outer[0].rpartition(".")[2], is_given)
    return None


def _given_together(
    model: "Model", *sides: cst.BaseExpression
) -> Iterator[tuple["Model", cst.BaseExpression, cst.BaseExpression]]:
    """The two sides of a load, or what each call of the function gives for them, where both are its parameters."""
    bindings = [model.reaching(side) for side in sides]
    function = bindings[0][0].scope.node if bindings[0] else None
    if any(len(found) != 1 or found[0].kind is not BindingKind.PARAMETER for found in bindings):
        yield model, sides[0], sides[1]
        return
    if not isinstance(function, cst.FunctionDef) or any(found[0].scope.node is not function for found in bindings):
        return
    info = model.function_info(function)
    for call, _ in calls_of(model, info):
        given = [Route(Follower(model), call, info).argument(found[0].key) for found in bindings]
        if given[0] is not None and given[1] is not None:
            yield model, given[0][1], given[1][1]


def _wrapper_around(model: "Model", whole: cst.BaseExpression, part: cst.BaseExpression) -> str | None:
    """The wrapper into which one thing was put to make another of it, as the two stand there."""
    made = only_assigned(model, whole)
    wrapper = lookup.wrapper(model.qualified_name(made.func) or "") if isinstance(made, cst.Call) else None
    if wrapper is None or not wrapper.prefix or not isinstance(made, cst.Call) or not made.args:
        return None
    bound = set(model.reaching(part))
    is_same = bool(bound) and set(model.reaching(made.args[0].value)) == bound
    return model.qualified_name(made.func) if is_same else None


def saved_half_wrapped(load: Load, content: State) -> OneSided | None:
    """The wrapper that what is loaded into surely has, and what was saved to the file on some ways only.

    ``if torch.cuda.device_count() > 1: model = DataParallel(model)`` where it is saved, always where it is loaded.
    """
    call = content.place.node
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or not load.is_strict:
        return None
    saved, wanted = wrappings(content.place.model, call.func.value), wrappings(load.model, load.receiver)
    wrapped = [wrappers for wrappers in (*saved, *wanted) if wrappers]
    if () not in saved or None in (*saved, *wanted) or len(wrapped) == len(wanted) or not all(wanted):
        return None
    if any(wrappers != wrapped[0] for wrappers in wrapped) or is_taken_off(load.model):
        return None
    bindings = load.model.reaching(load.receiver)
    if not bindings or any(test for item in bindings for test in conditions(load.model, item.node)):
        return None  # the same may decide about both
    return OneSided(prefix_of(wrapped[0]), wrapped[0][0].rpartition(".")[2], False)


def is_surely_bare(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the keys of a module, whichever way it was made, begin with no wrapper's prefix."""
    bindings = [item for item in model.reaching(node) if item.kind is not BindingKind.NARROWED]
    for value in [item.scope.model.binding_value(item) for item in bindings] or [model.value(node)]:
        if not isinstance(value, Module) or value.wrappers or value.others:
            return False
        if value.definition is not None and any(map(value.definition.method, ("state_dict", "load_state_dict"))):
            return False
        keys = module_keys(model, node, value)
        if any(map(keys.may_begin_with, WRAPPER_PREFIXES)):
            return False
    return True


def is_handled(model: "Model", side: cst.BaseExpression, call: cst.Call) -> bool:
    """Whether the code around a load knows of the wrapper, or runs before the module is put into it."""
    function, path = model.enclosing_function(call), dotted_path(side)
    for prefix in WRAPPER_PREFIXES:
        for name in model.names_by_word.get(prefix.removesuffix("."), ()):
            if model.enclosing_function(name) is function:
                return True  # `model.module`, `hasattr(model, "module")` asks by the name of a string
    tests = list(conditions(model, call))
    if path in _names_of(model, tests):
        return True
    wraps = [wrap for word in WRAPPERS for wrap in model.calls_by_word.get(word, ()) if _is_wrap(model, wrap)]
    for wrap in wraps if tests else ():
        around = list(conditions(model, wrap))
        own = [test for test in tests if not any(test is other for other in around)]
        others = [test for test in around if not any(test is other for other in tests)]
        if _names_of(model, own) & _names_of(model, others):
            return True
    callers = () if function is None else calls_of(model, model.function_info(function))
    places = {id(model.enclosing_function(caller)) for caller, _ in callers}
    is_kept = "." in (path or "")  # by an object: which of its methods has run is not followed
    return is_kept and any(id(model.enclosing_function(wrap)) in places for wrap in wraps)


def _names_of(model: "Model", tests: list[cst.BaseExpression]) -> set[str]:
    return {name for test in tests for name in names_in(model, test)}


def _is_wrap(model: "Model", call: cst.Call) -> bool:
    return lookup.wrapper(model.qualified_name(call.func) or "") is not None


def names_in(model: "Model", test: cst.BaseExpression, steps: int = 0) -> Iterator[str]:
    """The names and dotted paths in a condition, and in what the names were assigned."""
    for part in subtree(test):
        path = dotted_path(part) if isinstance(part, (cst.Name, cst.Attribute)) else None
        if path is None or isinstance(model.tree.parent(part), cst.Attribute):
            continue
        assert isinstance(part, cst.BaseExpression)
        yield path
        for binding in model.reaching(part) if steps < MAX_STEPS else ():
            if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                yield from names_in(model, binding.value, steps + 1)


def told_by_keys(load: Load) -> OneSided | None:
    """The wrapper whose prefix the keys of only one side have, by those that are read of the very dict.

    ``state["pool.centroids"].shape`` is read, ``net.pool`` is in ``DataParallel``, the state is loaded into ``net``.
    """
    if load.is_strict is not True:
        return None
    read = [key for key in entries_read(load) if "." in key]
    content = Tracer(load.model).content(load.given) if read else None
    if not isinstance(content, FromFile) or content.renames or is_handled(load.model, load.receiver, load.call):
        return None
    for part, wrapper in _wrapped(load.model, load.receiver):
        prefix = prefix_of((wrapper,))
        if any(key.startswith(part) and not key.startswith(part + prefix) for key in read):
            return OneSided(prefix, wrapper.rpartition(".")[2], False, part)
    for prefix in WRAPPER_PREFIXES:
        if any(key.startswith(prefix) for key in read) and isinstance(load.value, Module):
            return OneSided(prefix, "", True) if is_surely_bare(load.model, load.receiver) else None
    return None


def _wrapped(model: "Model", node: cst.BaseExpression) -> Iterator[tuple[str, str]]:
    """What may be in a wrapper of a module at a place, all of it (empty) or a part (``pool.``), with the wrapper."""
    for wrappers in wrappings(model, node):
        if wrappers is not None and len(wrappers) == 1:
            yield "", wrappers[0]
    scope, path = model.scope_of(node), f"{dotted_path(node)}."
    for key in scope.bindings:
        if not key.startswith(path) or "." in key.removeprefix(path):
            continue
        for binding in scope.reaching(key, node).bindings:
            made = None if binding.value is None else as_itself(binding.value)
            name = model.qualified_name(made.func) if isinstance(made, cst.Call) else None
            if name is not None and (wrapper := lookup.wrapper(name)) is not None and wrapper.prefix:
                yield f"{key.removeprefix(path)}.", name


_KEY = "layer.0.weight"
_IS_THERE = "is_available"


def stripped_beside(load: Load) -> str | None:
    """The prefix that another branch takes off the keys of the same file before it loads them into the same module.

    Whichever keys the file has, one of the two raises: the module is in a wrapper on neither way, and what decides
    between them is whether there is a GPU, which says nothing of the file.
    """
    others = list(_loads_beside(load)) if load.is_strict else []
    content = Tracer(load.model).content(load.given) if others else None
    if not isinstance(content, FromFile) or content.renames:
        return None
    path = read_path(content)
    for other in others if path is not None else ():
        given = Tracer(load.model).content(other.given)
        if not isinstance(given, FromFile) or given.trail != content.trail or read_path(given) != path:
            continue
        for prefix in WRAPPER_PREFIXES:
            receivers = (load.receiver, other.receiver)
            if _takes_off(given, prefix) and all(is_surely_bare(load.model, node) for node in receivers):
                return prefix
    return None


def _loads_beside(load: Load) -> Iterator[Load]:
    """The strict loads into a thing of the same name in another branch of the same function."""
    model, function = load.model, load.model.enclosing_function(load.call)
    path = dotted_path(load.receiver)
    for call in () if path is None else calls_of_path(model, f"{path}.{load.method}"):
        is_beside = model.enclosing_function(call) is function and is_in_another_branch(model, load.call, call)
        if is_beside and _depends_on_device(load, call):
            other = load_of(model, call)
            if other is not None and other.is_strict:
                yield other


def _depends_on_device(load: Load, other: cst.Call) -> bool:
    """Whether the ``if`` that has two loads in its branches asks for a GPU, and not for how many."""
    around = set(map(id, load.model.tree.ancestors(other)))
    for ancestor in load.model.tree.ancestors(load.call):
        if isinstance(ancestor, cst.If) and id(ancestor) in around:
            asked = {name.rpartition(".")[2] for name in names_in(load.model, ancestor.test)}
            return _IS_THERE in asked and not any("count" in name for name in asked)
    return False


def _takes_off(content: FromFile, prefix: str) -> bool:
    """Whether a key with the prefix loses it on the way, and one without does not stay what it was."""
    keys: tuple[str, ...] | None = (prefix + _KEY,)
    others: tuple[str, ...] | None = (_KEY,)
    for rename in content.renames:
        keys = rename(keys[0]) if keys is not None and len(keys) == 1 else None
        others = rename(others[0]) if others is not None and len(others) == 1 else None
    return keys == (_KEY,) and others is not None and others != (_KEY,)
