"""The rows about functions, methods and attributes, collected from an installed framework."""

import importlib
import inspect
import types
from collections.abc import Iterator
from functools import partial
from typing import Any

from mllint._dev.knowledge.framework import Framework
from mllint._dev.knowledge.probe import isolated, observe
from mllint._dev.knowledge.signatures import Parameter, Signature, longest, signatures_of
from mllint.knowledge.schema import Function, Returns

_RECEIVER = Parameter("self", required=True)


def public_names(module: types.ModuleType) -> list[str]:
    """The names a module offers, sorted."""
    listed = getattr(module, "__all__", None)
    if not listed or not isinstance(listed, list | tuple):
        listed = dir(module)
    return sorted({name for name in listed if not name.startswith("_") and hasattr(module, name)})


def public_objects(framework: Framework) -> Iterator[tuple[str, str, Any]]:
    """(module, name, object) for each public function and class once, under its preferred spelling."""
    seen: set[int] = set()
    for module_name in framework.modules:
        module = importlib.import_module(module_name)
        # Of two names for one object in one module the one that it calls itself comes first.
        for name in sorted(public_names(module), key=lambda it: getattr(getattr(module, it), "__name__", it) != it):
            value = getattr(module, name)
            if isinstance(value, types.ModuleType) or not callable(value) or id(value) in seen:
                continue
            if _belongs(framework, module, module_name, value) and not framework.never_tabled.search(
                f"{module_name}.{name}"
            ):
                seen.add(id(value))
                yield module_name, name, value


def _belongs(framework: Framework, module: types.ModuleType, module_name: str, value: Any) -> bool:
    """Whether an object is the framework's own and not something a module without ``__all__`` merely imports."""
    home = getattr(value, "__module__", None) or framework.name
    if home.split(".")[0] != framework.name:
        return False
    if hasattr(module, "__all__") or inspect.isbuiltin(value) or home == module_name:
        return True
    return hasattr(module, "__path__") and home.startswith((f"{module_name}.", f"{framework.name}._"))


def functions(framework: Framework) -> dict[str, Function]:
    """Every public function under its preferred spelling."""
    rows = {}
    for module_name, name, value in public_objects(framework):
        if isinstance(value, type):
            continue
        qualified = f"{module_name}.{name}"
        signatures = known_signatures(framework, value, name)
        text = longest(signatures)
        returns = text.returns or "other"
        if module_name in framework.called_modules and not framework.never_called.search(qualified):
            seen = isolated(partial(observe, value, signatures[0], framework.samples))
            returns = _agreed(name, seen, text.returns)
        rows[qualified] = Function(returns, text.text())
    return rows


def known_signatures(framework: Framework, value: Any, name: str) -> list[Signature]:
    """All ways to call a function: written ones, else what the framework's own registry of operators has."""
    written = signatures_of(value, name)
    if any(signature.parameters for signature in written):
        return written
    return framework.registered(name) or written


def tensor_methods(framework: Framework) -> dict[str, Function]:
    """Every public method of the tensor class."""
    rows = {}
    for name in sorted(dir(framework.tensor)):
        if name.startswith("_") or not _is_method(framework, name):
            continue
        signatures = _method_signatures(framework, name)
        rows[name] = Function(_method_returns(framework, name, signatures), longest(signatures).text())
    return rows


def _is_method(framework: Framework, name: str) -> bool:
    found = inspect.getattr_static(framework.tensor, name)
    return callable(getattr(framework.tensor, name)) and not isinstance(found, property)


def _method_signatures(framework: Framework, name: str) -> list[Signature]:
    method = getattr(framework.tensor, name)
    written = signatures_of(method, name)
    if inspect.isfunction(method) or _names_its_receiver(written):
        written = [signature.without_first() for signature in written]
    if any(not parameter.star for signature in written for parameter in signature.parameters):
        return written
    # Many methods are documented by nothing but "see the function of this name".
    function = getattr(importlib.import_module(framework.name), name.rstrip("_"), None)
    known = framework.registered(name) if function is None else known_signatures(framework, function, name.rstrip("_"))
    if not any(signature.parameters for signature in known):
        return written
    return [signature.without_first()._replace(returns=written[0].returns) for signature in known]


def _names_its_receiver(signatures: list[Signature]) -> bool:
    return any(signature.parameters and signature.parameters[0].name == "self" for signature in signatures)


def _method_returns(framework: Framework, name: str, signatures: list[Signature]) -> Returns:
    def call(receiver: Any, *positional: Any, **named: Any) -> Any:
        return getattr(receiver, name)(*positional, **named)

    signature = signatures[0]
    with_receiver = signature._replace(parameters=(_RECEIVER, *signature.parameters))
    seen = isolated(lambda: observe(call, with_receiver, framework.samples))
    return _agreed(name, seen, signature.returns)


def _agreed(name: str, seen: Returns | None, annotated: Returns | None) -> Returns:
    """What was seen goes before what is written; the tensor that `name_` gives is its receiver."""
    returns = seen or annotated or "other"
    if returns in ("tensor", "scalar") and name.endswith("_"):
        return "self"
    return returns


def tensor_attributes(framework: Framework) -> dict[str, Returns]:
    """Every public attribute of a tensor that is no method."""
    rows: dict[str, Returns] = {}
    for name in sorted(dir(framework.tensor)):
        if name.startswith("_") or _is_method(framework, name):
            continue
        rows[name] = "other"
        for make in framework.samples.firsts("self"):
            try:
                value = getattr(make(), name)
            except (RuntimeError, ValueError, AttributeError, NotImplementedError):
                # Some exist on complex or sparse tensors only.
                continue
            rows[name] = framework.samples.returns(value)
            break
    return rows
