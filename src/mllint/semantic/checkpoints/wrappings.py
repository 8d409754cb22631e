"""In what the module that an expression stands for may be wrapped, one answer for each way to it, through names,
arguments and functions.
"""

import itertools
import re
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.never_reached import is_never_reached
from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.saves import calls_of_function
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.events.places import as_itself, itself_of
from mllint.semantic.expressions.arguments import KIND_QUESTIONS, MAX_CALLS, is_asked_about, passed_for
from mllint.semantic.names.definitions import class_around, function_around
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import ClassObject, Function, Module, Value
from mllint.syntax.shape import dotted_path, part_at

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

WRAPPERS = ("DataParallel", "DistributedDataParallel", "compile")
"""The last words of what puts a prefix in front of the keys."""
_WRAPPING = re.compile(rb"DataParallel\b")
MAX_STEPS = 6
"""Through how many names and calls a module is followed to where it was wrapped."""
# What is taken out of a wrapper.
_INSIDE = Module("torch")


def prefix_of(wrappers: tuple[str, ...]) -> str:
    """What wrappers together put in front of every key."""
    found = [lookup.wrapper(name) for name in wrappers]
    return "".join(wrapper.prefix for wrapper in found if wrapper is not None)


def wrappings(model: "Model", node: cst.BaseExpression) -> list[tuple[str, ...] | None]:
    """In what the module that an expression stands for may be wrapped, one entry for each way to it.

    Wrappers that add no prefix are left out; ``None``: not known.
    """
    return [wrappers_of(value) for value in ways(model, node)]


def ways(model: "Model", node: cst.BaseExpression, seen: tuple[int, ...] = ()) -> list[Value | None]:
    """What an expression stands for, one entry for each way to it; ``seen`` are the bindings that led here."""
    if isinstance(node, cst.IfExp):
        if takes_out(node.body) or takes_out(node.orelse):
            return _ways_inside([(model, node.body), (model, node.orelse)], seen)
        return [item for arm in (node.body, node.orelse) for item in _reached(model, arm, ways(model, arm, seen))]
    found: list[Value | None] = []
    bindings = model.reaching(node)
    if not bindings and takes_out(node) and isinstance(node, cst.Attribute):
        # `.module` of what is in one wrapper, at least on some way
        outer = [wrappers for wrappers in map(wrappers_of, ways(model, node.value, seen)) if wrappers]
        if outer and all(len(wrappers) == 1 for wrappers in outer):
            return [_INSIDE]
    bindings = bindings_of(model, node)
    bound = [(binding.scope.model, binding.value) for binding in bindings if binding.value is not None]
    if len(bindings) > 1 and any(takes_out(value) for _, value in bound):
        return _ways_inside(bound if len(bound) == len(bindings) else [], seen)  # the same as statements
    for binding in bindings:
        if id(binding) not in seen:  # `model = wrap(model) if parallel else model` in a loop: nothing new
            found += _reached(binding.scope.model, binding.node, _ways_to(binding, (*seen, id(binding))))
    return found or [model.value(node)]


def _reached(model: "Model", node: cst.CSTNode, found: list[Value | None]) -> list[Value | None]:
    """What may come of a place; nothing of one that wraps a module where no known call of the function gets."""
    return [] if any(map(wrappers_of, found)) and is_never_reached(model, node) else found


def bindings_of(model: "Model", node: cst.BaseExpression) -> tuple[Binding, ...]:
    """What binds a name or an attribute, also in other methods of the class, or by the script before it calls this."""
    bindings, path = model.reaching(node), dotted_path(node)
    if isinstance(node, cst.Attribute) and path is not None:
        scope, owner = model.scope_of(node), class_around(model, node)
        is_bound = bool(bindings) and not scope.reaching(path, node).may_be_unbound
        if not is_bound and owner is not None and isinstance(node.value, cst.Name):
            return (*bindings, *(item for item in owner.lasting(node.attr.value) if item not in bindings))
    return bindings or (_left_by_script(model, node) if isinstance(node, cst.Name) else ())


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
    taken = [(model, node) for model, node in arms if isinstance(node, cst.Attribute) and takes_out(node)]
    wholes = {
        dotted_path(node.value if isinstance(node, cst.Attribute) and takes_out(node) else node) for _, node in arms
    }
    if len(taken) != 1 or len(arms) != 2 or len(wholes) != 1:
        return [_INSIDE]
    model, node = taken[0]
    found = [_unwrapped(value, node.attr.value) for value in ways(model, node.value, seen)]
    return found if any(map(wrappers_of, found)) else [_INSIDE]


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
        return ways(home, bound, seen)
    value = home.binding_value(binding)
    is_handed = isinstance(binding.node, cst.Param) or isinstance(bound, (cst.Name, cst.Attribute))
    if is_handed and isinstance(value, Module) and value.is_only_some:
        value = None  # `net: nn.Module` may be a wrapper as well
    if wrappers_of(value) is None and len(seen) <= MAX_STEPS:
        if isinstance(bound, (cst.Name, cst.Attribute)) and not binding.path:
            return ways(home, bound, seen)
        if isinstance(bound, cst.Call):
            returned = parts_returned(home.value(bound.func), binding.path)
            return [item for model, node in returned for item in ways(model, node, seen)] or [value]
        if isinstance(binding.node, cst.Param):
            return [item for caller, node in passed_to(binding) for item in ways(caller, node, seen)] or [value]
    return [value]


def returned_by(callee: Value | None) -> list[tuple["Model", cst.BaseExpression]]:
    """What a function of the project returns; nothing where it is not known what that is."""
    if not isinstance(callee, Function) or not callee.definition.is_transparent:
        return []
    info = callee.definition
    return [(info.model, statement.value) for statement in info.scope.returns if statement.value is not None]


def parts_returned(callee: Value | None, path: tuple[int | None, ...]) -> list[tuple["Model", cst.BaseExpression]]:
    """What a name is bound to that takes a part of what a function of the project returns: ``net, start = build()``."""
    returned = returned_by(callee)
    parts = [(model, part_at(node, path)) for model, node in returned] if path else returned
    return [(model, part) for model, part in parts if part is not None]


def passed_to(parameter: Binding) -> list[tuple["Model", cst.BaseExpression]]:
    """What the calls of a function pass for a parameter, unless it asks what it was given."""
    home = parameter.scope.model
    if not isinstance(parameter.node, cst.Param) or not isinstance(parameter.scope.node, cst.FunctionDef):
        return []
    info = home.function_info(parameter.scope.node)
    if not info.is_transparent or _decides(home, info, parameter.node):
        return []
    passed = [(home, node) for node in passed_for(home, info, parameter.node)]
    return _once_taken_out(passed or passed_elsewhere(home, info, parameter))


def _decides(home: "Model", info: "FunctionInfo", parameter: cst.Param) -> bool:
    """Whether a function does something else by what it was given; not where only an expression is chosen by that.

    ``self.inside = net.module if isinstance(net, DataParallel) else net`` leaves ``net`` what it is.
    """
    if not is_asked_about(home, info, parameter):
        return False
    asking = [call for word in KIND_QUESTIONS for call in home.calls_by_word.get(word, ())]
    for call in asking:
        asked = dotted_path(call.args[0].value) if call.args else None
        if asked == parameter.name.value and home.enclosing_function(call) is info.node:
            choice = home.tree.nearest(call, cst.IfExp)
            if choice is None or not home.tree.is_inside(call, choice.test):
                return True
    return False


def _once_taken_out(passed: list[tuple["Model", cst.BaseExpression]]) -> list[tuple["Model", cst.BaseExpression]]:
    """Without a thing that is passed as it is where another call passes what is in it: who does both asks first."""
    taken_out = {dotted_path(node.value) for _, node in passed if isinstance(node, cst.Attribute) and takes_out(node)}
    return [(caller, node) for caller, node in passed if dotted_path(node) not in taken_out - {None}]


def passed_elsewhere(
    home: "Model", info: "FunctionInfo", parameter: Binding
) -> list[tuple["Model", cst.BaseExpression]]:
    """What the files that import this one pass for a parameter of a function that it never calls itself.

    Where they do not wrap it themselves, something near has to: what they import may.
    """
    found: list[tuple[Model, cst.BaseExpression]] = []
    word = info.owner.name if info.owner is not None and info.name == "__init__" else info.name
    is_near = home.project is not None and home.project.is_written_near(home.path, _WRAPPING)
    for model in home.importers(*WRAPPERS[:2], *([word] if is_near else [])):
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


def takes_out(node: cst.BaseExpression) -> bool:
    """Whether an expression is the module inside a wrapper: ``model.module``."""
    attributes = {prefix.removesuffix(".") for prefix in WRAPPER_PREFIXES}
    return isinstance(node, cst.Attribute) and node.attr.value in attributes


def wrappers_of(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, Module):
        return None
    # Behind a "?" nothing is known; what is in front of it surely is there.
    known = tuple(itertools.takewhile(lambda name: name != "?", value.wrappers))
    prefixed = tuple(name for name in known if prefix_of((name,)))
    return prefixed if prefixed or known == value.wrappers else None


MAX_PLACES = 60
"""After how many expressions a journey is no longer followed."""


class Journey:
    """How the module that an expression stands for has come there, on all ways and backwards.

    ``bindings`` are the names and parameters that it had, ``wrapped`` what was put into a wrapper that adds a prefix
    (with the file), and ``models`` the files through which it came.
    """

    def __init__(self, model: "Model", node: cst.BaseExpression) -> None:
        self.bindings: set[Binding] = set()
        self.wrapped: list[tuple[Model, cst.BaseExpression]] = []
        self._pending = [(model, node)]
        for here, place in self._pending:
            if len(self._pending) <= MAX_PLACES:
                self._go_back(here, place)
        self.models = tuple(dict.fromkeys(here for here, _ in self._pending))

    def _go_back(self, model: "Model", node: cst.BaseExpression) -> None:
        """Note what an expression stands for, one step back."""
        if isinstance(node, cst.IfExp):
            self._pending += [(model, node.body), (model, node.orelse)]
        elif isinstance(node, cst.Call):
            self._go_into(model, node)
        elif not takes_out(node):
            for binding in bindings_of(model, node):
                if binding not in self.bindings:
                    self.bindings.add(binding)
                    self._pending += _before(binding)

    def _go_into(self, model: "Model", call: cst.Call) -> None:
        itself = itself_of(model, call)
        if itself is not None:
            self._pending.append((model, itself))
            return
        wrapper = lookup.wrapper(model.qualified_name(call.func) or "")
        if wrapper is not None and wrapper.prefix and call.args and not call.args[0].star:
            self.wrapped.append((model, call.args[0].value))
            self._pending.append((model, call.args[0].value))
        else:
            self._pending += returned_by(model.value(call.func))


def _before(binding: Binding) -> list[tuple["Model", cst.BaseExpression]]:
    """What a binding binds; where that is a part of what a function returns, that part."""
    home, value = binding.scope.model, binding.value
    if binding.kind is BindingKind.PARAMETER:
        return passed_to(binding)
    if binding.kind is not BindingKind.ASSIGN or value is None:
        return []
    if not binding.path:
        return [(home, value)]
    return parts_returned(home.value(value.func), binding.path) if isinstance(value, cst.Call) else []


@worked_out_once
def journey_of(model: "Model", node: cst.BaseExpression) -> Journey:
    """The journey of what an expression stands for: every load around asks, and it is followed once."""
    return Journey(model, node)
