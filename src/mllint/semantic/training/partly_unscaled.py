"""An optimizer's own step, of which a test decides whether ``unscale_`` has been called before: else it is scaled."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.steps import Around, Branches, Event, Helper, Kind, Within
from mllint.semantic.events.things import Thing
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.guards import counts_rounds
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.scaling import is_idle, is_scaled, may_know_scaler, states_of
from mllint.semantic.training.unscaling import may_both_happen
from mllint.semantic.values import is_object
from mllint.syntax.shape import argument, constant, dotted_path, has_star_arguments, last_word, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 3


def steps_where_not_unscaled(model: "Model", step: cst.CSTNode) -> bool:
    """Whether an optimizer's own ``step()`` serves the ways with ``unscale_`` and those without."""
    return model.runs.always(step, _serves_both)


def _serves_both(occurrence: Occurrence) -> bool:
    run, step = occurrence.run, occurrence.event
    if run.is_cut or step.kind is not Kind.STEP or may_know_scaler(step):
        return False
    states = states_of(run, step)
    events = [state for state in states if isinstance(state, Event)]
    scaled = [state for state in events if is_scaled(state)]
    unscaled = [state for state in events if state.kind is Kind.UNSCALE and state.other is not None]
    if not scaled or not unscaled or len(scaled) + len(unscaled) < len(states):
        return False
    scaler = scaled[0].other
    if is_idle(run, scaler) or any(state.other != scaler for state in (*scaled, *unscaled)):
        return False
    return all(
        _decides_alone(call, step) and all(may_both_happen(backward, call) for backward in scaled) for call in unscaled
    ) and not any(_asks_for_scaler(way, scaler) for call in unscaled for way in _ways_apart(call, step))


def _ways_apart(event: Event, other: Event) -> list[Around]:
    """What stands around an event and not around another one."""
    pairs = itertools.zip_longest(event.around, other.around)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return [way for way in event.around[common:] if not isinstance(way.step, (Helper, Within))]


def _decides_alone(call: Event, step: Event) -> bool:
    """Whether nothing but tests, that are no tests of the round, decides about a call, and nothing about the step."""
    ways = _ways_apart(call, step)
    loop = call.loops[-1] if call.loops else None
    return (
        bool(ways)
        and not _ways_apart(step, call)
        and all(
            isinstance(way.step, Branches)
            and isinstance(way.step.node, cst.If)
            and (loop is None or not counts_rounds(way.step, loop))
            for way in ways
        )
    )


def _asks_for_scaler(way: Around, scaler: Thing | None) -> bool:
    """Whether a test may ask whether there is a scaler at all, or whether it is switched on."""
    assert isinstance(way.step, Branches)
    assert isinstance(way.step.node, cst.If)
    frame, test = way.step.frame, way.step.node.test
    made = _makings(scaler)
    if not made:
        return not _asks_for_amount(test)
    asked = set(_words(frame.model, test, _MAX_STEPS))
    assert scaler is not None
    if not asked.isdisjoint(_names_of(scaler)):
        return True
    for model, call in made:
        given = argument(call, 0 if model.framework == "paddle" else None, "enable") or argument(call, None, "enabled")
        if has_star_arguments(call):
            return True
        is_setting = given is not None and constant(given.value) is ...
        if is_setting and given is not None and not asked.isdisjoint(_words(model, given.value, _MAX_STEPS)):
            return True
    return False


def _asks_for_amount(test: cst.BaseExpression) -> bool:
    """Whether a test compares with a number, as nobody asks whether a scaler is used: ``clip > 0``."""
    orders = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
    return isinstance(test, cst.Comparison) and all(isinstance(item.operator, orders) for item in test.comparisons)


def _names_of(scaler: Thing) -> set[str]:
    words = {step.removeprefix(".") for step in scaler.path}
    return words | {root.key.rpartition(".")[2] for root in scaler.roots if isinstance(root, Binding)}


def _makings(scaler: Thing | None) -> "list[tuple[Model, cst.Call]]":
    """The calls that make a scaler; none where it may come from elsewhere."""
    bindings = [] if scaler is None else [item for root in scaler.roots for item in makers_of(root, scaler.path)]
    found: list[tuple[Model, cst.Call]] = []
    for binding in bindings:
        model = binding.scope.model
        if not is_object(model.binding_value(binding), "scaler") or not isinstance(binding.value, cst.Call):
            return []
        found.append((model, binding.value))
    return found


def _words(model: "Model", node: cst.BaseExpression, steps: int) -> Iterator[str]:
    """The last words of all that an expression asks for, and of what these are set to."""
    for part in subtree(node):
        match part:
            case cst.SimpleString():
                yield string_literal(part) or ""
            case cst.Attribute() | cst.Name() if not isinstance(model.tree.parent(part), cst.Attribute):
                yield last_word(part) or ""
                if steps > 0:
                    for home, value in _set_to(model, part):
                        yield from _words(home, value, steps - 1)


def _set_to(model: "Model", node: cst.Name | cst.Attribute) -> "Iterator[tuple[Model, cst.BaseExpression]]":
    """What a name, or an attribute of the object at hand, is bound to."""
    path, info = dotted_path(node), function_around(model, node)
    bindings: Iterable[Binding] = model.reaching(node)
    if isinstance(node, cst.Attribute) and info is not None and info.owner is not None:
        if path != f"{info.self_name}.{node.attr.value}":
            return
        bindings = info.owner.assignments(node.attr.value)
    for binding in bindings:
        if binding.kind is BindingKind.ASSIGN and binding.value is not None:
            yield binding.scope.model, binding.value
