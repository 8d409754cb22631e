"""Losses that go into a list or dict and are spent one by one: ``for name, loss in losses.items()`` beside
``sum(...).backward()``, and ``losses[-1].backward()`` behind an ``append``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import CUTTING
from mllint.semantic.expressions.sources import paths_in
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import mentions, method_calls
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import called_on, constant, detaches, dotted_path, subscript_index, targets_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 40
"""How many names are followed from what ``backward()`` is called on."""
_VIEWS = frozenset({"items", "values"})
_READING = frozenset({"items", "values", "keys", "get", "index", "count"})


def bound_inside(
    model: "Model",
    loop: cst.CSTNode,
    pending: list[cst.BaseExpression],
    parts: Callable[[cst.BaseExpression], list[cst.BaseExpression]],
) -> set[int]:
    """What a loop assigns to names, and to the parts of what they are assigned; what it unpacks, as a whole."""
    seen: set[int] = set()
    while pending and len(seen) < MAX_STEPS:
        for binding in model.reaching(pending.pop()):
            is_inner = binding.kind is BindingKind.ASSIGN and model.tree.is_below(binding.node, loop)
            if is_inner and id(binding) not in seen:
                seen |= {id(binding), id(binding.value)} if binding.path else {id(binding)}
                pending += [] if binding.value is None else parts(binding.value)
    return seen


def gone_through(model: "Model", loop: cst.For, added: cst.BaseExpression) -> cst.BaseExpression | None:
    """The collection of which a loop adds each item: ``losses`` of ``losses[i]``, or of what the loop runs over."""
    while isinstance(added, cst.BinaryOperation):
        added = added.left
    part = subscript_index(added) if isinstance(added, cst.Subscript) else added
    bindings = model.reaching(part) if isinstance(part, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.LOOP or bindings[0].node is not loop:
        return None
    if isinstance(added, cst.Subscript):
        return added.value
    found = run_over(loop.iter)
    if isinstance(found, cst.Call) and isinstance(found.func, cst.Attribute) and found.func.attr.value in _VIEWS:
        return found.func.value
    return found


def is_spent_part(model: "Model", node: cst.CSTNode, added: cst.BaseExpression, loop: cst.CSTNode) -> bool:
    """Whether a statement adds the items of what the loop around calls ``backward()`` on, as they are."""
    inner = model.tree.nearest(node, cst.For)
    if inner is None or inner is loop or not isinstance(loop, (cst.For, cst.While)):
        return False
    losses = gone_through(model, inner, added)
    if losses is None or dotted_path(losses) is None or detaches(added) or is_changed(model, losses, loop):
        return False
    made = model.reaching(losses)
    is_of_round = bool(made) and all(model.tree.is_below(one.node, loop) for one in made)
    return is_of_round and any(_spends(model, call, losses, loop) for call in model.backward.calls_in(loop))


def _spends(model: "Model", call: cst.Call, losses: cst.BaseExpression, loop: cst.CSTNode) -> bool:
    loss, path, made = loss_of(call), dotted_path(losses), model.reaching(losses)
    pending: list[cst.BaseExpression] = [] if loss is None else [loss]
    seen: set[int] = set()
    while pending and len(seen) < MAX_STEPS:
        whole = pending.pop()
        for part in paths_in(whole):
            if dotted_path(part) == path and model.reaching(part) == made:
                return not _is_cut(model, part, whole)
            for binding in model.reaching(part):
                is_inside = model.tree.is_below(binding.node, loop)
                if id(binding) not in seen and is_inside and binding.value is not None:
                    seen.add(id(binding))
                    pending += [] if detaches(binding.value) else [binding.value]
    return False


def _is_cut(model: "Model", part: cst.BaseExpression, whole: cst.BaseExpression) -> bool:
    """Whether a part goes into an expression without its graph."""
    for ancestor in model.tree.ancestors(part):
        if isinstance(ancestor, cst.Attribute) and ancestor.attr.value in CUTTING:
            return True
        if ancestor is whole:
            return False
    return False


def is_changed(model: "Model", losses: cst.BaseExpression, loop: cst.CSTNode) -> bool:
    """Whether the loop takes something out of the collection, or puts something else in its place."""
    for holder in mentions(model, dotted_path(losses) or ""):
        if not model.tree.is_inside(holder, loop):
            continue
        above = model.tree.parent(holder)
        if isinstance(above, cst.Attribute) and above.value is holder and above.attr.value not in _READING:
            return True
        if isinstance(above, cst.Subscript) and isinstance(model.tree.parent(above), (cst.Del, cst.AugAssign)):
            return True
        if isinstance(above, cst.Subscript) and isinstance(model.tree.parent(above), cst.AssignTarget):
            return True
    return False


_CHANGES = frozenset({"append", "extend", "insert", "pop", "clear", "remove", "sort", "reverse"})
_LOOPS = (cst.For, cst.While, cst.FunctionDef)


def spent_last(model: "Model", append: cst.CSTNode, key: str, loop: cst.CSTNode) -> cst.Call | None:
    """The ``backward()`` of the last item of a list, which behind an ``append`` in the same round is what was added."""
    if not isinstance(append, cst.Call):
        return None
    found = [
        call
        for call in model.backward.calls_in(loop)
        if _is_of_last(call, key) and model.tree.nearest(call, *_LOOPS) is loop
    ]
    if len(found) != 1 or _is_changed_besides(model, append, key, loop):
        return None
    calls = model.tree.by_type[cst.Call]
    places = [next(index for index, call in enumerate(calls) if call is node) for node in (append, found[0])]
    return found[0] if places[0] < places[1] else None


def _is_of_last(call: cst.Call, key: str) -> bool:
    """Whether a call is ``key[-1].backward()``."""
    item = called_on(call)
    if not isinstance(item, cst.Subscript) or dotted_path(item.value) != key:
        return False
    index = subscript_index(item)
    return index is not None and constant(index) == -1


def _is_changed_besides(model: "Model", append: cst.Call, key: str, loop: cst.CSTNode) -> bool:
    """Whether the loop does anything else to the list, or appends only under a condition."""
    if model.tree.nearest(append, *_LOOPS) is not loop or any(
        isinstance(item, (cst.If, cst.Try, cst.With))
        for item in model.tree.ancestors(append)
        if model.tree.is_inside(item, loop)
    ):
        return True
    changes = method_calls(model, key, _CHANGES)
    if any(call is not append and model.tree.is_inside(call, loop) for call in changes):
        return True
    for assign in (*model.tree.by_type.get(cst.Assign, ()), *model.tree.by_type.get(cst.AugAssign, ())):
        held = [target.value if isinstance(target, cst.Subscript) else target for target in targets_of(assign)]
        if any(dotted_path(node) == key for node in held) and model.tree.is_inside(assign, loop):
            return True
    return False
