"""Losses without a gradient: all that they are computed from comes out of choices, comparisons and steps."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import libcst as cst
import msgspec
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.sources import operands
from mllint.semantic.graph.data_sources import hangs_on_nothing, is_data, is_setting
from mllint.semantic.graph.losses import OF_INDEXES, loss_of
from mllint.semantic.names.changes import is_changed_in_place, is_flagged
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import ClassObject, Framework, Function, Instance, Module, Symbol, Tensor, Value
from mllint.syntax.shape import (
    argument,
    constant,
    dotted_path,
    followed,
    has_star_arguments,
    integer_literal,
    last_word,
    subscript_index,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Run in both frameworks: backward() raises in torch and does nothing in Paddle.
_CHOICES = frozenset({
    "argmax", "argmin", "argsort", "eq", "ne", "gt", "lt", "ge", "le", "equal", "not_equal", "greater_than",
    "less_than", "greater_equal", "less_equal", "isnan", "isinf", "isfinite", "isclose", "logical_not",
    "logical_and", "logical_or", "logical_xor", "nonzero", "one_hot", "multinomial", "count_nonzero", "bincount",
    "searchsorted", "bucketize", "accuracy", "greater",
})  # fmt: skip
# Run in both: the gradient is zero.
_STEPS = frozenset({"round", "sign", "sgn", "floor", "ceil", "trunc", "fix"})
# Casts to whole numbers: torch cuts the graph there, Paddle hands the gradient on.
CASTS = frozenset({"long", "int", "short", "byte", "bool", "char"})
WHOLE = frozenset({
    "torch.long", "torch.int", "torch.short", "torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64",
    "torch.bool", "torch.LongTensor", "torch.IntTensor", "torch.ByteTensor", "torch.BoolTensor",
    "torch.cuda.LongTensor", "torch.cuda.IntTensor", "torch.cuda.ByteTensor",
})  # fmt: skip
_PAIRS = {
    "torch": frozenset({"max", "min", "median", "mode", "sort", "topk", "kthvalue", "cummax", "cummin"}),
    "paddle": frozenset({"topk", "kthvalue", "mode", "cummax", "cummin"}),
}
_DETACHING = frozenset({"item", "tolist", "numpy", "detach"})
# What these are given says where to, or which shape: no gradient comes from there.
_MOVING = frozenset({
    "to", "cuda", "type", "type_as", "astype", "cast", "view", "view_as", "reshape", "expand", "expand_as", "permute",
    "transpose", "repeat", "squeeze", "unsqueeze", "flatten",
})  # fmt: skip
_NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.bool"})
_COPYING = frozenset({
    "torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.autograd.Variable", "torch.FloatTensor",
    "torch.Tensor", "paddle.to_tensor", "paddle.assign", "builtins.sum", "builtins.abs", "builtins.list",
    "builtins.tuple", "builtins.zip",
})  # fmt: skip
_OPERATORS: Mapping[type[cst.BaseCompOp], str] = {
    cst.Equal: "==", cst.NotEqual: "!=", cst.LessThan: "<", cst.LessThanEqual: "<=", cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
}  # fmt: skip
MAX_CALLS = 4
"""How many functions of the project are entered, one inside the other."""
MAX_STEPS = 300
"""How many expressions are looked at on the way back from one ``backward()``."""


class Cut(msgspec.Struct, frozen=True):
    """An operation that lets no gradient through. ``is_zero``: it does, but a gradient of zero."""

    node: cst.CSTNode
    name: str
    is_zero: bool


class Origin(msgspec.Struct, frozen=True):
    """What a value without gradient comes from: cuts, or none of them when it is data.

    ``flagged``: it was made a leaf that requires a gradient.
    """

    cuts: tuple[Cut, ...] = ()
    flagged: bool = False


class DeadLoss(msgspec.Struct, frozen=True):
    """A loss that teaches nothing: the expression that computes it, and what it comes from."""

    node: cst.CSTNode
    origin: Origin
    framework: Framework


_DATA = Origin()


def dead_loss(model: "Model", call: cst.Call) -> DeadLoss | None:
    """The loss that a ``backward()`` call is made on, where it surely has no gradient to give."""
    operand = loss_of(call)
    if model.framework is None or operand is None or _is_reinforced(model, call):
        return None
    trace = Trace(model, model.framework, {}, 0)
    origin = trace.of_loss(operand)
    if origin is None or not origin.cuts:
        return None
    return DeadLoss(_place(trace, operand, call), origin, model.framework)


def _is_reinforced(model: "Model", call: cst.Call) -> bool:
    """Whether the function rewards a sample by ``reinforce``, through which PyTorch before 0.4 sent a gradient."""
    scope = model.scope_of(call)
    return any(model.scope_of(reward) is scope for reward in model.calls_by_word.get("reinforce", ()))


def _place(trace: "Trace", operand: cst.BaseExpression, call: cst.Call) -> cst.CSTNode:
    """The expression that computes the loss, or the ``backward()`` call where there are several."""
    named = operands(operand)
    bindings = trace.model.reaching(named[0]) if len(named) == 1 else ()
    if not bindings:
        return call if dotted_path(operand) is not None else operand
    for binding in bindings:
        origin = trace.of_binding(binding)
        if origin is not None and origin.cuts and binding.kind is not BindingKind.PARAMETER:
            return binding.node if binding.kind is BindingKind.AUGMENTED or binding.value is None else binding.value
    return call


class Trace:
    """Follows a value back to what it is computed from, in one function and the functions it calls.

    ``given`` is the origin of the parameters, by the id of the parameter. ``None`` for an origin means that the value
    has a gradient, or may have one.
    """

    def __init__(
        self, model: "Model", framework: Framework, given: Mapping[int, Origin | None], depth: int, steps: int = 0
    ) -> None:
        self.model = model
        self.framework = framework
        self.given = given
        self.depth = depth
        self.steps = steps
        self._active: set[int] = set()

    def of_loss(self, node: cst.BaseExpression) -> Origin | None:
        """The origin of what ``backward()`` is called on: a flag that is set on that itself does not save it."""
        origin = self.of(node, is_loss=True)
        return replace(origin, flagged=True) if origin is not None and is_flagged(self.model, node) else origin

    def of(self, node: cst.CSTNode, *, is_loss: bool = False) -> Origin | None:
        """The origin of an expression."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            return None
        match node:
            case cst.Name() | cst.Attribute() if dotted_path(node) is not None and self.model.reaching(node):
                return self._bound(node, is_loss=is_loss)
            case cst.Attribute(attr=cst.Name(value="data")):
                # What a module is given or gives may be no tensor: a graph, whose `data` is what was written to it.
                is_tensor = isinstance(self.model.value(node.value), Tensor)
                return (self.of(node.value) or _DATA) if is_tensor else None
            case cst.Attribute(attr=cst.Name(value="T")):
                return self.of(node.value)
            case cst.Attribute(attr=cst.Name(value="indices")) if self._is_pair(node.value):
                return Origin((Cut(node, "indices", False),))
            case cst.Call():
                return self._call(node)
            case cst.Comparison():
                return self._comparison(node)
            case cst.BinaryOperation():
                return self._mixed((node.left, node.right))
            case cst.UnaryOperation():
                return self.of(node.expression)
            case cst.BooleanOperation():
                return _one_of((self.of(node.left), self.of(node.right)))
            case cst.IfExp():
                return _one_of((self.of(node.body), self.of(node.orelse)))
            case cst.Subscript():
                if self._is_pair(node.value) and integer_literal(subscript_index(node)) in (1, -1):
                    return Origin((Cut(node, "indices", False),))
                is_values = self._is_pair(node.value) and integer_literal(subscript_index(node)) == 0
                return None if is_values else self.of(node.value)
            case cst.Tuple() | cst.List():
                return self._mixed(element.value for element in node.elements)
            case cst.ListComp() | cst.GeneratorExp():
                return self.of(node.elt)
        return _DATA if hangs_on_nothing(self.model.value(node)) else None

    def _mixed(self, nodes: Iterable[cst.CSTNode]) -> Origin | None:
        """The origin of what is computed from several things at once: no gradient, if none of them has one."""
        cuts: list[Cut] = []
        for node in nodes:
            origin = self.of(node)
            if origin is None or origin.flagged:
                return None
            cuts += origin.cuts
        return Origin(tuple(dict.fromkeys(cuts)))

    # -- names -------------------------------------------------------------------------------------------------------

    def _bound(self, node: cst.BaseExpression, *, is_loss: bool) -> Origin | None:
        key = dotted_path(node) or ""
        if "." in key and self.model.scope_of(node).reaching(key, node).may_be_unbound:
            return None
        if is_changed_in_place(self.model, node) or (not is_loss and is_flagged(self.model, node)):
            return None
        return _one_of(self.of_binding(binding) for binding in self.model.reaching(node))

    def of_binding(self, binding: Binding) -> Origin | None:
        """The origin of what a binding binds; what is computed from itself adds nothing of its own."""
        if id(binding) in self._active:
            return _DATA
        self._active.add(id(binding))
        try:
            return self._of_new_binding(binding)
        finally:
            self._active.discard(id(binding))

    def _of_new_binding(self, binding: Binding) -> Origin | None:
        match binding.kind:
            case BindingKind.ASSIGN | BindingKind.ANNOTATED if binding.value is not None:
                return self._part(binding.value, binding.path)
            case BindingKind.AUGMENTED if isinstance(binding.node, cst.AugAssign):
                return self._mixed((binding.node.target, binding.node.value))
            case BindingKind.LOOP if binding.value is not None:
                return _DATA if is_data(self.model, binding) else self.of(binding.value)
            case BindingKind.PARAMETER if id(binding.node) in self.given:
                return self.given[id(binding.node)]
            case BindingKind.PARAMETER if is_setting(self.model, binding):
                return _DATA
            case BindingKind.NARROWED:
                before = binding.scope.reaching(binding.key, binding.node).bindings
                return _one_of(self.of_binding(item) for item in before)
        return _DATA if hangs_on_nothing(self.model.binding_value(binding)) else None

    def _part(self, value: cst.BaseExpression, path: tuple[int | None, ...]) -> Origin | None:
        """The origin of a part of what is unpacked."""
        value, rest = followed(value, path)
        if rest and self._is_pair(value):
            return Origin((Cut(value, "indices", False),)) if rest[0] == 1 else None
        if rest and isinstance(value, cst.Call) and isinstance(self.model.value(value.func), Function):
            return None
        return self.of(value)

    # -- operations --------------------------------------------------------------------------------------------------

    def _comparison(self, node: cst.Comparison) -> Origin | None:
        operators = [item.operator for item in node.comparisons]
        if any(isinstance(item, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for item in operators):
            return _DATA
        origin = self._mixed((node.left, *(item.comparator for item in node.comparisons)))
        return origin or Origin((Cut(node, _OPERATORS[type(operators[0])], False),))

    def _is_pair(self, node: cst.CSTNode) -> bool:
        """Whether a call gives values with their indices."""
        if not isinstance(node, cst.Call):
            return False
        callee = self.model.value(node.func)
        if isinstance(callee, Symbol):
            if lookup.framework_of(callee.name) != self.framework:
                return False
            name, position = callee.name.rpartition(".")[2], 1
        elif isinstance(node.func, cst.Attribute) and not isinstance(callee, (Function, Module)):
            name, position = node.func.attr.value, 0
        else:
            return False
        if name not in _PAIRS[self.framework] or name in self.model.function_names:
            return False
        dimension = argument(node, position, "dim") or argument(node, None, "axis")
        is_by_dimension = dimension is not None and integer_literal(dimension.value) is not None
        return is_by_dimension or name in ("sort", "topk", "kthvalue", "mode", "cummax", "cummin")

    def _call(self, call: cst.Call) -> Origin | None:
        callee = self.model.value(call.func)
        if self._is_unknown_loss(call, callee):
            origin = self._mixed(arg.value for arg in call.args)
            return origin if origin is not None and origin.cuts else None
        match callee:
            case Symbol():
                return self._library(call, callee.name)
            case Function():
                return self._function(call, callee.definition, 0 if callee.receiver is None else 1)
            case Module(definition=definition) if definition is not None:
                forward = definition.called
                return None if forward is None or callee.wrappers else self._function(call, forward, 1)
            case Module():
                return self._layer(call, callee)
            case Instance() | ClassObject():
                return None
        if isinstance(call.func, cst.Attribute) and call.func.attr.value not in self.model.function_names:
            return self._method(call, call.func)
        return None

    def _is_unknown_loss(self, call: cst.Call, callee: Value | None) -> bool:
        """Whether a call is spelled as one of a loss of which nothing else is known: ``criterion(output, target)``."""
        is_unnamed = isinstance(callee, Module) and callee.name is None and callee.definition is None
        if not (callee is None or is_unnamed) or len(call.args) < 2 or has_star_arguments(call):
            return False
        return is_called_loss(call) and last_word(call.func) not in self.model.function_names

    def _library(self, call: cst.Call, name: str) -> Origin | None:
        last = name.rpartition(".")[2]
        if name in _NUMBERS:
            return self.of(call.args[0].value) or _DATA if call.args else _DATA
        if has_star_arguments(call):
            return None
        nodes = [arg.value for arg in call.args if not isinstance(self.model.value(arg.value), Symbol)]
        if name in _COPYING:
            flag = argument(call, None, "requires_grad") or argument(call, None, "stop_gradient")
            origin = self._mixed(nodes)
            is_leaf = flag is not None and constant(flag.value) is (flag.keyword is not None and "req" in _key(flag))
            return replace(origin, flagged=True) if origin is not None and is_leaf else origin
        if last.endswith("_like"):
            return _DATA if argument(call, None, "requires_grad") is None else None
        made = self.model.value(call)
        if isinstance(made, Tensor) and made.leaf:
            return None  # a parameter
        if lookup.framework_of(name) != self.framework:
            return _DATA if hangs_on_nothing(self.model.value(call)) else None
        fact = lookup.function(name)
        if last in _CHOICES and fact is not None and nodes:
            return self._mixed(nodes) or Origin((Cut(call, last, False),))
        if fact is None or fact.returns not in ("tensor", "scalar", "self", "tensors"):
            return None
        if last in _STEPS and nodes:
            return self._mixed(nodes) or Origin((Cut(call, last, True),))
        if last == "bernoulli" and nodes:
            return self._mixed(nodes) or Origin((Cut(call, last, self.framework == "torch"),))
        if last in _PAIRS[self.framework] and self._is_pair(call):
            return None
        return self._of_indexes(call, last) or self._mixed(nodes)

    def _layer(self, call: cst.Call, layer: Module) -> Origin | None:
        """A library layer: with weights it has a gradient, whatever it is given."""
        state = None if layer.name is None else lookup.layer_state(layer.name)
        fact = None if layer.name is None else lookup.class_(layer.name)
        if layer.name is None or layer.wrappers or fact is None or has_star_arguments(call):
            return None
        if fact.kind != "loss" and (state is None or state.keys or state.sized or state.depends):
            return None
        name = layer.name.rpartition(".")[2]
        return self._of_indexes(call, name) or self._mixed(arg.value for arg in call.args)

    def _of_indexes(self, call: cst.Call, name: str) -> Origin | None:
        """The origin of a loss whose target is an index, which is that of the prediction alone."""
        first = argument(call, 0, "input")
        if name not in OF_INDEXES or first is None:
            return None
        origin = self.of(first.value)
        return origin if origin is not None and origin.cuts and not origin.flagged else None

    def _method(self, call: cst.Call, callee: cst.Attribute) -> Origin | None:
        name, receiver = callee.attr.value, callee.value
        if name in _DETACHING:
            return self.of(receiver) or _DATA
        if name.startswith("new_"):
            return _DATA if argument(call, None, "requires_grad") is None else None
        if has_star_arguments(call):
            return None
        if name == "requires_grad_":
            origin = self.of(receiver)
            return replace(origin, flagged=True) if origin is not None and origin.cuts else None
        given = () if name in _MOVING else call.args
        nodes = [receiver, *(arg.value for arg in given if not isinstance(self.model.value(arg.value), Symbol))]
        if name in _CHOICES or (self.framework == "torch" and self._casts(call, name)):
            return self._mixed(nodes) or Origin((Cut(call, name, False),))
        if name in _STEPS or (name == "bernoulli" and self.framework == "torch"):
            return self._mixed(nodes) or Origin((Cut(call, name, True),))
        fact = lookup.tensor_method(self.framework, name)
        if fact is None or fact.returns not in ("tensor", "scalar", "self", "tensors") or self._is_pair(call):
            return None
        return self._mixed(nodes)

    def _casts(self, call: cst.Call, name: str) -> bool:
        """Whether a method makes whole numbers of what it is called on."""
        if name in CASTS:
            return not call.args
        if name not in ("to", "type"):
            return False
        return any(self.model.qualified_name(arg.value) in WHOLE for arg in call.args)

    def _function(self, call: cst.Call, info: FunctionInfo, skipped: int) -> Origin | None:
        """A function of the project: what it returns, computed from what it is given here."""
        if self.depth >= MAX_CALLS or has_star_arguments(call) or not info.is_transparent or not info.is_plain:
            return None
        given: dict[int, Origin | None] = {}
        for position, parameter in enumerate(info.parameters):
            passed = None
            if position >= skipped:
                passed = argument(call, position - skipped, parameter.name.value)
            if passed is not None:
                given[id(parameter)] = self.of(passed.value)
            elif parameter.default is not None:
                given[id(parameter)] = _DATA if hangs_on_nothing(info.model.value(parameter.default)) else None
        inner = type(self)(info.model, self.framework, given, self.depth + 1, self.steps)
        values = [inner.of(item.value) if item.value is not None else None for item in info.scope.returns]
        self.steps = inner.steps
        return _one_of(values) if values else None


def _key(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""


def _one_of(origins: Iterable[Origin | None]) -> Origin | None:
    """The origin of what is one thing on one path and another on another: no gradient, if it has none on any."""
    cuts: list[Cut] = []
    flagged = False
    for origin in origins:
        if origin is None:
            return None
        cuts += origin.cuts
        flagged = flagged or origin.flagged
    return Origin(tuple(dict.fromkeys(cuts)), flagged)
