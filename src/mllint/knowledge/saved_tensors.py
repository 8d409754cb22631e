"""What each operation keeps for its backward pass: its result, or which of its inputs.

Every row was run in torch 2.13.0 and paddlepaddle 3.3.1, and is run again by
``tests/evidence/test_saved_tensor_modified_in_place.py``: what is said to be kept raises in ``backward()`` after it was
changed in place. What differs between the frameworks, or hangs on the sizes, is not here.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple


class Saved(NamedTuple):
    """``result``: the tensor that comes out is kept. ``inputs``: pairs of an input that is kept, by its position, and
    the input that needs a gradient for that.
    """

    result: bool = False
    inputs: tuple[tuple[int, int], ...] = ()


INPUT = Saved(inputs=((0, 0),))
"""The one input is kept, as long as it needs a gradient."""
_RESULT = Saved(result=True)
_BOTH = Saved(True, ((0, 0),))
_FACTORS = Saved(inputs=((0, 1), (1, 0)))


def _rows(words: str, saved: Saved) -> dict[str, Saved]:
    return dict.fromkeys(words.split(), saved)


_OPERATIONS: Mapping[str, Saved] = {
    **_rows("sigmoid tanh exp exp2 expm1 sqrt rsqrt reciprocal relu softmax softmin log_softmax", _RESULT),
    **_rows("std cdist pairwise_distance inverse", _RESULT),
    **_rows(
        "abs acos asin atan cos cosh sin sinh erf log log1p log2 log10 square pow clip clamp gelu silu mish softplus "
        "softsign leaky_relu elu celu hardtanh hardswish hardshrink softshrink logsigmoid log_sigmoid logit lgamma "
        "digamma acosh asinh atanh max_pool1d max_pool2d avg_pool2d adaptive_max_pool2d layer_norm instance_norm",
        INPUT,
    ),
    **_rows("amax amin prod cumprod logsumexp logcumsumexp norm", _BOTH),
    **_rows("mul multiply matmul mm bmm mv dot outer linear conv2d conv3d", _FACTORS),
    **_rows("div divide true_divide", Saved(inputs=((0, 1), (1, 0), (1, 1)))),
    **_rows("maximum minimum atan2 logaddexp", Saved(inputs=((0, 0), (0, 1), (1, 0), (1, 1)))),
}
"""By the last word of a function or method. The input of a power is that which is raised."""

OPERATORS: Mapping[str, str] = {
    "Multiply": "mul",
    "Divide": "div",
    "Power": "pow",
    "MatrixMultiply": "matmul",
}
"""The operation behind an operator of two tensors, by the class of its node."""

# An activation that works in place has no other input left: most keep what they gave.
_IN_PLACE = frozenset(
    "relu leaky_relu elu celu selu sigmoid tanh exp sqrt rsqrt reciprocal".split()  # noqa: SIM905
)

_LAYERS: Mapping[str, str] = {
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "ReLU": "relu",
    "Softmax": "softmax",
    "Softmin": "softmin",
    "LogSoftmax": "log_softmax",
    "GELU": "gelu",
    "SiLU": "silu",
    "Silu": "silu",
    "Mish": "mish",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "LogSigmoid": "logsigmoid",
    "Softshrink": "softshrink",
    "Hardshrink": "hardshrink",
    "LeakyReLU": "leaky_relu",
    "ELU": "elu",
    "CELU": "celu",
    "SELU": "selu",
    "Hardtanh": "hardtanh",
    "Hardswish": "hardswish",
    "MaxPool1d": "max_pool1d",
    "MaxPool2d": "max_pool2d",
    "MaxPool1D": "max_pool1d",
    "MaxPool2D": "max_pool2d",
    "AvgPool2d": "avg_pool2d",
    "AvgPool2D": "avg_pool2d",
    "AdaptiveMaxPool2d": "adaptive_max_pool2d",
    "AdaptiveMaxPool2D": "adaptive_max_pool2d",
}
"""The operation that a layer without weights is, by the last word of its class."""

_WEIGHTED = frozenset({
    "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "PReLU",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm",
    "Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D",
})  # fmt: skip
"""Layers that keep their input as long as their own weights need a gradient."""

_KEEPING = frozenset({
    "ReflectionPad1d", "ReflectionPad2d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "InstanceNorm1D", "InstanceNorm2D",
    "InstanceNorm3D",
})  # fmt: skip
"""Layers that keep their input as long as that needs a gradient, and are no function of the same name."""

VIEWS = frozenset({
    "view", "view_as", "squeeze", "unsqueeze", "permute", "transpose", "t", "narrow", "select", "swapaxes", "detach",
})  # fmt: skip
"""Methods of a torch tensor that give the same numbers in memory: a change of either is one of both."""
SEVERAL_VIEWS = frozenset({"chunk", "split", "split_with_sizes", "unbind"})
"""Functions and methods of torch that give several views at once: changing one of them in place raises."""
PADDLE_VIEWS = frozenset({"squeeze", "unsqueeze", "reshape", "flatten"})
"""The same of Paddle."""


def operation(word: str) -> Saved | None:
    """What a function or method keeps, by the last word of its name; ``None`` where it is not in the table."""
    return _OPERATIONS.get(word)


def keeps_result_in_place(word: str) -> bool:
    """Whether an operation that works in place keeps what it gives: ``relu``, for ``relu_`` and ``inplace=True``."""
    return word in _IN_PLACE


@cache
def layer(name: str) -> tuple[str | None, bool] | None:
    """The operation of a layer, by its qualified name, and whether it has weights; ``None``: not in the table."""
    if not name.startswith(("torch.nn.", "paddle.nn.")):
        return None
    last = name.rpartition(".")[2]
    if last in _WEIGHTED or last in _KEEPING:
        return None, last in _WEIGHTED
    return (_LAYERS[last], False) if last in _LAYERS else None
