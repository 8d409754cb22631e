"""What a loop does in its first round alone: ``if i == 0: total = loss`` before ``else: total += loss``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.syntax.comparison import comparands
from mllint.syntax.shape import argument, constant, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_IN_ORDER = frozenset({"tqdm", "tqdm_notebook", "track", "progressbar"})
"""What reports the rounds of what it is given, and begins with the first."""


def begins_for(model: "Model", binding: Binding, later: cst.CSTNode, loop: cst.For | cst.While) -> bool:
    """Whether an ``if`` of the loop runs what binds a name in the first round, and another place in the others."""
    child: cst.CSTNode = binding.node
    for ancestor in model.tree.ancestors(binding.node):
        if ancestor is loop:
            return False
        if isinstance(ancestor, cst.If) and child is not ancestor.test:
            is_body = child is ancestor.body
            other = ancestor.orelse if is_body else ancestor.body
            if other is not None and model.tree.is_below(later, other):
                return _tells_first(model, ancestor.test, binding.key, loop) is is_body
        child = ancestor
    return False


def _tells_first(
    model: "Model", test: cst.BaseExpression, key: str, loop: cst.For | cst.While, *, holds: bool = True
) -> bool | None:
    """What a test answers in the first round and in no other: ``i == 0``, ``i > 0``, ``total is None``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _tells_first(model, test.expression, key, loop, holds=not holds)
    if _counts_rounds(model, test, loop):
        return not holds
    if not isinstance(test, cst.Comparison):
        return None
    for pair in comparands(test):
        limit = constant(pair.others[0]) if len(pair.others) == 1 else ...
        is_missing = limit is None and pair.is_identity and dotted_path(pair.operand) == key
        is_zero = limit == 0 and limit is not False and _counts_rounds(model, pair.operand, loop)
        if is_missing or is_zero:
            return holds is not pair.is_negated
    first = test.comparisons[0]
    if len(test.comparisons) > 1 or not isinstance(first.operator, cst.GreaterThan):
        return None
    return not holds if constant(first.comparator) == 0 and _counts_rounds(model, test.left, loop) else None


def _counts_rounds(model: "Model", node: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
    """Whether a name is the number of the loop's round: ``i`` of ``for i, x in enumerate(xs)``, of ``range(n)``."""
    if isinstance(loop, cst.While) or not isinstance(node, cst.Name):
        return False
    bindings = model.reaching(node)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.LOOP or bindings[0].node is not loop:
        return False
    iterated: cst.BaseExpression = loop.iter
    while isinstance(iterated, cst.Call):
        word, given = last_word(iterated.func), iterated.args[0] if iterated.args else None
        if word == "enumerate" and bindings[0].path == (0,):
            start = argument(iterated, 1, "start")
            return start is None or constant(start.value) == 0
        if word in ("range", "trange") and not bindings[0].path:
            ends = [arg.value for arg in iterated.args if arg.keyword is None]
            return len(ends) == 1 or (bool(ends) and constant(ends[0]) == 0)
        if given is None or word not in _IN_ORDER:
            return False
        iterated = given.value
    return False
