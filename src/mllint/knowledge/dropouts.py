"""Functions of torch and paddle that drop values, and drop them by default whatever the mode of the module around."""

from collections.abc import Mapping
from typing import NamedTuple


class Dropout(NamedTuple):
    """The signature of a function that drops values: where its probability and its flag stand.

    ``probability`` and ``training`` are positions, ``None`` where only a keyword will do; ``name`` is the probability's
    keyword. ``default`` is the probability without an argument. ``has_flag``: there is a parameter ``training``.
    """

    probability: int | None
    name: str = "p"
    training: int | None = 2
    default: float = 0.5
    has_flag: bool = True


# Run (tests/evidence/test_functional_dropout_always_on.py): torch 2.13 and paddle 3.3; all have `training=True` by
# default. (In torch `alpha_dropout` and `feature_alpha_dropout` have `training=False`.)
FUNCTIONS: Mapping[str, Dropout] = {
    "torch.nn.functional.dropout": Dropout(1),
    "torch.nn.functional.dropout1d": Dropout(1),
    "torch.nn.functional.dropout2d": Dropout(1),
    "torch.nn.functional.dropout3d": Dropout(1),
    "torch.nn.functional.scaled_dot_product_attention": Dropout(4, "dropout_p", None, 0.0, False),
    "paddle.nn.functional.dropout": Dropout(1, training=3),
    "paddle.nn.functional.dropout1d": Dropout(1),
    "paddle.nn.functional.dropout2d": Dropout(1),
    "paddle.nn.functional.dropout3d": Dropout(1),
    "paddle.nn.functional.alpha_dropout": Dropout(1),
    "paddle.nn.functional.feature_alpha_dropout": Dropout(1),
    "paddle.nn.functional.scaled_dot_product_attention": Dropout(4, "dropout_p", 6, 0.0),
    "paddle.incubate.nn.functional.fused_dropout_add": Dropout(2, training=3),
}
