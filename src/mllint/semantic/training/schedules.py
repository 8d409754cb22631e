"""Schedulers: whose learning rate they set, whether they step before their optimizer, or only when the training is
over.
"""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.elements import EVERY
from mllint.semantic.events.kinds import kind_at_sight
from mllint.semantic.events.made_anew import is_made_in
from mllint.semantic.events.makers import Made, makers_of, makings, makings_of, makings_of_elements
from mllint.semantic.events.owners import seen_from
from mllint.semantic.events.steps import UPDATES, Attempt, Branches, Event, Kind, Loop, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.definitions import ClassInfo, function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.training.first_factors import begins_above_zero, is_above_zero
from mllint.semantic.training.guards import is_on_another_way, stays
from mllint.semantic.training.nearby import follows_optimizer
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.values import Instance, Object, Value, is_object, own_method
from mllint.syntax.shape import argument, called_on, dotted_path, fingerprint, integer_literal, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# -- whose learning rate -----------------------------------------------------------------------------------------------


Construction = tuple[Binding, Object, cst.Call]
"""Where a scheduler is made: the binding, what it is, and the call."""


def construction_of(scheduler: Thing | None) -> Construction | None:
    """Where the one scheduler that a thing may be is made."""
    found = all_constructions_of(scheduler)
    return found[0] if len(found) == 1 else None


def all_constructions_of(scheduler: Thing | None) -> tuple[Construction, ...]:
    """Where each of the schedulers is made that a thing may be, in its branch; none where one is not known."""
    bindings = _bindings_of(scheduler)
    values = [(item, item.scope.model.binding_value(item)) for item in bindings]
    found = [
        (item, value, value.call) for item, value in values if is_object(value, "scheduler") and value.call is not None
    ]
    return tuple(found) if len(found) == len(bindings) else ()


def constructions_of(frame: Frame, scheduler: Thing | None) -> tuple[Made, ...]:
    """All calls by which a scheduler may be made, in this file or another; none where one of them is not known."""
    found = makings_of_elements(frame, scheduler) or _makings_given(frame, scheduler)
    found = found or [made for binding in _bindings_of(scheduler) for made in makings(frame, binding)]
    known = tuple(item for item in found if item is not None and _is_scheduler(item.frame.value(item.call)))
    return known if len(known) == len(found) else ()


def _makings_given(frame: Frame, thing: Thing | None) -> list[Made | None]:
    """The calls that make what an object was given where it was made: ``Trainer(net, StepLR(optimizer, 30))``."""
    if thing is None or len(thing.path) != 1 or not thing.path[0].startswith("."):
        return []
    kept = frame.kept(Thing(thing.roots), thing.path[0][1:])
    found = [] if kept is None else makings_of(*kept)
    return [] if None in found else found


def _is_scheduler(value: Value | None) -> bool:
    if isinstance(value, Instance):
        return value.definition.kind == "scheduler"
    return is_object(value, "scheduler")


def _bindings_of(scheduler: Thing | None) -> list[Binding]:
    if scheduler is None or len(scheduler.path) > 1:
        return []
    return [maker for root in scheduler.roots for maker in makers_of(root, scheduler.path)]


def steps_of_optimizer(run: Run, scheduler: Thing) -> tuple[Event, ...]:
    """The steps in a run of the optimizer whose learning rate a scheduler sets."""
    return run.derived(("steps of", scheduler), partial(_steps_of_optimizer, run, scheduler))


def _steps_of_optimizer(run: Run, scheduler: Thing) -> tuple[Event, ...]:
    updates = [event for event in run.events if event.kind in UPDATES and event.thing is not None]
    made = construction_of(scheduler)
    frame = next((event.frame for event in run.events if event.thing == scheduler), run.frame)
    makers = constructions_of(frame, scheduler)
    if any(item.frame.model.framework == "paddle" for item in makers):
        return tuple(event for event in updates if _learns_by(event, scheduler))
    optimizers = {_optimizer_given(item) for item in makers}
    if made is not None:
        given = argument(made[2], 0, "optimizer")
        optimizers.add(None if given is None else seen_from_maker(run, made[0], given.value))
    names = {
        seen_from(frame, root, scheduler, item) for item in optimizers for root in scheduler.roots if scheduler.path
    } | optimizers
    return tuple(
        event
        for event in updates
        if event.thing is not None and any(name is not None and event.thing.may_be(name) for name in names)
    )


def _optimizer_given(made: Made) -> Thing | None:
    """The optimizer that the constructor of a scheduler is given."""
    given = argument(made.call, 0, "optimizer")
    return None if given is None else made.frame.thing(given.value)


def seen_from_maker(run: Run, binding: Binding, node: cst.BaseExpression) -> Thing | None:
    """What an expression stands for where a thing is made: in the body of the run itself, where it was made there."""
    model = binding.scope.model
    for frame in (frame for event in run.events for frame in event.frame.led_by()):
        if frame.model is model and frame.scope is binding.scope:
            return frame.thing(node)
    return Frame(model, function_around(model, node)).thing(node)


def _learns_by(update: Event, scheduler: Thing) -> bool:
    """Whether a Paddle optimizer was given a scheduler for its learning rate."""
    assert update.thing is not None
    found = [(root, item) for root in update.thing.roots for item in _makings_given(update.frame, update.thing)]
    makers = [(root, maker) for root in update.thing.roots for maker in makers_of(root, update.thing.path)]
    for root, made in found or ((root, item) for root, maker in makers for item in makings(update.frame, maker)):
        value = None if made is None else made.frame.value(made.call)
        if made is None or not isinstance(value, Object):
            continue
        names = lookup.parameters(value.name)
        position = names.index("learning_rate") if "learning_rate" in names else None
        given = argument(made.call, position, "learning_rate")
        thing = None if given is None else made.frame.thing(given.value)
        known = seen_from(update.frame, root, update.thing, thing) if update.thing.path else thing
        if thing is not None and known is not None and (thing.may_be(scheduler) or known.may_be(scheduler)):
            return True
    return False


# -- before the optimizer ----------------------------------------------------------------------------------------------

_COUNTING = ("range", "trange")
_OF_FUNCTION = frozenset({"LambdaLR", "LambdaDecay"})
"""Schedulers whose rates a function gives that they are told."""
_FRESH, _UPDATED, _LOADED, _PASSED = "fresh", "updated", "loaded", "passed"


_TRAINING = frozenset({Kind.FORWARD, Kind.BACKWARD, Kind.MINIMIZE, Kind.WRITE_GRADIENT, Kind.UNKNOWN})
"""Of what one comes about, at least, where an optimizer has any gradients to step with: else rates are only shown."""


def steps_before_optimizer(model: "Model", call: cst.Call) -> cst.CSTNode | None:
    """The optimizer's step that follows a scheduler's in every round, where that one surely comes first."""
    stepped = called_on(call)
    if stepped is None or kind_at_sight(model, stepped) not in (None, "scheduler") or follows_optimizer(model, call):
        return None
    found: cst.CSTNode | None = None
    for occurrence in model.runs.each(call):
        step = _update_behind(occurrence)
        if step is None or not any(event.kind in _TRAINING for event in occurrence.run.events):
            return None
        found = step.node
    return found


def is_left_of_batches(model: "Model", call: cst.Call) -> bool:
    """Whether the optimizer steps in a loop inside the round in which a scheduler steps before it: for each batch."""
    pairs = [(item.event, _update_behind(item)) for item in model.runs.each(call)]
    return bool(pairs) and all(
        step is not None and bool(event.loops) and len(step.loops) > len(event.loops) for event, step in pairs
    )


def _update_behind(occurrence: Occurrence) -> Event | None:
    run, schedule = occurrence.run, occurrence.event
    if schedule.kind is not Kind.SCHEDULE or schedule.thing is None or run.is_cut:
        return None
    if not isinstance(schedule.node, cst.Call) or schedule.node.args:
        return None  # told the epoch, or a metric, it sets the learning rate for that
    loop = _loop_around(schedule)
    if loop is None:
        return _update_behind_beginning(run, schedule) or _update_behind_in_call(run, schedule)
    if is_made_in(loop, schedule, schedule.thing):
        return None  # every round makes one that knows its place: it skips none
    behind = [step for step in steps_of_optimizer(run, schedule.thing) if loop in step.loops]
    if not behind or not _is_settled(schedule, behind[0], loop) or _is_chained(schedule):
        return None
    optimizer = behind[0].thing
    assert optimizer is not None
    key = ("schedule", schedule, optimizer)
    paths: Paths[str] = run.derived(key, partial(_paths, run, schedule, optimizer, loop))
    return behind[0] if paths.before(schedule) - {_PASSED, _LOADED} == {_FRESH} else None


def _update_behind_beginning(run: Run, schedule: Event) -> Event | None:
    """The optimizer's step in a loop behind a scheduler's single one, which steps in the loop again: the first was one
    too many. Not where it is brought to where a training was left.
    """
    assert schedule.thing is not None
    if any(isinstance(around.step, (Branches, Attempt)) for around in schedule.around) or schedule.loops:
        return None
    updates = steps_of_optimizer(run, schedule.thing)
    if not updates or not constructions_of(schedule.frame, schedule.thing) or _is_chained(schedule):
        return None
    place = run.events.index(schedule)
    goes_on = any(
        event.kind is Kind.SCHEDULE and event.loops and event.thing == schedule.thing
        for event in run.events[place + 1 :]
    )
    optimizer = updates[0].thing
    meant = (Kind.SCHEDULE, Kind.LOAD, Kind.UNKNOWN, *UPDATES)
    if not goes_on or any(
        event.kind in meant and (event.concerns(optimizer) or event.concerns(schedule.thing))
        for event in run.events[:place]
    ):
        return None
    return next((step for step in updates if step.loops and run.events.index(step) > place), None)


def _update_behind_in_call(run: Run, schedule: Event) -> Event | None:
    """The optimizer's step behind a scheduler's in a method that nobody in sight calls: whoever does, calls it again.

    Both are kept by the object, and none of its other methods steps the optimizer, which may have come first.
    """
    function, scheduler = run.frame.function, schedule.thing
    assert scheduler is not None
    if (
        function is None
        or function.name == "__init__"
        or not all(isinstance(root, ClassInfo) for root in scheduler.roots)
    ):
        return None
    place = run.events.index(schedule)
    if not any(event.kind in UPDATES for event in run.events[place:]):
        return None
    updates = steps_of_optimizer(run, scheduler)
    behind = [step for step in updates if run.events.index(step) > place]
    if not behind or len(behind) < len(updates) or not _is_settled(schedule, behind[0], None) or _is_chained(schedule):
        return None
    optimizer = behind[0].thing
    if optimizer is None or len(optimizer.path) != 1 or not _steps_here_only(run, behind[0]):
        return None
    touching = (Kind.UNKNOWN, Kind.LOAD, Kind.SCHEDULE)
    is_touched = any(
        event.kind in touching and (event.concerns(optimizer) or event.concerns(scheduler))
        for event in run.events[:place]
    )
    return None if is_touched else behind[0]


def _steps_here_only(run: Run, step: Event) -> bool:
    """Whether the methods of an object step what a step of a run is called on nowhere but in that run."""
    model, path = step.frame.model, dotted_path(step.node.func) if isinstance(step.node, cst.Call) else None
    known = {id(event.node) for event in run.events}
    roots = step.thing.roots if step.thing is not None else ()
    owners = {id(info) for root in roots if isinstance(root, ClassInfo) for info in root.lineage}
    others = (call for call in model.calls_by_word.get("step", ()) if dotted_path(call.func) == path)
    around = (function_around(model, call) for call in others if id(call) not in known)
    return path is not None and not any(
        info is not None and info.owner is not None and any(id(item) in owners for item in info.owner.lineage)
        for info in around
    )


def _loop_around(schedule: Event) -> Loop | None:
    """The loop in every round of which a scheduler steps: not the one over a list of schedulers that it is in."""
    loops, scheduler = list(schedule.loops), schedule.thing
    if loops and scheduler is not None and scheduler.path[-1:] == (EVERY,):
        inner = loops[-1]
        if isinstance(inner.node, cst.For) and inner.frame.thing(inner.node.iter) == Thing(
            scheduler.roots, scheduler.path[:-1]
        ):
            loops.pop()
    return loops[-1] if loops else None


def _is_settled(schedule: Event, step: Event, loop: Loop | None) -> bool:
    """Whether a scheduler steps in every round, in those in which its optimizer does, or in all or none of them."""
    theirs = [(around.step, around.arm) for around in step.around]
    return all(
        (around.step, around.arm) in theirs or stays(around.step)
        for around in (schedule.around if loop is None else schedule.within(loop))
        if isinstance(around.step, (Branches, Attempt))
    )


def _paths(run: Run, schedule: Event, optimizer: Thing, loop: Loop) -> Paths[str]:
    behind = set(run.events[run.events.index(schedule) :])

    def advance(state: str, event: Event) -> str:
        if event is schedule:
            return _PASSED
        if state != _FRESH:
            return state
        if event.kind in (*UPDATES, Kind.UNKNOWN) and event.concerns(optimizer):
            # Behind it in the loop, and it was not there: it never is.
            return _PASSED if event in behind and loop in event.loops else _UPDATED
        if event.kind is Kind.LOAD and (event.concerns(optimizer) or event.concerns(schedule.thing)):
            return _LOADED
        is_schedule = event.kind is Kind.SCHEDULE and event.concerns(schedule.thing)
        is_elsewhere = is_schedule and (is_on_another_way(event, schedule) or _catches_up(event, schedule))
        return _UPDATED if is_schedule and not is_elsewhere else state

    # Where a round makes the optimizer, each begins anew: the folds of a cross-validation.
    anew = [outer for outer in schedule.loops if is_made_in(outer, schedule, optimizer)]
    return Paths(anew[-1].body if anew else run.steps, _FRESH, advance)


def _catches_up(event: Event, schedule: Event) -> bool:
    """Whether a step of a scheduler stands in a loop of its own that brings it to where a training was left.

    A training that begins has no rounds of that behind it: ``for _ in range(start): scheduler.step()``.
    """
    loop = event.loops[-1] if event.loops else None
    if loop is None or loop in schedule.loops or any(item.kind is not Kind.SCHEDULE for item in events(loop.body)):
        return False
    call = loop.node.iter if isinstance(loop.node, cst.For) else None
    bounds = call.args if isinstance(call, cst.Call) and last_word(call.func) == "range" else ()
    return bool(bounds) and integer_literal(bounds[-1].value) is None


def _is_chained(schedule: Event) -> bool:
    """Whether a scheduler may be one of warm-up, whose first value may be meant to be skipped, or one that goes on."""
    made = constructions_of(schedule.frame, schedule.thing)
    return any(_warms_up(item) for item in made) or all(_goes_on(item, schedule) for item in made)


def _goes_on(made: Made, schedule: Event) -> bool:
    """Whether a scheduler is told where an earlier training was left.

    Not the round before the first one of the loop: it sets the rate of that itself when it is made, as always.
    """
    last = argument(made.call, None, "last_epoch")
    if last is None or integer_literal(last.value) == -1:
        return False
    match last.value:
        case cst.BinaryOperation(operator=cst.Subtract(), left=begin, right=cst.Integer(value="1")):
            return not any(_begins_at(loop, begin, made) for loop in schedule.loops)
    return True


def _begins_at(loop: Loop, begin: cst.BaseExpression, made: Made) -> bool:
    """Whether a loop counts its rounds from a number on: ``for epoch in range(begin, 90)``."""
    call = loop.node.iter if isinstance(loop.node, cst.For) else None
    if not isinstance(call, cst.Call) or last_word(call.func) not in _COUNTING or len(call.args) < 2:
        return False
    is_here = loop.frame.scope is made.frame.scope
    return is_here and fingerprint(call.args[0].value) == fingerprint(begin)


def _warms_up(made: Made) -> bool:
    value = made.frame.value(made.call)
    if isinstance(value, Instance):
        # A step or a beginning of its own may do anything, and a function that its class gives may begin with zero.
        is_of_function = any(base.rpartition(".")[2] in _OF_FUNCTION for base in value.definition.library_bases)
        return is_of_function or any(own_method(value, name) is not None for name in ("step", "_initial_step"))
    last = value.name.rpartition(".")[2] if isinstance(value, Object) else ""
    if last in _OF_FUNCTION:
        given = argument(made.call, 1, "lr_lambda")
        return given is None or not begins_above_zero(made, given.value)
    if last == "LinearWarmup":
        given = argument(made.call, 2, "start_lr")
        return given is None or not is_above_zero(made, given.value)
    return last == "SequentialLR" or last.endswith("_warmup")


# What is read of a scheduler that is of no use to whoever goes on with the training.
_LOOKED_AT = frozenset({"get_lr", "get_last_lr", "last_epoch", "last_lr", "base_lrs", "print_lr"})
_OF_TRAINING = (*UPDATES, Kind.BACKWARD, Kind.SCHEDULE, Kind.LOAD)


def steps_too_late(model: "Model", call: cst.Call) -> bool:
    """Whether a scheduler's only step stands behind the loops in which its optimizer steps, and nobody goes on.

    Both are made in the body in which it steps, so that each call of that begins anew.
    """
    stepped = called_on(call)
    if not isinstance(stepped, cst.Name) or _is_in_part_of_body(model, call):
        return False
    schedulers = model.reaching(stepped)
    optimizers = [_optimizer_of(model, call, binding) for binding in schedulers]
    if not schedulers or is_in_a_test(model, call):
        return False
    if not all(item is not None and _is_done_with(model, call, item) for item in optimizers):
        return False
    if not all(_is_stepped_only_here(model, stepped, binding) for binding in schedulers):
        return False
    return not _may_be_left_before(model, call) and model.runs.always(call, _is_over)


def _is_in_part_of_body(model: "Model", call: cst.Call) -> bool:
    """Whether a call stands in a loop, or on one of several ways."""
    scope = model.scope_of(call)
    for ancestor in model.tree.ancestors(call):
        if ancestor is scope.node:
            return False
        if isinstance(ancestor, (cst.For, cst.While, cst.If, cst.Try, cst.TryStar, cst.IfExp, cst.Match)):
            return True
    return False


def _optimizer_of(model: "Model", step: cst.Call, scheduler: Binding) -> Binding | None:
    """What the optimizer is bound to whose rate a scheduler sets, where both are made in the body of its step."""
    made = scheduler.value
    if not isinstance(made, cst.Call) or not _is_made_in_body(model, step, scheduler, "scheduler"):
        return None
    if model.framework == "paddle":
        found = [_made_with(model, use) for use in uses(model, scheduler)]
        bindings = [binding for binding in found if binding is not None]
    else:
        given = argument(made, 0, "optimizer")
        bindings = [] if given is None or not isinstance(given.value, cst.Name) else list(model.reaching(given.value))
    is_known = len(bindings) == 1 and _is_made_in_body(model, step, bindings[0], "optimizer")
    return bindings[0] if is_known else None


def _is_made_in_body(model: "Model", step: cst.Call, binding: Binding, kind: str) -> bool:
    is_bound = binding.kind is BindingKind.ASSIGN and not binding.path and "." not in binding.key
    if not is_bound or binding.value is None or not is_object(model.value(binding.value), kind):
        return False
    is_here = binding.scope is model.scope_of(step) and binding.key not in binding.scope.outer_names
    # What a module makes any file may import that mentions it.
    return is_here and (binding.scope.is_function or not any(True for _ in model.importers(binding.key)))


def _made_with(model: "Model", use: cst.BaseExpression) -> Binding | None:
    """What the optimizer of Paddle is bound to that is made with a scheduler."""
    call = model.tree.call_given(use)
    statement = None if call is None else model.tree.parent(call)
    given = None if call is None else argument(call, 0, "learning_rate")
    if given is None or given.value is not use or not isinstance(statement, cst.Assign):
        return None
    bound = bound_by(model, statement)
    return bound[0] if len(bound) == 1 else None


def _is_stepped_only_here(model: "Model", stepped: cst.Name, scheduler: Binding) -> bool:
    """Whether nothing else is done with a scheduler but to look at it, and to make an optimizer of Paddle with it."""
    return all(
        use is stepped
        or (isinstance(parent := model.tree.parent(use), cst.Attribute) and parent.attr.value in _LOOKED_AT)
        or (model.framework == "paddle" and _made_with(model, use) is not None)
        for use in uses(model, scheduler)
    )


def _is_done_with(model: "Model", step: cst.Call, optimizer: Binding) -> bool:
    """Whether nobody asks for an optimizer behind the scheduler's step, nor from another body: its state is not saved,
    its learning rate is not shown.
    """
    scope = model.scope_of(step)
    return all(model.scope_of(use) is scope and is_above(scope, use, step) for use in uses(model, optimizer))


def _may_be_left_before(model: "Model", step: cst.Call) -> bool:
    """Whether a body may end before its scheduler steps, or stops somewhere for somebody else to go on."""
    function, scope = model.enclosing_function(step), model.scope_of(step)
    if function is None:
        return False
    yields = (item for item in model.tree.by_type.get(cst.Yield, ()) if model.enclosing_function(item) is function)
    return any(True for _ in yields) or any(is_above(scope, item, step) for item in scope.returns)


def _is_over(occurrence: Occurrence) -> bool:
    """Whether the optimizer has stepped in loops, and nothing is trained behind the scheduler's step."""
    run, schedule = occurrence.run, occurrence.event
    if schedule.kind is not Kind.SCHEDULE or schedule.thing is None or run.is_cut or schedule.loops:
        return False
    updates = steps_of_optimizer(run, schedule.thing)
    place = run.events.index(schedule)
    if not updates or any(not step.loops or run.events.index(step) > place for step in updates):
        return False
    if not any(event.kind is Kind.BACKWARD and event.loops for event in run.events[:place]):
        return False
    return not any(_may_go_on(event, updates[0]) for event in run.events[place + 1 :])


def _may_go_on(event: Event, update: Event) -> bool:
    """Whether an event behind the training is one of a training that goes on."""
    return event.kind in _OF_TRAINING or (event.kind is Kind.UNKNOWN and event.concerns(update.thing))
