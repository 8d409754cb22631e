"""What a thing is behind a test that asked what it is: ``if isinstance(x, Tensor)``, where that did not hold, and what
``a if test else b`` is.
"""

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.expressions.annotations import annotated
from mllint.semantic.names.conditions import Told, told
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Batch, NoTensor, Number, Output, Tensor, Unfinished, Value, join
from mllint.syntax.comparison import or_default
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAY_BE_TENSORS = (Tensor, Output, Batch)


def narrowed(model: "Model", binding: Binding) -> Value | None:
    """What a key is bound to where ``isinstance(key, Type)`` held: of a tensor no less is known than before."""
    assert isinstance(binding.node, cst.Call)
    assert binding.value is not None
    declared = annotated(model, binding.value)
    return _more_exact(declared, model.value(binding.node.args[0].value)) if isinstance(declared, Tensor) else declared


def after_test(model: "Model", fact: Told) -> Value | None:
    """What something is that has been told to be, or not to be, a tensor, of some kind, or equal to a number."""
    before = model.value(fact.operand)
    if fact.about == "nothing":
        return before
    if fact.about == "number":
        return _equal_to_number(model, fact, before)
    declared = Tensor("torch") if fact.kind is None else annotated(model, fact.kind)
    if fact.holds:
        if before is None or isinstance(before, Unfinished):
            return declared if before is None else before
        if isinstance(declared, Tensor):
            return _more_exact(declared, before)
        return before if declared is None or not isinstance(before, _MAY_BE_TENSORS) else declared
    return _without_tensors(before) if isinstance(declared, Tensor) and not declared.parameter else before


def _more_exact(declared: Tensor, before: Value | None) -> Value:
    """What is known of a thing that is surely a tensor now."""
    if isinstance(before, Unfinished):
        return before
    if not isinstance(before, Tensor) or before.framework != declared.framework:
        return declared
    return replace(before, or_number=False)


def _without_tensors(before: Value | None) -> Value | None:
    """What is left of a thing that is no tensor; of what was one for sure, nothing is known any more."""
    if isinstance(before, Tensor) and before.or_number:
        return Number()
    return before if before is not None and not isinstance(before, _MAY_BE_TENSORS) else NoTensor()


def _equal_to_number(model: "Model", fact: Told, before: Value | None) -> Value | None:
    """A thing that was a number if it ever is one: ``if loss == 0`` where nothing but its use says it is a tensor."""
    if not isinstance(before, Tensor):
        return before
    if before.or_number:
        return Number()
    bindings = model.reaching(fact.operand)
    given = [item.value for item in bindings if item.kind is BindingKind.ASSIGN and item.value is not None]
    is_open = bool(bindings) and len(given) == len(bindings) and None in map(model.value, given)
    return Number() if is_open else before


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
    pair = or_default(node)
    if pair is None or not isinstance(pair.given, cst.Name):
        return None
    is_parameter = [item.kind for item in model.reaching(pair.given)] == [BindingKind.PARAMETER]
    return pair.default if is_parameter else None
