"""Loads of one file in two branches, of which only one takes the prefix of a wrapper off the keys.

Whichever keys the file has, one of the two raises: the module is in a wrapper on neither way, and what decides between
them is whether there is a GPU, which says nothing of the file.
"""

from collections.abc import Iterator

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.one_sided import is_surely_bare, names_in
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.mentions import calls_of
from mllint.syntax.shape import dotted_path

_KEY = "layer.0.weight"
_IS_THERE = "is_available"


def stripped_beside(load: Load) -> str | None:
    """The prefix that another branch takes off the keys of the same file before it loads them into the same module."""
    others = list(_loads_beside(load)) if load.is_strict else []
    content = Tracer(load.model).content(load.given) if others else None
    if not isinstance(content, FromFile) or content.renames:
        return None
    path = read_path(content)
    for other in others if path is not None else ():
        given = Tracer(load.model).content(other.given)
        if not isinstance(given, FromFile) or given.trail != content.trail or read_path(given) != path:
            continue
        for prefix in WRAPPER_PREFIXES:
            receivers = (load.receiver, other.receiver)
            if _takes_off(given, prefix) and all(is_surely_bare(load.model, node) for node in receivers):
                return prefix
    return None


def _loads_beside(load: Load) -> Iterator[Load]:
    """The strict loads into a thing of the same name in another branch of the same function."""
    model, function = load.model, load.model.enclosing_function(load.call)
    path = dotted_path(load.receiver)
    for call in () if path is None else calls_of(model, f"{path}.{load.method}"):
        is_beside = model.enclosing_function(call) is function and is_in_another_branch(model, load.call, call)
        if is_beside and _depends_on_device(load, call):
            other = load_of(model, call)
            if other is not None and other.is_strict:
                yield other


def _depends_on_device(load: Load, other: cst.Call) -> bool:
    """Whether the ``if`` that has two loads in its branches asks for a GPU, and not for how many."""
    around = set(map(id, load.model.tree.ancestors(other)))
    for ancestor in load.model.tree.ancestors(load.call):
        if isinstance(ancestor, cst.If) and id(ancestor) in around:
            asked = {name.rpartition(".")[2] for name in names_in(load.model, ancestor.test)}
            return _IS_THERE in asked and not any("count" in name for name in asked)
    return False


def _takes_off(content: FromFile, prefix: str) -> bool:
    """Whether a key with the prefix loses it on the way, and one without does not stay what it was."""
    keys: tuple[str, ...] | None = (prefix + _KEY,)
    others: tuple[str, ...] | None = (_KEY,)
    for rename in content.renames:
        keys = rename(keys[0]) if keys is not None and len(keys) == 1 else None
        others = rename(others[0]) if others is not None and len(others) == 1 else None
    return keys == (_KEY,) and others is not None and others != (_KEY,)
