"""Files that only the running program can have written: in a temporary folder of its own, or in its memory."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.saved_objects import parts_of_path, saves_to_same
from mllint.semantic.checkpoints.tracing import path_given

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_IN_MEMORY = "io.BytesIO"


def is_own_file(model: "Model", load: cst.Call) -> bool:
    """Whether a call reads what the same file of the code has written where no other program writes.

    ``with TemporaryDirectory() as folder:``, ``NamedTemporaryFile()``, ``buffer = io.BytesIO()``.
    """
    given = path_given(FromFile(Place(model, load)))
    parts = () if given is None else parts_of_path(model, given)
    if not any(isinstance(part, cst.Call) and _makes_own_place(model, part) for part in parts):
        return False
    return any(place.model is model for place in saves_to_same(model, load))


def _makes_own_place(model: "Model", call: cst.Call) -> bool:
    name = model.qualified_name(call.func) or ""
    return name.startswith("tempfile.") or (name == _IN_MEMORY and not call.args)
