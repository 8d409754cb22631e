"""Registrations that are undone by the assignment of what the registering method gives, which is ``None``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.values import Nothing
from mllint.syntax.shape import argument, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

# The methods that give nothing back. Paddle's `add_sublayer` and `add_parameter` give what they are given.
_GIVING_NOTHING = {
    "torch": {
        "register_buffer": "tensor",
        "register_parameter": "param",
        "add_module": "module",
        "register_module": "module",
    },
    "paddle": {"register_buffer": "tensor"},
}


def undoing(model: "Model", definition: "ClassInfo", name: str, value: cst.BaseExpression) -> str | None:
    """The method by which ``self.name = self.register_buffer("name", x)`` registers what the assignment takes away.

    What is registered as ``None`` is ``None`` afterwards, too.
    """
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute) or definition.framework is None:
        return None
    word = value.func.attr.value
    keyword = _GIVING_NOTHING[definition.framework].get(word)
    if keyword is None or method_of_receiver(model, value.func.value) is None:
        return None
    if definition.has_unknown_base or definition.method(word) is not None:
        return None  # a method of the project of that name may give something
    named, given = argument(value, 0, "name"), argument(value, 1, keyword)
    if named is None or given is None or string_literal(named.value) != name:
        return None
    return None if isinstance(model.value(given.value), Nothing) else word
