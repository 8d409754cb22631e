"""Residual connections whose input an activation has changed by the time it is added back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.expressions.alternatives import alternatives
from mllint.semantic.graph.in_place import changes_by
from mllint.semantic.graph.saved import keeper_of_result
from mllint.semantic.names.blocks import may_come_from
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.scopes import Binding, BindingKind, Block
from mllint.semantic.values import Module, Value

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class Overwritten(msgspec.Struct, frozen=True):
    """``call`` changes the tensor of the name ``tensor`` in place; ``read`` reads the same tensor further below.

    ``is_added``: adds it there. What is not added has been given another name, which says that both are wanted.
    """

    call: cst.Call
    tensor: str
    read: cst.Name
    is_added: bool = True


def overwritten(model: "Model", call: cst.Call) -> Iterator[Overwritten]:
    """The residuals that an activation in place overwrites, or the layer that a call builds."""
    for place, changed in changes_by(model, call):
        if not isinstance(changed, cst.Name) or isinstance(model.tree.parent(place), cst.Expr):
            continue
        if keeper_of_result(model, changed) is not None:
            continue  # an activation made it: another one changes little, or nothing
        added = next(_added_below(model, place, changed), None)
        read = None if added is not None else next(_read_by_another_name(model, place, changed), None)
        if added is not None:
            yield Overwritten(place, changed.value, added)
        elif read is not None:
            yield Overwritten(place, changed.value, read, is_added=False)


def _added_below(model: "Model", call: cst.Call, changed: cst.Name) -> Iterator[cst.Name]:
    """The places below a call that add what it has changed, under its own name or one that it was given before."""
    bindings = model.reaching(changed)
    scope = model.scope_of(call)
    start = scope.place_of(call)
    if not bindings or start is None:
        return
    for word, same in ((changed.value, bindings), *_other_names(model, changed, bindings, start[1])):
        for name in model.names_in(word, scope):
            added = None if name is changed else _addition(model, name)
            place = None if added is None else scope.place_of(name)
            if added is None or place is None or place[1] < start[1]:
                continue
            if place[1] == start[1] and not model.tree.is_inside(call, added):
                continue
            if is_in_another_branch(model, name, call) or not _is_kept(word, start, place):
                continue
            if any(item in same for item in model.reaching(name)):
                yield name


def _read_by_another_name(model: "Model", call: cst.Call, changed: cst.Name) -> Iterator[cst.Name]:
    """The places below a call that read what it has changed under the name from which that was taken.

    So ``x`` is read after ``skip = x``, ``skip = self.relu(skip)``: who gives it a second name wants both.
    """
    scope = model.scope_of(call)
    start = scope.place_of(call)
    for binding in model.reaching(changed) if start is not None else ():
        first = binding.value
        if binding.kind is not BindingKind.ASSIGN or binding.path or not isinstance(first, cst.Name):
            continue
        same = model.reaching(first)
        for name in model.names_in(first.value, scope):
            place = scope.place_of(name)
            if start is None or place is None or place[1] <= start[1] or not _is_computed_with(model, name):
                continue
            if is_in_another_branch(model, name, call) or not _is_kept(first.value, start, place):
                continue
            if any(item in same for item in model.reaching(name)):
                yield name


def _is_computed_with(model: "Model", name: cst.Name) -> bool:
    """Whether a name is read for its numbers: it is given to a call, or is an operand."""
    parent = model.tree.parent(name)
    return isinstance(parent, (cst.BinaryOperation, cst.AugAssign)) or (
        isinstance(parent, cst.Arg) and parent.keyword is not name
    )


def _is_kept(key: str, start: tuple[Block, int], end: tuple[Block, int]) -> bool:
    """Whether some way from one place to another leaves a name alone.

    What reaches the other place may come past the first one: ``if norm: out = norm(out.relu_())``.
    """
    if start[0] is end[0]:
        return not any(start[1] <= item.order < end[1] for item in start[0].bindings.get(key, ()))
    if any(item.order >= start[1] for item in start[0].bindings.get(key, ())):
        return False
    if any(item.order < end[1] for item in end[0].bindings.get(key, ())):
        return False
    return may_come_from(start[0], end[0], key)


def _other_names(
    model: "Model", changed: cst.Name, bindings: tuple[Binding, ...], before: int
) -> Iterator[tuple[str, tuple[Binding, ...]]]:
    """The other names of a tensor, each with what binds it: ``identity`` after ``identity = x``."""
    for key, several in model.scope_of(changed).bindings.items():
        for binding in several:
            same = binding.value
            if (
                key == changed.value
                or binding.kind is not BindingKind.ASSIGN
                or binding.path
                or binding.order >= before
            ):
                continue
            if isinstance(same, cst.Name) and same.value == changed.value and model.reaching(same) == bindings:
                yield key, (binding,)


def _addition(model: "Model", name: cst.Name) -> cst.CSTNode | None:
    """The sum that a name is a part of, also through a layer that gives back what it is given."""
    part: cst.BaseExpression = name
    parent = model.tree.parent(part)
    while isinstance(parent, cst.Arg):
        call = model.tree.parent(parent)
        if not isinstance(call, cst.Call):
            return None
        if model.library_name(call.func) in ("torch.add", "paddle.add"):
            return call
        if len(call.args) != 1 or not any(map(_is_identity, alternatives(model, call.func))):
            return None
        part, parent = call, model.tree.parent(call)
    match parent:
        case cst.BinaryOperation(operator=cst.Add()) | cst.AugAssign(operator=cst.AddAssign()):
            return parent
    return None


def _is_identity(value: Value | None) -> bool:
    """Whether a layer gives back what it is given, or one of several does: ``nn.Identity()``, ``nn.Sequential()``."""
    if not isinstance(value, Module) or value.wrappers:
        return False
    if value.call is None or value.definition is not None:
        return any(map(_is_identity, value.others))
    kind = (value.name or "").rpartition(".")[2]
    return kind == "Identity" or (kind == "Sequential" and not value.call.args)
