"""States that are loaded into two things, or saved under the keys of two, of which one is an optimizer, or the like.

``net.load_state_dict(saved.state)``, ``optimizer.load_state_dict(saved.state)``: it is that of one of the two.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge.words import LOADING, STATEFUL
from mllint.semantic.checkpoints.counterparts import OF_TRAINING
from mllint.semantic.checkpoints.handling import branches_without, uses_in_function
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.saving import Part, parts, saved
from mllint.semantic.expressions.arguments import calls_of, given_to, passed_for
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Function, Module, Object
from mllint.syntax.shape import dotted_path, fingerprint, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class SharedState(NamedTuple):
    """Where a state is given for an optimizer, and where the same one is given for a module."""

    given: cst.BaseExpression
    other: cst.BaseExpression


def shared_state(load: Load) -> SharedState | None:
    """The places where what is loaded into an optimizer, and into a module, is given for the two."""
    if not isinstance(load.value, Object) or load.value.kind not in STATEFUL or not _has_several_loads(load.model):
        return None
    for given in _given(load):
        if _is_named_for_training(given):
            continue
        for other in _same(load.model, given):
            if other is not given and _run_together(load.model, given, other) and _goes_into_module(load.model, other):
                return SharedState(given, other)
    return None


def _has_several_loads(model: "Model") -> bool:
    """Whether the file has more than one load: it is asked of every one."""
    return sum(len(model.calls_by_word.get(word, ())) for word in LOADING) > 1


def _given(load: Load) -> list[cst.BaseExpression]:
    """What is loaded; where that is a parameter, what the calls in the file pass for it."""
    bindings = load.model.reaching(load.given)
    function = bindings[0].scope.node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    if not isinstance(function, cst.FunctionDef) or not isinstance(bindings[0].node, cst.Param):
        return [load.given]
    return [load.given, *passed_for(load.model, load.model.function_info(function), bindings[0].node)]


def _is_named_for_training(given: cst.BaseExpression) -> bool:
    """Whether the key, or the name, tells that it is no state of a module."""
    key = string_literal(subscript_index(given)) if isinstance(given, cst.Subscript) else last_word(given)
    return key is not None and key.lower().startswith(("opt", *OF_TRAINING))


def _run_together(model: "Model", one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether neither of two places is reached without the other, by what stands around them."""
    return not branches_without(one, other, model) and not branches_without(other, one, model)


def _same(model: "Model", given: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The places in the function that give the very same thing: ``checkpoint.state``, ``checkpoint["state"]``."""
    root = given
    while isinstance(root, (cst.Subscript, cst.Attribute)):
        root = root.value
    text, bindings = fingerprint(given), model.reaching(root)
    if not isinstance(root, cst.Name) or not bindings:
        return
    for use in uses_in_function(root, model):
        node: cst.CSTNode | None = use
        while node is not None and isinstance(parent := model.tree.parent(node), (cst.Subscript, cst.Attribute)):
            node = parent if parent.value is node else None
        if not isinstance(node, cst.BaseExpression) or fingerprint(node) != text or model.reaching(use) != bindings:
            continue
        if model.reaching(node) == model.reaching(given):
            yield node


def _goes_into_module(model: "Model", given: cst.BaseExpression) -> bool:
    """Whether something is loaded into a module, at once or by the function that is given it."""
    arg = model.tree.parent(given)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(call, cst.Call) or not isinstance(arg, cst.Arg):
        return False
    load = load_of(model, call)
    if load is not None:
        return load.given is given and isinstance(load.value, Module)
    callee = model.value(call.func)
    if not isinstance(callee, Function) or callee.definition.model is not model:
        return False
    skipped = next((skipped for item, skipped in calls_of(model, callee.definition) if item is call), None)
    parameter = None if skipped is None else given_to(callee.definition, call, arg, skipped)
    loads = (load_of(model, item) for word in LOADING for item in model.calls_by_word.get(word, ()))
    return parameter is not None and any(
        load is not None
        and isinstance(load.value, Module)
        and [binding.node for binding in model.reaching(load.given)] == [parameter]
        for load in loads
    )


_STATES = ("state_dict", "get_state_dict")


class SavedTwice(NamedTuple):
    """A state under the key of an optimizer, or the like, of the thing that ``path`` names."""

    node: cst.BaseExpression
    key: str
    path: str


def saved_twice(model: "Model", call: cst.Call) -> Iterator[SavedTwice]:
    """The states that a call saves under the key of an optimizer beside the very same under another key.

    ``{"net": net.state_dict(), "optimizer": net.state_dict()}``: whoever reads the optimizer's finds that of the
    network.
    """
    what = saved(model, call)
    if what is None or what.parameter is not None:
        return
    states = [(part.keys[-1], path, part) for part in parts(model, what.node) if (path := _owner(part)) is not None]
    under_own = {path for key, path, _ in states if key is not None and not _is_of_training(key)}
    for key, path, part in states:
        if key is not None and _is_of_training(key) and path in under_own:
            yield SavedTwice(part.node, key, path)


def _owner(part: Part) -> str | None:
    """What an entry of a dict is the state of, ``net`` of ``net.state_dict()``; ``None`` of everything else."""
    node = part.node
    if not part.keys or not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return dotted_path(node.func.value) if node.func.attr.value in _STATES else None


def _is_of_training(key: str) -> bool:
    return key.lower() == "opt" or key.lower().startswith(OF_TRAINING)
