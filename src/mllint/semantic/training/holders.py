"""Objects that were given an optimizer or a module before: what their methods do to it cannot be told."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import CLEARING
from mllint.semantic.events.kinds import kind_of
from mllint.semantic.events.makers import is_accelerator, makers_of
from mllint.semantic.events.participants import value_called_on
from mllint.semantic.events.places import as_itself
from mllint.semantic.events.steps import Event, Kind, Loop
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.arguments import is_passed_around
from mllint.semantic.expressions.sources import paths_in
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.runs import Run
from mllint.semantic.values import Symbol
from mllint.syntax.shape import called_on, dotted_path, fingerprint

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def may_act_on(event: Event, held: Thing, run: Run, loop: Loop) -> bool:
    """Whether every round of a loop uses an unknown object that may hold a thing: ``helper.reset()``."""
    if event.kind is not Kind.UNKNOWN or not event.happens_in_every_round(loop) or _is_of_known_class(event):
        return False
    return any(
        item is not None and not is_accelerator(item) and (was_made_with(item, held) or _met(item, held, run))
        for item in event.touched
    )


def is_sister(event: Event, optimizer: Thing | None) -> bool:
    """Whether what is cleared is another one of those that a call gives: ``first, second = self.optimizers()``.

    It may not be a module that the call gives with its optimizer: ``net, optimizer = initialize(net, optimizer)``.
    """
    mine, other = _of_call(event.thing), _of_call(optimizer)
    if mine is None or other is None or mine.value is not other.value or mine.path == other.path:
        return False
    receiver = called_on(event.node)
    called = None if receiver is None else kind_of(event.frame, receiver)
    return called is not None and called.kind == "optimizer"


def _of_call(thing: Thing | None) -> Binding | None:
    """What binds a thing that a call gives in one of several places."""
    root = next(iter(thing.roots)) if thing is not None and len(thing.roots) == 1 and not thing.path else None
    is_one = isinstance(root, Binding) and isinstance(root.value, cst.Call) and bool(root.path)
    return root if is_one and isinstance(root, Binding) else None


def is_given(event: Event, step: Event) -> bool:
    """Whether something unknown is given what an optimizer's step is called on, or the object that holds that.

    What `self.optimizer` was given when the object was made is known by that name; who gets `self` gets it, too.
    """
    if event.concerns(step.thing):
        return True
    optimizer = called_on(step.node) if isinstance(step.node, cst.Call) else None
    own = None if optimizer is None else Frame(step.frame.model, step.frame.function).thing(optimizer)
    return own is not None and any(isinstance(root, ClassInfo) for root in own.roots) and event.concerns(own)


def is_cleared_by_handler(model: "Model", step: cst.Call) -> bool:
    """Whether a function of the file that somebody is given clears the gradients for a step: he may call it any time.

    A lambda, one whose name is used as a value, or one below a decorator: ``@bus.on("round begins")``.
    """
    optimizer = called_on(step)
    name = None if optimizer is None else fingerprint(optimizer)
    for word in CLEARING:
        for call in model.calls_by_word.get(word, ()):
            cleared = called_on(call)
            function = model.tree.nearest(call, cst.FunctionDef, cst.Lambda)
            if cleared is None or function is None or fingerprint(cleared) != name:
                continue
            is_given = not isinstance(function, cst.FunctionDef) or _is_handed_on(model, function)
            if is_given and not model.tree.is_inside(step, function):
                return True
    return False


def _is_handed_on(model: "Model", function: cst.FunctionDef) -> bool:
    info = model.function_info(function)
    return is_passed_around(model, info) or (bool(function.decorators) and not info.is_transparent)


def _is_of_known_class(event: Event) -> bool:
    value = value_called_on(event)
    return value is not None and not isinstance(value, Symbol)  # which is a package


def _met(holder: Thing, held: Thing, run: Run) -> bool:
    """Whether something unknown was given both: ``helper.register(optimizer)``; what has both is given nothing."""
    for event in run.events:
        if event.kind is Kind.UNKNOWN and event.concerns(held):
            things = [item for item in event.touched if item is not None]
            if any(
                one is not other and one.may_be(holder) and other.may_be(held) for one in things for other in things
            ):
                return True
    return False


def was_made_with(holder: Thing, held: Thing) -> bool:
    """Whether what a thing is bound to, or one of its attributes, names the other thing."""
    made = [binding for root in holder.roots for binding in makers_of(root, holder.path)]
    parts = [part for binding in made for part in _parts(binding)]
    return any(_names(binding, held) for binding in (*made, *parts))


def _parts(binding: Binding) -> list[Binding]:
    """What is assigned to the attributes of a name: ``helper.optimizer = optimizer``."""
    return [
        part for key, found in binding.scope.bindings.items() if key.startswith(f"{binding.key}.") for part in found
    ]


def _names(binding: Binding, held: Thing) -> bool:
    if binding.value is None or binding in held.roots:
        return False
    model, made = binding.scope.model, as_itself(binding.value)
    if isinstance(made, cst.Call) and model.qualified_name(made.func) == "copy.deepcopy":
        return False  # it goes its own way
    is_named = not any(isinstance(root, ClassInfo) for root in held.roots)  # with its parts: `net` has `net[0]`
    for path in paths_in(binding.value):
        if is_named:
            named = Frame(model).thing(path)  # `network` of `network = network.to(device)`, too
            if held.roots & set(model.reaching(path)) or (named is not None and held.roots & named.roots):
                return True
        if held.path and (not is_named or _is_of_self(path, binding)):
            _, _, attribute = (dotted_path(path) or "").partition(".")
            if held.path[0] == f".{attribute}" or _is_kept_as(path, binding, held.path[0]):
                return True
    return False


def _is_kept_as(path: cst.BaseExpression, binding: Binding, attribute: str) -> bool:
    """Whether a name stands for what the same method keeps as an attribute: ``self.net = net``, ``Wrapper(net)``."""
    own = _own_name(binding)
    kept = binding.scope.bindings.get(f"{own}{attribute}", ()) if own is not None else ()
    return any(item.value is not None and dotted_path(item.value) == dotted_path(path) for item in kept)


def _is_of_self(path: cst.BaseExpression, binding: Binding) -> bool:
    """Whether a path begins with the object whose method binds something: ``self.net`` of ``Loss(self.net)``."""
    own = _own_name(binding)
    return own is not None and (dotted_path(path) or "").startswith(f"{own}.")


def _own_name(binding: Binding) -> str | None:
    """What the method in which something is bound calls its object."""
    function = binding.scope.node
    return binding.scope.model.function_info(function).self_name if isinstance(function, cst.FunctionDef) else None
