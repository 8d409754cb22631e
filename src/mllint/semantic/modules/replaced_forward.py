"""Files that put another function in the place of a module's ``forward``."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.values import Module, Value

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def replaces_forward(model: "Model", value: Value | None) -> bool:
    """Whether a file may assign the ``forward`` of a module: it deals with the method as such.

    Not where each module of which it does is surely of another class.
    """
    for name in model.names_by_word.get("forward", ()):
        attribute = model.tree.parent(name)
        if not isinstance(attribute, cst.Attribute) or not isinstance(model.tree.parent(attribute), cst.AssignTarget):
            continue
        if not _are_of_other_classes(model.value(attribute.value), value):
            return True
    return False


def is_wrapper(value: Module) -> bool:
    """Whether it is surely an object of a class that wraps modules: ``DataParallel(network)``, whatever the network."""
    outer = value.wrappers[0] if value.wrappers and value.inside is None else ""
    return lookup.wrapper(outer) is not None and outer.rpartition(".")[2][:1].isupper()


def _are_of_other_classes(one: Value | None, other: Value | None) -> bool:
    """Whether the classes of two modules are known, and have none in common."""
    if not isinstance(one, Module) or not isinstance(other, Module):
        return False
    mine, theirs = _classes(one), _classes(other)
    return bool(mine and theirs) and not mine & theirs


def _classes(value: Module) -> frozenset[object]:
    """The classes of a module, and those from which it derives; none where they are not known."""
    if is_wrapper(value):
        return frozenset({value.wrappers[0]})
    if value.wrappers or value.others:
        return frozenset()
    if value.definition is None:
        return frozenset({value.name}) - PLAIN_BASES - {None}
    bases = frozenset(value.definition.library_bases) - PLAIN_BASES
    return frozenset() if value.definition.has_unknown_base else bases.union(value.definition.lineage)
