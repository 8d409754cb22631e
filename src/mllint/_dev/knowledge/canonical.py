"""Other public spellings of the tabled objects, found by object identity."""

import sys
import types
from collections import defaultdict
from typing import Any

from mllint._dev.knowledge.collect import public_names, public_objects
from mllint._dev.knowledge.framework import Framework


def canonical(framework: Framework) -> dict[str, str]:
    """Other spelling -> tabled spelling.

    A row ``a.b.* -> a.*`` says it for every tabled name of ``a`` that has no row of its own.

    A module's names are taken where the module defines or deliberately re-exports them, not where it only imports them.
    """
    preferred = {id(value): (module, name) for module, name, value in public_objects(framework)}
    tabled: dict[str, dict[str, Any]] = defaultdict(dict)
    for home, name, value in public_objects(framework):
        tabled[home][name] = value
    rows: dict[str, str] = {}
    for module_name, module in _public_modules(framework):
        names: dict[str, set[str]] = defaultdict(set)
        for name in public_names(module):
            value = getattr(module, name)
            found = preferred.get(id(value), (module_name, name))
            if found == (module_name, name) or not _offers(module, name, value):
                continue
            home, home_name = found
            if home_name == name:
                names[home].add(name)
            else:
                rows[f"{module_name}.{name}"] = f"{home}.{home_name}"
        if module_name in framework.modules:
            # Documented: what it has not is told from what it has.
            rows |= {f"{module_name}.{name}": f"{home}.{name}" for home in names for name in names[home]}
        else:
            rows |= _rows_of_one_module(module_name, module, names, tabled)
    return rows


def _rows_of_one_module(
    module_name: str, module: types.ModuleType, names: dict[str, set[str]], tabled: dict[str, dict[str, Any]]
) -> dict[str, str]:
    """The rows for names that a module has in common with other modules, by the home of each."""
    rows = {f"{module_name}.{name}": f"{home}.{name}" for home in names for name in names[home]}
    if not names:
        return rows
    home = max(sorted(names), key=lambda it: len(names[it]))
    # Names of that home that this module has too, but for something else.
    wrong = [
        name
        for name in tabled[home]
        if hasattr(module, name)
        and f"{module_name}.{name}" not in rows
        and not _is_same(getattr(module, name), tabled[home][name])
    ]
    if len(names[home]) > len(wrong) + 1:
        for name in names[home]:
            del rows[f"{module_name}.{name}"]
        rows |= {f"{module_name}.{name}": f"{module_name}.{name}" for name in wrong}
        rows[f"{module_name}.*"] = f"{home}.*"
    return rows


def _is_same(value: Any, other: Any) -> bool:
    """Whether two objects are one, or functions with the same page (paddle wraps some of its own again)."""
    if value is other or isinstance(value, type):
        return value is other
    page = (getattr(value, "__doc__", None) or "").split()
    return bool(page) and page == (getattr(other, "__doc__", None) or "").split()


def _public_modules(framework: Framework) -> list[tuple[str, types.ModuleType]]:
    found = _imported_modules(framework)
    known = dict(found)
    for name in framework.modules:
        # `paddle.nn.loss` is an attribute, no module that was imported under this name.
        for attribute, value in sorted(vars(known[name]).items()):
            is_alias = isinstance(value, types.ModuleType) and value.__name__.endswith(f".{attribute}")
            if is_alias and value.__name__.startswith(f"{name}.") and f"{name}.{attribute}" not in sys.modules:
                found.append((f"{name}.{attribute}", value))
    return found


def _imported_modules(framework: Framework) -> list[tuple[str, types.ModuleType]]:
    return [
        (name, module)
        for name, module in sorted(sys.modules.items())
        if name.split(".")[0] == framework.name
        and isinstance(module, types.ModuleType)
        and not any(part.startswith("_") for part in name.split("."))
        and (name in framework.modules or framework.alias_modules.search(name))
    ]


def _offers(module: types.ModuleType, name: str, value: Any) -> bool:
    listed = getattr(module, "__all__", None)
    if listed and isinstance(listed, list | tuple):
        return name in listed
    return getattr(value, "__module__", None) == module.__name__ or hasattr(module, "__path__")
