"""Loads of one file in two branches, into what is made alike in both and put into a wrapper in one of them only.

``if train: net = DataParallel(build()); net.load_state_dict(torch.load(path))``, and in the ``else`` of it
``net = build(); net.load_state_dict(torch.load(path))``: whichever keys the file has, one of the two raises.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.journeys import journey_of
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.checkpoints.wrapped_later import is_wrapped_later
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import fingerprint

if TYPE_CHECKING:
    from mllint.semantic.checkpoints.wrapped import WrappedSave
    from mllint.semantic.model import Model


def is_read_bare_beside(save: "WrappedSave", wrapped: Load, bare: Load) -> bool:
    """Whether a file goes into the wrapped module that is saved, and in another branch into one from the same maker."""
    model = save.call_model
    if wrapped.model is not model or bare.model is not model or not (wrapped.is_strict and bare.is_strict):
        return False
    if not set(model.reaching(wrapped.receiver)) & set(model.reaching(save.receiver)):
        return False
    if any(not is_in_another_branch(model, bare.call, node) for node in (wrapped.call, save.call)):
        return False
    read = [Tracer(model).content(load.given) for load in (wrapped, bare)]
    paths = [read_path(item) for item in read if isinstance(item, FromFile) and item.trail == save.trail]
    is_same = len(paths) == 2 and paths[0] is not None and paths[0] == paths[1]
    is_same = is_same and not any(isinstance(item, FromFile) and item.renames for item in read)
    insides = [_made(*item) for item in journey_of(model, wrapped.receiver).wrapped] if is_same else []
    made = _made(model, bare.receiver) if insides else set()
    is_alike = bool(made) and any(made == inside for inside in insides)
    return is_alike and not is_wrapped_later(bare) and not is_guarded(wrapped) and not is_guarded(bare)


def _made(model: "Model", node: cst.BaseExpression) -> set[str]:
    """The texts of what is called to make the thing that an expression stands for; none where not all are known."""
    bound = [item.value if item.kind is BindingKind.ASSIGN and not item.path else None for item in model.reaching(node)]
    calls = [call for call in bound or [node] if isinstance(call, cst.Call)]
    return {fingerprint(call.func) for call in calls} if len(calls) == len(bound or [node]) else set()
