"""Where the file names something, by its spelling alone: a name, a dotted path, an attribute of whatever object."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def whole(model: "Model", name: cst.Name) -> cst.Name | cst.Attribute:
    """The attribute of which a name is the last word: ``self.net`` of its ``net``; else the name itself."""
    around = model.tree.parent(name)
    # By the class itself: what `isinstance` denies costs a call into `abc`, and nearly every name comes by here.
    return around if around.__class__ is cst.Attribute and around.attr is name else name


def mentions(model: "Model", key: str, within: Iterable[cst.Name] | None = None) -> Iterator[cst.Name | cst.Attribute]:
    """The places of the file that name a name or dotted path of this text, in document order.

    ``within``: the names among which the last words of these places are looked for.
    """
    for name in model.names_by_word.get(key.rpartition(".")[2], ()) if within is None else within:
        node = whole(model, name)
        if dotted_path(node) == key:
            yield node


def attributes(model: "Model", word: str) -> Iterator[cst.Attribute]:
    """The attributes of this name in the file, of whatever object."""
    for name in model.names_by_word.get(word, ()):
        node = whole(model, name)
        if node is not name:
            yield node  # type: ignore[misc]


def calls_of(model: "Model", path: str) -> Iterator[cst.Call]:
    """The calls in the file of what is written like this."""
    return (call for call in model.calls_by_word.get(path.rpartition(".")[2], ()) if dotted_path(call.func) == path)


def calls_among(model: "Model", names: Iterable[cst.Name]) -> Iterator[cst.Call]:
    """The calls of what some names are the last words of: of the few in one scope, where the file has many."""
    found = (model.tree.call_of(whole(model, name)) for name in names)
    return (call for call in found if call is not None)


def method_calls(model: "Model", path: str, words: Iterable[str]) -> Iterator[cst.Call]:
    """The calls in the file of some methods of what is written like this."""
    return (call for word in words for call in calls_of(model, f"{path}.{word}"))
