"""What kind of thing a parameter or attribute is, by what its body does with it, where nothing else is known of it."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.uses import reads
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CLEARS = frozenset({"zero_grad", "clear_grad", "clear_gradients"})
_OF_OPTIMIZERS = frozenset({"param_groups", "add_param_group", "set_lr", "minimize"})
_OF_SCALERS = frozenset({"scale", "unscale_", "get_scale"})
_OF_SCHEDULERS = frozenset({"get_last_lr", "get_lr", "last_epoch"})
_OF_MODULES = frozenset({
    "parameters", "named_parameters", "modules", "named_modules", "eval", "sublayers", "set_state_dict", "no_sync",
})  # fmt: skip
_OF_ENGINES = frozenset({"backward", "forward", "prepare"})
"""What has these beside ``step`` does more than an optimizer."""
_STEPS_TOO = re.compile(r"prof|sched|env|timer|progress|pbar|counter|logger|tracker|meter|warm|ema", re.IGNORECASE)
"""Names of other things that step."""


def used_as(model: "Model", node: cst.BaseExpression) -> str | None:
    """``optimizer``, ``scheduler``, ``scaler`` or ``module``; ``None`` when its uses do not say.

    An optimizer is what has its gradients cleared and steps; or the only thing that steps in a body in which gradients
    are computed: for something must use them.
    """
    key = dotted_path(node)
    if key is None:
        return None
    words = _words(model, key, node)
    if "step" in words and not words & _OF_ENGINES:
        if words & _OF_SCALERS:
            return "scaler"
        if words & _OF_SCHEDULERS and not words & _CLEARS:
            return "scheduler"
        if words & (_CLEARS | _OF_OPTIMIZERS) or _is_only_one_to_step(model, key, node):
            return "optimizer"
    if words & _OF_MODULES and "step" not in words:
        return "module"
    return None


def has_cleared(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the body around a node clears the gradients of what it stands for."""
    key = dotted_path(node)
    return key is not None and bool(_words(model, key, node) & _CLEARS)


def _words(model: "Model", key: str, node: cst.BaseExpression) -> set[str]:
    """The attributes that the body around a node reads of a name or path."""
    return _words_by_function(model, key).get(id(model.enclosing_function(node)), set())


@worked_out_once
def _words_by_function(model: "Model", key: str) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for place in reads(model, key):
        parent = model.tree.parent(place)
        if isinstance(parent, cst.Attribute) and parent.value is place:
            found.setdefault(id(model.enclosing_function(place)), set()).add(parent.attr.value)
    return found


def _is_only_one_to_step(model: "Model", key: str, node: cst.BaseExpression) -> bool:
    """Whether a body computes gradients, and nothing else in it steps."""
    body = model.enclosing_function(node)
    stepping = {
        dotted_path(call.func.value)
        for call in model.calls_by_word.get("step", ())
        if isinstance(call.func, cst.Attribute) and model.enclosing_function(call) is body
    }
    given = any(
        call.args and isinstance(call.func, cst.Attribute) and dotted_path(call.func.value) == key
        for call in model.calls_by_word.get("step", ())
    )
    computes = any(model.enclosing_function(call) is body for call in model.calls_by_word.get("backward", ()))
    return computes and not given and stepping == {key} and _STEPS_TOO.search(key) is None
