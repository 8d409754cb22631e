"""What an attribute of a value is."""

from functools import reduce
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.semantic.expressions.encodings import is_entry
from mllint.semantic.expressions.imports import library_or_file
from mllint.semantic.expressions.module_lists import named_module
from mllint.semantic.expressions.options import option
from mllint.semantic.expressions.tables import namespace
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import (
    Array,
    Batch,
    ClassObject,
    Elements,
    File,
    Function,
    Instance,
    Loaded,
    Mapping,
    Method,
    Module,
    Number,
    Object,
    Options,
    Other,
    Output,
    Repeated,
    StateDict,
    Symbol,
    Tensor,
    Text,
    Unfinished,
    Value,
    join,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MODULE_SEQUENCES = frozenset({
    "torch.nn.Sequential", "torch.nn.ModuleList", "paddle.nn.Sequential", "paddle.nn.LayerList",
})  # fmt: skip

_TRAINABLE = 5
"""Where Paddle's ``ParamAttr`` takes ``trainable``: behind a name, an initializer, a rate and a regularizer."""
ENTRIES = frozenset({"keys", "values", "items"})
"""Methods of a dict of tensors that no tensor has (Paddle's ``values()`` of a sparse tensor aside)."""

# Attributes of a tensor that are the same numbers without the graph, or the same tensor seen otherwise.
_TENSOR_VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})


def attribute(model: "Model", value: Value | None, name: str) -> Value | None:
    """What ``value.name`` is; ``None`` when that is not certain."""
    match value:
        case Unfinished():
            return value
        case Symbol(name="sys") if name == "argv":
            return Repeated(Text())
        case Symbol():
            path = f"{value.name}.{name}"
            # In a folder that is no package too: `import models.unet`.
            return library_or_file(model, path) if model.imports(path) else Symbol(lookup.canonical(path))
        case File() if name == "__dict__":
            return namespace(value)
        case File():
            return value.model.exported(name) or _submodule(value, name)
        case Tensor():
            return _of_tensor(value, name)
        case Batch(opaque=True):
            return None
        case Batch() | Output() if name in ENTRIES:
            return Method(value, name)
        case Batch():
            return _of_tensor(Tensor(value.framework, False), name)
        case Output() if name in lookup.moves():
            return Method(value, name)
        case Output():
            found = _of_tensor(Tensor(value.framework, value.attached), name)
            return found if found is not None else value
        case Module():
            return _of_module(model, value, name)
        case Instance():
            return value.definition.attribute(name)
        case ClassObject():
            return _of_class(value, name)
        case Array():
            return Array(value.scalar) if name == "T" else Method(value, name)
        case Options():
            return option(value.model, model, name)
        case Object(kind="path") if name == "parent":
            return value
        case Object(kind="path") if name in ("name", "stem", "suffix"):
            return Text()
        case Object(kind="packed") if name == "data":
            return Tensor("torch")
        case Mapping(item=Tensor()) if is_entry(name):
            return value.item
        case Object() | Loaded() | StateDict() | Mapping() | Text() | Repeated() | Elements() | Other():
            return Method(value, name)
    return None


def _submodule(package: File, name: str) -> Value | None:
    submodule = package.model.sibling(name, 1)
    return None if submodule is None else File(submodule)


def _of_tensor(value: Tensor, name: str) -> Value | None:
    if value.or_number and not hasattr(0.0, name):
        # On the paths that get here it is a tensor: a number has no such attribute.
        value = replace(value, or_number=False)
    if name == "data":
        return replace(value, attached=False, parameter=False, leaf=False)
    if name == "grad":
        return Tensor(value.framework, False, value.scalar)
    if name in _TENSOR_VIEWS:
        return replace(value, parameter=False, leaf=False)
    kind = lookup.tensor_attribute(value.framework, name)
    if kind == "number":
        return Number()
    if kind in ("size", "dtype", "device", "string"):
        return Text() if kind == "string" else Other(kind)
    if lookup.tensor_method(value.framework, name) is not None:
        return Method(value, name)
    return None


def _of_module(model: "Model", value: Module, name: str) -> Value | None:
    if value.wrappers:
        if name in ("module", "_orig_mod", "_layers"):
            return _inside_of(value, name)
        return _handed_on(model, value, name) or Method(value, name)
    if value.definition is not None:
        found = value.definition.attribute(name)
        if found is not None:
            return found
        if any(True for _ in value.definition.assignments(name)):
            return None
    if value.others:
        found_of_each = [_of_module(model, other, name) for other in value.others]
        if all(isinstance(found, Method) for found in found_of_each):
            return Method(value, name)  # of the library's class: each has the same
        return reduce(join, found_of_each)
    if value.name is not None and name in ("weight", "bias"):
        leaf = value.call is not None and all(_is_trained(model, arg, name) for arg in value.call.args)
        return Tensor(value.framework, True, parameter=True, leaf=leaf)
    return named_module(model, value, name) or Method(value, name)


def _handed_on(model: "Model", value: Module, name: str) -> Value | None:
    """What a wrapper that hands on what it has not itself has of the module inside: ``torch.compile(net).loss``."""
    outer = lookup.wrapper(value.wrappers[0])
    if outer is None or not outer.hands_on or "?" in value.wrappers or lookup.method("torch.nn.Module", name):
        return None
    return _of_module(model, replace(value, wrappers=value.wrappers[1:]), name)


def _is_trained(model: "Model", arg: cst.Arg, name: str) -> bool:
    """Whether an argument of a layer leaves its parameter a gradient: in Paddle ``weight_attr`` may take it."""
    keyword = "" if arg.keyword is None else arg.keyword.value
    if keyword == f"{name}_attr" and isinstance(arg.value, cst.Name) and arg.value.value == "False":
        return False  # there is none
    return not keyword.endswith("_attr") or _asks_for_gradient(model, arg.value)


def _asks_for_gradient(model: "Model", attr: cst.BaseExpression) -> bool:
    """Whether Paddle makes a parameter that needs a gradient of this, where it makes one."""
    if isinstance(attr, cst.Call):
        is_plain = not any(arg.star or (arg.keyword and arg.keyword.value == "trainable") for arg in attr.args)
        return is_plain and len(attr.args) < _TRAINABLE and model.library_name(attr.func) == "paddle.ParamAttr"
    if isinstance(attr, cst.Name) and attr.value in ("False", "None"):
        return True
    bindings = model.reaching(attr) if isinstance(attr, cst.Name) and id(attr) in model.tree.parents else ()
    made = [None if item.path else item.value for item in bindings if item.kind is BindingKind.ASSIGN]
    return bool(made) and len(made) == len(bindings) and all(item and _asks_for_gradient(model, item) for item in made)


def _inside_of(value: Module, name: str) -> Module | None:
    """The module that a wrapper has inside. What has none on some ways raises there, unless it has its own."""
    if "?" not in value.wrappers:
        return replace(value, wrappers=value.wrappers[1:])
    known = (value, *value.others)
    if value.inside is None or any(item.definition and any(item.definition.assignments(name)) for item in known):
        return None
    return replace(value, wrappers=value.inside, inside=None)


def _of_class(value: ClassObject, name: str) -> Value | None:
    method = value.definition.method(name)
    if method is not None:
        receiver = value if "builtins.classmethod" in method.decorators else None
        return Function(method, receiver)
    return value.definition.attribute(name)
