"""What an annotation, or the second argument of ``isinstance``, says a thing is."""

import sys
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import (
    Array,
    ClassObject,
    Elements,
    Mapping,
    Module,
    Nothing,
    Number,
    Object,
    Other,
    Repeated,
    Symbol,
    Tensor,
    Text,
    Value,
    join,
)
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_TENSORS = frozenset({
    "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor", "torch.BoolTensor", "torch.HalfTensor",
    "torch.DoubleTensor", "torch.ByteTensor", "torch.cuda.FloatTensor", "torch.autograd.Variable", "paddle.Tensor",
})  # fmt: skip
_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "paddle.base.framework.EagerParamBase"})
_TENSOR_TESTS = frozenset({"torch.is_tensor", "paddle.is_tensor"})
"""Predicates that narrow as ``isinstance`` does: they stand for the type that they ask about."""
_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.complex"})
_LISTS = frozenset({
    "typing.List", "typing.Sequence", "typing.Iterable", "typing.Iterator", "typing.Set", "builtins.list",
    "builtins.set", "collections.abc.Sequence", "collections.abc.Iterable", "collections.abc.Iterator",
})  # fmt: skip
_MAPPINGS = frozenset(
    {
        "typing.Dict",
        "typing.Mapping",
        "builtins.dict",
        "collections.OrderedDict",
        "typing.OrderedDict",
    }
)
_OF_PYTHON = sys.stdlib_module_names | {"builtins", "typing_extensions"}
_MAX_DEPTH = 8


def annotated(model: "Model", node: cst.BaseExpression, depth: int = 0) -> Value | None:
    """The value that an annotation declares; ``None`` when it says nothing that is certain."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        return _quoted(model, node)
    if isinstance(node, cst.Tuple):  # isinstance(x, (A, B))
        return _any_of(model, [element.value for element in node.elements], depth)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return _any_of(model, [node.left, node.right], depth)
    if isinstance(node, cst.Subscript):
        return _generic(model, node, depth)
    if isinstance(node, cst.Name) and node.value == "None":
        return Nothing()
    return _of_class(model.value(node))


def declares_no_tensor(model: "Model", binding: Binding) -> bool:
    """Whether a parameter is annotated with a class of some library that is none of tensors: ``signal: AudioSignal``.

    It may have methods of the same names, which work in place.
    """
    annotation = binding.node.annotation if isinstance(binding.node, cst.Param) else None
    name = None if annotation is None else model.qualified_name(annotation.annotation)
    if name is None or lookup.framework_of(name) is not None:
        return False
    return name.partition(".")[0] not in _OF_PYTHON and "ensor" not in name.rpartition(".")[2]


def members(model: "Model", node: cst.BaseExpression, depth: int = 0) -> tuple[Value | None, ...]:
    """What a thing of which one of several kinds is declared may be, one value for each."""
    inner: list[cst.BaseExpression] = []
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        inner = [node.left, node.right]
    elif isinstance(node, cst.Subscript) and model.qualified_name(node.value) in ("typing.Optional", "typing.Union"):
        inner = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    if not inner or depth > _MAX_DEPTH:
        return (annotated(model, node),)
    return tuple(value for item in inner for value in members(model, item, depth + 1))


def _any_of(model: "Model", alternatives: list[cst.BaseExpression], depth: int) -> Value | None:
    result: Value | None = Nothing()
    for alternative in alternatives:
        result = join(result, annotated(model, alternative, depth + 1))
    return result


def _of_class(value: Value | None) -> Value | None:
    if isinstance(value, ClassObject):
        return value.definition.instance()
    if not isinstance(value, Symbol):
        return None
    name = value.name
    framework = lookup.framework_of(name)
    if name in _TENSORS or name in _PARAMETERS or name in _TENSOR_TESTS:
        return Tensor("paddle" if framework == "paddle" else "torch", parameter=name in _PARAMETERS)
    if name in _NUMBERS:
        return Number()
    if name == "builtins.str":
        return Text()
    if name == "numpy.ndarray":
        return Array()
    if name in ("pathlib.Path", "pathlib.PurePath"):
        return Object("path", name)
    if name == "PIL.Image.Image":
        return Other("image")
    if name in _LISTS:
        return Repeated(None)
    if name in _MAPPINGS:
        return Mapping()
    known = lookup.class_(name)
    if known is None or framework not in ("torch", "paddle"):
        return None
    if known.kind in ("layer", "loss", "container", "rnn"):
        # The declared class is the least that is known: what is passed may derive from it.
        is_exact = known.kind == "loss" or name in _EXACT or (known.kind == "rnn" and known.called in _CALLED)
        return Module(framework, name if is_exact else None)
    return None if known.kind == "other" else Object(known.kind, name)


_EXACT = frozenset({
    "torch.nn.Linear", "torch.nn.Embedding", "torch.nn.ModuleList", "paddle.nn.Linear", "paddle.nn.Embedding",
    "paddle.nn.LayerList",
})  # fmt: skip
_CALLED = frozenset({"tensor", "tensors"})
"""What a recurrent network gives that can be called itself, as its bases can not."""


def _generic(model: "Model", node: cst.Subscript, depth: int) -> Value | None:
    origin = model.qualified_name(node.value)
    inner = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    if origin is None or len(inner) != len(node.slice):
        return None
    if origin == "typing.Optional":
        return annotated(model, inner[0], depth + 1)
    if origin == "typing.Union":
        return _any_of(model, inner, depth)
    if origin in ("typing.Annotated", "typing.Final", "typing.ClassVar"):
        return annotated(model, inner[0], depth + 1)
    if origin in _LISTS:
        return Repeated(annotated(model, inner[0], depth + 1))
    if origin in ("typing.Tuple", "builtins.tuple"):
        if isinstance(inner[-1], cst.Ellipsis):
            return Repeated(annotated(model, inner[0], depth + 1), "tuple")
        return Elements(tuple(annotated(model, item, depth + 1) for item in inner))
    if origin in _MAPPINGS:
        return Mapping(item=annotated(model, inner[1], depth + 1) if len(inner) == 2 else None)
    return None


def _quoted(model: "Model", node: cst.BaseExpression) -> Value | None:
    """A forward reference: only a plain dotted name is read."""
    text = string_literal(node)
    if text is None or not all(part.isidentifier() for part in text.split(".")):
        return None
    root, *rest = text.split(".")
    value = model.exported(root)
    for part in rest:
        value = Symbol(lookup.canonical(f"{value.name}.{part}")) if isinstance(value, Symbol) else None
    return _of_class(value)
