"""Shallow copies of modules into which somebody writes what the other one has: they have one set of weights.

``copy.copy(net)`` copies the attributes, and so the very tables of parameters and parts.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING, WRITING
from mllint.semantic.expressions.arguments import calls_of, given_to
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Module
from mllint.syntax.shape import called_on, dotted_path, last_word, root_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_GIVING = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})
_COPYING = ("__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
_Pair = tuple[str, str]
"""The paths of two modules, of which the weights of one are written into the other."""


def shallow_copy(model: "Model", call: cst.Call) -> _Pair | None:
    """What ``copy.copy`` makes of a module, and of which, where the file treats them as two networks.

    It loads the state of one into the other, or goes through the weights of both and writes into one of them.
    """
    statement = model.tree.parent(call)
    given = call.args[0].value if len(call.args) == 1 and not call.args[0].star else None
    value = None if given is None else model.value(given)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or not isinstance(value, Module):
        return None
    if value.definition is not None and any(value.definition.method(name) for name in _COPYING):
        return None
    kept, source = dotted_path(statement.targets[0].target), None if given is None else dotted_path(given)
    if kept is None or source is None or not _is_only_one(model, statement, kept):
        return None
    met = (pair for home, pair in _meetings(model) if _is_same_place(model, function_around(model, call), home, kept))
    return (kept, source) if any(set(pair) == {kept, source} for pair in met) else None


def _is_only_one(model: "Model", statement: cst.Assign, kept: str) -> bool:
    """Whether nothing else is ever bound to the name or attribute."""
    home, (root, _, name) = function_around(model, statement), kept.partition(".")
    if not name:
        bindings = model.scope_of(statement).bindings.get(root, ())
        return all(item.node is statement for item in bindings)
    if home is None or home.owner is None or root != home.self_name or "." in name:
        return False
    return all(item.node is statement for item in home.owner.members.assignments(name))


def _is_same_place(model: "Model", one: FunctionInfo | None, other: FunctionInfo | None, path: str) -> bool:
    """Whether a name or attribute means the same in two functions."""
    if "." not in path or one is None or other is None:
        return one is other
    return one.owner is not None and one.owner is other.owner and one.self_name == other.self_name


@worked_out_once
def _meetings(model: "Model") -> list[tuple[FunctionInfo | None, _Pair]]:
    """The pairs of modules of a file, each with the function that has them at hand, also by handing them to another."""
    found: list[tuple[FunctionInfo | None, _Pair]] = []
    for node, one, other in (*_loads(model), *_walks(model)):
        paths, info = (dotted_path(one), dotted_path(other)), function_around(model, node)
        if paths[0] is not None and paths[1] is not None:
            found.append((info, (paths[0], paths[1])))
            found += [] if info is None else _given_by_callers(model, info, (one, other))
    return found


def _loads(model: "Model") -> Iterator[tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression]]:
    """``target.load_state_dict(net.state_dict())``."""
    for call in (item for word in LOADING for item in model.calls_by_word.get(word, ())):
        state = call.args[0].value if call.args else None
        one, other = called_on(call), called_on(state) if isinstance(state, cst.Call) else None
        is_state = isinstance(state, cst.Call) and last_word(state.func) == "state_dict"
        if is_state and one is not None and other is not None:
            yield call, one, other


def _walks(model: "Model") -> Iterator[tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression]]:
    """``for p, q in zip(target.parameters(), net.parameters()): p.data.copy_(q.data)``."""
    for call in model.calls_by_word.get("zip", ()):
        loop = model.tree.parent(call)
        given = [arg.value for arg in call.args]
        asked = [item for item in given if isinstance(item, cst.Call) and last_word(item.func) in _GIVING]
        if not isinstance(loop, cst.For) or loop.iter is not call or len(asked) != 2 or len(given) != 2:
            continue
        one, other = called_on(asked[0]), called_on(asked[1])
        if one is not None and other is not None and _writes(loop):
            yield loop, one, other


def _writes(loop: cst.For) -> bool:
    """Whether a loop writes in place into what its variables stand for."""
    names = {part.value for part in subtree(loop.target) if isinstance(part, cst.Name)}
    for part in subtree(loop.body):
        target: cst.BaseExpression | None = None
        if (
            isinstance(part, cst.Call)
            and last_word(part.func) in WRITING
            and ".grad" not in (dotted_path(part.func) or "")
        ):
            target = called_on(part)
        elif isinstance(part, cst.AssignTarget) and last_word(part.target) == "data":
            target = part.target
        root = None if target is None else root_of(target)
        if isinstance(root, cst.Name) and root.value in names:
            return True
    return False


def _given_by_callers(
    model: "Model", info: FunctionInfo, pair: tuple[cst.BaseExpression, cst.BaseExpression]
) -> Iterator[tuple[FunctionInfo | None, _Pair]]:
    """What the callers of a function give for two parameters of it."""
    bindings = [model.reaching(node) if isinstance(node, cst.Name) else () for node in pair]
    if any(len(item) != 1 or item[0].kind is not BindingKind.PARAMETER for item in bindings):
        return
    for call, skipped in calls_of(model, info):
        given = {id(given_to(info, call, arg, skipped)): dotted_path(arg.value) for arg in call.args}
        paths = [given.get(id(item[0].node)) for item in bindings]
        if paths[0] is not None and paths[1] is not None:
            yield function_around(model, call), (paths[0], paths[1])
