"""Values that are collected over the iterations of a loop, and what becomes of the collection."""

import itertools
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import CUTTING, MOVING
from mllint.semantic.expressions.annotations import annotated
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.iteration import yields_batches
from mllint.semantic.expressions.sources import Sources, operands, paths_in
from mllint.semantic.graph.losses import before_reduction, loss_of, may_walk, retaining
from mllint.semantic.graph.spent_parts import bound_inside, is_spent_part, spent_last
from mllint.semantic.graph.tensor_uses import TensorUses, is_attribute_used, is_only_reported
from mllint.semantic.graph.terms import is_spent_term
from mllint.semantic.names.conditions import stands_before
from mllint.semantic.names.definitions import class_around, function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, is_unpacked_into, mentions, reads, uses
from mllint.semantic.values import Elements, Function, Mapping, Module, Number, Repeated, Tensor, Text
from mllint.syntax.shape import before_methods, constant, detaches, dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NUMERIC_CALLS = frozenset({"float", "int", "round", "print", "str", "format", "len", "max", "min"})
MAX_STEPS = 40
"""How many bindings are followed from what ``backward()`` is called on to what that was computed from."""


class _Use(msgspec.Struct, frozen=True):
    """One place where the collection is read."""

    node: cst.BaseExpression
    parent: cst.CSTNode | None


class Accumulator:
    """A name or attribute that a loop adds to, seen from the statement that adds.

    ``key`` is the collection (of ``losses["box"]`` the dict as a whole), ``added`` the expression that is added,
    ``loop`` the innermost loop around it, which the collection outlives; without a loop the method that adds to what
    its object keeps.
    """

    def __init__(
        self,
        model: "Model",
        node: cst.CSTNode,
        target: cst.BaseExpression,
        key: str,
        added: cst.BaseExpression,
        loop: cst.For | cst.While | cst.FunctionDef,
    ) -> None:
        self.model = model
        self.node = node
        self.target = target
        self.key = key
        self.added = added
        self.loop = loop

    @cached_property
    def is_of_others(self) -> bool:
        """Whether it is a name that a scope around the function binds: a list of the module, say."""
        scope = self.model.scope_of(self.node)
        return "." not in self.key and scope.home_of(self.key) not in (scope, None)

    @property
    def _names(self) -> list[cst.Name] | None:
        """The names among which the collection is read; ``None``: those of the whole file."""
        scope = self.model.scope_of(self.node)
        if "." in self.key or self.is_of_others:
            return None
        return (self.model.names_in if scope.is_function else self.model.names_within)(self.key, scope)

    @cached_property
    def _uses(self) -> tuple[_Use, ...]:
        """Where the function reads the collection, the adding statement itself left out."""
        found = []
        for node in mentions(self.model, self.key, self._names):
            parent = self.model.tree.parent(node)
            if isinstance(parent, cst.Arg) and parent.keyword is node:
                continue
            is_bound = isinstance(parent, cst.AssignTarget) or is_unpacked_into(self.model, node)
            if is_bound or self.model.tree.is_below(node, self.node):
                continue
            found.append(_Use(node, parent))
        return tuple(found)

    @cached_property
    def needs_graph(self) -> bool:
        """Whether ``backward()`` may be called on the collection, or on something that is computed from it."""
        if isinstance(self.node, cst.Call) or isinstance(self.target, cst.Subscript) or self.is_of_others:
            return self._thing_feeds_backward(self.target, set())
        return self._feed_backward(bound_by(self.model, self.node), set())

    def _thing_feeds_backward(self, target: cst.BaseExpression, seen: set[int | str]) -> bool:
        """The same for a list or dict that is changed: whoever may read it reads what was added."""
        while isinstance(target, cst.Subscript):
            target = target.value
        bindings = self.model.reaching(target)
        path = dotted_path(target)
        is_own = path not in self.model.scope_of(target).outer_names
        if (bindings and is_own) or path is None or path in seen:
            return self._feed_backward(bindings, seen)
        # Bound in another method or outside the function: every place that names it may read it.
        seen.add(path)
        named = (node for node in reads(self.model, path) if not self.model.tree.is_below(node, self.node))
        return any(self._feeds_backward(node, seen) for node in named)

    def _feed_backward(self, bindings: Iterable[Binding], seen: set[int | str]) -> bool:
        for binding in bindings:
            if id(binding) in seen:
                continue
            if len(seen) > MAX_STEPS:
                return True
            seen.add(id(binding))
            for node in uses(self.model, binding):
                if not self.model.tree.is_below(node, self.node) and self._feeds_backward(node, seen):
                    return True
        return False

    def _feeds_backward(self, node: cst.CSTNode, seen: set[int | str]) -> bool:
        """Climb from a use to the statement it stands in, and on to what that statement binds."""
        read = self.model.tree.parent(node)
        if isinstance(read, cst.Attribute) and read.value is node and read.attr.value in CUTTING:
            return False
        if self.spent_last is not None and self.model.tree.is_inside(node, self.spent_last):
            return False  # that is what the round has added, and nothing older
        child = node
        for ancestor in self.model.tree.ancestors(node):
            if isinstance(ancestor, cst.Call):
                if may_walk(self.model, ancestor):
                    return True
                if ancestor.func is not child and self._hands_on(ancestor):
                    return True
            elif isinstance(ancestor, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
                return self._bound_feeds_backward(ancestor, seen)
            elif isinstance(ancestor, (cst.Return, cst.Yield)):
                # A total that leaves the function may be somebody's loss, unless each part has had its backward.
                is_over = self.is_done_with or self.evaluates or (self.runs_over_loader and not self._is_of_module)
                return not is_over or self._do_callers_feed_backward(ancestor, child, node, seen)
            elif isinstance(ancestor, cst.For):
                return ancestor.iter is child and self._feed_backward(bound_by(self.model, ancestor), seen)
            elif isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
            child = ancestor
        return False

    def _do_callers_feed_backward(
        self, returned: cst.CSTNode, given: cst.CSTNode, node: cst.CSTNode, seen: set[int | str]
    ) -> bool:
        """Whether what a function gives back is a loss in its file: ``self.average_loss(loader).backward()``.

        Of several things that it gives back, ``given`` as a whole, only that is followed in which the node stands.
        """
        function = self.model.enclosing_function(returned)
        if function is None or id(function) in seen:
            return False
        seen.add(id(function))
        elements = given.elements if isinstance(given, cst.Tuple) else ()
        part = next((at for at, item in enumerate(elements) if self.model.tree.is_inside(node, item)), None)
        for call in self.model.calls_by_word.get(function.name.value, ()):
            statement = self.model.tree.parent(call)
            if part is not None and isinstance(statement, cst.Assign):
                bound = bound_by(self.model, statement)
                if self._feed_backward([item for item in bound if item.path[:1] in ((), (None,), (part,))], seen):
                    return True
            elif self._feeds_backward(call, seen):
                return True
        return False

    @property
    def _is_of_module(self) -> bool:
        """Whether a method of a module adds it up: what that gives back is a part of the forward pass."""
        owner = class_around(self.model, self.node)
        return owner is not None and isinstance(owner.instance(), Module)

    def _hands_on(self, call: cst.Call) -> bool:
        """Whether a call of a function of the file, given the collection, runs ``backward`` inside."""
        callee = self.model.value(call.func)
        if not isinstance(callee, Function):
            return False
        body = callee.definition.node
        model = callee.definition.model
        return any(model.enclosing_function(inner) is body for inner in model.backward.calls)

    def _bound_feeds_backward(
        self, statement: cst.Assign | cst.AugAssign | cst.AnnAssign, seen: set[int | str]
    ) -> bool:
        targets = (
            [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        )
        stored = [target for target in targets if isinstance(target, cst.Subscript)]
        return self._feed_backward(bound_by(self.model, statement), seen) or any(
            self._thing_feeds_backward(target, seen) for target in stored
        )

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

    @property
    def is_in_loop(self) -> bool:
        """Whether a loop adds to the collection, and not only one call of a method after the other."""
        return not isinstance(self.loop, cst.FunctionDef)

    @cached_property
    def is_done_with(self) -> bool:
        """Whether the loop calls ``backward()`` on what is added or on what is computed from it: its work is done.

        So does a loop that adds what a function gives back after its own ``backward()``, or hands it to one that runs
        it.
        """
        if self.spent_last is not None or self.is_spent_part:
            return True
        parts = self._parts
        is_spent_here = self._is_spent(self.core) or (bool(parts) and all(self._is_spent(part) for part in parts))
        if is_spent_here or self.comes_back_spent or is_spent_term(self):
            return True
        return self.model.backward.is_handed_on(self.core, self.loop)

    @cached_property
    def spent_last(self) -> cst.Call | None:
        """The ``backward()`` that the loop calls on what it has added, as the last item of the list."""
        return spent_last(self.model, self.node, self.key, self.loop)

    @cached_property
    def is_spent_part(self) -> bool:
        """Whether each of the losses is added that the loop calls ``backward()`` on together."""
        return is_spent_part(self.model, self.node, self.added, self.loop)

    @cached_property
    def hangs_on_spent(self) -> bool:
        """Whether it is computed from what the loop calls ``backward()`` on: of that graph only the nodes are left."""
        return bool(self._spent & bound_inside(self.model, self.loop, paths_in(self.added), paths_in))

    @property
    def is_operand_of_spent(self) -> bool:
        """Whether it is itself a part of what the loop calls ``backward()`` on, whatever was given back beside it."""
        bindings = self.model.reaching(self.core)
        return bool(bindings) and all(id(binding) in self._spent for binding in bindings)

    @cached_property
    def _spent(self) -> set[int]:
        """What the losses are bound to on which the loop calls ``backward()`` for good, and the parts of them."""
        freeing = (call for call in self._backward_calls if not retaining(self.model, call))
        losses = [loss for call in freeing if (loss := loss_of(call)) is not None]
        return bound_inside(self.model, self.loop, [path for loss in losses for path in operands(loss)], operands)

    @cached_property
    def comes_back_spent(self) -> bool:
        """Whether a function of the project has run ``backward()`` on what is added before it gave it back."""
        return self._comes_back(_is_spent_there)

    @cached_property
    def comes_back_as_loss(self) -> bool:
        """The same, on the very thing: what that was computed from may be a leaf, which holds no graph."""
        return self._comes_back(_is_loss_there)

    def _comes_back(self, is_spent: Callable[["Accumulator"], bool]) -> bool:
        bindings = self.model.reaching(self.core)
        made = [(item.value, item.path) for item in bindings if item.kind is BindingKind.ASSIGN] or [(self.core, ())]
        each = (_comes_back_spent(self.model, node, path, is_spent) for node, path in made)
        return len(made) >= len(bindings) and all(each)

    def _is_spent(self, node: cst.BaseExpression) -> bool:
        return any(self._is_computed_from(Sources(self.model, node), call) for call in self._backward_calls)

    @property
    def _parts(self) -> list[cst.BaseExpression]:
        """The losses in ``real + fake``, or in what the name that is added was bound to in the loop."""
        bindings = self.model.reaching(self.core)
        if (
            len(bindings) == 1
            and bindings[0].value is not None
            and self.model.tree.is_below(bindings[0].node, self.loop)
        ):
            value = bindings[0].value
            # Of one item another one is no part: `message["loss"]`, and a gradient in `message["grad"]`.
            return [value] if isinstance(value, cst.Subscript) else operands(value)
        return operands(self.core) if isinstance(self.core, cst.BinaryOperation) else []

    @cached_property
    def trains(self) -> bool:
        """Whether the loop runs a backward pass: what is kept beside it is kept for a report."""
        return bool(self._backward_calls)

    @property
    def adds_with_gradients(self) -> bool:
        """Whether gradients are on where it is added: as far as is known, or since ``backward()`` works beside it."""
        off = self.model.gradients.off(self.node)
        if off is not None:
            return not off
        around = itertools.takewhile(lambda item: item is not self.loop, self.model.tree.ancestors(self.node))
        return self.trains and not any(isinstance(item, cst.With) for item in around)

    @cached_property
    def _backward_calls(self) -> list[cst.Call]:
        return self.model.backward.calls_in(self.loop)

    def _is_computed_from(self, sources: Sources, call: cst.Call) -> bool:
        """Whether what a backward call spends is one of the sources, or bound in the loop to something made of one."""
        pending = paths_in(call)
        seen: set[int] = set()
        while pending and len(seen) < MAX_STEPS:
            node = pending.pop()
            bindings = self.model.reaching(node)
            if sources.include(node, bindings):
                return True
            for binding in bindings:
                if id(binding) not in seen and self.model.tree.is_below(binding.node, self.loop):
                    seen.add(id(binding))
                    value = binding.node if binding.kind is BindingKind.AUGMENTED else binding.value
                    pending += [] if value is None else paths_in(value)
        return False

    @cached_property
    def core(self) -> cst.BaseExpression:
        """The loss in ``loss * batch_size``: what is left when factors that are numbers, or no loss, are taken off.

        Moved or converted, ``loss.to(torch.float16)``, or reduced, ``loss.mean()``, it has the same graph.
        """
        part = before_reduction(self.model, before_methods(self.added, MOVING))
        while isinstance(part, cst.BinaryOperation) and isinstance(part.operator, (cst.Multiply, cst.Divide)):
            sides = [side for side in (part.left, part.right) if not isinstance(self.model.value(side), Number)]
            if len(sides) != 1:
                sides = [side for side in sides if is_called_loss(side)]
            if len(sides) != 1:
                break
            part = before_reduction(self.model, sides[0])
        return part

    @cached_property
    def may_be_cut(self) -> bool:
        """Whether what is added was cut on some way: ``if train: loss.backward(); loss = loss.detach()``.

        Or the loss itself was, and the rest is a weight that has its name: ``bow_loss.item() * options.bow_loss``. Or
        the loop writes the entries of a dict anew from which it is taken: ``losses[key] = value.item()``.
        """
        if isinstance(self.core, cst.Subscript) and self._cuts_entries(self.core.value):
            return True
        bound = (binding.value for binding in self.model.reaching(self.core))
        return any(value is not None and detaches(value) for value in bound) or any(
            isinstance(part, cst.Attribute) and part.attr.value in CUTTING and self._is_weighted_loss(part.value)
            for part in subtree(self.added)
        )

    def _is_weighted_loss(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a loss, also by its graph, or by the weight that it was multiplied with before."""
        if is_called_loss(node):
            return True
        weight = None if isinstance(self.model.value(self.core), Tensor) else dotted_path(self.core)
        made = (binding.value for binding in self.model.reaching(node) if binding.value is not None)
        is_scaled = any(dotted_path(part) == weight for item in made for part in subtree(item))
        return weight is not None and (is_scaled or getattr(self.model.value(node), "attached", None) is True)

    def _cuts_entries(self, holder: cst.BaseExpression) -> bool:
        """Whether the loop has put parts of what was in a dict, cut off their graph, into the dict itself."""
        before = itertools.takewhile(lambda item: item is not self.node, subtree(self.loop.body))
        return any(
            isinstance(target.target, cst.Subscript)
            and dotted_path(target.target.value) == dotted_path(holder)
            and any(isinstance(part, cst.Attribute) and part.attr.value in CUTTING for part in subtree(item.value))
            for item in before
            if isinstance(item, cst.Assign)
            for target in item.targets
        )

    @cached_property
    def runs_over_loader(self) -> bool:
        """Whether the loop runs over a data loader."""
        return isinstance(self.loop, cst.For) and yields_batches(self.model.value(self.loop.iter))

    @cached_property
    def evaluates(self) -> bool:
        """Whether a module was switched to evaluation before the loop, in a function that calls no ``backward()``."""
        function = self.model.enclosing_function(self.node)
        if id(function) in self.model.backward.functions:
            return False
        return any(
            isinstance(statement := self.model.tree.parent(call), cst.Expr)
            and stands_before(self.model, statement, self.loop)
            and isinstance(call.func, cst.Attribute)
            and isinstance(self.model.value(call.func.value), Module)
            for call in self.model.calls_by_word.get("eval", ())
        )

    @cached_property
    def is_only_reported(self) -> bool:
        """Whether the total is a name of its function or script that is only read as a number: printed, ``item()``."""
        if "." in self.key or self.is_of_others:
            return False
        return is_only_reported(self.model, self.key, [use.node for use in self._uses])

    @cached_property
    def is_number(self) -> bool:
        """Whether the collection begins as a Python number or list and is only used where a number will do."""
        if any(isinstance(use.parent, cst.Arg) and not self._takes_number(use.parent) for use in self._uses):
            return False
        is_number = all(self._begins_as_number(binding) for binding in self.beginnings)
        return is_number and not self._is_used_as_tensor

    @property
    def _is_used_as_tensor(self) -> bool:
        """Whether somebody who reads the collection wants tensors of it; of an attribute, of whatever object."""
        _, is_path, attribute = self.key.partition(".")
        if not is_path:
            return TensorUses().any_of(self.model, [use.node for use in self._uses])
        return is_attribute_used(self.model, attribute, class_around(self.model, self.node))

    def _takes_number(self, argument: cst.Arg) -> bool:
        call = self.model.tree.parent(argument)
        if not isinstance(call, cst.Call):
            return False
        if isinstance(call.func, cst.Name):
            return call.func.value in _NUMERIC_CALLS or call.func.value == "sum"
        if not isinstance(call.func, cst.Attribute):
            return False
        name = self.model.qualified_name(call.func)
        if name is not None:
            return not name.startswith(("torch.", "paddle."))
        # What an unknown method gives back for a tensor may be one.
        is_text = isinstance(self.model.value(call.func.value), Text)
        return is_text or isinstance(self.model.tree.parent(call), cst.Expr)

    @cached_property
    def beginnings(self) -> tuple[Binding, ...]:
        scope = self.model.scope_of(self.node)
        bindings = (scope.home_of(self.key) or scope).bindings.get(self.key, [])
        receiver, _, attribute = self.key.partition(".")
        info = function_around(self.model, self.node)
        if info is not None and info.owner is not None and receiver == info.self_name:
            bindings = list(info.owner.assignments(attribute))
        return tuple(binding for binding in bindings if binding.node is not self.node)

    @staticmethod
    def _begins_as_number(binding: Binding) -> bool:
        model = binding.scope.model
        if binding.kind is BindingKind.AUGMENTED:
            return True
        if isinstance(binding.node, cst.AnnAssign):
            declared = annotated(model, binding.node.annotation.annotation)
            if isinstance(declared, Repeated) and isinstance(declared.item, Tensor):
                return False
        value = None if binding.value is None else model.value(binding.value)
        return isinstance(value, (Number, Elements, Repeated, Mapping))


def _is_spent_there(returned: Accumulator) -> bool:
    return returned._is_spent(returned.added)


def _is_loss_there(returned: Accumulator) -> bool:
    bindings = returned.model.reaching(returned.added)
    return bool(bindings) and all(returned.model.backward.proof(binding) is not None for binding in bindings)


def _comes_back_spent(
    model: "Model", node: cst.BaseExpression | None, path: tuple[int | None, ...], spent: Callable[[Accumulator], bool]
) -> bool:
    """Whether a call reaches a project function that has run ``backward()`` on what it gives back at that path."""
    callee = model.value(node.func) if isinstance(node, cst.Call) else None
    if not isinstance(callee, Function) or not callee.definition.is_plain:
        return False
    info = callee.definition
    is_spent = False
    for statement in info.scope.returns:
        part = statement.value
        for index in path:
            items = part.elements if isinstance(part, cst.Tuple) and index is not None else ()
            part = items[index].value if index is not None and index < len(items) else None
        is_other = isinstance(part, cst.Call) and not path and info.model.value(part) is None
        if is_other or (part is not None and constant(part) is not ...):
            continue  # on another way something else comes back
        if part is None or dotted_path(part) is None:
            return False
        returned = Accumulator(info.model, statement, part, "", part, info.node)
        if returned.may_be_cut or not spent(returned):
            return False
        is_spent = True
    return is_spent
