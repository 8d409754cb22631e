"""State dicts of wrapped modules that are saved: their keys begin with the prefix of the wrapper."""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.never_reached import is_never_reached
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.saves import Saved, calls_of_function
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.events.places import as_itself
from mllint.semantic.expressions.arguments import MAX_CALLS, is_asked_about, passed_for
from mllint.semantic.names.conditions import parts_of_test
from mllint.semantic.names.definitions import class_around, function_around
from mllint.semantic.names.mentions import attributes
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import ClassObject, Function, Module, Value
from mllint.syntax.shape import dotted_path, fingerprint

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

# Code that takes the prefix off, or looks for it: `k.replace("module.", "")`, `k[7:]`, `consume_prefix...`.
_PREFIX_HANDLED = re.compile(
    rb"""
    (?:replace|removeprefix|startswith|lstrip|strip|r?split|sub|partition|find|match|len)
        \(\s*[rf]?["']\^?(?:module|_orig_mod)\\?\.?["']
    | \b(?:k|key|name|param|layer)\w*\[\s*(?:7|10)\s*:\s*\]
    | consume_prefix_in_state_dict_if_present
    """,
    re.VERBOSE,
)


WRAPPERS = ("DataParallel", "DistributedDataParallel", "compile")
"""The last words of what puts a prefix in front of the keys."""
MAX_STEPS = 6
"""Through how many names and calls a module is followed to where it was wrapped."""
# What is taken out of a wrapper.
_INSIDE = Module("torch")


class WrappedSave(msgspec.Struct, frozen=True):
    """A call ``wrapped.state_dict()`` whose result is saved.

    ``wrappers`` are those that put a prefix in front of the keys, outermost first; ``is_certain``: the module surely is
    in them, whichever way the program takes. ``trail`` are the keys under which a checkpoint holds the state dict.
    """

    call: cst.Call
    call_model: "Model"
    receiver: cst.BaseExpression
    wrappers: tuple[str, ...]
    is_certain: bool
    saved: Saved
    trail: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """What stands in front of every key."""
        return prefix_of(self.wrappers)


def wrapped_save(model: "Model", call: cst.Call) -> WrappedSave | None:
    """The save of what a ``state_dict()`` call of this file gives, where that is the state of a wrapped module."""
    if not isinstance(call.func, cst.Attribute):
        return None
    found = wrappings(model, call.func.value)
    wrapped = [wrappers for wrappers in found if wrappers]
    # Asked first: where the state goes costs far more to tell.
    if not wrapped or any(wrappers != wrapped[0] for wrappers in wrapped):
        return None
    if _is_taken_out_beside(model, call.func.value):
        return None
    for saved in model.surroundings.saved:
        for trail, state in _states(saved.content):
            if state.place.is_of(model, call):
                certain = len(wrapped) == len(found)
                changed = not _is_unchanged(state)
                return None if changed else WrappedSave(call, model, call.func.value, wrapped[0], certain, saved, trail)
    return None


def _states(content: Content | None, trail: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], State]]:
    """The state dicts in what is saved, with the keys that lead to them."""
    if isinstance(content, State):
        yield trail, content
    elif isinstance(content, Record):
        for key, item in content.items.items():
            yield from _states(item, (*trail, key))


def _is_unchanged(state: State) -> bool:
    """Whether some key still begins with a wrapper's prefix, as it seems: nothing has taken it off on the way."""
    return not state.is_unclear and any(state.keys.may_begin_with(prefix) for prefix in WRAPPER_PREFIXES)


def prefix_of(wrappers: tuple[str, ...]) -> str:
    """What wrappers together put in front of every key."""
    found = [lookup.wrapper(name) for name in wrappers]
    return "".join(wrapper.prefix for wrapper in found if wrapper is not None)


def wrappings(model: "Model", node: cst.BaseExpression) -> list[tuple[str, ...] | None]:
    """In what the module that an expression stands for may be wrapped, one entry for each way to it.

    Wrappers that add no prefix are left out; ``None``: not known.
    """
    return [_wrappers(value) for value in _ways(model, node)]


def _ways(model: "Model", node: cst.BaseExpression, seen: tuple[int, ...] = ()) -> list[Value | None]:
    """What an expression stands for, one entry for each way to it; ``seen`` are the bindings that led here."""
    if isinstance(node, cst.IfExp):
        if _takes_out(node.body) or _takes_out(node.orelse):
            return _ways_inside([(model, node.body), (model, node.orelse)], seen)
        return [item for arm in (node.body, node.orelse) for item in _reached(model, arm, _ways(model, arm, seen))]
    found: list[Value | None] = []
    bindings = model.reaching(node)
    if not bindings and _takes_out(node) and isinstance(node, cst.Attribute):
        # `.module` of what is in one wrapper, at least on some way
        outer = [wrappers for wrappers in map(_wrappers, _ways(model, node.value, seen)) if wrappers]
        if outer and all(len(wrappers) == 1 for wrappers in outer):
            return [_INSIDE]
    if not bindings and isinstance(node, cst.Attribute) and dotted_path(node) is not None:
        owner = class_around(model, node)
        if owner is not None and isinstance(node.value, cst.Name):
            bindings = tuple(owner.lasting(node.attr.value))
    if not bindings and isinstance(node, cst.Name):
        bindings = _left_by_script(model, node)
    bound = [(binding.scope.model, binding.value) for binding in bindings if binding.value is not None]
    if len(bindings) > 1 and any(_takes_out(value) for _, value in bound):
        return _ways_inside(bound if len(bound) == len(bindings) else [], seen)  # the same as statements
    for binding in bindings:
        if id(binding) not in seen:  # `model = wrap(model) if parallel else model` in a loop: nothing new
            found += _reached(binding.scope.model, binding.node, _ways_to(binding, (*seen, id(binding))))
    return found or [model.value(node)]


def _reached(model: "Model", node: cst.CSTNode, ways: list[Value | None]) -> list[Value | None]:
    """What may come of a place; nothing of one that wraps a module where no known call of the function gets."""
    return [] if any(map(_wrappers, ways)) and is_never_reached(model, node) else ways


def _left_by_script(model: "Model", node: cst.Name) -> tuple[Binding, ...]:
    """What a name of the script stands for in a function that runs when the script has bound it for the last time.

    Nothing where another function binds it, or the script calls this one before.
    """
    function, script = function_around(model, node), model.scope(model.tree.module)
    if function is None or node.value in function.scope.bindings or node.value not in script.bindings:
        return ()
    last = script.reaching_end(node.value).bindings
    shared = [item.name.value for each in model.tree.by_type.get(cst.Global, ()) for item in each.names]
    if node.value in shared:
        return ()
    places = [script.place_of(call) for call in model.calls_by_word.get(function.name, ())]
    first = min((item.order for item in last), default=0)
    return () if any(place is not None and place[1] < first for place in places) else last


def _ways_inside(arms: list[tuple["Model", cst.BaseExpression]], seen: tuple[int, ...]) -> list[Value | None]:
    """The same for what is taken out of a wrapper where it is in one: ``model.module if ddp else model``.

    Another wrapper may be around it all the same: ``model`` was compiled before.
    """
    taken = [(model, node) for model, node in arms if isinstance(node, cst.Attribute) and _takes_out(node)]
    wholes = {
        dotted_path(node.value if isinstance(node, cst.Attribute) and _takes_out(node) else node) for _, node in arms
    }
    if len(taken) != 1 or len(arms) != 2 or len(wholes) != 1:
        return [_INSIDE]
    model, node = taken[0]
    found = [_unwrapped(value, node.attr.value) for value in _ways(model, node.value, seen)]
    return found if any(map(_wrappers, found)) else [_INSIDE]


def _unwrapped(value: Value | None, attribute: str) -> Value | None:
    """A module without the outermost wrapper, where that keeps it in an attribute of this name."""
    if not isinstance(value, Module) or not value.wrappers:
        return value
    outermost = lookup.wrapper(value.wrappers[0])
    if outermost is None or outermost.attribute != attribute:
        return value
    return msgspec.structs.replace(value, wrappers=value.wrappers[1:])


def _ways_to(binding: Binding, seen: tuple[int, ...]) -> list[Value | None]:
    """The same for what a binding binds; a parameter is what the calls in the file pass for it."""
    home = binding.scope.model
    bound = as_itself(binding.value) if binding.kind is BindingKind.ASSIGN and binding.value is not None else None
    if isinstance(bound, cst.IfExp) and not binding.path:
        return _ways(home, bound, seen)
    value = home.binding_value(binding)
    if _wrappers(value) is None and len(seen) <= MAX_STEPS:
        if isinstance(bound, (cst.Name, cst.Attribute)) and not binding.path:
            return _ways(home, bound, seen)
        if isinstance(bound, cst.Call) and not binding.path:
            return _ways_out(home.value(bound.func), seen) or [value]
        if isinstance(binding.node, cst.Param) and isinstance(binding.scope.node, cst.FunctionDef):
            info = home.function_info(binding.scope.node)
            if info.is_transparent and not is_asked_about(home, info, binding.node):
                passed = [(home, node) for node in passed_for(home, info, binding.node)]
                passed = _once_taken_out(passed or _passed_elsewhere(home, info, binding))
                return [item for caller, node in passed for item in _ways(caller, node, seen)] or [value]
    return [value]


def _ways_out(callee: Value | None, seen: tuple[int, ...]) -> list[Value | None]:
    """The same for what a function of the project returns; nothing where it is not known what that is."""
    if not isinstance(callee, Function) or not callee.definition.is_transparent:
        return []
    info = callee.definition
    returned = [statement.value for statement in info.scope.returns]
    return [item for node in returned if node is not None for item in _ways(info.model, node, seen)]


def _once_taken_out(passed: list[tuple["Model", cst.BaseExpression]]) -> list[tuple["Model", cst.BaseExpression]]:
    """Without a thing that is passed as it is where another call passes what is in it: who does both asks first."""
    taken_out = {dotted_path(node.value) for _, node in passed if isinstance(node, cst.Attribute) and _takes_out(node)}
    return [(caller, node) for caller, node in passed if dotted_path(node) not in taken_out - {None}]


def _passed_elsewhere(
    home: "Model", info: "FunctionInfo", parameter: Binding
) -> list[tuple["Model", cst.BaseExpression]]:
    """What the files that import this one, and wrap, pass for a parameter of a function that it never calls itself."""
    found: list[tuple[Model, cst.BaseExpression]] = []
    word = info.owner.name if info.owner is not None and info.name == "__init__" else info.name
    for model in home.importers(*WRAPPERS[:2]):
        for call in calls_of_function(model, word):
            if not _enters(model.value(call.func), info):
                continue
            given = Route(Follower(model), call, info).argument(parameter.key)
            if given is None:
                return []
            found.append((given[0].model, given[1]))
    return found[:MAX_CALLS]


def _enters(callee: Value | None, info: "FunctionInfo") -> bool:
    """Whether a call of something enters a function, or the ``__init__`` of the class that is called."""
    if isinstance(callee, ClassObject):
        made = callee.definition.method("__init__")
        return made is not None and made.is_same_as(info)
    return isinstance(callee, Function) and callee.definition.is_same_as(info)


def _takes_out(node: cst.BaseExpression) -> bool:
    """Whether an expression is the module inside a wrapper: ``model.module``."""
    attributes = {prefix.removesuffix(".") for prefix in WRAPPER_PREFIXES}
    return isinstance(node, cst.Attribute) and node.attr.value in attributes


def _is_taken_out_beside(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether another branch takes the module out of the thing: there it is wrapped, here not.

    So it is in the same ``if``, and in an ``if`` of the same function with the opposite test.
    """
    branches = [item for item in model.tree.ancestors(node) if isinstance(item, (cst.If, cst.IfExp))]
    tests = {_opposite(item.test) for item in branches} - {""}
    path = dotted_path(node)
    for prefix in WRAPPER_PREFIXES if branches else ():
        for taken in attributes(model, prefix.removesuffix(".")):
            if dotted_path(taken.value) == path:
                around = [item for item in model.tree.ancestors(taken) if isinstance(item, (cst.If, cst.IfExp))]
                asked = {fingerprint(part) for item in around for part in parts_of_test(item.test)}
                if asked & tests or any(branch is item for branch in branches for item in around):
                    return True
    return False


def _opposite(test: cst.BaseExpression) -> str:
    """The text of the test that holds where another does not: ``ddp`` for ``not ddp``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return fingerprint(test.expression)
    return ""


def _wrappers(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, Module):
        return None
    # Behind a "?" nothing is known; what is in front of it surely is there.
    known = tuple(itertools.takewhile(lambda name: name != "?", value.wrappers))
    prefixed = tuple(name for name in known if prefix_of((name,)))
    return prefixed if prefixed or known == value.wrappers else None


def is_taken_off(model: "Model") -> bool:
    """Whether this file, or one of the project near it, takes the prefix of a wrapper off by itself."""
    if _PREFIX_HANDLED.search(model.source.text.encode("utf-8", "replace")):
        return True
    return model.project is not None and model.project.is_written_near(model.path, _PREFIX_HANDLED)


def loads_around(model: "Model") -> Iterator[Load]:
    """The loads in a file and in the files around it."""
    for other in model.surroundings.models:
        for word in sorted(LOADING):
            for call in other.calls_by_word.get(word, ()):
                load = load_of(other, call)
                if load is not None:
                    yield load


def is_loaded_wrapped(load: Load) -> bool | None:
    """Whether a load goes into a wrapped module: surely, surely not, or (``None``) maybe."""
    found = wrappings(load.model, load.receiver)
    if all(wrappers for wrappers in found):
        return True
    if all(wrappers == () for wrappers in found) or _is_wrapped_later(load):
        return False
    return None


def is_into_the_inside(load: Load) -> bool:
    """Whether a load takes the module out of its wrapper itself: ``model.module.load_state_dict(state)``."""
    return _takes_out(load.receiver)


def _is_wrapped_later(load: Load) -> bool:
    """Whether the very thing that is loaded is put into a wrapper afterwards: ``model = DataParallel(model)``."""
    is_later = any(_is_wrapped_below(model, node) for model, node in _given_to(load))
    return is_later or _is_called_before_wrapping(load)


def _given_to(load: Load) -> Iterator[tuple["Model", cst.BaseExpression]]:
    """What is loaded into, and what is passed for it where it is a parameter, also by the files that import this."""
    yield load.model, load.receiver
    bindings = load.model.reaching(load.receiver)
    function = load.model.enclosing_function(load.receiver)
    if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param) and function is bindings[0].scope.node:
        info = load.model.function_info(function)
        yield from ((load.model, node) for node in passed_for(load.model, info, bindings[0].node))
        yield from _passed_elsewhere(load.model, info, bindings[0])


def _is_wrapped_below(model: "Model", node: cst.BaseExpression) -> bool:
    given = set(model.reaching(node))
    for word in WRAPPERS if given else ():
        for call in model.calls_by_word.get(word, ()):
            wrapper = lookup.wrapper(model.qualified_name(call.func) or "")
            inner = set(model.reaching(call.args[0].value)) if call.args else set()
            if wrapper is not None and wrapper.prefix and inner and given == inner:
                return True
    return False


def _is_called_before_wrapping(load: Load) -> bool:
    """Whether a load into an attribute stands in a method that another one calls, and then wraps the attribute.

    Not where what wraps it may call the method afterwards too, itself or through other methods of the class.
    """
    model, path = load.model, dotted_path(load.receiver) or ""
    function = function_around(model, load.call)
    owner = None if function is None else function.owner
    if function is None or owner is None or path.count(".") != 1:
        return False
    wrapping = {name: order for name in owner.methods if (order := _wraps_at(owner, name, path)) is not None}
    is_before, pending, seen = False, [function.name] if wrapping else [], {function.name}
    for name in pending:
        if name in wrapping:
            return False
        for call in model.calls_by_word.get(name, ()):
            caller, order = _place_in(owner, call)
            if caller in wrapping and order < wrapping[caller]:
                is_before = True
            elif "__init__" in wrapping or caller in wrapping or (caller is None and name == function.name):
                return False
            elif caller is not None and caller not in seen:
                seen.add(caller)
                pending.append(caller)
    return is_before


def _wraps_at(owner: "ClassInfo", name: str, path: str) -> int | None:
    """Where a method of a class first wraps an attribute, in the order of its statements."""
    method = owner.methods[name]
    bound = method.scope.bindings.get(path, ()) if method.model is owner.model else ()
    return min((item.order for item in bound if _wrappers(method.model.binding_value(item))), default=None)


def _place_in(owner: "ClassInfo", call: cst.Call) -> tuple[str | None, int]:
    """In which method of a class a call stands, and where there; ``None`` where it stands in none."""
    for name, method in owner.methods.items():
        place = method.scope.place_of(call) if method.model is owner.model else None
        if place is not None:
            return name, place[1]
    return None, 0


def may_read(load: Load, save: WrappedSave) -> bool:
    """Whether a load by the look of it reads what was saved: the same file, or an entry of the same name.

    A load in another file of a path that is not known, or to which nothing writes, reads what the project saves of that
    class, where all of it is saved this way. So does one of the same program, into the thing before it is wrapped: that
    goes on from there.
    """
    given = [Tracer(load.model).content(item) for item in (load.given, *_given_by_callers(load))]
    if any(_is_of(content, save) for content in given):
        return True
    may_be = [content for content in given if isinstance(content, FromFile) and _may_be_of(content, save)]
    is_told = any(map(_is_of_unknown_path, may_be)) and _begins_with(load, save)
    return is_told or (bool(may_be) and _is_of_the_class(load, save))


def is_read_by_class(load: Load, save: WrappedSave) -> bool:
    """Whether a load elsewhere reads a file of which not only the entry tells that it may be what was saved."""
    given = [Tracer(load.model).content(item) for item in (load.given, *_given_by_callers(load))]
    may_be = any(isinstance(content, FromFile) and _may_be_of(content, save) for content in given)
    paths = [read_path(content) for content in given if isinstance(content, FromFile) and not content.renames]
    written = save.saved.path
    is_same = written is not None and any(path is not None and path.is_same_as(written) for path in paths)
    return is_same or (may_be and _is_of_the_class(load, save))


def _given_by_callers(load: Load) -> list[cst.BaseExpression]:
    """What the calls in the file pass, where the parameter of a function is loaded as it comes."""
    function = function_around(load.model, load.given)
    bindings = load.model.reaching(load.given)
    if function is None or len(bindings) != 1 or not isinstance(bindings[0].node, cst.Param):
        return []
    return passed_for(load.model, function, bindings[0].node)


def _may_be_of(content: FromFile, save: WrappedSave) -> bool:
    """Whether a file of which nothing is known but the entry that is read may be the one that was saved.

    So may one under another name, if it is not somebody else's, and nothing else that is saved goes there; not where
    both names are known in full.
    """
    if content.renames or content.trail != save.trail:
        return False
    path = read_path(content)
    if path is None or path.is_blank:
        return True
    written = [saved.path for saved in save.call_model.surroundings.saved]
    if path.is_literal and save.saved.path is not None and save.saved.path.is_literal:
        return False
    return not path.is_of_others and not any(other is not None and other.is_same_as(path) for other in written)


def _is_of_unknown_path(content: FromFile) -> bool:
    path = read_path(content)
    return path is None or path.is_blank


def _is_of_the_class(load: Load, save: WrappedSave) -> bool:
    """Whether a load elsewhere is into the class, of which the files around surely save no bare module."""
    here = save.call_model
    classes = _classes(load.model, load.receiver)
    if load.model is here or len(classes) != 1 or not classes <= _classes(here, save.receiver):
        return False
    for saved in here.surroundings.saved:
        for _, state in _states(saved.content):
            call = state.place.node
            if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
                return False
            of = state.place.model, call.func.value
            if all(wrappers == () for wrappers in wrappings(*of)) and classes & (_classes(*of) or classes):
                return False
    return True


def _begins_with(load: Load, save: WrappedSave) -> bool:
    """Whether a load is into the very thing that is saved, before it is wrapped in the same function."""
    if load.model is not save.call_model or dotted_path(load.receiver) != dotted_path(save.receiver):
        return False
    functions = [load.model.enclosing_function(node) for node in (load.receiver, save.receiver)]
    owners = [class_around(load.model, node) for node in (load.receiver, save.receiver)]
    is_same = functions[0] is functions[1] or (owners[0] is not None and owners[0] is owners[1])
    return is_same and _is_wrapped_later(load)


def _classes(model: "Model", node: cst.BaseExpression) -> set["ClassInfo"]:
    """The classes of the project of which the module that an expression stands for may be."""
    found = [item for value in _ways(model, node) if isinstance(value, Module) for item in (value, *value.others)]
    return {item.definition for item in found if item.definition is not None}


def _is_of(content: Content | None, save: WrappedSave) -> bool:
    if not isinstance(content, FromFile) or content.renames:
        return False
    path: Path | None = read_path(content)
    if path is not None and save.saved.path is not None and path.is_same_as(save.saved.path):
        return True
    return bool(save.trail) and content.trail == save.trail
