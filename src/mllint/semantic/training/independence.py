"""Events under different tests: whether the tests have nothing to do with each other, so that both may hold."""

import itertools
from collections.abc import Iterator

import libcst as cst

from mllint.semantic.events.steps import Around, Branches, Event, Helper, Within
from mllint.semantic.events.things import Frame
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

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
