"""What a table that is known by what is written gives: a display of a dict, or the namespace of a file.

A model is picked of one by its name at run time: ``MODELS[args.model]()``, ``getattr(networks, name)()``,
``networks.__dict__[name]()``. That is one of the classes and functions of the table, each of which is known.
"""

from collections.abc import Iterator
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.values import (
    Choice,
    ClassObject,
    File,
    Function,
    Mapping,
    Module,
    Nothing,
    Symbol,
    Tensor,
    Value,
    join,
    under_gradients,
)
from mllint.syntax.shape import dotted_path, last_word, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_ENTRIES = 60
"""How many classes and functions of a table somebody looks at."""
_MAX_FILES = 30
"""How many files are looked at, at most, that hand on names with ``*``."""
_WRITING = frozenset({"update", "setdefault", "pop", "popitem", "clear"})
"""Methods of a dict that change what is in it."""


def namespace(file: File) -> Mapping:
    """The names of a file as a table: what its ``__dict__`` is, and what ``getattr`` looks into."""
    return Mapping(file.model.tree.module, home=file.model)


def dict_item(value: Mapping, key: str) -> Value | None:
    """What ``value["key"]`` is: as the display says that names the key once, or as all values of the dict are."""
    if isinstance(value.node, cst.Module) and value.home is not None:
        return value.home.exported(key)
    if not isinstance(value.node, cst.Dict) or value.home is None:
        return dict_value(value)
    found = [
        element.value
        for element in value.node.elements
        if isinstance(element, cst.DictElement) and string_literal(element.key) == key
    ]
    return _computed_at_call(value, value.home.value(found[0])) if len(found) == 1 else value.item


def dict_value(value: Mapping) -> Value | None:
    """What all values of a dict are. Values may be added to a display later: of them only the kind is taken."""
    if value.item is not None or value.home is None:
        return value.item
    match value.node:
        case cst.DictComp(value=element):
            return _computed_at_call(value, value.home.value(element))
        case cst.Dict():
            return _computed_at_call(value, _displayed(value.home, value.node))
        case cst.Module():
            return _makers(value.home)
    return None


def _computed_at_call(holder: Mapping, item: Value | None) -> Value | None:
    """An entry, which hangs on no graph where what gave the dict was called without gradients."""
    return None if item is None else under_gradients(item, holder.graph)


def _displayed(model: "Model", display: cst.Dict) -> Value | None:
    values = [
        model.value(element.value) if isinstance(element, cst.DictElement) else None for element in display.elements
    ]
    values = [value for value in values if not isinstance(value, Nothing)]
    if not values or None in values:
        return None
    if all(isinstance(value, (ClassObject, Function, Symbol, Choice)) for value in values):
        return None if _may_be_added_to(model, display) else _choice(values)
    result = reduce(join, values)
    if isinstance(result, Module):
        return Module(result.framework) if _may_be_added_to(model, display) else result
    return Tensor(result.framework) if isinstance(result, Tensor) and not result.or_number else None


def _choice(values: list[Value | None]) -> Value | None:
    """One of several classes and functions."""
    several = (option for value in values for option in (value.options if isinstance(value, Choice) else (value,)))
    options = tuple(option for option in dict.fromkeys(several) if option is not None)
    if len(options) == 1:
        return options[0]
    return Choice(options) if 0 < len(options) <= _MAX_ENTRIES else None


def _may_be_added_to(model: "Model", display: cst.Dict) -> bool:
    """Whether more may be put into a dict than is displayed: it is kept under another name than one of its own, or the
    file writes to it.
    """
    statement = model.tree.parent(display)
    if isinstance(statement, cst.Subscript) or (isinstance(statement, cst.Attribute) and last_word(statement) == "get"):
        return False
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if not isinstance(target, cst.Name):
        return True
    for name in model.names_by_word.get(target.value, ()):
        holder = model.tree.parent(name)
        if isinstance(holder, cst.Attribute) and holder.attr.value in _WRITING:
            return True
        if isinstance(holder, cst.Subscript) and isinstance(model.tree.parent(holder), cst.AssignTarget):
            return True
    return False


# -- of a file ---------------------------------------------------------------------------------------------------------


def _makers(model: "Model") -> Value | None:
    """One of the classes of modules, and functions that make modules, that a file has or hands on: the first of them.

    ``None`` where it has public classes of another kind: then what is picked may be anything.
    """
    makers: list[Value | None] = []
    for value in islice(_public(model, [model]), _MAX_ENTRIES):
        module = made(value)
        if isinstance(module, Module):
            makers.append(value)
        elif isinstance(value, ClassObject):
            return None
    return _choice(makers)


def made(maker: Value | None) -> Value | None:
    """What a class or function of the project makes."""
    if isinstance(maker, ClassObject):
        return maker.definition.instance()
    return maker.definition.model.returned(maker.definition) if isinstance(maker, Function) else None


def _public(model: "Model", seen: list["Model"]) -> Iterator[Value | None]:
    """What the names of a file stand for, also those that it hands on with ``*``."""
    bindings = model.scope(model.tree.module).bindings
    for name in bindings:
        if not name.startswith("_") and name.isidentifier():
            yield model.exported(name)
    for binding in bindings.get("*", ()):
        statement = binding.node
        path = dotted_path(statement.module) if isinstance(statement, cst.ImportFrom) and statement.module else ""
        level = len(statement.relative) if isinstance(statement, cst.ImportFrom) else 0
        other = None if path is None else model.sibling(path, level)
        if other is not None and other not in seen and len(seen) < _MAX_FILES:
            seen.append(other)
            yield from _public(other, seen)
