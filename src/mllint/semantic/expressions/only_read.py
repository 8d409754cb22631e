"""Whether parameters that somebody gets are only computed with: counted, shown, summed up to a penalty."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.names.uses import reads, uses, uses_of_bound
from mllint.semantic.values import Function, Symbol
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import constant

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_LOOKING = frozenset({"len", "print", "sum", "str", "max", "min", "any", "all", "type", "id", "isinstance"})
_FREEZING = {"requires_grad": False, "trainable": False, "stop_gradient": True}
_COMPUTING = (
    cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.UnaryOperation, cst.FormattedStringExpression,
)  # fmt: skip


def is_only_read(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether nobody keeps, changes or trains the parameters that an expression gives, or hands them on."""
    parent = model.tree.parent(node)
    match parent:
        case cst.For() if parent.iter is node and steps > 0:
            return all(is_only_read(model, name, steps - 1) for name in uses_of_bound(model, parent))
        case cst.CompFor() if parent.iter is node and steps > 0:
            return all(is_only_read(model, name, steps - 1) for name in _names_of(model, parent))
        case cst.Attribute() if parent.value is node:
            return _is_looked_at(model, parent)
        case cst.Arg() if steps > 0:
            return _given(model, parent, steps - 1)
    return isinstance(parent, _COMPUTING)


def is_only_frozen(model: "Model", call: cst.Call) -> bool:
    """Whether a loop over the parameters that a call gives does nothing but to switch their gradients off."""
    loop = model.tree.parent(call)
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        return False
    lines = [part for line in loop.body.body for part in getattr(line, "body", (line,))]
    return all(
        isinstance(line, cst.Assign)
        and isinstance(target := line.targets[0].target, cst.Attribute)
        and target.attr.value in _FREEZING
        and constant(line.value) is _FREEZING[target.attr.value]
        for line in lines
    )


def _names_of(model: "Model", clause: cst.CompFor) -> list[cst.BaseExpression]:
    """Where a comprehension reads what a clause of it binds."""
    whole = next(item for item in model.tree.ancestors(clause) if isinstance(item, cst.BaseComp))
    target = clause.target
    parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
    words = [part.value for part in parts if isinstance(part, cst.Name)]
    return [
        place
        for word in words
        for place in reads(model, word)
        if any(ancestor is whole for ancestor in model.tree.ancestors(place))
    ]


def _is_looked_at(model: "Model", attribute: cst.Attribute) -> bool:
    """A shape, or a method that gives something new."""
    above = model.tree.parent(attribute)
    if isinstance(above, cst.Call) and above.func is attribute:
        fact = lookup.tensor_method(model.framework or "torch", attribute.attr.value)
        return not attribute.attr.value.endswith("_") and (fact is not None or attribute.attr.value == "endswith")
    return attribute.attr.value in ("shape", "ndim", "dtype", "name")


def _given(model: "Model", arg: cst.Arg, steps: int) -> bool:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call):
        return False
    if handed_on(call, arg) is not None:
        return is_only_read(model, call, steps)
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        word = callee.name.removeprefix("builtins.")
        fact = None if lookup.framework_of(callee.name) is None else lookup.function(callee.name)
        return word in _LOOKING or (
            fact is not None and fact.returns in ("tensor", "scalar") and not word.endswith("_")
        )
    if isinstance(callee, Function):
        return _is_only_read_by(callee, arg, call, steps)
    return False


def _is_only_read_by(callee: Function, arg: cst.Arg, call: cst.Call, steps: int) -> bool:
    """Whether a function of the project only computes with what it is given."""
    function = callee.definition
    parameter = given_to(function, call, arg, 0 if function.self_name is None or callee.receiver is None else 1)
    if parameter is None or not function.is_plain:
        return False
    home = function.model
    bindings = [item for item in function.scope.bindings.get(parameter.name.value, ()) if item.node is parameter]
    places = [place for binding in bindings for place in uses(home, binding)]
    return all(is_only_read(home, place, steps) for place in places)
