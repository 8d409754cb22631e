"""What a call gives back."""

from functools import reduce
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.knowledge.schema import Class as ClassFact
from mllint.semantic.expressions import picked, tensors
from mllint.semantic.expressions.attributes import ENTRIES
from mllint.semantic.expressions.encodings import encoded
from mllint.semantic.expressions.evidence import is_of_tensors
from mllint.semantic.expressions.imports import is_of_standard_library, library_or_file
from mllint.semantic.expressions.iteration import element_of, item_of
from mllint.semantic.expressions.module_lists import MODULE_DICTS
from mllint.semantic.expressions.module_outputs import module_output
from mllint.semantic.expressions.returns import made_of, returned_to
from mllint.semantic.expressions.tables import dict_item, dict_value, namespace
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.values import (
    MAX_OTHERS,
    Array,
    Batch,
    Choice,
    ClassObject,
    Elements,
    File,
    Framework,
    Function,
    Instance,
    Loaded,
    Mapping,
    Member,
    Method,
    Module,
    Nothing,
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
from mllint.syntax.shape import argument, constant_given, has_star_arguments, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SAME_AS_FIRST = frozenset({
    "copy.copy", "copy.deepcopy", "builtins.iter", "builtins.reversed", "builtins.sorted", "tqdm.tqdm",
    "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.tqdm_notebook", "tqdm.std.tqdm", "tqdm.trange", "typing.cast",
    "torch.jit.script", "torch.jit.trace", "torch.compile", "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm", "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "paddle.nn.utils.weight_norm", "paddle.nn.utils.spectral_norm", "paddle.jit.to_static",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "paddle.nn.SyncBatchNorm.convert_sync_batchnorm",
    "tqdm.rich.tqdm", "progressbar.progressbar", "rich.progress.track",
})  # fmt: skip
_NUMBER_FUNCTIONS = frozenset({
    f"builtins.{name}"
    for name in ("len", "int", "float", "bool", "round", "isinstance", "hasattr", "id", "hash", "any", "all", "ord",
                 "callable", "issubclass")
})  # fmt: skip
_TEXT_FUNCTIONS = frozenset({
    "builtins.str", "builtins.repr", "builtins.format", "builtins.input", "builtins.chr", "os.path.join",
    "os.path.abspath", "os.path.expanduser", "os.path.dirname", "os.path.basename", "os.path.realpath", "os.getcwd",
    "os.getenv", "os.path.normpath", "torch.hub.get_dir",
})  # fmt: skip
_TENSOR_CLASSES = frozenset({
    "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor", "torch.ByteTensor", "torch.BoolTensor",
    "torch.DoubleTensor", "torch.HalfTensor", "torch.cuda.FloatTensor", "torch.cuda.LongTensor",
    "torch.cuda.ByteTensor", "torch.cuda.IntTensor", "torch.cuda.DoubleTensor", "torch.cuda.HalfTensor",
})  # fmt: skip
# Methods of a module that give the module itself.
_MODULE_SELF = frozenset({
    "cuda", "cpu", "to", "float", "double", "half", "bfloat16", "type", "apply", "requires_grad_", "share_memory",
    "to_empty", "xpu", "ipu", "astype",
})  # fmt: skip
_SELF_IN_TORCH = frozenset({"train", "eval"})
_ARRAY_REDUCTIONS = frozenset(
    {"sum", "mean", "std", "var", "min", "max", "prod", "argmax", "argmin", "all", "any", "item"}
)


def called(model: "Model", call: cst.Call) -> Value | None:
    """What a call gives; ``None`` when that is not certain."""
    return _called(model, call, model.value(call.func))


def _called(model: "Model", call: cst.Call, callee: Value | None) -> Value | None:
    match callee:
        case Unfinished():
            return callee
        case Choice():
            made = reduce(join, (_called(model, call, option) for option in callee.options))
            if isinstance(made, Module) and len(callee.options) > MAX_OTHERS:
                return replace(made, call=call)
            return made
        case Symbol():
            return _of_symbol(model, call, callee.name)
        case ClassObject():
            return made_of(model, call, callee)
        case Function():
            return _picked_from_given(model, call, callee) or returned_to(model, call, callee)
        case Method():
            return method_result(model, call, callee.receiver, callee.name)
        case Module():
            return module_output(model, call, callee)
        case Instance():
            return called_method(callee, "__call__")
        case Member():
            return picked.result(model, call, callee.package)
        case Object(kind="loader") if callee.framework == "paddle":
            return callee  # Paddle's loaders may be called for their iterator
        case None if not call.args and isinstance(call.func, cst.Attribute) and call.func.attr.value == "item":
            return Number()  # of tensors, arrays and whatever else has such a method
        case None if isinstance(call.func, cst.Attribute) and is_of_tensors(model, call.func.attr.value):
            framework = model.framework
            return framework and tensors.method_result(model, call, Tensor(framework), call.func.attr.value)
        case None if (tokens := encoded(model, call)) is not None:
            return tokens
        case None if isinstance(call.func, cst.Name):
            assigned = only_assigned(model, call.func)
            if isinstance(assigned, cst.Lambda):
                return model.value(assigned.body)
            by_default = picked.by_default(model, call.func)
            return None if by_default is None else picked.result(model, call, by_default.package)
    return None


def called_method(value: Instance, name: str) -> Value | None:
    """What a method of a project object gives back."""
    method = value.definition.method(name)
    return None if method is None else method.model.returned(method)


# -- library functions and classes ---------------------------------------------------------------------------------


def _of_symbol(model: "Model", call: cst.Call, name: str) -> Value | None:
    first = call.args[0].value if call.args and not call.args[0].star else None
    wrapped = _wrapped(model, call, name)
    if wrapped is not None:
        return wrapped
    if name in _SAME_AS_FIRST:
        return None if first is None else model.value(call.args[1].value if name == "typing.cast" else first)
    if name.startswith("builtins."):
        return _of_builtin(model, call, name.removeprefix("builtins."), first)
    if name in _TEXT_FUNCTIONS:
        return Text()
    if name in ("glob.glob", "glob.iglob", "os.listdir"):
        return Repeated(Text())
    if name in ("torch.load", "paddle.load", "paddle.framework.io.load"):
        return Loaded("paddle" if name.startswith("paddle") else "torch", call)
    if name == "importlib.import_module" and len(call.args) == 1:
        written = None if first is None else string_literal(first)
        return None if written is None else library_or_file(model, written)
    if name in ("pathlib.Path", "pathlib.PurePath"):
        return Object("path", name, call)
    if name == "collections.OrderedDict":
        return Mapping(call)
    if is_of_standard_library(name) and name.rpartition(".")[2][:1].isupper():
        return Other("instance")  # a mock, a parser, a thread
    return _of_library(model, call, name)


def _of_library(model: "Model", call: cst.Call, name: str) -> Value | None:
    framework = lookup.framework_of(name)
    if name in _TENSOR_CLASSES:
        return Tensor("torch", False, scalar=False)
    if name in ("torch.autograd.Variable", "paddle.to_tensor", "torch.nn.Parameter", "paddle.create_parameter"):
        return _fresh_tensor(model, call, name)
    if framework == "torch" or framework == "paddle":
        fact = lookup.class_(name)
        if fact is not None:
            return _constructed(name, fact, call, framework)
        function = lookup.function(name)
        if function is not None and function.returns == "module":
            return Module(framework, None, call=call)
        if function is not None:
            return tensors.function_result(model, call, name, function, framework)
        # `torch.Tensor.add(x, y)` and the like
        owner, _, method = name.rpartition(".")
        if owner in ("torch.Tensor", "paddle.Tensor") and lookup.tensor_method(framework, method) is not None:
            return None
        return None
    function = lookup.function(name)
    if function is None:
        return None
    match function.returns:
        case "tensor":
            return tensors.like_first(model, call)
        case "module":
            return Module("torch", None, call=call)
        case "array":
            return Array(None)
        case "number":
            return Number()
    return None


def _constructed(name: str, fact: ClassFact, call: cst.Call, framework: Framework) -> Value | None:
    if fact.kind in ("layer", "loss", "container", "rnn"):
        return Module(framework, name, call=call)
    return Other("instance") if fact.kind == "other" else Object(fact.kind, name, call)


def _fresh_tensor(model: "Model", call: cst.Call, name: str) -> Value | None:
    inner = model.value(call.args[0].value) if call.args else None
    if isinstance(inner, Unfinished):
        return inner
    if name == "torch.nn.Parameter":
        leaf = constant_given(call, 1, "requires_grad", True) is True
        scalar = inner.scalar if isinstance(inner, Tensor) else None
        return Tensor("torch", True if leaf else None, scalar, parameter=True, leaf=leaf)
    if name == "paddle.create_parameter":
        # Attributes may say that it is not to be trained.
        leaf = argument(call, 3, "attr") is None
        return Tensor("paddle", True if leaf else None, tensors.rank_of_size(call), parameter=True, leaf=leaf)
    if name == "paddle.to_tensor":
        attached = constant_given(call, None, "stop_gradient") is False
        return Tensor("paddle", attached, tensors.rank_of_data(call, inner), leaf=attached)
    requires = constant_given(call, 1, "requires_grad", False)
    if requires is True:
        return Tensor("torch", True, inner.scalar if isinstance(inner, Tensor) else None, leaf=True)
    # Whatever history it has been given stays behind.
    has_none = False if requires is False else None
    return replace(inner, attached=has_none, leaf=False) if isinstance(inner, Tensor) else Tensor("torch", has_none)


def _wrapped(model: "Model", call: cst.Call, name: str) -> Value | None:
    """A module inside a wrapper (``DataParallel`` and its kind)."""
    if lookup.wrapper(name) is None or not call.args:
        return None
    inner = model.value(call.args[0].value)
    if isinstance(inner, Unfinished):
        return inner
    if isinstance(inner, Module):
        return replace(inner, wrappers=(name, *inner.wrappers), inside=None)
    framework = lookup.framework_of(name)
    return Module("paddle" if framework == "paddle" else "torch", wrappers=(name, "?"))


def _of_builtin(model: "Model", call: cst.Call, name: str, first: cst.BaseExpression | None) -> Value | None:
    if f"builtins.{name}" in _NUMBER_FUNCTIONS:
        return Number()
    if f"builtins.{name}" in _TEXT_FUNCTIONS:
        return Text(string_literal(first)) if name == "str" and first is not None else Text()
    if name == "super":
        return _super(model, call)
    if name == "range":
        return Repeated(Number(), "range")
    if name == "dict":
        return Mapping(call)
    if name == "open":
        return Other("file")
    if first is None:
        return Elements((), mutable=True) if name in ("list", "set") else None
    value = model.value(first)
    match name:
        case "list" | "tuple" | "set":
            return value if isinstance(value, (Elements, Repeated)) else Repeated(item_of(model, first))
        case "enumerate":
            return Repeated(Elements((Number(), item_of(model, first))))
        case "zip":
            return Repeated(Elements(tuple(item_of(model, arg.value) for arg in call.args)))
        case "map" if isinstance(first, cst.Lambda):
            return Repeated(model.value(first.body))
        case "next":
            return element_of(value)
        case "max" | "min" if sum(arg.keyword is None for arg in call.args) == 1:
            item = element_of(value)
            return item if isinstance(item, Text) else None
        case "abs":
            return replace(value, leaf=False) if isinstance(value, Tensor) else _number(value)
        case "sum":
            item = element_of(value)
            return replace(item, or_number=True, leaf=False) if isinstance(item, Tensor) else None
        case "print":
            return Nothing()
        case "getattr":
            return _of_namespace(call, value) if isinstance(value, File) else picked.member(model, call, value)
    return None


def _of_namespace(call: cst.Call, file: File) -> Value | None:
    """What ``getattr(file, name)`` gives."""
    if len(call.args) != 2 or any(arg.star or arg.keyword is not None for arg in call.args):
        return None
    name = string_literal(call.args[1].value)
    return dict_value(namespace(file)) if name is None else file.model.exported(name)


def _picked_from_given(model: "Model", call: cst.Call, function: Function) -> Value | None:
    """What a function makes of what it picks by name out of a package that it is given: ``getattr(package, name)()``.

    With which arguments is not said.
    """
    info = function.definition
    made = info.scope.returns[0].value if len(info.scope.returns) == 1 else None
    picking = made.func if isinstance(made, cst.Call) else None
    if not isinstance(picking, cst.Call) or info.model.qualified_name(picking.func) != "builtins.getattr":
        return None
    package = picking.args[0].value
    bindings = info.model.reaching(package) if isinstance(package, cst.Name) else ()
    bound = bindings[0].node if len(bindings) == 1 else None
    position = next((index for index, item in enumerate(info.parameters) if item is bound), None)
    if position is None or has_star_arguments(call) or not info.is_plain:
        return None
    given = argument(call, position - (function.receiver is not None), info.parameters[position].name.value)
    value = None if given is None else model.value(given.value)
    if isinstance(value, File):
        made_of_it = _called(model, call, _of_namespace(picking, value))
    else:
        member = picked.member(info.model, picking, value)
        made_of_it = None if member is None else _called(model, call, member)
    if isinstance(made_of_it, Module):
        return replace(made_of_it, call=None, others=tuple(replace(item, call=None) for item in made_of_it.others))
    return replace(made_of_it, call=None) if isinstance(made_of_it, Object) else None


def _number(value: Value | None) -> Number | None:
    return value if isinstance(value, Number) else None


def _super(model: "Model", call: cst.Call) -> Value | None:
    """``super()`` in a method: an instance of the first base, where that is a project class."""
    function = model.enclosing_function(call)
    owner = None if function is None else model.function_info(function).owner
    if owner is None or not owner.bases:
        return None
    base = owner.bases[0]
    if isinstance(base, ClassObject):
        return base.definition.instance()
    return (
        Module(owner.framework, "torch.nn.Module" if owner.framework == "torch" else "paddle.nn.Layer")
        if owner.framework
        else None
    )


# -- methods of library objects --------------------------------------------------------------------------------------


def method_result(model: "Model", call: cst.Call, receiver: Value, name: str) -> Value | None:
    """What a call of a method of something that is no class of the project gives back."""
    match receiver:
        case Tensor():
            return tensors.method_result(model, call, receiver, name)
        case Batch() | Output() if name in ENTRIES:
            return _of_dict_method(call, receiver, name)
        case Output():
            return replace(receiver, attached=False) if name == "detach" else receiver
        case Other(kind="instance") if name in ("parse_args", "parse_known_args"):
            options = Options("options", model)
            return options if name == "parse_args" else Elements((options, Repeated(Text())))
        case Module():
            return _of_module_method(model, call, receiver, name)
        case Object():
            return _of_object_method(model, call, receiver, name)
        case Mapping(item=Tensor()) if name == "to":
            return receiver  # no dict of Python has it; that of a tokenizer moves what is in it
        case StateDict() | Mapping() | Loaded():
            return _of_dict_method(call, receiver, name)
        case Array():
            return _of_array_method(call, name)
        case Text():
            return (
                Repeated(Text())
                if name in ("split", "rsplit", "splitlines")
                else Text()
                if name in _TEXT_METHODS
                else None
            )
        case Repeated() | Elements() if name == "pop":
            return element_of(receiver)
        case Repeated() | Elements() if name == "copy":
            return receiver
    return None


_TEXT_METHODS = frozenset({
    "format", "join", "strip", "lstrip", "rstrip", "lower", "upper", "replace", "title", "capitalize", "zfill", "ljust",
    "rjust", "removeprefix", "removesuffix", "center", "expandtabs",
})  # fmt: skip


def _of_module_method(model: "Model", call: cst.Call, receiver: Module, name: str) -> Value | None:
    framework = receiver.framework
    if name in _MODULE_SELF or (name in _SELF_IN_TORCH and framework == "torch"):
        return receiver
    match name:
        case "values" if receiver.name in MODULE_DICTS:
            return Repeated(Module(framework))
        case "items" if receiver.name in MODULE_DICTS:
            return Repeated(Elements((Text(), Module(framework))))
        case "state_dict":
            return StateDict(receiver, call)
        case "create_parameter" if framework == "paddle":
            leaf = argument(call, 1, "attr") is None  # attributes may say that it is not to be trained
            return Tensor("paddle", True if leaf else None, parameter=True, leaf=leaf)
        case "forward":
            return module_output(model, call, receiver)
        case "parameters" | "buffers":
            return Repeated(Tensor(framework, name == "parameters", parameter=name == "parameters"), "generator")
        case "named_parameters":
            return Repeated(Elements((Text(), Tensor(framework, True, parameter=True))), "generator")
        case "named_buffers":
            return Repeated(Elements((Text(), Tensor(framework, False))), "generator")
        case "modules" | "children" | "sublayers":
            return Repeated(Module(framework), "generator")
        case "named_modules" | "named_children" | "named_sublayers":
            return Repeated(Elements((Text(), Module(framework))), "generator")
        case "load_state_dict" | "set_state_dict" | "set_dict" | "load_dict":
            return Other("incompatible_keys")
    return None


def _of_object_method(model: "Model", call: cst.Call, receiver: Object, name: str) -> Value | None:
    if name == "state_dict":
        return StateDict(receiver, call)
    if receiver.kind == "scaler" and name == "scale" and call.args:
        return model.value(call.args[0].value)
    if receiver.kind == "optimizer" and name in (
        "zero_grad",
        "clear_grad",
        "load_state_dict",
        "set_state_dict",
    ):
        return Nothing()
    if receiver.kind == "packed":
        fact = lookup.tensor_method("torch", name)
        return receiver if fact is not None and fact.returns == "tensor" else None
    if receiver.kind == "path":
        return Text() if name in ("as_posix", "read_text") else receiver if name in _PATH_METHODS else None
    return None


_PATH_METHODS = frozenset({"joinpath", "resolve", "absolute", "with_suffix", "with_name", "expanduser"})


_Dict = StateDict | Mapping | Loaded | Batch | Output


def _of_dict_method(call: cst.Call, receiver: _Dict, name: str) -> Value | None:
    if name == "copy":
        return receiver
    if name == "keys":
        return Repeated(Text())
    if name == "items":
        return Repeated(Elements((Text(), _entry(receiver))))
    if name == "values":
        return Repeated(_entry(receiver))
    if name not in ("get", "pop") or not call.args or isinstance(receiver, (StateDict, Batch, Output)):
        return None
    key, is_only = string_literal(call.args[0].value), len(call.args) == 1
    if isinstance(receiver, Loaded):
        return replace(receiver, keys=(*receiver.keys, key)) if key is not None and is_only else None
    if not is_only:
        return None
    return dict_value(receiver) if key is None else dict_item(receiver, key)


def _entry(receiver: _Dict) -> Value | None:
    if isinstance(receiver, Mapping):
        return dict_value(receiver)
    if isinstance(receiver, StateDict) and isinstance(receiver.owner, Module):
        return Tensor(receiver.owner.framework, False)
    if isinstance(receiver, Batch):
        return Batch(receiver.framework)
    return receiver if isinstance(receiver, Output) else None


def _of_array_method(call: cst.Call, name: str) -> Value | None:
    if name == "item":
        return Number()
    if name == "tolist":
        return Repeated(None)
    if name in _ARRAY_REDUCTIONS:
        return Array(True if not call.args else None)
    return Array(None) if name in ("copy", "astype", "reshape", "transpose", "squeeze", "flatten", "ravel") else None
