"""What a test of a function comes to where its caller gives nothing that has a default."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.assigned import only_assigned
from mllint.syntax.shape import argument, constant, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMPARING: dict[type[cst.BaseCompOp], Callable[[object, object], bool]] = {
    cst.Is: lambda left, right: left is right,
    cst.IsNot: lambda left, right: left is not right,
    cst.Equal: lambda left, right: left == right,
    cst.NotEqual: lambda left, right: left != right,
}
_MAX_STEPS = 4
"""Through how many names a default is followed."""


def holds_by_default(model: "Model", test: cst.BaseExpression) -> bool | None:
    """Whether a test holds with the defaults of what is asked in it; ``None`` where nothing of it has one."""
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            inner = holds_by_default(model, test.expression)
            return None if inner is None else not inner
        case cst.BooleanOperation():
            decides = isinstance(test.operator, cst.Or)
            sides = [holds_by_default(model, side) for side in (test.left, test.right)]
            return decides if decides in sides else None if None in sides else not decides
        case cst.Comparison(comparisons=[cst.ComparisonTarget() as part]):
            compare = _COMPARING.get(part.operator.__class__)
            left, right = by_default(model, test.left), constant(part.comparator)
            return None if compare is None or ... in (left, right) else compare(left, right)
    value = by_default(model, test)
    return None if value is ... else bool(value)


def by_default(model: "Model", node: cst.BaseExpression, steps: int = _MAX_STEPS) -> object:
    """The constant that an option is where nobody sets it: the default of a parameter, or of ``getattr()``, also under
    other names; ``Ellipsis`` where it is not known.
    """
    literal = constant(node)
    if literal is not ... or steps == 0:
        return literal
    if isinstance(node, cst.Call):
        # Of a dict, or of an object of options.
        asked = {"getattr": 2, "get": 1, "pop": 1}.get(last_word(node.func) or "")
        default = None if asked is None else argument(node, asked, None)
        return ... if default is None else constant(default.value)
    bound = [item.node.default for item in model.reaching(node) if isinstance(item.node, cst.Param)]
    if bound:
        return constant(bound[0]) if len(bound) == len(model.reaching(node)) == 1 else ...
    kept = only_assigned(model, node)
    return ... if kept is None else by_default(model, kept, steps - 1)
