"""The attribute that a method makes of what it binds."""

import libcst as cst

from mllint.semantic.events.places import handed_through, is_bound_by_way, is_handed_on, unpacked
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding


def published(function: FunctionInfo, binding: Binding) -> str | None:
    """The name of the attribute that a method of a class makes of what it binds: of ``net`` in ``self.net = net``."""
    if function.owner is None or function.self_name is None:
        return None
    prefix = f"{function.self_name}."
    attributes = ((key, found) for key, found in binding.scope.bindings.items() if key.startswith(prefix))
    for key, bindings in attributes:
        own = [item for item in bindings if len(bindings) == 1 or not is_handed_on(item)]
        bound = unpacked(own[0]) if len(own) == 1 else None
        value = None if bound is None else handed_through(function.model, bound)
        if not isinstance(value, cst.Name) or value.value != binding.key:
            continue
        if is_bound_by_way(function.model, value, binding):
            return key.removeprefix(prefix)
    return None
