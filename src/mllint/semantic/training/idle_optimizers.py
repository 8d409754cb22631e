"""Optimizers whose gradients are cleared for a backward pass, and that never take a step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import CLEARING
from mllint.semantic.events.owners import modules_of_optimizer, updates
from mllint.semantic.events.steps import UPDATES, Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.files.testing import is_benchmark, is_in_a_test, is_test_code, is_tried_out
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import attributes, bound_by
from mllint.semantic.training.held_schedulers import MAX_STEPS, is_looked_at, reads_of_bound
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.values import ClassObject, Function, is_object
from mllint.syntax.shape import part_at, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_HARMLESS = frozenset({
    "state_dict", "load_state_dict", "set_state_dict", "set_dict", "param_groups", "defaults", "get_lr", "set_lr",
})  # fmt: skip
"""What is done with an optimizer beside clearing and stepping."""


class Idle(NamedTuple):
    """An optimizer that never steps: the call that makes it, and what it is bound to."""

    call: cst.Call
    key: str


def idle_optimizers(model: "Model") -> Iterator[Idle]:
    """The optimizers of a file for whose gradients somebody clears the way, and that nobody steps."""
    if not any(word in model.calls_by_word for word in CLEARING) or not model.backward.calls:
        return
    if is_test_code(model) or is_benchmark(model) or _reads_gradients(model):
        return
    for word in sorted(lookup.last_words("optimizer").intersection(model.calls_by_word)):
        for call in model.calls_by_word[word]:
            found = _cleared_as(model, call) if is_object(model.value(call), "optimizer") else None
            if found is None or not found.calls:
                continue
            home, cleared = found.calls[0]
            if is_in_a_test(home, cleared) or is_tried_out(home, cleared):
                continue
            if home.runs.always(cleared, _never_steps):
                yield Idle(call, found.key)


class _Cleared(NamedTuple):
    """What an optimizer is called where its gradients are cleared, and the calls that do so."""

    key: str
    calls: "list[tuple[Model, cst.Call]]"


def _cleared_as(model: "Model", call: cst.Call) -> _Cleared | None:
    """The calls that clear the gradients of an optimizer, where it is neither stepped nor handed to anybody else."""
    statement = model.tree.parent(call)
    if isinstance(statement, cst.Arg):
        return _kept_and_cleared(model, call)
    if not isinstance(statement, cst.Assign):
        return None
    bindings = bound_by(model, statement)
    if len(bindings) != 1 or bindings[0].path or _may_be_imported(model, bindings[0]):
        return None
    return _cleared_only(model, bindings[0])


def _reads_gradients(model: "Model") -> bool:
    """Whether a file wants the gradients themselves, or takes steps by hand: ``weight -= rate * weight.grad``."""
    return any(model.library_name(attribute) is None for attribute in attributes(model, "grad"))


def _may_be_imported(model: "Model", binding: Binding) -> bool:
    """Whether an optimizer is bound to a name of the module that another file of the project mentions."""
    is_shared = not binding.scope.is_function and "." not in binding.key
    return is_shared and any(True for _ in model.importers(binding.key))


def _cleared_only(model: "Model", binding: Binding, *, is_kept: bool = False) -> _Cleared | None:
    """The calls that clear the gradients of what is bound, where it is neither stepped nor handed to anybody else.

    ``is_kept``: an object keeps it that was given it, and hands it on to no other.
    """
    reads = reads_of_bound(model, binding)
    if reads is None:
        return None
    found = _Cleared(binding.key, [])
    for home, place in reads:
        parent = home.tree.parent(place)
        if isinstance(parent, cst.Attribute) and parent.value is place:
            call = home.tree.call_of(parent)
            if parent.attr.value in CLEARING and call is not None and home is model:
                found.calls.append((home, call))
            elif parent.attr.value not in _HARMLESS:
                return None
        elif not is_looked_at(home, place) and not _is_given_to_harmless(home, place, MAX_STEPS):
            kept = None if is_kept else _kept_and_cleared(home, place)
            if kept is None:
                return None
            # What the object calls it says where the step is missing.
            found = _Cleared(kept.key, [*kept.calls, *found.calls])
    return found


def _kept_and_cleared(model: "Model", given: cst.BaseExpression) -> _Cleared | None:
    """The calls with which an object clears the gradients of an optimizer that its constructor is given and keeps."""
    arg, call = model.tree.parent(given), model.tree.call_given(given)
    made = None if call is None else model.value(call.func)
    constructor = made.definition.method("__init__") if isinstance(made, ClassObject) else None
    if call is None or constructor is None or not isinstance(arg, cst.Arg):
        return None
    found = None
    for use in uses_inside(constructor, call, arg, 1) or ():
        if is_looked_at(constructor.model, use):
            continue
        binding = _attribute_kept(constructor.model, use)
        if binding is None or found is not None:
            return None
        found = _cleared_only(constructor.model, binding, is_kept=True)
        if found is None:
            return None
    return found


def _attribute_kept(model: "Model", use: cst.BaseExpression) -> Binding | None:
    """The attribute under which a constructor keeps what it was given, where nothing else binds it."""
    inside = model.tree.parent(use)
    around = model.tree.parent(inside) if isinstance(inside, cst.Element) else use
    statement = None if around is None else model.tree.parent(around)
    if not isinstance(statement, cst.Assign) or (around is not use and not isinstance(around, cst.Tuple)):
        return None
    bindings = [item for item in bound_by(model, statement) if part_at(item.value, item.path) is use]
    return bindings[0] if len(bindings) == 1 and bindings[0].key.count(".") == 1 else None


def _is_given_to_harmless(home: "Model", place: cst.BaseExpression, steps: int) -> bool:
    """Whether an optimizer is given to a scheduler, or to a function of the project that surely steps it nowhere.

    Such a one sets its learning rate: ``for group in optimizer.param_groups: group["lr"] = rate``.
    """
    arg, given = home.tree.parent(place), home.tree.call_given(place)
    if given is None or not isinstance(arg, cst.Arg):
        return False
    if is_object(home.value(given), "scheduler"):
        return True
    callee = home.value(given.func)
    if steps == 0 or not isinstance(callee, Function):
        return False
    info = callee.definition
    if not (info.is_transparent and info.is_plain) or _reads_gradients(info.model) or _takes_weights_out(info.node):
        return False
    inside = uses_inside(info, given, arg, filled_by(callee))
    return inside is not None and all(_does_no_step(info.model, use, steps - 1) for use in inside)


def _takes_weights_out(function: cst.FunctionDef) -> bool:
    """Whether a function takes the weights out of an optimizer: ``group["params"]``. It may change them by hand."""
    return any(string_literal(item) == "params" for item in subtree(function) if type(item) is cst.SimpleString)


def _does_no_step(home: "Model", place: cst.BaseExpression, steps: int) -> bool:
    """Whether a function does no more with the optimizer that it is given than to read or set its numbers."""
    parent = home.tree.parent(place)
    if isinstance(parent, cst.Attribute) and parent.value is place:
        return parent.attr.value in CLEARING or parent.attr.value in _HARMLESS
    return _is_given_to_harmless(home, place, steps)


def _never_steps(occurrence: Occurrence) -> bool:
    """Whether a backward pass follows a call that clears gradients, and nothing changes what they are of."""
    run, zero = occurrence.run, occurrence.event
    modules = modules_of_optimizer(zero.frame, zero.thing)
    if run.is_cut or zero.kind is not Kind.ZERO or zero.thing is None:
        return False
    if any(map(_reads_gradients, {event.frame.model for event in run.events})):
        return False
    later = run.events[run.events.index(zero) + 1 :]
    if not any(event.kind is Kind.BACKWARD for event in later):
        return False
    return not any(_may_change(event, zero.thing, module) for event in run.events for module in modules)


def _may_change(event: Event, optimizer: Thing, module: Thing | None) -> bool:
    """Whether an event may update a module: with another optimizer, by hand, or in a way that cannot be looked into."""
    if module is None:
        return True
    if event.kind in UPDATES:
        return updates(event.frame, event.thing, optimizer) is not False and not _has_another(event, module)
    if event.kind is Kind.UNKNOWN:
        return any(item is not None and (item.may_be(module) or item.may_be(optimizer)) for item in event.touched)
    return event.kind is Kind.UPDATE and event.concerns(module)


def _has_another(event: Event, module: Thing) -> bool:
    """Whether what steps has another parameter of the same function than a module: who calls it gives it two things."""
    given = _given_to_function(module)
    others = [_given_to_function(other) for other in modules_of_optimizer(event.frame, event.thing)]
    return given is not None and all(
        other is not None and other is not given and other.scope is given.scope for other in others
    )


def _given_to_function(thing: Thing | None) -> Binding | None:
    """The parameter of a function that a thing is, of which nobody in sight says what it is given."""
    root = next(iter(thing.roots)) if thing is not None and len(thing.roots) == 1 and not thing.path else None
    return root if isinstance(root, Binding) and root.kind is BindingKind.PARAMETER else None
