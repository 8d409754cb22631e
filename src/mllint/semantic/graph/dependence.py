"""Whether a value surely carries the graph of another: through layers, functions of tensors and arithmetic, uncut."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.tensors import DETACHING
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Batch, Function, Method, Module, Object, Output, Symbol, Tensor, Value
from mllint.syntax.shape import dotted_path, followed, part_at
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

_CUTTING = frozenset({
    "detach", "data", "item", "numpy", "tolist", "shape", "size", "dtype", "device", "argmax", "argmin", "argsort",
    "long", "int", "bool",
})  # fmt: skip
_PASSING = (
    cst.BinaryOperation, cst.UnaryOperation, cst.Subscript, cst.SubscriptElement, cst.Index, cst.Tuple, cst.List,
    cst.Element, cst.Dict, cst.DictElement, cst.IfExp, cst.BooleanOperation, cst.StarredElement,
)  # fmt: skip
MAX_STEPS = 200


class Dependence:
    """Walks from a value back to what it is computed from, until ``is_goal`` holds of a binding.

    Every binding that reaches a name must lead there, but for those that hang on no graph: what a state begins with.
    Where the graph is not the point, a value that hangs on none is followed like any other.
    """

    def __init__(self, model: "Model", is_goal: Callable[[Binding], bool], *, of_graph: bool = True) -> None:
        self.model = model
        self.is_goal = is_goal
        self.of_graph = of_graph
        self._steps = 0
        self._active: set[int] = set()

    def of(self, node: cst.CSTNode) -> bool:
        """Whether an expression surely carries the graph of the goal."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            return False
        match node:
            case cst.Name() | cst.Attribute() if dotted_path(node) is not None and self.model.reaching(node):
                return self._of_name(node)
            case cst.Attribute():
                return node.attr.value not in _CUTTING and self.of(node.value)
            case cst.Call():
                return self._of_call(node)
            case cst.ListComp() | cst.GeneratorExp():
                return self.of(node.elt)
        return isinstance(node, _PASSING) and any(self.of(child) for child in children(node))

    def _ends(self, value: Value | None) -> bool:
        return self.of_graph and hangs_on_nothing(value)

    def _of_name(self, node: cst.BaseExpression) -> bool:
        # What a loop hands to its next round leads where that leads which it began with.
        bindings = [
            item
            for item in self.model.reaching(node)
            if id(item) not in self._active and not self._ends(self.model.binding_value(item))
        ]
        return bool(bindings) and all(self._of_binding(binding) for binding in bindings)

    def _of_binding(self, binding: Binding) -> bool:
        if self.is_goal(binding):
            return True
        if id(binding) in self._active:
            return False
        self._active.add(id(binding))
        try:
            if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
                return self.of(binding.node.value) or self.of(binding.node.target)
            if binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED, BindingKind.LOOP) and binding.value:
                node, rest = followed(binding.value, binding.path)
                return self._of_part(node, rest)
        finally:
            self._active.discard(id(binding))
        return False

    def _of_part(self, node: cst.BaseExpression, path: tuple[int | None, ...]) -> bool:
        """The same for what unpacks it: a function of the project is asked for that part alone."""
        callee = self.model.value(node.func) if isinstance(node, cst.Call) and path else None
        if isinstance(callee, Function) and isinstance(node, cst.Call):
            return self._of_function(node, callee, path)
        return self.of(node)

    def _of_function(self, call: cst.Call, callee: Function, path: tuple[int | None, ...]) -> bool:
        """Whether what a call gives to a function of the project comes back with its graph, and carries the goal's."""
        info, part = callee.definition, tuple(index for index in path if index is not None)
        if len(part) < len(path):
            return False
        skipped = 0 if callee.receiver is None else 1
        passed = ((arg.value, given_to(info, call, arg, skipped)) for arg in call.args)
        carries = info.model.gradients.carries
        return any(item is not None and self.of(node) and carries(info, item, part) for node, item in passed)

    def _of_call(self, call: cst.Call) -> bool:
        callee = self.model.value(call.func)
        given = [arg.value for arg in call.args]
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else (dotted_path(call.func) or "")
        if name in _CUTTING or (self.of_graph and name in DETACHING) or self._ends(self.model.value(call)):
            return False
        if isinstance(callee, Module) or is_called_loss(call):
            return any(self.of(node) for node in given)
        if isinstance(callee, Symbol):
            is_known = lookup.framework_of(callee.name) is not None or callee.name.startswith("builtins.")
            fact = lookup.function(callee.name)
            if fact is not None and fact.returns == "packed":
                given = given[:1]  # the lengths only say where a sequence ends
            return is_known and any(self.of(node) for node in given)
        if isinstance(callee, Function):
            return isinstance(self.model.value(call), (Tensor, Output)) and self._of_function(call, callee, ())
        if not isinstance(call.func, cst.Attribute):
            return False
        receiver = self.model.value(call.func.value)
        if isinstance(callee, Method) and not isinstance(receiver, (Tensor, Batch, Output, Object)):
            return False
        framework = self.model.framework
        is_method = framework is not None and lookup.tensor_method(framework, name) is not None
        return is_method and any(self.of(node) for node in (call.func.value, *given))


def may_be_computed_from(model: "Model", node: cst.BaseExpression) -> frozenset[int]:
    """The nodes, by identity, of all bindings to which any walk back from an expression can come.

    Who looks for one of many goals asks this once, and walks for those that are left.
    """
    found, waiting = set[int](), [node]
    while waiting:
        for part in subtree(waiting.pop()):
            if not isinstance(part, (cst.Name, cst.Attribute)):
                continue
            for binding in model.reaching(part):
                if id(binding.node) not in found:
                    found.add(id(binding.node))
                    waiting += [binding.value] if binding.value is not None else []
                    if isinstance(binding.node, cst.AugAssign):
                        waiting += [binding.node.value, binding.node.target]
    return frozenset(found)


def returns_graph_of(info: "FunctionInfo", parameter: cst.Param, part: tuple[int, ...]) -> bool:
    """Whether a part of what a function returns, as it is written out, surely carries the graph of a parameter."""
    if not info.is_plain or not info.is_transparent or not info.scope.returns:
        return False
    walk = Dependence(info.model, lambda binding: binding.node is parameter)
    parts = [part_at(statement.value, part) for statement in info.scope.returns]
    return all(value is not None and walk.of(value) for value in parts)


def hands_on(info: "FunctionInfo", parameter: cst.Param, part: tuple[int | None, ...]) -> bool:
    """Whether a part of what a function returns surely carries the graph of what it is given for a parameter."""
    if not info.is_plain or not info.is_transparent or not info.scope.returns:
        return False
    walk = Dependence(info.model, lambda binding: binding.node is parameter)
    for statement in info.scope.returns:
        value = None if statement.value is None else followed(statement.value, part)[0]
        if value is None or info.model.gradients.off(statement) is not False or not walk.of(value):
            return False
    return True
