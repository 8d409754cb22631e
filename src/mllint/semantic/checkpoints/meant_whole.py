"""Whole things that are saved for readers who know it: they say ``weights_only=False``.

That are the reads of the very file. Where there are none, the files of that ending are a format of the project if a
read asks for it: ``if path.endswith(".net"): net = torch.load(path, weights_only=False)``.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.places import Place
from mllint.semantic.checkpoints.refused import is_read_again
from mllint.semantic.checkpoints.tracing import default_path, path_given, read_path
from mllint.semantic.names.conditions import verdicts
from mllint.syntax.shape import argument, constant, dotted_path, has_star_arguments, string_literal
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_FILES = 100
"""How many files of a project are looked at for what they read."""
_OF_ANYTHING = frozenset({".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".tar", ".model", ".th", ".t7"})
"""Endings that tell nothing of what is in a file."""


def is_meant_whole(model: "Model", save: cst.Call) -> bool:
    """Whether whoever reads what a call saves allows any class, as far as the code around shows."""
    saved = (item for item in model.surroundings.saved if item.place.is_of(model, save))
    written = [item.path for item in saved if item.path is not None and not item.path.is_blank]
    surely: list[bool] = []
    by_ending: list[bool] = []
    for read in _reads(model) if written else ():
        path = read_path(read)
        if path is None or path.is_blank:
            path = default_path(read)
        if path is not None and any(path.is_same_as(other) for other in written):
            surely.append(_allows_classes(read))
        elif path is None and any(ending in _asked_endings(read) for ending in _endings(written)):
            by_ending.append(_allows_classes(read))
    return all(surely) if surely else any(by_ending)


def _reads(model: "Model") -> Iterator[FromFile]:
    """The calls of ``torch.load`` in the project; none where nobody says there what is to be read.

    A file that reads whole modules need not do anything else with them, so it is not one of those around.
    """
    project = model.project
    if project is None or not project.users(model.path, "torch", "weights_only"):
        return
    paths = project.users(model.path, "torch", "load(")
    others = [model.neighbour(path) for path in paths[:MAX_FILES] if path != model.path]
    for other in dict.fromkeys((*model.surroundings.models, *others)):
        for call in () if other is None else other.calls_by_word.get("load", ()):
            if other is not None and other.library_name(call.func) == "torch.load":
                yield FromFile(Place(other, call))


def _allows_classes(read: FromFile) -> bool:
    """Whether a read allows any class, or may do so, also when it was tried without before."""
    model, call = read.place.model, read.place.node
    if not isinstance(call, cst.Call) or has_star_arguments(call) or argument(call, 2, "pickle_module") is not None:
        return True
    given = argument(call, None, "weights_only")
    if given is not None:
        return constant(given.value) is not True
    return is_read_again(model, call)


def _endings(paths: Iterable[Path]) -> set[str]:
    """The endings of files' names that tell what is in them."""
    names = (path.known[-1].rpartition("/")[2] for path in paths)
    return {f".{name.rpartition('.')[2]}" for name in names if "." in name} - _OF_ANYTHING


def _asked_endings(read: FromFile) -> set[str]:
    """The endings of which a test tells that the path has one where a file is read."""
    model, given = read.place.model, path_given(read)
    path = None if given is None else dotted_path(given)
    if path is None:
        return set()
    name = path.partition(".")[0]
    tests = (test for test, holds in verdicts(model, read.place.node) if holds and name in names_in(test))
    texts = (string_literal(part) for test in tests for part in subtree(test) if isinstance(part, cst.SimpleString))
    return {text for text in texts if text is not None and text.startswith(".")}
