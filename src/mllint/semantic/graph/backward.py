"""The ``backward()`` calls of a file, and the tensors whose graph they spend."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst
import msgspec
from msgspec.structs import replace

from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.dependence import may_be_computed_from
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.names.uses import bound_by, reads, uses
from mllint.semantic.values import ClassObject, Framework, Function, Output, Tensor, Value, is_object
from mllint.syntax.shape import constant, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_KEYWORDS = frozenset({"retain_graph", "create_graph", "inputs"})
_CALLS = ("backward", "manual_backward")


class Spent(msgspec.Struct, frozen=True):
    """A name or dotted path that is surely attached to a graph, because ``backward()`` is called on it.

    ``one_element``: the call gives no gradient, so that the tensor has one element.
    """

    node: cst.BaseExpression
    call: cst.Call
    one_element: bool

    def refine(self, value: Value | None, framework: Framework | None) -> Value | None:
        """What is known of the thing now that its graph is known; ``value`` is what was known before."""
        if isinstance(value, Tensor):
            return replace(value, attached=True, one_element=value.one_element or self.one_element, or_number=False)
        known = value.framework if isinstance(value, Output) else framework
        return value if known is None else Tensor(known, True, one_element=self.one_element)


class Backward:
    """Answers what the ``backward()`` calls of a file say about the values they are called on."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._sources: dict[int, frozenset[int]] = {}

    def sources(self, loss: cst.BaseExpression) -> frozenset[int]:
        """What a loss may be computed from, as ``may_be_computed_from`` says it."""
        found = self._sources.get(id(loss))
        if found is None:
            found = self._sources[id(loss)] = may_be_computed_from(self.model, loss)
        return found

    def proof(self, binding: Binding) -> Spent | None:
        """The call that proves what a binding binds to be an attached tensor."""
        found: Spent | None = None
        for spent in self._by_key.get(binding.key, ()):
            if self.model.scope_of(spent.node) is not binding.scope or self._is_of_round_before(spent.node, binding):
                continue
            if binding in self.model.reaching(spent.node):
                found = spent
                if spent.one_element:
                    break
        return found

    def _is_of_round_before(self, spent: cst.CSTNode, binding: Binding) -> bool:
        """Whether a binding in a loop of its own stands behind the call: nobody meant it to go around to that.

        So ends a round of a training with a validation, which has losses of the same names.
        """
        made, call = binding.scope.place_of(binding.node), binding.scope.place_of(spent)
        if made is None or call is None or made[1] < call[1]:
            return False
        loops = self.model.tree.loops_around(binding.node)
        return any(not self.model.tree.is_inside(spent, loop) for loop in loops)

    @cached_property
    def calls(self) -> tuple[cst.Call, ...]:
        """The calls that run a backward pass, however they are given their tensor."""
        found = (call for word in _CALLS for call in self.model.calls_by_word.get(word, ()))
        return tuple(call for call in found if not call.args or not (self._is_by_hand(call) or self._is_no_pass(call)))

    def _is_no_pass(self, call: cst.Call) -> bool:
        """Whether this may be a method of a class, as of an operation, or of an optimizer of Paddle.

        Outside of static graphs that looks for the gradients, and computes none.
        """
        receivers = self.model.alternatives(call.func.value) if isinstance(call.func, cst.Attribute) else ()
        return any(isinstance(value, ClassObject) or is_object(value, "optimizer") for value in receivers)

    def _is_by_hand(self, call: cst.Call) -> bool:
        """Whether gradients are computed layer by layer, without a graph: another such call is given what one gives."""
        parent = self.model.tree.parent
        statement = parent(call)
        bound = bound_by(self.model, statement) if isinstance(statement, cst.Assign) else ()
        results = (call, *(node for binding in bound for node in uses(self.model, binding)))
        takers = (parent(arg) for node in results if isinstance(arg := parent(node), cst.Arg))
        givers = (_assigned(arg.value, self.model) for arg in call.args)
        others = (*takers, *givers)
        return any(isinstance(other, cst.Call) and last_word(other.func) == "backward" for other in others)

    def calls_in(self, node: cst.CSTNode) -> list[cst.Call]:
        """Those of the calls that stand in a loop, a function or any other part of the file."""
        return self._calls_by_holder.get(id(node), [])

    @cached_property
    def _calls_by_holder(self) -> dict[int, list[cst.Call]]:
        found: dict[int, list[cst.Call]] = {}
        for call in self.calls:
            for holder in self.model.tree.ancestors(call):
                found.setdefault(id(holder), []).append(call)
        return found

    @cached_property
    def functions(self) -> frozenset[int]:
        """The functions in which the calls stand, by ``id``; that of ``None`` for the module."""
        return frozenset(id(self.model.enclosing_function(call)) for call in self.calls)

    def is_handed_on(self, node: cst.BaseExpression, within: cst.CSTNode) -> bool:
        """Whether a call in a part of the file gives a thing to a project function that calls ``backward()`` on it."""
        key, bindings = dotted_path(node), self.model.reaching(node)
        if key is None or not bindings:
            return False
        for read in reads(self.model, key, self.model.scope_of(node)):
            arg = self.model.tree.parent(read)
            call = self.model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
            if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
                continue
            callee = self.model.value(call.func)
            if (
                isinstance(callee, Function)
                and any(binding in bindings for binding in self.model.reaching(read))
                and self.model.tree.is_below(call, within)
                and callee.definition.model.backward.spends(callee, call, arg)
            ):
                return True
        return False

    def spends(self, callee: Function, call: cst.Call, arg: cst.Arg) -> bool:
        """Whether a function of this file calls ``backward()`` on what a call gives it for an argument."""
        info = callee.definition
        names = [parameter.name.value for parameter in info.parameters]
        position = next(index for index, other in enumerate(call.args) if other is arg)
        position += info.self_name is not None and callee.receiver is not None
        if arg.keyword is not None:
            name = arg.keyword.value
        elif arg.star or position >= len(names) or any(other.star for other in call.args):
            return False
        else:
            name = names[position]
        return any(
            self.model.enclosing_function(spent.call) is info.node
            and any(binding.kind is BindingKind.PARAMETER for binding in self.model.reaching(spent.node))
            for spent in self._by_key.get(name, ())
        )

    def spent_in(self, scope: Scope) -> Iterator[Spent]:
        """What the calls in a function spend, or in the body of the file."""
        for several in self._by_key.values():
            yield from (spent for spent in several if self.model.scope_of(spent.call) is scope)

    @cached_property
    def _by_key(self) -> dict[str, list[Spent]]:
        found: dict[str, list[Spent]] = {}
        for call in self.calls:
            for spent in self._spent(call):
                key = dotted_path(spent.node)
                if key is not None:
                    found.setdefault(key, []).append(spent)
        return found

    def _spent(self, call: cst.Call) -> Iterator[Spent]:
        if not isinstance(call.func, cst.Attribute):
            return
        positional = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        if all(arg.keyword is not None and arg.keyword.value in _KEYWORDS for arg in call.args):
            yield from self._operand(call.func.value, call)
        elif len(positional) == 1 and is_called_loss(_bare(positional[0])) and not is_called_loss(call.func.value):
            # `accelerator.backward(loss)`, `engine.backward(loss)`; what a tensor's own method is given is a gradient.
            yield from self._operand(positional[0], call)
        elif len(positional) == 1 and is_called_loss(call.func.value) and not is_called_loss(positional[0]):
            yield from self._operand(call.func.value, call, one_element=False)  # `loss.backward(weights)`

    def _operand(self, node: cst.BaseExpression, call: cst.Call, *, one_element: bool = True) -> Iterator[Spent]:
        """The tensor in ``loss``, ``loss / steps``, ``scaler.scale(loss)``, ``loss.mean()``."""
        while True:
            if isinstance(node, cst.BinaryOperation):
                side = self._tensor_side(node)
                if side is None:
                    return
                node = side
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                callee = node.func
                if callee.attr.value == "scale" and len(node.args) == 1:
                    node = node.args[0].value
                elif callee.attr.value in ("sum", "mean") and not node.args:
                    node, one_element = callee.value, False
                else:
                    return
            else:
                break
        if dotted_path(node) is None:
            return
        yield Spent(self._behind_context(node), call, one_element)

    def _tensor_side(self, node: cst.BinaryOperation) -> cst.BaseExpression | None:
        if isinstance(node.operator, cst.Divide):
            return node.left
        if isinstance(node.operator, cst.Multiply):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(constant(other), (int, float)):
                    return side
        return None

    def _behind_context(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """``loss`` of ``with amp.scale_loss(loss, optimizer) as scaled_loss``."""
        bindings = self.model.reaching(node)
        if len(bindings) == 1 and bindings[0].kind is BindingKind.WITH and isinstance(bindings[0].value, cst.Call):
            context = bindings[0].value
            is_scaled = isinstance(context.func, cst.Attribute) and context.func.attr.value == "scale_loss"
            if is_scaled and context.args and dotted_path(context.args[0].value) is not None:
                return context.args[0].value
        return node


def _assigned(node: cst.BaseExpression, model: "Model") -> cst.BaseExpression:
    """What a name is bound to by an assignment; any other expression as it is."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    return node if value is None else value


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """``loss`` of ``loss / steps``."""
    while isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Divide, cst.Multiply)):
        node = node.left
    return node
