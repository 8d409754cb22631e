"""Files that one function loads twice into the same thing: as a whole, and an entry of them. Only one of the two fits.

``net.load_state_dict(torch.load(path))`` and ``state = torch.load(path)``, ``net.load_state_dict(state["net"])``.
"""

from collections.abc import Iterator

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.handling import is_guarded, runs_with
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.tracing import Tracer, path_given, read_path
from mllint.semantic.names.mentions import calls_of
from mllint.semantic.names.scopes import Binding
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree


def entries_loaded(load: Load, content: FromFile) -> tuple[str, ...]:
    """The entries of the file, which one load is given as a whole, that others load along with it into the same thing.

    Nothing where the path may stand for two files.
    """
    path, receiver = read_path(content), dotted_path(load.receiver)
    others = list(_loads_beside(load, receiver)) if path is not None and receiver is not None else []
    found: list[str] = []
    for other in others:
        given = Tracer(load.model).content(other.given)
        if not isinstance(given, FromFile) or len(given.trail) != 1 or given.renames or is_guarded(other):
            continue
        if read_path(given) == path and _holders(given) == _holders(content):
            found.append(given.trail[0])
    return tuple(dict.fromkeys(found))


def _loads_beside(load: Load, receiver: str) -> Iterator[Load]:
    """The other strict loads into the very same thing, of the same function, that run whenever this one does."""
    model, function = load.model, load.model.enclosing_function(load.call)
    for call in (call for word in sorted(LOADING) for call in calls_of(model, f"{receiver}.{word}")):
        is_other = call is not load.call and model.enclosing_function(call) is function
        other = load_of(model, call) if is_other and runs_with(call, load) else None
        if other is not None and other.is_strict and model.reaching(other.receiver) == model.reaching(load.receiver):
            yield other


def _holders(content: FromFile) -> list[tuple[Binding, ...]]:
    """What binds the names in the path that a call reads: the same text of two bindings is two paths."""
    given = path_given(content)
    if given is None:
        return []
    reader, source = Tracer(content.place.model, content.route).origin(given)
    return [tuple(reader.model.reaching(part)) for part in subtree(source) if isinstance(part, cst.Name)]
