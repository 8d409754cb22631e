"""Tensors in plain attributes of a module: where they were made, and whether they meet what comes from outside."""

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.expressions.picked import FILLING
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.graph.runs_of_class import runs_of
from mllint.semantic.modules.inputs import is_input
from mllint.semantic.modules.made_on_cpu import (
    FACTORIES,
    GIVING_DIMENSIONS,
    MAX_STEPS,
    is_made_on_cpu,
    is_set_on_cpu,
    moves,
    moves_by_computed_names,
)
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.modules.own_operations import computes_with, is_for_parameters, own_operation
from mllint.semantic.modules.records import reads_of_field
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.classes import Members, Read, makes_parameter
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.values import (
    Choice,
    Function,
    Module,
    Number,
    Output,
    Symbol,
    Tensor,
    Value,
)
from mllint.syntax.shape import (
    argument,
    before_methods,
    constant,
    dotted_path,
    integer_literal,
    is_super_call,
    last_word,
    part_at,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_ABOUT_DEVICE = frozenset({"device", "is_cuda", "grad", "get_device"})
# What is read of a tensor without its numbers meeting those of another, and methods that only take its shape or type.
NOT_NUMBERS = frozenset({
    "size", "dim", "ndim", "shape", "numel", "tolist", "item", "numpy", "dtype", "nelement", "is_floating_point",
    "stride", "requires_grad", "names", "element_size",
})  # fmt: skip
_ONLY_SHAPE = frozenset({"expand_as", "view_as", "reshape_as", "copy_", "resize_as_"})

_MOVES = frozenset({"to", "cuda"})
_MOVING_ALONG = _MOVES | {"cpu", "_apply"}
"""The methods of a module by which it is moved; all but the last call that."""
_OF_SIZES = frozenset({"empty", "zeros", "ones", "rand", "randn"})
_ASKING = "requires_grad_"
_GRADIENT_FLAGS = {"requires_grad": True, "stop_gradient": False}


class Fate(enum.Enum):
    """What becomes of a tensor where it is read."""

    NOTHING = "nothing"
    MEETS_INPUT = "meets input"
    """It takes part in an operation with what came from outside, or with the weights."""
    GIVEN_BACK = "given back"
    """The function gives it back."""
    MOVED = "moved"
    """Somebody looks after its device."""


def is_leaf_to_train(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression makes a new tensor that asks for gradients and is no parameter."""
    if isinstance(node, cst.BinaryOperation):
        # What is computed from a leaf that nobody holds is trained no more than the leaf.
        sides = ((node.left, node.right), (node.right, node.left))
        return any(_is_number(model, other) and is_leaf_to_train(model, side) for side, other in sides)
    if not isinstance(node, cst.Call) or makes_parameter(model, node):
        return False
    inner = _handed_through(model, node)
    if inner is not None and isinstance(inner, cst.Call) and _speaks_of_gradients(inner):
        return is_leaf_to_train(model, inner)
    if not _speaks_of_gradients(node):
        return _is_leaf_of_function(model, node)
    name = model.qualified_name(node.func)
    if name is not None:
        asks = (
            argument(node, None, "requires_grad")
            if name.startswith("torch.")
            else argument(node, None, "stop_gradient")
        )
        wanted = name.startswith("torch.")
        known = name in FACTORIES or name in ("torch.autograd.Variable", "paddle.to_tensor")
        return known and asks is not None and constant(asks.value) is wanted
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "requires_grad_":
        on = constant(node.args[0].value) if node.args else True
        return on is True and is_made_on_cpu(model, node.func.value)
    return False


def _is_number(model: "Model", node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BaseNumber) or isinstance(model.value(node), Number)


def _handed_through(model: "Model", call: cst.Call) -> cst.BaseExpression | None:
    """The tensor that a call moves to a device, or fills and gives back."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _MOVES:
        return call.func.value
    name = model.qualified_name(call.func) or ""
    return call.args[0].value if call.args and name.rpartition(".")[0] in FILLING else None


def _is_leaf_of_function(model: "Model", call: cst.Call) -> bool:
    """Whether a function of the file gives back nothing but such tensors, perhaps on another device."""
    if not any(word in model.names_by_word for word in _GRADIENT_FLAGS):
        return False
    callee = model.value(call.func)
    if not isinstance(callee, Function) or callee.definition.model is not model or not callee.definition.is_plain:
        return False
    values = [item.value for item in callee.definition.scope.returns]
    made = [value and before_methods(value, _MOVES) for value in values]
    return bool(made) and all(
        isinstance(item, cst.Call) and _speaks_of_gradients(item) and is_leaf_to_train(model, item) for item in made
    )


def _speaks_of_gradients(call: cst.Call) -> bool:
    keywords = (arg.keyword.value for arg in call.args if arg.keyword is not None)
    return last_word(call.func) == "requires_grad_" or any(word in _GRADIENT_FLAGS for word in keywords)


def is_plain(value: Value | None) -> bool:
    """Whether a value is a tensor that is no parameter and no number, and may be trained by nothing."""
    if not isinstance(value, Tensor) or value.attached:  # computed from a leaf that is lost: ML209
        return False
    return not value.parameter and not value.scalar and not value.or_number


def is_new(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression surely makes a new tensor of numbers that is no parameter."""
    if makes_parameter(model, node) or not isinstance(node, cst.Call):
        return False
    if is_made_on_cpu(model, node):
        return True
    name = model.qualified_name(node.func)
    fact = None if name is None or not name.startswith("paddle.") else lookup.function(name)
    of_tensors = any(isinstance(model.value(arg.value), (Tensor, Output)) for arg in node.args)
    return fact is not None and fact.returns == "tensor" and not of_tensors


def is_new_or_scaled(model: "Model", node: cst.BaseExpression) -> bool:
    """The same, also of one that is brought to a scale: ``torch.randn(3) * np.sqrt(1 / size)``."""
    if isinstance(node, cst.BinaryOperation):
        sides = ((node.left, node.right), (node.right, node.left))
        return any(_is_scale(model, other) and is_new_or_scaled(model, side) for side, other in sides)
    return is_new(model, node)


def _is_scale(model: "Model", node: cst.BaseExpression) -> bool:
    name = model.qualified_name(node.func) if isinstance(node, cst.Call) else None
    return _is_number(model, node) or (name is not None and name.startswith(("numpy.", "math.")))


def has_no_elements(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether a tensor is made with no elements, and filled later: ``torch.empty(0)``, ``torch.FloatTensor()``."""
    if not isinstance(node, cst.Call):
        return False
    maker = (model.qualified_name(node.func) or "").rpartition(".")[2]
    if not node.args:
        return maker.endswith("Tensor")
    first = node.args[0].value
    is_size = maker in _OF_SIZES or maker.endswith("Tensor")
    return (is_size and integer_literal(first) == 0) or (
        isinstance(first, (cst.List, cst.Tuple)) and not first.elements
    )


def is_asked_for_gradients_later(members: Members, name: str) -> bool:
    """Whether a method sets ``self.name.requires_grad = True`` (Paddle: ``stop_gradient = False``), or calls
    ``self.name.requires_grad_()``.
    """
    words = (*_GRADIENT_FLAGS, _ASKING)
    if not any(word in model.names_by_word for model in members.models for word in words):
        return False
    return any(_asks_for_gradients(read.method.model, read.node) for read in members.reads(name)) or any(
        binding.value is not None and constant(binding.value) is flag
        for info in members.definition.lineage
        for method in info.methods.values()
        for word, flag in _GRADIENT_FLAGS.items()
        for binding in method.scope.bindings.get(f"{method.self_name}.{name}.{word}", ())
    )


def _asks_for_gradients(model: "Model", node: cst.Attribute) -> bool:
    method = model.tree.parent(node)
    call = model.tree.call_of(method) if isinstance(method, cst.Attribute) and method.attr.value == _ASKING else None
    return call is not None and (not call.args or constant(call.args[0].value) is True)


def is_set_from_outside(members: Members, name: str) -> bool:
    """Whether those who have an object set an attribute of it anew: they assign to it, or call a method that does.

    What is registered once does not help them: every new tensor is made where the method makes it.
    """
    definition = members.definition
    setting = {place.method.name for place in members.assignments(name) if place.method is not None} - {"__init__"}
    for model in (*members.models, *definition.model.importers(*setting)):
        assigned = (model.tree.parent(node) for node in from_outside(definition, model, name))
        called = (node for word in setting for node in from_outside(definition, model, word))
        if any(isinstance(target, cst.AssignTarget) for target in assigned):
            return True
        if any(model.tree.call_of(node) and not is_super_call(node.value) for node in called):
            return True
    return False


def changes_later(members: Members, name: str) -> bool:
    """Whether a method other than the constructor writes into a tensor, or changes it in place."""
    if any(place.method is not None and place.method.name != "__init__" for place in members.assignments(name)):
        return True
    for read in members.reads(name):
        tree, node = read.method.model.tree, read.node
        used = tree.parent(node)
        if isinstance(used, cst.Attribute) and used.attr.value == "data":
            used = tree.parent(used)
        word = used.attr.value if isinstance(used, cst.Attribute) else ""
        if read.method not in members.setting_up and word.endswith("_") and not word.endswith("__"):
            return True
    return False


# -- where it goes -----------------------------------------------------------------------------------------------------


def stays_behind(members: Members, name: str) -> bool:
    """Whether a tensor that is made on the CPU meets the input in ``forward``, and nobody moves it there."""
    if not is_set_on_cpu(members, name, MAX_STEPS, or_parameter=True) or is_set_from_outside(members, name):
        return False
    places = list(members.assignments(name))
    if any(has_no_elements(place.model, place.value) for place in places):
        return False
    if any(place.method is not None and place.method.name in _MOVING_ALONG for place in places):
        return False  # the class moves it together with its parameters
    if any(read.method not in members.setting_up and _meets_new(read) for read in members.reads(name)):
        return False  # on another device that would raise: the module is used where its tensors are made
    fates = {(_fate_of_read(members, read), read.method in members.setting_up) for read in members.reads(name)}
    is_met = (Fate.MEETS_INPUT, False) in fates and all(fate is not Fate.MOVED for fate, _ in fates)
    return is_met and not moves_by_computed_names(members)


def _meets_new(read: Read) -> bool:
    """Whether a method computes with the tensor and one that it makes right there, on the default device."""
    model, parent = read.method.model, read.method.model.tree.parent(read.node)
    if not isinstance(parent, cst.BinaryOperation):
        return False
    other = parent.right if parent.left is read.node else parent.left
    # A method of something that is there already, another attribute say, makes nothing new.
    makes_new = isinstance(other, cst.Call) and model.library_name(other.func) is not None
    return makes_new and is_made_on_cpu(model, other)


def _fate_of_read(members: Members, read: Read) -> Fate:
    """What becomes of the tensor where a method reads it, also where those who call the method compute with it."""
    found = fate(read.method.model, read.node, MAX_STEPS)
    if found is not Fate.GIVEN_BACK:
        return found
    model, method = read.method.model, read.method
    if method.name != "forward":
        return _strongest(fate(model, call, MAX_STEPS) for call, _ in calls_of(model, method))
    definition = members.definition
    return _strongest(
        fate(home, call, MAX_STEPS)
        for home in (model, *model.importers(definition.name))
        for call in runs_of(home, definition)
        if _is_of(home, call, definition)
    )


def _is_of(model: "Model", call: cst.Call, definition: "ClassInfo") -> bool:
    module = model.value(call.func)
    made = module.definition if isinstance(module, Module) else None
    return made is not None and made.is_same_as(definition)


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
            unpacked = _of_unpacked(model, parent, steps - 1)
            return of_element(model, parent, steps - 1) if unpacked is None else unpacked
        case cst.Return():
            return Fate.GIVEN_BACK
    return Fate.NOTHING


def _strongest(fates: Iterable[Fate]) -> Fate:
    found = set(fates)
    return next((item for item in (Fate.MOVED, Fate.MEETS_INPUT, Fate.GIVEN_BACK) if item in found), Fate.NOTHING)


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
    return fate(model, item, steps) if is_part or _gets_dimensions(model, item) else Fate.NOTHING


def _gets_dimensions(model: "Model", item: cst.Subscript) -> bool:
    """Whether an item is given dimensions right away: ``self.weight[0].view(1, 1, 1)`` is not 0-d any more."""
    method = model.tree.parent(item)
    call = model.tree.call_of(method) if isinstance(method, cst.Attribute) else None
    return call is not None and last_word(call.func) in GIVING_DIMENSIONS and bool(call.args)


def _picks(model: "Model", index: cst.BaseExpression) -> bool:
    """Whether an index is surely a tensor of several, by which rows are picked."""
    value = model.value(index)
    return isinstance(value, Tensor) and value.scalar is False


def _of_attribute(model: "Model", attribute: cst.Attribute, steps: int) -> Fate:
    call = model.tree.call_of(attribute)
    name = attribute.attr.value
    if name == "device" and _makes_others_there(model, attribute):
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


def _of_argument(model: "Model", arg: cst.Arg, steps: int) -> Fate:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call) or arg.star:
        return Fate.NOTHING  # what is unpacked is numbers, or 0-d
    others = [item.value for item in call.args if item is not arg]
    callee = model.value(call.func)
    callees = (
        callee.options if isinstance(callee, Choice) else (callee,)
    )  # `self.conv = F.conv1d if flat else F.conv2d`
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
        is_function = is_trained is False and callee.name is not None  # `nn.Sigmoid`
        return Fate.MEETS_INPUT if is_trained else fate(model, call, steps) if is_function else Fate.NOTHING
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
    return _strongest(fate(home, read, steps) for home, read in reads_of_field(model, call, arg))


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
    return _strongest(fate(function.model, use, steps) for use in used if not is_for_parameters(function.model, use))


def of_element(model: "Model", element: cst.Element, steps: int) -> Fate:
    """What becomes of one of several tensors that are put together: ``torch.cat([x, self.pad])``."""
    display = model.tree.parent(element)
    arg = None if display is None else model.tree.parent(display)
    call = None if arg is None else model.tree.parent(arg)
    if not isinstance(display, (cst.List, cst.Tuple)) or not isinstance(call, cst.Call):
        return Fate.NOTHING
    callee = model.value(call.func)
    if isinstance(callee, Module) and isinstance(display, cst.Tuple):
        return Fate.MEETS_INPUT if has_weights(model, call.func) else Fate.NOTHING  # the first state of an LSTM
    if not isinstance(callee, Symbol) or callee.name not in ("torch.cat", "torch.stack", "torch.concat"):
        return Fate.NOTHING
    meets = any(is_input(model, other.value) for other in display.elements if other is not element)
    return Fate.MEETS_INPUT if meets else fate(model, call, steps)


def _of_names(model: "Model", statement: cst.Assign, steps: int) -> Fate:
    """The same thing under another name."""
    return _strongest(_of_target(model, statement, item.target, steps) for item in statement.targets)


def _of_unpacked(model: "Model", element: cst.Element, steps: int) -> Fate | None:
    """The same of one of several that get names at once, ``mean, var = self.mean, self.var``; else ``None``."""
    display = model.tree.parent(element)
    statement = None if display is None else model.tree.parent(display)
    if not isinstance(display, cst.Tuple) or not isinstance(statement, cst.Assign) or statement.value is not display:
        return None
    position = display.elements.index(element)
    targets = [part_at(item.target, (position,)) for item in statement.targets]
    return _strongest(_of_target(model, statement, target, steps) for target in targets if target is not None)


def _of_target(model: "Model", statement: cst.Assign, target: cst.BaseExpression, steps: int) -> Fate:
    """What becomes of what an assignment gives a local name, or another attribute of the object."""
    if isinstance(target, cst.Name):
        names = (name for name in model.names_by_word.get(target.value, ()) if name is not target)
        bound = (name for name in names if any(item.node is statement for item in model.reaching(name)))
        return _strongest(fate(model, name, steps) for name in bound)
    owner = owner_of_attribute(model, target)
    asked = ("fate of an attribute", f"{id(owner)} {dotted_path(target)}")
    if owner is None or not isinstance(target, cst.Attribute) or asked in model.remembered:
        return Fate.NOTHING  # it is at this attribute already
    model.remembered[asked] = True
    try:
        reads = list(owner.members.reads(target.attr.value))
        return _strongest(fate(read.method.model, read.node, steps) for read in reads)
    finally:
        del model.remembered[asked]
