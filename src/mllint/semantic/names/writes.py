"""What a statement changes in place: ``x -= 1``, ``x[0] = 1``, ``x.mul_(2)``, ``init.zeros_(x)``."""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.syntax.shape import constant, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Methods that end in an underscore and write no numbers into the tensor.
_NO_WRITES = frozenset({"requires_grad_", "detach_", "share_memory_", "rename_"})


class Write(msgspec.Struct, frozen=True):
    """One change in place. ``how`` is how it is written: ``-=``, ``[...] =``, ``mul_()``.

    ``target`` is the expression that gives the tensor that is written to: ``x`` of ``x[0] = 1``, ``x[0]`` of
    ``x[0].mul_(2)``. ``by_initialiser``: a function of ``torch.nn.init`` writes, which switches gradients off itself.
    """

    target: cst.BaseExpression
    how: str
    by_initialiser: bool = False


def may_write(statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement looks as if it wrote to something: where it does not, ``write`` gives nothing."""
    kind = statement.__class__  # `isinstance` of an abstract class is slow, and asked of every statement
    if kind is cst.Expr:
        call = statement.value  # type: ignore[attr-defined]
        return call.__class__ is cst.Call and ((last_word(call.func) or "").endswith("_") or _out(call) is not None)
    if kind is cst.Assign:
        targets = statement.targets  # type: ignore[attr-defined]
        return len(targets) == 1 and targets[0].target.__class__ is cst.Subscript
    return True


def writes_numbers(word: str) -> bool:
    """Whether a method of a tensor of torch writes numbers into it: ``normal_``."""
    return word.endswith("_") and word not in _NO_WRITES and lookup.tensor_method("torch", word) is not None


def may_write_to_name(statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement looks as if it wrote to what a name stands for, or to a part of it."""
    return may_write(statement) and _root(statement).__class__ is cst.Name


def may_write_to_attribute(statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement looks as if it wrote to an attribute, or to a part of it."""
    return may_write(statement) and _root(statement).__class__ is cst.Attribute


def updates_attribute(statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement looks as if it wrote to an attribute, or to a part of it, or assigned a sum to one."""
    if type(statement) is cst.Assign and type(statement.targets[0].target) is cst.Attribute:
        return type(statement.value) is cst.BinaryOperation
    return may_write_to_attribute(statement)


def _root(statement: cst.BaseSmallStatement) -> cst.CSTNode | None:
    """What is written to, or called a method of: ``x`` of ``x[0] = 1`` and of ``x[0].t().mul_(2)``."""
    node: cst.CSTNode | None = getattr(statement, "value", None)
    if type(statement) is cst.AugAssign:
        node = statement.target
    elif type(statement) is cst.Assign:
        node = statement.targets[0].target
    while True:
        if type(node) is cst.Call and type(node.func) is cst.Attribute:
            node = node.func.value
        elif type(node) is cst.Call:
            node = node.func
        elif type(node) is cst.Subscript:
            node = node.value
        else:
            return node


def write(model: "Model", statement: cst.BaseSmallStatement) -> Write | None:
    """What a statement writes to; ``None`` where that is nothing, or more than one thing."""
    kind = statement.__class__
    if kind is cst.Expr:
        call = statement.value  # type: ignore[attr-defined]
        return _called(model, call) if call.__class__ is cst.Call else None
    if kind is cst.AugAssign:
        target, how = statement.target, "-="  # type: ignore[attr-defined]
    elif kind is cst.Assign and len(statement.targets) == 1:  # type: ignore[attr-defined]
        target, how = statement.targets[0].target, None  # type: ignore[attr-defined]
    else:
        return None
    if target.__class__ is cst.Subscript:
        return Write(target.value, "[...] =")
    return None if how is None else Write(target, how)


def _called(model: "Model", call: cst.Call) -> Write | None:
    """The receiver of the first of a chain of methods that work in place, or what an initialiser is given."""
    callee = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(callee, cst.Name) or not callee.value.endswith("_"):
        return _written_to_out(model, call)
    name = model.library_name(call.func)
    if name is not None:
        given = call.args[0].value if call.args and not call.args[0].star and call.args[0].keyword is None else None
        last = name.rpartition(".")[2]
        is_initialiser = name.startswith("torch.nn.init.") and last.endswith("_")
        return Write(given, f"{last}()", True) if is_initialiser and given is not None else None
    found: Write | None = None
    node: cst.BaseExpression = call
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _is_in_place(node.func.attr.value):
        found = Write(node.func.value, f"{node.func.attr.value}()")
        node = node.func.value
    return (_written_to_out(model, node) or found) if isinstance(node, cst.Call) else found


def _out(call: cst.Call) -> cst.BaseExpression | None:
    """``x`` of ``torch.add(a, b, out=x)``."""
    last = call.args[-1] if call.args else None
    return last.value if last is not None and last.keyword is not None and last.keyword.value == "out" else None


def _written_to_out(model: "Model", call: cst.Call) -> Write | None:
    out = _out(call)
    is_function = out is not None and (model.library_name(call.func) or "").startswith("torch.")
    return Write(out, "out=") if out is not None and is_function else None


def _is_in_place(name: str) -> bool:
    if not name.endswith("_") or name.endswith("__") or name in _NO_WRITES:
        return False
    return any(lookup.tensor_method(framework, name) is not None for framework in ("torch", "paddle"))


def is_basic_index(node: cst.Subscript) -> bool:
    """Whether every index is a literal number, slice, ``None`` or ``...``: the result is a view."""
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Slice):
            continue
        value = index.value if isinstance(index, cst.Index) and index.star is None else None
        if isinstance(value, cst.Ellipsis) or (isinstance(value, cst.Name) and value.value == "None"):
            continue
        known = constant(value)
        if not isinstance(known, int) or isinstance(known, bool):
            return False
    return True
