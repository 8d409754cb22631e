"""Whether a module does something else in evaluation mode than in training mode."""

import libcst as cst

from mllint.semantic.definitions import ClassInfo
from mllint.semantic.values import ClassObject, Function, Module, Symbol, Value
from mllint.syntax.shape import argument, constant
from mllint.syntax.walk import subtree

_MAX_CLASSES = 30
_DEPENDING = (
    "BatchNorm", "SyncBatchNorm", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "InstanceNorm", "RReLU",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "LSTM", "GRU", "RNN", "MultiheadAttention",
    "MultiHeadAttention",
)  # fmt: skip
"""How the names of layers begin that may ask for their mode."""
_CONTAINERS = frozenset({"Sequential", "ModuleList", "LayerList", "ModuleDict", "LayerDict", "Module", "Layer"})
_LIBRARIES = ("torch.nn.", "paddle.nn.", "torchvision.models.")


def depends_on_mode(value: Value | None) -> bool | None:
    """Whether a module has dropout or batch normalization, or asks for its mode; ``None``: that is not known."""
    if not isinstance(value, Module):
        return None
    if value.definition is not None:
        return _class_depends(value.definition)
    return None if value.name is None else _library_depends(value.name, None)


def _library_depends(name: str, call: cst.Call | None) -> bool | None:
    """Whether a layer of a library depends on the mode, made by this call."""
    last = name.rpartition(".")[2]
    if name.startswith("torchvision.models."):
        return True
    if last in _CONTAINERS or not name.startswith(_LIBRARIES):
        return None
    if not last.startswith(_DEPENDING):
        return False
    if last.startswith(("BatchNorm", "SyncBatchNorm", "RReLU")):
        return True
    if call is None:
        return None
    if last.startswith("InstanceNorm"):
        given = argument(call, None, "track_running_stats")
        return given is not None and constant(given.value) is True
    if last.startswith(("LSTM", "GRU", "RNN", "Multi")):
        given = argument(call, None, "dropout")
        return given is not None and constant(given.value) not in (0, 0.0)
    given = argument(call, 0 if "Dropout" in last else None, "p" if "Dropout" in last else "dropout")
    return given is None or constant(given.value) not in (0, 0.0)


def _class_depends(definition: ClassInfo) -> bool | None:
    """Whether a class, or one of those it makes its parts of, has such a layer."""
    seen: list[ClassInfo] = []
    pending = [definition]
    is_closed = True
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.append(current)
        if len(seen) > _MAX_CLASSES:
            return None
        is_closed = is_closed and not current.has_unknown_base
        for info in current.lineage:
            found = _has_layer(info)
            if found is True:
                return True
            is_closed = is_closed and found is not None
            pending += _classes_in(info)
    return False if is_closed else None


def _has_layer(info: ClassInfo) -> bool | None:
    """Whether a class itself makes a layer that depends on the mode; ``None``: it makes something that is not known."""
    is_closed = True
    for node in subtree(info.node.body):
        if isinstance(node, cst.Attribute) and node.attr.value == "training":
            return True
        if isinstance(node, cst.Call):
            called = info.model.value(node.func)
            if isinstance(called, Symbol) and called.name.startswith(_LIBRARIES):
                depends = _library_depends(called.name, node)
                if depends is True:
                    return True
            elif (called is None or _makes_layers(info, called)) and _is_in_constructor(info, node):
                is_closed = False
    return False if is_closed else None


def _makes_layers(info: ClassInfo, called: Value) -> bool:
    """Whether a function of the project makes layers; one that gives them their weights, or a method, does not."""
    if not isinstance(called, Function) or called.definition.owner in info.lineage:
        return False
    function = called.definition
    values = [function.model.value(call.func) for call in subtree(function.node.body) if isinstance(call, cst.Call)]
    return any(
        isinstance(value, ClassObject | Function)
        or (isinstance(value, Symbol) and value.name.startswith(_LIBRARIES) and ".init." not in value.name)
        for value in values
    )


def _is_in_constructor(info: ClassInfo, node: cst.CSTNode) -> bool:
    function = info.model.enclosing_function(node)
    return function is not None and function.name.value == "__init__"


def _classes_in(info: ClassInfo) -> list[ClassInfo]:
    """The classes of the project that the text of a class mentions."""
    values = [info.model.value(node) for node in subtree(info.node.body) if isinstance(node, cst.Name)]
    return [value.definition for value in values if isinstance(value, ClassObject) and value.definition is not info]
