"""What the code saves of a class of networks, where a path tells no more than that it is called like what is read."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State, Whole, entry_at
from mllint.semantic.checkpoints.converted import is_converted
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, path_given, read_path
from mllint.semantic.values import Module, Object
from mllint.syntax.shape import dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.names.definitions import ClassInfo


def written_of_class(load: Load, content: FromFile) -> list[tuple[Saved, Content | None]]:
    """What was read, as every save of networks of this class of the project writes it.

    Nothing where any of what is saved may be such a network in another form, or the file loads two forms of it.
    """
    wanted = load.value.definition if isinstance(load.value, Module) and not load.value.others else None
    path = read_path(content) if wanted is not None and not content.renames else None
    if wanted is None or path is None or path.is_of_others:
        return []
    given = path_given(content)
    if isinstance(given, cst.Subscript) and isinstance(Tracer(load.model).content(given), FromFile):
        return []  # it is no path at all
    found: list[tuple[Saved, Content | None]] = []
    for saved in load.model.surroundings.saved:
        if _is_sequence(saved):
            continue  # nothing loads that: data, or what is unpacked first
        held = _holds(saved.content, wanted, last_word(load.receiver))
        if held is None:
            return []
        if held and not is_converted(saved):
            inner = entry_at(saved.content, content.trail)
            if isinstance(inner, State):
                return []
            found.append((saved.of_some_run(), inner))
    # An option says which file is read: that the project's have no such entry is told by the class.
    is_told = path.is_blank and bool(content.trail)
    is_told = is_told or any(saved.path is not None and path.is_alike(saved.path) for saved, _ in found)
    return found if is_told and not is_loaded_otherwise(load, content) else []


def _is_sequence(saved: Saved) -> bool:
    """Whether a tuple or a list is saved, as it is written in the call."""
    call = saved.place.node
    return isinstance(call, cst.Call) and bool(call.args) and isinstance(call.args[0].value, (cst.Tuple, cst.List))


def is_loaded_otherwise(load: Load, content: FromFile) -> bool:
    """Whether the file loads into the same thing what it reads in another form: the weights of somebody else."""
    model, path = load.model, dotted_path(load.receiver)
    for word in LOADING:
        for call in model.calls_by_word.get(word, ()):
            other = load_of(model, call) if call is not load.call else None
            if other is not None and dotted_path(other.receiver) == path:
                given = Tracer(model).content(other.given)
                if not isinstance(given, FromFile) or given.trail != content.trail:
                    return True
    return False


def _holds(content: Content | None, wanted: "ClassInfo", name: str | None) -> bool | None:
    """Whether a network of a class is in what is saved; ``None`` where that is not known.

    Of what functions are given, and nobody knows what it is, the name tells.
    """
    match content:
        case Record():
            held = [_holds(item, wanted, name) for item in content.items.values() if isinstance(item, (State, Whole))]
            return True if any(held) else None if None in held or content.is_open else False
        case State(owner=Object()):
            return False
        case State(owner=None) if content.name is not None:
            return True if content.name == name else None
        case State() | Whole():
            owner = content.owner
            definition = owner.definition if isinstance(owner, Module) and not owner.others else None
            return None if definition is None else definition.is_same_as(wanted)
    return None
