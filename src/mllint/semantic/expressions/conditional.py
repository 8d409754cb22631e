"""What ``a if test else b`` is, by what the test says of it."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.annotations import annotated
from mllint.semantic.names.narrowing import told
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Number, Output, Tensor, Value, join
from mllint.syntax.comparison import comparands
from mllint.syntax.shape import constant, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def conditional(model: "Model", node: cst.IfExp) -> Value | None:
    """The value of one branch or the other; what the test takes for a tensor is none in the other branch."""
    test, body, orelse = node.test, node.body, node.orelse
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, body, orelse = test.expression, orelse, body
    value, other = model.value(body), model.value(orelse)
    if isinstance(other, (Tensor, Output)) and _is_no_tensor(model, test, orelse):
        other = Number() if isinstance(value, Number) else None
    return join(value, other)


def _is_no_tensor(model: "Model", test: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    """Whether a test says, where it does not hold, that an expression is no tensor."""
    key = dotted_path(node)
    facts = (fact for fact in told(test, outcome=False) if fact.key == key)
    return any(fact.kind is None or isinstance(annotated(model, fact.kind), Tensor) for fact in facts if not fact.holds)


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
