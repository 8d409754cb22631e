"""Modules that are themselves kept as the best: ``best_model = model`` copies nothing."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.aliases import alias_of
from mllint.semantic.checkpoints.snapshots import Snapshot
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.uses import method_calls
from mllint.semantic.values import Module
from mllint.syntax.shape import called_on, dotted_path, items_of, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

BEST = "best"


def keeps_best(statement: cst.Assign) -> bool:
    """Whether a name or attribute becomes what is called the best."""
    if len(statement.targets) != 1 or not isinstance(statement.value, (cst.Name, cst.Attribute, cst.Tuple, cst.Call)):
        return False
    if isinstance(statement.value, cst.Call) and last_word(statement.value.func) != "copy":
        return False
    return any(BEST in (last_word(part) or "").lower() for part in items_of(statement.targets[0].target))


def kept_model(model: "Model", statement: cst.Assign) -> Snapshot | None:
    """The module that a statement keeps as the best of the rounds of a loop, and that is used so when it is over.

    Not where the module is made anew by a round of the loop, or may be by a method: then it is another one each time.
    Nor where something is loaded into it in the function: that may be the best state, from a file.
    """
    value = statement.value
    if isinstance(value, cst.Call) and model.qualified_name(value.func) == "copy.copy" and len(value.args) == 1:
        value = value.args[0].value
    for node in items_of(value):
        path = dotted_path(node)
        alias = None if path is None else alias_of(model, node)
        if alias is None or path is None or alias.is_entry or BEST in path.lower():
            continue
        if BEST not in (last_word(alias.holder) or "").lower() or not isinstance(model.value(node), Module):
            continue
        snapshot = Snapshot(model, alias)
        if snapshot.is_of_best_round and not _is_loaded(model, snapshot) and _is_made_once(model, node, path):
            return snapshot if snapshot.is_stale else None
    return None


def _is_loaded(model: "Model", snapshot: Snapshot) -> bool:
    function = model.enclosing_function(snapshot.alias.statement)
    loads = (call for path in (snapshot.path, snapshot.key) for call in method_calls(model, path, LOADING))
    return any(model.enclosing_function(call) is function for call in loads)


def _is_made_once(model: "Model", node: cst.BaseExpression, path: str) -> bool:
    """Whether no method but the constructor gives an attribute another value than its own on a device."""
    function = model.enclosing_function(node)
    info = None if function is None or "." not in path else model.function_info(function)
    if info is None:
        return "." not in path
    if info.owner is None or path.partition(".")[0] != info.self_name or path.count(".") > 1:
        return False
    for item in model.tree.by_type.get(cst.Assign, ()):
        method = function_around(model, item)
        if method is None or method.owner is not info.owner or not isinstance(item, cst.Assign):
            continue
        sets = any(dotted_path(part) == path for target in item.targets for part in items_of(target.target))
        if sets and method.name != "__init__" and not _is_itself(item, path):
            return False
    return True


def _is_itself(statement: cst.Assign, path: str) -> bool:
    """``self.net = self.net.to(device)``."""
    operand = called_on(statement.value)
    return operand is not None and dotted_path(operand) == path
