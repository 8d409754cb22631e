"""Collections that begin anew before much has piled up: what they hold is gone after a few additions."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import CLEARING
from mllint.semantic.expressions.arguments import argument_for, calls_of, is_passed_around
from mllint.semantic.expressions.iteration import yields_batches
from mllint.semantic.expressions.sources import operands
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import BindingKind, only_assigned
from mllint.syntax.shape import called_on, dotted_path, fingerprint, integer_literal, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.graph.accumulation import Accumulator
    from mllint.semantic.model import Model

FEW = 8
"""Up to how many additions are a handful."""

_UPDATING = ("step", "minimize", *CLEARING)
_SETTING = "gradient_accumulation_steps"
"""What Accelerate, DeepSpeed and Transformers call the number of batches whose gradients are added up for one step."""
_LAST_OF_ROUND = "sync_gradients"
"""What Accelerate calls the batch with which an accumulation ends."""


def begins_with_each_step(accumulator: "Accumulator") -> bool:
    """Whether the loop sets the collection back with the gradients, where these are added up over several batches.

    What it holds until then is no more than what one step needs.
    """
    anew = (item for item in accumulator.beginnings if item.kind is BindingKind.ASSIGN)
    tests = [test for binding in anew for test in _tests(accumulator, binding.node)]
    if any(_asks_for_last(test) for test in tests):
        return True
    cleared = list(_clearing_tests(accumulator)) if tests else []
    written = {fingerprint(test) for test in tests}
    return bool(cleared) and all(any(fingerprint(test) in written for test in around) for around in cleared)


def _asks_for_last(test: cst.BaseExpression) -> bool:
    return any(isinstance(part, cst.Attribute) and part.attr.value == _LAST_OF_ROUND for part in subtree(test))


def _clearing_tests(accumulator: "Accumulator") -> Iterator[list[cst.BaseExpression]]:
    """For each call in the loop that clears gradients the conditions on which the loop reaches it."""
    model = accumulator.model
    for call in itertools.chain.from_iterable(model.calls_by_word.get(word, ()) for word in CLEARING):
        if model.tree.is_below(call, accumulator.loop):
            yield list(_tests(accumulator, call))


def _tests(accumulator: "Accumulator", node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What the ``if`` statements test between a place of the loop and the loop; nothing for a place outside."""
    found: list[cst.BaseExpression] = []
    child = node
    for ancestor in accumulator.model.tree.ancestors(node):
        if ancestor is accumulator.loop:
            yield from found
            return
        if isinstance(ancestor, cst.If) and child is ancestor.body:
            found.append(ancestor.test)
        child = ancestor


def has_few_additions(accumulator: "Accumulator") -> bool:
    """Whether the loops that add to a name have a handful of rounds together, as the source says itself.

    A loop that counts the batches of one step adds what that step needs, however many these are.
    """
    loops, rounds = _outlived_loops(accumulator), 1
    for loop in loops:
        if not isinstance(loop, cst.For):
            return False
        number = FEW if _is_of_one_step(accumulator.model, loop) else _rounds(accumulator.model, loop.iter)
        if number is None or rounds * number > FEW:
            return False
        rounds *= number
    return bool(loops)


def _outlived_loops(accumulator: "Accumulator") -> list[cst.For | cst.While]:
    """The loops that a name outlives to which they add, from the innermost; none where it is not seen to begin."""
    model, begun = accumulator.model, accumulator.beginnings
    if "." in accumulator.key or not begun or not accumulator.is_in_loop:
        return []
    return [
        loop
        for loop in model.tree.loops_around(accumulator.node)
        if loop is accumulator.loop or not any(model.tree.is_below(binding.node, loop) for binding in begun)
    ]


def adds_parts_of_one_tensor(accumulator: "Accumulator") -> bool:
    """Whether only items are added of what was computed before all the loops that the collection outlives.

    There is one graph then, however many rounds there are: ``total += output[i, i]``.
    """
    model, loops = accumulator.model, _outlived_loops(accumulator)
    parts = operands(accumulator.core)
    if not loops or not parts or any(True for _ in model.tree.calls_in(accumulator.core)):
        return False
    bound = [model.reaching(part) for part in parts]
    return all(bound) and not any(
        model.tree.is_below(binding.node, loops[-1]) for bindings in bound for binding in bindings
    )


def _is_of_one_step(model: "Model", loop: cst.For) -> bool:
    """Whether a loop over ``range()`` computes gradients in every round, for a step that the same function takes.

    Engines of libraries are stepped in every round, and count by themselves up to a setting of theirs.
    """
    if not isinstance(loop.iter, cst.Call) or dotted_path(loop.iter.func) != "range" or len(loop.iter.args) != 1:
        return False
    if last_word(loop.iter.args[0].value) == _SETTING:
        return True
    called = {last_word(call.func) for call in model.tree.calls_in(loop.body)}
    if "backward" not in called or not called.isdisjoint(_UPDATING):
        return False
    home = model.enclosing_function(loop)
    return any(model.enclosing_function(call) is home for call in model.calls_by_word.get("step", ()))


def _rounds(model: "Model", iterated: cst.BaseExpression) -> int | None:
    """How often a loop goes round over what is written out, or over a ``range()`` of a number that is."""
    if isinstance(iterated, (cst.List, cst.Tuple, cst.Set)):
        return (
            None if any(isinstance(item, cst.StarredElement) for item in iterated.elements) else len(iterated.elements)
        )
    if not isinstance(iterated, cst.Call) or not isinstance(iterated.func, cst.Name) or not iterated.args:
        return None
    if iterated.func.value == "enumerate":
        return _rounds(model, iterated.args[0].value)
    if iterated.func.value != "range" or len(iterated.args) != 1:
        return None
    count = iterated.args[0].value
    return next((number for number in (integer_literal(count), _assigned(model, count)) if number is not None), None)


def _assigned(model: "Model", count: cst.BaseExpression) -> int | None:
    """The number that a name stands for; of a parameter the greatest that the calls in its file give, or leave it."""
    number = integer_literal(only_assigned(model, count))
    bindings = model.reaching(count)
    if number is not None or [binding.kind for binding in bindings] != [BindingKind.PARAMETER]:
        return number
    info, parameter = function_around(model, count), bindings[0].node
    if info is None or not isinstance(parameter, cst.Param) or parameter not in info.parameters:
        return None
    calls = calls_of(model, info)
    given = [argument_for(info, parameter, call, skipped) for call, skipped in calls]
    if not calls or is_passed_around(model, info):
        return None
    numbers = [integer_literal(parameter.default if item is None else item) for item in given]
    return None if None in numbers else max(number for number in numbers if number is not None)


def lives_for_a_batch(accumulator: "Accumulator") -> bool:
    """Whether the collection begins anew with each batch, and holds no more than what is left of its graphs.

    So it is with what a loop in the round over the batches adds, and with one loss of each of the models that every
    round trains.
    """
    model, loop = accumulator.model, accumulator.loop
    if "." in accumulator.key or not isinstance(loop, cst.For) or not accumulator.is_done_with:
        return False
    begun = [item for item in accumulator.beginnings if item.kind is BindingKind.ASSIGN]
    outer = (
        around
        for around in model.tree.loops_around(loop)
        if any(model.tree.is_below(binding.node, around) for binding in begun)
    )
    home = next(outer, None)
    if home is None:
        return False
    runs_over_batches = isinstance(home, cst.For) and yields_batches(model.value(home.iter))
    return (runs_over_batches and not accumulator.runs_over_loader) or _trains_each(model, loop)


def _trains_each(model: "Model", loop: cst.For) -> bool:
    """Whether a loop runs over optimizers, each of which it steps: there are as many rounds as models."""
    names = {name.value for name in subtree(loop.target) if isinstance(name, cst.Name)}
    steps = (call for call in model.tree.calls_in(loop.body) if last_word(call.func) == "step")
    return any(not call.args and dotted_path(called_on(call) or call) in names for call in steps)
