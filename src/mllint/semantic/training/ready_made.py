"""Inference with pretrained models of a library, which nobody loads weights into."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.facts import PADDLE_BUILDERS
from mllint.semantic.events.places import children_of
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.inferences import is_used_as_made
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.values import Module
from mllint.syntax.shape import constant, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

PRETRAINED = ("pretrained", "weights")
"""The arguments with which a builder of a library is asked for a pretrained model."""
_BUILDERS = ("torchvision.models.", "timm.create_model")
"""What gives models in training mode, pretrained or not (run: torchvision 0.28, timm 1.0)."""


def inferences_ready_made(model: "Model") -> Iterator[cst.Call]:
    """The first forward pass, in a file, of each pretrained model that nobody switched."""
    if is_test_code(model) or "backward" in model.calls_by_word:
        return
    for word in PRETRAINED:
        for name in model.names_by_word.get(word, ()):
            making = _asked_for(model, name)
            node = None if making is None else _first_use(model, making)
            if node is not None:
                yield node


def _asked_for(model: "Model", name: cst.Name) -> cst.Call | None:
    """The call of a builder that an argument asks for pretrained weights."""
    arg = model.tree.parent(name)
    call = None if arg is None else model.tree.parent(arg)
    if not isinstance(arg, cst.Arg) or arg.keyword is not name or not isinstance(call, cst.Call):
        return None
    # Most of what is made with such an argument is only given back.
    if not _called_as(model, call) or not _says_yes(model, arg.value):
        return None
    called = model.qualified_name(call.func) or ""
    return call if called.startswith(_BUILDERS) or called in PADDLE_BUILDERS else None


def _says_yes(model: "Model", value: cst.BaseExpression) -> bool:
    """``True``, or the name of some weights: ``"DEFAULT"``, ``ResNet18_Weights.DEFAULT``."""
    if isinstance(value, cst.Name) and constant(value) is not True:
        bound = [binding.value for binding in model.reaching(value)]
        return len(bound) == 1 and isinstance(bound[0], cst.Attribute)
    return constant(value) is True or string_literal(value) is not None or isinstance(value, cst.Attribute)


def _first_use(model: "Model", making: cst.Call) -> cst.Call | None:
    """The first call of what a call makes, if that is only used to infer with."""
    for node in _called_as(model, making):
        if model.runs.always(node, lambda item: _is_of(item, making) and is_used_as_made(item)):
            return node
    return None


def _called_as(model: "Model", making: cst.Call) -> list[cst.Call]:
    """The calls in a file of what has a name to which it binds what a call makes, or what is made of its children."""
    whole = list(_bound(model, making))
    words = (*whole, *_parts_of(model, whole)) if whole else ()
    return [node for word in words for node in model.calls_by_word.get(word, ())]


def _bound(model: "Model", making: cst.Call) -> Iterator[str]:
    """The names to which a file binds what a call makes."""
    for item in model.tree.ancestors(making):
        if isinstance(item, cst.Assign):
            yield from (target.target.value for target in item.targets if isinstance(target.target, cst.Name))
        if isinstance(item, cst.BaseSmallStatement):
            return


def _parts_of(model: "Model", names: list[str]) -> Iterator[str]:
    """The names to which a file binds what is made of the children of a model."""
    for call in model.calls_by_word.get("Sequential", ()):
        whole = children_of(call)
        if isinstance(whole, cst.Name) and whole.value in names:
            yield from _bound(model, call)


def _is_of(occurrence: Occurrence, making: cst.Call) -> bool:
    value, thing = module_called(occurrence.event), occurrence.event.thing
    if isinstance(value, Module) and value.call is not None and children_of(value.call) is not None and thing:
        made = (root.scope.model.binding_value(root) for root in thing.roots if isinstance(root, Binding))
        return any(isinstance(item, Module) and item.call is making for item in made)
    return isinstance(value, Module) and value.call is making
