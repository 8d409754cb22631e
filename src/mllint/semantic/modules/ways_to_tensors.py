"""Tensors that get into an attribute in a roundabout way: in place of nothing that was given, or one of several."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import argument_for, callers, calls_of
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.scopes import BindingKind, assigned
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Function, Symbol, Tensor
from mllint.syntax.shape import constant, dotted_path, has_star_arguments, part_at

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Made = tuple["Model", cst.BaseExpression]
"""An expression that makes a tensor, and the file in which it stands."""


def made_for_nothing(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The tensors made where a parameter is left at ``None``, for which an expression stands otherwise; else nothing.

    ``if mask is None: mask = torch.ones(3)`` and then ``mask``, or ``torch.ones(3) if mask is None else mask``.
    """
    if isinstance(node, cst.IfExp):
        ways = [(node.body, node.orelse), (node.orelse, node.body)]
        tensors = ((made, other) for made, other in ways if isinstance(model.value(made), Tensor))
        return [made for made, other in tensors if _is_asked(node.test, other) and stands_for_nothing(model, other)]
    bindings = without_narrowing(model.reaching(node)) if isinstance(node, cst.Name) else []
    given = [item for item in bindings if item.kind is BindingKind.PARAMETER]
    made = [assigned(item) for item in bindings if item.kind is not BindingKind.PARAMETER]
    if len(given) != 1 or not made or not isinstance(node, cst.Name):
        return []
    values = [value for value in made if value is not None]
    is_asked = all(
        any(_tells_nothing(test, node, is_true=is_true) for test, is_true in verdicts(model, value)) for value in values
    )
    # The calls are looked for last: they may be in files that nobody has read yet.
    is_known = len(values) == len(made) and is_asked and all(isinstance(model.value(item), Tensor) for item in values)
    return values if is_known and _may_be_nothing(model, given[0].node) else []


def stands_for_nothing(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether an expression is a parameter that is ``None`` where it is not given, as some call may leave it."""
    bindings = without_narrowing(model.reaching(node)) if isinstance(node, cst.Name) else []
    is_given = len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER
    return is_given and _may_be_nothing(model, bindings[0].node)


def _may_be_nothing(model: "Model", parameter: cst.CSTNode) -> bool:
    """Whether a parameter is ``None`` by default, and not every call in sight gives something else."""
    function = function_around(model, parameter)
    if not isinstance(parameter, cst.Param) or parameter.default is None or function is None:
        return False
    if constant(parameter.default) is not None:
        return False
    calls = [(home, info, call, skipped) for home, info in callers(function) for call, skipped in calls_of(home, info)]
    return not calls or any(_leaves_out(info, parameter, call, skipped) for _, info, call, skipped in calls)


def _leaves_out(info: FunctionInfo, parameter: cst.Param, call: cst.Call, skipped: int) -> bool:
    """Whether a call may leave a parameter at its default, or gives it nothing."""
    own = next((item for item in info.named_parameters if item.name.value == parameter.name.value), None)
    given = None if own is None or has_star_arguments(call) else argument_for(info, own, call, skipped)
    return given is None or constant(given) is None


def _is_asked(test: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    """Whether a test asks whether what a name stands for is nothing."""
    return any(_tells_nothing(test, node, is_true=is_true) for is_true in (True, False))


def _tells_nothing(test: cst.BaseExpression, node: cst.BaseExpression, *, is_true: bool) -> bool:
    """Whether a test that came out so says that a name stands for ``None``."""
    name = dotted_path(node)
    match test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=how, comparator=cst.Name("None"))]):
            operators = (cst.Is, cst.Equal) if is_true else (cst.IsNot, cst.NotEqual)
            return dotted_path(left) == name and isinstance(how, operators)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _tells_nothing(inner, node, is_true=not is_true)
        case cst.Name():
            return dotted_path(test) == name and not is_true
    return False


def unpacked_into(model: "Model", statement: cst.CSTNode, target: str) -> list[Made]:
    """What one of several things is made by to which a statement assigns at once: nothing where that is not seen.

    ``self.rows, self.columns = torch.ones(3), torch.zeros(3)``, or what a function returns like that. What gives
    several tensors by itself, as ``torch.meshgrid`` does, stands for each of them.
    """
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return []
    targets = statement.targets[0].target
    if not isinstance(targets, (cst.Tuple, cst.List)):
        return []
    position = next((index for index, item in enumerate(targets.elements) if dotted_path(item.value) == target), None)
    if position is None or any(isinstance(item, cst.StarredElement) for item in targets.elements):
        return []
    part = part_at(statement.value, (position,))
    if part is not None or not isinstance(statement.value, cst.Call):
        return [] if part is None else [(model, part)]
    callee = model.value(statement.value.func)
    if isinstance(callee, Symbol):
        fact = lookup.function(callee.name)
        return [(model, statement.value)] if fact is not None and fact.returns == "tensors" else []
    info = callee.definition if isinstance(callee, Function) else None
    if info is None or not info.is_plain or not info.is_transparent:
        return []
    parts = [part_at(item.value, (position,)) for item in info.scope.returns]
    return [] if None in parts else [(info.model, part) for part in parts if part is not None]
