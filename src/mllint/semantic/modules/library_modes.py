"""Which layers and networks of the libraries do something else in evaluation mode than in training mode."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import networks
from mllint.knowledge.facts import PADDLE_BUILDERS
from mllint.semantic.values import Member, Symbol, Text, Value
from mllint.syntax.shape import argument, constant, constant_given

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_DEPENDING = (
    "BatchNorm", "SyncBatchNorm", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "InstanceNorm", "RReLU",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "LSTM", "GRU", "RNN", "MultiheadAttention",
    "MultiHeadAttention",
)  # fmt: skip
"""How the names of layers begin that may ask for their mode."""
CONTAINERS = frozenset({"Sequential", "ModuleList", "LayerList", "ModuleDict", "LayerDict", "Module", "Layer"})
NORMALIZING_FIRST = (
    "torchvision.models.resnet", "torchvision.models.resnext", "torchvision.models.wide_resnet",
    "torchvision.models.densenet", "torchvision.models.googlenet", "torchvision.models.inception",
    "torchvision.models.mobilenet", "torchvision.models.efficientnet", "torchvision.models.regnet",
    "paddle.vision.models.resnet", "paddle.vision.models.resnext", "paddle.vision.models.wide_resnet",
    "paddle.vision.models.mobilenet", "paddle.vision.models.densenet", "paddle.vision.models.googlenet",
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


def is_told(name: str) -> bool:
    """Whether ``layer_depends`` knows something of what has a qualified name."""
    return name.startswith(_LIBRARIES) or name in PADDLE_BUILDERS or name == _ANY_OF_PADDLE


def layer_depends(name: str, call: cst.Call | None) -> bool | None:
    """Whether a layer or network of a library depends on the mode, made by this call; ``None``: it may."""
    last = name.rpartition(".")[2]
    if name.startswith("torchvision.models.") or name in PADDLE_BUILDERS or name == _ANY_OF_PADDLE:
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
    given = argument(call, 0, "pretrained_model_name_or_path") or argument(call, 0, "model_name")
    weights = None if given is None else model.value(given.value)
    return networks.depends_on_mode(name, weights.literal if isinstance(weights, Text) else None)
