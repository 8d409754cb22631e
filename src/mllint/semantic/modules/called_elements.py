"""Layers that a function makes as elements of a list of its own, and of which it only calls each."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.module_lists import MODULE_LISTS
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, uses
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import called_on, last_word, part_at

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Called = Callable[["Model", cst.BaseExpression], bool]
_MAX_STEPS = 6
_DISPLAYS = (cst.List, cst.Tuple)
_COMPREHENSIONS = (cst.ListComp, cst.GeneratorExp)


def is_called_as_element(model: "Model", layer: cst.BaseExpression, is_called: Called) -> bool:
    """Whether a new layer is put into a list that has a local name, or none, and whose elements are only called.

    ``is_called`` tells whether an expression that stands for an element is called, and nothing else.
    """
    holder = model.tree.parent(layer)
    container = None
    if isinstance(holder, cst.Element):
        container = model.tree.parent(holder)
    elif isinstance(holder, _COMPREHENSIONS) and holder.elt is layer:
        container = holder
    elif isinstance(holder, cst.Arg) and isinstance(call := model.tree.parent(holder), cst.Call):
        grown = called_on(call) if last_word(call.func) == "append" and len(call.args) == 1 else None
        bindings = model.reaching(grown) if isinstance(grown, cst.Name) else ()
        is_own = bool(bindings) and all(map(_begins_as_list, bindings))
        return is_own and all(_are_called(model, item, is_called) for item in bindings)
    if not isinstance(container, (*_DISPLAYS, *_COMPREHENSIONS)):
        return False
    return _fate(model, container, is_called, _MAX_STEPS) is True


def _begins_as_list(binding: Binding) -> bool:
    is_whole = binding.kind is BindingKind.ASSIGN and not binding.path
    return is_whole and isinstance(binding.value, cst.List) and not binding.value.elements


def _are_called(model: "Model", binding: Binding, is_called: Called, steps: int = _MAX_STEPS) -> bool:
    """Whether all that is done with a local list is to call its elements, and that is done."""
    if "." in binding.key or not binding.scope.is_function:
        return False
    fates = [_fate(model, use, is_called, steps) for use in uses(model, binding)]
    return True in fates and False not in fates


def _fate(model: "Model", node: cst.BaseExpression, is_called: Called, steps: int) -> bool | None:
    """Whether the elements of a list are called where it stands; ``None``: nothing is done with them there."""
    parent = model.tree.parent(node)
    if steps == 0:
        return False
    match parent:
        case cst.For() | cst.CompFor() if parent.iter is node:
            return _calls_each(model, parent, (), is_called)
        case cst.Subscript() if parent.value is node and isinstance(parent.slice[0].slice, cst.Index):
            return is_called(model, parent)
        case cst.Attribute():
            return None if parent.attr.value == "append" and model.tree.call_of(parent) is not None else False
        case cst.Assign() if len(parent.targets) == 1:
            bindings = bound_by(model, parent)
            return len(bindings) == 1 and _are_called(model, bindings[0], is_called, steps - 1)
        case cst.Arg():
            return _of_argument(model, parent, is_called, steps)
    return False


def _of_argument(model: "Model", arg: cst.Arg, is_called: Called, steps: int) -> bool | None:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call) or arg.star:
        return False
    name = model.qualified_name(call.func)
    if name == "builtins.len":
        return None
    if name in MODULE_LISTS:
        return _fate(model, call, is_called, steps - 1)
    path, loop = handed_on(call, arg), model.tree.parent(call)
    if path is None or not isinstance(loop, (cst.For, cst.CompFor)) or loop.iter is not call:
        return False
    return _calls_each(model, loop, path, is_called)


def _calls_each(model: "Model", loop: cst.For | cst.CompFor, path: tuple[int, ...], is_called: Called) -> bool:
    """Whether a loop calls what it binds at a place of its target, and does nothing else with it."""
    target = part_at(loop.target, path)
    if not isinstance(target, cst.Name):
        return False
    places: Iterable[cst.BaseExpression]
    if isinstance(loop, cst.For):
        places = [use for item in bound_by(model, loop) if item.key == target.value for use in uses(model, item)]
    else:
        around = next(item for item in model.tree.ancestors(loop) if isinstance(item, cst.BaseComp))
        named = model.names_by_word.get(target.value, ())
        places = [name for name in named if name is not target and model.tree.is_below(name, around)]
    return bool(places) and all(is_called(model, place) for place in places)
