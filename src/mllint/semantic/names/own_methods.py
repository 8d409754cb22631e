"""The methods of its own that a class calls."""

from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.values import Function


def constructing(info: ClassInfo) -> frozenset[str]:
    """The methods that make the parts of a class: ``__init__``, and what it calls of the class itself."""
    names = {"__init__"}
    pending = ["__init__"]
    while pending:
        method = info.methods.get(pending.pop())
        for call in info.model.tree.calls_in(method.node.body) if method is not None else ():
            called = info.model.value(call.func)
            if isinstance(called, Function) and is_own_method(called, info) and called.definition.name not in names:
                names.add(called.definition.name)
                pending.append(called.definition.name)
    return frozenset(names)


def is_own_method(called: Function, holder: ClassInfo | FunctionInfo) -> bool:
    """Whether a class calls a method of its own: its text is looked at with that of the class."""
    return isinstance(holder, ClassInfo) and called.definition.owner in holder.lineage
