"""Tensors of whole numbers, which cannot want a gradient."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.differentiability import CASTS, WHOLE
from mllint.semantic.names.scopes import all_assigned
from mllint.syntax.shape import argument, called_on, last_word, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COUNTING = frozenset({"argmax", "argmin", "argsort", "randint", "randperm", "nonzero", "bincount", "randint_like"})
# What gives numbers of the kind that there were.
_KEEPING = frozenset({
    "cuda", "cpu", "detach", "clone", "contiguous", "view", "reshape", "squeeze", "unsqueeze", "flatten", "permute",
    "transpose", "expand", "repeat", "Variable", "to", "requires_grad_", "pin_memory", "t",
})  # fmt: skip
MAX_STEPS = 8
"""Through how many calls and names it is followed what a tensor was made of."""


def holds_whole_numbers(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether a tensor surely holds whole numbers or truth values, by the way in which it was made."""
    if steps <= 0:
        return False
    if isinstance(node, cst.Comparison):
        return True
    if not isinstance(node, cst.Call):
        made = all_assigned(model, node)
        return bool(made) and all(holds_whole_numbers(model, item, steps - 1) for item in made)
    word, asked = last_word(node.func) or "", argument(node, None, "dtype")
    if asked is not None:
        return _is_whole(model, asked.value)
    if word in CASTS | _COUNTING or model.qualified_name(node.func) in WHOLE:
        return True
    if word in ("to", "type", "astype", "cast") and node.args and _is_whole(model, node.args[0].value):
        return True
    source = node.args[0].value if word == "Variable" and node.args else called_on(node)
    is_kept = word in _KEEPING and not (word == "to" and any(_is_other_kind(model, arg.value) for arg in node.args))
    return is_kept and source is not None and holds_whole_numbers(model, source, steps - 1)


def _is_whole(model: "Model", kind: cst.BaseExpression) -> bool:
    name = string_literal(kind)
    known = model.qualified_name(kind) if name is None else f"torch.{name.removeprefix('torch.')}"
    return known is not None and known.replace("paddle.", "torch.") in WHOLE


def _is_other_kind(model: "Model", kind: cst.BaseExpression) -> bool:
    """Whether a tensor may be converted to what it is moved to: a device is a string, or has that in its name."""
    name = model.qualified_name(kind)
    return name is not None and name.startswith(("torch.float", "torch.double", "torch.half", "torch.bfloat"))
