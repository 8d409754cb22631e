"""Methods that evaluate a module of their object, which another method of its class trains and leaves in training mode.

Nobody in sight calls them: who does may train first, and evaluate then.
"""

import re
from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.training.runs import Run
from mllint.semantic.training.touched import may_switch_unseen
from mllint.semantic.training.training_modes import (
    EVAL,
    FRESH,
    SWITCHES,
    TRAIN,
    TRAINED,
    UPDATES,
    covers,
    is_one,
    is_trained,
    mode_matters,
    modes_at_end,
    modes_before,
    training_forwards,
)
from mllint.syntax.shape import dotted_path

_MAX_METHODS = 40
_UPDATING = frozenset({"backward", "step", "minimize"})
"""What a class calls, itself or in a base, where it trains."""


def is_left_by_sister(run: Run, forward: Event, *, is_named: bool = True) -> bool:
    """Whether a method of the same class trains the module of a forward pass, and every way out of it leaves that in
    training mode, in which the method that evaluates takes it as it is.

    The layers ask for it, or another method calls `eval()` for an evaluation of its own: of what is not called an
    evaluation (``is_named``) that alone tells. The training calls `train()`, or a loop calls both methods by turns.
    Where something only switches, whoever calls may have called that. Who also puts to evaluation mode what surely has
    no such layers switches all there is, and tells nothing of any.
    """
    module, owner = forward.thing, _owner(run, forward)
    if module is None or owner is None or run.is_cut or modes_before(run, module, forward) != {FRESH}:
        return False
    if is_trained(run, module) or len(owner.methods) > _MAX_METHODS:
        return False
    if not run.derived(("left by a sister", module), partial(_is_left, run, module, owner)):
        return False
    if is_named and mode_matters(forward, run) is True:
        return True
    others = list(_others(run, owner))
    is_taken_to_matter = any(_switches_for_itself(item, module) for item in others)
    return is_taken_to_matter and not any(map(_switches_what_is_the_same, (run, *others)))


def is_trained_by_sister(run: Run, forward: Event) -> bool:
    """Whether another method of the class trains what a forward pass calls, in a run that begins with a method."""
    module, owner = forward.thing, _owner(run, forward)
    if module is None or owner is None or len(owner.methods) > _MAX_METHODS:
        return False
    return any(not item.is_cut and _trains(item, module) for item in _others(run, owner))


def is_switched_in_class(forward: Event) -> bool:
    """Whether another method of its class, or of a base class, calls ``eval()`` of what an object keeps, and a forward
    pass of that comes about in one that does not: who wrote the one takes the mode to matter for the other, too.
    """
    path = "" if forward.thing is None else "".join(forward.thing.path)
    methods = [frame.function for frame in forward.frame.led_by() if path and frame.function is not None]
    running = {id(method.node) for method in methods}
    return any(
        dotted_path(call.func) == f"{other.self_name}{path}.eval" and id(other.node) not in running
        for owner in dict.fromkeys(method.owner for method in methods if method.owner is not None)
        for info in owner.lineage
        for call in info.model.calls_by_word.get("eval", ())
        if (other := function_around(info.model, call)) is not None and other.owner is info
    )


def leaves_sister_in_evaluation(run: Run, switch: Event) -> bool:
    """Whether another method of the class trains a module, and a loop of another file calls that and, in the same
    rounds, the method that a run begins with, which puts the module to evaluation mode and leaves it there.

    ``model.optimize(batch)``, ``model.test()``: of whatever object, neither its class nor anybody else says `train()`.
    """
    module, owner = switch.thing, _owner(run, switch)
    if module is None or owner is None or run.is_cut or modes_at_end(run, module, TRAINED) != {EVAL}:
        return False
    if not any(_UPDATING.intersection(info.model.calls_by_word) for info in owner.lineage):
        return False
    in_turns = _called_in_turns(run)
    if not in_turns:
        return False  # as nearly always: no other method needs to be followed
    others = list(_others(run, owner))
    if any(_may_put_on(item, module) for item in others):
        return False
    return any(
        not item.is_cut and _name(item) in in_turns and _trains(item, module) and _may_matter(item, module)
        for item in others
    ) and not _is_switched_outside(run, module)


def _may_matter(run: Run, module: Thing) -> bool:
    """Whether the mode may make a difference to what a run trains."""
    forwards = (event for event in training_forwards(run) if _is_about(event, module))
    return any(mode_matters(event) is not False for event in forwards)


def _may_put_on(run: Run, module: Thing) -> bool:
    """Whether a run may switch a module to training mode; what its constructor does comes before all."""
    return not _is_constructor(run) and any(
        (event.kind in (Kind.TRAIN, Kind.SET_MODE) and _is_about(event, module)) or may_switch_unseen(event, module)
        for event in run.events
    )


def _is_constructor(run: Run) -> bool:
    return _name(run) == "__init__"


def _is_about(event: Event, module: Thing) -> bool:
    return event.thing is None or is_one(event.thing, module)


def _called_in_turns(run: Run) -> frozenset[str]:
    """The methods that a loop of another file calls beside the one that a run begins with, on a thing of one name."""
    found: set[str] = set()
    for model, call in run.frame.model.calls_elsewhere(_name(run) or ""):
        path = dotted_path(call.func)
        for loop in model.tree.loops_around(call) if path is not None else ():
            paths = (dotted_path(item.func) or "" for item in model.tree.calls_in(loop.body))
            beside = (other.rpartition(".") for other in paths)
            found.update(word for receiver, _, word in beside if receiver == (path or "").rpartition(".")[0])
    return frozenset(found - {_name(run)})


def _name(run: Run) -> str | None:
    """The name of the function that a run begins with."""
    return None if run.frame.function is None else run.frame.function.name


def _owner(run: Run, forward: Event) -> ClassInfo | None:
    """The class of the object whose method a run begins with, where it keeps what is called."""
    function, module = run.frame.function, forward.thing
    owner = None if function is None else function.owner
    if owner is None or module is None or module.roots != {owner} or owner.has_unknown_base:
        return None
    # A module may evaluate itself.
    return owner if len(module.path) == (owner.framework is None) else None


def _is_left(run: Run, module: Thing, owner: ClassInfo) -> bool:
    runs = list(_others(run, owner))
    if any(_may_only_switch(item, module) for item in runs) or _is_switched_outside(run, module):
        return False
    training = [item for item in runs if _trains(item, module)]
    told = [item for item in training if any(_puts_on(event, module) for event in item.events)]
    if told:
        return all(modes_at_end(item, module, EVAL) <= {TRAIN, TRAINED} for item in told)
    in_turns = _called_in_turns(run) if training else frozenset()
    return any(_name(item) in in_turns for item in training)


def _trains(run: Run, module: Thing) -> bool:
    """Whether a run trains a module: in a loop of its own, or one step of it."""
    is_step = any(event.kind in UPDATES for event in run.events)
    return is_trained(run, module) or (is_step and any(_is_about(event, module) for event in training_forwards(run)))


def _others(run: Run, owner: ClassInfo) -> Iterator[Run]:
    """The runs of the other methods of a class, also of those that it inherits, that none of its methods calls."""
    own, runs = run.frame.function, owner.model.runs
    for name in dict.fromkeys(name for info in owner.lineage for name in info.methods):
        method = owner.method(name)
        if method is not None and method is not own and not _is_called_within(owner, method):
            yield runs.run_of(method, None if method.owner is owner else owner)


def _is_called_within(owner: ClassInfo, method: FunctionInfo) -> bool:
    calls = (call for info in owner.lineage for call in info.model.calls_by_word.get(method.name, ()))
    return any(
        isinstance(call.func, cst.Attribute) and getattr(call.func.value, "value", None) == method.self_name
        for call in calls
    )


def _puts_on(event: Event, module: Thing) -> bool:
    return event.kind is Kind.TRAIN and event.thing is not None and covers(event.thing, module)


def _may_only_switch(run: Run, module: Thing) -> bool:
    """Whether a run leaves a module, or may leave it, in another mode, but for an evaluation of its own."""
    if run.is_cut:
        return True
    for event in run.events:
        if not _is_constructor(run) and may_switch_unseen(event, module):
            return True
        is_off = event.kind in SWITCHES and event.kind is not Kind.TRAIN
        if is_off and (event.thing is None or is_one(event.thing, module)):
            return not _switches_for_itself(run, module)
    return False


def _switches_for_itself(run: Run, module: Thing) -> bool:
    """Whether a run calls a module in evaluation mode, having put it there."""
    return any(
        event.kind is Kind.FORWARD
        and event.thing is not None
        and is_one(event.thing, module)
        and modes_before(run, module, event) == {EVAL}
        for event in run.events
    )


def _switches_what_is_the_same(run: Run) -> bool:
    """Whether a run puts a module to evaluation mode for a pass to which the mode surely makes no difference."""
    return any(
        event.kind is Kind.FORWARD
        and event.thing is not None
        and modes_before(run, event.thing, event) == {EVAL}
        and mode_matters(event) is False
        for event in run.events
    )


def _is_switched_outside(run: Run, module: Thing) -> bool:
    """Whether a file near by may switch the module from outside, `trainer.net.eval()`, or calls the method under it."""
    model, function = run.frame.model, run.frame.function
    assert function is not None
    name = rf"\.{re.escape(module.path[0][1:])}" if module.path else ""
    pattern = re.compile(rf"(?<!self){name}\.(?:eval|train)\(".encode())
    if model.project is None:
        return pattern.search(model.source.text.encode()) is not None
    if model.project.is_written_anywhere(model.path, pattern):
        return True
    return any("eval" in other.calls_by_word for other, _ in model.calls_elsewhere(function.name))
