"""Where the truth of an expression is asked for, also that of a function without a call; and what is nothing but true
or false, or a number.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Instance, Module, Tensor
from mllint.syntax.shape import constant, integer_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_tested(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what stands around an expression asks for nothing but its truth.

    ``a`` in ``if a:``, ``not a``, ``a and b``, ``x if a else y``; ``b`` in ``if a or b:``, not in ``x = a or b``.
    """
    parent = model.tree.parent(node)
    match parent:
        case cst.If() | cst.While() | cst.Assert() | cst.CompIf():
            return parent.test is node
        case cst.IfExp():
            return parent.test is node or is_tested(model, parent)
        case cst.MatchCase():
            return parent.guard is node
        case cst.UnaryOperation():
            return isinstance(parent.operator, cst.Not)
        case cst.BooleanOperation():
            return parent.left is node or is_tested(model, parent)
        case cst.NamedExpr():
            return parent.value is node and is_tested(model, parent)
        case cst.Arg():
            call = model.tree.parent(parent)
            return isinstance(call, cst.Call) and model.qualified_name(call.func) == "builtins.bool"
    return False


def is_bool(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether an expression is surely ``True`` or ``False``: a comparison, or a parameter that is one by default."""
    match node:
        case cst.Comparison():
            return all(not isinstance(model.value(item.comparator), Tensor) for item in node.comparisons)
        case cst.UnaryOperation():
            return isinstance(node.operator, cst.Not)
        case cst.Name() if isinstance(constant(node), bool):
            return True
        case cst.Name():
            bindings = model.reaching(node)
            return bool(bindings) and all(_is_bound_to_bool(model, binding.node) for binding in bindings)
    return False


def _is_bound_to_bool(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a parameter is declared to be ``bool``, or is one by default."""
    if not isinstance(node, cst.Param):
        return False
    if node.annotation is not None:
        return model.qualified_name(node.annotation.annotation) == "builtins.bool"
    return node.default is not None and isinstance(constant(node.default), bool)


_OF_NUMBERS = (cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)
_WORKING_OUT = frozenset({"builtins.abs", "builtins.max", "builtins.min", "builtins.sum", "math.ceil", "math.floor"})


def is_worked_out(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether something is worked out as only numbers are, or what is made of some: functions are added and joined."""
    if isinstance(node, cst.Call):
        has_key = any(arg.keyword is not None for arg in node.args)
        return not has_key and model.qualified_name(node.func) in _WORKING_OUT
    if not isinstance(node, cst.BinaryOperation):
        return False
    is_with_number = any(integer_literal(side) is not None for side in (node.left, node.right))
    return isinstance(node.operator, _OF_NUMBERS) or (isinstance(node.operator, cst.Add) and is_with_number)


def compared_to_bool(model: "Model", node: cst.BaseExpression) -> cst.Comparison | None:
    """The comparison ``node == True``, ``node is False`` or the like in which an expression stands, if it does."""
    parent = model.tree.parent(node)
    comparison = model.tree.parent(parent) if isinstance(parent, cst.ComparisonTarget) else parent
    if not isinstance(comparison, cst.Comparison) or len(comparison.comparisons) != 1:
        return None
    part = comparison.comparisons[0]
    if not isinstance(part.operator, (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot)):
        return None
    other = part.comparator if comparison.left is node else comparison.left
    return comparison if isinstance(constant(other), bool) else None


# Arguments that are flags, whatever takes them.
_FLAGS = frozenset({
    "pin_memory", "enabled", "persistent_workers", "use_cuda", "use_gpu", "cuda", "gpu", "use_amp", "amp", "fp16",
    "bf16",
})  # fmt: skip
_TEST_DECORATORS = frozenset({"unittest.skipIf", "unittest.skipUnless"})


def is_asked(model: "Model", mention: cst.BaseExpression) -> bool:
    """Whether the truth of a mention is asked for: where it stands, by what it is given to, or through a variable."""
    if is_tested(model, mention) or _is_flag(model, mention):
        return True
    parent, above = model.tree.parent(mention), _assigned_by(model, mention)
    conjunction = isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And)
    if above is None:
        return conjunction
    if any(_is_called_somewhere(model, word) for word in _attributes_given(model, mention)):
        return False
    if any(_is_called(model, node) for node in _reads(model, above)):
        return False
    return conjunction or _is_tested_later(model, mention)


def may_be_called_elsewhere(model: "Model", mention: cst.BaseExpression) -> bool:
    """Whether an object keeps a mention whose truth its file does not ask for: another file may call it."""
    return bool(_attributes_given(model, mention)) and not _is_tested_later(model, mention)


def _reads(model: "Model", statement: cst.Assign | cst.AnnAssign) -> list[cst.BaseExpression]:
    """Where what a statement binds is read."""
    return list(uses_of_bound(model, statement))


def _is_tested_later(model: "Model", mention: cst.BaseExpression) -> bool:
    """Whether the truth of the variable that gets a mention is asked for."""
    statement = _assigned_by(model, mention)
    read = [] if statement is None else _reads(model, statement)
    return any(is_tested(model, node) or _is_flag(model, node) for node in read)


def _assigned_by(model: "Model", mention: cst.BaseExpression) -> cst.Assign | cst.AnnAssign | None:
    """The assignment of a mention, or of the conjunction that it is a part of."""
    held: cst.CSTNode = mention
    above = model.tree.parent(held)
    while isinstance(above, cst.BooleanOperation):
        held, above = above, model.tree.parent(above)
    return above if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is held else None


def _attributes_given(model: "Model", mention: cst.BaseExpression) -> list[str]:
    """The names of the attributes of objects of the project that get a mention, or a conjunction with it."""
    match _assigned_by(model, mention):
        case cst.Assign(targets=targets):
            found = [item.target for item in targets]
        case cst.AnnAssign(target=target):
            found = [target]
        case _:
            found = []
    return [target.attr.value for target in found if isinstance(target, cst.Attribute) and _is_own(model, target)]


def _is_own(model: "Model", attribute: cst.Attribute) -> bool:
    """Whether an attribute is one of an object of a class of the project."""
    owner = model.value(attribute.value)
    return isinstance(owner, (Instance, Module)) and owner.definition is not None


def _is_called_somewhere(model: "Model", word: str) -> bool:
    """Whether an attribute of this name of some object of the project is called in the file."""
    calls = model.calls_by_word.get(word, ())
    return any(isinstance(call.func, cst.Attribute) and _is_own(model, call.func) for call in calls)


def _is_called(model: "Model", node: cst.BaseExpression) -> bool:
    parent = model.tree.parent(node)
    return isinstance(parent, cst.Call) and parent.func is node


def _is_flag(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is given for an argument that is a flag."""
    arg = model.tree.parent(node)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
        return False
    if arg.keyword is None:
        return call.args[0] is arg and model.qualified_name(call.func) in _TEST_DECORATORS
    # `argparse` does not call a default; `click` does.
    is_option = isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument"
    return arg.keyword.value in _FLAGS or (arg.keyword.value == "default" and is_option)
