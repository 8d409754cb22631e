"""Attacks on a model that is evaluated: they ask for gradients of it, whoever wrote them, and so need its graph."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.kinds import may_name_thing
from mllint.semantic.events.makers import run_of
from mllint.semantic.events.places import is_nothing
from mllint.semantic.events.steps import Event, Kind, Loop
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.data_rounds import AnyLoop, code_of, is_given_output, rounds_of
from mllint.semantic.training.outputs import comes_from
from mllint.semantic.training.training_modes import is_one
from mllint.semantic.training.wanted_gradients import may_run_backward
from mllint.semantic.values import Function, Instance, Module, Symbol, Value
from mllint.syntax.shape import called_on, dotted_path, fingerprint, items_of, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 4
"""Through how many names a target is followed back to the loop."""
_HARMLESS = sys.stdlib_module_names | {"torch", "paddle", "numpy"}
"""Libraries whose functions compute gradients of a model only where a word of gradients says so."""
_LOOKING = frozenset({"getattr", "hasattr", "id", "isinstance", "len", "print", "type"})
"""Built-in functions that look at what they are given."""


def may_be_attacked(loop: Loop, forward: Event) -> bool:
    """Whether something out of sight in a loop may compute gradients of the model of a forward pass there.

    It is given the model; or it makes the input, and was made with the model, or is given the target that the output is
    compared with, or options that may hold anything.
    """
    frame, call = forward.frame, forward.node
    # The loop itself, or the function called in it that evaluates a batch.
    body = _body_of(loop, frame)
    if not isinstance(call, cst.Call):
        return False
    for made in _calls_out_of_sight(frame, body):
        if made is call:
            continue
        if any(_is_the_module(frame.thing(arg.value), forward) for arg in made.args):
            return True
        if _is_unpacked(frame, made) or not any(_is_made_of(frame, arg.value, made) for arg in call.args):
            continue
        # What comes first is attacked; where it is what the output is compared with, it was masked or had noise added.
        targets = [arg.value for arg in made.args[1:] if _is_from(frame, arg.value, body)]
        if any(_is_compared(frame, item, body, call) for item in targets) or _is_made_with(frame, made, forward):
            return True
        if any(arg.star for arg in made.args):
            return True
    return False


def _body_of(loop: Loop, frame: Frame) -> cst.CSTNode:
    """What a loop runs, or the function that is called from it."""
    if frame is loop.frame or frame.function is None:
        return code_of(loop.frame.model, loop.node)
    return frame.function.node


def makes_input(loop: Loop, forward: Event) -> bool:
    """Whether a method of an object out of sight makes the input of a forward pass of the batch and something else.

    It may be an attack on another model, ``adversary.perturb(batch, wanted)``, which asks for gradients all the same.
    """
    frame, call = forward.frame, forward.node
    body = _body_of(loop, frame)
    return isinstance(call, cst.Call) and any(
        called_on(made) is not None
        and len(made.args) > 1
        and made is not call
        and not _is_unpacked(frame, made)
        and _is_from(frame, made.args[0].value, body)
        and any(_is_made_of(frame, arg.value, made) for arg in call.args)
        for made in _calls_out_of_sight(frame, body)
    )


def _is_the_module(thing: Thing | None, forward: Event) -> bool:
    """Whether something is the very module of a forward pass: no part of it, as its tokenizer, nor what holds it."""
    module = forward.thing
    return thing is not None and module is not None and len(thing.path) == len(module.path) and thing.may_be(module)


def is_held_by_another(inside: Iterable[Event], forwards: tuple[Event, ...]) -> bool:
    """Whether something unknown in a loop may want gradients: it was made with a model, ``Saliency(network)``, or is
    told what became of its own output, ``learner.adapt(loss)``.
    """
    every = [event for event in inside if isinstance(event.node, cst.Call)]
    return any(
        _is_told_outcome(event, every) or any(_is_made_with(event.frame, event.node, forward) for forward in forwards)
        for event in every
        if event.kind is Kind.UNKNOWN and isinstance(event.node, cst.Call)
    )


def _is_told_outcome(event: Event, inside: list[Event]) -> bool:
    """Whether a method does something to an object with what hangs on the output of a call of that very object."""
    assert isinstance(event.node, cst.Call)
    receiver = called_on(event.node) if isinstance(event.frame.model.tree.parent(event.node), cst.Expr) else None
    told = None if receiver is None else event.frame.thing(receiver)
    return told is not None and any(
        isinstance(other.node, cst.Call)
        and other.frame.thing(other.node.func) == told
        and is_given_output(event, other)
        for other in inside
    )


def _is_made_with(frame: Frame, call: cst.Call, forward: Event) -> bool:
    """Whether a call is one of a method of an object, or of an object, that was given the module of a forward pass."""
    return _holds(frame, called_on(call) or call.func, forward)


def _holds(frame: Frame, node: cst.BaseExpression, forward: Event, steps: int = _MAX_STEPS) -> bool:
    """Whether an object was made with the module of a forward pass: given it, a list with it, or what holds it.

    What an object keeps, and has made of other things, does not hold what the object was given itself.
    """
    kept = _kept(frame, node)
    if kept and all(map(_is_given_no_module, kept)):
        return False
    if any(map(_is_given_own_module, kept)):
        return True
    thing = frame.thing(node)
    bindings = [] if thing is None or steps == 0 else [root for root in thing.roots if isinstance(root, Binding)]
    for home, made in ((run_of(frame, binding.scope), call) for binding in bindings for call in _calls_bound(binding)):
        # What a function of the project gives back is not what holds all that it is given.
        if isinstance(home.value(made.func), Function):
            continue
        given = [part for arg in made.args for part in items_of(arg.value)]
        if any(is_one(home.thing(part), forward.thing) or _holds(home, part, forward, steps - 1) for part in given):
            return True
    return False


def _kept(frame: Frame, node: cst.BaseExpression) -> list[Binding]:
    """What binds an attribute of an object, other than to nothing: ``self.ledger`` of a trainer."""
    holder = frame.value(node.value) if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) else None
    owner = holder.definition if isinstance(holder, (Instance, Module)) else None
    if owner is None or not isinstance(node, cst.Attribute):
        return []
    return [item for item in owner.assignments(node.attr.value) if not is_nothing(item)]


def _is_given_own_module(making: Binding) -> bool:
    """Whether an object makes what it keeps with a module that it keeps as well: ``Attacker(self.net)``."""
    args = making.value.args if isinstance(making.value, cst.Call) else ()
    return any(dotted_path(arg.value) in making.scope.model.runs.used_as_modules for arg in args)


def _is_given_no_module(making: Binding) -> bool:
    """Whether something is made by a call that is given no module, as far as names say."""
    call = making.value
    if not isinstance(call, cst.Call) or making.path:
        return False
    named = {item.value for arg in call.args for item in subtree(arg.value) if isinstance(item, cst.Name)}
    if "self" in named or any(map(may_name_thing, named)):
        return False
    # `self.network = given` makes a module of what is given here, too.
    scope, used = making.scope, making.scope.model.runs.used_as_modules
    kept = [key for key in scope.bindings if key in used]
    values = (item.value for key in kept for item in scope.bindings[key])
    return not any(isinstance(value, cst.Name) and value.value in named for value in values)


def _calls_bound(binding: Binding) -> list[cst.Call]:
    """The call, or the two calls of which one, that something is bound to."""
    value = binding.value
    ways = [value.body, value.orelse] if isinstance(value, cst.IfExp) else [value]
    return [way for way in ways if isinstance(way, cst.Call)]


def _calls_out_of_sight(frame: Frame, node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls in a piece of code whose functions are neither in the project nor known to be harmless."""
    for item in subtree(node):
        if not isinstance(item, cst.Call) or not item.args or _is_harmless(frame.value(item.func)):
            continue
        # A `*` may have imported any name, but nobody's `hasattr` is another one.
        if not (isinstance(item.func, cst.Name) and item.func.value in _LOOKING):
            yield item


def _is_harmless(function: Value | None) -> bool:
    if isinstance(function, Symbol):
        return function.name.partition(".")[0] in _HARMLESS
    return function is not None


def _is_unpacked(frame: Frame, call: cst.Call) -> bool:
    """Whether a call gives several things: what moves or prepares a batch, and not one that attacks its input."""
    statement = frame.model.tree.parent(call)
    return isinstance(statement, cst.Assign) and isinstance(statement.targets[0].target, (cst.Tuple, cst.List))


def _is_made_of(frame: Frame, node: cst.BaseExpression, call: cst.Call) -> bool:
    return any(item is call for item in subtree(node)) or comes_from(frame, node, call)


def _is_from(frame: Frame, node: cst.BaseExpression, body: cst.CSTNode, steps: int = _MAX_STEPS) -> bool:
    """Whether an expression is what a loop binds, or a function is given: as it is, on a device, or in another form."""
    inner = node
    while isinstance(inner, (cst.Call, cst.Subscript, cst.Attribute)):
        inner = inner.func if isinstance(inner, cst.Call) else inner.value
    if not isinstance(inner, cst.Name) or steps == 0:
        return False
    for binding in frame.model.reaching(inner):
        is_given = binding.kind is BindingKind.PARAMETER and binding.scope.node is body
        value = binding.value if binding.kind is BindingKind.ASSIGN else None
        is_bound = isinstance(binding.node, AnyLoop) and code_of(binding.scope.model, binding.node) is body
        if is_bound or is_given or (value is not None and _is_from(frame, value, body, steps - 1)):
            return True
    return False


def _is_compared(frame: Frame, name: cst.BaseExpression, body: cst.CSTNode, forward: cst.Call) -> bool:
    """Whether the output of a forward pass stands beside something in a call or a comparison."""
    for item in subtree(body):
        if isinstance(item, cst.Comparison):
            parts = [item.left, *(part.comparator for part in item.comparisons)]
        elif isinstance(item, cst.Call) and item is not forward and not _is_text(frame, item):
            receiver = [item.func.value] if isinstance(item.func, cst.Attribute) else []
            parts = [*receiver, *(arg.value for arg in item.args)]
        else:
            continue
        others = [part for part in parts if fingerprint(part) != fingerprint(name)]
        if len(others) < len(parts) and any(_is_made_of(frame, part, forward) for part in others):
            return True
    return False


def _is_text(frame: Frame, call: cst.Call) -> bool:
    """Whether a call writes what it is given down: ``print(name, output)``, ``"{} {}".format(name, output)``."""
    value = frame.value(call.func)
    return last_word(call.func) == "format" or (isinstance(value, Symbol) and value.name == "builtins.print")


def is_fed_out_of_sight(model: "Model", node: AnyLoop) -> bool:
    """Whether something that may ask for gradients makes what the model of a loop is given, or comes by in a round."""
    rounds = rounds_of(model.runs.loops_at(node))
    is_made = any(makes_input(item.found.loop, forward) for item in rounds for forward in item.forwards)
    return is_made or any(may_run_backward(model, call) for call in model.tree.calls_in(_inside(model, node)))


def _inside(model: "Model", node: AnyLoop) -> cst.CSTNode:
    return code_of(model, node) if isinstance(node, cst.CompFor) else node.body
