"""Modules that a function of a library calls, since it is given them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.syntax.shape import argument, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def module_applied(model: "Model", call: cst.Call) -> cst.BaseExpression | None:
    """What a function of a library calls with the rest of what it is given; ``None`` where a call is no such function.

    ``sliding_window_inference(image, size, 4, network)`` gives what ``network(image)`` would, piece by piece.
    """
    if last_word(call.func) not in lookup.APPLYING:
        return None
    found = lookup.applied_by(model.qualified_name(call.func) or "")
    arg = None if found is None else argument(call, found.position, found.keyword)
    return None if arg is None else arg.value
