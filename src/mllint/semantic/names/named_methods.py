"""Which method an attribute names that is not called."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import READING
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import calls_of_path, method_calls
from mllint.semantic.values import Batch, Function, Method, Module, Object, Output, Tensor, Value
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

_BASES = {
    ("optimizer", "torch"): "torch.optim.Optimizer",
    ("optimizer", "paddle"): "paddle.optimizer.Optimizer",
    ("scheduler", "torch"): "torch.optim.lr_scheduler.LRScheduler",
    ("scheduler", "paddle"): "paddle.optimizer.lr.LRScheduler",
    ("scaler", "torch"): "torch.amp.GradScaler",
    ("scaler", "paddle"): "paddle.amp.GradScaler",
    ("module", "torch"): "torch.nn.Module",
    ("module", "paddle"): "paddle.nn.Layer",
}
# Methods that are made for the first call, whatever their signature says or the tables leave out.
_NEEDS_NOTHING = frozenset({
    "step", "zero_grad", "clear_grad", "clear_gradients", "eval", "train", "cuda", "cpu", "float", "half", "double",
    "bfloat16", "share_memory", "backward", "detach_", "zero_", "update", "requires_grad_",
})  # fmt: skip
_NEEDS_SOMETHING = {"scaler": frozenset({"step"}), "ReduceLROnPlateau": frozenset({"step"})}
# A method of this name stands for what the second names say: no other object has both.
_TOLD_BY = {
    "step": frozenset({"zero_grad", "clear_grad", "clear_gradients", "get_last_lr", "add_param_group", "minimize"}),
    "zero_grad": frozenset({"step", "parameters", "add_param_group"}),
    "clear_grad": frozenset({"step", "minimize", "parameters"}),
    "clear_gradients": frozenset({"step", "minimize", "parameters"}),
    "eval": frozenset({"parameters", "named_parameters", "load_state_dict", "set_state_dict", "train"}),
    "train": frozenset({"parameters", "named_parameters", "load_state_dict", "set_state_dict", "eval"}),
}
_MODES = frozenset({"eval", "train"})
"""What has a method of such a name and is called is a module, in a file that uses one of the frameworks."""
_NOTHING_ELSE = frozenset({"backward", "zero_grad", "clear_grad", "clear_gradients"})
"""What has an attribute of such a name has it as a method, in a file that uses one of the frameworks."""


class NamedMethod(NamedTuple):
    """A method, whether it can be called without arguments, and whether it is known of what kind of thing it is."""

    name: str
    needs_nothing: bool
    is_known: bool = True


def named_method(model: "Model", node: cst.Attribute) -> NamedMethod | None:
    """The method of a framework's object, or of a module of the project, that an attribute names.

    ``None`` for other attributes, for those of what is not known, and for methods that only give something.
    """
    word = node.attr.value
    if word in READING:
        return None  # a call would have changed nothing either
    value = model.value(node)
    if isinstance(value, Function):
        return _of_project(value)
    owner = value.receiver if isinstance(value, Method) else None
    if owner is None:
        owner = None if value is not None else model.value(node.value)
    if owner is not None:
        return _of_library(owner, word)
    if value is not None or owner is not None:
        return None
    if word in _TOLD_BY and _also_calls(model, node.value, _TOLD_BY[word]):
        return NamedMethod(word, True)
    if word in _MODES and _is_called_beside(model, node):
        return NamedMethod(word, True, is_known=False)
    if _is_told_by_name(model, node) and not _may_be_data(model, node):
        return NamedMethod(word, not _is_called_with_arguments(model, node), is_known=False)
    return None


def _of_project(value: Function) -> NamedMethod | None:
    """A method of a module of the project; functions of other kinds may be named for reasons of their own."""
    info = value.definition
    if info.owner is None or not isinstance(value.receiver, Module) or not info.is_transparent:
        return None
    return NamedMethod(info.name, _takes_nothing(info))


def _takes_nothing(info: "FunctionInfo") -> bool:
    skipped = 0 if info.is_static else 1
    needed = [item for item in info.named_parameters[skipped:] if item.default is None]
    return not needed


def _of_library(owner: Value, word: str) -> NamedMethod | None:
    match owner:
        case Tensor() | Batch() | Output() if isinstance(owner, Tensor) or word == "backward":
            known = lookup.tensor_method(owner.framework, word)
            return None if known is None else NamedMethod(word, word in _NEEDS_NOTHING)
        case Module(framework=framework):
            kind, last = "module", ""
        case Object(kind=kind, framework=framework) if framework is not None:
            last = owner.name.rpartition(".")[2]
        case _:
            return None
    base = _BASES.get((kind, framework))
    if base is None or lookup.method(base, word) is None:
        return None
    needs_something = word in _NEEDS_SOMETHING.get(kind, ()) or word in _NEEDS_SOMETHING.get(last, ())
    return NamedMethod(word, word in _NEEDS_NOTHING and not needs_something)


def _uses_a_framework(model: "Model") -> bool:
    return model.imports("torch") or model.imports("paddle")


def _is_told_by_name(model: "Model", node: cst.Attribute) -> bool:
    """Whether an attribute of something unknown is a method to go by its name, and by the gradients beside it."""
    if not _uses_a_framework(model):
        return False
    if node.attr.value != "step":
        return node.attr.value in _NOTHING_ELSE
    body = model.enclosing_function(node)
    return body is not None and any(
        model.enclosing_function(name) is body and isinstance(model.tree.parent(name), cst.Attribute)
        for name in model.names_by_word.get("backward", ())
    )


def _is_called_beside(model: "Model", node: cst.Attribute) -> bool:
    """Whether the same body calls what an attribute is taken of: ``model(images)`` beside ``model.eval``."""
    path, body = dotted_path(node.value), model.enclosing_function(node)
    if path is None or not _uses_a_framework(model):
        return False
    return any(model.enclosing_function(call) is body for call in calls_of_path(model, path))


def _may_be_data(model: "Model", node: cst.Attribute) -> bool:
    """Whether the file has something else of that name: a property, a value that is kept, or what an import gives."""
    root = _root(node)
    everywhere = model.scope(model.tree.module).bindings.get(dotted_path(root) or "", ())
    if any(binding.kind is BindingKind.IMPORT for binding in (*model.reaching(root), *everywhere)):
        return True
    for name in model.names_by_word.get(node.attr.value, ()):
        parent = model.tree.parent(name)
        if isinstance(parent, cst.FunctionDef) and parent.name is name and parent.decorators:
            return True
        target = parent if isinstance(parent, cst.Attribute) else name
        holder = model.tree.parent(target)
        is_kept = isinstance(holder, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)) and holder.target is target
        if is_kept and (target is parent or isinstance(model.scope_of(name).node, cst.ClassDef)):
            return True
    return False


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node


def _is_called_with_arguments(model: "Model", node: cst.Attribute) -> bool:
    """Whether the file calls the method of what is written alike, and gives it something: ``engine.backward(loss)``."""
    path = dotted_path(node)
    return path is not None and any(call.args for call in calls_of_path(model, path))


def _also_calls(model: "Model", receiver: cst.BaseExpression, words: frozenset[str]) -> bool:
    """Whether the file calls another method of what is written alike, by which it can be told what it is."""
    path = dotted_path(receiver)
    return path is not None and any(True for _ in method_calls(model, path, words))
