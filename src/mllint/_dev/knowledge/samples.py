"""Sample values for the probe: what a parameter of a given name is usually given, in either framework."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from mllint._dev.knowledge.probe import Maker
from mllint.knowledge.schema import Returns


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHAPES = ((2, 3), (3, 3), (2, 3, 4), (2, 3, 3), (2, 4, 4, 4), (2, 2, 4, 4, 4), (4,), (2, 6))

_INDEX_NAMES = _words("index indices ids rows cols input_ids targets")
_AXIS_NAMES = _words("dim axis dim0 axis0 d0 start_dim source_dim start_axis axis1_")
_SECOND_AXIS_NAMES = _words("dim1 axis1 d1 dim2 axis2 destination")
_AXES_NAMES = _words("dims perm axes")
_SIZE_NAMES = _words("size sizes shape output_size unflattened_size target_shape")
_NUMBER_NAMES = _words(
    "k n n_fft chunks sections num_chunks num_segments p min max value alpha beta scale mean std repeats steps start"
    " end step shifts diagonal offset num_classes groups upscale_factor downscale_factor kernel_size split_size"
    " split_size_or_sections num_or_sections"
)


class FrameworkSamples:
    """The samples; a framework says how a tensor is made and how to look at one."""

    def make(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A tensor of this shape and of dtype ``float``, ``int``, ``bool`` or ``complex``, values in [0.1, 0.9]."""
        raise NotImplementedError

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of the framework."""
        raise NotImplementedError

    def shape(self, value: Any) -> tuple[int, ...]:
        """The shape of a tensor."""
        raise NotImplementedError

    def fingerprint(self, value: Any) -> Any:
        """Something that differs when a tensor was changed in place."""
        raise NotImplementedError

    def other_kind(self, value: Any) -> Returns:
        """What kind of thing a value is that is no tensor, tuple, number, string or None."""
        raise NotImplementedError

    def dtypes(self) -> tuple[Any, ...]:
        """Values for a parameter called ``dtype``."""
        raise NotImplementedError

    def rank(self, value: Any) -> int:
        """The number of dimensions of a tensor."""
        return len(self.shape(value)) if self.is_tensor(value) else -1

    def receivers(self) -> tuple[Maker, ...]:
        """Tensors of different rank and dtype, most ordinary first."""
        kinds = [(shape, "float") for shape in SHAPES]
        kinds += [((2, 3), "int"), ((2, 3), "bool"), ((2, 3), "complex"), ((3, 3), "complex"), ((1,), "float")]
        return (*(partial(self.make, *kind) for kind in kinds), self.loss)

    def loss(self) -> Any:
        """A 0-d tensor on a graph."""
        raise NotImplementedError

    def firsts(self, name: str) -> tuple[Maker, ...]:
        """What a function's first parameter of this name may take."""
        if name in _SIZE_NAMES:
            return (lambda: (2, 3), lambda: 2)
        if name in ("tensors", "inputs", "sequences", "seq", "operands", "matrices", "arys"):
            return tuple(partial(self._pair, shape) for shape in SHAPES)
        if name in ("start", "end", "n", "num_rows", "window_length", "M", "high", "low", "num_classes"):
            return (lambda: 4,)
        if name in ("data", "obj", "input_list"):
            return (lambda: [[1.0, 2.0]], lambda: [1, 2])
        if name == "equation":
            return (lambda: "ij->ji",)
        if name == "condition":
            return tuple(partial(self.make, shape, "bool") for shape in SHAPES)
        return self.receivers()

    def _pair(self, shape: tuple[int, ...]) -> Any:
        return [self.make(shape, "float")] * 2

    def arguments(self, name: str, receiver: Any) -> tuple[Any, ...]:
        """Values that a required parameter of this name may take, likeliest first."""
        if not self.is_tensor(receiver):
            receiver = receiver[0] if isinstance(receiver, list) else self.make((2, 3), "float")
        rank = self.rank(receiver)
        return tuple(_distinct(self._arguments(name, receiver, max(rank, 1))))

    def _arguments(self, name: str, receiver: Any, rank: int) -> Iterable[Any]:
        if not self.is_tensor(receiver):
            return
        shape = self.shape(receiver)
        if name in _AXIS_NAMES:
            yield from (0, [0])
        if name in _SECOND_AXIS_NAMES:
            yield from (1, 0)
        if name in _AXES_NAMES:
            yield tuple(reversed(range(rank)))
        if name in _SIZE_NAMES:
            yield from (shape, (math.prod(shape),), 2, (2,) * max(rank - 2, 1))
        if name in _INDEX_NAMES:
            yield from (self.make((2,), "int"), self.make(shape, "int"), (self.make((2,), "int"),))
        if name == "mask" or name == "condition":
            yield self.make(shape, "bool")
        if name == "dtype":
            yield from self.dtypes()
        if name in ("func", "callable", "fn", "hook"):
            yield lambda *values: values[0]
        if name == "equation":
            yield "ij,ij->i"
        if name in _NUMBER_NAMES:
            yield from (1, 2, 0.5)
        yield from self._fallbacks(shape)

    def _fallbacks(self, shape: tuple[int, ...]) -> Iterable[Any]:
        yield self.make(shape, "float")
        yield self.make(shape, "int")
        yield self.make(shape[-1:], "float")
        yield self.make((*shape[:-2], *reversed(shape[-2:])), "float")
        yield from (1, 0, 0.5, 2, [1], [0], shape)
        yield [self.make(shape, "float")]
        yield from ("sum", "mean", "reflect", self.make((2,), "int"), self.make(shape, "bool"))
        yield self.make((3, shape[1] if len(shape) > 1 else 3, *shape[2:]), "float")

    def returns(self, value: Any) -> Returns:
        """What kind of thing came back from a call."""
        if self.is_tensor(value):
            return "tensor"
        if value is None:
            return "none"
        if isinstance(value, bool | int | float | complex):
            return "number"
        if isinstance(value, str):
            return "string"
        other = self.other_kind(value)
        if other != "other":
            return other
        if isinstance(value, tuple | list):
            if any(self.is_tensor(item) for item in value) and all(self._is_part(item) for item in value):
                return "tensors"
            if self._is_number_group(value):
                return "number"
        return "other"

    def _is_number_group(self, value: Any) -> bool:
        """Whether a value is a number, or a sequence or nested sequence of numbers with at least one."""
        if isinstance(value, tuple | list):
            return bool(value) and all(self._is_number_group(item) for item in value)
        return isinstance(value, bool | int | float)

    def _is_part(self, value: Any) -> bool:
        """Whether a value may stand in a group of tensors: a tensor, None, or again such a group."""
        if isinstance(value, tuple | list):
            return all(self._is_part(item) for item in value)
        return value is None or self.is_tensor(value)


def _distinct(values: Iterable[Any]) -> Iterable[Any]:
    seen = set()
    for value in values:
        key = repr(value)
        if key not in seen:
            seen.add(key)
            yield value
