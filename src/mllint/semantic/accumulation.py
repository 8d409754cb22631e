"""Values that are collected over the iterations of a loop, and what becomes of the collection."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.scopes import Binding, BindingKind
from mllint.semantic.values import Batch, Elements, Function, Number, Object, Output, Repeated, Tensor, Value
from mllint.syntax.shape import constant, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_BACKWARD = frozenset({"backward", "scale", "scale_loss", "manual_backward", "minimize"})
_NUMERIC_CALLS = frozenset({"float", "int", "round", "print", "str", "format", "len", "max", "min"})


@dataclass(frozen=True, slots=True)
class _Use:
    """One place where the collection is read."""

    node: cst.BaseExpression
    parent: cst.CSTNode | None


class Accumulator:
    """A name or attribute that a loop adds to, seen from the statement that adds.

    ``key`` is the collection, ``added`` the expression that is added, ``loop`` the innermost loop around it that the
    collection outlives.
    """

    def __init__(
        self, model: "Model", node: cst.CSTNode, key: str, added: cst.BaseExpression, loop: cst.CSTNode
    ) -> None:
        self.model = model
        self.node = node
        self.key = key
        self.added = added
        self.loop = loop

    @cached_property
    def _uses(self) -> tuple[_Use, ...]:
        """Where the function reads the collection, the adding statement itself left out."""
        word = self.key.rpartition(".")[2]
        scope = self.model.scope_of(self.node)
        found = []
        for name in self.model.names_by_word.get(word, ()):
            node: cst.BaseExpression = name
            parent = self.model.tree.parent(name)
            if "." in self.key:
                if not isinstance(parent, cst.Attribute) or parent.attr is not name or dotted_path(parent) != self.key:
                    continue
                node, parent = parent, self.model.tree.parent(parent)
            elif isinstance(parent, cst.Attribute) and parent.attr is name:
                continue
            if isinstance(parent, (cst.AssignTarget, cst.Param, cst.Arg)) and getattr(parent, "keyword", None) is name:
                continue
            if isinstance(parent, cst.AssignTarget) or self._is_inside_own_statement(node):
                continue
            if "." in self.key or self.model.scope_of(node) is scope:
                found.append(_Use(node, parent))
        return tuple(found)

    def _is_inside_own_statement(self, node: cst.CSTNode) -> bool:
        return any(ancestor is self.node for ancestor in self.model.tree.ancestors(node))

    @cached_property
    def needs_graph(self) -> bool:
        """Whether ``backward()`` may be called on the collection, or on something that is computed from it."""
        return any(self._feeds_backward(use.node, frozenset({self.key})) for use in self._uses)

    def _feeds_backward(self, node: cst.CSTNode, seen: frozenset[str]) -> bool:
        """Climb from a use to the statement it stands in, and on to what that statement binds."""
        child = node
        for ancestor in self.model.tree.ancestors(node):
            if isinstance(ancestor, cst.Call):
                if isinstance(ancestor.func, cst.Attribute) and ancestor.func.attr.value in _BACKWARD:
                    return True
                if ancestor.func is not child and self._hands_on(ancestor):
                    return True
            elif isinstance(ancestor, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
                return self._bound_feeds_backward(ancestor, seen)
            elif isinstance(ancestor, (cst.Return, cst.Yield)):
                # A total that leaves the function may be somebody's loss, unless each part has had its backward.
                return not self.is_done_with and not self.runs_over_loader
            elif isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
            child = ancestor
        return False

    def _hands_on(self, call: cst.Call) -> bool:
        """Whether a call of a function of the file, given the collection, runs ``backward`` inside."""
        callee = self.model.value(call.func)
        if not isinstance(callee, Function):
            return False
        body = callee.definition.node
        model = callee.definition.model
        return any(
            model.enclosing_function(inner) is body for word in _BACKWARD for inner in model.calls_by_word.get(word, ())
        )

    def _bound_feeds_backward(
        self, statement: cst.Assign | cst.AugAssign | cst.AnnAssign, seen: frozenset[str]
    ) -> bool:
        targets = (
            [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        )
        for target in targets:
            key = dotted_path(target)
            if key is None or key in seen:
                continue
            other = Accumulator(self.model, statement, key, self.added, self.loop)
            if any(other._feeds_backward(use.node, seen | {key}) for use in other._uses):
                return True
        return False

    @cached_property
    def attached_part(self) -> cst.BaseExpression:
        """The one tensor in what is added: ``loss`` in ``loss * batch_size``; the whole when there are several."""
        part = self.added
        while isinstance(part, cst.BinaryOperation):
            sides = [side for side in (part.left, part.right) if not isinstance(self.model.value(side), Number)]
            if len(sides) != 1 or not isinstance(part.operator, (cst.Multiply, cst.Divide)):
                return part
            part = sides[0]
        value = self.model.value(part)
        return part if isinstance(value, Tensor) and (value.scalar or value.one_element) else self.added

    @cached_property
    def is_done_with(self) -> bool:
        """Whether the loop calls ``backward()`` on what is added, so that its graph has done its work."""
        names = {dotted_path(node) for node in self._names_in(self.added)} - {None}
        for call in self.model.calls_by_word.get("backward", ()):
            if not any(ancestor is self.loop for ancestor in self.model.tree.ancestors(call)):
                continue
            assert isinstance(call.func, cst.Attribute)
            spent = [call.func.value, *(arg.value for arg in call.args)]
            for node in spent:
                if any(dotted_path(inner) in names for inner in self._names_in(node)):
                    return True
        return False

    @staticmethod
    def _names_in(node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The names and dotted paths in an expression, without those that are called or read further."""
        found: list[cst.BaseExpression] = []
        pending: list[cst.CSTNode] = [node]
        while pending:
            current = pending.pop()
            if isinstance(current, (cst.Name, cst.Attribute)) and dotted_path(current) is not None:
                found.append(current)
                if isinstance(current, cst.Attribute):
                    pending.append(current.value)
                continue
            pending.extend(current.children)
        return found

    @cached_property
    def runs_over_loader(self) -> bool:
        """Whether the loop runs over a data loader, in a function that calls no ``backward()`` of its own."""
        if not isinstance(self.loop, cst.For) or not _yields_batches(self.model.value(self.loop.iter)):
            return False
        function = self.model.enclosing_function(self.node)
        return not any(
            self.model.enclosing_function(call) is function for call in self.model.calls_by_word.get("backward", ())
        )

    @cached_property
    def is_number(self) -> bool:
        """Whether the collection begins as a Python number or list and is only used where a number will do."""
        for use in self._uses:
            parent = use.parent
            if isinstance(parent, cst.Attribute) and parent.value is use.node and parent.attr.value != "append":
                return False
            if isinstance(parent, cst.Arg) and not self._takes_number(parent):
                return False
        return all(self._begins_as_number(binding) for binding in self._beginnings)

    def _takes_number(self, argument: cst.Arg) -> bool:
        call = self.model.tree.parent(argument)
        if not isinstance(call, cst.Call):
            return False
        if isinstance(call.func, cst.Name):
            return call.func.value in _NUMERIC_CALLS or call.func.value == "sum"
        if not isinstance(call.func, cst.Attribute):
            return False
        name = self.model.qualified_name(call.func)
        return name is None or not name.startswith(("torch.", "paddle."))

    @property
    def _beginnings(self) -> tuple[Binding, ...]:
        scope = self.model.scope_of(self.node)
        return tuple(binding for binding in scope.bindings.get(self.key, ()) if binding.node is not self.node)

    def _begins_as_number(self, binding: Binding) -> bool:
        value = None if binding.value is None else self.model.value(binding.value)
        if binding.kind is BindingKind.AUGMENTED:
            return True
        return isinstance(value, (Number, Elements, Repeated)) or isinstance(constant(binding.value), (int, float))


def augmented(model: "Model", node: cst.AugAssign | cst.Assign) -> Accumulator | None:
    """The accumulation that ``total += x`` or ``total = total + x`` is; ``None`` for every other assignment."""
    if isinstance(node, cst.AugAssign):
        target, added = node.target, node.value
        if not isinstance(node.operator, cst.AddAssign):
            return None
    else:
        if len(node.targets) != 1 or not isinstance(node.value, cst.BinaryOperation):
            return None
        target = node.targets[0].target
        if not isinstance(node.value.operator, cst.Add):
            return None
        path, left, right = dotted_path(target), node.value.left, node.value.right
        if path is None or path not in (dotted_path(left), dotted_path(right)):
            return None
        added = right if dotted_path(left) == path else left
    key = dotted_path(target)
    return None if key is None else _in_loop(model, node, target, key, added)


def appended(model: "Model", call: cst.Call) -> Accumulator | None:
    """The accumulation that the statement ``collection.append(x)`` is; ``None`` for every other call."""
    if len(call.args) != 1 or call.args[0].star or not isinstance(call.func, cst.Attribute):
        return None
    key = dotted_path(call.func.value)
    if key is None or not isinstance(model.tree.parent(call), cst.Expr):
        return None
    return _in_loop(model, call, call.func.value, key, call.args[0].value)


def _in_loop(
    model: "Model", node: cst.CSTNode, target: cst.BaseExpression, key: str, added: cst.BaseExpression
) -> Accumulator | None:
    """The accumulation over the innermost loop, if the collection was there before that loop began."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.For, cst.While)):
            return Accumulator(model, node, key, added, ancestor) if _outlives(model, target, key, ancestor) else None
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.BaseComp)):
            return None
    return None


def _outlives(model: "Model", target: cst.BaseExpression, key: str, loop: cst.CSTNode) -> bool:
    """Whether what the collection is at its place may come from before the loop."""
    reaching = model.scope_of(target).reaching(key, target)
    if not reaching.bindings:
        return "." in key
    inside = [any(ancestor is loop for ancestor in model.tree.ancestors(item.node)) for item in reaching.bindings]
    return not all(inside) or ("." in key and reaching.may_be_unbound)


def _yields_batches(value: Value | None) -> bool:
    match value:
        case Object(kind="loader"):
            return True
        case Repeated(item=Batch() | Output()):
            return True
        case Repeated(item=Elements(items=items)):
            return any(isinstance(item, Batch) for item in items)
    return False
