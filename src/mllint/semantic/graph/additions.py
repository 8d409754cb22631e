"""Statements that add to a collection which outlives the loop, or the method, that they stand in."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import MOVING
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.sources import operands
from mllint.semantic.graph.accumulation import Accumulator
from mllint.semantic.graph.spent_parts import gone_through
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Function, Output, Tensor, Value
from mllint.syntax.comparison import comparands
from mllint.syntax.shape import (
    argument,
    before_methods,
    called_on,
    constant,
    constant_given,
    dotted_path,
    fingerprint,
    last_word,
    subscript_index,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What is in these is evaluated at other times, or many times.
_OTHER_TIMES = (cst.ClassDef, cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)

_JOINING = frozenset(
    {"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack", "paddle.concat"}
)
"""Functions that give one tensor for several."""
_TAKING_OUT = ("pop", "popleft", "clear")
"""Methods that take something out of a list."""
ADDING = {"add_": (0, "other"), "index_add_": (2, "source"), "scatter_add_": (2, "src")}
"""Methods of a tensor that add to it in place, and by which argument."""
METHODS = ("append", *ADDING)
"""Methods that add something to a list or a tensor."""


def augmented(model: "Model", node: cst.AugAssign | cst.Assign) -> Accumulator | None:
    """The accumulation that ``total += x`` or ``total = total + x`` is; ``None`` for every other assignment."""
    if isinstance(node, cst.AugAssign):
        target, added = node.target, node.value
        if not isinstance(node.operator, cst.AddAssign):
            return None
    else:
        if len(node.targets) != 1 or not isinstance(node.value, cst.BinaryOperation):
            return None
        target = node.targets[0].target
        if not isinstance(node.value.operator, cst.Add):
            return None
        left, right = node.value.left, node.value.right
        if not (is_as_it_was(target, left) or is_as_it_was(target, right)):
            return None
        added = right if is_as_it_was(target, left) else left
    if isinstance(added, cst.List) and len(added.elements) == 1 and isinstance(added.elements[0], cst.Element):
        added = added.elements[0].value  # `losses += [loss]`
    return _in_loop(model, node, target, added)


def is_as_it_was(target: cst.BaseExpression, side: cst.BaseExpression) -> bool:
    """Whether one side of a sum is what the target holds: ``sums[key]``, or ``sums.get(key, 0)``."""
    if not isinstance(target, cst.Subscript):
        path = dotted_path(target)
        return path is not None and dotted_path(side) == path
    if isinstance(side, cst.Subscript):
        return fingerprint(side) == fingerprint(target)
    holder, index = called_on(side), subscript_index(target)
    if holder is None or index is None or not isinstance(side, cst.Call) or last_word(side.func) != "get":
        return False
    key = argument(side, 0)
    is_same_holder = key is not None and fingerprint(holder) == fingerprint(target.value)
    return is_same_holder and key is not None and fingerprint(key.value) == fingerprint(index)


def added_by_method(model: "Model", call: cst.Call) -> Accumulator | None:
    """The accumulation that a statement is which calls one of ``METHODS``; ``None`` where it is none."""
    return added_in_place(model, call) if last_word(call.func) in ADDING else appended(model, call)


def appended(model: "Model", call: cst.Call) -> Accumulator | None:
    """The accumulation that the statement ``collection.append(x)`` is; ``None`` for every other call."""
    if len(call.args) != 1 or call.args[0].star or not isinstance(call.func, cst.Attribute):
        return None
    if not isinstance(model.tree.parent(call), cst.Expr):
        return None
    return _in_loop(model, call, call.func.value, _attached_in(model, call, call.args[0].value))


def added_in_place(model: "Model", call: cst.Call) -> Accumulator | None:
    """The accumulation that the statement ``total.add_(x)`` is, or ``sums.index_add_(0, groups, x)``: it is ``+=``.

    Of a tensor of which it is known that it begins without a graph, and where gradients are on.
    """
    total, word = called_on(call), last_word(call.func) or ""
    if total is None or not isinstance(model.tree.parent(call), cst.Expr) or last_word(total) in ("data", "grad"):
        return None
    if not isinstance(model.value(total), Tensor) or model.gradients.off(call) is True:
        return None
    position, name = ADDING[word]
    added = argument(call, position, "value" if model.framework == "paddle" and position else name)
    found = None if added is None or added.star else _in_loop(model, call, total, added.value)
    return found if found is not None and _begins_without_graph(found) else None


def _begins_without_graph(total: Accumulator) -> bool:
    made = [binding for binding in total.beginnings if binding.kind is not BindingKind.AUGMENTED]
    values = [None if item.value is None else item.scope.model.value(item.value) for item in made]
    return bool(values) and all(
        isinstance(value, Tensor) and value.attached is False and not value.parameter for value in values
    )


def joined(model: "Model", node: cst.Assign) -> Accumulator | None:
    """The accumulation that ``outputs = torch.cat((outputs, x))`` is; ``None`` for every other assignment."""
    target = node.targets[0].target
    others = [side for side in _joined_in(model, node.value) if not is_as_it_was(target, side)]
    return _in_loop(model, node, target, others[0]) if len(others) == 1 else None


def _joined_in(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The two tensors that are put together in ``torch.cat((x, y))``."""
    if not isinstance(node, cst.Call) or not node.args or model.qualified_name(node.func) not in _JOINING:
        return []
    pair = node.args[0].value
    elements = pair.elements if isinstance(pair, (cst.Tuple, cst.List)) else ()
    is_pair = len(elements) == 2 and all(type(item) is cst.Element for item in elements)
    return [item.value for item in elements] if is_pair else []


def _attached_in(model: "Model", call: cst.Call, added: cst.BaseExpression) -> cst.BaseExpression:
    """The one loss of a row: ``(epoch, loss)``, ``{"epoch": epoch, "loss": loss}``; any other thing as it is.

    Where there is no loss in it, in a loop that trains, the one tensor that hangs on a graph: ``(target, output)``.
    """
    if isinstance(added, (cst.Tuple, cst.List, cst.Dict)) and len(added.elements) > 1:
        found = [item.value for item in added.elements if is_called_loss(item.value)]
        loop = next(model.tree.loops_around(call), None)
        if not found and loop is not None and model.backward.calls_in(loop):
            found = [item.value for item in added.elements if _is_attached(model.value(item.value))]
        if len(found) == 1:
            return found[0]
    return added


def _is_attached(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.attached is True


def _in_loop(
    model: "Model", node: cst.CSTNode, target: cst.BaseExpression, added: cst.BaseExpression
) -> Accumulator | None:
    """The accumulation over the innermost loop, if the collection was there before that loop began."""
    key = collection(target)
    if key is None:
        return None
    bare = target
    while isinstance(bare, cst.Subscript):
        bare = bare.value
    inner: cst.For | None = None
    for ancestor in model.tree.ancestors(node):
        if type(ancestor) is cst.For or type(ancestor) is cst.While:
            if not _outlives(model, node, bare, ancestor):
                return None if inner is None else Accumulator(model, node, target, key, added, inner)
            if type(ancestor) is cst.For and inner is None and gone_through(model, ancestor, added) is not None:
                inner = ancestor  # the parts of what a round of the loop around has computed
                continue
            return Accumulator(model, node, target, key, added, _training_loop(model, node, bare, ancestor))
        if inner is not None and type(ancestor) in (cst.FunctionDef, *_OTHER_TIMES):
            return Accumulator(model, node, target, key, added, inner)
        if type(ancestor) is cst.FunctionDef:
            # A method adds to what the object keeps: it is called again and again.
            kept = _is_kept_by_object(model, ancestor, bare, node) or _is_kept_by_module(model, ancestor, bare)
            return Accumulator(model, node, target, key, added, ancestor) if kept else None
        if type(ancestor) in _OTHER_TIMES:
            return None
    return None if inner is None else Accumulator(model, node, target, key, added, inner)


def _training_loop(
    model: "Model", node: cst.CSTNode, target: cst.BaseExpression, loop: cst.For | cst.While
) -> cst.For | cst.While:
    """The loop around that runs a backward pass, where the innermost one has none and the collection outlives both.

    ``for batch in batches: for row in batch: part.append(loss), all.append(loss)``, and then ``sum(part).backward()``.
    """
    if "backward" not in model.calls_by_word or model.backward.calls_in(loop):
        return loop
    for ancestor in model.tree.ancestors(loop):
        if isinstance(ancestor, (cst.For, cst.While)):
            bindings = model.reaching(target)
            is_begun_inside = bool(bindings) and all(model.tree.is_below(item.node, ancestor) for item in bindings)
            if is_begun_inside or not _outlives(model, node, target, ancestor):
                break
            if model.backward.calls_in(ancestor):
                return ancestor
        elif isinstance(ancestor, cst.FunctionDef):
            break
    return loop


def _is_kept_by_object(
    model: "Model", function: cst.FunctionDef, target: cst.BaseExpression, node: cst.CSTNode
) -> bool:
    """Whether the target is an attribute of the receiver that the method itself does not begin anew."""
    info = model.function_info(function)
    path = dotted_path(target)
    if info.self_name is None or info.name == "__init__" or path is None or not path.startswith(f"{info.self_name}."):
        return False
    return all(binding.node is node for binding in model.reaching(target))


def _is_kept_by_module(model: "Model", function: cst.FunctionDef, target: cst.BaseExpression) -> bool:
    """Whether the target is a list of the module, to which a function adds that a loop of the file calls."""
    if not isinstance(target, cst.Name):
        return False
    home = model.scope_of(target).home_of(target.value)
    calls = model.calls_by_word.get(function.name.value, ())
    callers = (call for call in calls if isinstance(call.func, cst.Name) and any(model.tree.loops_around(call)))
    return (
        home is not None
        and isinstance(home.node, cst.Module)
        and any(
            isinstance(made := model.value(call.func), Function) and made.definition.node is function
            for call in callers
        )
    )


def collection(target: cst.BaseExpression) -> str | None:
    """The name or path of what is added to: ``losses`` of ``losses["box"]``."""
    while isinstance(target, cst.Subscript):
        target = target.value
    return dotted_path(target)


def _outlives(model: "Model", node: cst.CSTNode, target: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
    """Whether what the collection is at its place comes from before the loop, and is not made anew in it.

    Or from its first round: ``if i == 0: total = loss``.
    """
    key = collection(target) or ""
    scope = model.scope_of(target)
    reaching = scope.reaching(key, target)
    if not reaching.bindings:
        return "." in key or scope.home_of(key) not in (scope, None)
    inside = [item for item in reaching.bindings if model.tree.is_below(item.node, loop)]
    assigned = [item for item in inside if item.kind is BindingKind.ASSIGN and item.value is not None]
    others = [item for item in assigned if item.value is not None and _is_made_of_others(model, item.value, key)]
    if any(not begins_for(model, item, node, loop) for item in others):
        return False
    is_of_others = "." in key or key in scope.outer_names
    return bool(others) or len(inside) < len(reaching.bindings) or (is_of_others and reaching.may_be_unbound)


def first_values(accumulator: Accumulator) -> list[Binding]:
    """What the loop begins the collection with in its first round, instead of adding to what was there before."""
    model, loop = accumulator.model, accumulator.loop
    if isinstance(loop, cst.FunctionDef):
        return []
    return [item for item in accumulator.beginnings if begins_for(model, item, accumulator.node, loop)]


def is_set_back(accumulator: Accumulator) -> bool:
    """Whether the loop begins the collection anew now and then, so that it only ever keeps some of the rounds."""
    model, bare, loop = accumulator.model, accumulator.target, accumulator.loop
    while isinstance(bare, cst.Subscript):
        bare = bare.value
    first = first_values(accumulator)
    reaching = (item for item in model.reaching(bare) if item not in first)
    made = (item for item in reaching if item.kind is BindingKind.ASSIGN and item.value is not None)
    home = model.tree.module if accumulator.is_of_others else loop  # another function may empty it
    is_anew = any(
        item.value is not None and not _goes_on_with(model, item.value, accumulator.key)
        for item in made
        if model.tree.is_below(item.node, loop)
    )
    return is_anew or _is_cut_short(model, accumulator.key, home)


def _is_cut_short(model: "Model", key: str, loop: cst.CSTNode) -> bool:
    """Whether a loop takes something out of a list again: ``losses.pop(0)``, ``del losses[0]``, ``losses[-9:]``."""
    taken: list[cst.BaseExpression] = [
        call.func.value
        for word in _TAKING_OUT
        for call in model.calls_by_word.get(word, ())
        if isinstance(call.func, cst.Attribute) and model.tree.is_below(call, loop)
    ]
    for kind in (cst.Del, cst.Assign):
        for statement in model.tree.by_type.get(kind, ()):
            part = statement.target if isinstance(statement, cst.Del) else statement.value
            if isinstance(part, cst.Subscript) and model.tree.is_below(statement, loop):
                is_kept = isinstance(statement, cst.Del) or key in _written(statement)
                taken += [part.value] if is_kept else []
    return any(dotted_path(part) == key for part in taken)


def _written(statement: cst.Assign) -> list[str | None]:
    return [dotted_path(target.target) for target in statement.targets]


def _is_made_of_others(model: "Model", value: cst.BaseExpression, key: str) -> bool:
    """Whether a tensor is assigned that is not the collection with something added."""
    return isinstance(model.value(value), (Tensor, Output)) and not _goes_on_with(model, value, key)


def _goes_on_with(model: "Model", value: cst.BaseExpression, key: str) -> bool:
    """Whether something is assigned that has the collection in it: with more added or put to it, or moved."""
    value = before_methods(value, MOVING)
    return key in map(dotted_path, (*operands(value), *_joined_in(model, value)))


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
            return constant_given(iterated, 1, "start", 0) == 0
        if word in ("range", "trange") and not bindings[0].path:
            ends = [arg.value for arg in iterated.args if arg.keyword is None]
            return len(ends) == 1 or (bool(ends) and constant(ends[0]) == 0)
        if given is None or word not in _IN_ORDER:
            return False
        iterated = given.value
    return False
