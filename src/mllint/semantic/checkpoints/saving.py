"""What is written to files: by ``torch.save`` and its like, or by a function of the project that hands it to them."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import ADDING_MODULES
from mllint.semantic.checkpoints.saves import calls_of_function
from mllint.semantic.events.places import as_itself
from mllint.semantic.names.conditions import is_above, is_in_another_branch
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Function, Symbol
from mllint.syntax.shape import argument, dotted_path, has_star_arguments, last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What is saved is the first parameter of all of them; the second word is its name.
_SAVERS = {
    "torch.save": "obj",
    "paddle.save": "obj",
    "pickle.dump": "obj",
    "dill.dump": "obj",
    "cloudpickle.dump": "obj",
    "joblib.dump": "value",
    "torch_xla.core.xla_model.save": "data",
    "accelerate.utils.save": "obj",
}
WORDS = ("save", "Save", "dump", "checkpoint", "Checkpoint", "ckpt")
"""The words of which one stands in the name of whatever saves."""
_WORD = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(WORDS) + ")")
_DISPLAYS = (cst.Dict, cst.List, cst.Tuple)
_DICTS = frozenset({"builtins.dict", "collections.OrderedDict"})
_REBUILDING = sorted(ADDING_MODULES | {"setattr"})
_MAX_DEPTH = 6


class Saved(msgspec.Struct, frozen=True):
    """A call that writes a thing to a file: ``saver`` is the qualified name of the library's function.

    ``parameter`` is the name by which a function of the project has it that gives it to that one, with its file.
    """

    node: cst.BaseExpression
    saver: str
    parameter: "tuple[Model, cst.Name] | None" = None


class Part(msgspec.Struct, frozen=True):
    """A part of what is saved.

    ``place`` is the expression that stands for it in what is saved, ``node`` where that comes from, through names.
    ``keys`` lead to it (``None`` for an index or a key that is not known), ``bindings`` are the names that it, or what
    holds it, was bound to on the way. ``listed`` is the name, in what is saved, of a list that the code uses otherwise,
    too: there the part has to stay what it is.
    """

    node: cst.BaseExpression
    place: cst.BaseExpression
    keys: tuple[str | None, ...] = ()
    bindings: tuple[Binding, ...] = ()
    listed: cst.BaseExpression | None = None


def may_save(call: cst.Call) -> bool:
    """Whether a call has the name of something that saves: where it has not, ``saved`` gives nothing."""
    word = last_word(call.func)
    return word is not None and _is_said_by(word)


@lru_cache(maxsize=4096)
def _is_said_by(word: str) -> bool:
    return _WORD.search(word) is not None


def saved(model: "Model", call: cst.Call, depth: int = 0) -> Saved | None:
    """What a call writes to a file; ``None`` for every call that is not known to write anything."""
    if not may_save(call) or not call.args or depth > 2:
        return None
    match model.value(call.func):
        case Symbol(name=name) if name in _SAVERS:
            given = argument(call, 0, _SAVERS[name])
            return None if given is None else Saved(given.value, name)
        case Function(definition=definition) as function if not has_star_arguments(call):
            return _handed_on(definition, call, 0 if function.receiver is None else 1, depth)
    return None


def _handed_on(function: FunctionInfo, call: cst.Call, skipped: int, depth: int) -> Saved | None:
    """What a function of the project, called like this, saves of its arguments, unchanged."""
    model = function.model
    calls = (inner for word, found in model.calls_by_word.items() if _is_said_by(word) for inner in found)
    for inner in calls:
        if model.enclosing_function(inner) is not function.node:
            continue
        what = saved(model, inner, depth + 1)
        if what is None or not isinstance(what.node, cst.Name):
            continue
        bindings = model.reaching(what.node)
        for position, parameter in enumerate(function.parameters):
            if len(bindings) == 1 and bindings[0].node is parameter:
                given = argument(call, position - skipped, parameter.name.value)
                return None if given is None else Saved(given.value, what.saver, what.parameter or (model, what.node))
    return None


def parts(model: "Model", node: cst.BaseExpression) -> list[Part]:
    """What a saved expression consists of, through dicts, lists and the names they are bound to in this file."""
    return list(_parts(model, Part(node, node), 0))


def _parts(model: "Model", part: Part, depth: int) -> Iterator[Part]:
    node = part.node
    if depth > _MAX_DEPTH:
        yield part
    elif isinstance(node, _DISPLAYS) or (isinstance(node, cst.Call) and model.qualified_name(node.func) in _DICTS):
        for keys, inner in _entries(node):
            yield from _parts(model, Part(inner, inner, part.keys + keys, part.bindings, part.listed), depth + 1)
    elif isinstance(node, (cst.Name, cst.Attribute)):
        yield from _bound_parts(model, part, depth)
    else:
        yield part


def _entries(node: cst.BaseExpression) -> Iterator[tuple[tuple[str | None, ...], cst.BaseExpression]]:
    """The values in a display or a call of ``dict``, each with its key; with no key what is unpacked there."""
    match node:
        case cst.Dict():
            for item in node.elements:
                yield ((string_literal(item.key),) if isinstance(item, cst.DictElement) else ()), item.value
        case cst.List() | cst.Tuple():
            for element in node.elements:
                yield (None,), element.value
        case cst.Call():
            for arg in node.args:
                yield (() if arg.keyword is None else (arg.keyword.value,)), arg.value


def _bound_parts(model: "Model", part: Part, depth: int) -> Iterator[Part]:
    """The parts of what a name or dotted path is bound to, and what is put into that later."""
    bindings = model.reaching(part.node)
    plain = [item for item in bindings if _is_plain(item)]
    if not bindings or len(plain) != len(bindings):
        yield part
        return
    for binding in plain:
        assert binding.value is not None
        known = (*part.bindings, binding)
        is_list = isinstance(binding.value, (cst.List, cst.Tuple)) and _is_used_otherwise(model, binding)
        listed = part.node if is_list and part.listed is None else part.listed
        yield from _parts(model, Part(binding.value, part.place, part.keys, known, listed), depth + 1)
        for key, value in _items_set(model, binding):
            yield from _parts(model, Part(value, value, (*part.keys, key), known, listed), depth + 1)


def _is_plain(binding: Binding) -> bool:
    kinds = (BindingKind.ASSIGN, BindingKind.ANNOTATED)
    return binding.kind in kinds and binding.value is not None and not binding.path


def _is_used_otherwise(model: "Model", binding: Binding) -> bool:
    """Whether something that is saved is read in another place than where it is saved."""
    return not all(
        any(isinstance(item, cst.Call) and may_save(item) for item in model.tree.ancestors(node))
        for node in uses(model, binding)
    )


def _items_set(model: "Model", binding: Binding) -> Iterator[tuple[str | None, cst.BaseExpression]]:
    """What ``key["name"] = value`` puts into the thing that a binding bound."""
    for node in uses(model, binding):
        item = model.tree.parent(node)
        if not isinstance(item, cst.Subscript) or item.value is not node:
            continue
        target = model.tree.parent(item)
        statement = None if target is None else model.tree.parent(target)
        if isinstance(target, cst.AssignTarget) and isinstance(statement, cst.Assign):
            yield string_literal(subscript_index(item)), statement.value


def saves_one(model: "Model", call: cst.Call) -> bool:
    """Whether a call saves, or calls a function of the project that saves one thing only."""
    called = model.value(call.func)
    if not isinstance(called, Function):
        return True
    inside = (item for item in subtree(called.definition.node.body) if isinstance(item, cst.Call))
    return sum(called.definition.model.qualified_name(item.func) in _SAVERS for item in inside) == 1


def saves_rebuilt(model: "Model", call: cst.Call) -> bool:
    """Whether the function of a call puts other layers into modules: no class builds what is saved."""
    function = model.enclosing_function(call)
    return function is not None and any(
        model.enclosing_function(change) is function and method_of_receiver(model, owner) is None
        for word in _REBUILDING
        for change in model.calls_by_word.get(word, ())
        if (owner := _owner(change)) is not None
    )


def _owner(change: cst.Call) -> cst.BaseExpression | None:
    """Of what a call sets a part: ``net`` of ``setattr(net, name, layer)`` and ``net.add_module(name, layer)``.

    That is also what any other method is called on: ``net.state_dict()``.
    """
    if isinstance(change.func, cst.Attribute):
        return change.func.value
    return change.args[0].value if len(change.args) == 3 else None


def saves_state_otherwise(model: "Model", node: cst.CSTNode) -> bool:
    """Whether another branch of the function saves state dicts: who runs the code says which of the two is wanted."""
    return any(
        is_in_another_branch(model, node, inner)
        and any(isinstance(item, cst.Call) and saved(model, item) for item in model.tree.ancestors(inner))
        for inner in model.calls_by_word.get("state_dict", ())
    )


def saves_state_beside(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the state of a module that is saved is surely saved beside it: who reads the files has both.

    ``net.to("cpu")`` is ``net``, of which one or the other is saved.
    """
    path, function = dotted_path(as_itself(node)), model.enclosing_function(node)
    if path is None:
        return False
    blocks = {id(item) for item in model.tree.ancestors(node) if isinstance(item, (cst.IndentedBlock, cst.Module))}
    return any(
        model.enclosing_function(call) is function and _is_written(model, call, blocks)
        for call in model.calls_by_word.get("state_dict", ())
        if (owner := _owner(call)) is not None and dotted_path(as_itself(owner)) == path
    )


def is_saved_below(model: "Model", statement: cst.CSTNode, path: str) -> bool:
    """Whether a function saves the whole of what a dotted path holds, behind a statement of it."""
    scope = model.scope_of(statement)
    for word in ("save", "dump"):
        for call in calls_of_function(model, word):
            is_below = model.scope_of(call) is scope and is_above(scope, statement, call)
            what = saved(model, call) if is_below else None
            if what is not None and dotted_path(what.node) == path:
                return True
    return False


def _is_written(model: "Model", state: cst.Call, blocks: set[int]) -> bool:
    """Whether a statement right in one of these blocks saves a state."""
    around = list(model.tree.ancestors(state))
    lines = (item for item in around if isinstance(item, cst.SimpleStatementLine))
    line = next(lines, None)
    is_there = line is not None and id(model.tree.parent(line)) in blocks
    return is_there and any(isinstance(item, cst.Call) and saved(model, item) is not None for item in around)
