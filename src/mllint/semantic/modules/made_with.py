"""What the constructors of the parts of a module are given, and which parts they leave out then."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import networks
from mllint.knowledge.facts import PADDLE_BUILDERS
from mllint.semantic.events.given import truth
from mllint.semantic.events.things import Frame
from mllint.semantic.modules.drop_rates import NOTHING
from mllint.semantic.names.conditions import conditions, is_in_another_branch, verdicts
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.values import Symbol
from mllint.syntax.shape import constant, fingerprint, last_statement, targets_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def making_run(model: "Model", call: cst.Call | None, made: ClassInfo, outer: Frame | None) -> Frame | None:
    """The run of the constructor of a class that a call in a file makes; ``outer`` is the one in which it stands."""
    constructor = made.method("__init__")
    if call is None or constructor is None:
        return None
    return Frame(constructor.model, constructor, outer or Frame(model), call)


def is_left_out(node: cst.CSTNode, run: Frame | None) -> bool:
    """Whether a run does not come by a place, given what it is given: not by ``else`` of ``if fixed:``."""
    return any(known is False for _, known in tests_met(node, run))


def tests_met(node: cst.CSTNode, run: Frame | None) -> Iterator[tuple[cst.BaseExpression, bool | None]]:
    """The tests before a place in the function that runs, and whether the run comes by them; ``None``: not known."""
    if run is None or run.function is None or run.model.enclosing_function(node) is not run.function.node:
        return
    for test, is_true in verdicts(run.model, node):
        known = truth(run, test)
        yield test, None if known is None else known is is_true


def may_be_left_out(model: "Model", node: cst.Call, run: Frame | None) -> bool:
    """Whether a setting decides that something is made, and not only which of several networks: ``if deep: net =
    resnet50()``, ``else: net = resnet18()``.
    """
    return _hangs_on_settings(model, node, run) and not _is_one_of_several(model, node)


def _is_one_of_several(model: "Model", node: cst.Call) -> bool:
    """Whether the same name is bound to something else that is made in another arm of a branch, or that is returned.

    Of ready-made networks, whichever; of layers the same one, in ``else``: one that is picked may have no mode.
    """
    called, function = model.value(node.func), model.enclosing_function(node)
    statement = model.tree.nearest(node, cst.Assign, cst.Return)
    if not isinstance(called, Symbol) or function is None or statement is None:
        return False
    is_network = (
        called.name in PADDLE_BUILDERS
        or called.name.startswith("torchvision.models.")
        or networks.makes_network(called.name)
    )
    branch = None if is_network else model.tree.nearest(statement, cst.If)
    if not is_network and not (isinstance(branch, cst.If) and isinstance(branch.orelse, cst.Else)):
        return False
    return any(
        is_in_another_branch(model, statement, other)
        and _binds_the_same(statement, other)
        and (is_network or model.value(other.value.func) == called)  # type: ignore[attr-defined]
        for other in subtree(function.body if branch is None else branch)
        if type(other) is type(statement) and isinstance(other.value, cst.Call)  # type: ignore[attr-defined]
    )


def _binds_the_same(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether two statements bind the same names, or both return."""
    pairs = zip(targets_of(one), targets_of(other), strict=False)
    return len(targets_of(one)) == len(targets_of(other)) and all(fingerprint(a) == fingerprint(b) for a, b in pairs)


def _hangs_on_settings(model: "Model", node: cst.CSTNode, run: Frame | None) -> bool:
    """Whether a place is reached only where a setting says so that is not known to: ``if norm == "batch":``."""
    function = model.enclosing_function(node)
    if function is None:
        return False
    parameters = {item.name.value: item for item in (*function.params.params, *function.params.kwonly_params)}
    said = {id(test) for test, is_met in tests_met(node, run) if is_met}
    asked = (test for test in conditions(model, node) if id(test) not in said and not _refuses(model, test))
    return any(_is_setting(test, parameters) for test in asked)


def _refuses(model: "Model", test: cst.BaseExpression) -> bool:
    """Whether nothing is made at all where a test turns out otherwise: ``if depth < 1: raise ValueError(depth)``."""
    branch = model.tree.parent(test)
    if not isinstance(branch, cst.If):
        return False
    other = branch.orelse.body if isinstance(branch.orelse, cst.Else) else None
    return any(isinstance(last_statement(body), cst.Raise) for body in (branch.body, other) if body is not None)


def _is_setting(test: cst.BaseExpression, parameters: dict[str, cst.Param]) -> bool:
    """Whether a test asks for nothing but parameters, or what they keep, and these do not pass it by default."""
    parts = list(subtree(test))
    names = {part.value for part in parts if type(part) is cst.Name}
    attributes = {part.attr.value for part in parts if type(part) is cst.Attribute}
    asked = [parameters[name] for name in names if name in parameters]
    if not asked or not names <= parameters.keys() | attributes | {"None", "True", "False"}:
        return False  # of what is made there, such as the last of several layers
    defaults = [None if item.default is None else constant(item.default) for item in asked]
    words = [constant(part) for part in parts if type(part) is cst.SimpleString]
    return bool(attributes) or not all(
        default in words if words else default not in (..., *NOTHING) for default in defaults
    )
