"""What a training is told before it begins: numbers, options and other things that hang on no graph.

Of an option nobody knows what it is where it comes from: it is read out of a file, or handed to a constructor. What is
known is that nothing was computed with weights when it was set.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.data_sources import hangs_on_nothing, is_setting
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Elements, Mapping, Module, Output, Repeated, Tensor
from mllint.syntax.shape import all_given, constant, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

# Modules compute, and a list or dict may have been filled since.
_NO_SETTINGS = (Module, Output, Elements, Repeated, Mapping)
# Methods of dicts, and of objects of options.
_LOOKING = frozenset({"get", "items", "keys", "values"})
# What the options of a program are called.
_OPTIONS = frozenset({"args", "opt", "opts", "options", "config", "configs", "cfg", "conf", "hparams", "FLAGS"})
MAX_STEPS = 8
"""Through how many names and attributes a setting is followed."""
_READERS = frozenset({
    "yaml.load", "yaml.safe_load", "yaml.full_load", "json.load", "json.loads", "toml.load", "tomllib.load",
    "numpy.load", "numpy.loadtxt", "pickle.load", "torch.load", "pandas.read_csv",
    "argparse.Namespace", "types.SimpleNamespace", "builtins.vars", "builtins.float", "builtins.int", "builtins.bool",
    "builtins.str", "builtins.len", "os.environ.get", "os.getenv", "easydict.EasyDict", "omegaconf.OmegaConf.load",
    "omegaconf.OmegaConf.create",
})  # fmt: skip
"""Functions that read a file, which holds no graph, or make an object of options of what they are given."""

_COMPARING = frozenset({"builtins.max", "builtins.min", "builtins.abs", "builtins.round", "builtins.pow"})
"""Functions that give one of the settings that they are given, or a number made of them."""


def is_set_before(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether an expression reads nothing but settings: what was there before the training, and has no graph."""
    value = model.value(node)
    if steps == 0 or isinstance(value, _NO_SETTINGS):
        return False
    if hangs_on_nothing(value) or constant(node) is not ...:
        return True
    if isinstance(value, Tensor):
        return False
    match node:
        case cst.Name() | cst.Attribute() if value is None and _is_called_options(node):
            return True
        case cst.Name():
            bindings = model.reaching(node)
            return bool(bindings) and all(_binds_setting(model, binding, steps - 1) for binding in bindings)
        case cst.Attribute() | cst.Subscript() if _is_called_options(node.value):
            return True
        case cst.Attribute():
            method = method_of_receiver(model, node.value)
            if method is not None:
                return _is_set_up(method, node.attr.value, steps - 1)
            return is_set_before(model, node.value, steps - 1)
        case cst.Subscript() | cst.UnaryOperation():
            inner = node.value if isinstance(node, cst.Subscript) else node.expression
            return is_set_before(model, inner, steps - 1)
        case cst.BinaryOperation() | cst.BooleanOperation():
            return all(is_set_before(model, side, steps - 1) for side in (node.left, node.right))
        case cst.IfExp():
            return all(is_set_before(model, side, steps - 1) for side in (node.body, node.orelse))
        case cst.Call():
            return _reads_settings(model, node, steps - 1)
    return False


def _is_called_options(node: cst.BaseExpression) -> bool:
    """Whether an expression is spelled as the options of a program: ``config``, ``self.args``."""
    return last_word(node) in _OPTIONS


def _binds_setting(model: "Model", binding: Binding, steps: int) -> bool:
    if binding.kind is BindingKind.PARAMETER:
        return is_setting(model, binding)
    is_whole = binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED) and not binding.path
    return is_whole and binding.value is not None and is_set_before(model, binding.value, steps)


def _reads_settings(model: "Model", call: cst.Call, steps: int) -> bool:
    """Whether a call reads a file of settings, or gets one out of a dict: ``config.get("margin", 0.5)``."""
    name = model.qualified_name(call.func)
    if name in _READERS:
        return True
    if name in _COMPARING:
        return bool(call.args) and all(is_set_before(model, item, steps) for item in all_given(call))
    is_get = isinstance(call.func, cst.Attribute) and call.func.attr.value == "get"
    return is_get and all(is_set_before(model, item, steps) for item in all_given(call))


def _is_set_up(method: "FunctionInfo", name: str, steps: int) -> bool:
    """Whether the constructor alone binds an attribute, to a setting or to what it is given itself."""
    owner = method.owner
    if owner is None or owner.method(name) is not None or owner.has_unknown_base:
        return False
    places = list(owner.members.assignments(name))
    return bool(places) and all(
        place.method is not None
        and place.method.name == "__init__"
        and place.value is not None
        and (
            (_is_given(place.model, place.value) and not _may_compute(owner, name))
            or is_set_before(place.model, place.value, steps)
        )
        for place in places
    )


def _may_compute(owner: "ClassInfo", name: str) -> bool:
    """Whether what a constructor was given is called, or is an object that others are given: a model may be.

    Its attributes may hold what it has computed last.
    """
    reads = [(read, _whole(read.method.model, read.node)) for read in owner.members.reads(name)]
    is_object = any(isinstance(whole, cst.Attribute) and whole is not read.node for read, whole in reads)
    for read, whole in reads:
        parent = read.method.model.tree.parent(whole)
        if isinstance(parent, cst.Call) and last_word(whole) not in _LOOKING:
            return True
        if is_object and whole is read.node and isinstance(parent, cst.Arg) and read.method.name != "__init__":
            return True
    return False


def _whole(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """``self.options.table["a"]`` around ``self.options``."""
    parent = model.tree.parent(node)
    while isinstance(parent, (cst.Attribute, cst.Subscript)) and parent.value is node:
        node, parent = parent, model.tree.parent(parent)
    return node


def _is_given(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression reads a parameter of the constructor, or a part of one: ``options.weight``."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    if not isinstance(node, cst.Name) or isinstance(model.value(node), (Tensor, Output, Module)):
        return False
    bindings = model.reaching(node)
    return bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)
