"""Gradients that are meant to add up over several rounds, and are cleared or clipped in every one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.kinds import kind_of
from mllint.semantic.events.owners import updates
from mllint.semantic.events.steps import (
    UPDATES,
    Around,
    Attempt,
    Branches,
    Event,
    Helper,
    Kind,
    Leave,
    Loop,
    Step,
    Within,
    events,
)
from mllint.semantic.training.cleared_early import clears_before_step
from mllint.semantic.training.guards import (
    counts_rounds,
    divisors,
    exclude_each_other,
    is_on_another_way,
    is_setting,
    is_test_for_multiple,
)
from mllint.semantic.training.nearby import steps_in_every_round
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.rates import rounds_of
from mllint.semantic.training.runs import Occurrence
from mllint.syntax.shape import called_on, fingerprint
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def step_in_some_rounds(model: "Model", call: cst.Call) -> Event | None:
    """The step, taken only in some rounds, of an optimizer whose gradients a call clears in every round."""
    return _step_of(model, call, lambda item: _step_in_some_rounds(item) or _step_behind_rounds(item))


def step_counted_further_out(model: "Model", call: cst.Call) -> Event | None:
    """The step, meant for every n-th round, whose test counts the rounds of a loop further out, of an optimizer whose
    gradients a call clears in every round: it is taken in all rounds, or in none. The loss is divided by n.
    """
    if not any(isinstance(item.operator, cst.Modulo) for item in model.tree.by_type.get(cst.BinaryOperation, ())):
        return None  # no test asks for every n-th of anything
    return _step_of(model, call, lambda item: _step_in_some_rounds(item, _is_counted_further_out))


def _step_of(model: "Model", call: cst.Call, step_in: Callable[[Occurrence], Event | None]) -> Event | None:
    found: Event | None = None
    for occurrence in () if steps_in_every_round(model, call) else model.runs.each(call, by_hand=True):
        step = step_in(occurrence) if occurrence.event.kind is Kind.ZERO else None
        if step is None:
            return None
        found = step
    return None if found is None or next(clears_before_step(model, call), None) else found


def _is_counted_further_out(event: Event, loop: Loop) -> bool:
    """Whether an event stands under ``number % n == 0``, which a loop further out counts, and a round divides by n."""
    outer = event.loops[: event.loops.index(loop)]
    tests = (around.step for around in event.within(loop) if around.arm == 0 and isinstance(around.step, Branches))
    return any(
        is_test_for_multiple(step)
        and not any(step.arms[1:])
        and any(counts_rounds(step, other) for other in outer)
        and not counts_rounds(step, loop)
        and _divides_by(_round_around(step, loop), divisors(step)[0])
        for step in tests
    )


def _round_around(step: Branches, loop: Loop) -> cst.CSTNode:
    """The code of a round around branches: the loop, or the function that it calls."""
    function = step.frame.function
    return loop.node if step.frame is loop.frame or function is None else function.node


def _divides_by(code: cst.CSTNode, number: cst.BaseExpression) -> bool:
    """Whether anything in some code is divided by a number that stands there as it does here."""
    for node in subtree(code):
        match node:
            case cst.BinaryOperation(operator=cst.Divide(), right=by):
                pass
            case cst.AugAssign(operator=cst.DivideAssign(), value=by):
                pass
            case _:
                continue
        if fingerprint(by) == fingerprint(number):
            return True
    return False


def _step_in_some_rounds(
    occurrence: Occurrence, is_counted: Callable[[Event, Loop], bool] | None = None
) -> Event | None:
    is_counted = is_counted or happens_in_some_rounds
    run, zero = occurrence.run, occurrence.event
    loop = zero.loops[-1] if zero.loops else None
    if run.is_cut or loop is None or zero.thing is None or not _happens_in_all_rounds(zero, loop):
        return None
    if happens_in_some_rounds(zero, loop):
        return None
    inside = tuple(event for event in events(loop.body) if not is_on_another_way(event, zero))
    steps = [event for event in inside if event.kind in UPDATES]
    if not all(_stands_with(event, zero) for event in steps):
        return None
    mine = [event for event in steps if event.thing == zero.thing or _may_update(zero, event)]
    if not mine or any(event.thing is None for event in steps) or _take_turns(steps):
        return None
    if len({event.thing for event in mine}) != 1:
        return None
    if any(event.kind is Kind.UNKNOWN and event.concerns(mine[0].thing) for event in inside):
        return None
    if not _computes_in_every_round(loop) or any(event.loops[-1] is not loop for event in steps):
        return None
    return mine[0] if all(is_counted(event, loop) for event in steps) else None


def _happens_in_all_rounds(zero: Event, loop: Loop) -> bool:
    """Whether an event happens in every round, or in every one in which a setting is as it is: ``if self.amp``.

    Also where something may interrupt the round.
    """
    if zero.happens_in_every_round(loop):
        return True
    return all(
        isinstance(around.step, (Helper, Within))
        or (isinstance(around.step, Branches) and is_setting(around.step))
        or _is_tried(around)
        for around in zero.within(loop)
    )


def _is_tried(around: Around) -> bool:
    """Whether an event stands in the body of a ``try``: every round that nothing interrupts comes by."""
    return isinstance(around.step, Attempt) and around.arm == 0


def _stands_with(step: Event, zero: Event) -> bool:
    """Whether a step is taken under all the settings under which gradients are cleared: none says how many rounds.

    And in the body of the same ``try``.
    """
    ways = {around.step: around.arm for around in step.around}
    return all(
        ways.get(around.step) == around.arm for around in zero.around if isinstance(around.step, (Branches, Attempt))
    )


def _step_behind_rounds(occurrence: Occurrence) -> Event | None:
    """The step behind a loop, within another, that has only the gradients of the last round.

    Rounds that are left early try something out, and whoever reads `grad` may have kept what is cleared. A step in the
    rounds themselves is another way to train, where a setting decides between the two.
    """
    run, zero = occurrence.run, occurrence.event
    if run.is_cut or len(zero.loops) < 2 or zero.thing is None or not zero.happens_in_every_round(zero.loops[-1]):
        return None
    outer, loop = zero.loops[-2:]
    if not isinstance(loop.node, cst.For) or rounds_of(loop) == 1:
        return None
    if any(isinstance(node, (cst.Break, cst.Return)) for node in subtree(loop.node.body)):
        return None
    inside, around = tuple(events(loop.body)), tuple(events(outer.body))
    if any("grad" in event.frame.model.names_by_word for event in inside):
        return None
    if happens_in_some_rounds(zero, loop) or not _computes_in_every_round(loop):
        return None
    behind = around[around.index(inside[-1]) + 1 :] if inside[-1] in around else ()
    step = next((event for event in behind if event.kind in _CHANGES or _may_use(event, zero)), None)
    if step is None or step.loops != zero.loops[:-1] or step.kind not in UPDATES or step.thing is None:
        return None
    if any(event.kind in UPDATES and not exclude_each_other(event, step) for event in inside):
        return None
    return step if step.thing == zero.thing or _may_update(zero, step) else None


def step_of_more_rounds(model: "Model", clip: cst.CSTNode) -> Event | None:
    """The step, taken only in some rounds, of gradients that a call clips in every round, before all have added some.

    Where they are cleared in every round, too, nothing adds up (ML303).
    """
    found: Event | None = None
    asked = isinstance(clip, cst.Call) and not steps_in_every_round(model, clip)
    for occurrence in model.runs.each(clip, by_hand=True) if asked else ():
        step = _step_of_more_rounds(occurrence) if occurrence.event.kind is Kind.CLIP else None
        if step is None:
            return None
        found = step
    return found


def _step_of_more_rounds(occurrence: Occurrence) -> Event | None:
    run, clip = occurrence.run, occurrence.event
    loop = clip.loops[-1] if clip.loops else None
    if run.is_cut or loop is None or not _happens_in_all_rounds(clip, loop) or happens_in_some_rounds(clip, loop):
        return None
    inside = tuple(event for event in events(loop.body) if not is_on_another_way(event, clip))
    steps = [event for event in inside if event.kind in UPDATES]
    if not steps or any(event.thing is None or event.loops[-1] is not loop for event in steps):
        return None
    if len({event.thing for event in steps}) > 1 or updates(clip.frame, steps[0].thing, clip.thing) is False:
        return None
    if any(_handles_gradients(event, clip, steps[0]) for event in inside) or not _computes_in_every_round(loop):
        return None
    counted = [event for event in inside if event.kind in (*UPDATES, Kind.ZERO)]
    before = inside[: inside.index(clip)]
    is_behind = any(event.kind is Kind.BACKWARD for event in before) and not any(event in before for event in steps)
    return steps[0] if is_behind and all(happens_in_some_rounds(event, loop) for event in counted) else None


def _handles_gradients(event: Event, clip: Event, step: Event) -> bool:
    """Whether an event changes gradients by hand, or may do something to them that cannot be looked into.

    Those that a scaler divides by its factor can be clipped where it does so alone, which ML306 says.
    """
    if event.kind is Kind.UNKNOWN:
        return event.concerns(step.thing) or event.concerns(clip.thing)
    return event.kind in (Kind.WRITE_GRADIENT, Kind.UNSCALE)


def _may_use(event: Event, zero: Event) -> bool:
    """Whether what cannot be looked into may do something with the gradients."""
    return event.kind is Kind.UNKNOWN and event.concerns(zero.thing)


_CHANGES = (*UPDATES, Kind.BACKWARD, Kind.ZERO, Kind.WRITE_GRADIENT)
"""What may give a step other gradients than the rounds before it left."""


def _computes_in_every_round(loop: Loop) -> bool:
    """Whether no way through a round leads past a ``backward()``."""
    paths = Paths(loop.body, start=False, advance=lambda state, event: state or event.kind is Kind.BACKWARD)
    return paths.end == {True}


def _may_update(zero: Event, step: Event) -> bool:
    """Whether the gradients that are cleared are those that a step uses."""
    owned = updates(zero.frame, step.thing, zero.thing)
    return owned is True or (owned is None and not _is_optimizer(zero))


def _is_optimizer(zero: Event) -> bool:
    receiver = called_on(zero.node)
    called = None if receiver is None else kind_of(zero.frame, receiver)
    return called is not None and called.kind == "optimizer"


def _take_turns(steps: list[Event]) -> bool:
    """Whether several optimizers step in different rounds, or one of them more often than another."""
    ways = {
        tuple((_asked_by(around.step), around.arm) for around in event.around if isinstance(around.step, Branches))
        for event in steps
    }
    return len({event.thing for event in steps}) > 1 and len(ways) > 1


def _asked_by(branches: Branches) -> tuple[int, object]:
    """What branches ask for: two that ask the same of a round, one behind the other, lead the same way."""
    node = branches.node
    return (id(branches.frame), fingerprint(node.test)) if isinstance(node, cst.If) else (0, id(branches))


def happens_in_some_rounds(event: Event, loop: Loop) -> bool:
    """Whether an event happens only in some rounds of a loop, by their number.

    It stands under a test that counts, of which another way has no such event, or behind one that begins the next
    round.
    """
    inner = event.within(loop)
    if any(_is_skipped_elsewhere(around, event.kind, loop) for around in inner):
        return True
    return _is_behind_next_round(event, inner, loop)


def _is_skipped_elsewhere(around: Around, kind: Kind, loop: Loop) -> bool:
    step = around.step
    if not isinstance(step, Branches) or not counts_rounds(step, loop):
        return False
    others = [arm for index, arm in enumerate(step.arms) if index != around.arm]
    return not any(event.kind is kind for arm in others for event in events(arm))


def _is_behind_next_round(event: Event, inner: tuple[Around, ...], loop: Loop) -> bool:
    """Whether a test in front of the event sends the other rounds on: in the body of the loop, or of a function that is
    called there and returns.
    """
    body, word = loop.body, "continue"
    for around in (*inner, None):
        first: Step = event if around is None else around.step
        for step in body:
            if step is first:
                break
            if isinstance(step, Branches) and counts_rounds(step, loop) and any(_ends(arm, word) for arm in step.arms):
                return True
        if isinstance(first, Helper):
            body, word = first.body, "return"
        elif isinstance(first, Within) or (around is not None and _is_tried(around) and isinstance(first, Attempt)):
            body = first.body
        else:
            return False
    return False


def _ends(arm: list[Step], word: str) -> bool:
    """Whether a way ends with a word that leaves the round: ``continue``, or ``return`` from a function."""
    last = arm[-1] if arm else None
    return isinstance(last, Leave) and last.word == word
