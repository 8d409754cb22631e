"""Loads that skip the keys that do not match, where nobody looks at what was skipped, or takes the report of it for
the model.
"""

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State, Whole
from mllint.semantic.checkpoints.deliberate import (
    holds_other_things,
    is_download,
    is_given_by_object,
    is_handed_in,
    is_made_of_module,
    is_one_of_parts,
    is_one_of_several,
    is_relieved_of_entries,
    is_shown_both,
    is_strict_beside,
    is_strict_otherwise,
    is_written_out,
    parts_of,
)
from mllint.semantic.checkpoints.handling import MAX_NAMES, names_behind, uses_in_function
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.problems import problem_of
from mllint.semantic.checkpoints.saves import SAVES, calls_of_function
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.expressions.arguments import callers, calls_of
from mllint.semantic.names.classes import Role
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Function, Module, Object, Value
from mllint.syntax.shape import argument, dotted_path, root_of, targets_of
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MAX_PARTS = 60
"""How many parts of a path are read for words."""

_BESIDE_THE_CODE = frozenset({"__file__", "directory"})


def is_unchecked(load: Load) -> bool:
    """Whether a load skips keys that do not match, may meet such keys, and nothing around it has looked at them."""
    if load.is_strict is not False or isinstance(load.value, Object) or dotted_path(load.receiver) is None:
        return False
    content = Tracer(load.model).content(load.given)
    if isinstance(content, Record) or (isinstance(content, State) and not _is_of_another_class(load, content)):
        return False
    if problem_of(load) is not None:
        return False  # what surely does not fit is more than unchecked
    if _is_second_try(load) or _compares_keys(load) or _selects_entries(load.given, load.model):
        return False
    if is_relieved_of_entries(load) or is_written_out(load) or is_put_below(content):
        return False
    if content is None and isinstance(load.given, cst.Attribute):
        return False  # a part that somebody has put aside
    if content is None and (is_one_of_several(load) or is_made_of_module(load) or is_given_by_object(load)):
        return False
    if (
        is_download(load)
        or is_start(load)
        or is_handed_in(load)
        or is_strict_otherwise(load)
        or is_strict_beside(load)
        or is_shown_both(load)
        or is_one_of_parts(load)
        or holds_other_things(load)
        or _is_saved_in_part(load)
    ):
        return False
    if load.method == "load_state_dict":
        return load.framework is not None
    return load.framework == "paddle" and _may_differ(load, content)


def _is_saved_in_part(load: Load) -> bool:
    """Whether the same class, or a function beside the one that loads, saves chosen entries of a state dict only."""
    model = load.model
    return any(
        _is_beside(call, load.call, model) and any(_selects_entries(part, model) for part in _parts_of_saved(call))
        for call in calls_of_function(model, "save")
        if model.qualified_name(call.func) in SAVES
    )


def _is_beside(one: cst.CSTNode, other: cst.CSTNode, model: "Model") -> bool:
    """Whether two places stand in the same class, or both in none."""
    return model.tree.nearest(one, cst.ClassDef) is model.tree.nearest(other, cst.ClassDef)


def _parts_of_saved(call: cst.Call) -> list[cst.BaseExpression]:
    """What a call saves, and the entries of a dict that is written there."""
    what = argument(call, 0, "obj")
    if what is None:
        return []
    inside = what.value.elements if isinstance(what.value, cst.Dict) else ()
    return [what.value, *(item.value for item in inside)]


def _is_second_try(load: Load) -> bool:
    """Whether the load stands where a strict one has failed, which somebody has been told of."""
    for ancestor in load.model.tree.ancestors(load.call):
        if isinstance(ancestor, cst.ExceptHandler):
            return True
        if isinstance(ancestor, cst.FunctionDef):
            break
    return False


def _may_differ(load: Load, content: Content | None) -> bool:
    """Whether there is reason to think that what is loaded is not just what the same class has saved."""
    if load.value is None and "opt" in (dotted_path(load.receiver) or "").lower():
        return False
    match content:
        case State():
            return True
        case FromFile() if content.renames:
            return True
        case FromFile():
            return _is_pretrained(content) and not any(
                _may_hold_module(saved.content) for saved in load.model.surroundings.saved
            )
    return False


def _is_pretrained(content: FromFile) -> bool:
    """Whether the words in the path of a file say that it comes from another training.

    What lies beside the code itself was put there for it.
    """
    call = content.place.node
    model = content.place.model
    pending: list[cst.CSTNode] = list(call.args[:1]) if isinstance(call, cst.Call) else []
    words: list[str] = []
    for _ in range(MAX_PARTS):
        if not pending:
            break
        part = pending.pop()
        if isinstance(part, (cst.Name, cst.SimpleString)):
            words.append(part.value.lower())
        if isinstance(part, cst.BaseExpression):
            values = [binding.value for binding in model.reaching(part) if binding.kind is BindingKind.ASSIGN]
            pending += [value for value in values if value is not None]
        pending += children(part)
    return any("pretrain" in word for word in words) and not _BESIDE_THE_CODE & set(words)


def _may_hold_module(content: Content | None) -> bool:
    """Whether something that is saved may be, or hold, the state of a module."""
    match content:
        case State():
            return not isinstance(content.owner, Object)
        case Record():
            return content.is_open or any(map(_may_hold_module, content.items.values()))
    return content is None or isinstance(content, Whole)


def _is_of_another_class(load: Load, content: State) -> bool:
    """Whether a state dict surely is that of another class than what it is loaded into."""
    owner, value = content.owner, load.value
    if not isinstance(owner, Module) or not isinstance(value, Module):
        return False
    if owner.definition is not None and value.definition is not None:
        return not owner.definition.is_same_as(value.definition)
    are_known = all(module.definition is not None or module.name is not None for module in (owner, value))
    return are_known and (owner.definition is not value.definition or owner.name != value.name)


def _compares_keys(load: Load) -> bool:
    """Whether the function asks the module itself which keys it has: before, or afterwards for a list of them."""
    model = load.model
    receiver = f"{dotted_path(load.receiver)}."
    function = model.enclosing_function(load.call)
    calls = model.tree.by_type[cst.Call]
    order = {id(call): index for index, call in enumerate(calls)}
    for word in ("state_dict", "named_parameters", "named_buffers"):
        for call in model.calls_by_word.get(word, ()):
            if model.enclosing_function(call) is not function or not isinstance(call.func, cst.Attribute):
                continue
            asked = f"{dotted_path(call.func.value)}."
            if not asked.startswith(receiver) or _is_kept(call, model):
                continue
            is_before = order[id(call)] < order[id(load.call)] or model.tree.is_below(call, load.call)
            if is_before or isinstance(model.tree.parent(call), cst.CompFor):
                return True
    return False


def _is_kept(call: cst.Call, model: "Model") -> bool:
    """Whether a state dict is put into a file, or into another dict, as it is."""
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, cst.Dict):
            return True
        if isinstance(ancestor, cst.Call) and "save" in (dotted_path(ancestor.func) or ""):
            return True
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            break
    return False


def _selects_entries(node: cst.BaseExpression, model: "Model", depth: int = 0) -> bool:
    """Whether entries of the dict were chosen under a condition on the way here."""
    if isinstance(node, cst.DictComp):
        source = node.for_in.iter.func if isinstance(node.for_in.iter, cst.Call) else None  # of ``loaded.items()``
        is_chosen = isinstance(source, cst.Attribute) and _selects_entries(source.value, model, depth + 1)
        return any(part.ifs for part in subtree(node.for_in) if isinstance(part, cst.CompFor)) or is_chosen
    if isinstance(node, cst.Subscript):
        return _selects_entries(node.value, model, depth)
    if isinstance(node, cst.Call):
        return depth <= MAX_NAMES and _is_selecting(model.value(node.func), depth)
    if dotted_path(node) is None or depth > MAX_NAMES:
        return False
    if any(_is_written_under_condition(use, model) for use in uses_in_function(node, model)):
        return True
    values = [binding.value for binding in model.reaching(node) if binding.kind is BindingKind.ASSIGN]
    return any(value is not None and _selects_entries(value, model, depth + 1) for value in values)


def _is_selecting(function: Value | None, depth: int) -> bool:
    """Whether a function of the project returns chosen entries of a dict."""
    if not isinstance(function, Function):
        return False
    returned = [item.value for item in function.definition.scope.returns if item.value is not None]
    return any(_selects_entries(value, function.definition.model, depth + 1) for value in returned)


def _is_written_under_condition(use: cst.BaseExpression, model: "Model") -> bool:
    """Whether a use is ``for ...: if ...: use[k] = v``, or stands below ``if ...: continue`` there."""
    item = model.tree.parent(use)
    if not isinstance(item, cst.Subscript) or item.value is not use:
        return False
    above = model.tree.parent(item)
    if isinstance(above, cst.Subscript) and above.value is item:
        item = above  # a dict in the dict: `checkpoint["model"][k] = v`
    if not isinstance(model.tree.parent(item), (cst.AssignTarget, cst.Del)):
        return False
    is_conditional = False
    for ancestor in model.tree.ancestors(item):
        if isinstance(ancestor, cst.For):
            return is_conditional or any(_skips_round(statement) for statement in ancestor.body.body)
        is_conditional = is_conditional or isinstance(ancestor, cst.If)
    return False


def _skips_round(statement: cst.CSTNode) -> bool:
    """Whether a statement of a loop is ``if ...: continue``."""
    if not isinstance(statement, cst.If):
        return False
    return any(isinstance(part, cst.Continue) for part in subtree(statement.body))


_PROBE = "layer1.0.conv.weight"


def is_start(load: "Load") -> bool:
    """Whether a module takes over what fits of another network, as a backbone does of a classifier.

    A module that loads into itself where it is made, or into a part of its own beside others. Where the words say that
    the file is of another training, also a module that loads into itself later, a part of any module, and one that a
    function builds and gives back. The whole model of a training is none: whether its file was read shows nowhere else.
    """
    method = method_of_receiver(load.model, root_of(load.receiver))
    owner = None if method is None else method.owner
    steps = (dotted_path(load.receiver) or "").count(".")
    if method is None:
        is_one = steps > 0 or _is_built_here(load)
    elif owner is None or not isinstance(owner.instance(), Module):
        is_one = steps > 1  # what a trainer holds is a whole model
    else:
        is_made = method in owner.members.setting_up
        if is_made and (steps == 0 or _has_other_parts(owner, load.receiver)):
            return True
        is_one = True
    return is_one and _says_pretrained(load)


def is_put_below(content: "Content | None") -> bool:
    """Whether every key was put behind the name of a part: ``state["backbone." + key] = value``. The rest is absent."""
    if not isinstance(content, FromFile) or not content.renames:
        return False
    keys: tuple[str, ...] = (_PROBE,)
    for rename in content.renames:
        made = [rename(key) for key in keys]
        keys = tuple(key for several in made for key in several or ())
    return any(key != _PROBE and key.endswith(_PROBE) and not key.startswith(WRAPPER_PREFIXES) for key in keys)


def _has_other_parts(owner: "ClassInfo", part: cst.BaseExpression) -> bool:
    """Whether a constructor makes other modules beside a part: that the part is all there is, nobody can tell then."""
    constructor = owner.method("__init__")
    name = (dotted_path(part) or "").split(".")[1:2]
    if constructor is None:
        return False
    prefix = f"{constructor.self_name}."
    others = (key.split(".")[1] for key in constructor.scope.bindings if key.startswith(prefix))
    return any(
        assignment.role in (Role.SUBMODULE, Role.PARAMETER)
        for other in dict.fromkeys(others)
        if [other] != name
        for assignment in owner.members.assignments(other)
    )


def _says_pretrained(load: "Load") -> bool:
    """Whether the words of the file's path, or of what is around the load, say that it is of another training.

    That is the function's name, and what is asked before: ``if pretrained:``.
    """
    function = load.model.enclosing_function(load.call)
    words = [] if function is None else [function.name.value]
    asked = (part for test in conditions(load.model, load.call) for part in subtree(test))
    words += [
        part.value for part in itertools.chain(parts_of(load), asked) if isinstance(part, (cst.Name, cst.SimpleString))
    ]
    # What the dict itself is called says less.
    behind = [part for name in names_behind(load.given, load.model) for part in subtree(name)]
    held = {part.value for part in behind if isinstance(part, cst.Name)}
    return any("pretrain" in word.lower() for word in words if word not in held)


def _is_built_here(load: "Load") -> bool:
    """Whether the function around a load makes the module and gives it back."""
    function = load.model.enclosing_function(load.call)
    if function is None or not isinstance(load.value, Module) or not isinstance(load.receiver, cst.Name):
        return False
    scope = load.model.function_info(function).scope
    is_made = any(binding.kind is BindingKind.ASSIGN for binding in scope.bindings.get(load.receiver.value, ()))
    returned = (item.value for item in scope.returns if item.value is not None)
    return is_made and any(dotted_path(value) == load.receiver.value for value in returned)


AS_MODEL = frozenset({
    "eval", "train", "cuda", "cpu", "to", "half", "float", "parameters", "state_dict", "load_state_dict", "forward",
    "named_parameters", "modules", "zero_grad", "step", "set_state_dict", "sublayers", "requires_grad_",
})  # fmt: skip
"""What a module or an optimizer is asked, and neither the report nor ``None``."""
MAX_STEPS = 3
"""Through how many functions that hand it on, and names that hold it, a report is followed."""


def is_bound_to_model(model: "Model", target: cst.BaseExpression, statement: cst.CSTNode, steps: int = 0) -> bool:
    """Whether a later use of the report that a statement binds calls it, or asks it what only a model is asked.

    Also where the function returns it, and one of those who call that takes it for a model.
    """
    bound = (binding for binding in bound_by(model, statement) if binding.key == dotted_path(target))
    return any(_is_model_at(model, use, steps) for binding in bound for use in uses(model, binding))


def _is_model_at(model: "Model", use: cst.BaseExpression, steps: int) -> bool:
    node, parent = use, model.tree.parent(use)
    if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value in AS_MODEL:
        node = parent
    if model.tree.call_of(node) is not None:
        return True
    return isinstance(parent, cst.Return) and is_returned_as_model(model, parent, steps)


def is_returned_as_model(model: "Model", statement: cst.Return, steps: int = 0) -> bool:
    """Whether one of the calls of the function, in its file or in one that imports it, takes the report for a model."""
    function = model.enclosing_function(statement)
    if function is None or steps >= MAX_STEPS:
        return False
    info = model.function_info(function)
    if not info.is_plain or not info.is_transparent:
        return False
    return any(
        _is_taken_for_model(home, call, steps + 1) for home, seen in callers(info) for call, _ in calls_of(home, seen)
    )


def _is_taken_for_model(model: "Model", call: cst.Call, steps: int) -> bool:
    if _is_model_at(model, call, steps):
        return True
    statement = model.tree.parent(call)
    if not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is not call:
        return False
    return any(is_bound_to_model(model, target, statement, steps) for target in targets_of(statement))
