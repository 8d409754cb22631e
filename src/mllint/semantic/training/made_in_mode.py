"""Whether what makes a module may switch its mode: its constructor, or a function of the project."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import MODES
from mllint.semantic.events.things import Thing
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import making_methods
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import Choice, Function, Instance, Module, Value
from mllint.syntax.shape import called_on, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

LOADED = frozenset({"torch.jit.load", "paddle.jit.load"})
"""What gives a module in the mode in which it was saved, and one of Paddle in evaluation mode."""
_MAX_MAKERS = 30
"""How many functions are looked at, at most, to tell whether one that makes a module switches its mode."""
_MAX_NAMES = 3
"""How many names may stand for each other."""


def switches_itself(definition: ClassInfo) -> bool:
    """Whether a module, or a part of it, may be put into evaluation mode by its own constructor, or what that calls."""
    return may_switch([info.methods["__init__"] for info in definition.lineage if "__init__" in info.methods])


def puts_itself_to_evaluation(definition: ClassInfo) -> bool:
    """Whether the constructor of a module may leave all of it in evaluation mode, as ``self.eval()`` in it does."""
    return any(
        _may_put_off(call, method)
        for method in making_methods(definition)
        for call in method.model.tree.calls_in(method.node.body)
    )


def _may_put_off(call: cst.Call, method: FunctionInfo) -> bool:
    """Whether a call is ``self.eval()``, ``self.train(False)``, or gives ``self`` to a function that may switch it."""
    receiver, own, word = called_on(call), method.self_name, last_word(call.func)
    if receiver is not None and getattr(receiver, "value", None) == own:
        return len(call.args) == (word == "train") and word in MODES
    if not any(getattr(arg.value, "value", None) == own for arg in call.args):
        return False
    called = method.model.value(call.func)
    return isinstance(called, Function) and may_switch([called.definition])


def has_own_train(value: Value | None) -> bool:
    """Whether the class of a module, or of one of whose methods it is, has a ``train`` that is no switch: PyTorch's
    ``eval()`` calls it as one, and Paddle's cannot be undone.
    """
    module = value.receiver if isinstance(value, Function) else value
    definition = module.definition if isinstance(module, Module) else None
    train = None if definition is None else definition.method("train")
    return train is not None and not _is_switch(train)


def _is_switch(train: FunctionInfo) -> bool:
    """Whether a ``train`` of a class may be called as that of a module: with the mode alone in PyTorch, where
    ``eval()`` does it, with nothing in Paddle.
    """
    given = train.parameters[1:]
    required = [item for item in given if item.default is None]
    if train.owner is None or train.owner.framework != "torch":
        return not required
    if not given:
        return isinstance(train.node.params.star_arg, cst.Param)
    return not required or (len(required) == 1 and required[0].name.value == "mode")


def is_switched_by_maker(module: Thing) -> bool:
    """Whether a function of the project that makes a module may switch its mode before it gives it back.

    So may the constructor of the object that holds it.
    """
    holders = [_class_of(root) for root in module.roots] if module.path else []
    if any(holder is not None and switches_itself(holder) for holder in holders):
        return True
    made = [(root.scope.model, call) for root in module.roots if isinstance(root, Binding) for call in _making(root)]
    makers = [maker for model, call in made for maker in _called(model, call.func)]
    return may_switch([maker.definition for maker in makers if isinstance(maker, Function)])


def _making(binding: Binding, steps: int = _MAX_NAMES) -> Iterator[cst.Call]:
    """The calls that make what is bound, also by way of other names: ``result = load(path)``, ``model, n = result``."""
    if isinstance(binding.value, cst.Call):
        yield binding.value
    elif isinstance(binding.value, cst.Name) and steps:
        for source in binding.scope.model.reaching(binding.value):
            yield from _making(source, steps - 1)


def _called(model: "Model", node: cst.BaseExpression) -> tuple[Value | None, ...]:
    """What is called: each of several functions of one name, where a condition picks one."""
    value = model.value(node)
    return value.options if isinstance(value, Choice) else (value,)


def _class_of(root: object) -> ClassInfo | None:
    """The class of the object that a thing is a part of."""
    value = root.scope.model.binding_value(root) if isinstance(root, Binding) else None
    return value.definition if isinstance(value, (Instance, Module)) else root if isinstance(root, ClassInfo) else None


def may_switch(functions: list[FunctionInfo]) -> bool:
    """Whether one of several functions, or one that they call, calls ``eval()`` or ``train()``, or there are many."""
    pending = list(functions)
    seen: list[FunctionInfo] = []
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        if len(seen) == _MAX_MAKERS or _switches(function):
            return True
        seen.append(function)
        calls = function.model.tree.calls_in(function.node.body)
        called = (function.model.value(call.func) for call in calls)
        pending += [value.definition for value in called if isinstance(value, Function)]
    return False


def _switches(function: FunctionInfo) -> bool:
    """Whether a function may call ``eval()`` or ``train()``, or read a module from a file, which says its mode."""
    if any(isinstance(item, cst.Name) and item.value in ("eval", "train") for item in subtree(function.node.body)):
        return True
    model = function.model
    return any(model.qualified_name(call.func) in LOADED for call in model.tree.calls_in(function.node.body))
