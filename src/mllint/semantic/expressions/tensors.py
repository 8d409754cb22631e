"""How tensors come from tensors: arithmetic, methods and functions; attachment to the graph and 0-d-ness."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.knowledge.schema import Function as FunctionFact
from mllint.semantic.expressions.iteration import element_of
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import (
    Array,
    Batch,
    Elements,
    Framework,
    Nothing,
    Number,
    Object,
    Other,
    Output,
    Repeated,
    Tensor,
    Text,
    Unfinished,
    Value,
)
from mllint.syntax.shape import argument, constant, constant_given, has_star_arguments, integer_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Methods that give a tensor of the same shape as the receiver: a 0-d one stays 0-d.
_SHAPE_KEEPING = frozenset({
    "detach", "clone", "contiguous", "cuda", "cpu", "to", "float", "double", "half", "bfloat16", "long", "int", "bool",
    "type", "astype", "cast", "abs", "exp", "log", "sqrt", "neg", "pow", "square", "sigmoid", "tanh", "relu", "round",
    "requires_grad_", "detach_", "pin_memory", "type_as", "clamp", "clip", "log1p", "log2", "log10", "item_", "expm1",
    "softplus", "logsigmoid", "log_sigmoid", "leaky_relu", "elu", "gelu", "silu", "logit",
})  # fmt: skip
DETACHING = frozenset({
    "detach", "detach_", "argmax", "argmin", "argsort", "eq", "ne", "gt", "lt", "ge", "le", "equal", "isnan", "isinf",
    "isfinite", "long", "int", "bool", "byte", "short", "sign", "nonzero", "new_zeros", "new_ones", "new_full",
    "new_empty", "new_tensor", "logical_not", "logical_and", "logical_or", "bincount", "histc", "clip_grad_norm_",
    "clip_grad_norm", "get_total_norm", "accuracy", "numel", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "randn_like", "randint_like",
})  # fmt: skip
"""Methods and functions whose result never hangs on the graph, whatever they are given."""
# Functions that make a new tensor of what they are given, a copy of it or so large, which has no history.
_MAKING_ANEW = frozenset({
    "torch.tensor", "torch.from_numpy", "paddle.to_tensor", "paddle.uniform", "paddle.standard_normal",
    *(f"{framework}.{name}"
      for framework in ("torch", "paddle")
      for name in ("zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace", "rand", "randn",
                   "randint", "randperm", "tril_indices", "triu_indices")),
})  # fmt: skip
GRADIENTS = frozenset({"torch.autograd.grad", "paddle.grad", "paddle.autograd.grad"})
# Methods that take nothing but the type, the shape or the place of what they are given.
_LIKE_ANOTHER = frozenset({"type_as", "expand_as", "view_as", "reshape_as", "to"})
# Functions that give values with their indices once they are told the dimension (torch; paddle gives values alone).
_PAIRS = frozenset({"max", "min", "median", "nanmedian", "mode", "sort", "topk", "kthvalue", "cummax", "cummin"})
_ALWAYS_PAIRS = frozenset({"sort", "topk", "kthvalue", "mode", "cummax", "cummin"})
# Functions and methods whose result has a dimension, whatever they are given.
_ADDS_DIMENSION = frozenset({
    "unsqueeze", "flatten", "ravel", "cat", "concat", "stack", "arange", "linspace", "logspace", "eye", "randperm",
    "atleast_1d", "atleast_2d", "nonzero", "hstack", "vstack",
})  # fmt: skip
_RESHAPING = frozenset({"view", "reshape", "expand", "repeat", "tile", "broadcast_to"})
_DIMENSIONS = frozenset({"dim", "axis", "keepdim"})
_OF_REDUCTIONS = _DIMENSIONS | {"input", "x", "*", "dtype", "name", "out", "unbiased", "correction"}


def attachment(model: "Model", node: cst.CSTNode, inputs: Iterable[Value | None]) -> bool | None:
    """Whether the result of an operation at ``node`` on these inputs hangs on the graph."""
    off = model.gradients.off(node)
    if off is True:
        return False
    states = [_state(value) for value in inputs if not isinstance(value, Unfinished)]
    if any(state is True for state in states):
        return True if off is False else None
    return False if all(state is False for state in states) else None


def may_be_filled(model: "Model", binding: Binding) -> bool:
    """Whether something that may hang on a graph is written into the tensor that a name is bound to: ``x[i] = net(y)``.

    The tensor hangs on that graph then.
    """
    for change in changes_of_bound(model, binding):
        statement = model.tree.parent(change)
        if isinstance(statement, cst.AssignTarget):
            statement = model.tree.parent(statement)
        given: list[cst.BaseExpression | None] = []
        if isinstance(statement, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
            given = [statement.value]
        elif isinstance(change, cst.Call):
            given = [arg.value for arg in change.args]
        elif isinstance(statement, cst.Call):  # `out=x`
            given = [arg.value for arg in statement.args if arg is not change]
        values = [None if item is None else model.value(item) for item in given]
        if any(_state(value) is not False for value in values) and model.gradients.off(change) is not True:
            return True
    return False


def _as_filled(arg: cst.Arg, value: Value | None) -> Value | None:
    """What is known of an argument where it is used: a list may have been filled since, or by who gives it back."""
    is_written_there = isinstance(arg.value, (cst.List, cst.Set))
    return None if isinstance(value, Elements) and value.mutable and not is_written_there else value


def _state(value: Value | None) -> bool | None:
    match value:
        case Tensor() | Output():
            return value.attached
        case Elements():
            states = [_state(item) for item in value.items]
            return True if True in states else False if all(state is False for state in states) else None
        case Repeated():
            return _state(value.item)
        case None:
            return None
    return False


def framework_of(values: Iterable[Value | None]) -> Framework | None:
    """The framework of the first tensor-like value."""
    for value in values:
        if isinstance(value, (Tensor, Output, Batch)):
            return value.framework
    return None


def _broadcast(values: Iterable[Value | None]) -> bool | None:
    """Whether the result of an operation on these, element by element, is 0-d."""
    ranks = [_is_scalar(value) for value in values]
    return False if False in ranks else True if all(ranks) else None


def _is_scalar(value: Value | None) -> bool | None:
    match value:
        case Number():
            return True
        case Tensor():
            return value.scalar
        case Batch(opaque=False):
            return False  # a loader puts a dimension in front
    return None


def arithmetic(model: "Model", left: Value | None, right: Value | None, node: cst.CSTNode) -> Value | None:
    """What ``left op right`` is."""
    if isinstance(left, Unfinished) or isinstance(right, Unfinished):
        return Unfinished()
    both = (left, right)
    framework = framework_of(both)
    if framework is not None:
        if isinstance(left, Array) or isinstance(right, Array):
            return None
        if isinstance(left, Batch) and isinstance(right, (Batch, type(None))):
            return Tensor(framework, False if right is not None else None, scalar=False)
        scalar = _broadcast(both)
        if isinstance(node, cst.AugAssign) and isinstance(left, Tensor) and left.scalar and not left.or_number:
            scalar = True  # what works in place keeps the shape
        or_number = all(isinstance(value, Number) or (isinstance(value, Tensor) and value.or_number) for value in both)
        # Of what is a number on some ways nothing is added to the graph there.
        states = both if or_number else tuple(map(_of_every_way, both))
        return Tensor(framework, attachment(model, node, states), scalar, or_number=or_number)
    if isinstance(left, Array) or isinstance(right, Array):
        known = (Array, Number)
        scalar = all(isinstance(value, Number) or (isinstance(value, Array) and value.scalar) for value in both)
        return Array(True if scalar else None) if any(isinstance(value, known) for value in both) else None
    if isinstance(left, Number) and isinstance(right, Number):
        return Number()
    if isinstance(left, Text) and isinstance(right, Text):
        return Text()
    if isinstance(left, (Elements, Repeated)) and isinstance(right, (Elements, Repeated)):
        return Repeated(None)
    return None


def _of_every_way(value: Value | None) -> Value | None:
    if isinstance(value, Tensor) and value.or_number and value.attached:
        return replace(value, attached=None)
    return value


def method_result(model: "Model", call: cst.Call, receiver: Tensor, name: str) -> Value | None:
    """What ``receiver.name(...)`` gives."""
    fact = lookup.tensor_method(receiver.framework, name)
    if fact is None:
        return None
    arguments = [model.value(arg.value) for arg in call.args]
    if any(isinstance(value, Unfinished) for value in arguments):
        return Unfinished()
    inputs = (receiver,) if name in _LIKE_ANOTHER else (receiver, *arguments)
    attached = False if name in DETACHING else attachment(model, call, inputs)
    if attached is None and receiver.attached is not None and name in _SHAPE_KEEPING:
        attached = receiver.attached if model.gradients.off(call) is False else None
    if name == "requires_grad_":
        on = constant(call.args[0].value) if call.args else True
        leaf = on is True and (receiver.leaf or receiver.attached is False)
        return replace(receiver, attached=on if isinstance(on, bool) else None, leaf=leaf)
    if name == "type" and not call.args:
        return Text()
    if name in _SHAPE_KEEPING and fact.returns in ("tensor", "self"):
        return Tensor(
            receiver.framework,
            attached,
            _broadcast((receiver, *arguments)) if name == "pow" else receiver.scalar,
            one_element=receiver.one_element,
            parameter=receiver.parameter and fact.returns == "self",
        )
    return result(receiver.framework, name, fact, call, attached, own_input=False, receiver=receiver)


def function_result(
    model: "Model", call: cst.Call, qualified: str, fact: FunctionFact, framework: Framework
) -> Value | None:
    """What a call of a framework's function gives."""
    arguments = [model.value(arg.value) for arg in call.args]
    if any(isinstance(value, Unfinished) for value in arguments):
        return Unfinished()
    name = qualified.rpartition(".")[2]
    requires = argument(call, None, "requires_grad")
    if requires is not None:
        on = constant(requires.value)
        attached = on if isinstance(on, bool) else None
    elif name in DETACHING or qualified in _MAKING_ANEW or _is_gradient_alone(qualified, call):
        attached = False
    else:
        attached = attachment(
            model, call, (_as_filled(arg, item) for arg, item in zip(call.args, arguments, strict=True))
        )
    first = arguments[0] if arguments else None
    made = result(framework, name, fact, call, attached, own_input=True, receiver=first)
    return replace(made, leaf=True) if requires is not None and attached and isinstance(made, Tensor) else made


def _is_gradient_alone(qualified: str, call: cst.Call) -> bool:
    """Whether a call gives gradients without a graph of their own, as it does unless it is asked for one."""
    if qualified not in GRADIENTS:
        return False
    return not has_star_arguments(call) and constant_given(call, 4, "create_graph", False) is False


def like_first(model: "Model", call: cst.Call) -> Value | None:
    """What a function gives that takes the tensors of any framework: one of the same, if its first argument is one."""
    arguments = [model.value(arg.value) for arg in call.args]
    first = arguments[0] if arguments else None
    first = element_of(first) if isinstance(first, (Elements, Repeated)) else first
    if any(isinstance(value, Unfinished) for value in arguments):
        return Unfinished()
    framework = framework_of((first,))
    return None if framework is None else Tensor(framework, attachment(model, call, (first, *arguments)))


def result(
    framework: Framework,
    name: str,
    fact: FunctionFact,
    call: cst.Call,
    attached: bool | None,
    *,
    own_input: bool,
    receiver: Value | None,
) -> Value | None:
    """A value for what the tables say a function or method returns.

    ``own_input`` tells a function, whose first argument is the tensor, from a method.
    """
    if _gives_indexes(name, call, own_input=own_input):
        return Repeated(Tensor(framework, False, False), "tuple")
    match fact.returns:
        case "tensor":
            return Tensor(framework, attached, _made_scalar(name, fact, call, receiver, own_input=own_input))
        case "scalar":
            if is_reduced_fully(fact, call, own_input=own_input):
                return Tensor(framework, attached, True)
            if is_unreduced(call):
                return Tensor(framework, attached, False)
            # Of what has no dimension none is left, whichever is named, and none is kept.
            rank = True if isinstance(receiver, Tensor) and receiver.scalar and _only_reduces(fact) else None
            if framework == "torch" and name in _PAIRS:
                is_pair = _by_dimension(fact, call, own_input=own_input)
                return (
                    Elements((Tensor(framework, attached, rank), Tensor(framework, False, rank))) if is_pair else None
                )
            return Tensor(framework, attached, rank)
        case "self":
            return receiver if isinstance(receiver, Tensor) else Tensor(framework, attached)
        case "tensors":
            if name in _ALWAYS_PAIRS:
                return Elements((Tensor(framework, attached), Tensor(framework, False)))
            return Repeated(Tensor(framework, attached), "tuple")
        case "packed":
            return Object("packed", "torch.nn.utils.rnn.PackedSequence")
        case "number":
            return Number()
        case "string":
            return Text()
        case "array":
            return Array(receiver.scalar if isinstance(receiver, Tensor) else None)
        case "none":
            return Nothing()
        case "size":
            return Number() if call.args else Other("size")
        case "dtype" | "device" | "generator":
            return Other(fact.returns)
    return None


def _gives_indexes(name: str, call: cst.Call, *, own_input: bool) -> bool:
    """Whether a call gives where something holds: for each dimension the indexes along it, as many as there are places.

    ``torch.where(mask)`` and ``torch.nonzero(mask, as_tuple=True)``.
    """
    if name == "where":
        return own_input and len(call.args) == 1 and not call.args[0].star
    return name == "nonzero" and constant_given(call, 1 if own_input else 0, "as_tuple") is True


def _made_scalar(name: str, fact: FunctionFact, call: cst.Call, first: Value | None, *, own_input: bool) -> bool | None:
    """Whether the new tensor that a function or method gives is 0-d."""
    if name in _ADDS_DIMENSION:
        return False
    if name.endswith("_like") or (own_input and name in _SHAPE_KEEPING and len(call.args) == 1):
        return _is_scalar(first) if isinstance(first, Tensor) else None
    if own_input and name in _SHAPE_KEEPING and isinstance(first, Tensor) and first.scalar is False:
        return False  # what else it is given may only add dimensions: `clamp(x, min=0)`
    if name in ("tensor", "as_tensor", "to_tensor"):
        return rank_of_data(call, first)
    if fact.parameters.split()[:1] in (["*size"], ["size"], ["shape"], ["size_or_shape"]) or name in _RESHAPING:
        return rank_of_size(call)
    return None


def rank_of_data(call: cst.Call, first: Value | None) -> bool | None:
    """Whether a tensor made of the data in a call's first argument is 0-d."""
    data = call.args[0].value if call.args and not call.args[0].star else None
    if isinstance(data, (cst.List, cst.Tuple, cst.ListComp)):
        return False
    return _is_scalar(first)


def rank_of_size(call: cst.Call) -> bool | None:
    """Whether a size asks for no dimension: ``()`` does, ``3``, ``2, 3`` and ``(1,)`` do not."""
    sizes = [arg for arg in call.args if arg.keyword is None or arg.keyword.value in ("size", "shape")]
    if not sizes or any(arg.star for arg in sizes):
        return None
    size = sizes[0].value
    if isinstance(size, (cst.List, cst.Tuple)):
        starred = any(isinstance(element, cst.StarredElement) for element in size.elements)
        return None if starred else not size.elements
    return False if len(sizes) > 1 or integer_literal(size) is not None else None


def is_one_size(node: cst.Subscript) -> bool:
    """Whether one entry of a size is read, of whatever has such: ``x.size()[0]``, ``x.shape[0]``."""
    if integer_literal(subscript_index(node)) is None:
        return False
    match node.value:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[]):
            return True
        case cst.Attribute(attr=cst.Name(value="shape")):
            return True
    return False


def is_unreduced(call: cst.Call) -> bool:
    """Whether a loss function is told to give one loss a sample."""
    reduction, reduce = argument(call, None, "reduction"), argument(call, None, "reduce")
    return (reduction is not None and constant(reduction.value) == "none") or (
        reduce is not None and constant(reduce.value) is False
    )


def is_reduced_fully(fact: FunctionFact, call: cst.Call, *, own_input: bool) -> bool:
    """Whether a reducing function, called like this, surely gives a 0-d tensor."""
    names = _bound(fact, call, own_input=own_input)
    if names is None:
        return False
    for name, arg in names:
        value = constant(arg.value)
        if name in _DIMENSIONS or (name == "other" and _DIMENSIONS.intersection(fact.parameters.split())):
            return False
        if name == "reduction" and value not in ("mean", "sum", "batchmean"):
            return False
        if name == "reduce" and value is not True:
            return False
        if name is None:
            return False
    return True


def _only_reduces(fact: FunctionFact) -> bool:
    """Whether a function takes nothing but a tensor and the dimensions of it that go: no second tensor, no weight."""
    return set(fact.parameters.split()) <= _OF_REDUCTIONS


def _by_dimension(fact: FunctionFact, call: cst.Call, *, own_input: bool) -> bool:
    """Whether a call names the dimension to reduce; a tensor in its place is compared element by element."""
    names = _bound(fact, call, own_input=own_input) or ()
    return any(
        isinstance(constant(arg.value), int) or arg.keyword is not None
        for name, arg in names
        if name in ("dim", "axis", "other", None)
    )


def _bound(fact: FunctionFact, call: cst.Call, *, own_input: bool) -> list[tuple[str | None, cst.Arg]] | None:
    """The arguments after the input tensor with the parameter each is bound to; ``None`` when that is not certain."""
    positional = [name for name in fact.parameters.split(" *")[0].split() if name != "*"]
    if not own_input and positional[:1] in (["self"], ["input"], ["x"]):
        positional = positional[1:]
    bound: list[tuple[str | None, cst.Arg]] = []
    index = 0
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is not None:
            bound.append((arg.keyword.value, arg))
            continue
        name = positional[index] if index < len(positional) else None
        if not (own_input and index == 0):
            bound.append((name, arg))
        index += 1
    return bound
