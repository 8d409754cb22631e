"""New tensors that are asked for a gradient by mistake: results are put into them that bring their own, or NumPy takes
them.
"""

from itertools import takewhile
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.scopes import assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Number, Tensor, Text, is_object
from mllint.syntax.shape import last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Filled = Literal["with its graph", "perhaps"]
_OF_LEARNED = frozenset({"grad", "register_hook", "retain_grad"})
"""What is asked of a tensor that is learned itself."""
_TRAINING = frozenset({"grad", "backward"})


def filled(model: "Model", leaf: cst.BaseExpression, statement: cst.BaseSmallStatement) -> Filled | None:
    """Whether a statement puts a result into a tensor that is made there and goes on from there, and is not learned.

    ``out = zeros(n)``, ``out.stop_gradient = False``, ``out[i] = net(x[i])``: under ``no_grad`` nothing would get back
    to the network. "perhaps": what is written may have no graph.
    """
    written = _written(statement)
    bindings = model.reaching(leaf) if isinstance(leaf, cst.Name) else ()
    if written is None or len(bindings) != 1 or not isinstance(assigned(bindings[0]), cst.Call):
        return None
    value = model.value(written)
    is_attached = isinstance(value, Tensor) and value.attached is True
    if not is_attached and not _may_have_graph(model, written):
        return None
    scope = model.scope_of(statement)
    others = [use for use in uses(model, bindings[0]) if use is not leaf]
    if any(_is_learned(model, use) for use in others):
        return None
    is_used = any(is_above(scope, statement, use) and not _is_written_to(model, use) for use in others)
    return ("with its graph" if is_attached else "perhaps") if is_used else None


def _written(statement: cst.BaseSmallStatement) -> cst.BaseExpression | None:
    """What is put into a part of a tensor, or into all of it."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())], value=value):
            return value
        case cst.AugAssign(target=cst.Subscript(), operator=cst.AddAssign(), value=value):
            return value
        case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name("copy_")), args=[cst.Arg(value=value), *_])):
            return value
    return None


def _may_have_graph(model: "Model", written: cst.BaseExpression) -> bool:
    """Whether what is written is computed of something that is not known, and of no gradient."""
    if hangs_on_nothing(model.value(written)) or any(
        isinstance(part, cst.Attribute) and part.attr.value in ("grad", "data", "detach") for part in subtree(written)
    ):
        return False
    names = (part for part in subtree(written) if isinstance(part, cst.Name))
    known = [model.value(name) for name in names if model.reaching(name)]
    return any(not isinstance(value, (Number, Text)) and not hangs_on_nothing(value) for value in known)


def _is_learned(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a gradient of the tensor itself is read, or an optimizer is given it."""
    parent = model.tree.parent(use)
    if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value in _OF_LEARNED:
        return True
    for around in model.tree.ancestors(use):
        if isinstance(around, cst.BaseSmallStatement):
            return False
        if isinstance(around, cst.Call) and (
            last_word(around.func) in _TRAINING or is_object(model.value(around), "optimizer")
        ):
            return True
    return False


def _is_written_to(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a use is a part that is written to, or the flag."""
    node: cst.CSTNode | None = use
    while isinstance(parent := model.tree.parent(node) if node is not None else None, (cst.Subscript, cst.Attribute)):
        node = parent
    return isinstance(parent, (cst.AssignTarget, cst.AugAssign))


def goes_to_numpy(model: "Model", leaf: cst.BaseExpression, statement: cst.BaseSmallStatement) -> bool:
    """Whether the function hands a changed name on to NumPy: that raises as well, whatever the change is put under."""
    scope = model.scope_of(statement)
    named = model.names_in(leaf.value, scope) if isinstance(leaf, cst.Name) else ()
    return any(
        isinstance(around, cst.Call) and (model.qualified_name(around.func) or "").startswith("numpy.")
        for name in named
        if is_above(scope, statement, name)
        for around in takewhile(lambda item: not isinstance(item, cst.BaseSmallStatement), model.tree.ancestors(name))
    )
