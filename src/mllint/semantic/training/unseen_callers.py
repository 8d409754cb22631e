"""Functions that are called from where nobody can see: handed on, picked by a part of their names, or methods of
objects of which nothing is known where they are called.
"""

import re
from collections.abc import Collection, Iterator

import libcst as cst

from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.arguments import takes
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.uses import whole
from mllint.semantic.values import Function, Method, Module, Value
from mllint.syntax.walk import subtree

_SHORTEST = 3


def has_unseen_callers(function: FunctionInfo | None) -> bool:
    """Whether a function is handed on, ``run(predict=self.predict)``, or picked: ``getattr(m, kind + "_eval")``.

    Under what it is called then nobody can see.
    """
    return function is not None and (next(handing_on(function), None) is not None or _is_picked_by_name(function))


def handing_on(function: FunctionInfo) -> Iterator[cst.Arg]:
    """The arguments by which its file hands a function on."""
    model = function.model
    for name in model.names_by_word.get(function.name, ()):
        node = whole(model, name)
        parent = model.tree.parent(node)
        if not isinstance(parent, cst.Arg) or parent.value is not node:
            continue
        value = model.value(node)
        if isinstance(value, Function) and value.definition is function:
            yield parent


def _is_picked_by_name(function: FunctionInfo) -> bool:
    """Whether code near the function picks what a name ends or begins with that is put together."""
    model = function.model
    words = function.name.strip("_").split("_")
    if function.owner is not None or len(words) < 2:
        return False
    ends = "|".join(re.escape(word) for word in (words[0], words[-1]) if len(word) >= _SHORTEST)
    if not ends:
        return False
    # `kind + "_eval"`, `"eval_" + kind`, `f"{kind}_eval"`
    picked = rf"getattr\([^\n]*(?:[\"'}}]_(?:{ends})[\"']|[\"'](?:{ends})_[\"'{{])"
    if model.project is None:
        return re.search(picked, model.source.text) is not None
    return model.project.is_written_near(model.path, re.compile(picked.encode()))


def may_run_without_gradients(function: FunctionInfo | None) -> bool:
    """Whether another file calls a method of such a name, of an object not known, with gradients switched off.

    ``with no_grad(): probe.measure(inputs)`` calls the ``measure`` of whatever it is given. Where several classes have
    such a method, it says nothing of this one.
    """
    project = None if function is None or function.owner is None else function.model.project
    if function is None or project is None:
        return False
    model, word = function.model, function.name
    framework = model.framework or "torch"
    defining = project.users(model.path, framework, f"def {word}(")
    if any(path != model.path for path in defining):
        return False
    return any(
        _is_of_something(other.value(call.func)) and takes(function, call) and other.gradients.off(call) is True
        for other, call in model.calls_elsewhere(word)
    )


def _is_of_something(called: Value | None) -> bool:
    """Whether a method is one of an object of which nothing is known, but perhaps that it is a module: by `eval()`."""
    of = called.receiver if isinstance(called, Method) else None
    return called is None or (isinstance(of, Module) and not of.others and of.name is None and of.definition is None)


def puts_module_aside(body: cst.CSTNode, frame: Frame, modules: Collection[Thing]) -> bool:
    """Whether code puts one of some modules into a collection: ``options["net"] = model``, for somebody else."""
    return any(
        type(node) is cst.Assign
        and any(type(target.target) is cst.Subscript for target in node.targets)
        and type(node.value) in (cst.Name, cst.Attribute)
        and frame.thing(node.value) in modules
        for node in subtree(body)
    )
