"""Attributes of the names that a class has, of what may be its objects and of what surely is not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.uses import mentions
from mllint.semantic.values import Instance, Module, Value
from mllint.syntax.shape import called_on, dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo


def from_outside(definition: "ClassInfo", model: "Model", attribute: str) -> Iterator[cst.Attribute]:
    """Where a file reads or sets an attribute of that name of what may be an object of a class, not as its own."""
    for node in model.receivers.attributes_of_others(attribute):
        if not _is_of_another_class(definition, model, node.value):
            yield node


def is_touched_from_outside(definition: "ClassInfo", attribute: str) -> bool:
    """Whether a file of a class, or of one of its bases, reads or sets an attribute of what may be its objects."""
    return any(True for model in definition.members.models for _ in from_outside(definition, model, attribute))


def is_assigned_from_outside(definition: "ClassInfo", attribute: str) -> bool:
    """Whether a file of a class, or one that imports it, sets an attribute of what may be its objects."""
    return any(
        isinstance(model.tree.parent(node), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
        for model in (*definition.members.models, *definition.model.importers(attribute))
        for node in from_outside(definition, model, attribute)
    )


def is_made_of(definition: "ClassInfo", value: Value | None) -> bool:
    """Whether a module is surely one of a class, or of one that derives from it."""
    made = value.definition if isinstance(value, Module) else None
    return made is not None and any(info.is_same_as(definition) for info in made.lineage)


def is_asked_of_objects(definition: "ClassInfo", model: "Model", name: str) -> bool:
    """Whether a file, or one that imports it, calls a method of this name on what is surely an object of a class."""
    asked = (
        other.value(receiver)
        for other in (model, *model.importers(name))
        for call in other.calls_by_word.get(name, ())
        if (receiver := called_on(call)) is not None
    )
    # What wraps one has a method of its own.
    return any(isinstance(value, Module) and not value.wrappers and is_made_of(definition, value) for value in asked)


def _is_of_another_class(definition: "ClassInfo", model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what an expression is cannot be an object of a class, nor of one that is derived from it.

    It is known to be something else, or its function reads an attribute of it that such an object does not have:
    ``Net(config.layers)`` in a function that reads ``config.epochs``.
    """
    value = model.value(node)
    if value is not None:
        return not _may_be(value, definition)
    path = dotted_path(node)
    if path is None or not _has_only_what_is_written(definition):
        return False
    function = model.enclosing_function(node)
    for thing in mentions(model, path):
        reader = model.tree.parent(thing)
        if not isinstance(reader, cst.Attribute) or reader.value is not thing:
            continue
        attribute = reader.attr.value
        is_here = model.enclosing_function(thing) is function
        if is_here and not _has(definition, attribute) and not _is_set(model, attribute):
            return True
    return False


def _may_be(value: Value, definition: "ClassInfo") -> bool:
    if isinstance(value, Module) and (value.others or (value.name is None and value.definition is None)):
        return True
    if not isinstance(value, (Module, Instance)):
        return False
    other = value.definition
    return other is not None and (definition in other.lineage or other in definition.lineage)


def _has_only_what_is_written(definition: "ClassInfo") -> bool:
    """Whether all attributes of the instances are written in the project, in classes that nobody there derives from."""
    members = definition.members
    return (
        members.has_only_plain_bases
        and not members.subclasses
        and not members.sets_computed_names
        and all("__getattr__" not in info.methods for info in definition.lineage)
    )


def _is_set(model: "Model", name: str) -> bool:
    """Whether a file sets an attribute of that name of anything: any object may be given one."""
    attributes = (model.tree.parent(word) for word in model.names_by_word.get(name, ()))
    return any(isinstance(model.tree.parent(item), cst.AssignTarget) for item in attributes if item is not None)


def _has(definition: "ClassInfo", name: str) -> bool:
    """Whether instances of a class have an attribute."""
    if name.startswith("_") or name == "training" or definition.method(name) is not None:
        return True
    if any(lookup.method(base, name) is not None for base in definition.library_bases):
        return True
    return any(True for _ in definition.members.assignments(name))
