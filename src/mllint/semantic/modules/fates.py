"""What becomes of a tensor where a module reads it: whether it meets what comes from outside, or is moved there."""

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.modules.inputs import is_input
from mllint.semantic.modules.made_on_cpu import FACTORIES, GIVING_DIMENSIONS, OLD_WRAPPER, moves
from mllint.semantic.modules.own_operations import computes_with, is_for_parameters, own_operation
from mllint.semantic.modules.records import reads_of_field
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.uses import whole
from mllint.semantic.values import Choice, Function, Module, Symbol, Tensor, Value
from mllint.syntax.shape import constant, dotted_path, last_word, part_at, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ABOUT_DEVICE = frozenset({"device", "is_cuda", "grad", "get_device"})
# What is read of a tensor without its numbers meeting those of another, and methods that only take its shape or type.
NOT_NUMBERS = frozenset({
    "size", "dim", "ndim", "shape", "numel", "tolist", "item", "numpy", "dtype", "nelement", "is_floating_point",
    "stride", "requires_grad", "names", "element_size",
})  # fmt: skip
_OF_SIZES = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "rand", "randn", "Tensor"))
_OF_SEVERAL = frozenset({
    "torch.cat", "torch.stack", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack", "torch.einsum",
    "einops.pack", "paddle.concat", "paddle.stack",
})  # fmt: skip
"""Functions that compute with the tensors of a list."""
_ONLY_SHAPE = frozenset({"expand_as", "view_as", "reshape_as", "copy_", "resize_as_"})


class Fate(enum.Enum):
    """What becomes of a tensor where it is read."""

    NOTHING = "nothing"
    MEETS_INPUT = "meets input"
    """It takes part in an operation with what came from outside, or with the weights."""
    GIVEN_BACK = "given back"
    """The function gives it back."""
    GIVEN_IN_PARTS = "given in parts"
    """The function gives it back as one of several things."""
    MOVED = "moved"
    """Somebody looks after its device."""


def fate(model: "Model", node: cst.BaseExpression, steps: int) -> Fate:
    """What becomes of the tensor that an expression stands for, or of what is computed from it alone."""
    parent = model.tree.parent(node)
    if steps == 0:
        return Fate.MOVED
    match parent:
        case cst.Attribute():
            return _of_attribute(model, parent, steps - 1)
        case cst.Subscript() if parent.value is node:
            return _of_item(model, parent, steps - 1)
        case cst.BinaryOperation():
            other = parent.right if parent.left is node else parent.left
            return Fate.MEETS_INPUT if is_input(model, other) else fate(model, parent, steps - 1)
        case cst.Comparison() | cst.ComparisonTarget():
            whole = parent if isinstance(parent, cst.Comparison) else model.tree.parent(parent)
            assert isinstance(whole, cst.Comparison)
            if any(isinstance(item.operator, (cst.Is, cst.IsNot)) for item in whole.comparisons):
                return Fate.NOTHING  # `is not None`
            sides = [
                side for side in (whole.left, *(item.comparator for item in whole.comparisons)) if side is not node
            ]
            return Fate.MEETS_INPUT if any(is_input(model, side) for side in sides) else fate(model, whole, steps - 1)
        case cst.UnaryOperation() | cst.IfExp():
            return fate(model, parent, steps - 1)
        case cst.AugAssign() if parent.value is node:
            return Fate.MEETS_INPUT if is_input(model, parent.target) else Fate.NOTHING
        case cst.Arg():
            return _of_argument(model, parent, steps - 1)
        case cst.Assign():
            return _of_names(model, parent, steps - 1)
        case cst.Element():
            if isinstance(model.tree.parent(model.tree.parent(parent) or parent), cst.Return):
                return Fate.GIVEN_IN_PARTS
            unpacked = _of_unpacked(model, parent, steps - 1)
            return of_element(model, parent, steps - 1) if unpacked is None else unpacked
        case cst.Return():
            return Fate.GIVEN_BACK
    return Fate.NOTHING


def strongest(fates: Iterable[Fate]) -> Fate:
    found = set(fates)
    ranked = (Fate.MOVED, Fate.MEETS_INPUT, Fate.GIVEN_BACK, Fate.GIVEN_IN_PARTS)
    return next((item for item in ranked if item in found), Fate.NOTHING)


def fate_of_part(model: "Model", call: cst.Call, position: int, steps: int) -> Fate:
    """What becomes of one of several things that a call gives: ``cos, sin = self.rotate(x)``."""
    parent = model.tree.parent(call)
    if isinstance(parent, cst.Subscript) and parent.value is call:
        index = subscript_index(parent)
        return fate(model, parent, steps) if index is not None and constant(index) == position else Fate.NOTHING
    if not isinstance(parent, cst.Assign):
        return Fate.NOTHING
    parts = (part_at(item.target, (position,)) for item in parent.targets)
    return strongest(_of_target(model, parent, part, steps) for part in parts if isinstance(part, cst.Name))


def _of_item(model: "Model", item: cst.Subscript, steps: int) -> Fate:
    """A part of the tensor; one picked by plain indexes alone may be 0-d, which works with tensors on any device."""
    if isinstance(model.tree.parent(item), cst.AssignTarget):
        return Fate.NOTHING
    if fate(model, item, steps) is Fate.MOVED:
        return Fate.MOVED  # ``self.table[index].to(device)``
    indexes = [element.slice.value for element in item.slice if isinstance(element.slice, cst.Index)]
    # An item of an index tensor may be 0-d, and stands for its number.
    if any(is_input(model, index) for index in indexes if not isinstance(index, cst.Subscript)):
        return Fate.MEETS_INPUT
    is_part = len(indexes) < len(item.slice) or any(
        constant(index) is None or _picks(model, index) for index in indexes
    )
    is_part = is_part or _gets_dimensions(model, item) or _has_more_dimensions(model, item.value, len(indexes))
    return fate(model, item, steps) if is_part else Fate.NOTHING


def _gets_dimensions(model: "Model", item: cst.Subscript) -> bool:
    """Whether an item is given dimensions right away: ``self.weight[0].view(1, 1, 1)`` is not 0-d any more."""
    method = model.tree.parent(item)
    call = model.tree.call_of(method) if isinstance(method, cst.Attribute) else None
    return call is not None and last_word(call.func) in GIVING_DIMENSIONS and bool(call.args)


def _has_more_dimensions(model: "Model", node: cst.BaseExpression, count: int) -> bool:
    """Whether an attribute is made of more sizes than there are indexes: ``torch.empty(8, 3, 3)`` before ``[i]``."""
    while isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "data"):
        count += len(node.slice) if isinstance(node, cst.Subscript) else 0
        node = node.value
    owner = owner_of_attribute(model, node)
    if owner is None or not isinstance(node, cst.Attribute):
        return False
    made = [(place.model, place.value) for place in owner.members.assignments(node.attr.value)]
    return bool(made) and all(value is not None and _sizes(home, value) > count for home, value in made)


def _sizes(model: "Model", node: cst.BaseExpression) -> int:
    """Of how many sizes an expression makes a tensor, as far as that is written out."""
    name = model.qualified_name(node.func) if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or name not in _OF_SIZES:
        return 0
    given = [arg for arg in node.args if arg.keyword is None]
    if any(arg.star for arg in given):
        return 0
    first = given[0].value if given else None
    if isinstance(first, (cst.Tuple, cst.List)):
        return 0 if name == "torch.Tensor" else len(first.elements)
    return len(given)


def _picks(model: "Model", index: cst.BaseExpression) -> bool:
    """Whether an index is surely a tensor of several, by which rows are picked."""
    value = model.value(index)
    return isinstance(value, Tensor) and value.scalar is False


def _of_attribute(model: "Model", attribute: cst.Attribute, steps: int) -> Fate:
    call = model.tree.call_of(attribute)
    name = attribute.attr.value
    if name == "device" and (_makes_others_there(model, attribute) or _is_for_all(model, attribute)):
        return Fate.NOTHING
    if moves(model, attribute) or name in _ABOUT_DEVICE:
        return Fate.MOVED
    if name in NOT_NUMBERS:
        return Fate.NOTHING
    if call is None:
        return fate(model, attribute, steps)
    if name not in _ONLY_SHAPE and any(is_input(model, arg.value) for arg in call.args):
        return Fate.MEETS_INPUT
    return fate(model, call, steps)


def _makes_others_there(model: "Model", device: cst.Attribute) -> bool:
    """Whether a device is asked for only to make a new tensor there: ``torch.zeros(3, device=self.table.device)``."""
    arg = model.tree.parent(device)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) and arg.keyword is not None else None
    return isinstance(call, cst.Call) and model.qualified_name(call.func) in FACTORIES


def _is_for_all(model: "Model", device: cst.Attribute) -> bool:
    """Whether a property gives the device of a tensor for that of the module, which it is not: ``return x.device``."""
    function = model.enclosing_function(device)
    is_given = isinstance(model.tree.parent(device), cst.Return) and function is not None
    return is_given and function is not None and model.function_info(function).is_property


def _of_argument(model: "Model", arg: cst.Arg, steps: int) -> Fate:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call) or arg.star:
        return Fate.NOTHING  # what is unpacked is numbers, or 0-d
    others = [item.value for item in call.args if item is not arg]
    callee = model.value(call.func)
    callees = (
        callee.options if isinstance(callee, Choice) else (callee,)
    )  # `self.conv = F.conv1d if flat else F.conv2d`
    if isinstance(callee, Symbol) and callee.name == OLD_WRAPPER:
        return fate(model, call, steps)
    if all(isinstance(item, Symbol) for item in callees):
        facts = [lookup.function(item.name) for item in callees if isinstance(item, Symbol)]
        if any(fact is None or fact.returns not in ("tensor", "scalar", "tensors") for fact in facts):
            is_distribution = isinstance(callee, Symbol) and callee.name.startswith("torch.distributions.")
            meets = is_distribution and any(is_input(model, other) for other in others)
            return Fate.MEETS_INPUT if meets else Fate.NOTHING
        return Fate.MEETS_INPUT if any(is_input(model, other) for other in others) else fate(model, call, steps)
    inside = _forward_given(callee, call, arg)
    if inside is not None:
        found = _within(inside, call, arg, steps - 1)
        return fate(model, call, steps) if found is Fate.GIVEN_BACK else found
    if isinstance(callee, Module):
        is_trained = has_weights(model, call.func)
        # What no layer of a library keeps for itself meets the weights in it, or is in what it gives: `nn.Sigmoid`.
        is_known = all(item.name is not None for item in callee.others or (callee,))
        is_known = is_known and (is_trained is False or bool(callee.others))
        return Fate.MEETS_INPUT if is_trained else fate(model, call, steps) if is_known else Fate.NOTHING
    if isinstance(callee, Function):
        found = _within(callee, call, arg, steps - 1)
        return fate(model, call, steps) if found is Fate.GIVEN_BACK else found
    if (operation := own_operation(model, call)) is not None:
        is_combined = any(is_input(model, other) for other in others) and computes_with(operation, call, arg)
        return Fate.MEETS_INPUT if is_combined else Fate.NOTHING
    if isinstance(call.func, cst.Attribute) and is_input(model, call.func.value):
        method = call.func.attr.value
        if method in ("to", "type_as"):
            return Fate.MOVED
        fact = lookup.tensor_method("torch", method)
        is_operation = fact is not None and fact.returns in ("tensor", "scalar", "tensors", "self")
        return Fate.MEETS_INPUT if is_operation and method not in _ONLY_SHAPE else Fate.NOTHING
    return strongest(fate(home, read, steps) for home, read in reads_of_field(model, call, arg))


def _forward_given(callee: Value | None, call: cst.Call, arg: cst.Arg) -> Function | None:
    """The ``forward`` of a class of the project, where it is seen what it does with what a call gives it."""
    definition = callee.definition if isinstance(callee, Module) and not callee.wrappers else None
    forward = None if definition is None else definition.called
    inside = None if forward is None or not forward.is_plain else Function(forward, callee)
    return inside if inside is not None and uses_inside(inside.definition, call, arg, 1) else None


def _within(callee: Function, call: cst.Call, arg: cst.Arg, steps: int) -> Fate:
    """What a function of the project does with what it is given."""
    function = callee.definition
    used = uses_inside(function, call, arg, filled_by(callee))
    if used is None or steps <= 0:
        return Fate.NOTHING
    return strongest(fate(function.model, use, steps) for use in used if not is_for_parameters(function.model, use))


def of_element(model: "Model", element: cst.Element, steps: int) -> Fate:
    """What becomes of one of several tensors that are computed with together: ``torch.cat([x, self.pad])``."""
    display = model.tree.parent(element)
    arg = None if display is None else model.tree.parent(display)
    call = None if arg is None else model.tree.parent(arg)
    if not isinstance(display, (cst.List, cst.Tuple)) or not isinstance(call, cst.Call):
        return Fate.NOTHING
    callee = model.value(call.func)
    if isinstance(callee, Module) and isinstance(display, cst.Tuple):
        return Fate.MEETS_INPUT if has_weights(model, call.func) else Fate.NOTHING  # the first state of an LSTM
    if not isinstance(callee, Symbol) or callee.name not in _OF_SEVERAL:
        return Fate.NOTHING
    meets = any(is_input(model, other.value) for other in display.elements if other is not element)
    return Fate.MEETS_INPUT if meets else fate(model, call, steps)


def _of_names(model: "Model", statement: cst.Assign, steps: int) -> Fate:
    """The same thing under another name."""
    return strongest(_of_target(model, statement, item.target, steps) for item in statement.targets)


def _of_unpacked(model: "Model", element: cst.Element, steps: int) -> Fate | None:
    """The same of one of several that get names at once, ``mean, var = self.mean, self.var``; else ``None``."""
    display = model.tree.parent(element)
    statement = None if display is None else model.tree.parent(display)
    if not isinstance(display, cst.Tuple) or not isinstance(statement, cst.Assign) or statement.value is not display:
        return None
    position = display.elements.index(element)
    targets = [part_at(item.target, (position,)) for item in statement.targets]
    return strongest(_of_target(model, statement, target, steps) for target in targets if target is not None)


def _gives_several(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression gives several tensors with as many dimensions as the one of which it makes them."""
    if not isinstance(node, cst.Call) or last_word(node.func) == "unbind":
        return False
    name = model.qualified_name(node.func)
    fact = lookup.function(name) if name is not None else lookup.tensor_method("torch", last_word(node.func) or "")
    return fact is not None and fact.returns == "tensors"


def _of_target(model: "Model", statement: cst.Assign, target: cst.BaseExpression, steps: int) -> Fate:
    """What becomes of what an assignment gives a local name, or another attribute of the object; of what gives several
    tensors, to several names.
    """
    if isinstance(target, (cst.Tuple, cst.List)):
        parts = [element.value for element in target.elements] if _gives_several(model, statement.value) else []
        return strongest(_of_target(model, statement, part, steps) for part in parts if isinstance(part, cst.Name))
    if isinstance(target, cst.Name):
        # An attribute may have the same name: `table = self.table[index]`, in a loop.
        words = model.names_by_word.get(target.value, ())
        names = (name for name in words if name is not target and whole(model, name) is name)
        bound = (name for name in names if any(item.node is statement for item in model.reaching(name)))
        return strongest(fate(model, name, steps) for name in bound)
    owner = owner_of_attribute(model, target)
    asked = ("fate of an attribute", f"{id(owner)} {dotted_path(target)}")
    if owner is None or not isinstance(target, cst.Attribute) or asked in model.remembered:
        return Fate.NOTHING  # it is at this attribute already
    model.remembered[asked] = True
    try:
        reads = list(owner.members.reads(target.attr.value))
        return strongest(fate(read.method.model, read.node, steps) for read in reads)
    finally:
        del model.remembered[asked]
