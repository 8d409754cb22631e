"""Generators of parameters that are gone through twice, so that the second time gets nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import GIVING_PARAMETERS
from mllint.semantic.expressions.narrowed import default_given
from mllint.semantic.graph.consumers import MAX_STEPS, Consumer, consumer
from mllint.semantic.names.blocks import may_come_from
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.scopes import Binding, BindingKind, Block, Scope
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Function, Method, Module, Symbol
from mllint.syntax.shape import constant, dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_BASES = {"torch": "torch.nn.Module", "paddle": "paddle.nn.Layer"}
_WALKS = (
    "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules",
    "named_modules", "named_sublayers",
)  # fmt: skip
_LAZY = frozenset({
    "builtins.filter", "builtins.map", "builtins.zip", "builtins.enumerate", "itertools.chain",
    "itertools.chain.from_iterable", "itertools.islice",
})  # fmt: skip
_CLIPS = "clip_grad"
_LAZY_WORDS = ("filter", "map", "zip", "enumerate", "chain", "from_iterable", "islice")


class UsedUp(NamedTuple):
    """A generator that is gone through again: its binding, the first consumer, and the place of the second.

    ``again`` is true where both are the same place, in a loop. ``may_need_generator``: something is done with it that
    may not work on a list, `next(...)` before all.
    """

    binding: Binding
    first: Consumer
    second: cst.BaseExpression
    again: bool
    may_need_generator: bool = False


def used_up(model: "Model") -> Iterator[UsedUp]:
    """The generators of the file that are bound to a name or attribute and gone through twice on one path."""
    for statement in _statements(model):
        bindings = bound_by(model, statement)
        if len(bindings) == 1 and not bindings[0].path and bindings[0].kind is not BindingKind.AUGMENTED:
            found = _used_up(model, bindings[0])
            if found is not None:
                yield found._replace(may_need_generator=_may_need_generator(model, found.binding))


def _may_need_generator(model: "Model", binding: Binding) -> bool:
    """Whether anything is done with what is bound but to go through it, as one can with a list."""
    return any(
        consumer(model, node) is None and not isinstance(model.tree.parent(node), cst.ComparisonTarget)
        for node in uses(model, binding)
    )


def _statements(model: "Model") -> Iterator[cst.Assign | cst.AnnAssign]:
    """The assignments of what is surely a generator of parameters."""
    candidates: list[cst.CSTNode] = list(model.tree.by_type.get(cst.GeneratorExp, ()))
    for word in (*_WALKS, *_LAZY_WORDS):
        candidates += model.calls_by_word.get(word, ())
    for node in tuple(candidates):
        function = model.enclosing_function(node) if isinstance(model.tree.parent(node), cst.Return) else None
        candidates += () if function is None else model.calls_by_word.get(function.name.value, ())
    for node in candidates:
        statement = model.tree.parent(node)
        if isinstance(statement, cst.IfExp) and default_given(model, statement) is node:
            node, statement = statement, model.tree.parent(statement)
        is_assigned = isinstance(statement, (cst.Assign, cst.AnnAssign)) and statement.value is node
        if is_assigned and isinstance(node, cst.BaseExpression) and _is_generator(model, node):
            assert isinstance(statement, (cst.Assign, cst.AnnAssign))
            yield statement


def _is_generator(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether an expression is a generator that goes through the parameters, or other parts, of a module."""
    if isinstance(node, cst.GeneratorExp):
        return any(_walks(model, part) for part in subtree(node))
    if isinstance(node, cst.IfExp):
        node = default_given(model, node) or node
    if not isinstance(node, cst.Call):
        return False
    if _is_walk_generator(model, node):
        return True
    callee = model.value(node.func)
    if isinstance(callee, Function):
        made = callee.definition
        returned = [item.value for item in made.scope.returns] if made.is_plain and made.is_transparent else []
        return bool(returned) and all(
            item is not None and steps > 0 and _is_generator(made.model, item, steps - 1) for item in returned
        )
    return isinstance(callee, Symbol) and callee.name in _LAZY and any(_walks(model, part) for part in subtree(node))


def _is_walk_generator(model: "Model", call: cst.Call) -> bool:
    value = model.value(call.func)
    if not isinstance(value, Method) or not isinstance(value.receiver, Module):
        return False
    fact = lookup.method(_BASES[value.receiver.framework], value.name)
    return fact is not None and fact.returns == "generator"


def _walks(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a call goes through the parts of a module, as a generator or a list.

    What has ``parameters()`` and is not known is one: what is made of them is gone through once, whatever they are.
    """
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    value, word = model.value(node.func.value), node.func.attr.value
    return word in _WALKS and (isinstance(value, Module) or (value is None and word in GIVING_PARAMETERS))


# -- twice -------------------------------------------------------------------------------------------------------------


def _used_up(model: "Model", binding: Binding) -> UsedUp | None:
    """The first place that gets nothing of a generator, if there surely is one."""
    reads = list(uses(model, binding))
    consumers = [found for node in reads if (found := consumer(model, node)) is not None]
    here = [found for found in consumers if model.scope_of(found.node) is binding.scope]
    spending = [found for found in here if found.exhausts]
    for later in here:
        first = _before(model, binding, spending, later)
        if first is not None:
            return UsedUp(binding, first, later.node, False)
    repeated = next((found for found in spending if _is_repeated(model, binding, found)), None)
    if repeated is not None:
        return UsedUp(binding, repeated, repeated.node, True)
    asked = next((node for node in reads if _is_asked_repeatedly(model, binding, node)), None)
    if asked is not None:
        return UsedUp(binding, Consumer(asked, "an `in` before", True), asked, False)
    elsewhere = [found for found in consumers if found not in here]
    if not elsewhere or not _holds_elsewhere(model, binding):
        return None
    first = next((found for found in spending if _always_runs(model, found.node, binding)), None)
    if first is not None:
        return UsedUp(binding, first, elsewhere[0].node, False)
    return next((item for found in elsewhere if (item := _in_every_step(model, binding, found)) is not None), None)


def _in_every_step(model: "Model", binding: Binding, found: Consumer) -> UsedUp | None:
    """A place that clips the gradients of what the constructor has bound: one call of its method has used that up."""
    method = model.enclosing_function(found.node)
    if method is None or not found.exhausts or _CLIPS not in found.by:
        return None
    return UsedUp(binding, found._replace(by=f"the first call of `{method.name.value}`"), found.node, False)


def _before(model: "Model", binding: Binding, spending: list[Consumer], later: Consumer) -> Consumer | None:
    """What has surely used the generator up when a place of the same scope gets to it."""
    scope = binding.scope
    place = scope.place_of(later.node)
    spent_at = [(found, scope.place_of(found.node)) for found in spending]
    if place is None:
        return None
    blocks: dict[int, Consumer] = {}
    for found, there in spent_at:
        if there is None:
            return None
        if there[0] is place[0] and there[1] < place[1] and _is_bound_before(binding, there):
            return found
        blocks.setdefault(id(there[0]), found)
    if _is_in_block(binding, place):
        return None
    return _spent_on_every_path(model, scope, binding, place[0], blocks)


def _is_repeated(model: "Model", binding: Binding, found: Consumer) -> bool:
    """Whether a place runs in every round of a loop that goes on with the same generator."""
    for ancestor in model.tree.ancestors(found.node):
        if isinstance(ancestor, (cst.If, cst.IfExp, cst.Try, cst.FunctionDef, cst.Lambda)):
            return False
        if isinstance(ancestor, (cst.For, cst.While)) and not _is_header(found.node, ancestor):
            break
    place = binding.scope.place_of(found.node)
    if place is None or _is_in_block(binding, (place[0], 1 << 60)):
        return False
    return may_come_from(place[0], place[0], binding.key)


def _is_asked_repeatedly(model: "Model", binding: Binding, node: cst.BaseExpression) -> bool:
    """Whether ``x in generator`` stands where it is asked of many things, in a ``lambda`` or a loop."""
    target = model.tree.parent(node)
    if not isinstance(target, cst.ComparisonTarget) or not isinstance(target.operator, (cst.In, cst.NotIn)):
        return False
    for ancestor in model.tree.ancestors(target):
        if isinstance(ancestor, (cst.Lambda, cst.BaseComp, cst.For, cst.While)):
            return not model.tree.is_below(binding.node, ancestor)
        if isinstance(ancestor, cst.FunctionDef):
            return False
    return False


def _is_header(node: cst.CSTNode, loop: cst.For | cst.While) -> bool:
    """Whether it is what a loop goes through, which is evaluated once."""
    return isinstance(loop, cst.For) and any(part is node for part in subtree(loop.iter))


def _is_bound_before(binding: Binding, place: tuple[Block, int]) -> bool:
    """Whether the binding holds at a place of the block: it is bound above in it, or in another block."""
    return not _is_in_block(binding, (place[0], 1 << 60)) or binding.order < place[1]


def _is_in_block(binding: Binding, place: tuple[Block, int]) -> bool:
    return any(item is binding and item.order < place[1] for item in place[0].bindings.get(binding.key, ()))


def _spent_on_every_path(
    model: "Model", scope: Scope, binding: Binding, start: Block, blocks: dict[int, Consumer]
) -> Consumer | None:
    """A consumer that is passed on the way from the binding to a block, where every way passes one.

    Of a chain of ``if`` and ``elif`` without ``else`` in which several branches consume, it counts that none may.
    """
    spent: list[Consumer] = []
    unspent = False
    seen: set[int] = set()
    pending = [*start.after, *start.interrupted]
    while pending:
        block = pending.pop()
        if id(block) in seen:
            continue
        seen.add(id(block))
        found = blocks.get(id(block))
        if found is not None:
            spent.append(found)
        elif block is scope.entry or any(item is binding for item in block.bindings.get(binding.key, ())):
            unspent = True
        elif binding.key not in block.bindings:
            pending += [*block.after, *block.interrupted]
    if not spent or (unspent and not _are_branches(model, spent)):
        return None
    return min(spent, key=lambda item: (scope.place_of(item.node) or (start, 0))[1])


def _are_branches(model: "Model", spent: list[Consumer]) -> bool:
    """Whether several consumers stand in branches of one ``if``."""
    chains: list[set[int]] = []
    for found in spent:
        holders = [item for item in model.tree.ancestors(found.node) if isinstance(item, cst.If)]
        chains.append({id(item) for item in holders})
    return len(spent) > 1 and bool(set.intersection(*chains))


def _always_runs(model: "Model", node: cst.CSTNode, binding: Binding) -> bool:
    """Whether a place runs whenever the scope of the binding does."""
    for ancestor in model.tree.ancestors(node):
        if ancestor is binding.scope.node:
            return True
        if isinstance(ancestor, (cst.If, cst.IfExp, cst.For, cst.While, cst.Try, cst.FunctionDef, cst.Lambda)):
            return False
    return isinstance(binding.scope.node, cst.Module)


def _holds_elsewhere(model: "Model", binding: Binding) -> bool:
    """Whether another function finds what was bound.

    So it is with an attribute that only the constructor sets, or that another method sets where there is none yet, and
    a name of the module that is bound once.
    """
    scope = binding.scope
    if "." not in binding.key:
        return isinstance(scope.node, cst.Module) and len(scope.bindings[binding.key]) == 1
    if not isinstance(scope.node, cst.FunctionDef) or binding.key.count(".") != 1:
        return False
    method = model.function_info(scope.node)
    if method.owner is None:
        return False
    places = list(method.owner.members.assignments(binding.key.partition(".")[2]))
    if method.name == "__init__":
        return len(places) == 1
    others = [place for place in places if place.node is not binding.node]
    return _is_set_once(scope.model, binding) and all(
        place.method is not None and place.method.name == "__init__" for place in others
    )


def _is_set_once(model: "Model", binding: Binding) -> bool:
    """Whether a test lets a statement set an attribute only where there is none yet: ``if self.kept is None:``."""
    for test, holds in verdicts(model, binding.node):
        match test:
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=other)]):
                if holds and dotted_path(left) == binding.key and constant(other) is None:
                    return True
    return False
