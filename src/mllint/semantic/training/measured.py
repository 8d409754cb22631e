"""Loops that are no training: a few rounds that are timed or profiled."""

import itertools
import re

import libcst as cst

from mllint.semantic.events.steps import Loop
from mllint.semantic.graph.placement import reads_clock
from mllint.syntax.shape import dotted_path, fingerprint, integer_literal, targets_of
from mllint.syntax.walk import subtree

_FEW = 20
"""Up to how many rounds a loop is taken for a trial."""
_REACHING = (cst.Equal, cst.GreaterThan, cst.GreaterThanEqual)
"""How a number is compared that grows."""
_SAYS_MEASURING = re.compile(
    r"benchmark|profil|measur|throughput|latency|speed_?test|(?:test|check|peak|max)_?memory|memory_?(?:us|test|cost|foot)",
    re.IGNORECASE,
)
"""How functions are called that time what they run, or look at its memory; a replay memory is another thing."""


def only_measures(loop: Loop) -> bool:
    """Whether a loop is left after a few rounds, which are timed or profiled: ``if index == 3: break``.

    Or stands in a function that is called after what it measures.
    """
    function = loop.frame.function
    if (function is not None and _SAYS_MEASURING.search(function.name)) or _is_repeated_for_time(loop):
        return True
    last = loop.node.body.body[-1] if isinstance(loop.node, (cst.For, cst.While)) and loop.node.body.body else None
    if not isinstance(last, cst.If) or not any(isinstance(part, cst.Break) for part in subtree(last)):
        return False
    entered = [item.item for item in subtree(last) if type(item) is cst.WithItem]
    contexts = (dotted_path(getattr(item, "func", item)) for item in entered)
    return _is_of_few_rounds(last.test, loop.node) or any("profile" in (path or "") for path in contexts)


def _is_of_few_rounds(test: cst.BaseExpression, loop: cst.CSTNode) -> bool:
    """Whether a test is whether something has come to a small number: not what is left of a division, nor what the loop
    sets back, such as the rounds that were no better than the best one.
    """
    match test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator, bound)]):
            number = integer_literal(bound)
        case _:
            return False
    if number is None or number >= _FEW or not isinstance(operator, _REACHING):
        return False
    is_divided = any(isinstance(getattr(part, "operator", None), cst.Modulo) for part in subtree(left))
    set_back = (target for part in subtree(loop) if type(part) is cst.Assign for target in targets_of(part))
    return not is_divided and all(fingerprint(target) != fingerprint(left) for target in set_back)


def _is_repeated_for_time(loop: Loop) -> bool:
    """Whether all rounds of a loop are alike, and what its time is divided by: ``(time() - start) / repeats``."""
    model, node = loop.frame.model, loop.node
    if not isinstance(node, cst.For) or not isinstance(node.target, cst.Name):
        return False
    lines = getattr(model.tree.parent(node), "body", ())
    behind = itertools.islice(itertools.dropwhile(lambda line: line is not node, lines), 1, None)
    divisions = (
        part.left
        for line in behind
        for part in subtree(line)
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Divide)
    )
    is_counted = any(isinstance(part, cst.Name) and part.value == node.target.value for part in subtree(node.body))
    return not is_counted and any(reads_clock(model, part) for part in divisions)
