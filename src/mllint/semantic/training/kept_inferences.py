"""Networks that an object keeps to infer with: its constructor puts them to evaluation mode, its methods call them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.places import is_nothing
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.modules.weights import is_trainable
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.training.frozen import is_frozen
from mllint.semantic.training.kept_networks import is_never_switched
from mllint.semantic.training.made_up import is_made_up
from mllint.semantic.training.outputs import is_detached, is_dropped
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.single_passes import is_of_round, switches_gradients_off_itself
from mllint.semantic.training.training_modes import EVAL, FRESH, modes_at_end, modes_before, records_graph
from mllint.semantic.training.unseen_callers import has_unseen_callers, may_run_without_gradients
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, computes_gradients

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def inferences_of_kept(model: "Model", switch: cst.Call) -> Iterator[cst.Call]:
    """The forward passes that record a graph, but are detached from it wherever they are read, of a network that the
    constructor around a switch leaves in evaluation mode: in methods of an object that keeps it and trains nothing.

    Of several switches in a constructor the first one is asked.
    """
    constructor = function_around(model, switch)
    owner = None if constructor is None else constructor.owner
    if constructor is None or owner is None or not _makes_plain_object(constructor, owner):
        return
    switches = (call for call in model.calls_by_word["eval"] if function_around(model, call) is constructor)
    if next(switches, None) is not switch or _speaks_of_gradients(owner):
        return
    making = model.runs.run_of(constructor)
    for method in () if making.is_cut else owner.methods.values():
        if method is constructor or has_unseen_callers(method):
            continue
        for call in model.tree.calls_in(method.node.body):
            if _may_be_kept(method, call) and model.gradients.off(call) is False and is_detached(model, call):
                found = list(model.runs.each(call))
                if found and all(_is_inference(item, making, owner) for item in found):
                    yield call


def _makes_plain_object(constructor: FunctionInfo, owner: ClassInfo) -> bool:
    """Whether a function is the constructor of an object that is no module itself, nor of a class out of sight."""
    is_plain = owner.library_bases in ((), ("builtins.object",)) and not owner.has_unknown_base
    return constructor.name == "__init__" and is_plain


def _speaks_of_gradients(owner: ClassInfo) -> bool:
    """Whether a word of gradients stands in a class, or one of its bases: it may also switch them off, or freeze."""
    return any(
        info.model.tree.is_inside(name, info.node)
        for info in owner.lineage
        for word in GRADIENT_WORDS
        for name in info.model.names_by_word.get(word, ())
    )


def _may_be_kept(method: FunctionInfo, call: cst.Call) -> bool:
    """Whether a call is one of an attribute of the object: ``self.network(inputs)``."""
    match call.func:
        case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=word)):
            return name == method.self_name and method.owner is not None and method.owner.method(word) is None
    return False


def _is_inference(occurrence: Occurrence, making: Run, owner: ClassInfo) -> bool:
    run, forward = occurrence.run, occurrence.event
    if forward.kind is not Kind.FORWARD or run.is_cut or not records_graph(forward) or is_of_round(forward):
        return False
    kept = _as_kept(forward, owner)
    model = owner.model
    if kept is None or not _is_bound_by(making, owner, kept) or modes_at_end(making, kept, FRESH) != {EVAL}:
        return False
    if forward.thing is None or not modes_before(run, forward.thing, forward) <= {FRESH, EVAL}:
        return False
    if is_dropped(forward) or is_made_up(forward) or is_frozen(making, (forward,)) or is_frozen(run, (forward,)):
        return False
    if computes_gradients(forward) or switches_gradients_off_itself(forward):
        return False
    if forward.called is None or not is_trainable(forward.frame.model, forward.called):
        return False
    return is_never_switched(model, kept, owner.name, but_to_evaluation=True) and not may_run_without_gradients(
        forward.frame.function
    )


def _is_bound_by(making: Run, owner: ClassInfo, kept: Thing) -> bool:
    """Whether nothing but the constructor of an object binds what it keeps to anything."""
    constructor = making.frame.function
    bound = [item for item in owner.assignments(kept.path[0].removeprefix(".")) if not is_nothing(item)]
    return bool(bound) and all(function_around(item.scope.model, item.node) is constructor for item in bound)


def _as_kept(forward: Event, owner: ClassInfo) -> Thing | None:
    """What the object keeps of which a forward pass is, as the constructor calls it."""
    word = None if not isinstance(forward.node, cst.Call) else forward.node.func
    if not isinstance(word, cst.Attribute):
        return None
    return Thing(frozenset({owner}), (f".{word.attr.value}",))
