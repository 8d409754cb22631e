"""Loads of a dict of which the code reads single weights: their keys tell whether a wrapper's prefix is in them.

``state["pool.centroids"].shape`` is read, ``net.pool`` is in ``DataParallel``, and the state is loaded into ``net``.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.handling import entries_read
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.one_sided import OneSided, is_handled, is_surely_bare
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.checkpoints.wrappings import prefix_of, wrappings
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.events.places import as_itself
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def told_by_keys(load: Load) -> OneSided | None:
    """The wrapper whose prefix the keys of only one side have, by those that are read of the very dict."""
    if load.is_strict is not True:
        return None
    read = [key for key in entries_read(load) if "." in key]
    content = Tracer(load.model).content(load.given) if read else None
    if not isinstance(content, FromFile) or content.renames or is_handled(load.model, load.receiver, load.call):
        return None
    for part, wrapper in _wrapped(load.model, load.receiver):
        prefix = prefix_of((wrapper,))
        if any(key.startswith(part) and not key.startswith(part + prefix) for key in read):
            return OneSided(prefix, wrapper.rpartition(".")[2], False, part)
    for prefix in WRAPPER_PREFIXES:
        if any(key.startswith(prefix) for key in read) and isinstance(load.value, Module):
            return OneSided(prefix, "", True) if is_surely_bare(load.model, load.receiver) else None
    return None


def _wrapped(model: "Model", node: cst.BaseExpression) -> Iterator[tuple[str, str]]:
    """What may be in a wrapper of a module at a place, all of it (empty) or a part (``pool.``), with the wrapper."""
    for wrappers in wrappings(model, node):
        if wrappers is not None and len(wrappers) == 1:
            yield "", wrappers[0]
    scope, path = model.scope_of(node), f"{dotted_path(node)}."
    for key in scope.bindings:
        if not key.startswith(path) or "." in key.removeprefix(path):
            continue
        for binding in scope.reaching(key, node).bindings:
            made = None if binding.value is None else as_itself(binding.value)
            name = model.qualified_name(made.func) if isinstance(made, cst.Call) else None
            if name is not None and (wrapper := lookup.wrapper(name)) is not None and wrapper.prefix:
                yield f"{key.removeprefix(path)}.", name
