"""Calls of ``state_dict`` that are given what was read, as ``load_state_dict`` is: ``net.state_dict(torch.load(p))``.

They copy the weights of the module into the dict, and leave the module as it is.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Instance, Module, own_method
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def given_back(model: "Model", read: cst.Call) -> Iterator[cst.Call]:
    """The calls, for nothing but their effect, of ``state_dict`` with what a call of ``load`` read."""
    statement = model.tree.parent(read)
    for node in (read, *(uses_of_bound(model, statement) if isinstance(statement, cst.Assign) else ())):
        arg = model.tree.parent(node)
        call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or len(call.args) != 1 or last_word(call.func) != "state_dict":
            continue
        if isinstance(model.tree.parent(call), cst.Expr) and not _is_own(model, call.func):
            yield call


def _is_own(model: "Model", method: cst.BaseExpression) -> bool:
    """Whether a class of the project says what its ``state_dict`` does."""
    owner = model.value(method.value) if isinstance(method, cst.Attribute) else None
    if isinstance(owner, (Module, Instance)) and owner.definition is not None:
        return own_method(owner, "state_dict") is not None
    return owner is None and "state_dict" in model.function_names
