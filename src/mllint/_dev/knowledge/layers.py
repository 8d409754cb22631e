"""The rows about classes: constructor parameters, what calling an instance gives, and the state-dict keys of layers."""

import inspect
import itertools
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from mllint._dev.knowledge.collect import public_objects
from mllint._dev.knowledge.framework import Framework
from mllint._dev.knowledge.probe import guarded
from mllint._dev.knowledge.signatures import Signature, longest, signatures_of
from mllint.knowledge.schema import Class, LayerState, Returns

_MOST_BUILDS = 300
_MOST_CALLS = 2500
_MOST_KEYS = 40

_CONSTRUCTOR: Mapping[str, tuple[Any, ...]] = {
    "kernel_size": (2, (2, 2), 3),
    "num_groups": (2,),
    "groups": (2,),
    "nhead": (2,),
    "num_heads": (2,),
    "cutoffs": ([2, 3],),
    "output_size": (2, (2, 2)),
    "n_classes": (4,),
    "num_classes": (4,),
    "lower": (0.1,),
    "unflattened_size": ((2, 2),),
    "mode": ("LSTM",),
    "num_layers": (1,),
    "padding": (1,),
    "modules": ([],),
}
_SHAPES = ((2, 4), (2, 4, 4), (2, 4, 8, 8), (2, 4, 8, 8, 8), (4,), (2, 2, 4, 4), (3, 2, 4), (2, 1))


def classes(framework: Framework) -> dict[str, Class]:
    """Every public class that is of use to the model."""
    rows = {}
    for qualified, cls in _public_classes(framework):
        kind = framework.kind_of(cls, qualified)
        if kind is None:
            continue
        called: Returns = "other"
        if issubclass(cls, framework.layer):
            called = _called(framework, cls) or "other"
        rows[qualified] = Class(kind, constructor(cls).text(), called)
    return rows


def layer_states(framework: Framework) -> dict[str, LayerState]:
    """The state-dict keys of every public layer that can be built from simple arguments."""
    rows = {}
    for qualified, cls in _public_classes(framework):
        if not issubclass(cls, framework.layer) or framework.kind_of(cls, qualified) is None:
            continue
        if framework.kind_of(cls, qualified) == "container":
            rows[qualified] = LayerState((), sized=True)
        elif (state := _state(framework, cls)) is not None:
            rows[qualified] = state
    return rows


def shared_methods(framework: Framework) -> set[str]:
    """The names of tensor methods that objects of the framework's other classes have too."""
    others = {
        name
        for qualified, cls in _public_classes(framework)
        if framework.kind_of(cls, qualified) not in ("tensor", "parameter")
        for name in dir(cls)
    }
    return {name for name in dir(framework.tensor) if name in others and not name.startswith("_")}


def _public_classes(framework: Framework) -> Iterator[tuple[str, type]]:
    for module_name, name, value in public_objects(framework):
        if isinstance(value, type) and not issubclass(value, BaseException):
            yield f"{module_name}.{name}", value


def constructor(cls: type) -> Signature:
    """The parameters of a class's constructor, without ``self``."""
    for base in cls.__mro__[:-1]:
        initializer = base.__dict__.get("__init__")
        if initializer is None or not inspect.isfunction(initializer):
            continue
        overloads = typing.get_overloads(initializer)
        signatures = [
            signature.without_first() for it in (*overloads, initializer) for signature in signatures_of(it, "__init__")
        ]
        if any(not parameter.star for signature in signatures for parameter in signature.parameters):
            return longest([it for it in signatures if not _is_catch_all(it)] or signatures)
        if not any(signature.parameters for signature in signatures):
            return Signature((), None)
    return longest(signatures_of(cls, cls.__name__))


def _is_catch_all(signature: Signature) -> bool:
    return all(parameter.star for parameter in signature.parameters)


def _builds(framework: Framework, cls: type, changed: Mapping[str, Any]) -> Iterator[Any]:
    """Instances from the sample arguments that fit, likeliest first."""
    required = [it for it in constructor(cls).parameters if it.required and not it.star and it.name not in changed]
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


def _called(framework: Framework, cls: type) -> Returns | None:
    if inspect.isabstract(cls) or not hasattr(cls, "forward"):
        return None
    for layer in _builds(framework, cls, {}):
        forward = longest(signatures_of(cls.forward, "forward")).without_first()
        required = [it for it in forward.parameters if it.required and it.star != "**"]
        values = _inputs(framework)
        choices = [
            values if index == 0 else (*values, *_extra(framework, it.name)) for index, it in enumerate(required)
        ]
        for arguments in itertools.islice(itertools.product(*choices), _MOST_CALLS):
            with guarded() as attempt:
                result = layer(*arguments)
                returns = framework.samples.returns(result)
                if returns == "tensor" and framework.samples.rank(result) == 0:
                    return "scalar"
                return returns
            if attempt.timed_out:
                return None
    return None


def _inputs(framework: Framework) -> tuple[Any, ...]:
    floats = tuple(framework.samples.make(shape, "float") for shape in _SHAPES)
    whole = tuple(framework.samples.make(shape, "int") for shape in ((2, 4), (2,), (2, 1)))
    return floats + whole


def _extra(framework: Framework, name: str) -> tuple[Any, ...]:
    if "length" in name:
        return (framework.samples.make((4,), "int"),)
    return ([2, 2, 8, 8],)


def _state(framework: Framework, cls: type) -> LayerState | None:
    keys = _keys(framework, cls, {})
    if keys is None:
        return None
    if len(keys) > _MOST_KEYS or _takes_layer(cls):
        return LayerState((), sized=True)
    switches: dict[str, tuple[bool, tuple[str, ...]]] = {}
    depends: set[str] = set()
    for parameter in constructor(cls).parameters:
        if parameter.star:
            continue
        for value in (3,) if parameter.required else framework.other_values(parameter):
            other = _keys(framework, cls, {parameter.name: value})
            if other is None or set(other) == set(keys):
                continue
            if isinstance(value, bool):
                switches[parameter.name] = (value, other)
            else:
                depends.add(parameter.name)
            break
    depends |= _dependent(framework, cls, keys, switches)
    independent = ((name, *switch) for name, switch in switches.items() if name not in depends)
    return LayerState(keys, tuple(independent), tuple(sorted(depends)))


def _takes_layer(cls: type) -> bool:
    """Whether the class is built around another layer, whose keys it then has."""
    names = [it.name for it in constructor(cls).parameters if it.required]
    return any("layer" in name or name in ("module", "model", "cell", "cell_fw") for name in names)


def _dependent(
    framework: Framework, cls: type, keys: tuple[str, ...], switches: Mapping[str, tuple[bool, tuple[str, ...]]]
) -> set[str]:
    """The switches that do not act independently of each other."""
    found: set[str] = set()
    for first, second in itertools.combinations(switches, 2):
        together = _keys(framework, cls, {first: switches[first][0], second: switches[second][0]})
        if together is not None and set(together) != _combined(keys, switches[first][1], switches[second][1]):
            found.add(second if len(switches[second][1]) > len(keys) else first)
    # Some layers drop a parameter only when all are declined (paddle's InstanceNorm).
    declined = {it.name: False for it in constructor(cls).parameters if it.name.endswith("_attr")}
    together = _keys(framework, cls, declined) if declined else None
    if together is not None:
        expected = set(keys)
        for name in declined:
            expected &= set(switches[name][1]) if name in switches else expected
        if set(together) != expected:
            found |= set(declined)
    return found


def _combined(keys: tuple[str, ...], first: tuple[str, ...], second: tuple[str, ...]) -> set[str]:
    removed = (set(keys) - set(first)) | (set(keys) - set(second))
    return (set(keys) | set(first) | set(second)) - removed


def _keys(framework: Framework, cls: type, changed: Mapping[str, Any]) -> tuple[str, ...] | None:
    for layer in _builds(framework, cls, changed):
        return tuple(framework.state_keys(layer))
    return None
