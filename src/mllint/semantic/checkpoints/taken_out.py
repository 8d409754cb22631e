"""Loads into what may be a wrapper of an entry that the same code saves of the module inside.

``{"model": net.module.state_dict()}`` is written, and ``net.load_state_dict(checkpoint["model"])`` reads it back: where
``net`` is wrapped its keys begin with ``module.``, and those of the file do not.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.handling import uses_in_function
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.one_sided import OneSided, names_in
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.expressions.arguments import passed_for
from mllint.semantic.names.conditions import conditions, is_in_another_branch
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import mentions, without_narrowing
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_INSIDE = "module"
"""Where the wrappers of several devices keep the module, and what the keys of their own state begin with."""
# The keys of the state of a model in what some function packs.
_OF_MODELS = frozenset({"model", "net", "network", "state_dict", "model_state_dict", "model_state"})
_PARALLEL = ("DataParallel", "DistributedDataParallel")
_MENTIONED = re.compile(rb"\b(?:Distributed)?DataParallel\b")


def taken_out(load: Load) -> OneSided | None:
    """The wrapper that the wanted keys begin with and those of the file do not, wherever the thing is wrapped."""
    model, path = load.model, dotted_path(load.receiver)
    if path is None or _INSIDE not in model.names_by_word or _is_bare(load.value):
        return None
    content = Tracer(model).content(load.given)
    if not isinstance(content, FromFile) or content.renames or len(content.trail) != 1:
        return None
    key = content.trail[0]
    saved = [_receiver(call) for call in model.calls_by_word.get("state_dict", ()) if _is_saved_as(model, call, key)]
    saved += list(_given_to_saving(model, path)) if key in _OF_MODELS else []
    takes = [(thing, given) for thing in saved for outer in _outer(model, thing) for given in _given_for(model, outer)]
    takes = [(thing, outer) for thing, outer in takes if dotted_path(outer) == path and _is_same(load, outer)]
    if not takes or _is_handled(load, [outer for _, outer in takes]):
        return None
    for thing in saved:
        if any(thing is outer for _, outer in takes):
            continue  # who is given it takes the module out
        is_whole = dotted_path(thing) == path and _is_same(load, thing)
        if is_whole and not any(is_in_another_branch(model, thing, take) for take, _ in takes):
            return None  # the wrapper's own state is saved as well, under the same key
    name = _wrapper(load)
    return None if name is None else OneSided(f"{_INSIDE}.", name, False)


# -- what is saved -----------------------------------------------------------------------------------------------------


def _receiver(call: cst.Call) -> cst.BaseExpression:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def _outer(model: "Model", node: cst.BaseExpression, *, follow: bool = True) -> Iterator[cst.BaseExpression]:
    """What a module is taken out of: ``net`` for ``net.module``, also on one of the ways to a name or expression."""
    match node:
        case cst.Attribute(attr=cst.Name(value="module")):
            yield node.value
        case cst.IfExp():
            yield from _outer(model, node.body, follow=False)
            yield from _outer(model, node.orelse, follow=False)
        case cst.Call(func=cst.Name(value="getattr"), args=[first, second, *_]):
            if string_literal(second.value) == _INSIDE:
                yield first.value
        case cst.Name() if follow:
            for binding in model.reaching(node):
                if (made := assigned(binding)) is not None:
                    yield from _outer(model, made, follow=False)


def _given_for(model: "Model", outer: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a module is taken out of, or what the calls of the file give where that is a parameter of who saves.

    Nothing where they give several things: which of them went into a file that is read, is not known.
    """
    bindings = model.reaching(outer) if isinstance(outer, cst.Name) else ()
    parameter = bindings[0].node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    function = function_around(model, outer)
    if function is None or not isinstance(parameter, cst.Param) or bindings[0].scope is not function.scope:
        return [outer]
    given = passed_for(model, function, parameter)
    return [outer, *given] if len({dotted_path(item) for item in given}) == 1 else [outer]


def _given_to_saving(model: "Model", path: str) -> Iterator[cst.BaseExpression]:
    """Where a thing, or the module inside, is given to what saves: ``save_checkpoint(net.module, epoch)``."""
    for mention in mentions(model, path):
        thing: cst.BaseExpression = mention
        above = model.tree.parent(thing)
        if isinstance(above, cst.Attribute) and above.value is thing and above.attr.value == _INSIDE:
            thing, above = above, model.tree.parent(above)
        thing = model.tree.beyond_choices(thing)
        above = model.tree.parent(thing)
        if isinstance(above, cst.Arg) and _goes_on_to_save(model, above):
            yield thing


def _goes_on_to_save(model: "Model", arg: cst.Arg) -> bool:
    """Whether a call is given something that saves, or gives what it makes of it to one that does."""
    for ancestor in (arg, *model.tree.ancestors(arg)):
        if isinstance(ancestor, cst.Arg) and _saves(model, ancestor):
            return True
        if not isinstance(ancestor, (cst.Arg, cst.Call)):
            return False
    return False


def _is_saved_as(model: "Model", call: cst.Call, key: str) -> bool:
    """Whether the state that a call gives is an entry with this key of a dict that goes to a function that saves."""
    parent = model.tree.parent(model.tree.beyond_choices(call))
    holders = [parent]
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0].target, cst.Name):
        holders = [model.tree.parent(use) for use in uses_in_function(parent.targets[0].target, model)]
    elements = [item for item in holders if isinstance(item, cst.DictElement) and string_literal(item.key) == key]
    targets = parent.targets if isinstance(parent, cst.Assign) else ()
    written = [item.target for item in targets if isinstance(item.target, cst.Subscript)]
    return any(_goes_to_save(model, model.tree.parent(element)) for element in elements) or any(
        string_literal(subscript_index(item)) == key and _is_given_to_save(model, item.value) for item in written
    )


def _goes_to_save(model: "Model", display: cst.CSTNode | None) -> bool:
    parent = None if display is None else model.tree.parent(display)
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        return _is_given_to_save(model, parent.targets[0].target)
    return isinstance(parent, cst.Arg) and _saves(model, parent)


def _is_given_to_save(model: "Model", name: cst.BaseExpression) -> bool:
    above = [model.tree.parent(use) for use in uses_in_function(name, model)]
    return any(isinstance(arg, cst.Arg) and _saves(model, arg) for arg in above)


def _saves(model: "Model", arg: cst.Arg) -> bool:
    call = model.tree.parent(arg)
    return isinstance(call, cst.Call) and "save" in (last_word(call.func) or "").lower()


# -- whether it is the same thing --------------------------------------------------------------------------------------


def _is_bare(value: object) -> bool:
    return isinstance(value, Module) and not value.wrappers and not value.others


def _is_same(load: Load, outer: cst.BaseExpression) -> bool:
    """Whether what is loaded into is, at that time, the very thing out of which the module is taken."""
    model = load.model
    loader, taker = (function_around(model, node) for node in (load.receiver, outer))
    if isinstance(load.receiver, cst.Name):
        bindings = [set(without_narrowing(model.reaching(node))) for node in (load.receiver, outer)]
        is_here = loader is taker and bindings[0] == bindings[1]
        return is_here and bool(bindings[0]) and not _are_bare(bindings[0])
    if loader is None or taker is None or loader.owner is None or loader.owner is not taker.owner:
        return False
    root, _, name = (dotted_path(load.receiver) or "").partition(".")
    if not root == loader.self_name == taker.self_name or "." in name:
        return False
    return _is_wrapped_before(loader.owner, name, loader)


def _are_bare(bindings: set[Binding]) -> bool:
    return all(_is_bare(binding.scope.model.binding_value(binding)) for binding in bindings)


def _is_wrapped_before(owner: "ClassInfo", name: str, loader: "FunctionInfo") -> bool:
    """Whether an attribute holds for good what it is set to before a method runs that loads into it.

    The constructor sets it, by itself or through other methods, and calls the one that loads later or not at all.
    """
    setting = [item for item in owner.assignments(name) if item.kind is not BindingKind.NARROWED]
    setters = {item.scope.node for item in setting}
    begun = owner.members.reachable("__init__")
    if not setting or _are_bare(set(setting)) or loader.node in setters:
        return False
    if not setters <= {method.node for method in begun}:
        return False
    for method in begun:
        settings = [item.node for item in setting if item.scope.node is method.node]
        loads = []
        for read in method.model.tree.by_type.get(cst.Call, ()):
            word = read.func.attr.value if isinstance(read.func, cst.Attribute) else None
            if word is None or method.model.enclosing_function(read) is not method.node:
                continue
            called = owner.method(word) if dotted_path(_receiver(read)) == method.self_name else None
            reached = owner.members.reachable(word) if called is not None else frozenset()
            settings += [read] if any(item.node in setters for item in reached) else []
            loads += [read] if loader in reached else []
        if settings and loads and not _all_before(method, settings, loads):
            return False
    return True


def _all_before(method: "FunctionInfo", first: list[cst.CSTNode], later: list[cst.CSTNode]) -> bool:
    """Whether all of some places of a method stand in front of all others."""
    places = [[method.scope.place_of(node) for node in nodes] for nodes in (first, later)]
    if any(place is None for several in places for place in several):
        return False
    ends = [[place[1] for place in several if place is not None] for several in places]
    return max(ends[0]) < min(ends[1])


# -- what the code around does -----------------------------------------------------------------------------------------


def _is_handled(load: Load, takes: list[cst.BaseExpression]) -> bool:
    """Whether the load is reached only where the thing is not wrapped, as far as the tests around tell."""
    model = load.model
    asked = {name for test in conditions(model, load.call) for name in names_in(model, test)}
    decided = {name for take in takes for test in conditions(model, take) for name in names_in(model, test)}
    if dotted_path(load.receiver) in asked or asked & decided:
        return True
    path = dotted_path(load.receiver)
    for word in LOADING:
        for call in model.calls_by_word.get(word, ()):
            into = {dotted_path(outer) for outer in _outer(model, _receiver(call))}
            if path in into and is_in_another_branch(model, call, load.call):
                return True
    return False


def _wrapper(load: Load) -> str | None:
    """The name of the wrapper, by what the files around mention."""
    value = load.value
    known = value.wrappers[0] if isinstance(value, Module) and value.wrappers else "?"
    if known != "?":
        found = lookup.wrapper(known)
        return known.rpartition(".")[2] if found is not None and found.attribute == _INSIDE else None
    model = load.model
    for name in _PARALLEL:
        if name in model.names_by_word:
            return name
    is_near = model.project is not None and model.project.is_written_near(model.path, _MENTIONED)
    return _PARALLEL[0] if is_near else None
