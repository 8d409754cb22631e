"""The rows about functions, methods and attributes, collected from an installed framework."""

import importlib
import inspect
import types
from collections.abc import Callable
from functools import cache, partial
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


@cache
def public_objects(framework: Framework) -> tuple[tuple[str, str, Any], ...]:
    """(module, name, object) for each public function and class once, under its preferred spelling.

    Taken once, before anything is called: calling some functions replaces others (importing ``torch._dynamo`` wraps
    ``torch.manual_seed``).
    """
    found = []
    seen: set[int] = set()
    for module_name in framework.modules:
        module = importlib.import_module(module_name)
        for name in _offered(framework, module_name, module):
            value = getattr(module, name)
            if isinstance(value, types.ModuleType) or not callable(value) or id(value) in seen:
                continue
            qualified = f"{module_name}.{name}"
            if _belongs(framework, module, module_name, value) and not framework.never_tabled.search(qualified):
                seen.add(id(value))
                found.append((module_name, name, value))
    return tuple(found)


def _offered(framework: Framework, module_name: str, module: types.ModuleType) -> list[str]:
    names = public_names(module)
    if module_name == framework.name:
        # Some names that everybody uses (`torch.set_grad_enabled`) are missing in `__all__`.
        names = [*names, *(name for name in dir(module) if not name.startswith("_") and name not in names)]
    # Of two names for one object in one module the one that it calls itself comes first.
    return sorted(names, key=lambda name: (getattr(getattr(module, name), "__name__", name) != name, name))


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
    signatures: dict[str, list[Signature]] = {}
    works: dict[str, Callable[[], Returns | None]] = {}
    for module_name, name, value in public_objects(framework):
        if isinstance(value, type):
            continue
        qualified = f"{module_name}.{name}"
        signatures[qualified] = known_signatures(framework, value, qualified)
        if module_name in framework.called_modules and not framework.never_called.search(qualified):
            works[qualified] = partial(observe, value, signatures[qualified][0], framework.samples)
    seen = isolated(works)
    rows = {}
    for qualified, known in signatures.items():
        written = longest(known)
        returns = _agreed(qualified, seen[qualified], written.returns) if qualified in works else written.returns
        rows[qualified] = Function(returns or "other", written.text())
    return rows


def known_signatures(framework: Framework, value: Any, qualified: str) -> list[Signature]:
    """All ways to call a function: written ones, else what the framework's own registry of operators has."""
    written = signatures_of(value, qualified.rpartition(".")[2])
    if any(signature.parameters for signature in written):
        return written
    return framework.registered(qualified) or written


def tensor_methods(framework: Framework) -> dict[str, Function]:
    """Every public method of the tensor class."""
    signatures = {
        name: _method_signatures(framework, name)
        for name in sorted(dir(framework.tensor))
        if not name.startswith("_") and _is_method(framework, name)
    }
    seen = isolated({name: partial(_observe_method, framework, name, known[0]) for name, known in signatures.items()})
    return {
        name: Function(_agreed(name, seen[name], known[0].returns), longest(known).text())
        for name, known in signatures.items()
    }


def _is_method(framework: Framework, name: str) -> bool:
    found = inspect.getattr_static(framework.tensor, name)
    return callable(getattr(framework.tensor, name)) and not isinstance(found, property)


def _method_signatures(framework: Framework, name: str) -> list[Signature]:
    method = getattr(framework.tensor, name)
    written = signatures_of(method, name)
    if inspect.isfunction(method) or any(_names_its_receiver(signature) for signature in written):
        written = [signature.without_first() for signature in written]
    if any(not parameter.star for signature in written for parameter in signature.parameters):
        return written
    # Many methods are documented by nothing but "see the function of this name".
    function = getattr(importlib.import_module(framework.name), name.rstrip("_"), None)
    qualified = f"{framework.name}.{name.rstrip('_')}"
    known = framework.registered(qualified) if function is None else known_signatures(framework, function, qualified)
    if not any(signature.parameters for signature in known):
        return written
    return [_as_method(signature, written[0].returns) for signature in known]


def _as_method(signature: Signature, returns: Returns | None) -> Signature:
    kept = tuple(parameter for parameter in signature.parameters[1:] if parameter.name != "out")
    return Signature(kept, returns)


def _names_its_receiver(signature: Signature) -> bool:
    return bool(signature.parameters) and signature.parameters[0].name in ("self", "input")


def _observe_method(framework: Framework, name: str, signature: Signature) -> Returns | None:
    def call(receiver: Any, *positional: Any, **named: Any) -> Any:
        return getattr(receiver, name)(*positional, **named)

    with_receiver = signature._replace(parameters=(_RECEIVER, *signature.parameters))
    return observe(call, with_receiver, framework.samples)


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
