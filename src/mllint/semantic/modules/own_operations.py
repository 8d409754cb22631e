"""Operations of the project, ``autograd.Function``, and what they do with a plain tensor that they are given."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.looked_at import uses_inside
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.values import ClassObject
from mllint.syntax.shape import dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo


def own_operation(model: "Model", call: cst.Call) -> "FunctionInfo | None":
    """The ``forward`` of an operation of the project that a call runs: ``apply`` of an ``autograd.Function``."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "apply":
        return None
    owner = model.value(call.func.value)
    is_operation = isinstance(owner, ClassObject) and "torch.autograd.Function" in owner.definition.library_bases
    return owner.definition.method("forward") if isinstance(owner, ClassObject) and is_operation else None


def computes_with(operation: "FunctionInfo", call: cst.Call, arg: cst.Arg) -> bool:
    """Whether an operation may do more with what it is given than to keep it, and to use it where it has gradients."""
    model, used = operation.model, uses_inside(operation, call, arg, 1)
    return used is None or not all(_is_kept(model, use) or is_for_parameters(model, use) for use in used)


def _is_kept(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a tensor is only given to what keeps it for ``backward()``."""
    call = model.tree.call_given(use)
    return call is not None and last_word(call.func) == "save_for_backward"


def is_for_parameters(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a tensor is used only where it asks for gradients, as no plain one does: ``if bias.requires_grad:``."""
    asked, flag = model.tree.parent(use), f"{dotted_path(use)}.requires_grad"
    if isinstance(asked, cst.Attribute) and dotted_path(asked) == flag:
        return True
    return any(is_true and dotted_path(test) == flag for test, is_true in verdicts(model, use))
