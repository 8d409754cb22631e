"""What a test of a function comes to where its caller gives nothing that has a default."""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.assigned import only_assigned
from mllint.semantic.names.conditions import decided
from mllint.syntax.shape import argument, constant, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 4
"""Through how many names a default is followed."""


def holds_by_default(model: "Model", test: cst.BaseExpression) -> bool | None:
    """Whether a test holds with the defaults of what is asked in it; ``None`` where nothing of it has one."""
    return decided(test, partial(_by_default, model))


def _by_default(model: "Model", node: cst.BaseExpression, steps: int = _MAX_STEPS) -> object:
    """The constant that an option is where nobody sets it: the default of a parameter, or of ``getattr()``, also under
    other names; ``Ellipsis`` where it is not known.
    """
    literal = constant(node)
    if literal is not ... or steps == 0:
        return literal
    if isinstance(node, cst.Call):
        # Of a dict, or of an object of options.
        asked = {"getattr": 2, "get": 1, "pop": 1}.get(last_word(node.func) or "")
        default = None if asked is None else argument(node, asked, None)
        return ... if default is None else constant(default.value)
    bound = [item.node.default for item in model.reaching(node) if isinstance(item.node, cst.Param)]
    if bound:
        return constant(bound[0]) if len(bound) == len(model.reaching(node)) == 1 else ...
    kept = only_assigned(model, node)
    return ... if kept is None else _by_default(model, kept, steps - 1)
