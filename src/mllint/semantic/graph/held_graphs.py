"""Collections that hold on to the graph of what is added to them, and those that do so because another one does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import CUTTING, GIVING_PARAMETERS, MOVING
from mllint.semantic.construction.constants import constant_of
from mllint.semantic.expressions.alternatives import alternatives
from mllint.semantic.expressions.hints import is_called_loss, is_name_of_loss
from mllint.semantic.expressions.sources import operands, paths_in
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.accumulation import MAX_STEPS, Accumulator
from mllint.semantic.graph.additions import appended, augmented
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.graph.leaves import is_leaf
from mllint.semantic.graph.losses import loss_of
from mllint.semantic.graph.short_lived import (
    adds_parts_of_one_tensor,
    begins_with_each_step,
    has_few_additions,
    lives_for_a_batch,
)
from mllint.semantic.graph.terms import addends, is_spent_term
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import BindingKind, assigned, only_assigned
from mllint.semantic.names.uses import mentions
from mllint.semantic.values import Function, Instance, Number, Output, Tensor, Value
from mllint.syntax.shape import (
    argument,
    detaches,
    dotted_path,
    fingerprint,
    last_word,
    part_at,
    string_literal,
    subscript_index,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def may_be_number(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a Python number on some of the ways on which it comes there."""
    ways = [(model, node)]
    for binding in model.reaching(node):
        callee = model.value(binding.value.func) if binding.path and isinstance(binding.value, cst.Call) else None
        returned = callee.definition.scope.returns if isinstance(callee, Function) else ()
        parts = (part_at(statement.value, binding.path) for statement in returned)
        home = callee.definition.model if isinstance(callee, Function) else model
        ways += [(home, part) for part in parts if part is not None]
    values = [item for home, part in ways for item in alternatives(home, part)]
    return any(isinstance(item, Number) or (isinstance(item, Tensor) and item.or_number) for item in values)


def holds_graph(accumulator: Accumulator) -> bool:
    """Whether what is added surely hangs on a graph that nobody needs any more."""
    return (
        _is_attached(accumulator.model.value(accumulator.added), accumulator)
        and not accumulator.needs_graph
        and not is_test_code(accumulator.model)
        and not _adds_without_graph(accumulator)
        and not _adds_up_parameters(accumulator)
        and not _is_idle_entry(accumulator)
        and not _is_held_anyway(accumulator)
        and not _walks_one_graph(accumulator)
        and not _is_cut_in_another_branch(accumulator)
        and not begins_with_each_step(accumulator)
        and not has_few_additions(accumulator)
        and not adds_parts_of_one_tensor(accumulator)
        and not lives_for_a_batch(accumulator)
    )


def _is_idle_entry(accumulator: Accumulator) -> bool:
    """Whether a training loop takes an entry of what a module gives that nothing is computed from: counts, a report."""
    core, model = accumulator.core, accumulator.model
    entry = core if isinstance(core, cst.Subscript) else only_assigned(model, core)
    key = string_literal(subscript_index(entry)) if isinstance(entry, cst.Subscript) else None
    if entry is None or key is None or is_name_of_loss(key):
        return False
    if not accumulator.trains or isinstance(model.value(core), Tensor):
        return False
    same = {fingerprint(core), fingerprint(entry)}
    read = (
        node
        for node in subtree(accumulator.loop.body)
        if isinstance(node, (cst.Name, cst.Subscript)) and node is not core and fingerprint(node) in same
    )
    return all(_is_only_kept(model, node) for node in read)


def _is_only_kept(model: "Model", node: cst.CSTNode) -> bool:
    """Whether nothing is computed from what is read, or bound, there: it is given a name, written, or added."""
    parent = model.tree.parent(node)
    is_kept = isinstance(parent, (cst.Assign, cst.AssignTarget)) or (
        isinstance(parent, cst.AugAssign) and parent.value is node
    )
    return is_kept or any(isinstance(item, cst.FormattedString) for item in model.tree.ancestors(node))


def _is_held_anyway(accumulator: Accumulator) -> bool:
    """Whether the loop adds the same to something that needs the graph: ``total += loss`` before one ``backward()``."""
    parts = {dotted_path(path) for path in paths_in(accumulator.core)}  # without `n` of `loss / n`
    return any(
        other.key != accumulator.key
        and bool(parts & {dotted_path(path) for path in operands(other.added)})
        and other.needs_graph
        for other in _beside(accumulator)
    )


def _walks_one_graph(accumulator: Accumulator) -> bool:
    """Whether each round walks a graph made before the loop: ``outputs[i].backward(retain_graph=True)``."""
    model, loop = accumulator.model, accumulator.loop
    for call in model.calls_by_word.get("backward", ()):
        keeps = argument(call, None, "retain_graph")
        is_own = call is accumulator.spent_last
        is_keeping = keeps is not None and constant_of(model, keeps.value) is True
        if is_own or not is_keeping or not model.tree.is_inside(call, loop):
            continue
        names = [item for item in subtree(call.func) if isinstance(item, cst.Name)]
        bound = [binding for name in names for binding in model.reaching(name)]
        made = [binding for binding in bound if binding.kind is not BindingKind.LOOP]
        if made and not any(model.tree.is_inside(binding.node, loop) for binding in made):
            return True
    return False


def _is_cut_in_another_branch(accumulator: Accumulator) -> bool:
    """Whether another branch detaches what it adds to the same total: who does that leaves it on its graph here."""
    return any(
        other.key == accumulator.key
        and detaches(other.added)
        and is_in_another_branch(accumulator.model, accumulator.node, other.node)
        for other in _beside(accumulator)
    )


def _beside(accumulator: Accumulator) -> Iterator[Accumulator]:
    """The other additions in the same loop."""
    model = accumulator.model
    for node in subtree(accumulator.loop.body):
        if node is accumulator.node or not isinstance(node, (cst.AugAssign, cst.Call)):
            continue
        other = augmented(model, node) if isinstance(node, cst.AugAssign) else appended(model, node)
        if other is not None and other.loop is accumulator.loop:
            yield other


def _adds_without_graph(accumulator: Accumulator) -> bool:
    """Whether ``total += loss`` runs without gradients, or adds to a dict, which raises. A list holds what it gets."""
    model, node = accumulator.model, accumulator.node
    if isinstance(node, cst.Call) or isinstance(model.tree.parent(accumulator.added), cst.Element):
        return False
    made = [binding.value for binding in model.reaching(accumulator.target) if binding.node is not node]
    if model.gradients.off(node) is True or any(isinstance(value, (cst.Dict, cst.DictComp)) for value in made):
        return True
    if not any(isinstance(value, (cst.List, cst.ListComp)) for value in made):
        return False
    # `rows = rows + more` is of two lists, or raises; `rows += more` takes the rows of a tensor, too.
    return isinstance(node, cst.Assign) or not isinstance(model.value(accumulator.added), Tensor)


def _adds_up_parameters(accumulator: Accumulator) -> bool:
    """Whether a sum over the parameters of a model is meant, which begins right before the loop over them."""
    loop, model = accumulator.loop, accumulator.model
    call = loop.iter if isinstance(loop, cst.For) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or "." in accumulator.key:
        return False
    if call.func.attr.value not in GIVING_PARAMETERS:
        return False
    begun = [binding for binding in model.reaching(accumulator.target) if binding.node is not accumulator.node]
    rounds = (cst.For, cst.While, cst.FunctionDef)
    home = model.tree.nearest(loop, *rounds)
    return bool(begun) and all(model.tree.nearest(binding.node, *rounds) is home for binding in begun)


def _is_made(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a tensor is made and not computed, on some way at least: ``zeros(1, requires_grad=True).cuda()``."""
    if is_leaf(model, node):
        return True
    bindings = model.reaching(node)
    if any(isinstance(value, Tensor) and value.leaf for value in map(model.binding_value, bindings)):
        return True
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and made.func.attr.value in MOVING:
        made = made.func.value
        if is_leaf(model, made):
            return True
    return False


def _is_attached(value: Value | None, accumulator: Accumulator) -> bool:
    """Whether what is added surely hangs on a graph, and the loop shows that nobody makes a loss of the collection."""
    if accumulator.spent_last is not None:
        return True
    if _is_cut_on_some_way(accumulator.model, accumulator.core):
        return False
    if isinstance(value, Tensor) and _is_made(accumulator.model, accumulator.added):
        return False  # made and not computed: what is computed of it holds on to it, and not the reverse
    if not isinstance(value, (Tensor, Output)) or value.attached is not True:
        return _is_spent_loss(value, accumulator) or spent_entry(accumulator) is not None
    if isinstance(value, Output) and _is_beside_loss(accumulator) and not accumulator.is_operand_of_spent:
        return False
    if accumulator.is_done_with or accumulator.runs_over_loader:
        return True
    if not accumulator.is_in_loop:
        return False
    if isinstance(value, Output):
        # Of what a module of unknown class gives, a part may hang on no graph; but a loss does.
        return accumulator.trains and is_called_loss(accumulator.core)
    if accumulator.trains or accumulator.is_only_reported:
        return True
    return bool(value.scalar or value.one_element) and accumulator.evaluates


def _is_beside_loss(accumulator: Accumulator) -> bool:
    """Whether a criterion of unknown class gives it beside the loss: ``loss, precision = criterion(output, y)``.

    It may be a measure, for which nobody needs a graph.
    """
    bindings = accumulator.model.reaching(accumulator.core)
    return not is_called_loss(accumulator.core) and any(
        item.path and isinstance(item.value, cst.Call) and is_called_loss(item.value) for item in bindings
    )


def _is_spent_loss(value: Value | None, accumulator: Accumulator) -> bool:
    """Whether it is a loss by its name, or one term of a sum, and goes into what ``backward()`` is called on."""
    is_unknown = value is None or (isinstance(value, (Tensor, Output)) and value.attached is None)
    return (
        is_unknown
        and not _is_scaled_number(accumulator.model, accumulator.core)
        and (
            accumulator.is_spent_part
            or any(map(is_called_loss, addends(accumulator.core)))
            or accumulator.comes_back_as_loss
            or is_spent_term(accumulator)
        )
        and accumulator.adds_with_gradients
        and accumulator.is_done_with
        and not accumulator.may_be_cut
    )


def _is_cut_on_some_way(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name is bound to a number of a tensor, or to one without a graph, on one of the ways to its place.

    On another one, of an ``except`` perhaps, that has not happened yet: nobody can tell whether it is a tensor there.
    So it is with such a number and something unknown: ``loss.item() * rounds``.
    """
    values = (assigned(binding) for binding in model.reaching(node))
    return any(value is not None and _is_cut(model, value) for value in values)


def _is_cut(model: "Model", node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation) and model.value(node) is None:
        return _is_cut(model, node.left) or _is_cut(model, node.right)
    return isinstance(node, cst.Call) and last_word(node.func) in (*CUTTING, "float", "int")


def _is_scaled_number(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name stands for a number that was multiplied or divided in place by something unknown."""
    changes = [binding.node for binding in model.reaching(node)]
    return bool(changes) and all(
        isinstance(change, cst.AugAssign)
        and isinstance(change.operator, (cst.DivideAssign, cst.MultiplyAssign))
        and hangs_on_nothing(model.value(change.target))
        for change in changes
    )


def spent_entry(accumulator: Accumulator) -> cst.BaseExpression | None:
    """The entry or attribute of what is added on which the loop calls ``backward()``: ``out["loss"]`` of ``out``.

    ``None`` where something is put in its place, or taken out of the thing.
    """
    model, added = accumulator.model, accumulator.added
    calls = model.backward.calls_in(accumulator.loop) if isinstance(added, cst.Name) else []
    if not calls or not accumulator.is_in_loop or not accumulator.adds_with_gradients or _is_altered(accumulator):
        return None
    for call in calls:
        entry = loss_of(call)
        thing = entry.value if isinstance(entry, (cst.Subscript, cst.Attribute)) else None
        if isinstance(thing, cst.Name) and model.reaching(thing) and model.reaching(thing) == model.reaching(added):
            return entry
    return None


def _is_altered(accumulator: Accumulator) -> bool:
    """Whether the loop sets, deletes or takes out a part of the thing that is added, or calls a method of it."""
    model, added = accumulator.model, accumulator.added
    assert isinstance(added, cst.Name)
    for name in model.names_in(added.value, model.scope_of(added)):
        read = model.tree.parent(name)
        if isinstance(read, (cst.Subscript, cst.Attribute)) and model.tree.is_below(name, accumulator.loop):
            around = model.tree.parent(read)
            if model.tree.call_of(read) is not None or isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.Del)):
                return True
    return False


def is_second_hand(accumulator: Accumulator) -> bool:
    """Whether the graph comes out of another collection that holds on to it, here or in a function of the project.

    With that one mended there is no graph left; and what is in it then may be a number, of which nothing can be taken.
    """
    pending: list[tuple[Model, cst.CSTNode]] = [(accumulator.model, accumulator.added)]
    seen: set[int] = set()
    while pending and len(seen) < MAX_STEPS:
        model, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for path in paths_in(node):
            if isinstance(path, cst.Attribute) and _is_of_meter(model, path):
                return True
            if any(other.node is not accumulator.node and holds_graph(other) for other in _additions(model, path)):
                return True
            bound = (item.value for item in model.reaching(path) if item.kind is BindingKind.ASSIGN)
            pending += [(model, value) for value in bound if value is not None]
        pending += _returned(model, node)
    return False


def _is_of_meter(model: "Model", path: cst.Attribute) -> bool:
    """Whether what is read is what another object of the project adds up: it is judged where it is given something."""
    function = function_around(model, path)
    receiver = None if function is None else function.self_name
    holder = model.value(path.value)
    if not isinstance(holder, Instance) or dotted_path(path.value) == receiver:
        return False
    statements = (item for item in subtree(holder.definition.node) if isinstance(item, cst.AugAssign))
    added = {item.target.attr.value for item in statements if isinstance(item.target, cst.Attribute)}
    read = model.value(path)
    if model.tree.call_of(path) is None:
        return bool(added)
    returned = read.definition.scope.returns if isinstance(read, Function) else ()
    parts = (part for statement in returned if statement.value is not None for part in operands(statement.value))
    return any(isinstance(part, cst.Attribute) and part.attr.value in added for part in parts)


def _additions(model: "Model", collection: cst.BaseExpression) -> Iterator[Accumulator]:
    """The statements that add to a collection in the function that reads it; to one of the object's, in the class."""
    path, scope = dotted_path(collection) or "", model.scope_of(collection)
    root, _, attribute = path.rpartition(".")
    function = model.enclosing_function(collection)
    info = None if function is None or not root else model.function_info(function)
    if info is not None and info.owner is not None and info.self_name == root:
        scope = info.scope.parent or scope
    names = model.names_within(attribute, scope) if root else model.names_in(path, scope)
    yield from (found for node in mentions(model, path, names) if (found := _addition(model, node)) is not None)


def _addition(model: "Model", collection: cst.CSTNode) -> Accumulator | None:
    """What ``total += x``, ``total = total + x`` or ``losses.append(x)`` adds, seen from the first name in it."""
    node, parent = collection, model.tree.parent(collection)
    while isinstance(parent, cst.Subscript) and parent.value is node:
        node, parent = parent, model.tree.parent(parent)
    if isinstance(parent, cst.AssignTarget):
        parent = model.tree.parent(parent)
        return augmented(model, parent) if isinstance(parent, cst.Assign) else None
    if isinstance(parent, cst.AugAssign):
        return augmented(model, parent) if parent.target is node else None
    if not isinstance(parent, cst.Attribute) or parent.attr.value != "append":
        return None
    call = model.tree.call_of(parent)
    return None if call is None else appended(model, call)


def _returned(model: "Model", node: cst.CSTNode) -> Iterator[tuple["Model", cst.CSTNode]]:
    """What the functions of the project that are called in an expression give back."""
    for call in (item for item in subtree(node) if isinstance(item, cst.Call)):
        callee = model.value(call.func)
        if isinstance(callee, Function):
            info = callee.definition
            yield from ((info.model, item.value) for item in info.scope.returns if item.value is not None)
