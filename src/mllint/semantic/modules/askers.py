"""Who asks an object of a class for what a method or property of it gives out, in all of the project."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.modules.handed_over import MAX_READERS, is_only_tested, may_be_of
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.names.foreign_reads import is_other_at
from mllint.semantic.names.mentions import attributes
from mllint.semantic.names.receivers import method_of_receiver
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo


def askers(method: "FunctionInfo") -> "list[tuple[Model, cst.BaseExpression]] | None":
    """The places that get what a method or property gives, each with its file; ``None``: others may ask, too."""
    owner, is_property = method.owner, method.is_property
    if owner is None or method.name.startswith("__") or (method.node.decorators and not is_property):
        return None
    if is_property and not owner.members.has_only_plain_bases:
        return None  # a class of a package asks for what it wants its heirs to have
    members, name = owner.members, method.name
    found: list[tuple[Model, cst.Attribute]] = [(read.method.model, read.node) for read in members.reads(name)]
    paths = members.readers_elsewhere(name)
    if paths is None or len(paths) > MAX_READERS or any(_names_it(model, name) for model in members.models):
        return None
    found += [(model, node) for model in members.models for node in from_outside(owner, model, name)]
    for path in paths:
        model = owner.model.neighbour(path)
        if model is None or _names_it(model, name):
            return None
        if not is_only_tested(members, model):
            found += [(model, node) for node in attributes(model, name) if _may_ask(owner, model, node)]
    given: list[tuple[Model, cst.BaseExpression]] = []
    for home, attribute in found:
        asked = attribute if is_property else home.tree.call_of(attribute)
        if asked is None:
            return None  # the method itself is handed on
        given.append((home, asked))
    return given


def _may_ask(owner: "ClassInfo", model: "Model", node: cst.Attribute) -> bool:
    """Whether an attribute of another file may be the one of an object of a class: not what is imported by that name,
    and not one of that file's own objects.
    """
    if model.qualified_name(node) is not None:
        return False
    method = method_of_receiver(model, node.value)
    if method is not None and method.owner is not None:
        return any(info.is_same_as(owner) for info in method.owner.lineage)
    return may_be_of(owner, model, node.value) and not is_other_at(owner.members, model, node)


def _names_it(model: "Model", name: str) -> bool:
    """Whether a file has the name as a text: ``getattr(net, "branches")``."""
    return any(string_literal(text) == name for text in model.tree.by_type.get(cst.SimpleString, ()))
