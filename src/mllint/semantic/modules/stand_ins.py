"""Objects that stand in for a module: what they are asked they hand on to it, method by method."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.definitions import function_around
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_handed_on(model: "Model", call: cst.Call) -> bool:
    """Whether a call of ``held.forward`` stands in the ``forward`` of an object that hands on to what it holds.

    An object that is no module has a ``forward`` for no other reason; of a module all methods have to hand on.
    """
    info = function_around(model, call)
    if info is None or info.name != "forward" or info.owner is None:
        return False
    if info.owner.framework is None:
        return True
    held = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    methods = [item for item in info.owner.methods.values() if not item.name.startswith("__") and not item.is_property]
    return len(methods) > 1 and all(_hands_on(method.node, held) for method in methods)


def _hands_on(method: cst.FunctionDef, held: str | None) -> bool:
    """Whether a method does nothing but to call the method of its name of another thing."""
    body = method.body.body
    line = body[0] if isinstance(method.body, cst.IndentedBlock) and len(body) == 1 else None
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    call = statement.value if isinstance(statement, (cst.Return, cst.Expr)) else None
    return isinstance(call, cst.Call) and dotted_path(call.func) == f"{held}.{method.name.value}"
