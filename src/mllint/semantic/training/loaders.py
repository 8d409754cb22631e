"""For what a loader is: for training or for evaluation, to go by how its dataset was made."""

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.things import Frame
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import is_object
from mllint.syntax.iteration import sources
from mllint.syntax.shape import argument, constant, last_word, string_literal

TRAINING = "training"
EVALUATION = "evaluation"

_FLAGS = frozenset({"train", "is_train", "training", "is_training", "istrain", "train_mode"})
_SPLITS = frozenset({"split", "mode", "phase", "subset", "image_set", "partition", "set", "split_name", "stage"})
_OF_SPLIT = {
    **dict.fromkeys(("train", "training", "trainval"), TRAINING),
    **dict.fromkeys(
        ("test", "val", "valid", "validation", "eval", "dev", "testing", "evaluation", "test-dev"), EVALUATION
    ),
}
_LOOKUPS = frozenset({"get", "getattr", "getlist", "pop", "setdefault"})
"""What reads a setting: a word that it is given is the name of the setting."""
_STEPS = 8


def role_of(frame: Frame, iterable: cst.BaseExpression) -> str | None:
    """Whether a loop runs over training or evaluation data; ``None``: nothing says."""
    return _role(frame, iterable, _STEPS)


def _role(frame: Frame, node: cst.BaseExpression, steps: int) -> str | None:
    if steps <= 0:
        return None
    if isinstance(node, cst.Call):
        first = next(sources(node)).node
        return _of_call(frame, node, steps) if first is node else _role(frame, first, steps - 1)
    thing = frame.thing(node)
    if thing is None:
        return None
    makers = [maker for root in thing.roots for maker in makers_of(root, thing.path)]
    roles = {_of_binding(maker, steps) for maker in makers}
    return roles.pop() if len(roles) == 1 else None


def _of_binding(binding: Binding, steps: int) -> str | None:
    if binding.value is None or binding.path or binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED):
        return None
    model = binding.scope.model
    return _role(Frame(model, function_around(model, binding.value)), binding.value, steps - 1)


def _of_call(frame: Frame, call: cst.Call, steps: int) -> str | None:
    if last_word(call.func) in _LOOKUPS:
        return None
    value = frame.value(call)
    if is_object(value, "loader"):
        dataset = argument(call, 0, "dataset")
        return None if dataset is None else _role(frame, dataset.value, steps - 1)
    return _of_dataset(frame, call)


def _of_dataset(frame: Frame, call: cst.Call) -> str | None:
    """What the arguments of a dataset's constructor say: ``train=False``, ``split="test"``."""
    known = frame.model.qualified_name(call.func)
    names = () if known is None else lookup.parameters(known)
    for index, arg in enumerate(call.args):
        if arg.star:
            return None
        keyword = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else ""
        flag, text = constant(arg.value), (string_literal(arg.value) or "").lower()
        if keyword in _FLAGS and isinstance(flag, bool):
            return TRAINING if flag else EVALUATION
        if text in _OF_SPLIT and (keyword in _SPLITS or arg.keyword is None):
            return _OF_SPLIT[text]
    return None
