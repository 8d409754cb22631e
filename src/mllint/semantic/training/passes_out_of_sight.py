"""Methods of modules that cannot be told: forward passes, where the modules of the project run layers in them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import MODES, UPDATING
from mllint.semantic.events.kinds import kind_of, may_name_module
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.arguments import functions_called
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.training.relevance import is_pass, switched_paths
from mllint.semantic.values import Function, Instance, Method, Module, Value
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_FILES = 8
"""In how many files it is looked for the methods of a name: who writes that many writes them alike."""
_OTHERWISE = frozenset({
    *MODES, *UPDATING, "zero_grad", "clear_grad", "grad", "requires_grad", "enable_grad", "set_grad_enabled", "no_grad",
    "inference_mode",
})  # fmt: skip
"""What a method speaks of that does more than a forward pass, or runs it otherwise than its caller meant."""


_WITH_METHODS = ("paddlenlp", "sentence_transformers", "transformers", "ultralytics")
"""Packages whose models have methods that run without gradients, such as ``generate()`` and ``encode()``."""


def is_pass_out_of_sight(frame: Frame, call: cst.Call, value: Value | None) -> bool:
    """Whether a method of a module that is not known is a forward pass: ``model.predict(batch)``.

    Its file switches the module, and gives the method something; modules of the project run their layers in a method
    of its name. ``value`` is what is called.
    """
    if not call.args or not (value is None or isinstance(value, Method)):
        return False
    if not isinstance(call.func, cst.Attribute) or not may_be_pass_out_of_sight(frame.model, call.func):
        return False
    if any(home.model.imports(name) for home in frame.led_by() for name in _WITH_METHODS):
        return False
    holder = frame.value(call.func.value)
    if isinstance(holder, (Instance, Module)) and not (isinstance(holder, Module) and holder.is_only_some):
        return False
    called = kind_of(frame, call.func.value)
    return called is not None and called.kind == "module"


def may_be_pass_out_of_sight(model: "Model", callee: cst.BaseExpression) -> bool:
    """Whether a callee may be such a method in some run, to go by its file, and by what the project has of its name."""
    if not isinstance(callee, cst.Attribute) or dotted_path(callee.value) not in switched_paths(model):
        return False
    return _are_passes(model, callee.attr.value)


@worked_out_once
def _are_passes(model: "Model", word: str) -> bool:
    """Whether modules of the project have a method of a name that is a forward pass, and none does more in it.

    What is no module, but has a switch of its own, may be what is called, too.
    """
    found = {_is_pass(method) for method in methods_of_name(model, word) if not method.is_left_open}
    return found - {None} == {True}


def methods_of_name(model: "Model", word: str) -> list[FunctionInfo]:
    """The methods of a name in the files of the project that use one of the frameworks, or in the first of these."""
    if model.project is None:
        return []
    paths = {path for module in ("torch", "paddle") for path in model.project.users(module, f"def {word}(self")}
    others = (model if path == model.path else model.neighbour(path) for path in sorted(paths)[:_MAX_FILES])
    return [method for other in others if other is not None for method in _methods(other, word)]


def _methods(model: "Model", word: str) -> list[FunctionInfo]:
    functions = (item for item in model.tree.by_type[cst.FunctionDef] if item.name.value == word)
    return [info for info in map(model.function_info, functions) if info.owner is not None]


def _is_pass(method: FunctionInfo) -> bool | None:
    """Whether a method only runs layers of its module; ``None``: it may run none, and does nothing beside."""
    owner = method.owner
    assert owner is not None
    made = owner.instance()
    is_module = isinstance(made, Module)
    if is_module or owner.has_unknown_base or any(owner.method(mode) is not None for mode in MODES):
        named = {item.value for item in subtree(method.node) if type(item) is cst.Name}
        if not _OTHERWISE.isdisjoint(named):
            return False
    return True if is_module and (is_pass(Function(method, made)) or _runs_what_is_kept(method)) else None


def _runs_what_is_kept(method: FunctionInfo) -> bool:
    """Whether a method of a module, or one of its own methods that it calls, gives something to what the object keeps
    under the name of a model, wherever that comes from; and none of them does more.
    """
    own = [info for info in functions_called(method.model, method.node.body) if info.owner is method.owner]
    named = {item.value for info in own for item in subtree(info.node) if type(item) is cst.Name}
    return _OTHERWISE.isdisjoint(named) and any(map(_calls_kept_model, (method, *own)))


def _calls_kept_model(method: FunctionInfo) -> bool:
    return any(
        isinstance(call.func, cst.Attribute)
        and call.args
        and getattr(call.func.value, "value", None) == method.self_name
        and may_name_module(call.func.attr.value)
        and method.model.value(call.func) is None
        for call in method.model.tree.calls_in(method.node.body)
    )
