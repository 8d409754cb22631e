"""The shape of the rows in the tables."""

from typing import Literal, NamedTuple

Returns = Literal[
    "tensor",  # one new tensor (or a view): the argument itself does not change
    "scalar",  # one new tensor that is 0-d whenever neither `dim`/`axis` nor `reduction="none"` is given
    "self",  # the receiver or first argument itself, changed in place
    "tensors",  # a tuple or list of tensors
    "packed",  # a PackedSequence
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

Kind = Literal[
    "layer",
    "loss",
    "container",
    "rnn",
    "optimizer",
    "scheduler",
    "loader",
    "dataset",
    "sampler",
    "scaler",
    "parameter",  # an instance is a tensor
    "tensor",
    "packed",  # a PackedSequence: its methods give a new one, as those of a tensor do
    "device",
    "dtype",
    "generator",  # a random number generator
    "distribution",
    "other",
]


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

    ``keys`` are those of an instance built with defaults, in order. ``switches`` lists constructor flags that change
    them: (parameter, the other value, keys with that value alone); flags act independently of each other: what one
    removes stays away, what one adds comes. Where a parameter named in ``depends`` is given, the keys follow from its
    value in a way that is not tabled. ``sized`` is true where nothing can be said without the arguments (containers).
    """

    keys: tuple[str, ...]
    switches: tuple[tuple[str, bool, tuple[str, ...]], ...] = ()
    depends: tuple[str, ...] = ()
    sized: bool = False


class Given(NamedTuple):
    """Where a function is given something."""

    position: int
    keyword: str


class Wrapper(NamedTuple):
    """Something that wraps a module: the wrapped module's parameter, and what stands before the keys of its state.

    ``attribute`` is where the wrapped module is found, ``None`` where it is not an attribute. ``copies``: it holds a
    copy of the module that it is given. ``hands_on``: what it does not have itself is that of the module inside.
    """

    framework: Literal["torch", "paddle"]
    prefix: str
    attribute: str | None
    parameters: str
    copies: bool = False
    hands_on: bool = False
