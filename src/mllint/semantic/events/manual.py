"""Modules of Lightning that clear, compute and step by themselves: ``self.automatic_optimization = False``.

Their trainer only calls ``training_step`` for each batch then, and the order of what happens there is the script's.
"""

import libcst as cst

from mllint.semantic.events.steps import Loop
from mllint.semantic.events.things import Frame
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.syntax.shape import constant

_SETTING = "automatic_optimization"
_OF_EACH_BATCH = "training_step"
_GIVEN = {"optimizers": "optimizer", "lr_schedulers": "scheduler"}
LIGHTNING = frozenset({"lightning", "pytorch_lightning"})
HARMLESS = frozenset({
    "log", "log_dict", "print", "toggle_optimizer", "untoggle_optimizer", "clip_gradients", "optimizers",
    "lr_schedulers", "all_gather",
})  # fmt: skip
"""Methods of their base class that clear no gradients, compute none, and take no step.

Source: https://lightning.ai/docs/pytorch/stable/model/manual_optimization.html
"""


def optimizes_by_hand(owner: ClassInfo) -> bool:
    """Whether a class says that it leaves none of this to the trainer: each time that it says anything of it."""
    if not any(name.partition(".")[0] in LIGHTNING for name in owner.library_bases):
        return False
    said = [item.value for item in owner.assignments(_SETTING) if item.kind is BindingKind.ASSIGN]
    getter = owner.method(_SETTING)
    said += [] if getter is None else [returned.value for returned in getter.scope.returns]
    return bool(said) and all(value is not None and constant(value) is False for value in said)


def given_by_trainer(binding: Binding) -> str | None:
    """What kind of thing a module of Lightning asks its trainer for: ``first, second = self.optimizers()``."""
    call, scope = binding.value, binding.scope
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _GIVEN:
        return None
    function = scope.model.function_info(scope.node) if isinstance(scope.node, cst.FunctionDef) else None
    owner = None if function is None else function.owner
    is_own = (
        isinstance(call.func.value, cst.Name) and function is not None and call.func.value.value == function.self_name
    )
    if owner is None or not is_own or owner.method(call.func.attr.value) is not None:
        return None
    is_of_lightning = any(name.partition(".")[0] in LIGHTNING for name in owner.library_bases)
    return _GIVEN[call.func.attr.value] if is_of_lightning else None


def owner_of_run(frame: Frame) -> ClassInfo | None:
    """The class of the object whose method runs."""
    return frame.instance_of or (None if frame.function is None else frame.function.owner)


def rounds_of_trainer(frame: Frame) -> Loop | None:
    """The loop in which the trainer calls the ``training_step`` of such a module."""
    function, owner = frame.function, owner_of_run(frame)
    if function is None or owner is None or function.name != _OF_EACH_BATCH or frame.caller is not None:
        return None
    body = function.node.body
    if not isinstance(body, cst.IndentedBlock) or not optimizes_by_hand(owner):
        return None
    loop = frame.model.tree.standing_in(body, _OF_EACH_BATCH, lambda: cst.While(cst.Name("True"), body))
    return Loop(loop, frame)
