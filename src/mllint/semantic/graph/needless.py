"""Results that are thrown away and not missed: computed once more below, so already, looked at, or left to others."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import CUTTING
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.expressions.new_results import NEW
from mllint.semantic.expressions.sources import names_in
from mllint.semantic.graph.devices import computes_where_it_is, moves_of
from mllint.semantic.graph.placement import is_in_cells, is_only_expressions
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Function, Module, Tensor
from mllint.syntax.shape import argument, called_on, dotted_path, fingerprint, last_word, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

PLACING = ("to", "cuda")
_IN_ANY_SHAPE = frozenset({"device", "dtype", "is_cuda", "get_device", "requires_grad", "numel", "nelement"})
_KEEPING_ORDER = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze"})
_ONE_BY_ONE = frozenset({"one_hot", "relu", "sigmoid", "tanh", "exp", "log", "abs", "sqrt", "float", "long", "int"})
"""Functions and methods that take the numbers of a tensor one by one, in their order."""
_OF_FLOATS = frozenset({
    "torch.zeros", "torch.ones", "torch.rand", "torch.randn", "torch.empty", "torch.FloatTensor", "torch.Tensor",
})  # fmt: skip
_OF_SAME_NUMBERS = frozenset({
    "cuda", "clone", "contiguous", "view", "reshape", "transpose", "permute", "squeeze", "unsqueeze", "flatten",
})  # fmt: skip
MAX_STEPS = 5
"""Through how many names and calls a tensor is followed to where it was made."""

_SCATTERING = "torch.nn.DataParallel"
"""It copies what its call is given to the devices of its replicas, wherever that is."""
_HOLDING = ("Variable", "Parameter")
_COPYING = frozenset({"clone", "detach", "float", "double", "half", "contiguous", "requires_grad_"})
_LOOKING = frozenset(
    {"size", "dim", "ndimension", "numel", "nelement", "item", "tolist", "type", "stride", "get_device"}
)
_SEEN = frozenset({"shape", "dtype", "device", "ndim", "grad", "data", "T", "is_cuda", "requires_grad", "is_leaf"})
_LOOKS = (cst.Name, cst.Comparison, cst.BinaryOperation, cst.UnaryOperation, cst.Subscript)
MANY_DROPPED = 4
"""How many results in a row a script has to drop for all of them to be examples."""
FULL_OF_DROPPED = 8
"""The same, where other statements stand between."""
FEW_LOOKS = 2
"""How many expressions of a block that only show something make notes of it, as they are typed into a console."""


def is_computed_again(model: "Model", call: cst.Call) -> bool:
    """Whether the same call is given to something further below, or another method of the class uses what it gives:
    this one was left over.
    """
    scope = model.scope_of(call)
    if _is_computed_by_another_method(model, call):
        return True
    place = scope.place_of(call)
    if place is None:
        return False
    text = fingerprint(call)
    for other in model.calls_by_word.get(last_word(call.func) or "", ()):
        if other is call or model.scope_of(other) is not scope or not isinstance(model.tree.parent(other), cst.Arg):
            continue
        there = scope.place_of(other)
        if there is not None and there[1] > place[1] and fingerprint(other) == text:
            return all(
                model.reaching(one) == model.reaching(two)
                for one, two in zip(*map(names_in, (call, other)), strict=True)
            )
    return False


def _is_computed_by_another_method(model: "Model", call: cst.Call) -> bool:
    """Whether another method makes the same of an attribute of its own: ``x @ self.table.unsqueeze(0)``."""
    receiver = called_on(call)
    method = method_of_receiver(model, receiver.value) if isinstance(receiver, cst.Attribute) else None
    if method is None or method.owner is None or not isinstance(receiver, cst.Attribute):
        return False
    for read in method.owner.members.reads(receiver.attr.value):
        tree = read.method.model.tree
        asked = tree.parent(read.node)
        other = tree.call_of(asked) if isinstance(asked, cst.Attribute) else None
        if other is None or read.method is method or isinstance(tree.parent(other), cst.Expr):
            continue
        if fingerprint(other) == fingerprint(call):
            return True
    return False


def is_made_there(model: "Model", call: cst.Call) -> bool:
    """Whether ``x.to(device)`` moves what was made on that very device.

    ``x = zeros(3, device=device)``, ``x = x.to(device)``, or ``x = network(y)`` behind ``network.to(device)``. What is
    done to it in place on the way, ``x.fill_(1).to(device)``, leaves it there.
    """
    operand = called_on(call)
    if operand is None or last_word(call.func) not in PLACING or len(call.args) > 1:
        return False
    bound = model.reaching(before_writes(operand))
    return bool(bound) and all(_is_bound_there(model, binding, call) for binding in bound)


def before_writes(node: cst.BaseExpression) -> cst.BaseExpression:
    """What methods are called on that work in place: ``x`` of ``x.fill_(1).clamp_(0)``."""
    while isinstance(node, cst.Call) and (last_word(node.func) or "").endswith("_"):
        written = called_on(node)
        if written is None:
            break
        node = written
    return node


def _is_bound_there(model: "Model", binding: Binding, move: cst.Call) -> bool:
    value = binding.value
    if value is None or binding.kind is not BindingKind.ASSIGN:
        return False
    is_computed = not binding.path and (_is_computed_there(model, value, move) or _is_made_of_moved(model, value, move))
    return is_computed or (isinstance(value, cst.Call) and _comes_back_there(model, value, binding.path, move))


def _is_made_of_moved(model: "Model", value: cst.BaseExpression, move: cst.Call) -> bool:
    """Whether a value is a copy of what has been moved to the same place, on the same conditions.

    ``copy = Variable(x.clone())`` and ``if cuda: copy.cuda()``, behind ``if cuda: x = x.cuda()``.
    """
    while isinstance(value, cst.Call) and value.args and last_word(value.func) in _HOLDING:
        value = value.args[0].value
    while (isinstance(value, cst.Call) and last_word(value.func) in _COPYING) or isinstance(value, cst.Attribute):
        inner = called_on(value) if isinstance(value, cst.Call) else value.value if value.attr.value == "data" else None
        if inner is None:
            return False
        value = inner
    if not isinstance(value, cst.Name):
        return False
    holding = [(fingerprint(test), verdict) for test, verdict in verdicts(model, move)]
    for binding in model.reaching(value):
        moved = assigned(binding)
        if not isinstance(moved, cst.Call) or not isinstance(moved.func, cst.Attribute):
            continue
        on = [(fingerprint(test), verdict) for test, verdict in verdicts(model, binding.node)]
        if _names_same_place(moved, move) and all(condition in holding for condition in on):
            return True
    return False


def _comes_back_there(model: "Model", made: cst.Call, path: tuple[int | None, ...], move: cst.Call) -> bool:
    """Whether a function of the project has moved what it gives back to the same device."""
    callee = model.value(made.func)
    if not isinstance(callee, Function) or not callee.definition.is_plain or not callee.definition.scope.returns:
        return False
    info = callee.definition
    for statement in info.scope.returns:
        part = statement.value
        for index in path:
            items = part.elements if isinstance(part, cst.Tuple) and index is not None else ()
            part = items[index].value if index is not None and index < len(items) else None
        moved = [part] if isinstance(part, cst.Call) else [] if part is None else all_assigned(info.model, part)
        if not moved or not all(_is_moved_alike(callee, item, made, (model, move)) for item in moved):
            return False
    return True


def _is_moved_alike(
    callee: Function, moved: cst.BaseExpression, made: cst.Call, move: "tuple[Model, cst.Call]"
) -> bool:
    """Whether a function ends with a move to what another one, which calls it, names as the device, too."""
    model, outer = move
    info = callee.definition
    if not isinstance(moved, cst.Call) or last_word(moved.func) != last_word(outer.func) or called_on(moved) is None:
        return False
    if len(moved.args) != 1 or len(outer.args) != 1:
        return not moved.args and not outer.args
    inside, outside = moved.args[0].value, outer.args[0].value
    if string_literal(inside) is not None or string_literal(outside) is not None:
        return fingerprint(inside) == fingerprint(outside)
    root, word = (dotted_path(inside) or "").partition(".")[0], dotted_path(outside)
    for parameter in info.parameters if word is not None and inside.__class__ is cst.Name else ():
        if parameter.name.value == root:
            filled = 0 if info.self_name is None or callee.receiver is None else 1
            given = (arg.value for arg in made.args if given_to(info, made, arg, filled) is parameter)
            return [dotted_path(item) for item in given] == [word]
    if word is None or dotted_path(inside) != word:
        return False
    receiver = called_on(made)
    if root == info.self_name:
        return receiver is not None and dotted_path(receiver) == root
    home = info.scope.home_of(root)
    return info.model is model and home is not info.scope and home is model.scope_of(outer).home_of(root)


def _is_computed_there(model: "Model", value: cst.BaseExpression, move: cst.Call) -> bool:
    device = _device(move.args[0].value) if move.args else "'cuda'"
    if device is not None and any(_is_given_device(part, device) for part in subtree(value)):
        return True
    kind = argument(value, None, "dtype") if isinstance(value, cst.Call) else None
    if device is not None and kind is not None and _device(kind.value) == device:
        return True  # `x.to(y.dtype)` of what was made of that type
    if isinstance(value, cst.Call) and _is_of_cuda_type(model, value) and _asks_for_cuda(model, move):
        return True
    if isinstance(value, cst.Call) and value.args and last_word(value.func) == "Parameter":
        return _is_computed_there(model, value.args[0].value, move)
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and _names_same_place(value, move):
        return True
    path = dotted_path(value.func) if isinstance(value, cst.Call) else None
    if path is None or not isinstance(value, cst.Call):
        return False
    module = model.value(value.func)
    if not isinstance(module, Module) or not computes_where_it_is(module):
        return False
    moves = moves_of(model, path, value)
    return bool(moves) and all(_names_same_place(other, move) for other in moves)


def _is_of_cuda_type(model: "Model", made: cst.Call) -> bool:
    """Whether a tensor was converted to a type that lives on the GPU: ``x.type(torch.cuda.FloatTensor)``."""
    kinds = [made.args[0].value] if last_word(made.func) == "type" and len(made.args) == 1 else []
    named = [model.qualified_name(part) for kind in kinds for part in (kind, *all_assigned(model, kind))]
    return any((name or "").startswith("torch.cuda.") for name in named)


def _asks_for_cuda(model: "Model", move: cst.Call) -> bool:
    """Whether a move is to the GPU that is used when none is named."""
    if not move.args:
        return last_word(move.func) == "cuda"
    device = move.args[0].value
    made = [item for item in all_assigned(model, device) if isinstance(item, cst.Call)]
    return (
        any(
            string_literal(item.args[0].value) == "cuda"
            for item in made
            if model.qualified_name(item.func) == "torch.device" and len(item.args) == 1
        )
        or string_literal(device) == "cuda"
    )


def _names_same_place(one: cst.Call, other: cst.Call) -> bool:
    assert isinstance(one.func, cst.Attribute)
    assert isinstance(other.func, cst.Attribute)
    texts = [[fingerprint(arg.value) for arg in call.args] for call in (one, other)]
    return one.func.attr.value == other.func.attr.value and texts[0] == texts[1]


def _is_given_device(node: cst.CSTNode, device: str) -> bool:
    is_device = isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "device"
    return is_device and _device(node.value) == device  # type: ignore[attr-defined]


def _device(node: cst.BaseExpression) -> str | None:
    """How a device is written: the name that holds it, or its text."""
    text = string_literal(node)
    return dotted_path(node) if text is None else repr(text)


def is_taken_anywhere(model: "Model", call: cst.Call) -> bool:
    """Whether ``x.cuda()`` moves what is given to nothing but what takes it from wherever it is.

    A ``DataParallel`` copies it to its devices, ``weight.copy_(x)`` to that of the weight, and ``table[x]`` takes an
    index from the CPU.
    """
    operand = called_on(call)
    if last_word(call.func) not in PLACING or len(call.args) > 1 or dotted_path(call.func) is None or operand is None:
        return False
    reads = [node for binding in model.reaching(operand) for node in uses(model, binding) if node is not operand]
    taken = [node for node in reads if not _asks_no_data(model, node)]
    return bool(taken) and all(
        _is_given_to_scattering(model, node) or _is_copied(model, node) or _is_index(model, node) for node in taken
    )


def _is_copied(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the numbers of another tensor are written over by those of a thing: ``weight.data.copy_(x)``."""
    arg = model.tree.parent(node)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and last_word(call.func) == "copy_" and call.args[0] is arg


def _is_index(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a thing says which rows are taken, or written: ``table[x]``."""
    index = model.tree.parent(node)
    return isinstance(index, cst.Index) and index.value is node


def _asks_no_data(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a place asks a tensor for its shape or the like, wherever that is."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in (_LOOKING | _SEEN) - CUTTING
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "len":
        return True
    return isinstance(parent, cst.Subscript) and parent.value is node and _asks_no_data(model, parent)


def _is_given_to_scattering(model: "Model", node: cst.BaseExpression) -> bool:
    call = model.tree.call_given(node)
    if call is None or any(item.kind is BindingKind.PARAMETER for item in model.reaching(call.func)):
        return False  # another caller may give the bare module
    callee = model.value(call.func)
    return isinstance(callee, Module) and callee.wrappers[:1] == (_SCATTERING,)


def keeps_shape(call: cst.Call) -> bool:
    """Whether something is given the shape that it has: ``x.view(x.shape)``, ``x.reshape(x.size())``."""
    path = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    given = call.args[0].value if len(call.args) == 1 else None
    shape = given.func if isinstance(given, cst.Call) and not given.args else given
    return path is not None and shape is not None and dotted_path(shape) in (f"{path}.shape", f"{path}.size")


def is_shaped_anew(model: "Model", call: cst.Call) -> bool:
    """Whether all that reads the numbers of ``x`` below ``x.reshape(2, -1)`` says itself which shape they are to have.

    Either keeps their order.
    """
    operand, scope = called_on(call), model.scope_of(call)
    place = scope.place_of(call)
    if last_word(call.func) not in _KEEPING_ORDER or not isinstance(operand, cst.Name) or place is None:
        return False
    reads = [node for binding in model.reaching(operand) for node in uses(model, binding) if node is not operand]
    below = [node for node in reads if (there := scope.place_of(node)) is not None and there[1] > place[1]]
    taken = [node for node in below if not _asks_where_it_is(model, node)]
    return bool(taken) and all(_is_shaped(model, node) for node in taken)


def _asks_where_it_is(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a place asks a tensor for what it is in any shape."""
    parent = model.tree.parent(node)
    return isinstance(parent, cst.Attribute) and parent.attr.value in _IN_ANY_SHAPE


def _is_shaped(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a place gives a tensor another shape, by a method or a function, whichever it had.

    Or the result of a function that takes the numbers one by one, or takes out what has one row only.
    """
    parent = model.tree.parent(node)
    call = model.tree.parent(parent) if isinstance(parent, (cst.Attribute, cst.Arg)) else None
    if not isinstance(call, cst.Call):
        return False
    name = model.library_name(call.func)
    word = last_word(call.func) if name is None else name.rpartition(".")[2]
    if word == "allclose" and call.func is not parent:
        return name is not None
    if call.func is not parent and call.args[0] is not parent:
        return False
    if word in ("view", "reshape"):
        return True
    if word in ("squeeze", "flatten"):
        return len(call.args) == (0 if call.func is parent else 1)
    return word in _ONE_BY_ONE and _is_shaped(model, call)


def is_of_that_type(model: "Model", call: cst.Call) -> bool:
    """Whether ``mask.scatter_(1, index, 1).float()`` converts to the type that ``mask = torch.zeros(3)`` has anyway."""
    written = called_on(call)
    operand = None if written is None else before_writes(written)
    if last_word(call.func) != "float" or call.args or not isinstance(operand, cst.Name):
        return False
    return _is_of_floats(model, operand, MAX_STEPS)


def _is_of_floats(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether an expression is a new tensor of the usual type, perhaps moved or of another shape: ``x = x.cuda()``."""
    if steps == 0:
        return False
    if isinstance(node, cst.Name):
        made = all_assigned(model, node)
        return bool(made) and all(_is_of_floats(model, item, steps - 1) for item in made)
    if _makes_floats(model, node):
        return True
    if not isinstance(node, cst.Call) or last_word(node.func) not in _OF_SAME_NUMBERS:
        return False
    given = node.args[0].value if model.library_name(node.func) is not None and node.args else called_on(node)
    return given is not None and _is_of_floats(model, given, steps - 1)


def _makes_floats(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a call makes a tensor of the usual type, as far as nobody has set another default."""
    is_plain = isinstance(node, cst.Call) and argument(node, None, "dtype") is None
    return is_plain and isinstance(node, cst.Call) and model.library_name(node.func) in _OF_FLOATS


def is_among_notes(model: "Model", statement: cst.BaseSmallStatement) -> bool:
    """Whether a block has several statements that only show a value, as a console does: nobody wants their results.

    One is enough where nothing but expressions stands between the two. The last of a notebook's cell is shown anyway.
    """
    line = model.tree.parent(statement)
    block = None if line is None else model.tree.parent(line)
    lines = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    whole = statement.value if isinstance(statement, cst.Expr) else None
    if isinstance(whole, cst.Tuple) and any(_only_shows(model, item.value) for item in whole.elements):
        return True
    looks = [] if is_in_cells(model) else [item for item in lines if _is_look(model, item)]
    position = next((index for index, item in enumerate(lines) if item is line), 0)
    is_script = isinstance(block, cst.Module) and not is_in_cells(model)
    if len(looks) >= FEW_LOOKS or (is_script and _is_list_of_examples(model, lines, position)):
        return True
    around = (
        itertools.takewhile(is_only_expressions, way) for way in (lines[position + 1 :], reversed(lines[:position]))
    )
    return any(item in looks for way in around for item in way)


def _is_list_of_examples(model: "Model", lines: Sequence[cst.CSTNode], position: int) -> bool:
    """Whether a script drops what many functions compute, one after the other: it shows how they are called."""
    if sum(_is_example(model, line) for line in lines) >= FULL_OF_DROPPED:
        return True
    around = (lines[position + 1 :], lines[:position][::-1])
    rows = (len(list(itertools.takewhile(lambda line: _is_example(model, line), way))) for way in around)
    return sum(rows) + 1 >= MANY_DROPPED


def _is_example(model: "Model", line: cst.CSTNode) -> bool:
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return isinstance(only, cst.Expr) and _drops(model, only.value)


def _drops(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a call that computes a new tensor, by its spelling, and moves nothing.

    Or asks one for its size, or compares two: ``torch.nonzero(x).size(0)``, ``torch.equal(a, b)``.
    """
    if not isinstance(node, cst.Call) or last_word(node.func) in PLACING:
        return False
    if (
        isinstance(node.func, cst.Attribute)
        and node.func.attr.value in _LOOKING
        and isinstance(node.func.value, cst.Call)
    ):
        return _drops(model, node.func.value)
    name = model.library_name(node.func)
    if name is None and isinstance(node.func, cst.Attribute) and isinstance(model.value(node.func.value), Tensor):
        fact = lookup.tensor_method("torch" if model.framework is None else model.framework, node.func.attr.value)
    else:
        fact = None if name is None else lookup.function(name)
    return fact is not None and (fact.returns in NEW or (fact.returns == "number" and name is not None))


def _is_look(model: "Model", line: cst.CSTNode) -> bool:
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return False
    only = line.body[0]
    return isinstance(only, cst.Expr) and _only_shows(model, only.value)


def _only_shows(model: "Model", node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Attribute):
        return node.attr.value in _SEEN and isinstance(model.value(node.value), Tensor)
    if not isinstance(node, cst.Call):
        return isinstance(node, _LOOKS)
    if isinstance(node.func, cst.Name):
        return node.func.value in ("type", "len") and len(node.args) == 1
    receiver = called_on(node)
    is_asking = last_word(node.func) in _LOOKING and not node.args
    return is_asking and receiver is not None and isinstance(model.value(receiver), Tensor)
