"""Loads that skip the keys that do not match, where nobody looks at what was skipped."""

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
)
from mllint.semantic.checkpoints.handling import MAX_NAMES, uses
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.problems import problem_of
from mllint.semantic.checkpoints.saves import SAVES, calls_of_function
from mllint.semantic.checkpoints.starts import is_put_below, is_start
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Function, Module, Object, Value
from mllint.syntax.shape import argument, dotted_path
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

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
    if any(_is_written_under_condition(use, model) for use in uses(node, model)):
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
