"""Whether a module hands a ``BatchNorm`` of its own one value per channel for each sample.

The shapes of what flows through ``forward`` are followed as far as it is a straight line.
"""

import enum
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.values import Elements, Module, Symbol
from mllint.syntax.shape import (
    argument,
    called_on,
    constant,
    dotted_path,
    integer_literal,
    is_super_call,
    last_word,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MAX_STEPS = 4
"""How deep modules are followed into the modules that they hold."""


class Shape(enum.Enum):
    """How many values a channel has in one sample: those of which that is exactly one."""

    FLAT = "flat"
    """Two dimensions: the batch and the features."""
    POOLED = "pooled"
    """Every dimension behind the channels is one."""
    BATCH = "batch"
    """What a loader gives, of however many dimensions."""
    UNKNOWN = "unknown"


class _Layers(NamedTuple):
    """The call that gives a ``Sequential`` its layers."""

    model: "Model"
    call: cst.Call


class SingleValueError(Exception):
    """A ``BatchNorm`` was handed one value per channel; carries the name of its class."""


_KEEPING_LAYERS = frozenset({
    "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softplus",
    "Hardtanh", "Hardswish", "PReLU", "Dropout", "Identity", "LayerNorm", "Softmax", "LogSoftmax", "Dropout2d",
})  # fmt: skip
_KEEPING_FUNCTIONS = frozenset({
    "relu", "leaky_relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid", "dropout", "softplus", "normalize",
    "relu_", "relu6",
})  # fmt: skip
_POOLS = frozenset({"AdaptiveAvgPool2d", "AdaptiveMaxPool2d"})
_CONVOLUTIONS = frozenset({"Conv2d"})
_SEQUENTIAL = "torch.nn.Sequential"
_NORMS = {"BatchNorm1d": Shape.FLAT, "BatchNorm2d": Shape.POOLED}


def starved_norm(model: "Model", module: cst.BaseExpression, rank: int | None) -> str | None:
    """The class of a ``BatchNorm`` in a module that gets one value per channel from each sample of an input."""
    shape = Shape.BATCH if rank is None else Shape.FLAT if rank == 2 else Shape.UNKNOWN
    try:
        _through(model, model.value(module), shape, MAX_STEPS)
    except SingleValueError as found:
        return str(found)
    return None


def _through(model: "Model", value: object, shape: Shape, steps: int) -> Shape:
    """The shape of what a module gives for what it is given."""
    if not isinstance(value, Module) or value.framework != "torch" or value.wrappers or steps == 0:
        return Shape.UNKNOWN
    if value.definition is not None:
        return _through_class(value.definition, shape, steps - 1)
    name, call = (value.name or "").rpartition(".")[2], value.call
    if name in _NORMS and shape is _NORMS[name]:
        raise SingleValueError(name)
    if name in _NORMS or name in _KEEPING_LAYERS:
        return shape
    if call is None:
        return Shape.UNKNOWN
    if name == "Sequential":
        return _through_sequence(model, call, shape, steps - 1)
    if name == "Linear":
        # A `BatchNorm1d` takes what a `Linear` makes of a batch if that has two dimensions, or as many rows as columns.
        return Shape.FLAT if shape in (Shape.FLAT, Shape.BATCH) else Shape.UNKNOWN
    if name == "Flatten":
        return Shape.UNKNOWN if call.args else Shape.FLAT
    if name in _POOLS:
        return Shape.POOLED if call.args and _is_one(call.args[0].value) else Shape.UNKNOWN
    if name in _CONVOLUTIONS and shape is Shape.POOLED:
        size, padding = argument(call, 2, "kernel_size"), argument(call, 4, "padding")
        keeps = size is not None and _is_one(size.value) and (padding is None or constant(padding.value) == 0)
        return shape if keeps else Shape.UNKNOWN
    return Shape.UNKNOWN


def _is_one(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Tuple):
        return all(constant(element.value) == 1 for element in node.elements)
    return constant(node) == 1


def _through_sequence(model: "Model", call: cst.Call, shape: Shape, steps: int) -> Shape:
    for arg in call.args:
        shape = Shape.UNKNOWN if arg.star else _through(model, model.value(arg.value), shape, steps)
    return shape


def _through_class(definition: "ClassInfo", shape: Shape, steps: int) -> Shape:
    forward = definition.method("forward")
    layers = _layers_of(definition)
    if forward is None and layers is not None:
        return _through_sequence(layers.model, layers.call, shape, steps)
    if forward is None or len(forward.parameters) != 2 or not isinstance(forward.node.body, cst.IndentedBlock):
        return Shape.UNKNOWN
    return _Line(forward.model, {forward.parameters[1].name.value: shape}, steps, layers).run(forward.node.body)


def _layers_of(definition: "ClassInfo") -> _Layers | None:
    """What the constructor of a class derived from ``Sequential`` alone gives to that of its base."""
    start = definition.methods.get("__init__")
    if definition.has_unknown_base or list(definition.library_bases) != [_SEQUENTIAL] or start is None:
        return None
    calls = [
        call
        for call in start.model.tree.calls_in(start.node)
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "__init__"
        and isinstance(call.func.value, cst.Call)
        and is_super_call(call.func.value)
    ]
    return _Layers(start.model, calls[0]) if len(calls) == 1 and calls[0].args else None


class _Line:
    """The statements of one ``forward``, one after another, with the shapes of its local names."""

    def __init__(self, model: "Model", shapes: dict[str, Shape], steps: int, layers: _Layers | None = None) -> None:
        self.model = model
        self.layers = layers
        self.shapes = shapes
        self.steps = steps

    def run(self, body: cst.IndentedBlock) -> Shape:
        """The shape that is returned. What stands in branches is not followed, nor anything after them.

        A loop over the module's own layers is: its body is taken once.
        """
        for line in body.body:
            if isinstance(line, cst.For) and self._is_over_layers(line) and isinstance(line.body, cst.IndentedBlock):
                before = dict(self.shapes)
                self.run(line.body)
                self.shapes = {name: shape for name, shape in self.shapes.items() if before.get(name) is shape}
                continue
            if not isinstance(line, cst.SimpleStatementLine):
                return Shape.UNKNOWN
            for statement in line.body:
                if isinstance(statement, cst.Return):
                    return Shape.UNKNOWN if statement.value is None else self.shape(statement.value)
                self._small(statement)
        return Shape.UNKNOWN

    def _is_over_layers(self, loop: cst.For) -> bool:
        if not isinstance(loop.target, cst.Name):
            return False
        listed = self.model.value(loop.iter)
        is_list = isinstance(listed, Elements) and bool(listed.items)
        if isinstance(listed, Module):
            return (listed.name or "").rpartition(".")[2] in ("ModuleList", "Sequential")
        layers = listed.items if isinstance(listed, Elements) and is_list else (self.model.value(loop.target),)
        return all(isinstance(layer, Module) for layer in layers)

    def _small(self, statement: cst.BaseSmallStatement) -> None:
        if isinstance(statement, cst.Assign):
            shape = self.shape(statement.value)
            for target in statement.targets:
                if isinstance(target.target, cst.Name):
                    self.shapes[target.target.value] = shape
                else:
                    self.shapes.clear()
        elif isinstance(statement, cst.AugAssign) and isinstance(statement.target, cst.Name):
            self.shapes[statement.target.value] = Shape.UNKNOWN

    def shape(self, node: cst.BaseExpression) -> Shape:
        """The shape of an expression."""
        match node:
            case cst.Name():
                return self.shapes.get(node.value, Shape.UNKNOWN)
            case cst.BinaryOperation():
                left, right = self.shape(node.left), self.shape(node.right)
                return left if left is right else Shape.UNKNOWN
            case cst.Call():
                return self._call(node)
        return Shape.UNKNOWN

    def _call(self, node: cst.Call) -> Shape:
        given = [self.shape(arg.value) for arg in node.args]
        if any(arg.star for arg in node.args):
            return Shape.UNKNOWN
        if self.layers is not None and len(given) == 1 and _is_base_forward(node):
            return _through_sequence(self.layers.model, self.layers.call, given[0], self.steps)
        value = self.model.value(node.func)
        if isinstance(value, Module):
            return _through(self.model, value, given[0] if len(given) == 1 else Shape.UNKNOWN, self.steps)
        if isinstance(value, Symbol):
            return self._of_function(value.name, node, given)
        return self._of_method(node) if isinstance(node.func, cst.Attribute) else Shape.UNKNOWN

    def _of_function(self, name: str, call: cst.Call, given: list[Shape]) -> Shape:
        last = name.rpartition(".")[2]
        if not name.startswith("torch.") or not call.args:
            return Shape.UNKNOWN
        if last in _KEEPING_FUNCTIONS:
            return given[0]
        if name == "torch.flatten" and len(call.args) == 2 and _starts_at_one(call.args[1]):
            return Shape.FLAT
        if last in ("adaptive_avg_pool2d", "adaptive_max_pool2d") and len(call.args) == 2:
            return Shape.POOLED if _is_one(call.args[1].value) else Shape.UNKNOWN
        return Shape.UNKNOWN

    def _of_method(self, call: cst.Call) -> Shape:
        assert isinstance(call.func, cst.Attribute)
        name, receiver = call.func.attr.value, call.func.value
        if method_of_receiver(self.model, receiver) is not None:
            return Shape.UNKNOWN
        if name in _KEEPING_FUNCTIONS and not call.args:
            return self.shape(receiver)
        if name == "flatten" and len(call.args) == 1 and _starts_at_one(call.args[0]):
            return Shape.FLAT
        if name in ("view", "reshape") and len(call.args) == 2 and _is_batch_size(call.args[0].value, receiver):
            return Shape.FLAT if integer_literal(call.args[1].value) == -1 else Shape.UNKNOWN
        return Shape.UNKNOWN


def _is_base_forward(call: cst.Call) -> bool:
    """``super().forward(x)``."""
    receiver = called_on(call)
    return isinstance(receiver, cst.Call) and is_super_call(receiver) and last_word(call.func) == "forward"


def _starts_at_one(arg: cst.Arg) -> bool:
    return constant(arg.value) == 1 and (arg.keyword is None or arg.keyword.value == "start_dim")


def _is_batch_size(node: cst.BaseExpression, tensor: cst.BaseExpression) -> bool:
    """``x.size(0)`` and ``x.shape[0]`` of ``x``."""
    path = dotted_path(tensor)
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="size")), args=[cst.Arg(value=index)]):
            return path is not None and dotted_path(owner) == path and constant(index) == 0
        case cst.Subscript(value=cst.Attribute(value=owner, attr=cst.Name(value="shape")), slice=[element]):
            part = element.slice.value if isinstance(element.slice, cst.Index) else None
            return path is not None and dotted_path(owner) == path and constant(part) == 0
    return False
