"""Loads of files that hold objects of Python, which ``torch.load`` has refused since PyTorch 2.6."""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.mistaken import taken_for_module
from mllint.semantic.names.uses import uses_of_bound
from mllint.syntax.shape import dotted_path, last_word, string_literal, subscript_index
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_OF_MODULES = frozenset({
    "eval", "train", "parameters", "named_parameters", "modules", "children", "forward", "state_dict",
    "load_state_dict", "zero_grad", "sublayers",
})  # fmt: skip
"""What is asked of modules alone, or of what holds a state like theirs."""
_OF_VALUES = frozenset(
    {name for kind in (Counter, OrderedDict, list, str, int, float, set, bytes) for name in dir(kind)}
)
_ALLOWED = re.compile(
    rb"safe_globals|NO_WEIGHTS_ONLY|torch\.load\s*=[^=]|partial\(\s*torch\.load|\b(?:ultralytics|torch_geometric)\b"
)
"""Where classes are allowed, by a library for its own, too, or another function is put in the place of this one."""
_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "callable", "type", "getattr"})
_STEPS = 3


def is_refused(model: "Model", load: cst.Call) -> bool:
    """Whether what a call of ``torch.load`` reads is surely used as no tensor, plain value or collection of these.

    Nowhere in the files around it may a class be allowed. What the code asks about first may be either.
    """
    if not any(_is_object(model, use, is_entry) for use, is_entry in _read(model, load, load, _STEPS)):
        return False
    if taken_for_module(model, load) is not None:
        return False  # the code has saved a dict there
    if model.project is None:
        return _ALLOWED.search(model.source.text.encode()) is None
    return not model.project.is_written_near(model.path, _ALLOWED)


def _read(
    model: "Model", node: cst.BaseExpression, load: cst.Call, steps: int, *, is_entry: bool = False
) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """Where a loaded thing is read, and each entry of it, and whether it is an entry that has a name there."""
    yield node, is_entry
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        has_name = string_literal(subscript_index(parent)) is not None
        if has_name or subscript_index(parent) is not None:
            yield from _read(model, parent, load, steps, is_entry=has_name)
    elif isinstance(parent, (cst.Assign, cst.AnnAssign)) and parent.value is node and steps:
        for use in uses_of_bound(model, parent):
            if not _is_asked_first(model, use, load):
                yield from _read(model, use, load, steps - 1, is_entry=is_entry)


def _is_object(model: "Model", node: cst.BaseExpression, is_entry: bool) -> bool:
    """Whether a module, or for an entry with a name any object, has what is read here, and no plain value.

    What is loaded as a whole, or stands in a list, may be of a library that allows its own classes: graphs, boxes.
    """
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Call) and parent.func is node:
        return True
    if not isinstance(parent, cst.Attribute) or parent.value is not node:
        return False
    name = parent.attr.value
    return name in _OF_MODULES or (is_entry and not _is_of_plain_value(name))


def _is_of_plain_value(name: str) -> bool:
    """Whether a tensor, or a plain value that may stand in any such file, has an attribute or method of that name."""
    return (
        name in _OF_VALUES
        or lookup.tensor_method("torch", name) is not None
        or lookup.tensor_attribute("torch", name) is not None
    )


def _is_asked_first(model: "Model", use: cst.BaseExpression, load: cst.Call) -> bool:
    """Whether a condition around a use asks what was read, or an error there is caught."""
    path = (dotted_path(use) or "").partition(".")[0]
    for ancestor in model.tree.ancestors(use):
        if isinstance(ancestor, cst.Try) and not model.tree.is_inside(load, ancestor):
            return True
        if isinstance(ancestor, (cst.If, cst.IfExp)) and _asks_what_it_is(ancestor.test, path):
            return True
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda)):
            return False
    return False


def _asks_what_it_is(test: cst.BaseExpression, name: str) -> bool:
    """Whether a condition asks of what kind something is, and not what is in it: ``"args" in checkpoint``."""
    calls = (part for part in subtree(test) if isinstance(part, cst.Call))
    return any(last_word(call.func) in _ASKING and name in names_in(call) for call in calls)
