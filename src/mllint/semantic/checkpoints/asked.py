"""Entries that a test asks for under one key, and a load below it reads under another.

``if state["lr_scheduler"] is not None: scheduler.load_state_dict(state["scheduler"])``: only one of the two is there.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.handling import uses
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.names.conditions import parts_of_test, verdicts
from mllint.syntax.shape import string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def asked_under_another(load: Load) -> tuple[str, str] | None:
    """The key that the tests around a load ask for, and the one that is read: one of the two begins or ends the other.

    The first is mentioned nowhere else, the second nowhere in the tests.
    """
    model, item = load.model, load.given
    key = string_literal(subscript_index(item)) if isinstance(item, cst.Subscript) else None
    if key is None or not isinstance(item, cst.Subscript):
        return None
    tests = [test for test, is_true in verdicts(model, load.call) if is_true]
    found = [part for test in tests for part in parts_of_test(test) if _is_there_where_true(part)]
    inside = {id(node) for part in found for node in subtree(part)}
    if not inside:
        return None
    asked, read = set[str](), set[str]()
    for use in uses(item.value, model):
        for name, node in _keys_at(model, use):
            (asked if id(node) in inside else read).add(name)
    others = [name for name in asked - read if name != key and (name in key or key in name)]
    return (others[0], key) if len(others) == 1 and key not in asked else None


def _is_there_where_true(test: cst.BaseExpression) -> bool:
    """Whether a test that asks for an entry holds where the entry is there, and is something."""
    if not isinstance(test, cst.Comparison):
        return isinstance(test, (cst.Subscript, cst.Call))
    operators = [target.operator for target in test.comparisons]
    return len(operators) == 1 and isinstance(operators[0], (cst.In, cst.IsNot))


def _keys_at(model: "Model", use: cst.BaseExpression) -> Iterator[tuple[str, cst.CSTNode]]:
    """The string keys that are taken of a dict, or looked for in it, where a name of it stands."""
    above = model.tree.parent(use)
    if isinstance(above, cst.Subscript) and above.value is use:
        name = string_literal(subscript_index(above))
    elif isinstance(above, cst.ComparisonTarget) and isinstance(above.operator, (cst.In, cst.NotIn)):
        comparison = model.tree.parent(above)
        name = string_literal(comparison.left) if isinstance(comparison, cst.Comparison) else None
    elif isinstance(above, cst.Attribute) and above.attr.value in ("get", "pop"):
        call = model.tree.parent(above)
        name = string_literal(call.args[0].value) if isinstance(call, cst.Call) and call.args else None
    else:
        return
    if name is not None:
        yield name, above
