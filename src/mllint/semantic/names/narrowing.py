"""Tests that say what a thing is where they hold."""

import libcst as cst

from mllint.syntax.shape import dotted_path

NARROWING = ("isinstance", "is_tensor")
"""The functions whose test says what a thing is."""


def narrowing(test: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """The key that ``isinstance(key, Type)`` or ``is_tensor(key)`` asks about, and the type, or what stands for it."""
    if type(test) is not cst.Call or not test.args:
        return None
    predicate = dotted_path(test.func)
    if predicate is None:
        return None
    key = dotted_path(test.args[0].value)
    if key is None:
        return None
    if predicate == "isinstance" and len(test.args) == 2:
        return key, test.args[1].value
    return (key, test.func) if predicate.rpartition(".")[2] == "is_tensor" and len(test.args) == 1 else None
