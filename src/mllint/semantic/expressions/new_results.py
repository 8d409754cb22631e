"""Whether a method gives something new and leaves what it is called on as it was."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.annotations import declares_no_tensor
from mllint.semantic.expressions.imports import is_library
from mllint.semantic.files.testing import is_benchmark
from mllint.semantic.names.uses import calls_among, uses
from mllint.semantic.values import (
    Array,
    Batch,
    Elements,
    Mapping,
    Module,
    Nothing,
    Number,
    Object,
    Other,
    Output,
    Repeated,
    Tensor,
    Text,
    Value,
)
from mllint.syntax.shape import dotted_path, integer_literal, last_word, string_literal, writes_elsewhere
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

NEW = ("tensor", "scalar", "tensors")
"""What functions and methods return that compute something new."""

# Methods that tensors have as well, but work in place: of numpy arrays, and of lists, sets and dicts.
_CHANGING_ARRAYS = frozenset({"sort", "fill", "resize", "put", "partition"})
RESHAPING = frozenset({
    "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "t", "flatten", "unflatten", "expand", "repeat",
    "tile", "broadcast_to", "swapaxes", "swapdims", "movedim", "moveaxis", "repeat_interleave", "view_as", "reshape_as",
    "expand_as", "sum_to_size",
})  # fmt: skip
"""Methods that give another shape. What stands below has run with the one there was; with another it may broadcast."""
_OF_OTHER_SHAPE = (
    "pool", "flatten", "interpolate", "upsampl", "pad", "fold", "shuffle", "similarity", "distance", "one_hot",
)  # fmt: skip
"""Parts of the names of functions and layers that give another shape, too."""
_SHAPING = frozenset({"view", "reshape", "expand", "repeat", "tile", "broadcast_to"})
_TOLD_BY_NUMBERS = {"squeeze": (0, 1), "transpose": (2, 2), "swapaxes": (2, 2), "view": (1, 8), "reshape": (1, 8)}
"""How many numbers these methods take, at least and at most."""
_MOVING = frozenset({"to", "cuda", "cpu", "npu", "xpu"})
_CONVERTING = frozenset({
    "to", "type", "type_as", "astype", "cast", "cpu", "cuda", "float", "double", "half", "bfloat16", "long", "int",
    "short", "bool", "byte",
})  # fmt: skip
_KEEPING_NUMBERS = _CONVERTING | _MOVING | {"contiguous", "pin_memory"}
_CUTTING = "detach"
_OF_GRAPHS = "torch_geometric"
_CUTS_BY_ITSELF = re.compile(rb"\bdef\s+detach\b")
_CHANGING_CONTAINERS = frozenset({name for kind in (list, dict, set) for name in dir(kind)})


def gives_new(model: "Model", value: Value | None, name: str, paddle: tuple[int, int] | None) -> bool:
    """Whether a thing is surely one whose method of that name gives a new thing and changes nothing.

    ``paddle`` is the version of Paddle that the project runs on; ``None`` for the newest.
    """
    is_own = name in model.function_names
    match value:
        case Tensor() | Batch(opaque=False):
            fact = lookup.tensor_method(value.framework, name)
            in_place = name == "to" and value.framework == "paddle" and (paddle or (3, 0)) < (3, 0)
            return fact is not None and fact.returns in NEW and not in_place
        case Object(kind="packed"):
            return lookup.tensor_method("torch", name) is not None
        case Output():
            return name not in lookup.shared_methods() and not is_own
        case None | Batch():
            is_known = name in lookup.tensor_only_methods() and not is_own and model.framework is not None
            return is_known and not is_defined_beside(model, name)
    return False


def is_defined_beside(model: "Model", name: str) -> bool:
    """Whether a file of the project from which something is imported has a function or method of that name."""
    for statement in model.tree.by_type.get(cst.ImportFrom, ()):
        module = dotted_path(statement.module) if statement.module is not None else ""
        if module is not None and (statement.relative or not is_library(model, module)):
            sibling = model.sibling(module, len(statement.relative))
            if sibling is not None and name in sibling.function_names:
                return True
    return False


def is_cut_tensor(model: "Model", value: Value | None, call: cst.Call) -> bool:
    """Whether ``detach()`` is called on what a network gives, in a project where nothing has one of its own.

    Lists and dicts of tensors have none, so it is a tensor; the state of a decoder may be an object that detaches the
    tensors it holds, as the graphs of PyTorch Geometric do.
    """
    if not isinstance(value, Output) or call.args or last_word(call.func) != _CUTTING:
        return False
    if _CUTTING in model.function_names or model.imports(_OF_GRAPHS):
        return False
    return model.project is None or not model.project.is_written_anywhere(model.path, _CUTS_BY_ITSELF)


def is_other_object(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the code reads of a part of a batch what no tensor has: ``graph.ndata``. So it is of another class.

    Or it is declared as one of another library.
    """
    value = model.value(node)
    if not isinstance(value, Batch):
        return value is None and any(declares_no_tensor(model, binding) for binding in model.reaching(node))
    read = (model.tree.parent(use) for binding in model.reaching(node) for use in uses(model, binding))
    return any(
        isinstance(part, cst.Attribute)
        and lookup.tensor_method(value.framework, part.attr.value) is None
        and lookup.tensor_attribute(value.framework, part.attr.value) is None
        for part in read
    )


def keeps_numbers(name: str) -> bool:
    """Whether a method of a tensor gives the same numbers: on another device, of another type, laid out otherwise."""
    return name in _KEEPING_NUMBERS


def gives_other_shape(name: str) -> bool:
    """Whether a function or layer of this name gives, or may give, another shape than that of what it is given."""
    return name.removesuffix("()") in RESHAPING or any(word in name.lower() for word in _OF_OTHER_SHAPE)


def gives_new_shape(model: "Model", call: cst.Call) -> bool:
    """Whether a thing that is not known surely has a new one made of it, of another shape."""
    return model.framework is not None and (
        _takes_own_shape(call) or _is_shaped_alike(model, call) or _turns_axes(model, call)
    )


def _takes_own_shape(call: cst.Call) -> bool:
    """Whether something is given another shape by its own: ``x.view(x.shape[0], -1)``. All that has one gives a new
    thing then.
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _SHAPING:
        return False
    path = dotted_path(call.func.value)
    return path is not None and any(
        isinstance(part, cst.Attribute) and part.attr.value in ("shape", "size") and dotted_path(part.value) == path
        for arg in call.args
        for part in subtree(arg.value)
    )


def _turns_axes(model: "Model", call: cst.Call) -> bool:
    """Whether a method is told axes or sizes by numbers: ``x.squeeze(0)``, ``x.view(-1, 3)``.

    Tensors of every framework and arrays have it, and give a new thing then.
    """
    name = last_word(call.func)
    fewest, most = _TOLD_BY_NUMBERS.get(name or "", (1, 0))
    if name is None or not fewest <= len(call.args) <= most or any(arg.keyword or arg.star for arg in call.args):
        return False
    # A computed number alone may be anything's: `window.view(count)`.
    is_literal = all(integer_literal(arg.value) is not None for arg in call.args)
    is_told = is_literal or (len(call.args) > 1 and all(_is_number(model, arg.value) for arg in call.args))
    return is_told and name not in model.function_names and not is_defined_beside(model, name)


def _is_number(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether something is a number, or is computed with one: a size where it stands among those of an axis."""
    if isinstance(node, cst.BinaryOperation):
        return _is_number(model, node.left) or _is_number(model, node.right)
    return integer_literal(node) is not None or isinstance(model.value(node), Number)


def _is_shaped_alike(model: "Model", call: cst.Call) -> bool:
    """Whether the function gives the same name what the same method of it gives: ``x = x.reshape(a, b)``."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _SHAPING:
        return False
    path, function = dotted_path(call.func), model.enclosing_function(call)
    for other in model.calls_by_word.get(call.func.attr.value, ()):
        statement = model.tree.parent(other)
        if path is not None and dotted_path(other.func) == path and isinstance(statement, cst.Assign):
            targets = [dotted_path(target.target) for target in statement.targets]
            if targets == [dotted_path(call.func.value)] and model.enclosing_function(other) is function:
                return True
    return False


def gives_new_on_some_way(
    model: "Model", receiver: cst.BaseExpression, name: str, paddle: tuple[int, int] | None
) -> bool:
    """Whether a thing that may come from several places is a tensor from one of them, and from none of them something
    that such a method changes.
    """
    values = model.alternatives(receiver)
    return (
        len(values) > 1
        and any(isinstance(value, (Tensor, Batch)) and gives_new(model, value, name, paddle) for value in values)
        and not any(_may_change_itself(value, name) for value in values)
    )


def _may_change_itself(value: Value | None, name: str) -> bool:
    """Whether a thing is known to be something that may have a method of that name that works in place."""
    match value:
        case None | Tensor() | Batch() | Output() | Nothing() | Number() | Text() | Other(kind="image"):
            return False
        case Array():
            return name in _CHANGING_ARRAYS
        case Elements() | Repeated() | Mapping():
            return name in _CHANGING_CONTAINERS
    return True


def is_without_state(layer: Module) -> bool:
    """Whether calling a layer of the library does no more than compute something new: an activation, a pooling."""
    if layer.name is None or layer.call is None or layer.wrappers or layer.name.endswith("Identity"):
        return False
    fact, state = lookup.class_(layer.name), lookup.layer_state(layer.name)
    if fact is None or fact.kind != "layer" or fact.called != "tensor" or state is None or state.keys or state.sized:
        return False
    return not writes_elsewhere(layer.call, lookup.parameters(layer.name))


def is_converted(node: cst.BaseExpression) -> bool:
    """Whether a chain of methods takes a tensor to another device or type: ``x.cpu()`` of ``x.cpu().clamp(0, 1)``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in _CONVERTING:
            return True
        node = node.func.value
    return False


def asks_for_cpu_type(call: cst.Call) -> bool:
    """Whether a type is asked for that only tensors on the CPU have: ``x.type(torch.FloatTensor)``."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "type" or len(call.args) != 1:
        return False
    kind = dotted_path(call.args[0].value) or string_literal(call.args[0].value) or ""
    return kind.endswith("Tensor") and "cuda" not in kind


def is_measured(model: "Model", call: cst.Call) -> bool:
    """Whether a benchmark computes something for the time that it takes. What moves a tensor is there for more."""
    return is_benchmark(model) and last_word(call.func) not in _CONVERTING


def moves_one_of_several(model: "Model", call: cst.Call) -> bool:
    """Whether a pair is given back of which the code drops the moves of both, and one may be no tensor.

    To mend the other alone would put them apart: ``image.cuda()``, ``label.cuda()`` and ``return image, label``.
    """
    function = model.enclosing_function(call)
    if function is None or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _MOVING:
        return False
    mine, word = dotted_path(call.func.value), call.func.attr.value
    others = {
        dotted_path(other.func.value)
        for other in calls_among(model, model.names_within(word, model.scope(function)))
        if isinstance(other.func, cst.Attribute)
        and isinstance(model.tree.parent(other), cst.Expr)
        and model.enclosing_function(other) is function
        and model.value(other.func.value) is None
    }
    for statement in model.scope(function).returns if others - {mine, None} else ():
        if isinstance(statement.value, (cst.Tuple, cst.List)):
            given = {dotted_path(element.value) for element in statement.value.elements}
            if mine in given and others & given - {mine, None}:
                return True
    return False
