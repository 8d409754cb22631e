"""Modules that a switch in a training loop leaves in evaluation mode for good."""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.semantic.events.made_anew import is_made_in, makes_anew
from mllint.semantic.events.steps import Branches, Event, Kind, Loop, events
from mllint.semantic.events.things import Thing
from mllint.semantic.names.conditions import parts_of_test
from mllint.semantic.training.holders import was_made_with
from mllint.semantic.training.loaded_weights import sources_of_state
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.rates import rounds_of
from mllint.semantic.training.runs import Run
from mllint.semantic.training.touched import may_switch_unseen
from mllint.semantic.training.training_modes import (
    COMPUTES,
    SWITCHES,
    UPDATES,
    covers,
    is_one,
    is_trained,
    is_updated_in,
    mode_matters,
    records_graph,
    training_forwards,
)
from mllint.syntax.shape import constant, dotted_path
from mllint.syntax.walk import names_in, subtree

_State = tuple[Event | None, bool | None]
"""The last switch to evaluation that still holds, and whether the module was called since, but not to be trained, or
saved before it was trained: then the switch was meant for that. ``None``: it was trained first.
"""


def trained_in_evaluation_mode(run: Run, switch: Event) -> Event | None:
    """The forward pass that trains a module which a switch in the same loop has left in evaluation mode for good."""
    module = switch.thing
    if switch.kind is not Kind.EVAL or module is None or run.is_cut:
        return None
    trained = [event for event in training_forwards(run) if event.thing is not None and covers(module, event.thing)]
    loop, inside = _common_loop(switch, trained)
    if loop is None or not is_updated_in(loop, module) or _may_be_switched_back(loop, switch):
        return None
    if _is_overwritten(run, loop, module):
        return None
    if all(_hangs_on_mode(event) for event in events(loop.body) if event.kind in COMPUTES):
        return None
    if (
        rounds_of(loop) == 1
        or _is_in_last_round(loop, switch)
        or is_made_in(loop, switch, module)
        # Who calls `eval()` takes the mode to matter, unless it surely does not.
        or all(mode_matters(event, run, if_asked=True) is False for event in inside)
    ):
        return None
    paths: Paths[_State] = run.derived(("left in evaluation", module), partial(_left_paths, run, module))
    called = (True, False, None) if _comes_last(loop, switch, inside) else (True,)
    left: set[_State] = {(switch, is_called) for is_called in called}
    for event in inside:
        states = paths.before(event)
        # What was in evaluation mode before the loop began is trained like that on purpose.
        if not left.isdisjoint(states) and all(last is None or loop in last.loops for last, _ in states):
            return event
    return None


def _is_overwritten(run: Run, loop: Loop, module: Thing) -> bool:
    """Whether a loop puts the weights of another module, which is trained, into one: so the network of a target gets
    them, and is never trained itself.
    """
    loads = (event for event in events(loop.body) if event.kind is Kind.LOAD and event.thing is not None)
    of_others = (sources_of_state(load) for load in loads if load.thing is not None and covers(load.thing, module))
    return any(not is_one(item, module) and is_trained(run, item) for others in of_others for item in others)


def _comes_last(loop: Loop, switch: Event, trained: list[Event]) -> bool:
    """Whether a switch comes behind all that trains in a round, so that the first round is trained in another mode.

    It need not be called for anything then: the critic, say, when the generator is looked at.
    """
    order = list(events(loop.body))
    training = [order.index(item) for item in order if item.kind in (*COMPUTES, *UPDATES) or item in trained]
    is_every_time = not any(isinstance(around.step, Branches) for around in switch.within(loop))
    return is_every_time and bool(training) and max(training) < order.index(switch)


def _common_loop(switch: Event, trained: list[Event]) -> tuple[Loop | None, list[Event]]:
    """The innermost loop around a switch in which some forward passes happen too, and these."""
    for loop in reversed(switch.loops):
        inside = [event for event in trained if loop in event.loops]
        if inside:
            return loop, inside
    return None, []


def _may_be_switched_back(loop: Loop, switch: Event) -> bool:
    module, inside = switch.thing, list(events(loop.body))
    later = inside[inside.index(switch) :]
    for event in inside:
        if event.kind in (Kind.TRAIN, Kind.SET_MODE) and event.concerns(module):
            if event.kind is not Kind.TRAIN or event not in later or not _hangs_on_outcome(event, switch):
                return True
        elif event.kind is Kind.TRAIN and event.thing is not None and module is not None:
            if was_made_with(event.thing, module) or was_made_with(module, event.thing):
                return True  # what holds it, a network together with its loss, or what it holds: a network in a wrapper
        elif may_switch_unseen(event, module):
            return True
    return False


def _is_in_last_round(loop: Loop, switch: Event) -> bool:
    """Whether a switch comes in one round alone, which may be the last: ``if epoch == epochs - 1:``."""
    counted = names_in(loop.node.target) if isinstance(loop.node, (cst.For, cst.CompFor)) else set()
    branches = [around.step for around in switch.within(loop) if isinstance(around.step, Branches) and around.arm == 0]
    tests = (item.node.test for item in branches if isinstance(item.node, cst.If))
    compared = (part for test in tests for part in parts_of_test(test) if isinstance(part, cst.Comparison))
    return any(
        _is_length_divided(part)
        or (
            (isinstance(part.comparisons[0].operator, cst.Equal) or _is_past_last_but_one(part))
            and constant(part.comparisons[0].comparator) is ...
            and not any(isinstance(item, cst.Modulo) for item in _operators(part))
        )
        for part in compared
        if not counted.isdisjoint(names_in(part))
    )


def _is_length_divided(test: cst.Comparison) -> bool:
    """``(step + 1) % len(loader) == 0``; ``step % len(loader) == 0`` is so in the first round."""
    left = test.left
    if not isinstance(left, cst.BinaryOperation) or not isinstance(left.operator, cst.Modulo):
        return False
    is_next = isinstance(left.left, cst.BinaryOperation) and isinstance(left.left.operator, cst.Add)
    return is_next and isinstance(left.right, cst.Call) and dotted_path(left.right.func) == "len"


def _is_past_last_but_one(test: cst.Comparison) -> bool:
    """``epoch >= epochs - 1``, ``epoch + 1 >= epochs``."""
    is_past = isinstance(test.comparisons[0].operator, cst.GreaterThanEqual)
    return is_past and any(isinstance(item, (cst.Add, cst.Subtract)) for item in _operators(test))


def _operators(test: cst.BaseExpression) -> Iterator[cst.BaseBinaryOp]:
    return (item.operator for item in subtree(test) if isinstance(item, cst.BinaryOperation))


def _hangs_on_outcome(event: Event, switch: Event) -> bool:
    """Whether an event behind a switch comes only where something is more or less than something: the best score."""
    shared = [(around.step, around.arm) for around in switch.around]
    return any(
        isinstance(around.step, Branches) and (around.step, around.arm) not in shared and _is_ordering(around.step.node)
        for around in event.around
    )


def _hangs_on_mode(event: Event) -> bool:
    """Whether an event comes only in one mode of a module: ``if self.training: loss.backward()``."""
    tests = (getattr(around.step.node, "test", None) for around in event.around if isinstance(around.step, Branches))
    names = (item for test in tests if test is not None for item in subtree(test) if isinstance(item, cst.Attribute))
    return any(name.attr.value == "training" for name in names)


def _is_ordering(node: cst.CSTNode) -> bool:
    test = node.test if isinstance(node, cst.If) else None
    kinds = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
    return isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, kinds)


def _left_paths(run: Run, module: Thing) -> Paths[_State]:
    training = set(training_forwards(run))
    training |= _beside(run, training)

    def advance(state: _State, event: Event) -> _State:
        if event.kind in SWITCHES and event.thing is not None and covers(event.thing, module):
            return (event, False) if event.kind is Kind.EVAL else (None, False)
        if state[0] is None:
            return state
        if event.kind is Kind.FORWARD and is_one(event.thing, module):
            is_training = event in training
            return (state[0], state[1] or None if is_training else True)
        if event.kind is Kind.SAVE and state[1] is False and _saves(event, module):
            return (state[0], True)
        return state

    return Paths(run.steps, (None, False), advance, partial(makes_anew, thing=module))


def _beside(run: Run, training: set[Event]) -> set[Event]:
    """The forward passes that come right before those that train, on the same way: the loss may be made of both."""
    found, waiting = set[Event](), list[Event]()
    for event in run.events:
        if event.kind in (*COMPUTES, *UPDATES):
            waiting.clear()
        elif event in training:
            found.update(item for item in waiting if _way(item) == _way(event) and is_one(item.thing, event.thing))
        elif event.kind is Kind.FORWARD and records_graph(event) is not False:
            waiting.append(event)
    return found


def _way(event: Event) -> list[tuple[object, object]]:
    return [(around.step, around.arm) for around in event.around]


def _saves(save: Event, module: Thing) -> bool:
    """Whether a module, or what it gives, is written to a file: ``torch.save(net.state_dict(), path)``."""
    given = save.node.args[:1] if isinstance(save.node, cst.Call) else ()
    named = (item for arg in given for item in subtree(arg.value) if isinstance(item, (cst.Name, cst.Attribute)))
    return any(is_one(save.frame.thing(item), module) for item in named)
