"""The rows about classes: kinds, constructor parameters, methods, and what calling an instance gives."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mllint._dev.knowledge.collect import public_objects
from mllint._dev.knowledge.framework import Framework
from mllint._dev.knowledge.layers import called, layer_state
from mllint._dev.knowledge.probe import guarded, isolated
from mllint._dev.knowledge.signatures import Signature, longest, signatures_of
from mllint.knowledge.schema import Class, Function, LayerState, Returns


def classes(framework: Framework) -> dict[str, Class]:
    """Every public class that is of use to the model."""
    rows = {}
    for qualified, cls in public_classes(framework):
        kind = framework.kind_of(cls, qualified)
        if kind is None:
            continue
        gives: Returns | None = None
        if issubclass(cls, framework.layer):
            gives = called(framework, cls, constructor(cls))
        rows[qualified] = Class(kind, constructor(cls).text(), gives or "other")
    return rows


def layer_states(framework: Framework) -> dict[str, LayerState]:
    """The state-dict keys of every public layer that can be built from simple arguments."""
    rows = {}
    for qualified, cls in public_classes(framework):
        kind = framework.kind_of(cls, qualified)
        if kind is None or not issubclass(cls, framework.layer):
            continue
        state = LayerState((), sized=True) if kind == "container" else layer_state(framework, cls, constructor(cls))
        if state is not None:
            rows[qualified] = state
    return rows


def public_classes(framework: Framework) -> Iterator[tuple[str, type]]:
    """Every public class but the exceptions, under its preferred spelling."""
    for module_name, name, value in public_objects(framework):
        if isinstance(value, type) and not issubclass(value, BaseException):
            yield f"{module_name}.{name}", value


def constructor(cls: type) -> Signature:
    """The parameters of a class's constructor, without ``self``."""
    for base in cls.__mro__[:-1]:
        initializer = base.__dict__.get("__init__")
        if not inspect.isfunction(initializer):
            continue
        signatures = [it.without_first() for it in signatures_of(initializer, "__init__")]
        named = [it for it in signatures if any(not parameter.star for parameter in it.parameters)]
        if named:
            return longest(named)
        if not any(signature.parameters for signature in signatures):
            return Signature((), None)
    return longest(signatures_of(cls, cls.__name__))


def shared_methods(framework: Framework) -> set[str]:
    """The names of tensor methods that objects of the framework's other classes have too."""
    others = {
        name
        for qualified, cls in public_classes(framework)
        if framework.kind_of(cls, qualified) not in ("tensor", "parameter")
        for name in dir(cls)
    }
    return {name for name in dir(framework.tensor) if name in others and not name.startswith("_")}


def class_methods(framework: Framework) -> dict[str, Function]:
    """The public methods of the classes that training code handles, as ``torch.nn.Module.eval``."""
    signatures: dict[str, Signature] = {}
    works: dict[str, Callable[[], Returns | None]] = {}
    for qualified, (cls, make) in framework.instances().items():
        for name in sorted(dir(cls)):
            method = getattr(cls, name)
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            signature = longest(signatures_of(method, name)).without_first()
            signatures[f"{qualified}.{name}"] = signature
            works[f"{qualified}.{name}"] = partial(_call, framework, make, name, signature)
    seen = isolated(works)
    return {
        name: Function(seen[name] or signature.returns or "other", signature.text())
        for name, signature in signatures.items()
    }


def _call(framework: Framework, make: Callable[[], Any], name: str, signature: Signature) -> Returns | None:
    """What one call of a method with plain arguments gives; ``None`` when it does not take them."""
    required = [it for it in signature.parameters if it.required and not it.star]
    with guarded():
        instance = make()
        arguments = {it.name: framework.method_argument(it.name, instance) for it in required}
        result = getattr(instance, name)(**arguments)
        if result is instance:
            return "self"
        if isinstance(result, dict):
            return "state_dict" if "state_dict" in name else "other"
        return "generator" if isinstance(result, Iterator) else framework.samples.returns(result)
    return None
