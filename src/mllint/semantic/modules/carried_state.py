"""State that a module carries from call to call in a plain attribute: a queue, or a statistic that is kept up to date.

It is no part of the state dict. Who loads the module again begins anew, wherever the tensor was moved to.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.modules.fates import NOT_NUMBERS
from mllint.semantic.modules.handed_over import is_given_on_by_others
from mllint.semantic.modules.made_on_cpu import FACTORIES
from mllint.semantic.modules.other_objects import from_outside, is_assigned_from_outside
from mllint.semantic.modules.plain_tensors import has_no_elements, is_leaf_to_train
from mllint.semantic.modules.unsaved_draws import SAVING
from mllint.semantic.names.classes import Assignment, Members, Read, Role
from mllint.semantic.names.conditions import conditions, is_in_another_branch
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.names.writes import Write, write
from mllint.semantic.values import Nothing, Number
from mllint.syntax.shape import before_methods, constant, dotted_path, is_super_call, items_of, last_word, part_at
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 6
# What makes one tensor of several rows, as a statistic of a batch is made.
_REDUCING = frozenset({"mean", "sum", "var", "std", "norm", "amax", "amin", "max", "min", "median", "bincount"})
_CUTTING = frozenset({"detach"})
_JOINING = frozenset(
    {"cat", "concat", "concatenate", "stack", "lerp", "maximum", "minimum", "where", "add", "max", "min"}
)
# What leaves the numbers of a tensor as they are.
_SAME_NUMBERS = frozenset({
    "to", "cuda", "cpu", "detach", "clone", "contiguous", "type", "type_as", "float", "double", "half", "long", "data",
    "view", "reshape", "requires_grad_", "detach_", "astype", "cast",
})  # fmt: skip
_MAKERS = frozenset(name.removeprefix("torch.") for name in FACTORIES) | {"to_tensor"}
_REPLACING = frozenset({"copy_()", "set_value()", "resize_()", "resize_as_()", "set_()"})
_ANEW = frozenset({"zero_", "fill_", "normal_", "uniform_", "random_", "zeros_", "ones_", "constant_", "normal_()"})
_LOOKING = frozenset(
    {"print", "hasattr", "isinstance", "len", "log", "append", "format", "add_scalar", "debug", "info"}
)


def is_carried(members: Members, name: str, beginning: Assignment) -> bool:
    """Whether an attribute begins as a tensor of known size and is then kept up to date, and read, from call to call.

    ``beginning`` is where it is made. Nobody sets it back, registers it, or saves it in some other way.
    """
    if not begins(members, name, beginning):
        return False
    places = list(members.assignments(name))
    if is_looked_after(members, places):
        return False
    reads = list(members.reads(name))
    updates = [*_updates_by_assignment(places, name, members), *_updates_in_place(reads, name, members)]
    if not updates or not any(_is_statistic(model, node, value) for model, node, value in updates):
        return False
    if any(_sets_back(members, name, place, updates) for place in places) or any(
        _is_emptied(members, read) for read in reads
    ):
        return False
    if is_set_back_from_outside(members, name) or is_given_on_by_others(members, name):
        return False
    return any(is_used(members, read, [node for _, node, _ in updates]) for read in reads)


def is_looked_after(members: Members, places: list[Assignment]) -> bool:
    """Whether an attribute, to which these places assign, may be registered, or the class saves more than a module."""
    is_saved = any(word in info.methods for info in members.definition.lineage for word in SAVING)
    return is_saved or members.sets_computed_names or any(_is_registered(place) for place in places)


Update = tuple["Model", cst.CSTNode, cst.BaseExpression | None]
"""A statement that brings an attribute up to date, and what it adds or writes."""


def begins(members: Members, name: str, place: Assignment) -> bool:
    """Whether a tensor is made of a size alone where the module is set up, or where it is found not to be there."""
    if place.value is None or place.method is None or not _looks_new(place.value):
        return False
    if has_no_elements(place.model, place.value):
        return False
    if not _is_new(place.model, place.value) or is_leaf_to_train(place.model, place.value):
        return False  # a leaf is trained by hand
    return place.method in members.setting_up or _is_missing_at(members, name, place.model, place.node, place.method)


def _looks_new(node: cst.BaseExpression) -> bool:
    """Whether something in an expression is called as what makes tensors is: nothing is asked of the model for that."""
    return any(isinstance(part, cst.Call) and last_word(part.func) in _MAKERS for part in subtree(node))


def _is_new(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a new tensor is made of numbers: nothing in it registers one, as ``nn.Buffer`` does."""
    called = [model.qualified_name(part.func) for part in subtree(node) if isinstance(part, cst.Call)]
    made = [item for item in called if item is not None]
    if any(item.startswith(("torch.nn.", "paddle.nn.")) and ".functional." not in item for item in made):
        return False
    return any(item in FACTORIES or _is_factory_of_paddle(item) for item in made)


def _is_factory_of_paddle(name: str) -> bool:
    if name == "paddle.to_tensor":
        return True
    return name.startswith("paddle.") and name.replace("paddle.", "torch.", 1) in FACTORIES


def _is_missing_at(
    members: Members, name: str, model: "Model", node: cst.CSTNode, method: "FunctionInfo | None", steps: int = 2
) -> bool:
    """Whether a place is reached only where the attribute was not made before: ``if self.bank is None``."""
    if method is None or steps == 0:
        return False
    if any(_asks_whether_there(test, f"{method.self_name}.{name}", name) for test in conditions(model, node)):
        return True
    if method.name in ("forward", "__init__"):
        return False
    calls = [call for call, _ in calls_of(model, method)]
    return bool(calls) and all(
        _is_missing_at(members, name, model, call, function_around(model, call), steps - 1) for call in calls
    )


def _asks_whether_there(test: cst.BaseExpression, path: str, name: str) -> bool:
    for part in subtree(test):
        if isinstance(part, cst.Comparison) and dotted_path(part.left) == path:
            operators = (item.operator for item in part.comparisons if constant(item.comparator) is None)
            if any(isinstance(item, (cst.Is, cst.Equal)) for item in operators):
                return True
        is_asked = isinstance(part, cst.Call) and last_word(part.func) == "hasattr" and len(part.args) == 2
        if is_asked and isinstance(part, cst.Call) and constant(part.args[1].value) == name:
            return True
    return False


def _is_registered(place: Assignment) -> bool:
    return place.setter is not None or place.role in (Role.BUFFER, Role.PARAMETER, Role.SUBMODULE, Role.CONTAINER)


# -- what brings it up to date -----------------------------------------------------------------------------------------


def _updates_by_assignment(places: list[Assignment], name: str, members: Members) -> Iterator[Update]:
    for place in places:
        if place.method is None or place.method in members.setting_up:
            continue
        if isinstance(place.node, cst.AugAssign):
            yield place.model, place.node, place.node.value
        elif place.value is not None and _goes_on(
            place.model, place.value, f"{place.method.self_name}.{name}", MAX_STEPS
        ):
            yield place.model, place.node, place.value


def _goes_on(model: "Model", node: cst.BaseExpression, path: str, steps: int) -> bool:
    """Whether something is computed of what the attribute held and of something else."""
    if steps == 0:
        return False
    node = _bare(node)
    match node:
        case cst.BinaryOperation():
            sides = (node.left, node.right)
            held = [side for side in sides if _mentions(model, side, path, steps - 1)]
            others = [side for side in sides if side not in held]
            if any(not _is_number(model, side) for side in others):
                return bool(held)
            return any(_goes_on(model, side, path, steps - 1) for side in held)
        case cst.Call():
            word = last_word(node.func)
            if word in _JOINING and len(node.args) + len(_items(node)) > 1:
                return _mentions(model, node, path, steps - 1)
            return word == "normalize" and any(_goes_on(model, arg.value, path, steps - 1) for arg in node.args)
        case cst.Name():
            made = only_assigned(model, node)
            return made is not None and made is not node and _goes_on(model, made, path, steps - 1)
    return False


def _items(call: cst.Call) -> list[cst.BaseExpression]:
    first = call.args[0].value if call.args else None
    return [item.value for item in first.elements] if isinstance(first, (cst.List, cst.Tuple)) else []


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression without what only moves it, or takes a part of it."""
    while True:
        if isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "data"):
            node = node.value
        elif (inner := before_methods(node, _SAME_NUMBERS)) is not node:
            node = inner
        else:
            return node


def _mentions(model: "Model", node: cst.BaseExpression, path: str, steps: int) -> bool:
    for part in subtree(node):
        if isinstance(part, cst.Attribute) and dotted_path(part) == path:
            return True
        if steps > 0 and isinstance(part, cst.Name):
            made = only_assigned(model, part)
            if made is not None and _mentions(model, made, path, steps - 1):
                return True
    return False


def _is_number(model: "Model", node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.BaseNumber, cst.UnaryOperation)) or isinstance(model.value(node), Number)


def _updates_in_place(reads: list[Read], name: str, members: Members) -> Iterator[Update]:
    for read in reads:
        if read.method in members.setting_up:
            continue
        model = read.method.model
        statement = model.tree.statement_around(read.node)
        change = None if statement is None else write(model, statement)
        if statement is None or change is None or not _is_of(change, f"{read.method.self_name}.{name}"):
            continue
        if not model.tree.is_below(read.node, change.target) and read.node is not change.target:
            continue
        value = getattr(statement, "value", None)
        is_whole = change.how in _REPLACING and not isinstance(change.target, cst.Subscript)
        path = f"{read.method.self_name}.{name}"
        if is_whole and not any(_goes_on(model, arg.value, path, MAX_STEPS) for arg in getattr(value, "args", ())):
            continue  # nothing is left of what it held
        yield model, statement, value


def _is_of(change: Write, path: str) -> bool:
    return dotted_path(_bare(change.target)) == path and change.how.removesuffix("()") not in _ANEW


def _is_statistic(model: "Model", statement: cst.CSTNode, value: cst.BaseExpression | None) -> bool:
    """Whether what is added comes of a whole batch, or is written for a later one: no state of one sequence."""
    if value is None:
        return False
    if any(last_word(part) == "training" for test in conditions(model, statement) for part in subtree(test)):
        return True
    is_written = isinstance(statement, cst.Assign) and isinstance(statement.targets[0].target, cst.Subscript)
    is_joined = isinstance(value, cst.Call) and last_word(value.func) in _JOINING
    if (is_written or is_joined) and _calls(model, value, _CUTTING, 1):
        return True
    return model.gradients.off(statement) is True or is_reduced(model, value)


def is_reduced(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether rows are made one for an expression, in it or for a local name in it."""
    return _calls(model, node, _REDUCING, MAX_STEPS)


def _calls(model: "Model", node: cst.BaseExpression, words: frozenset[str], steps: int) -> bool:
    for part in subtree(node):
        if isinstance(part, cst.Call) and last_word(part.func) in words:
            return True
        if steps > 0 and isinstance(part, cst.Name):
            made = only_assigned(model, part)
            if made is not None and made is not node and _calls(model, made, words, steps - 1):
                return True
    return False


# -- what sets it back, and what it is for -----------------------------------------------------------------------------


def _sets_back(members: Members, name: str, place: Assignment, updates: list[Update]) -> bool:
    """Whether an assignment throws away what the attribute held, when the module has begun to run."""
    if place.method is None:
        return place.value is not None and not isinstance(place.model.value(place.value), Nothing)
    if place.method in members.setting_up or any(node is place.node for _, node, _ in updates):
        return False
    path = f"{place.method.self_name}.{name}"
    value = place.value or _part(place.node, path)
    if value is None:
        return not isinstance(place.node, cst.AnnAssign)
    if dotted_path(_bare(value)) == path or (_mentions(place.model, value, path, 1) and not _is_of_shape(value)):
        return False
    if _is_missing_at(members, name, place.model, place.node, place.method):
        return False
    return not all(model is place.model and is_in_another_branch(model, place.node, node) for model, node, _ in updates)


def _part(statement: cst.CSTNode, path: str) -> cst.BaseExpression | None:
    """What an attribute gets of several things that are written out: ``self.a, self.b = x, y``."""
    targets = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if not isinstance(statement, cst.Assign) or not isinstance(targets, (cst.Tuple, cst.List)):
        return None
    position = next((index for index, item in enumerate(targets.elements) if dotted_path(item.value) == path), None)
    return None if position is None else part_at(statement.value, (position,))


def _is_of_shape(node: cst.BaseExpression) -> bool:
    """Whether a new tensor is made that has no more of another one than its shape: ``torch.zeros_like(x)``."""
    node = _bare(node)
    word = (last_word(node.func) or "") if isinstance(node, cst.Call) else ""
    return word.endswith("_like") or word.startswith("new_") or f"torch.{word}" in FACTORIES


def _is_emptied(members: Members, read: Read) -> bool:
    """Whether a method that runs later on sets all numbers back: ``self.total.zero_()``."""
    model = read.method.model
    if read.method in members.setting_up:
        return False
    statement = model.tree.statement_around(read.node)
    change = None if statement is None else write(model, statement)
    if change is None or statement is None:
        return False
    if change.how.removesuffix("()") in _ANEW:
        return True
    value = getattr(statement, "value", None)
    return change.how == "[...] =" and constant(value) is not ... and _is_everything(statement)


def _is_everything(statement: cst.BaseSmallStatement) -> bool:
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if not isinstance(target, cst.Subscript):
        return False
    return all(
        isinstance(item.slice, cst.Slice) and item.slice.lower is None and item.slice.upper is None
        for item in target.slice
    )


def is_set_back_from_outside(members: Members, name: str) -> bool:
    """Whether those who have an object call a method with which it begins anew, or assign to the attribute."""
    definition = members.definition
    setting = {
        place.method.name for place in members.assignments(name) if place.method in members.setting_up and place.method
    } | {read.method.name for read in members.reads(name) if read.method in members.setting_up}
    setting -= {"__init__"}
    if is_assigned_from_outside(definition, name):
        return True
    return any(
        model.tree.call_of(node) and not is_super_call(node.value)
        for model in (*members.models, *definition.model.importers(*setting))
        for word in setting
        for node in from_outside(definition, model, word)
    )


def is_used(members: Members, read: Read, updates: list[cst.CSTNode], *, anywhere: bool = False) -> bool:
    """Whether the module computes with what it held, but to bring it up to date, or to look at it."""
    model = read.method.model
    if read.method in members.setting_up or any(model.tree.is_below(read.node, node) for node in updates):
        return False
    parent = model.tree.parent(read.node)
    if isinstance(parent, cst.Attribute) and parent.attr.value in (*NOT_NUMBERS, "device", "zero_", "fill_"):
        return False
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.If)):
        return False
    for ancestor in model.tree.ancestors(read.node):
        if isinstance(ancestor, cst.Call) and last_word(ancestor.func) in _LOOKING:
            return False
        if isinstance(ancestor, (cst.Assign, cst.AnnAssign)):
            target = ancestor.targets[0].target if isinstance(ancestor, cst.Assign) else ancestor.target
            if any(isinstance(_bare(item), cst.Attribute) for item in items_of(target)):
                return False  # moved, or kept for somebody who looks at it
        if isinstance(ancestor, cst.BaseSmallStatement):
            break
    return anywhere or read.method in members.reachable("forward")
