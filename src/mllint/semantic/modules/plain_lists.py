"""Lists and dicts of plain tensors in attributes of a module: what is put into them, and what meets their elements."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.modules.made_on_cpu import MAX_STEPS, is_made_on_cpu
from mllint.semantic.modules.other_objects import is_touched_from_outside
from mllint.semantic.modules.plain_tensors import Fate, fate, has_no_elements, is_plain
from mllint.semantic.names.classes import Members
from mllint.semantic.names.uses import bound_by, uses
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import dotted_path, part_at, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_DISPLAYS = (cst.List, cst.ListComp, cst.Dict, cst.DictComp)


def tensors_stay_behind(members: Members, name: str) -> bool:
    """Whether a list holds nothing but tensors made on the CPU, and ``forward`` computes with them and the input."""
    found = False
    for place in members.assignments(name):
        if place.method is None or place.method not in members.setting_up or not isinstance(place.value, _DISPLAYS):
            return False
        elements = list(_elements(place.value))
        if any(has_no_elements(place.model, element) for element in elements):
            return False  # a place that is filled later
        if not all(_is_made_on_cpu(place.model, element) for element in elements):
            return False
        found = found or bool(elements)
    if is_touched_from_outside(members.definition, name):
        return False
    fates: set[tuple[Fate, bool]] = set()
    for read in members.reads(name):
        model, is_early = read.method.model, read.method in members.setting_up
        put = _put_in(model, read.node)
        if put is None:
            fates |= {(item, is_early) for item in _fates(model, read.node, MAX_STEPS)}
        elif is_early and _is_made_on_cpu(model, put):
            found = True
        else:
            return False
    return found and (Fate.MEETS_INPUT, False) in fates and all(item is not Fate.MOVED for item, _ in fates)


def _elements(display: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match display:
        case cst.List() | cst.Dict():
            yield from (element.value for element in display.elements)
        case cst.ListComp():
            yield display.elt
        case cst.DictComp():
            yield display.value


def _is_made_on_cpu(model: "Model", node: cst.BaseExpression) -> bool:
    return is_plain(model.value(node)) and is_made_on_cpu(model, node)


def _put_in(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is put into the list where it is read: ``self.tables.append(x)``, ``self.tables[key] = x``."""
    parent = model.tree.parent(node)
    above = None if parent is None else model.tree.parent(parent)
    if isinstance(parent, cst.Attribute) and isinstance(above, cst.Call) and parent.attr.value == "append":
        return above.args[0].value if above.func is parent and len(above.args) == 1 else None
    if isinstance(parent, cst.Subscript) and parent.value is node and isinstance(above, cst.AssignTarget):
        statement = model.tree.parent(above)
        return statement.value if isinstance(statement, cst.Assign) else None
    return None


def _fates(model: "Model", node: cst.BaseExpression, steps: int) -> set[Fate]:
    """What becomes of the elements of a list where it is read; what is done with it as a whole is not followed."""
    parent = model.tree.parent(node)
    if steps == 0:
        return {Fate.MOVED}
    match parent:
        case cst.Subscript() if parent.value is node:
            if subscript_index(parent) is None:
                return _fates(model, parent, steps - 1)
            return {fate(model, parent, steps - 1)}
        case cst.For() | cst.CompFor() if parent.iter is node:
            return _of_elements(model, parent, (), steps)
        case cst.Arg():
            call = model.tree.parent(parent)
            assert isinstance(call, cst.Call)
            around, path = model.tree.parent(call), handed_on(call, parent)
            if dotted_path(call.func) == "len":
                return {Fate.NOTHING}
            if path is not None and isinstance(around, (cst.For, cst.CompFor)) and around.iter is call:
                return _of_elements(model, around, path, steps)
    return {Fate.MOVED}


def _of_elements(model: "Model", loop: cst.For | cst.CompFor, path: tuple[int, ...], steps: int) -> set[Fate]:
    """What becomes of what a loop binds at a place of its target."""
    target = part_at(loop.target, path)
    if not isinstance(target, cst.Name):
        return {Fate.MOVED}
    if isinstance(loop, cst.For):
        bound = [item for item in bound_by(model, loop) if item.key == target.value]
        places = [use for binding in bound for use in uses(model, binding)]
    else:
        whole = next(item for item in model.tree.ancestors(loop) if isinstance(item, cst.BaseComp))
        named = model.names_by_word.get(target.value, ())
        places = [name for name in named if name is not target and model.tree.is_below(name, whole)]
    return {fate(model, place, steps - 1) for place in places}
