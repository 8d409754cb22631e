"""State dicts that are taken alike whether the module is in a wrapper or not, though the code asks.

``state = net.state_dict() if hasattr(net, "module") else net.state_dict()``: one of the two was to be ``net.module``.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.syntax.shape import dotted_path, fingerprint, items_of, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ATTRIBUTES = frozenset(prefix.removesuffix(".") for prefix in WRAPPER_PREFIXES)


def is_taken_alike(model: "Model", call: cst.Call) -> bool:
    """Whether a ``state_dict()`` is that of what an ``if`` finds wrapped, and where it is not the same is done."""
    path = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    child: cst.CSTNode = call
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, (cst.If, cst.IfExp)) and child is ancestor.body and ancestor.orelse is not None:
            other = ancestor.orelse.body if isinstance(ancestor.orelse, cst.Else) else ancestor.orelse
            return _tells_wrapped(model, ancestor.test, path) and fingerprint(child) == fingerprint(other)
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda)):
            break
        child = ancestor
    return False


def _tells_wrapped(model: "Model", test: cst.BaseExpression, path: str | None) -> bool:
    """Whether what has this path is in a wrapper where a test holds: it asks for that, or decides about wrapping it."""
    return path is not None and (_asks_for_wrapper(model, test, path) or _decides_about_wrapping(model, test, path))


def _asks_for_wrapper(model: "Model", test: cst.BaseExpression, path: str) -> bool:
    """Whether a test is ``hasattr(path, "module")`` or ``isinstance(path, DataParallel)``."""
    if not isinstance(test, cst.Call) or len(test.args) != 2 or dotted_path(test.args[0].value) != path:
        return False
    asked, kind = dotted_path(test.func), test.args[1].value
    if asked == "hasattr":
        return string_literal(kind) in _ATTRIBUTES
    kinds = items_of(kind)
    return asked == "isinstance" and all(_is_wrapper(model, item) for item in kinds)


def _decides_about_wrapping(model: "Model", test: cst.BaseExpression, path: str) -> bool:
    """Whether an ``if`` with the same test wraps the thing: ``if args.gpus: path = DataParallel(path)``."""
    text = fingerprint(test)
    bodies = [item.body for item in model.tree.by_type.get(cst.If, ()) if fingerprint(item.test) == text]
    for part in (node for body in bodies for node in subtree(body)):
        if isinstance(part, cst.Assign) and dotted_path(part.targets[0].target) == path:
            value = part.value
            if isinstance(value, cst.Call) and _is_wrapper(model, value.func):
                return True
    return False


def _is_wrapper(model: "Model", node: cst.BaseExpression) -> bool:
    wrapper = lookup.wrapper(model.qualified_name(node) or "")
    return wrapper is not None and bool(wrapper.prefix)
