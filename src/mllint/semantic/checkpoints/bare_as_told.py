"""Loads of a bare module from the file of an option, which other code always loads into a wrapper.

``train.py`` saves ``net.state_dict()``, and has put ``net`` into ``DataParallel`` where there is a GPU. ``predict.py``
and ``export.py`` read ``args.checkpoint``: the one into ``DataParallel(net)``, the other into ``net``. Whichever keys
the file has, one of the two raises.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile, State, entry_at
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.one_sided import OneSided, is_handled, is_surely_bare
from mllint.semantic.checkpoints.rewritten import is_converted
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.told_elsewhere import options_read
from mllint.semantic.checkpoints.tracing import Tracer, default_path, read_path
from mllint.semantic.checkpoints.wrapped import is_taken_off, loads_around
from mllint.semantic.checkpoints.wrappings import prefix_of, wrappings
from mllint.semantic.values import Module

if TYPE_CHECKING:
    from mllint.semantic.names.definitions import ClassInfo


def bare_as_told(load: Load) -> tuple[Saved, State, OneSided] | None:
    """The wrapper that a load lacks, and who saves the state of a module that may be in it."""
    wanted = _class_of(load)
    content = Tracer(load.model).content(load.given) if wanted is not None and load.is_strict is True else None
    if wanted is None or not isinstance(content, FromFile) or not _is_told(content) or is_guarded(load):
        return None
    if not is_surely_bare(load.model, load.receiver) or is_handled(load.model, load.receiver, load.call):
        return None
    if is_taken_off(load.model):
        return None
    found = [(saved, state, _wrapper_of(state)) for saved, state in _states(load, content, wanted)]
    wrapper = found[0][2] if found else None
    if wrapper is None or any(item[2] != wrapper for item in found) or not _is_wrapped(load, content, wanted, wrapper):
        return None
    saved, state, _ = found[0]
    return saved.of_some_run(), state, OneSided(prefix_of((wrapper,)), wrapper.rpartition(".")[2], is_given=True)


def _class_of(load: Load) -> "ClassInfo | None":
    return load.value.definition if isinstance(load.value, Module) and not load.value.others else None


def _is_told(content: FromFile) -> bool:
    """Whether nothing but an option, without a default, says which file is read, and it is none of somebody else's."""
    path = read_path(content)
    if path is None or path.is_of_others or content.renames or default_path(content) is not None:
        return False
    options = options_read(content)
    return len(options) == 1 and None not in options


def _states(load: Load, content: FromFile, wanted: "ClassInfo") -> list[tuple[Saved, State]]:
    """What the project saves of networks of a class where the load finds it; nothing where that is not all known."""
    found: list[tuple[Saved, State]] = []
    for saved in load.model.surroundings.saved:
        inner = entry_at(saved.content, content.trail)
        owner = inner.owner if isinstance(inner, State) else None
        if not isinstance(inner, State) or is_converted(saved):
            continue
        if not isinstance(owner, Module) or owner.others or owner.definition is None or inner.is_unclear:
            return []
        if owner.definition.is_same_as(wanted):
            found.append((saved, inner))
    return found


def _wrapper_of(state: State) -> str | None:
    """The one wrapper in which a module is, on some way at least, whose state is saved."""
    call = state.place.node
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    around = wrappings(state.place.model, call.func.value)
    wrapped = {item for item in around if item}
    only = wrapped.pop() if len(wrapped) == 1 and None not in around else ()
    return only[0] if len(only) == 1 else None


def _is_wrapped(load: Load, content: FromFile, wanted: "ClassInfo", wrapper: str) -> bool:
    """Whether the file of the same option is loaded elsewhere into such a network, which is in the wrapper always."""
    options = options_read(content)
    for other in loads_around(load.model):
        definition = _class_of(other)
        if definition is None or not definition.is_same_as(wanted) or other.is_strict is not True or is_guarded(other):
            continue
        given = Tracer(other.model).content(other.given)
        if not isinstance(given, FromFile) or given.trail != content.trail or not _is_told(given):
            continue
        around = wrappings(other.model, other.receiver)
        if options_read(given) == options and around and all(item == (wrapper,) for item in around):
            return True
    return False
