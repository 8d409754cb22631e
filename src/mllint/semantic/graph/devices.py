"""Where modules and tensors of torch are, as far as one function shows it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.graph.dependence import Dependence
from mllint.semantic.names.changes import is_changed_in_place
from mllint.semantic.names.conditions import stands_before
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import calls_among, calls_of_path
from mllint.semantic.values import Batch, ClassObject, Elements, Module, Number, Object, Other, Symbol, Tensor, Text
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import (
    argument,
    discarded_calls,
    dotted_path,
    has_star_arguments,
    items_of,
    string_literal,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Without `device=` these make a tensor on the CPU, unless the default device was changed.
_MAKING = frozenset({
    "torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.zeros", "torch.ones", "torch.full",
    "torch.arange", "torch.linspace", "torch.eye", "torch.empty", "torch.from_numpy", "torch.tensor", "torch.Tensor",
    "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor", "torch.ByteTensor", "torch.DoubleTensor",
})  # fmt: skip
# Methods that leave a tensor where it is.
_STAYING = frozenset({
    "float", "long", "int", "double", "half", "bool", "unsqueeze", "squeeze", "view", "reshape", "permute",
    "transpose", "t", "flatten", "clone", "detach", "contiguous", "repeat", "expand", "requires_grad_", "cpu", "clamp",
    "div", "mul", "add", "sub", "pin_memory", "normal_", "uniform_", "random_", "fill_", "zero_",
})  # fmt: skip
# Methods of a module that give it back.
_GIVING_ITSELF = frozenset({"eval", "train", "float", "double", "half", "bfloat16", "requires_grad_", "apply"})
# What is said in a file that puts new tensors elsewhere.
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type", "DeviceContext"})
_BEFORE_CALLS = {"register_forward_pre_hook"}
"""What may move the input of a module before it sees it."""
# What is said in a module that puts its inputs where it is itself.
_PLACING = frozenset({"to", "cuda", "device", "type_as", "get_device", "is_cuda"})
# What meets the weights of layers that are given more than their input: each raises where it is elsewhere.
_STATE = ("input", "hx")
_MEETING_WEIGHTS = {
    **{f"torch.nn.{name}": _STATE for name in ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")},
    "torch.nn.MultiheadAttention": ("query", "key", "value"),
    "torch.nn.TransformerDecoderLayer": ("tgt", "memory"),
}
_DATASETS = ("torchvision.datasets.", "torch.utils.data.TensorDataset")
MAX_DEPTH = 12


class LeftBehind(msgspec.Struct, frozen=True):
    """A module that is on a GPU, called with a tensor on the CPU."""

    call: cst.Call
    argument: cst.BaseExpression
    module: str


def left_behind(model: "Model", move: cst.Call) -> Iterator[LeftBehind]:
    """The calls of the module that a call moves to a GPU, which give it a tensor that stays on the CPU."""
    moved = _moved(model, move)
    if moved is None or not (_DEFAULTS | _BEFORE_CALLS).isdisjoint(model.names_by_word):
        return
    path, statement = moved
    for call in calls_of_path(model, path):
        if has_star_arguments(call) or not stands_before(model, statement, call):
            continue
        module = model.value(call.func)
        if not isinstance(module, Module) or not _minds_where_inputs_are(model, module):
            continue
        if moves_of(model, path, call) != [move] or _in_device_context(model, call):
            continue
        for position, arg in enumerate(call.args):
            # A module of the project may use but one of the items that it is given.
            items = items_of(arg.value) if module.definition is None else [arg.value]
            left = next((item for item in items if _is_left(model, item)), None)
            if left is not None and _reaches_weights(module, position, arg):
                yield LeftBehind(call, left, path)
                break


def _is_left(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether something is a tensor, or a tuple of such, that surely stays on the CPU."""
    value = model.value(node)
    items = value.items if isinstance(value, Elements) else (value,)
    are_tensors = all(
        isinstance(item, Batch) or (isinstance(item, Tensor) and item.scalar is not True) for item in items
    )
    return are_tensors and _is_on_cpu(model, node, 0)


def _moved(model: "Model", move: cst.Call) -> tuple[str, cst.CSTNode] | None:
    """The name of the module that a call surely moves to a GPU, and the statement that does it."""
    if not isinstance(move.func, cst.Attribute) or not _is_gpu(model, move):
        return None
    receiver, statement = move.func.value, _user_of_chain(model, move)
    if not isinstance(model.value(receiver), Module):
        return None
    if isinstance(statement, cst.Expr):
        path = dotted_path(receiver)
    elif isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        path = dotted_path(statement.targets[0].target)
    else:
        return None
    return None if path is None or "." in path else (path, statement)


def _user_of_chain(model: "Model", call: cst.Call) -> cst.CSTNode | None:
    """What has the module that a call gives back, also behind what else is done with it: ``net.to(device).eval()``."""
    user = model.tree.parent(call)
    while isinstance(user, cst.Attribute) and user.attr.value in _GIVING_ITSELF:
        asked = model.tree.call_of(user)
        user = None if asked is None else model.tree.parent(asked)
    return user


def _is_gpu(model: "Model", move: cst.Call) -> bool:
    """Whether a call of ``cuda`` or ``to`` names a device that is a GPU, at least where there is one."""
    assert isinstance(move.func, cst.Attribute)
    if move.func.attr.value == "cuda":
        return not has_star_arguments(move)
    target = argument(move, 0, "device")
    return target is not None and _names_gpu(model, target.value, 0)


def _names_gpu(model: "Model", node: cst.BaseExpression, depth: int) -> bool:
    text = string_literal(node)
    if text is not None:
        return text.partition(":")[0] == "cuda"
    if depth > MAX_DEPTH:
        return False
    match node:
        case cst.Call() if model.qualified_name(node.func) == "torch.device" and node.args:
            return _names_gpu(model, node.args[0].value, depth + 1)
        case cst.IfExp():
            return any(_names_gpu(model, side, depth + 1) for side in (node.body, node.orelse))
        case cst.Name():
            values = [assigned(binding) for binding in model.reaching(node) or _outer(model, node)]
            known = [value for value in values if value is not None]
            return len(known) == len(values) and any(_names_gpu(model, value, depth + 1) for value in known)
    return False


def _outer(model: "Model", node: cst.Name) -> tuple[Binding, ...]:
    """The only binding of a name of the module, as its functions see it."""
    bindings = model.scope(model.tree.module).bindings.get(node.value, ())
    is_own = node.value in model.scope_of(node).bindings
    return () if is_own or len(bindings) != 1 else tuple(bindings)


def moves_of(model: "Model", path: str, call: cst.Call) -> list[cst.Call]:
    """The calls in the same function that put the module somewhere."""
    scope = model.scope_of(call)
    found = []
    for word in ("to", "cuda", "cpu", "xpu", "to_empty", "mps"):
        for move in calls_among(model, model.names_in(word, scope)):
            statement = _user_of_chain(model, move)
            target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
            is_own = isinstance(move.func, cst.Attribute) and dotted_path(move.func.value) == path
            is_bound = target is not None and dotted_path(target) == path
            if is_own or is_bound:
                found.append(move)
    return found


def _in_device_context(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a ``with torch.device(...)`` stands around a node."""
    return any(
        isinstance(ancestor, cst.With)
        and any(
            isinstance(item.item, cst.Call) and model.qualified_name(item.item.func) == "torch.device"
            for item in ancestor.items
        )
        for ancestor in model.tree.ancestors(node)
    )


# -- modules -----------------------------------------------------------------------------------------------------------


def _minds_where_inputs_are(model: "Model", module: Module) -> bool:
    """Whether a module has weights, and surely takes its inputs as they come."""
    if module.framework != "torch" or module.wrappers:
        return False
    if module.definition is not None:
        return _takes_inputs_as_they_come(module.definition)
    return _minds(model, module)


def _minds(model: "Model", module: Module) -> bool:
    """The same of a module of a library."""
    if module.name is not None and module.name.startswith("torchvision.models."):
        return True
    if module.name == "torch.nn.Sequential":
        parts = [] if module.call is None else [model.value(arg.value) for arg in module.call.args]
        return any(isinstance(part, Module) and _has_weights(part.name) for part in parts) and all(
            isinstance(part, Module) and part.name is not None for part in parts
        )
    return _has_weights(module.name)


def _reaches_weights(module: Module, position: int, arg: cst.Arg) -> bool:
    """Whether an argument surely meets the weights; lengths, for example, belong on the CPU."""
    if module.definition is None:
        return _meets_weights(module, position, arg)
    forward = module.definition.called
    if forward is None:
        return False
    parameters = forward.parameters[position + 1 : position + 2]
    if arg.keyword is not None:
        parameters = tuple(item for item in forward.parameters if item.name.value == arg.keyword.value)
    if len(parameters) != 1:
        return False
    walk = Dependence(forward.model, lambda binding: binding.node is parameters[0], of_graph=False)
    for call in forward.model.tree.by_type.get(cst.Call, ()):
        layer = forward.model.value(call.func) if forward.model.enclosing_function(call) is forward.node else None
        if not isinstance(layer, Module) or layer.definition is not None or not _minds(forward.model, layer):
            continue
        if any(_meets_weights(layer, place, given) and walk.of(given.value) for place, given in enumerate(call.args)):
            return True
    return False


def _meets_weights(layer: Module, position: int, arg: cst.Arg) -> bool:
    """Whether what a layer of the library is given at a place meets its weights as it is."""
    names = _MEETING_WEIGHTS.get(layer.name or "")
    if names is None:
        return position == 0
    return position < len(names) if arg.keyword is None else arg.keyword.value in names


def _has_weights(name: str | None) -> bool:
    state = None if name is None else lookup.layer_state(name)
    return state is not None and bool(state.keys) and not state.sized


def computes_where_it_is(module: Module) -> bool:
    """Whether the outputs of a module are where it was moved: not so of a loss, which has nothing that moves."""
    return module.definition is not None or module.name is None or _has_weights(module.name)


def _takes_inputs_as_they_come(definition: ClassInfo) -> bool:
    """Whether no class of the module, or of its parts, says a word about devices, and one of them has a weight."""
    seen: list[ClassInfo] = []
    pending = [definition]
    has_weights = False
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.append(current)
        if current.has_unknown_base or len(seen) > MAX_DEPTH:
            return False
        for info in current.lineage:
            for word in _PLACING:
                if any(info.model.tree.is_below(name, info.node) for name in info.model.names_by_word.get(word, ())):
                    return False
            for call in info.model.tree.by_type.get(cst.Call, ()):
                if not info.model.tree.is_below(call, info.node):
                    continue
                callee = info.model.value(call.func)
                if isinstance(callee, ClassObject):
                    pending.append(callee.definition)
                elif isinstance(callee, Symbol):
                    has_weights = has_weights or _has_weights(callee.name)
    return has_weights


# -- tensors -----------------------------------------------------------------------------------------------------------


def is_made_on_cpu(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression surely makes a tensor on the CPU, where nobody has said that new ones are elsewhere."""
    if isinstance(model.value(node), Elements):
        return False  # several tensors
    return _DEFAULTS.isdisjoint(model.names_by_word) and _is_on_cpu(model, node, 0)


def _is_on_cpu(model: "Model", node: cst.BaseExpression, depth: int) -> bool:
    """Whether a tensor surely is on the CPU: made there, and moved by nothing."""
    if depth > MAX_DEPTH:
        return False
    match node:
        case cst.Name():
            bindings = _in_first_round(model, node, model.reaching(node))
            if is_changed_in_place(model, node) and not _only_fills(model, node):
                return False
            return bool(bindings) and all(_binding_is_on_cpu(model, item, depth) for item in bindings)
        case cst.Call():
            return _call_is_on_cpu(model, node, depth)
        case cst.Tuple():
            return bool(node.elements) and all(_is_on_cpu(model, part.value, depth + 1) for part in node.elements)
        case cst.BinaryOperation():
            sides = [side for side in (node.left, node.right) if not isinstance(model.value(side), Number)]
            return bool(sides) and all(_is_on_cpu(model, side, depth + 1) for side in sides)
        case cst.Subscript():
            return isinstance(model.value(node.value), Tensor) and _is_on_cpu(model, node.value, depth + 1)
    return False


def _in_first_round(model: "Model", node: cst.Name, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
    """Those bindings that the first round of a loop finds; what the end of a round binds is for the next.

    Where a branch of the round decides whether it comes to the name, it may not do so in the first.
    """
    place = model.scope_of(node).place_of(node) if len(bindings) > 1 else None
    later = [] if place is None else [item for item in bindings if item.order > place[1]]
    if not later or len(later) == len(bindings):
        return bindings
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.If, cst.IfExp, cst.Try, cst.Match, cst.BooleanOperation, cst.FunctionDef)):
            return bindings
        if isinstance(ancestor, (cst.For, cst.While)):
            is_inside = all(model.tree.is_below(item.node, ancestor) for item in later)
            return tuple(item for item in bindings if item not in later) if is_inside else bindings
    return bindings


def _only_fills(model: "Model", node: cst.BaseExpression) -> bool:
    """Items that are assigned, and methods that fill a tensor, do not move it."""
    return isinstance(model.value(node), Tensor)


def _binding_is_on_cpu(model: "Model", binding: Binding, depth: int) -> bool:
    if (made := assigned(binding)) is not None:
        return _is_on_cpu(model, made, depth + 1)
    if binding.kind is not BindingKind.LOOP or binding.value is None:
        return False
    return _is_of_cpu_loader(model, binding.value) or (
        isinstance(model.binding_value(binding), Batch) and _is_moved_in_vain(model, binding)
    )


def _is_of_cpu_loader(model: "Model", iterable: cst.BaseExpression) -> bool:
    """Whether a loop runs over a loader of a dataset whose items are on the CPU."""
    loader = model.value(run_over(iterable))
    if not isinstance(loader, Object) or loader.name != "torch.utils.data.DataLoader" or loader.call is None:
        return False
    source = argument(loader.call, 0, "dataset")
    if argument(loader.call, 6, "collate_fn") is not None or source is None:
        return False
    dataset = model.value(source.value)
    if not isinstance(dataset, Object) or not dataset.name.startswith(_DATASETS) or dataset.call is None:
        return False
    if dataset.name == "torch.utils.data.TensorDataset":
        return all(_is_on_cpu(model, arg.value, 1) for arg in dataset.call.args)
    return "Lambda" not in model.names_by_word


def _is_moved_in_vain(model: "Model", binding: Binding) -> bool:
    """Whether the function says ``x.to(...)`` or ``x.cuda()`` of that very batch and drops the result."""
    return any(
        isinstance(call.func, cst.Attribute)
        and _is_dropped(model, call)
        and binding in model.reaching(call.func.value)
        and _is_gpu(model, call)
        for word in ("to", "cuda")
        for call in model.calls_by_word.get(word, ())
    )


def _is_dropped(model: "Model", call: cst.Call) -> bool:
    """Whether nobody takes the result of a call."""
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, cst.Expr):
            return any(item is call for item in discarded_calls(ancestor.value))
        if not isinstance(ancestor, (cst.Tuple, cst.Element)):
            return False
    return False


def _call_is_on_cpu(model: "Model", call: cst.Call, depth: int) -> bool:
    name = model.qualified_name(call.func)
    if name in _MAKING:
        return (
            argument(call, None, "device") is None
            and not any(arg.star == "**" for arg in call.args)
            and (all(_is_plain_data(model, arg.value) for arg in call.args))
        )
    if name is not None or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _STAYING:
        return False
    others = [arg.value for arg in call.args if not isinstance(model.value(arg.value), (Number, Symbol, Other))]
    return all(_is_on_cpu(model, item, depth + 1) for item in (call.func.value, *others))


def _is_plain_data(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what a tensor is made of is no tensor itself, whose device it might take over."""
    return not isinstance(model.value(node), (Tensor, Batch, Text))
