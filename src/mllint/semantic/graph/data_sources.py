"""Whether a name holds data: what a loader yields, or a part of it, which hangs on no graph."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import callers, passed_for
from mllint.semantic.expressions.tensors import may_be_filled
from mllint.semantic.names.changes import is_flagged_bound
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, assigned
from mllint.semantic.values import (
    Array,
    Batch,
    Elements,
    Function,
    Nothing,
    Number,
    Object,
    Other,
    Output,
    Repeated,
    Symbol,
    Tensor,
    Text,
    Value,
)
from mllint.syntax.iteration import sources
from mllint.syntax.shape import argument, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 8
"""Through how many names data are followed."""
TAKING_SHAPES = frozenset({
    "to", "type", "type_as", "astype", "cast", "cuda", "cpu", "float", "half", "double", "long", "int", "bool", "view",
    "view_as", "reshape", "reshape_as", "expand", "expand_as", "permute", "transpose", "unsqueeze", "squeeze", "repeat",
    "tile", "flatten", "contiguous", "chunk", "narrow", "unflatten", "movedim", "clone", "requires_grad_",
})  # fmt: skip
"""Methods of tensors that are told a shape, a type or a place, and compute nothing with what they are given."""
_PARTS = frozenset({"items", "values", "keys"})
"""Methods of dicts that give what they hold."""
# What iterables of batches are called where nothing else is known of them.
_LOADER = re.compile(r"loader|dataset|data_?iter|(train|val|valid|test)_?(iter|data)|batches", re.IGNORECASE)


def hangs_on_nothing(value: Value | None) -> bool:
    """Whether a thing surely hangs on no graph: data, numbers, texts."""
    match value:
        case Number() | Text() | Nothing() | Array() | Batch() | Other():
            return True
        case Tensor():
            return value.attached is False
        case Elements():
            is_filled_later = value.mutable and not value.items
            return not is_filled_later and all(hangs_on_nothing(item) for item in value.items)
        case Repeated():
            return hangs_on_nothing(value.item)
    return False


def is_mere_data(value: Value | None) -> bool:
    """Whether something is no parameter, and on no graph: that it asks for no gradients says nothing."""
    return hangs_on_nothing(value) and not (isinstance(value, Tensor) and value.parameter)


def is_data(model: "Model", binding: Binding) -> bool:
    """Whether a loop binds a key to what a loader yields, to go by what is iterated over or what that is called."""
    if binding.kind is not BindingKind.LOOP or binding.value is None:
        return False
    return hangs_on_nothing(model.binding_value(binding)) or _runs_over_data(model, binding.value, MAX_STEPS)


def _runs_over_data(model: "Model", iterable: cst.BaseExpression, steps: int) -> bool:
    """Whether all that is iterated over is spelled as a loader, also behind names: ``tqdm(loader)`` behind ``bar``."""
    if isinstance(iterable, cst.IfExp):
        return all(_runs_over_data(model, side, steps) for side in (iterable.body, iterable.orelse))
    return all(
        _is_spelled_as_data(item.node) or (steps > 0 and _is_bound_to_data(model, item.node, steps - 1))
        for item in sources(iterable)
    )


def _is_bound_to_data(model: "Model", name: cst.BaseExpression, steps: int) -> bool:
    """Whether a name stands for nothing but what runs over data: ``with tqdm(loader) as bar``."""
    bindings = model.reaching(name) if isinstance(name, cst.Name) else ()
    return bool(bindings) and all(
        binding.kind in (BindingKind.ASSIGN, BindingKind.WITH)
        and not binding.path
        and binding.value is not None
        and _runs_over_data(model, binding.value, steps)
        for binding in bindings
    )


def is_part_of_batch(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name stands for a part of what a loop yields or a function is given: ``for x, y in data``, ``x, y =
    batch``.
    """
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    return bool(bindings) and all(binding.path and _is_given(model, binding) for binding in bindings)


def _is_given(model: "Model", binding: Binding) -> bool:
    if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Name):
        return all(item.kind in (BindingKind.PARAMETER, BindingKind.LOOP) for item in model.reaching(binding.value))
    return binding.kind is BindingKind.LOOP


def is_setting(model: "Model", binding: Binding) -> bool:
    """Whether a parameter is a number where it is not given, and nothing in the file gives it more: ``eps=1e-6``."""
    parameter, function = binding.node, binding.scope.node
    if not isinstance(parameter, cst.Param) or parameter.default is None or not isinstance(function, cst.FunctionDef):
        return False
    if not isinstance(model.value(parameter.default), Number):
        return False
    passed = passed_for(model, model.function_info(function), parameter)
    return all(hangs_on_nothing(model.value(item)) for item in passed)


def comes_from_data(model: "Model", binding: Binding, steps: int = MAX_STEPS) -> bool:
    """Whether a binding surely binds what a loader yields, or what is computed from that alone: it has no graph."""
    if is_data(model, binding):
        return True
    value = model.binding_value(binding)
    if is_flagged_bound(model, binding):
        return False
    if hangs_on_nothing(value):
        return True
    if value is None and _LOADER.search(binding.key.rpartition(".")[2]) is not None:
        return True
    if steps == 0:
        return False
    if is_setting(model, binding):
        return True
    if binding.kind is BindingKind.LOOP and binding.value is not None:
        return is_of_data(model, binding.value, steps - 1)  # the parts of what a loader yields
    if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
        function = binding.scope.node
        if not isinstance(function, cst.FunctionDef):
            return False
        return _is_given_data(model.function_info(function), binding.node, steps - 1)
    if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
        return all(is_of_data(model, side, steps - 1) for side in (binding.node.target, binding.node.value))
    if binding.kind is not BindingKind.ASSIGN or binding.value is None or may_be_filled(model, binding):
        return False
    return is_of_data(model, binding.value, steps - 1)


def _is_given_data(info: FunctionInfo, parameter: cst.Param, steps: int) -> bool:
    """Whether all calls of a function in sight, in its file or one that imports it, give nothing but data for it."""
    if parameter not in info.parameters:
        return False
    position, is_given = info.parameters.index(parameter), False
    for model, seen in callers(info):
        for item in passed_for(model, seen, seen.parameters[position]):
            is_given = True
            if not is_of_data(model, item, steps):
                return False
    return is_given


def is_of_data(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether an expression reads or computes nothing but what comes from loaders, and has no graph."""
    value = model.value(node)
    if hangs_on_nothing(value) or (value is None and _is_spelled_as_data(node)):
        return True
    match node:
        case cst.Name():
            bindings = model.reaching(node) or _bound_outside(model, node)
            return bool(bindings) and all(comes_from_data(model, binding, steps) for binding in bindings)
        case cst.IfExp(body=one, orelse=other):
            return is_of_data(model, one, steps) and is_of_data(model, other, steps)
        case cst.Subscript(value=inner) | cst.UnaryOperation(expression=inner) | cst.Attribute(value=inner):
            return is_of_data(model, inner, steps)
        case cst.BinaryOperation(left=left, right=right):
            return is_of_data(model, left, steps) and is_of_data(model, right, steps)
        case cst.ListComp(elt=item) | cst.GeneratorExp(elt=item) | cst.DictComp(value=item):
            return is_of_data(model, item, steps)
        case cst.Call():
            return _is_computed_from(model, node, steps)
    return False


def is_handed_in(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether an expression is a parameter of its function, of another type or shape at most: ``labels.long()``."""
    match node:
        case cst.Name():
            bindings = model.reaching(node)
            return bool(bindings) and all(
                binding.kind is BindingKind.PARAMETER
                or ((made := assigned(binding)) is not None and steps > 0 and is_handed_in(model, made, steps - 1))
                for binding in bindings
            )
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method in TAKING_SHAPES:
            return is_handed_in(model, inner, steps)
    return False


def _bound_outside(model: "Model", name: cst.Name) -> Sequence[Binding]:
    """What binds a name of a function around, or of the file, of which nobody knows which was the last to run."""
    scope = model.scope_of(name)
    while scope.parent is not None and name.value not in scope.bindings:
        scope = scope.parent
    return () if scope is model.scope_of(name) else scope.bindings.get(name.value, ())


def _is_computed_from(model: "Model", call: cst.Call, steps: int) -> bool:
    """Whether a call computes something from data alone, and begins no graph."""
    if argument(call, None, "requires_grad") is not None:
        return False
    callee, framework = model.value(call.func), model.framework
    if isinstance(callee, Symbol):
        if callee.name == "builtins.next":
            return bool(call.args) and is_iterator_of_data(model, call.args[0].value)
        is_known = lookup.function(callee.name) is not None or callee.name == "torch.autograd.Variable"
        return is_known and bool(call.args) and all(is_of_data(model, arg.value, steps) for arg in call.args)
    if not isinstance(call.func, cst.Attribute) or framework is None or isinstance(callee, Function):
        return False
    method = call.func.attr.value
    if method in _PARTS and not call.args:
        return is_of_data(model, call.func.value, steps)
    if method == "requires_grad_" or lookup.tensor_method(framework, method) is None:
        return False
    given = () if method in TAKING_SHAPES else (arg.value for arg in call.args)
    return all(is_of_data(model, item, steps) for item in (call.func.value, *given))


def is_iterator_of_data(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether ``next()`` of something gives data: it is ``iter()`` of a loader, or of what is gone through again."""
    if yields_data(node):
        return True
    made = all_assigned(model, node)
    calls = [value for value in made if isinstance(value, cst.Call) and value.args]
    if len(calls) != len(made) or any(model.qualified_name(call.func) != "builtins.iter" for call in calls):
        return False
    gone_through = [(call.args[0].value, model.value(call.args[0].value)) for call in calls]
    if any(isinstance(value, (Tensor, Output)) and not hangs_on_nothing(value) for _, value in gone_through):
        return False
    is_data = all(yields_data(item) or isinstance(value, Object) for item, value in gone_through)
    return bool(calls) and (is_data or len(calls) > 1)


def yields_data(iterable: cst.BaseExpression) -> bool:
    """Whether something that is iterated over is spelled as a loader, also behind ``enumerate`` and its like."""
    return all(_is_spelled_as_data(item.node) for item in sources(iterable))


def _is_spelled_as_data(iterable: cst.BaseExpression) -> bool:
    if isinstance(iterable, cst.Call):
        if dotted_path(iterable.func) == "next" and iterable.args:
            return yields_data(iterable.args[0].value)
        return not iterable.args and yields_data(iterable.func)  # Paddle's older loaders are called
    if isinstance(iterable, cst.Subscript):
        return yields_data(iterable.value)
    path = dotted_path(iterable)
    return path is not None and _LOADER.search(path.rpartition(".")[2]) is not None
