"""Building layers from sample arguments: what calling one gives, and the keys of its state."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mllint._dev.knowledge.framework import Framework
from mllint._dev.knowledge.probe import guarded
from mllint._dev.knowledge.signatures import Signature, longest, signatures_of
from mllint.knowledge.schema import LayerState, Returns

_MOST_BUILDS = 300
_MOST_BUILDS_CALLED = 6
_MOST_CALLS = 2500
_MOST_KEYS = 40

_CONSTRUCTOR: Mapping[str, tuple[Any, ...]] = {
    "kernel_size": (2, (2, 2), 3),
    "num_groups": (2,),
    "groups": (2,),
    "nhead": (2,),
    "num_heads": (2,),
    "cutoffs": ([2, 3],),
    "output_size": (2, (2, 2), (4, 4)),
    "n_classes": (4,),
    "num_classes": (4,),
    "lower": (0.1,),
    "unflattened_size": ((2, 2),),
    "shape": ((2, 2),),
    "dim": (1, 0),
    "axis": (1,),
    "upscale_factor": (2,),
    "output_sizes": ((4, 4),),
    "kernel_sizes": (2,),
    "mode": ("LSTM",),
    "num_layers": (1,),
    "padding": (1,),
    "modules": ([],),
}
_SHAPES = (
    (2, 4), (2, 4, 4), (2, 4, 4, 4), (2, 4, 8, 8), (2, 4, 8, 8, 8), (4,), (2, 2, 4, 4), (3, 2, 4), (2, 1), (2, 4, 9),
    (4, 2, 5), (4, 4),
)  # fmt: skip
_NEEDED: tuple[Mapping[str, Any], ...] = (
    {},
    {"scale_factor": 2},
    {"output_size": 2},
    {"output_size": (4, 4)},
    {"d_model": 4, "nhead": 2},
    {"weight_shape": (4, 4)},
)
"""Arguments without which some layers cannot be called."""


def _builds(framework: Framework, cls: type, parameters: Signature, changed: Mapping[str, Any]) -> Iterator[Any]:
    """Instances from the sample arguments that fit, likeliest first."""
    required = [it for it in parameters.parameters if it.required and not it.star and it.name not in changed]
    choices = [_CONSTRUCTOR.get(it.name) or (4, framework.make_layer(it.name), 0.5, [4]) for it in required]
    for values in itertools.islice(itertools.product(*choices), _MOST_BUILDS):
        arguments = {it.name: value for it, value in zip(required, values, strict=True)} | dict(changed)
        layer = None
        with guarded() as attempt:
            layer = cls(**arguments)
        if attempt.timed_out:
            return
        if layer is not None:
            yield layer


def called(framework: Framework, cls: type, parameters: Signature) -> Returns | None:
    """What calling an instance gives: seen from the first call that succeeds, else what is written."""
    if inspect.isabstract(cls) or not hasattr(cls, "forward"):
        return None
    names = {it.name for it in parameters.parameters}
    for changed in _NEEDED:
        if not changed.keys() <= names:
            continue
        for layer in itertools.islice(_builds(framework, cls, parameters, changed), _MOST_BUILDS_CALLED):
            returns = _first_result(framework, cls, layer)
            if returns is not None:
                return returns
    written = longest(signatures_of(cls.forward, "forward")).returns
    return None if written == "none" else written


def _first_result(framework: Framework, cls: type, layer: Any) -> Returns | None:
    forward = longest(signatures_of(cls.forward, "forward")).without_first()  # type: ignore[attr-defined]
    required = [it for it in forward.parameters if it.required and it.star != "**"]
    values = _inputs(framework, of_image=".models" in cls.__module__)
    choices = [_lengths(framework) if "length" in it.name else values for it in required]
    for arguments in itertools.islice(itertools.product(*choices), _MOST_CALLS):
        found: Returns | None = None
        with guarded() as attempt:
            result = layer(*arguments)
            found = framework.samples.returns(result)
            if found == "tensor" and framework.samples.rank(result) == 0:
                found = "scalar"
        if found is not None or attempt.timed_out:
            return found
    return None


def _inputs(framework: Framework, *, of_image: bool) -> tuple[Any, ...]:
    if of_image:
        return tuple(framework.samples.make(shape, "float") for shape in ((1, 3, 224, 224), (1, 1, 28, 28)))
    floats = tuple(framework.samples.make(shape, "float") for shape in _SHAPES)
    whole = tuple(framework.samples.make(shape, "int") for shape in ((2, 4), (2,), (2, 1), (2, 4, 4), *_SHAPES[3:5]))
    return floats + whole


def _lengths(framework: Framework) -> tuple[Any, ...]:
    return (framework.samples.make((2,), "int") * 0 + 2,)


def layer_state(framework: Framework, cls: type, parameters: Signature) -> LayerState | None:
    """The state-dict keys of a layer; ``None`` when it cannot be built from simple arguments."""

    def keys_with(changed: Mapping[str, Any]) -> tuple[str, ...] | None:
        layer = next(_builds(framework, cls, parameters, changed), None)
        return None if layer is None else tuple(framework.state_keys(layer))

    if _takes_layer(parameters) or ".models" in cls.__module__:
        return LayerState((), sized=True)
    keys = keys_with({})
    if keys is None:
        return None
    if len(keys) > _MOST_KEYS:
        return LayerState((), sized=True)
    switches: dict[str, tuple[bool, tuple[str, ...]]] = {}
    depends: set[str] = set()
    for parameter in parameters.parameters:
        if parameter.star:
            continue
        for value in (3,) if parameter.required else framework.other_values(parameter):
            other = keys_with({parameter.name: value})
            if other is None or set(other) == set(keys):
                continue
            if isinstance(value, bool):
                switches[parameter.name] = (value, other)
            else:
                depends.add(parameter.name)
            break
    depends |= _dependent(keys_with, parameters, keys, switches)
    independent = ((name, *switch) for name, switch in switches.items() if name not in depends)
    return LayerState(keys, tuple(independent), tuple(sorted(depends)))


def _takes_layer(parameters: Signature) -> bool:
    """Whether the class is built around another layer, whose keys it then has."""
    names = [it.name for it in parameters.parameters if it.required]
    return any("layer" in name or name in ("module", "model", "cell", "cell_fw", "features") for name in names)


def _dependent(
    keys_with: Callable[[Mapping[str, Any]], tuple[str, ...] | None],
    parameters: Signature,
    keys: tuple[str, ...],
    switches: Mapping[str, tuple[bool, tuple[str, ...]]],
) -> set[str]:
    """The switches that do not act independently of each other."""
    found: set[str] = set()
    for first, second in itertools.combinations(switches, 2):
        together = keys_with({first: switches[first][0], second: switches[second][0]})
        if together is not None and set(together) != _combined(keys, switches[first][1], switches[second][1]):
            found.add(second if len(switches[second][1]) > len(keys) else first)
    # Some layers drop a parameter only when all are declined (paddle's InstanceNorm).
    declined = {it.name: False for it in parameters.parameters if it.name.endswith("_attr")}
    together = keys_with(declined) if declined else None
    if together is not None:
        expected = set(keys)
        for name in declined:
            if name in switches:
                expected &= set(switches[name][1])
        if set(together) != expected:
            found |= set(declined)
    return found


def _combined(keys: tuple[str, ...], first: tuple[str, ...], second: tuple[str, ...]) -> set[str]:
    removed = (set(keys) - set(first)) | (set(keys) - set(second))
    return (set(keys) | set(first) | set(second)) - removed
