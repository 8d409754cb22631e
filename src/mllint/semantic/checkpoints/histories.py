"""Weights that are put into a list in each round of a training, without being copied: each entry is the same memory.

``history.append(net.fc.weight.detach().numpy())``: ``detach()``, ``data``, and in PyTorch ``numpy()``, give the very
numbers of the weight, which ``step()`` and changes in place write over.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import GIVING_PARAMETERS, UPDATING, WRITING
from mllint.semantic.checkpoints.snapshots import Loop, ends_loop
from mllint.semantic.graph.leaves import is_leaf, is_parameter_of_module
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import method_calls, uses
from mllint.semantic.values import Function, Module, is_object
from mllint.syntax.shape import (
    constant,
    dotted_path,
    last_word,
    root_of,
    string_literal,
    subscript_index,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SHARING = frozenset({"detach", "numpy", "squeeze", "cpu"})
"""Methods that give the same memory: ``cpu`` on the CPU."""
_ATTRIBUTES = frozenset({"data", "T"})
_CUTTING = frozenset({"detach", "data"})
_COPYING_IN_PADDLE = frozenset({"numpy", "cpu", "squeeze", "T"})
"""``numpy`` on every device, ``cpu`` on a GPU, where weights are if there is one, the others in old versions."""
_MOVING = frozenset({"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "to_empty"})
"""What gives the weights of a module other memory."""
_CLEARING = frozenset({"zero_grad", "clear_grad", "clear_gradients"})
"""What is asked of optimizers, and not of schedulers."""
_ASKING = frozenset({"len", "type", "id", "isinstance"})
ADDING = "append"
_HARMLESS = frozenset({ADDING, "extend", "index", "count", "copy"})
"""Methods that leave in a list what is in it."""


class Kept(msgspec.Struct, frozen=True):
    """A weight that is put into a list again and again.

    ``part`` is what is put there, ``rows`` the name of the list; ``is_array``: it is an array of NumPy.
    ``only_on_cpu``: of a weight on another device it would be a copy.
    """

    part: cst.BaseExpression
    rows: str
    is_array: bool
    only_on_cpu: bool


class _Weight(msgspec.Struct, frozen=True):
    """A weight, or an entry of a state dict: ``owner`` is what has it, the weight itself or the module.

    ``steps`` are the methods and attributes that were asked for of it.
    """

    owner: cst.BaseExpression
    path: str
    steps: tuple[str, ...]


def may_keep_weight(call: cst.Call) -> bool:
    """Whether something like a weight is put into a list, by the look of it."""
    if last_word(call.func) != ADDING or len(call.args) != 1:
        return False
    node, steps = _asked(call.args[0].value)
    return _module_of_state(node) is not None or not _CUTTING.isdisjoint(steps)


def kept_again_and_again(model: "Model", call: cst.Call) -> Kept | None:
    """What a call keeps of a weight that is changed in place between two rounds; ``None``: not surely."""
    rows = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(rows, cst.Name) or not isinstance(model.tree.parent(call), cst.Expr):
        return None
    weight = _weight(model, call.args[0].value)
    if weight is None or not _shares_memory(model, weight):
        return None
    loop = _loop_around(model, call, rows, weight)
    if loop is None or not _is_changed(model, loop, weight) or not _is_read_behind(model, rows, loop):
        return None
    return Kept(call.args[0].value, rows.value, "numpy" in weight.steps, "cpu" in weight.steps)


def _asked(node: cst.BaseExpression) -> tuple[cst.BaseExpression, tuple[str, ...]]:
    """What is asked for its memory, and how: ``net.fc.weight`` of ``net.fc.weight.detach().numpy()``."""
    steps: list[str] = []
    while True:
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name), value=inner), args=[]) if name in _SHARING:
                node = inner
            case cst.Attribute(attr=cst.Name(value=name), value=inner) if name in _ATTRIBUTES:
                node = inner
            case _:
                return node, tuple(steps)
        steps.append(name)


def _weight(model: "Model", part: cst.BaseExpression) -> _Weight | None:
    """The weight whose memory an expression is."""
    node, steps = _asked(part)
    owner = _module_of_state(node)
    if owner is not None:
        is_weight = isinstance(model.value(owner), Module)
    else:
        owner, is_weight = node, is_parameter_of_module(model, node) or is_leaf(model, node)
    path = dotted_path(owner)
    return _Weight(owner, path, steps) if is_weight and path is not None else None


def _module_of_state(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``net`` of ``net.state_dict()["fc.weight"]``."""
    match node:
        case cst.Subscript(value=cst.Call(func=cst.Attribute(attr=cst.Name(value="state_dict"), value=owner), args=[])):
            return owner if string_literal(subscript_index(node)) is not None else None
    return None


def _shares_memory(model: "Model", weight: _Weight) -> bool:
    """Whether nothing that was asked of a weight copies, as far as it is on the CPU where it is asked for that."""
    if model.framework != "torch":
        return _COPYING_IN_PADDLE.isdisjoint(weight.steps)
    bindings = model.reaching(root_of(weight.owner))
    is_made_here = bool(bindings) and all(item.kind is BindingKind.ASSIGN for item in bindings)
    return "cpu" not in weight.steps or is_made_here  # what a function is given may be somewhere else


def _loop_around(model: "Model", call: cst.Call, rows: cst.Name, weight: _Weight) -> Loop | None:
    """The outermost loop around a call that the list and the weight outlive."""
    found: Loop | None = None
    for loop in model.tree.loops_around(call):
        if _is_bound_inside(model, rows, rows.value, loop) or _gets_other_memory(model, weight, loop):
            break
        found = loop
    child: cst.CSTNode = call
    for ancestor in () if found is None else model.tree.ancestors(call):
        if ancestor is found:
            break
        is_branch = isinstance(ancestor, cst.If) and child is not ancestor.test
        if is_branch and (ends_loop(child) or _asks_for_one_round(model, ancestor)):
            return None  # it is put there in the last round, perhaps
        child = ancestor
    return found


def _asks_for_one_round(model: "Model", branch: cst.CSTNode) -> bool:
    """Whether the test of an ``if`` holds in one round of a loop: ``epoch == epochs - 1``."""
    return any(
        isinstance(part.operator, cst.Equal) and any(map(partial(_counts_rounds, model), (whole.left, part.comparator)))
        for whole in (subtree(branch.test) if isinstance(branch, cst.If) else ())
        if isinstance(whole, cst.Comparison)
        for part in whole.comparisons
    )


def _counts_rounds(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a loop binds what is read there, or something that is added to it is."""
    while isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        node = node.left
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    return any(item.kind is BindingKind.LOOP for item in bindings)


def _is_bound_inside(model: "Model", node: cst.BaseExpression, key: str, loop: Loop) -> bool:
    """Whether a loop binds a name or path anew, but for a change in place: ``w -= step``."""
    bound = model.scope_of(node).bindings.get(key, ())
    return any(model.tree.is_inside(item.node, loop) and not _is_change_in_place(model, item) for item in bound)


def _is_change_in_place(model: "Model", binding: Binding) -> bool:
    """Paddle gives the name a new tensor."""
    return binding.kind is BindingKind.AUGMENTED and model.framework == "torch"


def _gets_other_memory(model: "Model", weight: _Weight, loop: Loop) -> bool:
    """Whether a round of a loop may make the weight, or what holds it, anew, or move it."""
    words = weight.path.split(".")
    paths = [".".join(words[:count]) for count in range(1, len(words) + 1)]
    if any(_is_bound_inside(model, weight.owner, path, loop) for path in paths):
        return True
    names = {"data", *words[1:]}
    if any(target.attr.value in names for target in _attributes_set(model)):
        return True
    moves = (move for path in paths for move in method_calls(model, path, _MOVING))
    return any(model.tree.is_inside(move, loop) and isinstance(model.tree.parent(move), cst.Expr) for move in moves)


def _attributes_set(model: "Model") -> Iterator[cst.Attribute]:
    """The attributes to which statements of the file assign something, but for constructors."""
    for statement in model.tree.by_type.get(cst.Assign, ()):
        function = model.enclosing_function(statement)
        if function is None or function.name.value != "__init__":
            for item in statement.targets:
                if isinstance(item.target, cst.Attribute):
                    yield item.target


def _is_changed(model: "Model", loop: Loop, weight: _Weight) -> bool:
    """Whether the rounds of a loop surely write into the memory of a weight."""
    inside = [item for item in subtree(loop.body) if isinstance(item, (cst.Call, cst.AugAssign))]
    return any(
        _steps(model, item, loop, weight) or _writes(model, item, weight) or _trains(model, item, weight)
        for item in inside
    )


def _steps(model: "Model", call: cst.CSTNode, loop: Loop, weight: _Weight) -> bool:
    """Whether a call is a step of an optimizer that has the weight."""
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step":
        return False
    stepping = call.func.value
    made = only_assigned(model, stepping)
    if isinstance(made, cst.Call):
        return is_object(model.value(stepping), "optimizer") and _is_given(model, made, weight)
    # What a function is given: optimizers are asked to clear gradients, too.
    bindings = model.reaching(stepping)
    cleared = method_calls(model, dotted_path(stepping) or "", _CLEARING)
    is_parameter = bool(bindings) and all(item.kind is BindingKind.PARAMETER for item in bindings)
    return is_parameter and any(model.tree.is_inside(clear, loop) for clear in cleared)


def _is_given(model: "Model", made: cst.Call, weight: _Weight) -> bool:
    """Whether an optimizer is made with a weight, or with all parameters of what holds it."""
    for node in subtree(made):
        if not isinstance(node, (cst.Name, cst.Attribute)) or isinstance(model.tree.parent(node), cst.Attribute):
            continue
        is_asked = isinstance(node, cst.Attribute) and node.attr.value in GIVING_PARAMETERS
        path = dotted_path(node.value if is_asked and isinstance(node, cst.Attribute) else node)
        if path is not None and (path == weight.path or (is_asked and weight.path.startswith(f"{path}."))):
            return True
    return False


def _writes(model: "Model", node: cst.CSTNode, weight: _Weight) -> bool:
    """Whether a weight is changed in place: ``w.data -= rate * w.grad``, ``w.data.sub_(step)``."""
    own = (weight.path, f"{weight.path}.data")
    if isinstance(node, cst.AugAssign):
        return model.framework == "torch" and dotted_path(node.target) in own
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name), value=written)):
            return name in WRITING and dotted_path(written) in own
    return False


def _trains(model: "Model", call: cst.CSTNode, weight: _Weight) -> bool:
    """Whether what has the weight is handed to a function of the project that takes steps of an optimizer."""
    if not isinstance(call, cst.Call):
        return False
    given = {dotted_path(arg.value) for arg in call.args}
    callee = model.value(call.func) if weight.path.partition(".")[0] in given else None
    if not isinstance(callee, Function):
        return False
    inside = callee.definition.model.tree.calls_in(callee.definition.node)
    words = {last_word(item.func) for item in inside}
    return words.issuperset(UPDATING[:2]) and not words.isdisjoint(_CLEARING)


def _is_read_behind(model: "Model", rows: cst.Name, loop: Loop) -> bool:
    """Whether more than one entry of a list is read when a loop is over, and none is taken out before."""
    found = [use for binding in model.reaching(rows) for use in uses(model, binding)]
    if any(_takes_out(model, use) for use in found):
        return False
    return any(not model.tree.is_inside(use, loop) and _reads_more(model, use) for use in found)


def _takes_out(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether something may be taken out of a list, or put in the place of an entry."""
    parent = model.tree.parent(use)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value not in _HARMLESS
    above = model.tree.parent(parent) if isinstance(parent, cst.Subscript) else None
    return isinstance(parent, (cst.Del, cst.AugAssign)) or isinstance(above, (cst.AssignTarget, cst.Del, cst.AugAssign))


def _reads_more(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a list is read there, and not only how long it is, or one of its entries."""
    parent = model.tree.parent(use)
    if isinstance(parent, cst.Subscript):
        index = subscript_index(parent)
        return constant(index) is ... and not isinstance(index, cst.UnaryOperation)
    call = model.tree.call_given(use)
    return not isinstance(parent, cst.Attribute) and (call is None or dotted_path(call.func) not in _ASKING)
