"""Calls of ``unscale_`` for gradients that are not scaled any more: a second one before ``update()`` raises.

Of two under different tests, where the tests have nothing to do with each other, so that both may hold.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.events.steps import Around, Branches, Event, Helper, Kind, Within, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.guards import exclude_each_other, is_left_out
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.scaling import is_idle
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Repeated = Literal["always", "in later rounds", "where both tests hold"]
"""When ``unscale_`` raises."""


def unscales_again(model: "Model", call: cst.CSTNode) -> Repeated | None:
    """When ``unscale_`` is called again, or after the step, before the scaler's ``update()``; ``None``: it is not."""
    runs = model.runs
    if runs.always(call, _unscales_twice):
        return "always"
    if runs.always(call, lambda item: _is_repeated(item.event) and item.event in _unscaled_before(item)):
        return "in later rounds"
    return "where both tests hold" if runs.always(call, _may_unscale_twice) else None


def _unscales_twice(occurrence: Occurrence) -> bool:
    states = _unscaled_before(occurrence)
    return bool(states) and None not in states and all(not _is_of_loop(item, occurrence.event) for item in states)


def _may_unscale_twice(occurrence: Occurrence) -> bool:
    """Whether another call comes before in the same round, under tests that say nothing of each other."""
    run, call = occurrence.run, occurrence.event
    if None not in _unscaled_before(occurrence):
        return False  # it is surely called before: whether that is right depends on more than the tests
    in_round = partial(_unscaling, run, call.thing, call.other, is_of_round=True)
    states = run.derived(("unscaling in a round", call.thing, call.other), in_round).before(call)
    return any(
        state is not None
        and state.kind is Kind.UNSCALE
        and state is not call
        and not _is_of_loop(state, call)
        and may_both_happen(state, call)
        for state in states
    )


def _unscaled_before(occurrence: Occurrence) -> set[Event | None]:
    """What may have been done before a call of ``unscale_``, since the scaler was updated; empty: nobody knows."""
    run, call = occurrence.run, occurrence.event
    if run.is_cut or call.kind is not Kind.UNSCALE or call.thing is None or call.other is None:
        return set()
    if is_idle(run, call.other):
        return set()
    paths = run.derived(("unscaling", call.thing, call.other), partial(_unscaling, run, call.thing, call.other))
    return {state for state in paths.before(call) if state is None or not exclude_each_other(state, call)}


def _is_of_loop(state: Event | None, call: Event) -> bool:
    """Whether the earlier of two calls stands in a loop over optimizers, which may mean another one in each round."""
    return state is not None and any(
        "[*]" in step for thing in (state.thing, call.thing) if thing for step in thing.path
    )


def _is_repeated(call: Event) -> bool:
    """Whether a call comes in rounds of a loop in which the scaler is not updated."""
    loop = call.loops[-1] if call.loops else None
    updates_ = [] if loop is None else [event for event in events(loop.body) if event.kind is Kind.UPDATE_SCALE]
    return loop is not None and bool(updates_) and all(is_left_out(event, call, loop) for event in updates_)


def _unscaling(
    run: Run, optimizer: Thing | None, scaler: Thing | None, *, is_of_round: bool = False
) -> Paths[Event | None]:
    """``is_of_round``: of what the rounds before have left nothing counts."""

    def advance(state: Event | None, event: Event) -> Event | None:
        match event.kind:
            case Kind.UNSCALE if event.thing == optimizer and event.other == scaler:
                return event
            case Kind.STEP if event.thing == optimizer and event.other == scaler:
                return event
            case Kind.UPDATE_SCALE if event.other is None or scaler is None or event.other.may_be(scaler):
                return None
            case Kind.MINIMIZE | Kind.LOAD:
                return None
            case Kind.UNKNOWN if event.concerns(scaler):
                return None
        return state

    return Paths(run.steps, None, advance, restarts=lambda _: is_of_round)


_MAX_STEPS = 3


def may_both_happen(earlier: Event, later: Event) -> bool:
    """Whether two events of a round stand under tests of which none says anything about the other.

    Each test asks for other things: names and attributes that nothing below the first of the tests changes, and no
    call is made, for what that gives may hang on anything. What no test stands around happens with the other one.
    """
    pairs = zip(earlier.around, later.around, strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    mine, theirs = earlier.around[common:], later.around[common:]
    if any(one.step is other.step for one in mine for other in theirs):
        return False
    asked, others = _asked(mine), _asked(theirs)
    if asked is None or others is None:
        return False
    changed = {path for around in mine if isinstance(around.step, Branches) for path in _changed_in(around.step)}
    return not any(_overlap(one, other) for one in others for other in asked | changed)


def _asked(ways: tuple[Around, ...]) -> set[str] | None:
    """What some tests ask for, as dotted paths; ``None`` where that cannot be told."""
    found: set[str] = set()
    for step in (way.step for way in ways):
        if isinstance(step, (Helper, Within)):
            continue
        if not isinstance(step, Branches) or not isinstance(step.node, cst.If):
            return None
        paths = _paths_in(step.frame, step.node.test, _MAX_STEPS)
        if paths is None:
            return None
        found |= paths
    return found


def _paths_in(frame: Frame, node: cst.BaseExpression, steps: int) -> set[str] | None:
    """The paths of all that an expression is computed from, variables and arguments followed."""
    match node:
        case cst.SimpleString() | cst.Integer() | cst.Float():
            return set()
        case cst.UnaryOperation(expression=inner):
            return _paths_in(frame, inner, steps)
        case cst.BooleanOperation(left=left, right=right) | cst.BinaryOperation(left=left, right=right):
            return _all_paths(frame, (left, right), steps)
        case cst.Comparison(left=left, comparisons=comparisons):
            return _all_paths(frame, (left, *(item.comparator for item in comparisons)), steps)
        case cst.Name():
            return _paths_of_name(frame, node, steps)
    path = dotted_path(node)
    return None if path is None else {path}


def _all_paths(frame: Frame, nodes: tuple[cst.BaseExpression, ...], steps: int) -> set[str] | None:
    found: set[str] = set()
    for node in nodes:
        paths = _paths_in(frame, node, steps)
        if paths is None:
            return None
        found |= paths
    return found


def _paths_of_name(frame: Frame, name: cst.Name, steps: int) -> set[str] | None:
    found = set() if name.value in ("None", "True", "False") else {name.value}
    for binding in frame.model.reaching(name):
        given = frame.given(binding)
        if given is None and binding.kind in (BindingKind.PARAMETER, BindingKind.LOOP):
            continue
        if given is None and binding.kind is not BindingKind.ASSIGN:
            return None
        home, value = given or (frame, binding.value)
        if value is None or binding.path or steps == 0:
            return None
        paths = _paths_in(home, value, steps - 1)
        if paths is None:
            return None
        found |= paths
    return found


def _changed_in(branches: Branches) -> Iterator[str]:
    """The paths that are bound below a test."""
    targets: list[cst.CSTNode] = []
    for node in subtree(branches.node):
        match node:
            case cst.Assign():
                targets += [target.target for target in node.targets]
            case cst.AugAssign() | cst.AnnAssign() | cst.NamedExpr():
                targets.append(node.target)
    for target in targets:
        for part in subtree(target):
            path = dotted_path(part) if isinstance(part, (cst.Name, cst.Attribute)) else None
            if path is not None:
                yield path


def _overlap(one: str, other: str) -> bool:
    """Whether two paths are one, or one of them is of what the other names."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
