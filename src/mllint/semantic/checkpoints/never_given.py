"""Lines that are reached only where a function is given something that no call of it gives.

``if scheduler is not None: scheduler.load_state_dict(checkpoint["scheduler"])`` of ``def load(path, scheduler=None)``,
which every script calls with a path alone: that the files have no such entry does no harm.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.names.conditions import parts_of_test, verdicts
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_never_given(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place is reached only with an argument that is left out by every call that is known, at least one."""
    tests = [part for test, holds in verdicts(model, node) if holds for part in parts_of_test(test)]
    return any(_is_left_out(model, asked) for test in tests if (asked := _asked_for(test)) is not None)


def _asked_for(test: cst.BaseExpression) -> cst.Name | None:
    """What a test asks for, whether it was given: ``scheduler is not None``, ``scheduler``."""
    match test:
        case cst.Name():
            return test
        case cst.Comparison(
            left=cst.Name() as asked,
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            return asked
    return None


def _is_left_out(model: "Model", asked: cst.Name) -> bool:
    bindings = [item for item in model.reaching(asked) if item.kind is not BindingKind.NARROWED]
    function = bindings[0].scope.node if len(bindings) == 1 else None
    if not isinstance(function, cst.FunctionDef) or bindings[0].kind is not BindingKind.PARAMETER:
        return False
    info, name = model.function_info(function), asked.value
    default = next((item.default for item in info.named_parameters if item.name.value == name), None)
    if default is None or dotted_path(default) != "None":
        return False
    calls = (*model.surroundings.calls_of(info), *model.surroundings.calls_elsewhere(info))
    given = [Route(Follower(caller), call, info).argument(name) for caller, call in calls]
    return bool(given) and all(item is not None and item[1] is default for item in given)
