"""What ``a if test else b`` is, by what the test says of it."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.annotations import annotated
from mllint.semantic.names.narrowing import narrowing
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Number, Output, Tensor, Value, join
from mllint.syntax.comparison import comparands
from mllint.syntax.shape import constant, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_OF_EVERY_TENSOR = frozenset({"item", "detach", "backward", "numpy", "shape", "cpu"})


def conditional(model: "Model", node: cst.IfExp) -> Value | None:
    """The value of one branch or the other; what the test takes for a tensor is none in the other branch."""
    test, body, orelse = node.test, node.body, node.orelse
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, body, orelse = test.expression, orelse, body
    value, other = model.value(body), model.value(orelse)
    if isinstance(other, (Tensor, Output)) and _asks_for_tensor(model, test) == (dotted_path(orelse) or ""):
        other = Number() if isinstance(value, Number) else None
    return join(value, other)


def _asks_for_tensor(model: "Model", test: cst.BaseExpression) -> str | None:
    """The key of which a test says that it is a tensor: ``is_tensor(x)``, ``isinstance(x, Tensor)``, ``hasattr``."""
    if isinstance(test, cst.Call) and dotted_path(test.func) == "hasattr" and len(test.args) == 2:
        return dotted_path(test.args[0].value) if constant(test.args[1].value) in _OF_EVERY_TENSOR else None
    told = narrowing(test)
    if told is None:
        return None
    key, kind = told
    is_tensor = isinstance(test, cst.Call) and kind is test.func
    return key if is_tensor or isinstance(annotated(model, kind), Tensor) else None


def default_given(model: "Model", node: cst.IfExp) -> cst.BaseExpression | None:
    """What stands for a parameter that nobody has given: ``y`` of ``x if x is not None else y``."""
    pairs = comparands(node.test) if isinstance(node.test, cst.Comparison) else ()
    for pair in pairs:
        given, default = (node.body, node.orelse) if pair.is_negated else (node.orelse, node.body)
        is_asked = pair.is_identity and constant(pair.others[0]) is None and isinstance(pair.operand, cst.Name)
        if is_asked and isinstance(given, cst.Name) and dotted_path(pair.operand) == given.value:
            is_parameter = [item.kind for item in model.reaching(given)] == [BindingKind.PARAMETER]
            return default if is_parameter else None
    return None
