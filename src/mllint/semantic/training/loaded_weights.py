"""Modules that get their weights from a file in a run."""

from collections.abc import Iterator

import libcst as cst

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import covers
from mllint.semantic.values import Function, Loaded
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree


def load_before(run: Run, forward: Event) -> Event | None:
    """The first event before a forward pass that loads weights from a file into its module, or what holds it."""
    module, earlier = forward.thing, run.events[: run.events.index(forward)]
    loads = (item for item in earlier if item.thing is not None and is_from_file(item))
    return next((item for item in loads if module and item.thing and covers(item.thing, module)), None)


def is_from_file(load: Event) -> bool:
    """Whether an event loads what was read from a file."""
    call = load.node
    given = call.args[0].value if load.kind is Kind.LOAD and isinstance(call, cst.Call) and call.args else None
    return given is not None and is_read_from_file(load.frame, given)


_MAX_PARTS = 40
"""How many expressions are looked at, at most, from what is loaded to where it comes from."""
_STATE = "state_dict"
_LOADING = "load"
"""How the functions of libraries that read a file are called, or begin: `pickle.load`, `load_state_dict_from_url`."""


def is_read_from_file(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether an expression in a run stands for what was read from a file, on one of the ways there."""
    if isinstance(frame.value(node), Loaded):
        return True
    return any(isinstance(part, cst.Call) and _reads(at, part) for at, part in _made_of(frame, node))


def sources_of_state(load: Event) -> Iterator[Thing]:
    """The modules whose weights an event loads: ``target.load_state_dict(network.state_dict())``."""
    call = load.node
    if load.kind is not Kind.LOAD or not isinstance(call, cst.Call) or not call.args:
        return
    for at, part in _made_of(load.frame, call.args[0].value):
        if isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value == _STATE:
            thing = at.thing(part.func.value)
            if thing is not None:
                yield thing


def _made_of(frame: Frame, node: cst.BaseExpression) -> Iterator[tuple[Frame, cst.BaseExpression]]:
    """An expression, and what it is made of, in the runs of those who give it."""
    pending: list[tuple[Frame, cst.BaseExpression]] = [(frame, node)]
    seen: set[tuple[int, int]] = set()
    while pending and len(seen) < _MAX_PARTS:
        at, part = pending.pop()
        if (id(at), id(part)) in seen:
            continue
        seen.add((id(at), id(part)))
        yield at, part
        pending += _sources(at, part)


def _reads(frame: Frame, call: cst.Call) -> bool:
    """Whether a call reads a file: one of the framework, of another library, or in a function of the project."""
    called = frame.value(call.func)
    if isinstance(called, Function):
        return _has_load(called.definition)
    if isinstance(frame.value(call), Loaded):
        return True
    name = frame.model.qualified_name(call.func)
    return name is not None and "." in name and name.rpartition(".")[2].startswith(_LOADING)


def _has_load(function: FunctionInfo) -> bool:
    """Whether a function gives back what it read."""
    model = function.model
    returned = [item.value for item in subtree(function.node.body) if isinstance(item, cst.Return) and item.value]
    frame = Frame(model, function)
    parts = [part for value in returned for part in (value, *_bound_to(frame, value))]
    calls = [item for part in parts for item in subtree(part) if isinstance(item, cst.Call)]
    return any(isinstance(model.value(call), Loaded) for call in calls)


def _sources(frame: Frame, node: cst.BaseExpression) -> Iterator[tuple[Frame, cst.BaseExpression]]:
    """What an expression is made of: the names it is bound to, what is taken from, what it runs over."""
    match node:
        case cst.Name():
            for binding in _reaching(frame, node):
                given = frame.given(binding)
                if given is not None:
                    yield given
            yield from ((frame, value) for value in (*_bound_to(frame, node), *_put_into(frame, node)))
        case cst.Subscript():
            yield frame, node.value
        case cst.IfExp():
            yield from ((frame, part) for part in (node.body, node.orelse))
        case cst.DictComp():
            yield frame, node.for_in.iter
        case cst.Call():
            if isinstance(node.func, cst.Attribute):
                yield frame, node.func.value
            yield from ((frame, arg.value) for arg in node.args)


def _bound_to(frame: Frame, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    bindings = _reaching(frame, node) if isinstance(node, cst.Name) else ()
    return [item.value for item in bindings if isinstance(item.value, cst.BaseExpression)]


def _reaching(frame: Frame, name: cst.Name) -> Iterator[Binding]:
    """What binds a name; where a test says of what kind it is, ``isinstance(checkpoint, dict)``, what did before."""
    pending = list(frame.model.reaching(name))
    while pending:
        binding = pending.pop(0)
        if binding.kind is BindingKind.NARROWED:
            pending += binding.scope.reaching(binding.key, binding.node).bindings
        else:
            yield binding


def _put_into(frame: Frame, name: cst.Name) -> Iterator[cst.BaseExpression]:
    """What a dict of a name is filled with: by ``update``, or in a loop over what was read."""
    model = frame.model
    for other in model.names_within(name.value, model.scope_of(name)):
        parent = model.tree.parent(other)
        if isinstance(parent, cst.Attribute) and parent.attr.value == "update":
            call = model.tree.parent(parent)
            yield from (arg.value for arg in call.args) if isinstance(call, cst.Call) else ()
        elif isinstance(parent, cst.Subscript) and isinstance(model.tree.parent(parent), cst.AssignTarget):
            loops = (item for item in model.tree.ancestors(parent) if isinstance(item, cst.For))
            yield from (loop.iter for loop in list(loops)[:1] if dotted_path(loop.iter) is None)
