"""Buffers that a module registers when it is called: one that was made a moment ago has none of them to load into."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.modules.unsaved_draws import SAVING
from mllint.semantic.names.receivers import method_of_receiver
from mllint.syntax.shape import argument, called_on, constant, is_super_call, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_RUNNING = "forward"


def registered_late(model: "Model", call: cst.Call) -> str | None:
    """The name of a buffer that is saved, and registered nowhere but in the ``forward`` of its module."""
    receiver, name = called_on(call), argument(call, 0, "name")
    method = None if receiver is None else method_of_receiver(model, receiver)
    owner = None if method is None else method.owner
    word = None if name is None else string_literal(name.value)
    if method is None or owner is None or owner.framework is None or word is None or is_test_code(model):
        return None
    if not _is_saved(call, owner.framework) or owner.has_unknown_base or owner.members.sets_computed_names:
        return None
    if any(saving in info.methods for info in owner.lineage for saving in SAVING):
        return None
    members = owner.members
    running, begun = members.reachable(_RUNNING), members.reachable("__init__")
    if method not in running or method in begun or _runs_before(owner, method):
        return None
    places = list(members.assignments(word))
    return word if all(place.method in running and place.method not in begun for place in places) else None


def _is_saved(call: cst.Call, framework: str) -> bool:
    keyword = "persistent" if framework == "torch" else "persistable"
    flag = argument(call, 2, keyword)
    return not any(arg.star for arg in call.args) and (flag is None or constant(flag.value) is True)


def _runs_before(owner: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether somebody may call the method before a state is loaded: those who have an object, or another method."""
    members, model = owner.members, method.model
    if method.name == _RUNNING:
        return False
    callers = [model.enclosing_function(call) for call, _ in calls_of(model, method)]
    running = {id(info.node) for info in members.reachable(_RUNNING)}
    if any(id(caller) not in running for caller in callers):
        return True
    return any(
        not is_super_call(node.value)
        for home in (*members.models, *owner.model.importers(method.name))
        for node in from_outside(owner, home, method.name)
    )
