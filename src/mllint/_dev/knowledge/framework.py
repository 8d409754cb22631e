"""What the collector must know about a framework besides how to make samples."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mllint._dev.knowledge.samples import FrameworkSamples
from mllint._dev.knowledge.signatures import Parameter, Signature
from mllint.knowledge.schema import Kind


@dataclass(frozen=True)
class Framework:
    """One installed framework.

    Where one object is public in several of ``modules`` it is tabled under the first. ``called_modules`` are those
    with functions of tensors without side effects, which the probe may call; of the others only signatures are read.
    """

    name: str
    version: str
    samples: FrameworkSamples
    tensor: type
    layer: type
    modules: tuple[str, ...]
    called_modules: frozenset[str]
    never_called: re.Pattern[str]
    """Qualified names of functions that change the state of the process, need a network or files, or crash."""
    never_tabled: re.Pattern[str]
    """Qualified names of functions that are public by accident."""
    alias_modules: re.Pattern[str]
    """Modules besides the public ones in whose spelling people use tabled objects."""
    kind_of: Callable[[type, str], Kind | None]
    """The kind of a class by its public name; ``None`` where the class is not tabled."""
    make_layer: Callable[[str], Any]
    """A layer or other object for a constructor's required parameter of this name."""
    other_values: Callable[[Parameter], tuple[Any, ...]]
    """Values that differ from a constructor parameter's default: the flipped flag, the next number."""
    state_keys: Callable[[Any], Iterable[str]]
    """The state-dict keys of a layer, in order."""
    instances: Callable[[], dict[str, tuple[type, Callable[[], Any]]]]
    """Classes whose methods are tabled, by name: the class, and what makes an instance to call them on."""
    method_argument: Callable[[str, Any], Any]
    """A value for a method's required parameter of this name, called on this instance."""
    registered: Callable[[str], list[Signature]]
    """The signatures of a function in the framework's own registry of operators, by its qualified name."""
