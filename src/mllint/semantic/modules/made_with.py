"""What the constructors of the parts of a module are given, and which parts they leave out then."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.given import truth
from mllint.semantic.events.things import Frame
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.definitions import ClassInfo

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
