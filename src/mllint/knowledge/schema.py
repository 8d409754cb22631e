"""The shape of the rows in the tables."""

from typing import Literal, NamedTuple

Returns = Literal[
    "tensor",  # one new tensor (or a view): the argument itself does not change
    "scalar",  # one new tensor that is 0-d whenever neither `dim`/`axis` nor `reduction="none"` is given
    "self",  # the receiver or first argument itself, changed in place
    "tensors",  # a tuple or list of tensors
    "number",  # a Python number, bool or nested list of numbers
    "string",
    "array",  # a numpy array
    "none",
    "module",
    "optimizer",
    "size",  # torch.Size or a list of ints
    "dtype",
    "device",
    "generator",  # parameters(), children(), ...
    "state_dict",
    "other",
]

Kind = Literal["layer", "loss", "container", "rnn", "optimizer", "scheduler", "loader", "dataset", "sampler", "scaler", "other"]


class Function(NamedTuple):
    """A function or method: what one call gives back, and the names of its parameters in positional order.

    ``parameters`` is a space-separated string without ``self``; keyword-only names follow a ``*``.
    """

    returns: Returns
    parameters: str = ""


class Class(NamedTuple):
    """A class of a framework: what an instance is, its constructor's parameters, and what calling an instance gives."""

    kind: Kind
    parameters: str = ""
    called: Returns = "other"


class LayerState(NamedTuple):
    """State-dict keys of a library layer.

    ``keys`` are those of an instance built with defaults, in order. ``switches`` lists constructor arguments that
    change them: (parameter, literal value, keys with that value alone). ``sized`` is true where the keys also depend
    on sizes or on other modules (``num_layers``, ``bidirectional``): then ``keys`` is one example only.
    """

    keys: tuple[str, ...]
    switches: tuple[tuple[str, object, tuple[str, ...]], ...] = ()
    sized: bool = False
