"""Terms of a loss that are computed of gradients without a graph: a penalty that is added, and that teaches nothing.

``autograd.grad`` gives constants unless it is told to record what it computes. What is computed of them alone is
followed, through names, arithmetic, functions of the framework, lists, loops and what functions of the file return, to
a sum that ``backward()`` is called on.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.expressions.tensors import GRADIENTS
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Function, Nothing, Number, Symbol
from mllint.syntax.shape import argument, constant, dotted_path, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.scopes import Binding

_MAX_STEPS = 60
"""How many expressions are looked at for one call."""
_ADDING = (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign)
_COMPUTING = (*_ADDING, cst.Multiply, cst.Divide, cst.Power, cst.MultiplyAssign, cst.DivideAssign)
_GIVING_ITEMS = frozenset({"builtins.zip", "builtins.enumerate", "builtins.reversed", "builtins.list", "builtins.sum"})
_COMPUTED = ("tensor", "scalar")
"""What functions of the framework give that compute with tensors."""
_FILLING = frozenset({"append", "extend"})


def terms_of_gradients(model: "Model") -> Iterator[cst.Call]:
    """The calls of ``autograd.grad`` without ``create_graph`` of which terms of a loss are computed, and only such."""
    for call in model.calls_by_word.get("grad", ()):
        if model.qualified_name(call.func) in GRADIENTS and _records_nothing(call) and _Followed(model).is_added(call):
            yield call


def _records_nothing(call: cst.Call) -> bool:
    given = argument(call, 4, "create_graph")
    return not any(arg.star for arg in call.args) and (given is None or constant(given.value) is False)


class _Followed:
    """What is computed of one call, and of nothing that hangs on a graph."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._computed: dict[int, cst.CSTNode] = {}
        self._pending: list[cst.BaseExpression] = []
        self._bound: set[int] = set()
        self._keys: set[str] = set()

    def is_added(self, call: cst.Call) -> bool:
        """Whether what is computed of the call goes into a sum on which ``backward()`` is called."""
        self._note(call)
        while self._pending and len(self._computed) < _MAX_STEPS:
            node = self._pending.pop(0)
            if self._goes_backward(node):
                return True
            for result in self._results(node):
                self._note(result)
        return False

    def _note(self, node: cst.BaseExpression) -> None:
        if id(node) not in self._computed:
            self._computed[id(node)] = node
            self._pending.append(node)

    def _goes_backward(self, node: cst.BaseExpression) -> bool:
        method = self.model.tree.parent(node)
        if not isinstance(method, cst.Attribute) or method.value is not node or method.attr.value != "backward":
            return False
        return self.model.tree.call_of(method) is not None

    def _results(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """What is computed of an expression where it stands, or what stands for it further on."""
        parent = self.model.tree.parent(node)
        match parent:
            case cst.BinaryOperation() if isinstance(parent.operator, _COMPUTING):
                other = parent.right if parent.left is node else parent.left
                if isinstance(parent.operator, _ADDING) or self._is_constant(other):
                    yield parent
            case cst.UnaryOperation():
                yield parent
            case cst.Subscript() if parent.value is node and constant(subscript_index(parent)) is not ...:
                yield parent
            case cst.Attribute() if parent.value is node:
                yield from self._of_method(parent)
            case cst.Arg():
                yield from self._of_function(parent)
            case cst.Assign() if parent.value is node:
                for binding in bound_by(self.model, parent):
                    yield from self._uses(binding)
            case cst.AugAssign() if parent.value is node and isinstance(parent.operator, _COMPUTING):
                if isinstance(parent.operator, _ADDING):
                    for binding in bound_by(self.model, parent):
                        yield from self._uses(binding)
            case cst.For() if parent.iter is node:
                for binding in bound_by(self.model, parent):
                    yield from self._uses(binding)
            case cst.Return():
                function = function_around(self.model, parent)
                if function is not None and function.is_plain:
                    yield from (call for call, _ in calls_of(self.model, function))

    def _uses(self, binding: "Binding") -> Iterator[cst.BaseExpression]:
        """Where what a name is bound to is read; a sum that it is added to goes on under its own name."""
        if id(binding) in self._bound or "." in binding.key:
            return
        self._bound.add(id(binding))
        self._keys.add(binding.key)
        for use in uses(self.model, binding):
            grown = self.model.tree.parent(use)
            if not (isinstance(grown, cst.AugAssign) and grown.target is use):
                yield use
            elif isinstance(grown.operator, _ADDING) or self._is_constant(grown.value):
                for again in bound_by(self.model, grown):
                    yield from self._uses(again)

    def _of_method(self, method: cst.Attribute) -> Iterator[cst.BaseExpression]:
        """What a method computes alone: ``gradient.norm(2, dim=1)``; not what a ``backward()`` or a copy gives."""
        call, name = self.model.tree.call_of(method), method.attr.value
        framework = self.model.framework
        fact = None if framework is None else lookup.tensor_method(framework, name)
        is_computed = call is not None and fact is not None and fact.returns in _COMPUTED and not name.endswith("_")
        if call is not None and is_computed and all(self._is_constant(arg.value) for arg in call.args):
            yield call

    def _of_function(self, arg: cst.Arg) -> Iterator[cst.BaseExpression]:
        """What a function of the framework computes of this, and of nothing with a graph; what it is put into."""
        call = self.model.tree.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            return
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _FILLING:
            yield from self._filled(call.func.value)
            return
        callee = self.model.value(call.func)
        name = callee.name if isinstance(callee, Symbol) else ""
        fact = lookup.function(name)
        is_computed = name in _GIVING_ITEMS or (fact is not None and fact.returns in _COMPUTED)
        if is_computed and all(self._is_constant(item.value) for item in call.args):
            yield call

    def _filled(self, held: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Where a list is read that starts empty in this function, and into which this is put."""
        bindings = self.model.reaching(held) if isinstance(held, cst.Name) else ()
        for binding in bindings:
            made = binding.value
            if binding.kind is BindingKind.ASSIGN and isinstance(made, cst.List) and not made.elements:
                yield from self._uses(binding)

    def _is_constant(self, node: cst.BaseExpression) -> bool:
        """Whether an operand hangs on no graph: a number, data, the like of this, or a setting by the look of it."""
        if id(node) in self._computed or (isinstance(node, cst.Name) and node.value in self._keys):
            return True
        if isinstance(node, (cst.List, cst.Tuple)):
            return all(self._is_constant(item.value) for item in node.elements)
        value = self.model.value(node)
        if isinstance(value, (Number, Nothing)) or constant(node) is not ... or hangs_on_nothing(value):
            return True
        if isinstance(node, cst.BinaryOperation):
            return self._is_constant(node.left) and self._is_constant(node.right)
        return value is None and _is_setting(self.model, node)


def _is_setting(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression reads a setting: ``args.weight``, ``self.hparams["penalty"]``, a parameter by default."""
    if isinstance(node, cst.Subscript):
        return isinstance(subscript_index(node), cst.SimpleString) and dotted_path(node.value) is not None
    if isinstance(node, cst.Attribute):
        return dotted_path(node) is not None and not isinstance(model.value(node), Function)
    defaults = [item.node.default for item in model.reaching(node) if isinstance(item.node, cst.Param)]
    return bool(defaults) and all(default is not None and constant(default) is not ... for default in defaults)
