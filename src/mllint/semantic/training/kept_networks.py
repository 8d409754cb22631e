"""Networks that a file, or an object of a class that is no module, keeps: who may get at them to switch their mode."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.events.places import is_nothing
from mllint.semantic.events.things import Thing
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.wanted_gradients import GRADIENT_WORDS, says_gradients
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_TRAINING = ("backward", "minimize")
_SWITCHING = frozenset({"eval", "train", *_TRAINING})
_HARMLESS = frozenset({
    "to", "cuda", "cpu", "half", "float", "double", "forward", "requires_grad_", "state_dict", *LOADING,
})  # fmt: skip
"""Methods of a network that leave its mode alone, and hand on nothing by which somebody could switch it."""

_FREEZING = ("requires_grad", "requires_grad_", "stop_gradient")


def kept_as(model: "Model", thing: Thing) -> str | None:
    """The name, of the file or of its class, by which others get at a module; of an attribute that is bound once."""
    root = next(iter(thing.roots))
    if len(thing.roots) != 1 or len(thing.path) != isinstance(root, ClassInfo):
        return None
    if isinstance(root, Binding):
        return root.key if root.scope.parent is None and root.scope.model is model else None
    bound = [item for item in root.assignments(thing.path[0].removeprefix(".")) if not is_nothing(item)]
    return root.name if len(bound) == 1 and root.model is model else None


def is_never_switched(model: "Model", thing: Thing, name: str, *, but_to_evaluation: bool = False) -> bool:
    """Whether neither a file nor those that import a name of it switch a module's mode, or compute gradients.

    What an object keeps and nobody but its class ever names is not what they switch. ``but_to_evaluation``: anybody may
    call its ``eval()``.
    """
    let = frozenset({"eval"} if but_to_evaluation else ())
    files = list(_file_and_importers(model, name))
    if any(item is None or any(word in item.calls_by_word for word in _TRAINING) for item in files):
        return False
    root = next(iter(thing.roots))
    if isinstance(root, ClassInfo) and _is_left_alone(root, thing.path[0].removeprefix("."), _HARMLESS | let):
        return not any(says_gradients(info.model, info.node.body) for info in root.lineage)
    if any(word in model.names_by_word for word in GRADIENT_WORDS):
        return False
    return not any(item is None or any(word in item.calls_by_word for word in _SWITCHING - let) for item in files)


def _file_and_importers(model: "Model", name: str) -> "Iterator[Model | None]":
    yield model
    if model.project is not None:
        yield from (model.neighbour(path) for path in model.project.importers(model.path, name))


def _is_left_alone(owner: ClassInfo, name: str, harmless: frozenset[str]) -> bool:
    """Whether a class only calls the network that its objects keep under a name, and nobody else gets at it."""
    model, members = owner.model, owner.members
    readers = members.readers_elsewhere(name)
    importers = () if model.project is None else model.project.importers(model.path, owner.name)
    if readers is None or not set(readers).isdisjoint(importers) or members.reads_computed_names:
        return False
    own = ((read.method.model, read.node) for read in members.reads(name))
    others = ((model, node) for node in model.receivers.attributes_of_others(name))
    return all(_is_harmless(home, node, harmless) for home, node in (*own, *others))


def _is_harmless(model: "Model", node: cst.Attribute, harmless: frozenset[str]) -> bool:
    """Whether a network is called there, moved, loaded or asked for its weights, or one of the methods is called."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Call):
        return parent.func is node
    call = model.tree.call_of(parent) if isinstance(parent, cst.Attribute) and parent.value is node else None
    if call is None or not isinstance(parent, cst.Attribute):
        return False
    return parent.attr.value in harmless or (parent.attr.value == "parameters" and _is_frozen_by(model, call))


def _is_frozen_by(model: "Model", call: cst.Call) -> bool:
    """Whether a loop over the weights does nothing with each but to freeze it: ``weight.requires_grad = False``."""
    loop = model.tree.parent(call)
    if not isinstance(loop, cst.For) or loop.iter is not call or not isinstance(loop.target, cst.Name):
        return False
    name = loop.target.value
    read = [item for item in subtree(loop.body) if isinstance(item, cst.Name) and item.value == name]
    holders = [model.tree.parent(item) for item in read]
    is_frozen = all(isinstance(item, cst.Attribute) and item.attr.value in _FREEZING for item in holders)
    return bool(read) and is_frozen and not says_gradients(model, loop.body)
