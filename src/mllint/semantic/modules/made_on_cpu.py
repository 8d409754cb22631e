"""Tensors that are surely made on the CPU, of numbers, while a module is set up."""

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions import picked
from mllint.semantic.expressions.arguments import argument_for
from mllint.semantic.expressions.new_results import asks_for_cpu_type
from mllint.semantic.graph.terms import appended_to
from mllint.semantic.modules.ways_to_tensors import Made, made_for_nothing, stands_for_nothing, unpacked_into
from mllint.semantic.names.classes import Assignment, Members, Role, makes_parameter
from mllint.semantic.names.conditions import conditions, is_in_another_branch
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind, all_assigned, assigned, grown_from, only_assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Array, Elements, Function, Member, Nothing, Number, Other, Output, Repeated, Tensor
from mllint.syntax.iteration import sources
from mllint.syntax.shape import (
    argument,
    before_methods,
    called_on,
    constant,
    dotted_path,
    has_star_arguments,
    last_word,
    subscript_index,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 24
"""Through how many names, operations and calls a tensor is followed."""

FACTORIES = frozenset({
    f"torch.{name}"
    for name in ("zeros", "ones", "rand", "randn", "randint", "randperm", "arange", "range", "linspace", "logspace",
                 "tensor", "full", "empty", "eye", "from_numpy", "normal", "tril_indices", "triu_indices",
                 "hann_window", "hamming_window", "blackman_window", "Tensor", "FloatTensor", "LongTensor",
                 "DoubleTensor", "IntTensor", "BoolTensor", "ByteTensor", "HalfTensor")
})  # fmt: skip
OF_VALUES = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray"})
OLD_WRAPPER = "torch.autograd.Variable"
"""What gives the tensor that it is given."""
GIVING_DIMENSIONS = frozenset({"view", "reshape", "expand", "unsqueeze", "repeat", "expand_as", "view_as"})
"""Methods of a tensor of which the result is no 0-d one, where they are given anything."""
_MOVING = frozenset({"cuda", "to", "type_as", "xpu", "npu", "mps", "share_memory_", "new_tensor", "get_device", "cpu"})
_DTYPES = frozenset({"float", "double", "half", "long", "int", "bool"})
_GIVEN = "made on the CPU where a call gives it"
_DEFAULT_DEVICE = frozenset({"set_default_tensor_type", "set_default_device"})


def moves(model: "Model", method: cst.Attribute) -> bool:
    """Whether a method may take a tensor to another device.

    So does ``type``, but for what is surely a dtype: the name of a type has the device in it, ``x.type(y.type())``.
    ``to`` does not where it is given a dtype alone.
    """
    word = method.attr.value
    call = model.tree.call_of(method) if word in ("type", "to") else None
    if call is None or not call.args:
        return word in _MOVING
    if word == "to":
        return not all(map(partial(_is_no_device, model), call.args))
    kind = call.args[0].value
    name = model.qualified_name(kind) or ""
    is_of_library = name.startswith("torch.") and "cuda" not in name
    return not (is_of_library or asks_for_cpu_type(call) or model.value(kind) == Other("dtype"))


def _is_no_device(model: "Model", arg: cst.Arg) -> bool:
    """Whether an argument of ``to`` says nothing of a device: ``dtype=...``, ``torch.float32``, ``x.dtype``."""
    if arg.keyword is not None:
        return arg.keyword.value in ("dtype", "non_blocking", "copy", "memory_format")
    is_asked = isinstance(arg.value, cst.Attribute) and arg.value.attr.value == "dtype"
    is_of_library = (model.qualified_name(arg.value) or "").startswith(("torch.float", "torch.int", "torch.complex"))
    return not arg.star and (is_asked or is_of_library or model.value(arg.value) == Other("dtype"))


def is_made_on_cpu(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether a tensor is surely made here of numbers, on the default device."""
    if steps == 0 or any(model.calls_by_word.get(word) for word in _DEFAULT_DEVICE):
        return False
    match node:
        case cst.Call():
            return _is_made_by_call(model, node, steps - 1)
        case cst.BinaryOperation() | cst.Comparison():
            compared = (item.comparator for item in node.comparisons) if isinstance(node, cst.Comparison) else ()
            sides = (node.left, *compared) if isinstance(node, cst.Comparison) else (node.left, node.right)
            tensors = [side for side in sides if _is_tensor(model, side)]
            return bool(tensors) and all(is_made_on_cpu(model, side, steps - 1) for side in tensors)
        case cst.UnaryOperation():
            return is_made_on_cpu(model, node.expression, steps - 1)
        case cst.Subscript():
            # One item of a vector has no dimension left: such a tensor may meet those of every device.
            index = subscript_index(node)
            if index is not None and constant(index) is None and _is_made_of_values(model, node.value):
                return True  # with a dimension more
            is_item = isinstance(model.value(index or node), Number)
            return not is_item and is_made_on_cpu(model, node.value, steps - 1)
        case cst.Attribute():
            method = method_of_receiver(model, node.value)
            return method is not None and (
                _is_kept_on_cpu(method, node.attr.value, steps - 1)
                or _is_registered_on_cpu(method, node.attr.value, steps - 1)
            )
        case cst.IfExp():
            return all(is_made_on_cpu(model, way, steps - 1) for way in (node.body, node.orelse))
        case cst.Name():
            values = _assigned_here(model, node)
            if not values:
                return (
                    _is_given_so(model, node)
                    or _is_taken_out(model, node, steps - 1)
                    or _is_changed_on_cpu(model, node, steps - 1)
                )
            return all(is_made_on_cpu(model, value, steps - 1) for value in values)
    return False


def _is_changed_on_cpu(model: "Model", name: cst.Name, steps: int) -> bool:
    """Whether a local name is a tensor that is made on the CPU and changed in place, which leaves it there, or a
    number times such tensors: ``kernel = 1`` and ``kernel *= torch.exp(grid)``.
    """
    if not any(binding.kind is BindingKind.AUGMENTED for binding in model.reaching(name)):
        return False
    bindings = grown_from(model, name)
    begun = [assigned(item) for item in bindings if item.kind is not BindingKind.AUGMENTED]
    if any(value is None for value in begun) or not model.scope_of(name).is_function:
        return False
    numbers = [value for value in begun if value is not None and isinstance(model.value(value), Number)]
    if not all(value in numbers or is_made_on_cpu(model, value, steps) for value in begun if value is not None):
        return False
    changes = [item.node.value for item in bindings if isinstance(item.node, cst.AugAssign)]
    tensors = [value for value in changes if not isinstance(model.value(value), Number)]
    return not numbers or (bool(tensors) and all(is_made_on_cpu(model, value, steps) for value in tensors))


def _is_taken_out(model: "Model", name: cst.Name, steps: int) -> bool:
    """Whether a local name is one of several tensors that a function of the library makes of such ones.

    ``rows, columns = torch.meshgrid(...)``, or a loop over what it gives.
    """
    bindings = model.reaching(name) if model.scope_of(name).is_function else ()
    if len(bindings) != 1 or bindings[0].kind not in (BindingKind.ASSIGN, BindingKind.LOOP):
        return False
    call, path = bindings[0].value, bindings[0].path
    if bindings[0].kind is BindingKind.LOOP:
        call = None if call is None else next((item.node for item in sources(call) if item.path == path), None)
        values = _assigned_here(model, call) if isinstance(call, cst.Name) else []
        call = values[0] if len(values) == 1 else call
    elif len(path) != 1:
        return False
    called = model.qualified_name(call.func) if isinstance(call, cst.Call) else None
    fact = None if called is None else lookup.function(called)
    is_of_several = fact is not None and fact.returns == "tensors"
    return is_of_several and isinstance(call, cst.Call) and _is_made_by_call(model, call, steps)


def _assigned_here(model: "Model", name: cst.Name) -> list[cst.BaseExpression]:
    """What a local name may be, as expressions of its function; nothing where it is bound in some other way."""
    return all_assigned(model, name) if model.scope_of(name).is_function else []


def _is_kept_on_cpu(method: "FunctionInfo", name: str, steps: int) -> bool:
    """Whether an attribute holds nothing but tensors that are made on the CPU while the module is set up.

    What is computed from the attribute itself, and assigned to it again, stays where it was.
    """
    if method.owner is None:
        return False
    asked = (f"place of an attribute of {id(method.owner)}", name)
    if asked in method.model.remembered:
        return True
    method.model.remembered[asked] = True
    try:
        return is_set_on_cpu(method.owner.members, name, steps)
    finally:
        del method.model.remembered[asked]


def is_set_on_cpu(members: Members, name: str, steps: int, *, or_parameter: bool = False) -> bool:
    """Whether an attribute holds nothing but tensors made on the CPU while the module is set up.

    ``or_parameter``: on another way it may be a parameter, a buffer, a number or what is given, and later on be set to
    what is computed from it: ``self.mean = 0.9 * self.mean + 0.1 * x.mean(0)``.
    """
    plain: list[Assignment] = []
    parameters: list[Assignment] = []
    registered: list[Assignment] = []
    for place in members.lasting(name):
        value = None if place.value is None else place.model.value(place.value)
        if or_parameter and (place.role is Role.BUFFER or (place.setter is not None and isinstance(value, Nothing))):
            registered.append(place)
            continue
        if or_parameter and place.role is Role.PARAMETER:
            parameters.append(place)
            continue
        if place.setter is not None:
            return False
        if isinstance(value, Nothing) or (or_parameter and isinstance(value, Number)):
            continue
        if place.value is None and isinstance(place.node, cst.AnnAssign):
            continue  # only declared
        if place.method is None:
            return False
        if place.method not in members.setting_up:
            if not (or_parameter and _is_computed_from_itself(place, name)):
                return False
            continue
        if isinstance(place.node, cst.AugAssign):
            continue  # an operation in place
        if or_parameter and stands_for_nothing(place.model, place.value):
            registered.append(place)  # what is given, and looked after elsewhere: `if mask is None: ... else: ...`
            continue
        made = _makers(place, name, or_given=or_parameter)
        if not made or not all(is_made_on_cpu(model, value, steps) for model, value in made):
            return False
        plain.append(place)
    if not plain or not all(_are_alternatives(place, registered) for place in plain):
        return False
    return not parameters or all(_is_left_plain(place, name, parameters) for place in plain)


def _makers(place: Assignment, name: str, *, or_given: bool) -> list[Made]:
    """What makes that which an assignment puts into an attribute; ``or_given``: where nothing else is given for it."""
    if place.value is not None:
        made = made_for_nothing(place.model, place.value) if or_given else []
        return [(place.model, value) for value in made or (_made_if_any(place.value),)]
    return [] if place.method is None else unpacked_into(place.model, place.node, f"{place.method.self_name}.{name}")


def _made_if_any(node: cst.BaseExpression) -> cst.BaseExpression:
    """What an expression makes where it makes anything: ``torch.zeros(3) if bias else None``."""
    if not isinstance(node, cst.IfExp):
        return node
    ways = [way for way in (node.body, node.orelse) if constant(way) is not None]
    return ways[0] if len(ways) == 1 else node


def _is_computed_from_itself(place: Assignment, name: str) -> bool:
    """Whether an attribute is set to what is computed from what it held, where that is: nobody moves it."""
    if isinstance(place.node, cst.AugAssign):
        return True
    if place.value is None or place.method is None:
        return False
    path = f"{place.method.self_name}.{name}"
    parts = [part for part in subtree(place.value) if isinstance(part, cst.Attribute)]
    is_moved = any(moves(place.model, part) for part in parts)
    return not is_moved and any(dotted_path(part) == path for part in parts)


def _are_alternatives(place: Assignment, registered: list[Assignment]) -> bool:
    """Whether other branches register the attribute, and none of them runs where the place does.

    What is assigned to a buffer is one, also where it was ``None`` before.
    """
    return all(
        other.model is place.model and is_in_another_branch(place.model, place.node, other.node) for other in registered
    )


def moves_by_computed_names(members: Members) -> bool:
    """Whether tensors are moved under names that are computed: ``setattr(self, name, value.to(device))``."""
    return any(value is not None and _moves(model, value) for model, value in members.set_by_computed_names)


def _moves(model: "Model", value: cst.BaseExpression) -> bool:
    """Whether a value is what a move gives, also under a name."""
    if isinstance(value, cst.Name):
        given = [binding.value for binding in model.reaching(value)]
        return any(item is not None and not isinstance(item, cst.Name) and _moves(model, item) for item in given)
    return isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and moves(model, value.func)


def _is_left_plain(place: Assignment, name: str, parameters: list[Assignment]) -> bool:
    """Whether a tensor is still there when its method ends, the only one that makes a parameter of the attribute.

    Nobody knows of one that becomes a parameter where a test of it comes out so: ``if self.table is not None``.
    """
    method = place.method
    if method is None or any(other.method is not method for other in parameters):
        return False
    path = f"{method.self_name}.{name}"
    tests = (test for other in parameters for test in conditions(other.model, other.node))
    if any(isinstance(part, cst.Attribute) and dotted_path(part) == path for test in tests for part in subtree(test)):
        return False
    return any(binding.node is place.node for binding in method.scope.reaching_end(path).bindings)


def _is_list_made_on_cpu(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether an expression is a list or tuple of tensors that are surely made here of numbers."""
    if steps == 0:
        return False
    match node:
        case cst.List() | cst.Tuple():
            items = [element.value for element in node.elements]
            return bool(items) and all(is_made_on_cpu(model, item, steps - 1) for item in items)
        case cst.ListComp() | cst.GeneratorExp():
            return is_made_on_cpu(model, node.elt, steps - 1)
        case cst.BinaryOperation(operator=cst.Add()):
            return all(_is_list_made_on_cpu(model, side, steps - 1) for side in (node.left, node.right))
        case cst.BinaryOperation(operator=cst.Multiply()):
            return any(_is_list_made_on_cpu(model, side, steps - 1) for side in (node.left, node.right))
        case cst.Name():
            values, put = _assigned_here(model, node), appended_to(model, node)
            begun = [value for value in values if not (isinstance(value, cst.List) and not value.elements)]
            return (
                bool(begun or (values and put))
                and all(_is_list_made_on_cpu(model, value, steps - 1) for value in begun)
                and all(is_made_on_cpu(model, item, steps - 1) for item in put)
            )
    return False


def _is_made_by_call(model: "Model", call: cst.Call, steps: int) -> bool:
    device = argument(call, None, "device")
    if any(arg.star == "**" for arg in call.args) or (device and not _is_where_made(model, device.value, steps)):
        return False
    callee = model.value(call.func)
    if isinstance(callee, Function):
        return _is_made_by_own_function(model, call, callee, steps)
    if isinstance(callee, Member) and callee.package in picked.FILLING:
        return bool(call.args) and is_made_on_cpu(model, call.args[0].value, steps)
    if isinstance(callee, Member) and callee.package == picked.WINDOWS:
        return True
    name = model.qualified_name(call.func)
    if name is not None:
        return _is_made_by_function(model, call, name, steps)
    if isinstance(call.func, cst.Attribute) and (not moves(model, call.func) or _is_moved_to_such(model, call, steps)):
        inner = call.func.value
        if call.func.attr.value.startswith("new_") and _is_parameter(model, inner):
            return True
        if call.args and call.func.attr.value in GIVING_DIMENSIONS and _is_made_of_values(model, inner):
            return True
        return _is_tensor(model, inner) and is_made_on_cpu(model, inner, steps)
    return False


def _is_parameter(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a parameter of the module, or of a layer of it: a new one is on the CPU."""
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    method, value = method_of_receiver(model, root), model.value(node)
    if method is None or method.owner is None or not isinstance(node, cst.Attribute):
        return False
    bases = method.owner.library_bases if root is node.value else ()
    is_of_base = any(lookup.may_register(base, node.attr.value) for base in bases)
    return is_of_base or (isinstance(value, Tensor) and value.parameter)


def _is_moved_to_such(model: "Model", call: cst.Call, steps: int) -> bool:
    """Whether a tensor is brought to where another one is that is made on the CPU: ``x.type_as(self.rates)``."""
    is_other = last_word(call.func) == "type_as" and len(call.args) == 1
    return is_other and _is_tensor(model, call.args[0].value) and is_made_on_cpu(model, call.args[0].value, steps)


def _is_where_made(model: "Model", device: cst.BaseExpression, steps: int) -> bool:
    """Whether a device is that of something of the module that is made on the CPU as well: ``self.rates.device``."""
    holder = device.value if isinstance(device, cst.Attribute) and device.attr.value == "device" else None
    method = method_of_receiver(model, holder.value) if isinstance(holder, cst.Attribute) else None
    if method is None or not isinstance(holder, cst.Attribute):
        return False
    return _is_registered_on_cpu(method, holder.attr.value, steps, (Role.BUFFER, Role.PARAMETER, Role.TENSOR))


def _is_registered_on_cpu(
    method: "FunctionInfo", name: str, steps: int, roles: tuple[Role, ...] = (Role.BUFFER,)
) -> bool:
    """Whether a buffer, or what else an attribute is, is on the CPU while the module is set up."""
    members = None if method.owner is None else method.owner.members
    places = [] if members is None else [place for place in members.assignments(name) if not place.is_empty]
    return bool(places) and all(
        members is not None
        and place.method in members.setting_up
        and place.value is not None
        and place.role in roles
        and is_made_on_cpu(place.model, _of_parameter(place.model, place.value), steps)
        for place in places
    )


def _of_parameter(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """What a parameter is made of."""
    return node.args[0].value if isinstance(node, cst.Call) and makes_parameter(model, node) and node.args else node


def _is_made_by_own_function(model: "Model", call: cst.Call, callee: Function, steps: int) -> bool:
    """Whether a function of the project makes a tensor of numbers, or of such ones that the call gives it."""
    info = callee.definition
    home, returned = info.model, [item.value for item in info.scope.returns]
    skipped = 0 if info.is_static or callee.receiver is None else 1
    given = (
        []
        if has_star_arguments(call)
        else [(item, argument_for(info, item, call, skipped)) for item in info.parameters]
    )
    known = [
        (_GIVEN, id(item))
        for item, value in given
        if value is not None and _is_tensor(model, value) and is_made_on_cpu(model, value, steps)
    ]
    known = [key for key in known if key not in home.remembered]
    home.remembered.update(dict.fromkeys(known, True))
    try:
        return bool(returned) and all(item is not None and is_made_on_cpu(home, item, steps) for item in returned)
    finally:
        for key in known:
            del home.remembered[key]


def _is_given_so(model: "Model", name: cst.Name) -> bool:
    """Whether a name is a parameter for which the call that is followed gives a tensor made on the CPU."""
    bindings = model.reaching(name)
    return len(bindings) == 1 and (_GIVEN, id(bindings[0].node)) in model.remembered


def _is_tensor(model: "Model", node: cst.BaseExpression) -> bool:
    if isinstance(model.value(node), (Tensor, Output)):
        return True
    while isinstance(node, (cst.Attribute, cst.Subscript)) or called_on(node) is not None:
        node = called_on(node) or (node.value if isinstance(node, (cst.Attribute, cst.Subscript)) else node)
    return isinstance(node, cst.Name) and _is_given_so(model, node)


def _is_made_of_values(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a tensor is made right here of whatever numbers, none of which are known to be a tensor."""
    node = before_methods(node, _DTYPES)
    name = model.qualified_name(node.func) if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or name not in ("torch.tensor", "torch.from_numpy") or not node.args:
        return False
    is_plain = all(arg.keyword is None or arg.keyword.value in ("dtype", "requires_grad") for arg in node.args)
    given = model.value(node.args[0].value)
    return is_plain and not node.args[0].star and not isinstance(given, (Tensor, Output))


def _is_of_several(array: cst.BaseExpression) -> bool:
    """Whether a part of an array surely has dimensions: ``rows[None, :]``."""
    parts = [item.slice for item in array.slice] if isinstance(array, cst.Subscript) else []
    return any(not isinstance(part, cst.Index) or constant(part.value) is None for part in parts)


def _is_computed(model: "Model", array: cst.BaseExpression) -> bool:
    """Whether an array is what some function computes: none that has no dimension, which would be a scalar of numpy."""
    made = only_assigned(model, array) if isinstance(array, cst.Name) else array
    return isinstance(made, cst.Call) and last_word(made.func) != "load"


def _has_length(model: "Model", arg: cst.Arg) -> bool:
    """Whether the function asks a name for its length or an item of it: what it stands for is not 0-d."""
    if arg.star or not isinstance(arg.value, cst.Name):
        return False
    reads = [use for binding in model.reaching(arg.value) for use in uses(model, binding)]
    return any(_asks_for_length(model, use) for use in reads)


def _asks_for_length(model: "Model", node: cst.BaseExpression) -> bool:
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "shape":
        node, parent = parent, model.tree.parent(parent)
    if isinstance(parent, cst.Arg):
        call = model.tree.parent(parent)
        return isinstance(call, cst.Call) and model.qualified_name(call.func) == "builtins.len"
    return isinstance(parent, cst.Subscript) and parent.value is node


def _is_made_by_function(model: "Model", call: cst.Call, name: str, steps: int) -> bool:
    """Whether a function of the library makes the tensor of numbers, or of nothing but tensors made here."""
    if name in OF_VALUES:
        # Of one number it is 0-d, and works with tensors on any device.
        given = model.value(call.args[0].value) if call.args else None
        if name == "torch.from_numpy" and given is None:
            return bool(call.args) and (_is_computed(model, call.args[0].value) or _has_length(model, call.args[0]))
        if given is None and call.args and name != "torch.as_tensor":
            return _is_of_several(call.args[0].value)
        return isinstance(given, (Elements, Repeated, Array)) and given != Array(True)
    if name in FACTORIES:
        return True
    if (name == OLD_WRAPPER or name.rpartition(".")[0] in picked.FILLING) and call.args:
        return is_made_on_cpu(model, call.args[0].value, steps)
    fact = lookup.function(name)
    if fact is None or fact.returns not in ("tensor", "scalar", "tensors") or not name.startswith("torch."):
        return False
    values = [(arg.value, model.value(arg.value)) for arg in call.args]
    if any(arg.star for arg in call.args):
        return len(call.args) == 1 and _is_list_made_on_cpu(model, call.args[0].value, steps)
    if values and isinstance(values[0][1], (Elements, Repeated)):
        return _is_list_made_on_cpu(model, values[0][0], steps)
    if name.endswith("_like") and call.args and _is_parameter(model, call.args[0].value):
        return True
    tensors = [item for item, _ in values if _is_tensor(model, item)]
    return bool(tensors) and all(is_made_on_cpu(model, item, steps) for item in tensors)
