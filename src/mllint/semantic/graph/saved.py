"""Tensors that ``backward()`` will need, and that are changed in place before.

Autograd counts the changes of each tensor. An operation that keeps its result, or an input, notes the count, and
``backward()`` raises where it is another one by then.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import saved_tensors
from mllint.knowledge.saved_tensors import Saved
from mllint.semantic.graph.given_graphs import called_by, given_by_callers, is_attached
from mllint.semantic.graph.in_place import (
    changed_by_function,
    first_layer,
    flag,
    last_layer,
    works_in_place,
)
from mllint.semantic.graph.weighted_ways import chosen, is_open_layer, is_reached, left_by_options
from mllint.semantic.names.conditions import MAYBE, always_runs
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.names.writes import is_basic_index, write
from mllint.semantic.values import Module, Number, Output, Tensor, Value
from mllint.syntax.shape import dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What keeps a part of a tensor that does not lie together: of such a one Paddle makes a copy for all others.
_OF_PARTS = ("Linear", "linear", "Conv", "conv", "mul", "matmul", "mm", "bmm")
MAX_STEPS = 7
"""Through how many names and functions of the project a tensor is followed back to what made it."""
MAX_USES = 3
"""Through how many functions of the project it is followed to what keeps it."""
MAX_LOOKS = 60
"""How many places that name a tensor are looked at above a change, and below."""

_CUTS = frozenset({"detach", "item", "data", "numpy", "tolist", "shape", "size", "backward"})


class Operation(msgspec.Struct, frozen=True):
    """An operation as it stands in the source: what it is, what it keeps, and its operands in order.

    ``has_weights``: a layer that keeps its input for the gradient of its own weights.
    """

    name: str
    saved: Saved
    operands: tuple[cst.BaseExpression, ...]
    has_weights: bool = False


def operation(model: "Model", node: cst.CSTNode) -> Operation | None:
    """The operation that an expression is; ``None`` where it is none, or none of which it is known what it keeps."""
    if isinstance(node, cst.BinaryOperation):
        name = saved_tensors.OPERATORS.get(type(node.operator).__name__)
        return None if name is None else _known(name, (node.left, node.right))
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return None
    given = tuple(arg.value for arg in node.args if arg.keyword is None)
    word = last_word(node.func) or ""
    if isinstance(node.func, cst.Name):  # perhaps imported under another name
        word = (model.library_name(node.func) or word).rpartition(".")[2]
    if saved_tensors.operation(word) is not None and word not in model.function_names:
        name = model.library_name(node.func)
        if name is not None:
            return _known(word, given) if name.startswith(("torch.", "paddle.")) else None
        if isinstance(node.func, cst.Attribute):
            receiver = model.value(node.func.value)
            return _known(word, (node.func.value, *given)) if isinstance(receiver, (Tensor, Output)) else None
    value = model.value(node.func)
    if not isinstance(value, Module) or value.name is None or not given or value.wrappers:
        return None
    layer = saved_tensors.layer(value.name)
    if layer is None:
        return None
    name, has_weights = layer
    if name is None:
        saved = Saved() if has_weights else saved_tensors.INPUT
        return Operation(value.name.rpartition(".")[2], saved, given[:1], has_weights)
    return _known(name, given[:1])


def _known(name: str, operands: tuple[cst.BaseExpression, ...]) -> Operation | None:
    saved = saved_tensors.operation(name)
    return None if saved is None else Operation(name, saved, operands)


# -- kept results ------------------------------------------------------------------------------------------------------


def keeper_of_result(
    model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS, block: Module | None = None
) -> str | None:
    """The operation that made a tensor and keeps it, by name; ``None`` where that is not certain.

    ``block`` is the module in whose forward pass the expression stands, where it is known how that was built.
    """
    if steps < 0:
        return None
    node = chosen(model, node, block)
    if isinstance(node, cst.Name):
        bindings = left_by_options(model, _bound_before(model, node), block)
        return _of_bindings(model, bindings, steps, block)
    if isinstance(node, cst.Subscript):
        return keeper_of_result(model, node.value, steps, block) if is_view(model, node) else None
    if isinstance(node, cst.IfExp):
        first, second = (keeper_of_result(model, part, steps - 1, block) for part in (node.body, node.orelse))
        return first if second is not None else None
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in views(model):
        is_tensor = isinstance(model.value(node.func.value), (Tensor, Output))
        return keeper_of_result(model, node.func.value, steps, block) if is_tensor else None
    changed = changed_by_function(model, node)
    if changed is not None:
        return changed[1] if saved_tensors.keeps_result_in_place(changed[1]) else None
    found = operation(model, node)
    if found is not None and flag(node) is None and not _is_in_place_layer(model, node):
        return found.name if found.saved.result else None
    return _of_call(model, node, steps, block)


def _bound_before(model: "Model", node: cst.Name) -> tuple[Binding, ...]:
    """What reaches a name, but for what its own ``x += y`` makes of it for the next round: the first one raises."""
    statement = model.tree.parent(node)
    return tuple(binding for binding in model.reaching(node) if binding.node is not statement)


def giver_of_several(model: "Model", node: cst.Name) -> str | None:
    """The function of torch that gave a tensor as one of several views: none of them may be changed in place."""
    found = None
    for binding in _bound_before(model, node) if model.framework == "torch" else ():
        call = binding.value
        if binding.kind is not BindingKind.ASSIGN or len(binding.path) != 1 or not isinstance(call, cst.Call):
            return None
        found, given = last_word(call.func), _computed_from(model, call)
        if found not in saved_tensors.SEVERAL_VIEWS or given is None or not is_attached(model, given):
            return None
        if model.gradients.off(call) is not False:
            return None
    return found


def _computed_from(model: "Model", call: cst.Call) -> cst.BaseExpression | None:
    """What a method is called on, if it may be one of a tensor, or a function of torch is given first."""
    name = model.library_name(call.func)
    if name is not None:
        return call.args[0].value if name.startswith("torch.") and call.args else None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value not in model.function_names:
        return call.func.value
    return None


def _of_bindings(model: "Model", bindings: tuple[Binding, ...], steps: int, block: Module | None) -> str | None:
    found = None
    for binding in bindings:
        if isinstance(binding.node, cst.Param):
            found = _of_parameter(model, binding.node, steps)
        elif binding.kind is not BindingKind.ASSIGN or binding.path or binding.value is None:
            return None
        else:
            found = keeper_of_result(model, binding.value, steps - 1, block)
        if found is None:
            return None
    return found


def _of_parameter(model: "Model", parameter: cst.Param, steps: int) -> str | None:
    """What made and keeps the tensor that a caller in the same file gives: a change that spoils one call is wrong."""
    info = function_around(model, parameter)
    if info is None or steps <= 0:
        return None
    for home, call, given in given_by_callers(info, parameter, 0):
        callee = called_by(home.value(call.func))
        if callee is not None and callee.name == info.name and callee.parameters == info.parameters:
            found = keeper_of_result(home, given, steps - 1)
            if found is not None:
                return found
    return None


def _of_call(model: "Model", call: cst.Call, steps: int, block: Module | None) -> str | None:
    value = model.value(call.func)
    if isinstance(value, Module) and value.definition is None:
        found = [_of_last_layer(model, module, steps) for module in _built(model, call.func, value, block)]
        return None if None in found or not found else found[0]
    return _of_function(value, steps)


def _built(model: "Model", callee: cst.BaseExpression, value: Module, block: Module | None) -> list[Module]:
    """The layers, one of which a name stands for: of an attribute all that the class sets it to."""
    if value.call is not None:
        return [value]
    info = function_around(model, callee)
    receiver, _, attribute = (dotted_path(callee) or "").partition(".")
    if info is None or info.owner is None or receiver != info.self_name:
        return []
    bound = list(info.owner.assignments(attribute))
    is_here = all(item.scope.model is model for item in bound)
    assigned = [item for item in bound if is_here and is_reached(model, item.node, block) is not False]
    sides = [None if item.value is None or item.path else chosen(model, item.value, block) for item in assigned]
    made = [None if side is None else model.value(side) for side in sides]
    modules = [item for item in made if isinstance(item, Module) and item.call is not None]
    return modules if is_here and len(modules) == len(made) else []


def _of_last_layer(model: "Model", module: Module, steps: int) -> str | None:
    layer = last_layer(model, module)
    made = None if layer is None else model.value(layer)
    if not isinstance(made, Module) or made.definition is not None:
        return _of_function(made, steps)
    known = None if made.name is None else saved_tensors.layer(made.name)
    return known[0] if known is not None and keeps_result(known[0], made) else None


def _of_function(value: Value | None, steps: int) -> str | None:
    """The operation that makes and keeps what a function, or the forward pass of a module, gives back."""
    function = called_by(value)
    if function is None or not function.is_plain or not function.is_transparent or not function.scope.returns:
        return None
    block, found = value if isinstance(value, Module) else None, None
    for statement in function.scope.returns:
        if is_reached(function.model, statement, block) is False:
            continue
        given = statement.value
        found = None if given is None else keeper_of_result(function.model, given, steps - 1, block)
        if found is None:
            return None
    return found


def keeps_result(name: str | None, layer: Value | None) -> bool:
    """Whether a layer, which is the operation of this name, keeps what it gives."""
    if name is None or not isinstance(layer, Module) or layer.call is None or layer.name is None:
        return False
    if works_in_place(layer.call, layer.name):
        return saved_tensors.keeps_result_in_place(name)
    saved = saved_tensors.operation(name)
    return saved is not None and saved.result


def _is_in_place_layer(model: "Model", call: cst.Call) -> bool:
    value = model.value(call.func)
    is_known = isinstance(value, Module) and value.call is not None and value.name is not None
    return is_known and works_in_place(value.call, value.name)  # type: ignore[union-attr]


# -- kept inputs -------------------------------------------------------------------------------------------------------


class Keeper(msgspec.Struct, frozen=True):
    """An operation that keeps a tensor: its name, and the expression that it is.

    ``is_layer``: a layer of the libraries does, which is given tensors alone.
    """

    name: str
    node: cst.BaseExpression
    is_layer: bool = False


def keeper_before(model: "Model", target: cst.Name, change: cst.CSTNode) -> Keeper | None:
    """The operation that has surely kept a tensor of this name when a statement or call changes it in place."""
    bindings = model.reaching(target)
    return _first_keeper(model, target, lambda name: _runs_before(model, name, change)) if bindings else None


def _first_keeper(model: "Model", target: cst.Name, has_run: Callable[[cst.Name], bool]) -> Keeper | None:
    """The operation, if it has run, that keeps the tensor of a name, or of the name that it was taken from."""
    source = only_assigned(model, target)
    found = _keeper_of_name(model, target, has_run)
    return _keeper_of_name(model, source, has_run) if found is None and isinstance(source, cst.Name) else found


def _keeper_of_name(model: "Model", target: cst.Name, has_run: Callable[[cst.Name], bool]) -> Keeper | None:
    bindings = model.reaching(target)
    for name in _candidates(model, target):
        if model.reaching(name) == bindings and has_run(name):
            found = keeper_of_input(model, name)
            if found is not None and is_wanted(model, found.node):
                return found
    return None


def _candidates(model: "Model", target: cst.Name) -> Iterator[cst.Name]:
    """The places that name the same thing and look as if an operation kept it, which is the cheapest question."""
    scope, names, position = model.scope_of(target), model.names_by_word.get(target.value, []), 0
    for name in names:
        if name is target:
            break
        position += 1
    # What stands in the same function stands beside it in the list.
    before = names[max(position - MAX_LOOKS, 0) : position]
    for around in (reversed(before), names[position + 1 : position + 1 + MAX_LOOKS]):
        for name in around:
            if _looks_kept(model, name):
                if model.scope_of(name) is not scope:
                    break
                yield name


def _looks_kept(model: "Model", node: cst.CSTNode) -> bool:
    parents = model.tree.parents
    parent = parents.get(id(node))
    while parent.__class__ is cst.Subscript and parent.value is node:
        node, parent = parent, parents.get(id(parent))
    kind = parent.__class__
    if kind is cst.BinaryOperation:
        return parent.operator.__class__.__name__ in saved_tensors.OPERATORS  # type: ignore[union-attr]
    if kind is cst.Attribute:
        word = parent.attr.value  # type: ignore[union-attr]
        return parent.value is node and (saved_tensors.operation(word) is not None or word in views(model))  # type: ignore[union-attr]
    return kind is cst.Arg


def keeper_of_input(model: "Model", node: cst.BaseExpression, steps: int = MAX_USES) -> Keeper | None:
    """The operation that is given a tensor there, or a view of it, and keeps it."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        found = keeper_of_input(model, parent, steps) if is_view(model, parent) else None
        is_copy = model.framework == "paddle" and len(parent.slice) > 1 and found is not None
        return None if is_copy and not found.name.startswith(_OF_PARTS) else found  # type: ignore[union-attr]
    if isinstance(parent, cst.BinaryOperation):
        return _keeping(model, parent, node)
    if isinstance(parent, cst.Attribute) and parent.value is node:
        method_call = model.tree.call_of(parent)
        if method_call is None:
            return None
        if parent.attr.value in views(model) and parent.attr.value != "detach":
            return keeper_of_input(model, method_call, steps)
        return _keeping(model, method_call, node)
    if isinstance(parent, cst.Arg):
        call = model.tree.parent(parent)
        if not isinstance(call, cst.Call) or parent.star:
            return None
        return _keeping(model, call, node) or _kept_inside(model, call, parent, steps)
    return None


def _keeping(model: "Model", call: cst.BaseExpression, node: cst.BaseExpression) -> Keeper | None:
    found = operation(model, call) or _open_layer(model, call)
    if found is None or node not in found.operands or model.gradients.off(call) is not False:
        return None
    if found.has_weights:
        return Keeper(found.name, call, is_layer=True) if is_attached(model, call) else None
    position = found.operands.index(node)
    needing = {needs for kept, needs in found.saved.inputs if kept == position and needs < len(found.operands)}
    is_layer = isinstance(call, cst.Call) and isinstance(model.value(call.func), Module)
    is_kept = any(is_attached(model, found.operands[needs]) for needs in needing)
    return Keeper(found.name, call, is_layer) if is_kept else None


def _open_layer(model: "Model", call: cst.BaseExpression) -> Operation | None:
    """A layer with weights of which it is not known which one it is, or what it is where somebody chooses another."""
    if not isinstance(call, cst.Call) or not is_open_layer(model, call):
        return None
    return Operation(last_word(call.func) or "", Saved(), (call.args[0].value,), has_weights=True)


def _kept_inside(model: "Model", call: cst.Call, arg: cst.Arg, steps: int) -> Keeper | None:
    """What a ``Sequential`` does first, or a function of the project with its parameter."""
    value = model.value(call.func)
    if isinstance(value, Module) and value.definition is None:
        layer = first_layer(model, value)
        made = None if layer is None else model.value(layer)
        known = saved_tensors.layer(made.name) if isinstance(made, Module) and made.name is not None else None
        if layer is None or known is None or call.args[0] is not arg:
            return None
        saved = saved_tensors.INPUT if known[0] is None else saved_tensors.operation(known[0])
        keeps = known[1] or (saved is not None and (0, 0) in saved.inputs and is_attached(model, arg.value))
        return Keeper(last_word(layer.func) or "", call, is_layer=True) if keeps and is_attached(model, call) else None
    function = called_by(value)
    if function is None or steps == 0 or not function.is_transparent or not function.is_plain or arg.keyword:
        return None
    position = call.args.index(arg) + (function.self_name is not None)
    if position >= len(function.parameters) or model.gradients.off(call) is not False:
        return None
    word = function.parameters[position].name.value
    bound = function.scope.bindings.get(word, ())
    if not bound or bound[0].kind is not BindingKind.PARAMETER:
        return None
    for use in uses(function.model, bound[0]):
        if function.model.reaching(use) != (bound[0],) or not always_runs(function.model, use, function.node):
            continue
        found = keeper_of_input(function.model, use, steps - 1)
        if found is not None and is_wanted(function.model, found.node):
            return Keeper(found.name, call, found.is_layer)
    return None


# -- where and when ----------------------------------------------------------------------------------------------------


def is_view(model: "Model", node: cst.Subscript) -> bool:
    """Whether an index surely gives a view: each part is a slice, ``None``, ``...`` or a number."""
    if is_basic_index(node):
        return True
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Slice):
            continue
        if not isinstance(index, cst.Index) or index.star is not None:
            return False
        if isinstance(index.value, cst.Ellipsis) or getattr(index.value, "value", None) == "None":
            continue
        if not isinstance(model.value(index.value), Number):
            return False
    return True


def views(model: "Model") -> frozenset[str]:
    return saved_tensors.PADDLE_VIEWS if model.framework == "paddle" else saved_tensors.VIEWS


def is_wanted(model: "Model", node: cst.CSTNode) -> bool:
    """Whether nothing around an expression says that no gradient goes back through it."""
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.Comparison):
            return False
        if isinstance(ancestor, cst.Attribute) and ancestor.value is child and ancestor.attr.value in _CUTS:
            return False
        if isinstance(ancestor, cst.Expr):
            return _takes_in(model, ancestor)
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return True
        child = ancestor
    return True


def _takes_in(model: "Model", statement: cst.Expr) -> bool:
    """Whether a statement drops nothing, because a tensor takes it in: ``x.add_(conv(y))``.

    In Paddle a part of a tensor that is changed by a method hands no gradient on.
    """
    change = write(model, statement)
    return change is not None and not (model.framework == "paddle" and isinstance(change.target, cst.Subscript))


def _runs_before(model: "Model", node: cst.CSTNode, change: cst.CSTNode) -> bool:
    """Whether a place has surely run when a change comes about: above it, or inside of it.

    It has, too, where an option of the module asks for it: with that option the change is wrong.
    """
    around: dict[int, cst.CSTNode] = {}
    child = change
    for ancestor in model.tree.ancestors(change):
        around[id(ancestor)] = child
        child = ancestor
    child = node
    for ancestor in model.tree.ancestors(node):
        if ancestor is change:
            return isinstance(change, cst.BaseSmallStatement) and always_runs(model, node, change)
        kind = ancestor.__class__
        other = around.get(id(ancestor)) if kind is cst.IndentedBlock or kind is cst.Module else None
        if other is not None:
            return _first_of(ancestor.body, child, other) is child  # type: ignore[attr-defined]
        if kind in MAYBE and not (kind is cst.If and _asks_for_option(model, ancestor.test)):  # type: ignore[attr-defined]
            return False
        child = ancestor
    return False


def _asks_for_option(model: "Model", test: cst.BaseExpression) -> bool:
    """Whether a test asks for nothing but how a module was built: ``if self.pre_norm:``."""
    while isinstance(test, cst.UnaryOperation):
        test = test.expression
    owner = owner_of_attribute(model, test)
    if owner is None or not isinstance(test, cst.Attribute):
        return False
    places = list(owner.members.assignments(test.attr.value))
    return bool(places) and all(place.method is not None and place.method.name == "__init__" for place in places)


def _first_of(body: Sequence[cst.CSTNode], *several: cst.CSTNode) -> cst.CSTNode | None:
    """Which of several statements stands first in a block; ``None`` for one statement that is given twice."""
    if len({id(item) for item in several}) < len(several):
        return None
    return next((item for item in body if any(item is other for other in several)), None)


def in_next_round(model: "Model", target: cst.Name, change: cst.CSTNode) -> Keeper | None:
    """The operation that keeps a tensor, or a part of it, in one round of a loop before the next one changes it."""
    loop = next(model.tree.loops_around(change), None)
    bindings = model.reaching(target)
    if loop is None or not bindings or any(model.tree.is_inside(item.node, loop) for item in bindings):
        return None
    tree = model.tree
    return _first_keeper(model, target, lambda name: tree.is_inside(name, loop) and always_runs(model, name, loop))
