"""Under which conditions an event happens: what the tests around it say, and whether a test counts rounds."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

import libcst as cst

from mllint.semantic.events.entered import entered
from mllint.semantic.events.steps import Attempt, Branches, Event, Loop
from mllint.semantic.events.things import Frame
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Function
from mllint.syntax.shape import called_on, dotted_path, fingerprint, integer_literal, targets_of
from mllint.syntax.walk import subtree

_State = TypeVar("_State")

_MAX_STEPS = 4


def conditions(event: Event) -> dict[str, bool]:
    """What has to be true, or false, where an event happens, as it is written in the tests around it.

    Only what stays as it is from round to round.
    """
    known: dict[str, bool] = {}
    for around in event.around:
        if isinstance(around.step, Branches):
            is_first = around.arm == 0
            if is_first not in around.step.facts:
                around.step.facts[is_first] = tuple(_facts_of(around.step, is_first))
            known.update(around.step.facts[is_first])
    return known


def _facts_of(branches: Branches, is_first: bool) -> Iterator[tuple[str, bool]]:
    match branches.node:
        case cst.If(test=test) | cst.IfExp(test=test) if _stays(branches.frame, test):
            yield from _facts(test, is_first)
        case cst.BooleanOperation(left=left, operator=operator):
            yield from _facts(left, isinstance(operator, cst.And))


def stays(step: Branches | Attempt) -> bool:
    """Whether the same arm of branches runs in every round: the test asks what is there, ``scheduler is not None``."""
    node = step.node
    if not isinstance(step, Branches) or not isinstance(node, cst.If):
        return False
    compared = [item.operator for item in subtree(node.test) if isinstance(item, cst.ComparisonTarget)]
    if any(
        isinstance(item, (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)) for item in compared
    ):
        return False
    return _stays(step.frame, node.test)


def is_there_at_most(event: Event, loop: Loop) -> bool:
    """Whether nothing between a loop and a call decides about it but whether that is there of which it is a method:
    ``if scheduler is not None: scheduler.step()``.
    """
    holder = called_on(event.node) if isinstance(event.node, cst.Call) else None
    path = None if holder is None else dotted_path(holder)
    arms = [around for around in event.within(loop) if isinstance(around.step, (Branches, Attempt))]
    return path is not None and all(
        isinstance(around.step, Branches) and _asked((around.step, around.arm)) == {path: True} for around in arms
    )


def is_setting(step: Branches | Attempt) -> bool:
    """Whether a test asks for nothing that differs from round to round, nor for the number of a round of the caller."""
    node, frame = step.node, step.frame
    if not isinstance(step, Branches) or not isinstance(node, cst.If) or not _stays(frame, node.test):
        return False
    names = [item for item in subtree(node.test) if isinstance(item, cst.Name)]
    return not any(_loops_of(frame, name, _MAX_STEPS) for name in names)


def is_left_out(event: Event, other: Event, loop: Loop) -> bool:
    """Whether an event is left out in some of the rounds of a loop in which another one happens.

    It stands under a test that differs from round to round, and all such tests around the other one are around it, too.
    """
    mine, theirs = _varying(event, loop), _varying(other, loop)
    if any(item not in mine for item in theirs):
        return False
    return any(item not in theirs and not _is_implied(item, theirs) for item in mine)


def _varying(event: Event, loop: Loop) -> list[tuple[Branches, int]]:
    """The branches between a loop and an event that are not taken alike in every round, and the arms of them."""
    return [
        (around.step, around.arm)
        for around in event.within(loop)
        if isinstance(around.step, Branches) and (not is_setting(around.step) or _asks_for_own(around.step, loop))
    ]


def _asks_for_own(branches: Branches, loop: Loop) -> bool:
    """Whether a test asks for what a function binds anew whenever it is called, in each round of a loop around that."""
    function, test = branches.frame.function, getattr(branches.node, "test", None)
    if function is None or function is loop.frame.function or test is None:
        return False
    names = (item for item in subtree(test) if isinstance(item, cst.Name))
    bound = (binding for name in names for binding in branches.frame.model.reaching(name))
    return any(item.scope is function.scope and item.kind is not BindingKind.PARAMETER for item in bound)


def _is_implied(branches: tuple[Branches, int], outer: list[tuple[Branches, int]]) -> bool:
    """Whether all that a test asks for is known from tests further out, and nothing in it has been bound since."""
    asked = _asked(branches)
    known = {text: truth for item in outer for text, truth in _asked(item).items()}
    if not asked or not asked.items() <= known.items():
        return False
    bound = {name: bindings for item in outer for name, bindings in _bound_in(item)}
    return all(bound.get(name) == bindings for name, bindings in _bound_in(branches))


def _asked(branches: tuple[Branches, int]) -> dict[str, bool]:
    """What is true or false in an arm of a test, as it is written."""
    test = getattr(branches[0].node, "test", None)
    return {} if test is None else dict(_facts(test, branches[1] == 0))


def _bound_in(branches: tuple[Branches, int]) -> Iterator[tuple[str, frozenset[Binding]]]:
    """The names in a test, and what binds them there."""
    test = getattr(branches[0].node, "test", None)
    names = () if test is None else (item for item in subtree(test) if isinstance(item, cst.Name))
    for name in names:
        yield name.value, frozenset(branches[0].frame.model.reaching(name))


def _stays(frame: Frame, test: cst.BaseExpression) -> bool:
    """Whether a test comes out alike in every round: no variable in it is bound in a loop, and nothing is counted."""
    for node in subtree(test):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
            return False
        if isinstance(node, (cst.Name, cst.Attribute)) and _is_counted_up(frame, node):
            return False
        if isinstance(node, cst.Name):
            for binding in frame.model.reaching(node):
                tree = binding.scope.model.tree
                around = (binding.node, *tree.ancestors(binding.node))
                inside = itertools.takewhile(lambda item: not isinstance(item, cst.FunctionDef), around)
                if binding.kind is not BindingKind.PARAMETER and any(map(_is_loop, inside)):
                    return False
    return True


def _is_loop(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.For, cst.While, cst.CompFor))


def exclude_each_other(one: Event, other: Event) -> bool:
    """Whether no round has both events: one stands under ``if amp``, the other under ``if not amp``."""
    theirs = conditions(other)
    return any(theirs.get(key, truth) != truth for key, truth in conditions(one).items())


def not_excluded(states: Iterable[_State], event: Event) -> set[_State]:
    """Those of the states in which an event may find a run that stand on no way which excludes it."""
    return {state for state in states if not isinstance(state, Event) or not exclude_each_other(state, event)}


def is_on_another_way(event: Event, other: Event) -> bool:
    """Whether two events stand in different branches of a test that comes out alike in every round."""
    ways = {around.step: around.arm for around in other.around if isinstance(around.step, Branches)}
    return any(
        isinstance(around.step, Branches) and ways.get(around.step, around.arm) != around.arm and stays(around.step)
        for around in event.around
    )


def _facts(test: cst.BaseExpression, truth: bool) -> Iterator[tuple[str, bool]]:
    """The parts of a test that are known if the whole is. ``x is not None`` counts as ``x``."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield from _facts(inner, not truth)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            if isinstance(operator, cst.And) == truth:
                yield from _facts(left, truth)
                yield from _facts(right, truth)
            else:
                yield fingerprint(test), truth
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            negated = isinstance(operator, (cst.IsNot, cst.NotEqual, cst.NotIn))
            word = getattr(right, "value", None)
            if isinstance(operator, (cst.Is, cst.IsNot)) and word == "None":
                yield fingerprint(left), truth == negated
            elif isinstance(operator, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)) and word in ("True", "False"):
                yield fingerprint(left), (word == "True") == (truth != negated)
            else:
                relation = _POSITIVE.get(type(operator), type(operator)).__name__
                yield f"{fingerprint(left)} {relation} {fingerprint(right)}", truth != negated
        case _:
            yield fingerprint(test), truth


_POSITIVE: dict[type[cst.CSTNode], type[cst.CSTNode]] = {cst.IsNot: cst.Is, cst.NotEqual: cst.Equal, cst.NotIn: cst.In}


# -- guards of an accumulation -----------------------------------------------------------------------------------------


def counts_rounds(branches: Branches, loop: Loop) -> bool:
    """Whether one of the arms runs in some of the rounds of a loop, by their number: ``if (i + 1) % every == 0``.

    The number may be a counter that is counted up by hand, and the test a variable, an argument of the caller's, or a
    function of the project.
    """
    node = branches.node
    return isinstance(node, (cst.If, cst.IfExp)) and _counts(branches.frame, node.test, loop, _MAX_STEPS)


def is_seldom(event: Event, loop: Loop) -> bool:
    """Whether an event only happens in every tenth round of a loop, or so: under ``if i % 10 == 0``."""
    return any(
        isinstance(around.step, Branches)
        and around.arm == 0
        and isinstance(around.step.node, cst.If)
        and _asks_for_multiple(around.step.node.test)
        and counts_rounds(around.step, loop)
        for around in event.within(loop)
    )


def _asks_for_multiple(test: cst.BaseExpression) -> bool:
    """Whether a test is whether a number can be divided by another one, which is not one."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.BinaryOperation() as division):
            pass
        case cst.Comparison(
            left=cst.BinaryOperation() as division, comparisons=[cst.ComparisonTarget(operator=cst.Equal())]
        ):
            pass
        case _:
            return False
    return isinstance(division.operator, cst.Modulo) and integer_literal(division.right) != 1


def is_test_for_multiple(branches: Branches) -> bool:
    """Whether branches ask for nothing but whether a number can be divided by another one."""
    return isinstance(branches.node, cst.If) and _asks_for_multiple(branches.node.test)


def counts_to_length(branches: Branches) -> bool:
    """Whether a test asks for the last of as many rounds as something has elements, and for no others.

    That is ``(i + 1) % len(loader) == 0``, or ``i + 1 == len(loader)``.
    """
    test = getattr(branches.node, "test", None)
    return test is not None and all(_asks_for_last(branches.frame, way) for way in _ways(test))


def _ways(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The tests of which one has to come out true: those that stand on both sides of an ``or``."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        return [*_ways(test.left), *_ways(test.right)]
    return [test]


def _asks_for_last(frame: Frame, test: cst.BaseExpression) -> bool:
    compared = (part for part in subtree(test) if isinstance(part, cst.Comparison))
    sides = [side for part in compared for side in (part.left, *(item.comparator for item in part.comparisons))]
    return any(_is_length(frame, count) for count in (*_divisors(test), *sides))


def divisors(branches: Branches) -> list[cst.BaseExpression]:
    """What a test of the number of a round divides it by."""
    test = getattr(branches.node, "test", None)
    return [] if test is None else _divisors(test)


def _divisors(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    parts = (part for part in subtree(test) if isinstance(part, cst.BinaryOperation))
    return [part.right for part in parts if isinstance(part.operator, cst.Modulo)]


def _is_length(frame: Frame, count: cst.BaseExpression, steps: int = _MAX_STEPS) -> bool:
    """Whether the length of something goes into a number, also into one that a name is bound to."""
    names = [item for item in subtree(count) if isinstance(item, (cst.Name, cst.Attribute))]
    if any(isinstance(name, cst.Name) and name.value == "len" for name in names):
        return True
    sources = [
        frame.given(binding) or (frame, binding.value) for name in names for binding in frame.model.reaching(name)
    ]
    return steps > 0 and any(value is not None and _is_length(home, value, steps - 1) for home, value in sources)


def _counts(frame: Frame, test: cst.BaseExpression, loop: Loop, steps: int) -> bool:
    if steps <= 0:
        return False
    for node in subtree(test):
        match node:
            case cst.BinaryOperation(operator=cst.Modulo(), left=left):
                if not isinstance(left, (cst.BaseString, cst.BaseNumber)) and _changes(frame, left, loop, steps):
                    return True
            case cst.Comparison(left=cst.Name() | cst.Attribute() as left):
                if _is_counted_up(frame, left) and not _is_set_anew(frame, left, loop):
                    return True
            case cst.Name() if _is_flag(frame, node, loop, steps):
                return True
            case cst.Call():
                value = frame.value(node.func)
                if isinstance(value, Function) and _gives_count(frame, node, value, loop, steps):
                    return True
    return False


def _changes(frame: Frame, counted: cst.BaseExpression, loop: Loop, steps: int) -> bool:
    """Whether a number may differ from round to round; not that of a loop further out."""
    names = [node for node in subtree(counted) if isinstance(node, cst.Name)]
    fixed = [name for name in names if _is_number_of_other_loop(frame, name, loop, steps)]
    return not fixed or any(loop.node in _loops_of(frame, name, steps) for name in names)


def _is_number_of_other_loop(frame: Frame, name: cst.Name, loop: Loop, steps: int) -> bool:
    loops = _loops_of(frame, name, steps)
    return bool(loops) and loop.node not in loops


def _loops_of(frame: Frame, name: cst.Name, steps: int) -> list[cst.CSTNode]:
    """The loops of which a name is the variable, also as an argument of the caller's."""
    found: list[cst.CSTNode] = []
    for binding in frame.model.reaching(name):
        given = frame.given(binding) if steps > 0 else None
        if binding.kind is BindingKind.LOOP:
            tree = binding.scope.model.tree
            places = (binding.node, *tree.ancestors(binding.node))
            found += [node for node in places if isinstance(node, (cst.For, cst.CompFor))][:1]
        elif given is not None and isinstance(given[1], cst.Name):
            found += _loops_of(given[0], given[1], steps - 1)
    return found


def _is_counted_up(frame: Frame, node: cst.Name | cst.Attribute) -> bool:
    """Whether a name or attribute is added to somewhere: ``self.rounds += 1``."""
    path = dotted_path(node)
    additions = frame.model.tree.by_type.get(cst.AugAssign, ())
    return path is not None and any(dotted_path(statement.target) == path for statement in additions)


def _is_set_anew(frame: Frame, node: cst.Name | cst.Attribute, loop: Loop) -> bool:
    """Whether every round of a loop sets a counter before it is asked for: it counts what happens in that round."""
    body, path = getattr(loop.node, "body", None), dotted_path(node)
    scope = frame.model.scope_of(node)
    place = scope.place_of(node)
    for line in body.body if isinstance(body, cst.IndentedBlock) and place is not None else ():
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            is_set = isinstance(statement, cst.Assign) and path in map(dotted_path, targets_of(statement))
            there = scope.place_of(statement) if is_set and frame.model.scope_of(statement) is scope else None
            if there is not None and place is not None and there[1] < place[1]:
                return True
    return False


def _is_flag(frame: Frame, name: cst.Name, loop: Loop, steps: int) -> bool:
    """Whether a name stands for a test that counts: ``is_update = (i + 1) % every == 0``."""
    bindings = frame.model.reaching(name)
    if len(bindings) != 1:
        return False
    given = frame.given(bindings[0])
    if given is not None:
        return _is_test(given[1]) and _counts(*given, loop, steps - 1)
    value = bindings[0].value
    if bindings[0].kind is not BindingKind.ASSIGN or bindings[0].path or value is None:
        return False
    return _is_test(value) and _counts(frame, value, loop, steps - 1)


def _is_test(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Comparison() | cst.BooleanOperation() | cst.UnaryOperation() | cst.Call() | cst.Name():
            return True
        case cst.BinaryOperation(operator=cst.Modulo() | cst.BitAnd() | cst.BitOr()):
            return True
    return False


def _gives_count(frame: Frame, call: cst.Call, called: Function, loop: Loop, steps: int) -> bool:
    """Whether a function of the project gives a test that counts: ``self.is_update_step(i)``."""
    function = called.definition
    if frame.runs(function):
        return False
    inner = entered(frame, call, called)
    given = [node.value for node in subtree(function.node.body) if isinstance(node, cst.Return)]
    return any(value is not None and _counts(inner, value, loop, steps - 1) for value in given)
