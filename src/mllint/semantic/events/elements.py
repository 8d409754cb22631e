"""Which thing the variable of a loop over a collection stands for: each of its elements."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.places import has_named_parts, keeps_named_parts
from mllint.semantic.names.scopes import Binding
from mllint.syntax.iteration import sources
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.events.things import Frame, Thing

EVERY = "[*]"
"""The step to each element of a collection."""


def element_of(
    frame: "Frame", iterable: cst.BaseExpression, path: tuple[int | None, ...], steps: int
) -> "Thing | None":
    """Each element of what is run over: ``for optimizer in self.optimizers``, ``enumerate``, ``zip``, ``items``."""
    found = [item for item in sources(iterable) if path[: len(item.path)] == item.path]
    if len(found) != 1:
        return None
    node, rest = found[0].node, path[len(found[0].path) :]
    match node:
        case cst.Call(func=cst.Attribute(value=mapping, attr=cst.Name(value=word)), args=()):
            return _each(frame, mapping, steps) if (word, rest) in (("values", ()), ("items", (1,))) else None
        case cst.Call():
            return None
    return None if rest else _each(frame, node, steps)


def _each(frame: "Frame", collection: cst.BaseExpression, steps: int) -> "Thing | None":
    holder = frame.thing(collection, steps - 1)
    if holder is None or isinstance(collection, (cst.List, cst.Tuple)):
        return None
    made = [root.value for root in holder.roots if isinstance(root, Binding) and not holder.path]
    owner = frame.owner_of(collection)
    is_kept = owner is not None and keeps_named_parts(owner, last_word(collection) or "")
    # Not of things that have names of their own.
    return None if is_kept or any(map(has_named_parts, made)) else holder.part(EVERY)
