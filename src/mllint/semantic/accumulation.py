"""Values that are collected over the iterations of a loop, and what becomes of the collection."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.scopes import Binding, BindingKind
from mllint.semantic.values import (
    Batch,
    Elements,
    Function,
    Module,
    Number,
    Object,
    Output,
    Repeated,
    Tensor,
    Text,
    Value,
)
from mllint.syntax.shape import constant, dotted_path
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_BACKWARD = frozenset({"backward", "scale", "scale_loss", "manual_backward", "minimize"})
_NUMERIC_CALLS = frozenset({"float", "int", "round", "print", "str", "format", "len", "max", "min"})
_NUMBER_ATTRIBUTES = frozenset({"item", "data", "detach", "tolist", "numpy", "cpu"})
_REPORTS = frozenset({"float", "int", "round", "print", "str", "format", "info", "debug", "warning", "add_scalar"})
MAX_STEPS = 40
"""How many bindings are followed from what ``backward()`` is called on to what that was computed from."""


@dataclass(frozen=True, slots=True)
class _Use:
    """One place where the collection is read."""

    node: cst.BaseExpression
    parent: cst.CSTNode | None


class Accumulator:
    """A name or attribute that a loop adds to, seen from the statement that adds.

    ``key`` is the collection (of ``losses["box"]`` the dict as a whole), ``added`` the expression that is added,
    ``loop`` the innermost loop around it, which the collection outlives.
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
                return not (self.is_done_with or self.runs_over_loader or self.evaluates)
            elif isinstance(ancestor, cst.For):
                return ancestor.iter is child and self._keys_feed_backward(ancestor, [ancestor.target], seen)
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
        return self._keys_feed_backward(statement, targets, seen)

    def _keys_feed_backward(
        self, statement: cst.CSTNode, targets: Sequence[cst.BaseExpression], seen: frozenset[str]
    ) -> bool:
        for target in targets:
            parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
            if parts and self._keys_feed_backward(statement, [part.value for part in parts], seen):
                return True
            key = _collection(target)
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
        """Whether the loop calls ``backward()`` on what is added or on what is computed from it: its work is done."""
        names = {dotted_path(node) for node in _paths_in(self.added)}
        return any(self._is_computed_from(names, call) for call in self._backward_calls)

    @cached_property
    def trains(self) -> bool:
        """Whether the loop runs a backward pass: what is kept beside it is kept for a report."""
        return bool(self._backward_calls)

    @cached_property
    def _backward_calls(self) -> list[cst.Call]:
        return [call for call in self.model.backward.calls if self._is_in_loop(call)]

    def _is_in_loop(self, node: cst.CSTNode) -> bool:
        return any(ancestor is self.loop for ancestor in self.model.tree.ancestors(node))

    def _is_computed_from(self, names: set[str | None], call: cst.Call) -> bool:
        """Whether what a backward call spends is one of the names, or bound in the loop to something with one in it."""
        pending = _paths_in(call)
        seen: set[int] = set()
        while pending and len(seen) < MAX_STEPS:
            node = pending.pop()
            if dotted_path(node) in names:
                return True
            for binding in self.model.reaching(node):
                if id(binding) not in seen and self._is_in_loop(binding.node):
                    seen.add(id(binding))
                    value = binding.node if binding.kind is BindingKind.AUGMENTED else binding.value
                    pending += [] if value is None else _paths_in(value)
        return False

    @cached_property
    def runs_over_loader(self) -> bool:
        """Whether the loop runs over a data loader."""
        return isinstance(self.loop, cst.For) and _yields_batches(self.model.value(self.loop.iter))

    @cached_property
    def evaluates(self) -> bool:
        """Whether a module was switched to evaluation before the loop, in a function that calls no ``backward()``."""
        function = self.model.enclosing_function(self.node)
        if any(self.model.enclosing_function(call) is function for call in self.model.backward.calls):
            return False
        return any(
            self._stands_before_loop(call)
            and isinstance(call.func, cst.Attribute)
            and isinstance(self.model.value(call.func.value), Module)
            for call in self.model.calls_by_word.get("eval", ())
        )

    def _stands_before_loop(self, call: cst.Call) -> bool:
        """Whether a call is a statement of the function that has surely run when the loop begins."""
        statement = self.model.tree.parent(call)
        line = None if statement is None else self.model.tree.parent(statement)
        block = None if line is None else self.model.tree.parent(line)
        if not isinstance(statement, cst.Expr) or not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return False
        child: cst.CSTNode = self.loop
        for ancestor in self.model.tree.ancestors(self.loop):
            if ancestor is block:
                return any(item is line for item in block.body[: [id(item) for item in block.body].index(id(child))])
            if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
                return False
            child = ancestor
        return False

    @cached_property
    def is_only_reported(self) -> bool:
        """Whether the total is a name of the function that is only read as a number: printed, formatted, ``item()``."""
        if "." in self.key or self.model.enclosing_function(self.node) is None:
            return False
        return bool(self._uses) and all(self._reads_number(use) for use in self._uses)

    def _reads_number(self, use: _Use) -> bool:
        if isinstance(use.parent, cst.Attribute):
            return use.parent.value is use.node and use.parent.attr.value in _NUMBER_ATTRIBUTES
        for ancestor in self.model.tree.ancestors(use.node):
            if isinstance(ancestor, cst.FormattedStringExpression):
                return True
            if isinstance(ancestor, cst.Call):
                callee = ancestor.func.attr if isinstance(ancestor.func, cst.Attribute) else ancestor.func
                return isinstance(callee, cst.Name) and callee.value in _REPORTS
            if isinstance(ancestor, cst.AugAssign):
                return dotted_path(ancestor.target) == self.key
            if isinstance(ancestor, cst.BinaryOperation):
                if isinstance(ancestor.operator, cst.Modulo) and isinstance(self.model.value(ancestor.left), Text):
                    return True
            elif isinstance(ancestor, cst.BaseSmallStatement):
                return False
        return False

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
    if isinstance(added, cst.List) and len(added.elements) == 1 and isinstance(added.elements[0], cst.Element):
        added = added.elements[0].value  # `losses += [loss]`
    return _in_loop(model, node, target, added)


def appended(model: "Model", call: cst.Call) -> Accumulator | None:
    """The accumulation that the statement ``collection.append(x)`` is; ``None`` for every other call."""
    if len(call.args) != 1 or call.args[0].star or not isinstance(call.func, cst.Attribute):
        return None
    if not isinstance(model.tree.parent(call), cst.Expr):
        return None
    return _in_loop(model, call, call.func.value, call.args[0].value)


def _in_loop(
    model: "Model", node: cst.CSTNode, target: cst.BaseExpression, added: cst.BaseExpression
) -> Accumulator | None:
    """The accumulation over the innermost loop, if the collection was there before that loop began."""
    key = _collection(target)
    if key is None:
        return None
    while isinstance(target, cst.Subscript):
        target = target.value
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.For, cst.While)):
            return Accumulator(model, node, key, added, ancestor) if _outlives(model, target, key, ancestor) else None
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.BaseComp)):
            return None
    return None


def _collection(target: cst.BaseExpression) -> str | None:
    """The name or path of what is added to: ``losses`` of ``losses["box"]``."""
    while isinstance(target, cst.Subscript):
        target = target.value
    return dotted_path(target)


def _paths_in(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The names and dotted paths in an expression, with the shorter paths that they begin with."""
    found: list[cst.BaseExpression] = []
    pending: list[cst.CSTNode] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.Arg):
            pending.append(current.value)  # the keyword is no name of the scope
        elif isinstance(current, (cst.Name, cst.Attribute)) and dotted_path(current) is not None:
            found.append(current)
            if isinstance(current, cst.Attribute):
                pending.append(current.value)
        else:
            pending.extend(children(current))
    return found


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
