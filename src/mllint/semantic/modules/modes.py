"""What depends on whether a module trains: places that only run in one mode, numbers that are zero in the other, and
layers and networks of the libraries.
"""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import networks
from mllint.knowledge.facts import PADDLE_BUILDERS
from mllint.knowledge.graph_layers import is_batch_normalization
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.receivers import method_of_receiver, owner_of_attribute
from mllint.semantic.names.scopes import Binding, assigned
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Member, Symbol, Text, Value
from mllint.syntax.shape import argument, constant, constant_given, dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 3
"""Through how many names a number or a condition is followed."""

# Words in names that speak of the mode. A wrong guess is a silence.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MODE_WORDS = ("train", "eval", "infer", "test", "valid", "predict", "determin", "sampl")


def mentions_mode(model: "Model", node: cst.CSTNode, steps: int = MAX_STEPS) -> bool:
    """Whether an expression asks, itself or through the names in it, whether something trains."""
    parts = [part for part in subtree(node) if type(part) is cst.Name or type(part) is cst.Attribute]
    if any(type(part) is cst.Name and _speaks_of_mode(part.value) for part in parts):
        return True
    for part in parts if steps > 0 else ():
        values = [binding.value for binding in _bindings(model, part) if binding.value is not None]
        if any(mentions_mode(model, value, steps - 1) for value in values):
            return True
    return False


def _speaks_of_mode(name: str) -> bool:
    return any(word.lower().startswith(_MODE_WORDS) or word.lower() == "mode" for word in _WORD.findall(name))


def runs_in_one_mode(model: "Model", node: cst.CSTNode, steps: int = MAX_STEPS) -> bool:
    """Whether a place is only reached, or left out, in one of the modes, as far as its conditions tell."""
    if any(mentions_mode(model, test) for test in conditions(model, node)):
        return True
    function = model.enclosing_function(node)
    return function is not None and steps > 0 and _is_called_in_one_mode(model, function, steps - 1)


def _is_called_in_one_mode(model: "Model", function: cst.FunctionDef, steps: int) -> bool:
    """Whether every call of a function in its file stands where only one of the modes gets."""
    name = function.name.value
    if name == "forward" or _speaks_of_mode(name):
        return name != "forward"
    calls = [call for call in model.calls_by_word.get(name, ()) if not model.tree.is_inside(call, function)]
    return bool(calls) and all(runs_in_one_mode(model, call, steps) for call in calls)


def is_same_in_all_modes(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether a number is surely not zero because of the mode: a literal, or an attribute that is set once.

    A parameter of the function is not: whoever calls it may give zero in evaluation.
    """
    value = constant(node)
    if value is not ...:
        return isinstance(value, (int, float)) and value > 0
    if steps == 0 or mentions_mode(model, node, 0):
        return False
    match node:
        case cst.BinaryOperation():
            sides = [side for side in (node.left, node.right) if constant(side) is ...]
            return all(is_same_in_all_modes(model, side, steps - 1) for side in sides)
        case cst.Name():
            bindings = model.reaching(node)
            return bool(bindings or _outer(model, node)) and all(
                _is_fixed(model, binding, steps - 1) for binding in bindings or _outer(model, node)
            )
        case cst.Attribute():
            return _is_fixed_attribute(model, node)
        case cst.Subscript():
            return is_same_in_all_modes(model, node.value, steps - 1)
    return False


def _outer(model: "Model", node: cst.Name) -> tuple[Binding, ...]:
    """The bindings of a name of the module as a function sees it."""
    return tuple(model.scope(model.tree.module).bindings.get(node.value, ()))


def _is_fixed(model: "Model", binding: Binding, steps: int) -> bool:
    made = assigned(binding)
    return made is not None and is_same_in_all_modes(model, made, steps)


def _is_fixed_attribute(model: "Model", node: cst.Attribute) -> bool:
    """Whether ``self.p`` is set by the constructor alone; ``self.config.p`` and ``args.p`` are taken to stay."""
    path = dotted_path(node)
    if path is None or any(isinstance(binding.node, cst.Param) for binding in model.reaching(node.value)):
        return path is not None and _is_of_receiver(model, node)
    root: cst.BaseExpression = node
    while isinstance(root, cst.Attribute) and isinstance(root.value, cst.Attribute):
        root = root.value
    assert isinstance(root, cst.Attribute)
    if method_of_receiver(model, root.value) is not None:
        return _is_of_receiver(model, root)
    return bool(model.reaching(root.value) or (isinstance(root.value, cst.Name) and _outer(model, root.value)))


def _is_of_receiver(model: "Model", node: cst.Attribute) -> bool:
    owner = owner_of_attribute(model, node)
    if owner is None:
        return False
    name = node.attr.value
    places = list(owner.members.assignments(name))
    is_set_once = bool(places) and all(_is_of_constructor(place.method) for place in places)
    if not is_set_once or owner.method(name) is not None or _is_set_from_outside(model, name):
        return False
    return not all(place.value is not None and constant(place.value) in (0, None, False) for place in places)


def _is_of_constructor(method: "FunctionInfo | None") -> bool:
    return method is None or method.name in ("__init__", "build", "setup")


def _is_set_from_outside(model: "Model", name: str) -> bool:
    """Whether the file assigns an attribute of this name of something else than the instance."""
    for attribute in attributes(model, name):
        above = model.tree.parent(attribute)
        is_target = isinstance(above, (cst.AssignTarget, cst.AugAssign)) and above.target is attribute
        if is_target and method_of_receiver(model, attribute.value) is None:
            return True
    return False


def _bindings(model: "Model", node: cst.Name | cst.Attribute) -> tuple[Binding, ...]:
    """What binds a local name, or an attribute of the instance in its class."""
    if isinstance(node, cst.Name):
        return model.reaching(node)
    owner = owner_of_attribute(model, node)
    return () if owner is None else tuple(owner.assignments(node.attr.value))


_DEPENDING = (
    "BatchNorm", "SyncBatchNorm", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "InstanceNorm", "RReLU",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "LSTM", "GRU", "RNN", "MultiheadAttention",
    "MultiHeadAttention",
)  # fmt: skip
"""How the names of layers begin that may ask for their mode."""
CONTAINERS = frozenset({"Sequential", "ModuleList", "LayerList", "ModuleDict", "LayerDict", "Module", "Layer"})
_NORMALIZING_FIRST = (
    "torchvision.models.resnet", "torchvision.models.resnext", "torchvision.models.wide_resnet",
    "torchvision.models.densenet", "torchvision.models.googlenet", "torchvision.models.inception",
    "torchvision.models.mobilenet", "torchvision.models.efficientnet", "torchvision.models.regnet",
    "paddle.vision.models.resnet", "paddle.vision.models.resnext", "paddle.vision.models.wide_resnet",
    "paddle.vision.models.mobilenet", "paddle.vision.models.densenet", "paddle.vision.models.googlenet",
    "segmentation_models_pytorch.",
)  # fmt: skip
"""The ready-made models that have batch normalization from the first children on, not only dropout in the last."""
_LIBRARIES = ("torch.nn.", "paddle.nn.", "torchvision.models.")
_ANY_OF_PADDLE = "paddle.vision.models.any"


def library_name(called: Value | None) -> str:
    """The qualified name of what a library has, where it is picked by name one that stands for all; else empty."""
    match called:
        case Symbol():
            return called.name
        case Member():
            return f"{called.package}.any"
    return ""


def normalizes_first(name: str) -> bool:
    """Whether a ready-made model by its qualified name has batch normalization in all that is taken out of it."""
    name = name.lower()
    return name.startswith(_NORMALIZING_FIRST) or (name.startswith("torchvision.models.vgg") and name.endswith("_bn"))


def is_told(name: str) -> bool:
    """Whether ``layer_depends`` knows something of what has a qualified name."""
    return name.startswith(_LIBRARIES) or _always_depends(name)


def _always_depends(name: str) -> bool:
    is_network = name.startswith("torchvision.models.") or name in PADDLE_BUILDERS or name == _ANY_OF_PADDLE
    return is_network or is_batch_normalization(name)


def layer_depends(name: str, call: cst.Call | None) -> bool | None:
    """Whether a layer or network of a library depends on the mode, made by this call; ``None``: it may."""
    last = name.rpartition(".")[2]
    if _always_depends(name):
        return True
    if last in CONTAINERS or not name.startswith(_LIBRARIES):
        return None
    if not last.startswith(_DEPENDING):
        return False
    if last.startswith("RReLU"):
        return True
    if last.startswith(("BatchNorm", "SyncBatchNorm")):
        return None if call is not None and _keeps_no_statistics(call) else True
    if call is None:
        return None
    if last.startswith("InstanceNorm"):
        # With statistics that are kept it does; but each image by its own, as in training, is what it is there for.
        return False if constant_given(call, None, "track_running_stats", False) is False else None
    if last.startswith(("LSTM", "GRU", "RNN", "Multi")):
        if not last.startswith("Multi") and constant_given(call, 2, "num_layers", 1) == 1:
            return False  # between the layers only
        return constant_given(call, None, "dropout", 0) != 0
    return constant_given(call, 0 if "Dropout" in last else None, "p" if "Dropout" in last else "dropout") != 0


def _keeps_no_statistics(call: cst.Call) -> bool:
    """Whether batch normalization keeps none, those of one batch only, or uses nothing else: ``momentum=1``."""
    said = {word: argument(call, None, word) for word in ("track_running_stats", "momentum", "use_global_stats")}
    values = {word: constant(given.value) for word, given in said.items() if given is not None}
    return values.get("track_running_stats") is False or 1 in (values.get("momentum"), values.get("use_global_stats"))


def network_depends(model: "Model", name: str, call: cst.Call, *, switched: bool) -> bool | None:
    """Whether a network that a package has ready depends on the mode; ``None`` too where it is in evaluation mode."""
    if networks.is_made_as_loaded(name) and not switched:
        return None
    return networks.depends_on_mode(name, name_of_weights(model, call))


def name_of_weights(model: "Model", call: cst.Call) -> str | None:
    """The name of the weights, or of the architecture, that a network is made with; ``None``: nobody in sight says."""
    given = argument(call, 0, "pretrained_model_name_or_path") or argument(call, 0, "model_name")
    weights = None if given is None else model.value(given.value)
    return weights.literal if isinstance(weights, Text) else None
