"""Calls that write into the weights of a module by hand."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.syntax.shape import dotted_path, root_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

WRITING = frozenset({
    "add_", "sub_", "mul_", "div_", "copy_", "normal_", "uniform_", "fill_", "zero_", "addcmul_", "lerp_", "clamp_",
    "set_value",
})  # fmt: skip
"""The methods of a tensor that do."""

_PARTS = ("parameters", "named_parameters", "modules", "named_modules", "children", "sublayers", "named_sublayers")


def writes_into(model: "Model", call: cst.Call, owner: str) -> bool:
    """Whether a call writes into a weight of what a path names: ``model.fc.weight.data.add_()``, ``p.add_()``."""
    path = dotted_path(call.func)
    if path is None or ".grad." in path:
        return False
    roots = without_narrowing(model.reaching(root_of(call.func)))
    walked = [item.value for item in roots if item.kind is BindingKind.LOOP]
    ways = {dotted_path(value.func) for value in walked if isinstance(value, cst.Call)}
    return path.startswith(f"{owner}.") or any(f"{owner}.{word}" in ways for word in _PARTS)
