"""State dicts of a wrapped module and of the module itself that are taken alike, by the dict or by the load.

``state = net.state_dict() if hasattr(net, "module") else net.state_dict()``: one of the two was to be ``net.module``.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.checkpoints.wrapped_later import is_wrapped_later
from mllint.semantic.checkpoints.wrappings import journey_of
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import dotted_path, fingerprint, items_of, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.checkpoints.wrapped import WrappedSave
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


def is_read_bare_beside(save: "WrappedSave", wrapped: Load, bare: Load) -> bool:
    """Whether a file goes into the wrapped module that is saved, and in another branch into one from the same maker.

    ``if train: net = DataParallel(build()); net.load_state_dict(torch.load(path))``, and in the ``else`` of it ``net =
    build(); net.load_state_dict(torch.load(path))``: whichever keys the file has, one of the two raises.
    """
    model = save.call_model
    if wrapped.model is not model or bare.model is not model or not (wrapped.is_strict and bare.is_strict):
        return False
    if not set(model.reaching(wrapped.receiver)) & set(model.reaching(save.receiver)):
        return False
    if any(not is_in_another_branch(model, bare.call, node) for node in (wrapped.call, save.call)):
        return False
    read = [Tracer(model).content(load.given) for load in (wrapped, bare)]
    paths = [read_path(item) for item in read if isinstance(item, FromFile) and item.trail == save.trail]
    is_same = len(paths) == 2 and paths[0] is not None and paths[0] == paths[1]
    is_same = is_same and not any(isinstance(item, FromFile) and item.renames for item in read)
    insides = [_made(*item) for item in journey_of(model, wrapped.receiver).wrapped] if is_same else []
    made = _made(model, bare.receiver) if insides else set()
    is_alike = bool(made) and any(made == inside for inside in insides)
    return is_alike and not is_wrapped_later(bare) and not is_guarded(wrapped) and not is_guarded(bare)


def _made(model: "Model", node: cst.BaseExpression) -> set[str]:
    """The texts of what is called to make the thing that an expression stands for; none where not all are known."""
    bound = [item.value if item.kind is BindingKind.ASSIGN and not item.path else None for item in model.reaching(node)]
    calls = [call for call in bound or [node] if isinstance(call, cst.Call)]
    return {fingerprint(call.func) for call in calls} if len(calls) == len(bound or [node]) else set()
