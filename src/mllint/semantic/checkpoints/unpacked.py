"""Reads of a dict that are unpacked into several names: ``params, optimizer = paddle.load(path)``.

``fluid.load_dygraph`` of old Paddle returned a pair; ``paddle.load`` and ``torch.load`` return what was saved, and a
dict that is unpacked gives its keys.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.places import Place
from mllint.semantic.checkpoints.saves import Saved, resolved
from mllint.semantic.checkpoints.tracing import read_path
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Loaded

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_PAIR = 2
"""So many things did ``load_dygraph`` give: the parameters, and the state of the optimizer."""


class Unpacked(msgspec.Struct, frozen=True):
    """A dict that several names share, and what saves it: ``None`` where nothing in sight saves anything."""

    saved: Saved | None


def unpacked(model: "Model", read: cst.Call) -> Unpacked | None:
    """The dict that a call of ``load`` reads, where several names share it and one of them is loaded."""
    statement = model.tree.parent(read)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) < 2:
        return None
    if not _is_loaded(model, statement):
        return None
    first: Saved | None = None
    for saved, content in _written(model, FromFile(Place(model, read))):
        if not isinstance(content, (State, Record)):
            return None
        first = first or saved
    is_old_pair = first is None and len(target.elements) == _PAIR and not model.surroundings.saved
    return Unpacked(first) if first is not None or (is_old_pair and _is_of_paddle(model, read)) else None


def _is_of_paddle(model: "Model", read: cst.CSTNode) -> bool:
    """Whether a call is that of Paddle, for whose own pair what it reads is mistaken."""
    value = model.value(read)
    return isinstance(value, Loaded) and value.framework == "paddle"


def _is_loaded(model: "Model", statement: cst.Assign) -> bool:
    """Whether one of the names that a statement binds is loaded into something, and the code is sure what it is."""
    for name in uses_of_bound(model, statement):
        arg = model.tree.parent(name)
        call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.args[0] is arg:
            is_load = call.func.attr.value in LOADING
            if is_load and not is_guarded(Load(model, call, call.func.value, None, name, None)):
                return True
    return False


def _written(model: "Model", content: FromFile) -> Iterator[tuple[Saved, Content | None]]:
    """What is saved to the path that is read; of Paddle all that the code saves."""
    path = read_path(content)
    saved = model.surroundings.saved
    known = [] if path is None or path.is_blank else list(resolved(content, saved, path))
    if not known and _is_of_paddle(model, content.place.node):
        yield from ((item, item.content) for item in saved)
    yield from known
