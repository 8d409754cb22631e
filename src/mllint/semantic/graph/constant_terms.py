"""Parts of a sum given to ``backward()`` that were taken off their graph: they add a number, and teach nothing.

Followed back from the call through names, sums, factors that are numbers, and methods that keep the graph. What is cut
right where it is added, ``a + b.detach()``, is there to be shown in the total, as everybody can see; a name hides it.
A loss of the libraries is cut, too, where it is given outputs that are cut, and data.
"""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.cuts import PASSING, operand_of
from mllint.semantic.graph.data_sources import is_of_data
from mllint.semantic.graph.taken_off import computes_loss, taken_off
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Function, Module, Number, Output, Symbol, Tensor
from mllint.syntax.shape import constant, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 30
"""How many names, sums and calls are looked at for one ``backward()``."""
_CUTTING = frozenset({"detach", "item"})


class ConstantTerm(msgspec.Struct, frozen=True):
    """An expression that takes one part of a loss off its graph, and how: ``detach()``, ``data``."""

    node: cst.BaseExpression
    way: str


def constant_terms(model: "Model", call: cst.Call) -> tuple[ConstantTerm, ...]:
    """Such parts of what a call of ``backward()`` is given, where another part of it may learn."""
    operand = operand_of(call)
    if operand is None or model.gradients.off(call) is not False:
        return ()
    terms = _Terms(model)
    terms.follow(operand, is_named=False)
    return tuple(terms.constant) if terms.others else ()


class _Terms:
    """The terms of one sum."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.constant: list[ConstantTerm] = []
        self.others = 0
        """How many terms are neither cut nor numbers."""
        self._steps = 0
        self._seen: set[int] = set()

    def follow(self, node: cst.BaseExpression, *, is_named: bool) -> None:
        """Note the terms of an expression; ``is_named``: a name was bound to it on the way."""
        self._steps += 1
        if self._steps > MAX_STEPS or id(node) in self._seen:
            self.others += 1
            return
        self._seen.add(id(node))
        parts = self._parts(node, is_named=is_named)
        for part, part_is_named in parts:
            self.follow(part, is_named=part_is_named)
        if not parts:
            self._note(node, is_named=is_named)

    def _parts(self, node: cst.BaseExpression, *, is_named: bool) -> list[tuple[cst.BaseExpression, bool]]:
        """What is added up to an expression; empty for a term."""
        match node:
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract(), left=left, right=right):
                return [(left, False), (right, False)]
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Divide(), left=left, right=right):
                sides = [side for side in (left, right) if constant(side) is ...]
                factors = [side for side in sides if not self._is_setting(side)] or sides
                return [(factors[0], is_named)] if len(factors) == 1 else []
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))) if name in PASSING:
                return [] if isinstance(self.model.value(node.func), Function) else [(receiver, is_named)]
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="scale")), args=[cst.Arg(star="", value=scaled)]):
                return [(scaled, is_named)]
            case cst.Name() | cst.Attribute():
                return self._bound(node)
        return []

    def _is_setting(self, node: cst.BaseExpression) -> bool:
        """Whether a factor is a number: known to be one, or kept by something that is only read: ``options.beta``."""
        if isinstance(self.model.value(node), Number):
            return True
        path = dotted_path(node) if self.model.value(node) is None else None
        root, _, kept = (path or "").partition(".")
        return bool(kept) and root != "self" and not any(map(self._is_asked, self._reads(root, node)))

    def _reads(self, name: str, node: cst.BaseExpression) -> list[cst.Name]:
        return self.model.names_within(name, self.model.scope_of(node))

    def _is_asked(self, name: cst.Name) -> bool:
        """Whether something is called, or a method of it."""
        holder: cst.CSTNode = name
        parent = self.model.tree.parent(holder)
        while isinstance(parent, cst.Attribute) and parent.value is holder:
            holder, parent = parent, self.model.tree.parent(parent)
        return self.model.tree.call_of(holder) is not None

    def _bound(self, node: cst.Name | cst.Attribute) -> list[tuple[cst.BaseExpression, bool]]:
        bindings = [item for item in self.model.reaching(node) if not self._is_number(item)]
        parts: list[tuple[cst.BaseExpression, bool]] = []
        for binding in bindings:
            statement = binding.node
            if binding.kind is BindingKind.AUGMENTED and isinstance(statement, cst.AugAssign):
                if not isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign)):
                    return []
                parts += [(statement.target, False), (statement.value, False)]
            elif binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED) and binding.value and not binding.path:
                # In one of several branches a part may be left out on purpose.
                parts.append((binding.value, len(bindings) == 1))
            else:
                return []
        return parts

    def _is_number(self, binding: Binding) -> bool:
        """Whether a binding is a beginning, ``aux = 0``."""
        return binding.value is not None and constant(binding.value) is not ...

    def _note(self, node: cst.BaseExpression, *, is_named: bool) -> None:
        cut = (self._cut(node) or self._cut_before(node)) if isinstance(node, cst.Call) else None
        if cut is None:
            self.others += not isinstance(self.model.value(node), Number)
        elif is_named:
            self.constant.append(cut)

    def _cut(self, node: cst.Call) -> ConstantTerm | None:
        """How a loss is taken off its graph by the last call of a chain: ``criterion(x, y).detach().item()``."""
        source: cst.BaseExpression = node
        found: str | None = None
        while isinstance(source, cst.Call) and isinstance(source.func, cst.Attribute) and not source.args:
            method = source.func.attr.value
            if method not in _CUTTING and method not in PASSING:
                break
            found = method if method in _CUTTING else found
            source = source.func.value
        if found is None or not self._is_loss(source) or self._is_used_for_backward(source):
            return None
        return ConstantTerm(node, f"{found}()")

    def _cut_before(self, node: cst.Call) -> ConstantTerm | None:
        """How a loss of the libraries, a module or a function, comes to have no graph:
        ``criterion(output.detach(), target)``.
        """
        given = [arg.value for arg in node.args if constant(arg.value) is ...]  # no `reduction="sum"`
        off = [taken_off(self.model, item) for item in given]
        cut = next((item for item in off if item is not None), None)
        callee = None if cut is None else self.model.value(node.func)
        is_known = isinstance(callee, Symbol) or (isinstance(callee, Module) and callee.name is not None)
        if cut is None or not is_known or not computes_loss(self.model, node) or any(arg.star for arg in node.args):
            return None
        others = (item for item, place in zip(given, off, strict=True) if place is None)
        if not all(is_of_data(self.model, other) for other in others):
            return None
        return ConstantTerm(cut, "detach()" if isinstance(cut, cst.Call) else "data")

    def _is_loss(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is one loss that hangs on a graph; no difference, with which a value is put right."""
        if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation)):
            return False
        value = self.model.value(node)
        has_graph = isinstance(value, (Tensor, Output)) and value.attached is True
        return (has_graph and not (isinstance(value, Tensor) and value.leaf)) or is_called_loss(node)

    def _is_used_for_backward(self, source: cst.BaseExpression) -> bool:
        """Whether the loss has a ``backward()`` of its own: then the total is only there to be shown."""
        path = dotted_path(source)
        if path is None:
            return False
        operands = (operand_of(call) for call in self.model.backward.calls)
        return any(operand is not None and dotted_path(operand) == path for operand in operands)
