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
    same_name: dict[tuple[str, str], set[str]] = defaultdict(set)
    renamed: dict[str, str] = {}
    for module_name, module in _public_modules(framework):
        for name in public_names(module):
            value = getattr(module, name)
            home, home_name = preferred.get(id(value), (None, None))
            if home is None or (home, home_name) == (module_name, name) or not _offers(module, name, value):
                continue
            if home_name == name:
                same_name[module_name, home].add(name)
            else:
                renamed[f"{module_name}.{name}"] = f"{home}.{home_name}"
    rows = dict(renamed)
    tabled: dict[str, dict[str, int]] = defaultdict(dict)
    for identity, (home, name) in preferred.items():
        tabled[home][name] = identity
    for (module_name, home), names in same_name.items():
        module = sys.modules[module_name]
        # Names that the module has too, but for something else.
        wrong = [
            name
            for name, identity in tabled[home].items()
            if hasattr(module, name) and id(getattr(module, name)) != identity
        ]
        if len(names) <= len(wrong) + 1:
            rows.update({f"{module_name}.{name}": f"{home}.{name}" for name in names})
        else:
            rows[f"{module_name}.*"] = f"{home}.*"
            rows.update({f"{module_name}.{name}": f"{module_name}.{name}" for name in wrong})
    return rows


def _public_modules(framework: Framework) -> list[tuple[str, types.ModuleType]]:
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
