"""Whether code that is not of a class may read an attribute of its objects: what it reads may be a setting that has
the same name.

``options.schedule`` is none of a trainer's where the file also reads ``options.rate``, and no trainer has a rate.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import OF_MODULES, OF_WRAPPERS
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.uses import attributes
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.classes import Members

_HOLDER = re.compile(rb"(?<![\w.)\]])((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)$")
_IMPORTING = re.compile(rb"^\s*(?:from|import)\b")
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)\b.*$", re.MULTILINE)
# What reads an attribute whose name is a string, or all of them.
_BY_STRING = (b"getattr", b"attrgetter", b"__dict__", b"vars(")
_LONGEST = 200


def is_read_of_others(members: "Members", model: "Model", name: str) -> bool:
    """Whether a file reads an attribute of this name of what is not the instance, and may be another one's."""
    foreign = (
        attribute
        for attribute in attributes(model, name)
        # `paddle.optimizer` is no attribute of an object.
        if method_of_receiver(model, attribute.value) is None and model.library_name(attribute) is None
    )
    others = list(foreign)
    return bool(others) and (
        not all(is_other_at(members, model, attribute) for attribute in others) or is_derived_elsewhere(members)
    )


def is_other_at(members: "Members", model: "Model", attribute: cst.Attribute) -> bool:
    """Whether the body around an attribute reads something of the same holder that no object of the class has."""
    holder, body = dotted_path(attribute.value), model.enclosing_function(attribute)
    if holder is None:
        return False
    beside = (
        node
        for node in model.tree.by_type.get(cst.Attribute, ())
        if dotted_path(node.value) == holder and model.enclosing_function(node) is body
    )
    return any(not _is_set(model, node) and not _has(members, node.attr.value) for node in beside)


def _is_set(model: "Model", node: cst.Attribute) -> bool:
    return isinstance(model.tree.parent(node), (cst.AssignTarget, cst.AnnAssign, cst.AugAssign))


def may_be_read_elsewhere(members: "Members", name: str) -> bool:
    """Whether another file of the project may read an attribute of objects of a class, by its text."""
    paths = members.readers_elsewhere(name)
    project = members.definition.model.project
    if not paths or project is None:
        return paths is None
    return is_derived_elsewhere(members) or any(
        _may_read(members, project.disk.read_whole(path), name.encode()) for path in map(Path, paths)
    )


def is_derived_elsewhere(members: "Members") -> bool:
    """Whether a class of another file may derive from a class: its objects may have more attributes."""
    model, names = members.definition.model, {info.name for info in (members.definition, *members.subclasses)}
    if model.project is None:
        return False
    for name in sorted(names):
        pattern = re.compile(rb"^[ \t]*class\s+\w+\s*\([^)]*\b" + name.encode() + rb"\b", re.MULTILINE)
        if any(
            pattern.search(model.project.disk.read_whole(path)) for path in model.project.importers(model.path, name)
        ):
            return True
    return False


def _may_read(members: "Members", text: bytes, name: bytes) -> bool:
    if re.search(rb"[\"']" + name + rb"[\"']", text) and any(word in text for word in _BY_STRING):
        return True
    for found in re.finditer(rb"\.\s*" + name + rb"\b(?!\s*=[^=])", text):
        before = text[max(0, text.rfind(b"\n", 0, found.start()) + 1, found.start() - _LONGEST) : found.start()]
        if _IMPORTING.match(before):
            continue
        holder = _HOLDER.search(before)
        if holder is None or holder[1] == b"self" or not _is_other_in(members, text, holder[1]):
            return True
    return False


def _is_other_in(members: "Members", text: bytes, holder: bytes) -> bool:
    """Whether a file reads something of what it calls so that no object of the class has."""
    own = rb"(?<![\w.\"'])" + re.escape(holder) + rb"\.(\w+)\b(?![\"'])"  # no name of a file
    text = _IMPORTS.sub(b"", text)
    set_there = set(re.findall(own + rb"\s*=[^=]", text))
    return any(not _has(members, word.decode()) for word in set(re.findall(own, text)) - set_there)


def _has(members: "Members", name: str) -> bool:
    """Whether objects of a class have an attribute or a method of this name, or every object has."""
    return (
        name.startswith("__")
        or (members.definition.framework is not None and name in OF_MODULES | OF_WRAPPERS)
        or members.definition.method(name) is not None
        or any(True for _ in members.assignments(name))
    )
