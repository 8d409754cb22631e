"""Code that wants gradients of something: what of a model is evaluated there may need its graph."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.construction.libraries import SEQUENTIALS
from mllint.semantic.events.given import living
from mllint.semantic.events.steps import Event
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.arguments import functions_called
from mllint.semantic.expressions.imports import imported_files
from mllint.semantic.graph.statefulness import parts_made, runs_backward
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.values import Function, Module
from mllint.syntax.shape import constant, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NO_GRAD_SINCE = (0, 4)
"""The version of PyTorch from which on ``no_grad()`` takes the place of volatile variables."""

GRADIENT_WORDS = frozenset({
    "grad", "backward", "requires_grad", "requires_grad_", "enable_grad", "retain_grad", "stop_gradient",
    "jacobian", "hessian", "jvp", "vjp", "register_hook", "register_backward_hook", "set_grad_enabled",
    "register_full_backward_hook", "functional_call",
})  # fmt: skip
"""Words of code that wants gradients of something."""
GRAPH_WORDS = frozenset({"grad_fn", "make_dot"})
"""Words of code that looks at the graph itself: ``torchviz.make_dot(output)`` draws it."""
_COMPUTING_WORDS = frozenset({"grad", "backward", "enable_grad", "jacobian", "hessian", "jvp", "vjp"})
_COMPUTING = (("torch", "autograd.grad"), ("autograd", "grad("), ("paddle", "paddle.grad"), ("paddle", "autograd.grad"))
"""What a file imports, and calls, that asks for gradients without ``backward()``."""
_MAX_FILES = 20
"""In how many files it is looked for who does."""
_MAX_IMPORTED = 60
"""How many files are looked at for what they import."""
_STEPPING = frozenset({"step", "minimize", "zero_grad", "train_step", "optimizer", "fit"})


def says_gradients(
    model: "Model", body: cst.CSTNode, words: frozenset[str] = GRADIENT_WORDS, frame: Frame | None = None
) -> bool:
    """Whether a word of gradients stands in some code, but not in ``requires_grad=False``, nor where a run never is."""
    named = model.names_by_word
    said = [name for word in words for name in named.get(word, ()) if model.tree.is_inside(name, body)]
    if said and frame is not None:
        living_nodes = {id(item) for item in living(frame, body)}
        said = [item for item in said if id(item) in living_nodes]
    return not all(_is_refused(model, name) for name in said)


def _is_refused(model: "Model", name: cst.Name) -> bool:
    """Whether a word wants no gradients: in ``requires_grad=False``, ``inputs.stop_gradient = True``."""
    holder = model.tree.parent(name)
    around = None if holder is None else model.tree.parent(holder)
    match holder, around:
        case cst.Arg(keyword=keyword, value=value), _ if keyword is name:
            pass
        case cst.Attribute(attr=attr), cst.Call(func=func, args=[cst.Arg(keyword=None, value=value)]):
            if attr is not name or func is not holder:
                return False
        case cst.Attribute(attr=attr), cst.AssignTarget():
            statement = model.tree.parent(around)
            if attr is not name or not isinstance(statement, cst.Assign) or len(statement.targets) > 1:
                return False
            value = statement.value
        case _:
            return False
    return constant(value) is (name.value == "stop_gradient")


def is_of_volatile(forward: Event) -> bool:
    """Whether a function that leads to a forward pass, or one that it calls, speaks of volatile variables.

    Of these no graph was recorded before there was ``no_grad()``; today PyTorch warns of them itself.
    """
    frame = forward.frame
    leading = [(home.model, None if home.function is None else home.function.node) for home in frame.led_by()]
    called = () if frame.function is None else functions_called(frame.model, frame.function.node.body)
    return any(_speaks_of_volatile(model, function) for model, function in leading) or any(
        _speaks_of_volatile(info.model, info.node) for info in called
    )


def _speaks_of_volatile(model: "Model", function: cst.FunctionDef | None) -> bool:
    return any(model.enclosing_function(word) is function for word in model.names_by_word.get("volatile", ()))


def computes_gradients(forward: Event) -> bool:
    """Whether the class of the module that is called asks for gradients itself: forces are those of an energy.

    Or what it, or a part of it, runs is fitted to each input, by a backward pass of its own. A module of which nothing
    is known may be of any class of the project, and so may the parts of a sequence.
    """
    definition = _class_called(forward)
    if _may_hold_any(forward, definition) and _some_pass_computes(forward.frame.model):
        return True
    if definition is None:
        return False
    running = [part.called for part in (definition, *parts_made(definition)) if part.called is not None]
    called = (item for info in running for item in (info, *functions_called(info.model, info.node.body)))
    return any(map(_asks, definition.lineage)) or any(map(runs_backward, called))


def _asks(info: ClassInfo) -> bool:
    """Whether a class calls ``grad``."""
    return any(info.model.tree.is_below(call, info.node) for call in info.model.calls_by_word.get("grad", ()))


def may_run_backward(model: "Model", call: cst.Call) -> bool:
    """Whether a method that cannot be looked into runs ``backward()`` where the project defines one of its name; of
    one that is there to be overridden, whether a file does that defines it: ``explainer.explain(batch)``.
    """
    callee = call.func
    if not isinstance(callee, cst.Attribute) or model.project is None:
        return False
    value, name = model.value(callee), re.escape(callee.attr.value.encode())
    if value is None:
        pattern = rb"\bdef[ \t]+" + name + rb"\(\s*self\b(?:(?!\n[ \t]*(?:def|class)\b)[^\0])*?\bbackward\("
    elif isinstance(value, Function) and value.definition.is_left_open:
        pattern = rb"\A(?=[^\0]*?\bdef[ \t]+" + name + rb"\b)[^\0]*?\bbackward\("
    else:
        return False
    return model.project.is_written_anywhere(model.path, re.compile(pattern))


def only_generates(forward: Event) -> bool:
    """Whether what a module runs is a library's ``generate()``, which records no graph.

    Under ``no_grad()`` it runs in ``GenerationMixin`` of transformers, read in 5.24, and of PaddleNLP, read in 2.8.
    """
    definition = _class_called(forward)
    if definition is None or definition.called is None:
        return False
    model, method = definition.called.model, definition.called.node
    calls = [call for call in model.tree.calls_in(method) if last_word(call.func) == "generate"]
    return bool(calls) and not any(isinstance(model.value(call.func), Function) for call in calls)


def may_compute_gradients(forward: Event) -> bool:
    """Whether something in the file of the class of the module that is called asks for gradients.

    A module of which nothing is known may be of any class of the project.
    """
    definition = _class_called(forward)
    if definition is not None:
        return any("grad" in info.model.calls_by_word for info in definition.lineage)
    value = None if forward.called is None else forward.frame.value(forward.called)
    is_known = isinstance(value, Module) and (value.name is not None or bool(value.others))
    return not is_known and _some_module_computes(forward.frame.model)


def _may_hold_any(forward: Event, definition: ClassInfo | None) -> bool:
    """Whether nothing is known of a module that is called, or it is a sequence of others."""
    if definition is not None:
        return not SEQUENTIALS.isdisjoint(definition.library_bases)
    value = None if forward.called is None else forward.frame.value(forward.called)
    if not isinstance(value, Module):
        return value is None
    return value.is_only_some or any(item.name in SEQUENTIALS for item in (value, *value.others))


@worked_out_once
def _some_module_computes(model: "Model") -> bool:
    """Whether a method of a module asks for gradients, anywhere in the project."""
    return any(True for _ in _methods_that_compute(model))


@worked_out_once
def _some_pass_computes(model: "Model") -> bool:
    """Whether ``forward`` of a module does, or a method that it calls, in a file that is imported from here."""
    methods = [
        method
        for method in _methods_that_compute(model)
        if method.owner is not None and method in method.owner.members.reachable("forward")
    ]
    reached = _imported_from(model) if methods else set()
    return any(method.model.path in reached for method in methods)


def _imported_from(model: "Model") -> set[Path]:
    """A file, those that it imports, and those that these import, as far as so many files are looked at."""
    found = [model.path]
    for path in found:  # which grows
        home = None if len(found) > _MAX_IMPORTED else model if path == model.path else model.neighbour(path)
        if home is not None and home.project is not None:
            found += [other for other in imported_files(home, home.project) if other not in found]
    return set(found)


def _methods_that_compute(model: "Model") -> Iterator[FunctionInfo]:
    """The methods of modules in the project that ask for gradients, as far as files are looked at."""
    found = set[Path]()
    if model.project is not None:
        for module, word in _COMPUTING:
            found.update(model.project.users(module, word))
    for path in sorted(found)[:_MAX_FILES]:
        home = model if path == model.path else model.neighbour(path)
        calls = () if home is None else home.calls_by_word.get("grad", ())
        for call in calls:
            method = None if home is None else function_around(home, call)
            if method is not None and method.owner is not None and method.owner.framework is not None:
                yield method


def _class_called(forward: Event) -> ClassInfo | None:
    """The project's class of the module of which ``net(x)`` or ``net.method(x)`` is a forward pass."""
    callee = forward.called
    value = None if callee is None else forward.frame.value(callee)
    if isinstance(value, Function):
        return value.definition.owner
    return value.definition if isinstance(value, Module) else None


def calls_for_gradients(model: "Model", code: cst.CSTNode) -> bool:
    """Whether some code calls a function of the project that asks for gradients, itself or in one that it calls.

    Not by ``backward()``: that is an event, and known to happen in a run or not.
    """
    called = {id(info.node): info for info in functions_called(model, code)}
    behind = (other for info in called.values() for other in functions_called(info.model, info.node.body))
    every = called | {id(info.node): info for info in behind}
    return any(says_gradients(info.model, info.node.body, _COMPUTING_WORDS - {"backward"}) for info in every.values())


def wants_no_gradients(model: "Model", function: cst.FunctionDef) -> bool:
    """Whether nothing in a function, nor in what it returns to its callers here, is used for gradients."""
    called = _called_functions(model, function)
    if called is None or not model.function_info(function).is_plain:
        return False
    words = GRADIENT_WORDS | _STEPPING
    said = any(isinstance(item, cst.Name) and item.value in words for item in subtree(function.body))
    return not said and not any(says_gradients(info.model, info.node.body, _COMPUTING_WORDS) for info in called)


def switches_off_itself(model: "Model", torch: tuple[int, int] | None) -> bool:
    """Whether it is written for a PyTorch without ``no_grad()``, or a Paddle whose ``eval()`` switches gradients off.

    ``torch`` is the version that the project is to run with; ``None``: the newest. Up to Paddle 1.8 that is what
    ``eval()`` does: ``eval_mode()`` of ``fluid/dygraph/tracer.py``, read in 1.8.5.
    """
    return model.imports("paddle.fluid") or (torch is not None and torch < _NO_GRAD_SINCE)


def failed_without(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands where the ``try`` before has switched gradients off, and failed: the model needs them."""
    handlers = (item for item in model.tree.ancestors(node) if isinstance(item, cst.ExceptHandler))
    tried = (model.tree.parent(handler) for handler in handlers)
    return any(
        model.gradients.inside(inner) == "off"
        for item in tried
        if isinstance(item, cst.Try)
        for inner in model.tree.calls_in(item.body)
    )


def _called_functions(model: "Model", function: cst.FunctionDef) -> tuple[FunctionInfo, ...] | None:
    """The functions of the project that a function calls; ``None`` where one of them is there to be overridden."""
    called = tuple(functions_called(model, function.body))
    if any(info.is_left_open for info in called):
        return None
    return called
