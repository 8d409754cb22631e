"""Tensors in plain attributes of a module: where they were made, and whether they stay there."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.expressions.picked import FILLING
from mllint.semantic.graph.runs_of_class import runs_of
from mllint.semantic.modules.fates import Fate, fate, fate_of_part, strongest
from mllint.semantic.modules.made_on_cpu import (
    FACTORIES,
    MAX_STEPS,
    is_made_on_cpu,
    is_set_on_cpu,
    moves_by_computed_names,
)
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.names.classes import Members, Read, makes_parameter
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.values import Function, Module, Number, Output, Tensor, Value
from mllint.syntax.shape import (
    argument,
    before_methods,
    constant,
    dotted_path,
    integer_literal,
    is_super_call,
    last_word,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_MOVES = frozenset({"to", "cuda"})
_MOVING_ALONG = _MOVES | {"cpu", "_apply"}
"""The methods of a module by which it is moved; all but the last call that."""
_OF_SIZES = frozenset({"empty", "zeros", "ones", "rand", "randn"})
_ASKING = "requires_grad_"
_MAX_NAMES = 3
_GRADIENT_FLAGS = {"requires_grad": True, "stop_gradient": False}


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
    anew = [place for place in members.assignments(name) if not isinstance(place.node, cst.AugAssign)]
    setting = {place.method.name for place in anew if place.method is not None} - {"__init__"}
    for model in (*members.models, *definition.model.importers(*setting)):
        assigned = (model.tree.parent(node) for node in from_outside(definition, model, name) if not _cuts(model, node))
        called = (node for word in setting for node in from_outside(definition, model, word))
        if any(isinstance(target, cst.AssignTarget) for target in assigned):
            return True
        if any(model.tree.call_of(node) and not is_super_call(node.value) for node in called):
            return True
    # Those who go through all modules there are import no class: `if hasattr(module, "renew"): module.renew()`.
    homes = {id(model): model for word in setting for model, _ in definition.model.calls_elsewhere(word)}
    return any(
        model.tree.call_of(node) and not is_super_call(node.value)
        for model in homes.values()
        for word in setting
        for node in from_outside(definition, model, word)
    )


def _cuts(model: "Model", node: cst.Attribute) -> bool:
    """Whether an attribute is set to a part of what it was, which stays there: ``block.mask = block.mask[:n]``."""
    target = model.tree.parent(node)
    statement = None if target is None else model.tree.parent(target)
    value = statement.value if isinstance(statement, cst.Assign) else None
    path = dotted_path(node)
    return path is not None and isinstance(value, cst.Subscript) and dotted_path(value.value) == path


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
    if found not in (Fate.GIVEN_BACK, Fate.GIVEN_IN_PARTS):
        return found
    calls = list(_calls(members, read))
    if found is Fate.GIVEN_BACK:
        return strongest(fate(home, call, MAX_STEPS) for home, call in calls)
    parts = tuple(_parts_given_back(read))
    return strongest(fate_of_part(home, call, part, MAX_STEPS) for home, call in calls for part in parts)


def _calls(members: Members, read: Read) -> "Iterator[tuple[Model, cst.Call]]":
    """The calls that run the method in which a tensor is read."""
    model, method, definition = read.method.model, read.method, members.definition
    if method.name != "forward":
        yield from ((model, call) for call, _ in calls_of(model, method))
        return
    for home in (model, *model.importers(definition.name)):
        yield from ((home, call) for call in runs_of(home, definition) if _is_of(home, call, definition))


def _parts_given_back(read: Read) -> Iterator[int]:
    """At which places of what a method gives back something stands that is made of what is read."""
    for item in read.method.scope.returns:
        if isinstance(item.value, (cst.Tuple, cst.List)):
            for position, element in enumerate(item.value.elements):
                if _is_in(read.method.model, read.node, element.value, _MAX_NAMES):
                    yield position


def _is_in(model: "Model", node: cst.BaseExpression, whole: cst.BaseExpression, steps: int) -> bool:
    """Whether something stands in an expression, or in what a name there stands for."""
    if node is whole or model.tree.is_below(node, whole):
        return True
    names = (part for part in subtree(whole) if isinstance(part, cst.Name)) if steps > 0 else ()
    values = (only_assigned(model, name) for name in names)
    return any(value is not None and _is_in(model, node, value, steps - 1) for value in values)


def _is_of(model: "Model", call: cst.Call, definition: "ClassInfo") -> bool:
    module = model.value(call.func)
    made = module.definition if isinstance(module, Module) else None
    return made is not None and made.is_same_as(definition)
