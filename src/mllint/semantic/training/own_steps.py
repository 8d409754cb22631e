"""Optimizer classes of the project with a ``step`` of their own: whether it may clear the gradients it has used."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.values import Method, Number, Symbol, Text, functions_of, is_object
from mllint.syntax.shape import (
    dotted_path,
    integer_literal,
    is_super_call,
    last_word,
    root_of,
    string_literal,
    subscript_index,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_MAX_FUNCTIONS = 20
"""Into how many functions of the project a step is followed."""
_SAYS_CLEARING = re.compile(
    r"zero(?!s)|clear|clean|reset|backward|^(?:fill_|set_|set_to_none|register_.*hook|__dict__)$"
)
"""The names of what clears something, computes gradients, or leaves it to others."""
_BASES = {"torch": "torch.optim.Optimizer", "paddle": "paddle.optimizer.Optimizer"}
_OF_COLLECTIONS = frozenset({
    "get", "setdefault", "append", "extend", "items", "keys", "values", "pop", "update", "format", "join", "insert",
    "index", "count", "sort", "copy",
})  # fmt: skip


@worked_out_once
def keeps_gradients(model: "Model", definition: "ClassInfo") -> bool:
    """Whether the ``step`` of an optimizer class, in a file, surely uses the gradients and leaves them as they are.

    It is followed into whatever it may call of its class, and into the functions of the project. What is not known
    may clear what it is given.
    """
    pending = list(definition.members.reachable("step"))
    seen: set[FunctionInfo] = set()
    uses_them = False
    while pending:
        info = pending.pop()
        if info in seen:
            continue
        seen.add(info)
        if len(seen) > _MAX_FUNCTIONS or not info.is_plain:
            return False
        for node in subtree(info.node.body):
            if isinstance(node, cst.Attribute):
                word = node.attr.value
                uses_them = uses_them or word in ("grad", "_grad_ivar")
                if _SAYS_CLEARING.search(word) or (word == "grad" and _is_written(info.model, node)):
                    return False
            elif isinstance(node, cst.Call):
                uses_them = uses_them or _is_step_of_library(info.model, node)
                called = functions_of(info.model.value(node.func))
                pending += [item.definition for item in called]
                if not called and _may_do_anything(info, definition, node):
                    return False
    return uses_them


def _is_written(model: "Model", grad: cst.Attribute) -> bool:
    """Whether something is put into a gradient, or in its place: ``p.grad = None``, ``p.grad.data[:] = 0``."""
    child, parent = grad, model.tree.parent(grad)
    while (isinstance(parent, cst.Attribute) and parent.attr.value == "data") or (
        isinstance(parent, cst.Subscript) and parent.value is child
    ):
        child, parent = parent, model.tree.parent(parent)  # type: ignore[assignment]
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in ("copy_", "mul_")
    is_target = isinstance(parent, (cst.AugAssign, cst.AnnAssign)) and parent.target is child
    return is_target or isinstance(parent, (cst.AssignTarget, cst.Del))


def _is_step_of_library(model: "Model", call: cst.Call) -> bool:
    """Whether a call is the step of an optimizer of the library, of which a class of the project may be one."""
    holder = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "step" else None
    return holder is not None and (is_super_call(holder) or is_object(model.value(holder), "optimizer"))


def _may_do_anything(info: "FunctionInfo", definition: "ClassInfo", call: cst.Call) -> bool:
    """Whether a call that is none of a function of the project may clear gradients."""
    model, word = info.model, last_word(call.func) or ""
    if last_word(call.func) == "mul_" and any(integer_literal(arg.value) == 0 for arg in call.args):
        return True
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        return bool(_SAYS_CLEARING.search(callee.name.rpartition(".")[2]))
    if isinstance(call.func, cst.Attribute):
        is_known = isinstance(callee, Method) or word in _OF_COLLECTIONS or definition.method(word) is not None
        is_step = word == "step" and _is_step_of_library(model, call)
        if is_step or (word != "step" and (is_known or is_super_call(call.func.value))):
            return False
        framework = "paddle" if model.framework == "paddle" else "torch"
        if lookup.tensor_method(framework, word) or lookup.method(_BASES[framework], word):
            return False
        root = root_of(call.func)  # a logger of the file, say
        if not isinstance(root, cst.Name) or model.scope_of(call).home_of(root.value) is model.scope_of(call):
            return True
    return any(arg.star or _may_lead_to_gradients(model, arg.value) for arg in call.args)


def _may_lead_to_gradients(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an argument may be a parameter, or have some in it: no number, and no setting of a group."""
    if isinstance(node, (cst.BaseNumber, cst.BaseString, cst.BinaryOperation, cst.Comparison)):
        return False
    if isinstance(node, cst.Subscript):
        key = string_literal(subscript_index(node))
        return key is None or key == "params"
    return not isinstance(model.value(node), (Number, Text)) and dotted_path(node) not in ("True", "False", "None")
