"""The calls in a file that run the modules of one of its classes, also from within lists and ``Sequential``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import saved_tensors
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.uses import whole
from mllint.semantic.values import ClassObject, Module
from mllint.syntax.shape import argument, has_star_arguments, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_WORDS = 8
"""Through how many names a module is followed from where it is made."""
_HOLDERS = frozenset({"Sequential", "ModuleList", "LayerList", "list", "tuple", "enumerate", "reversed"})
_PUTTING = frozenset({"append", "extend", "insert"})
_DISPLAYS = (cst.List, cst.Tuple, cst.ListComp, cst.GeneratorExp, cst.Element, cst.StarredElement, cst.BinaryOperation)


def runs_of(model: "Model", definition: ClassInfo) -> Iterator[cst.Call]:
    """The calls that give something to a module of a class, or to the ``Sequential`` that it is a part of.

    What a ``Sequential`` is given goes into each of its modules, changed by those before.
    """
    pending = [word for call in _made(model, definition) if (word := _holder(model, call)) is not None]
    seen = set[str]()
    while pending and len(seen) < MAX_WORDS:
        word = pending.pop()
        if word in seen:
            continue
        seen.add(word)
        for name in model.names_by_word.get(word, ()):
            mention = whole(model, name)
            yield from _runs_at(model, mention)
            onward = _holder(model, mention)
            if onward is not None:
                pending.append(onward)


def is_wanted_without(model: "Model", definition: ClassInfo, option: cst.Param) -> bool:
    """Whether somebody runs a module of a class without an option of its ``forward``, and takes the result."""
    forward = definition.called
    names = [] if forward is None else [item.name.value for item in forward.parameters]
    position = names.index(option.name.value) - 1 if option.name.value in names else None
    for home in (model, *model.importers(definition.name)):
        for call in runs_of(home, definition):
            module = home.value(call.func)
            made = module.definition if isinstance(module, Module) and not module.wrappers else None
            if made is None or not made.is_same_as(definition) or has_star_arguments(call):
                continue
            is_given = argument(call, position, option.name.value) is not None
            if not is_given and not isinstance(home.tree.parent(call), cst.Expr):
                return True
    return False


def _made(model: "Model", definition: ClassInfo) -> list[cst.Call]:
    calls = [(call, model.value(call.func)) for call in model.calls_by_word.get(definition.name, ())]
    return [call for call, kind in calls if isinstance(kind, ClassObject) and kind.definition.is_same_as(definition)]


def makes(model: "Model", definition: ClassInfo) -> bool:
    """Whether a file makes modules of a class."""
    return bool(_made(model, definition))


def stands_behind_weights(model: "Model", definition: ClassInfo) -> bool:
    """Whether a module of a class stands behind a layer with weights, in a ``Sequential`` or a list of layers."""
    for call in _made(model, definition):
        held = model.tree.parent(call)
        holder = None if held is None else model.tree.parent(held)
        if isinstance(holder, cst.Call) and isinstance(held, cst.Arg):
            word, before = last_word(holder.func), holder.args[: holder.args.index(held)]
            if word == "Sequential" and any(_has_weights(model, arg.value) for arg in before):
                return True
            grown = holder.func.value if word == "append" and isinstance(holder.func, cst.Attribute) else None
        elif isinstance(holder, cst.List) and isinstance(held, cst.Element):
            if any(_has_weights(model, item.value) for item in holder.elements[: holder.elements.index(held)]):
                return True
            statement = model.tree.parent(holder)
            grown = statement.target if isinstance(statement, cst.AugAssign) else None
        else:
            continue
        made = [] if grown is None else [item.value for item in model.reaching(grown)]
        lists = [item for item in made if isinstance(item, cst.List)]
        if any(_has_weights(model, item.value) for several in lists for item in several.elements):
            return True
    return False


def _has_weights(model: "Model", node: cst.BaseExpression) -> bool:
    value = model.value(node)
    layer = saved_tensors.layer(value.name) if isinstance(value, Module) and value.name is not None else None
    return layer is not None and layer[1]


def _holder(model: "Model", node: cst.CSTNode) -> str | None:
    """The name that holds a thing, or a list or ``Sequential`` of it; of what is given back, the function's."""
    while True:
        parent = model.tree.parent(node)
        if isinstance(parent, cst.Arg):
            call = model.tree.parent(parent)
            word = last_word(call.func) if isinstance(call, cst.Call) else None
            if isinstance(call, cst.Call) and word in _PUTTING and isinstance(call.func, cst.Attribute):
                return last_word(call.func.value)
            if call is None or word not in _HOLDERS:
                return None
            node = call
        elif isinstance(parent, _DISPLAYS):
            node = parent
        elif isinstance(parent, cst.Assign):
            return last_word(parent.targets[0].target) if parent.value is node else None
        elif isinstance(parent, cst.AugAssign):
            return last_word(parent.target) if parent.value is node else None
        elif isinstance(parent, cst.Return):
            function = model.enclosing_function(parent)
            return None if function is None else function.name.value
        elif isinstance(parent, cst.Call) and parent.func is node:
            node = parent  # of a function that makes it
            if isinstance(model.value(node), Module) and isinstance(model.value(parent.func), Module):
                return None
        else:
            return None


def _runs_at(model: "Model", mention: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls of what a mention stands for, or of what a loop over it, or an index, takes out of it."""
    parent = model.tree.parent(mention)
    while isinstance(parent, cst.Arg):
        call = model.tree.parent(parent)
        if not isinstance(call, cst.Call) or last_word(call.func) not in _HOLDERS or not call.args:
            return
        mention, parent = call, model.tree.parent(call)
    if isinstance(parent, cst.Subscript) and parent.value is mention:
        mention, parent = parent, model.tree.parent(parent)
    if isinstance(parent, cst.Call) and parent.func is mention:
        if parent.args and isinstance(model.value(mention), Module):
            yield parent
    elif isinstance(parent, cst.For) and parent.iter is mention:
        for word in _bound(parent.target):
            for call in model.calls_by_word.get(word, ()):
                if isinstance(call.func, cst.Name) and model.tree.is_inside(call, parent):
                    yield call


def _bound(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _bound(element.value)
