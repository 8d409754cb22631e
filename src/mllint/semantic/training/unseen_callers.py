"""Functions that are called where nobody can see under what: handed on, picked by a part of their names, or by
settings, or methods of objects of which nothing is known.
"""

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.arguments import takes
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.training.callers import handing_on
from mllint.semantic.values import Method, Module, Value
from mllint.syntax.shape import last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SHORTEST = 3
_PICKING = re.compile(rb"\bgetattr\([^\n]*,\s*(?![\"'\s])|(?<![\w.])eval\(|\bimport_module\(|\bglobals\(\)")
"""What picks a function by a name that comes from outside."""


def has_unseen_callers(function: FunctionInfo | None) -> bool:
    """Whether a function is handed on, ``run(predict=self.predict)``, or picked: ``getattr(m, kind + "_eval")``, or by
    settings that have its name.

    Under what it is called then nobody can see.
    """
    if function is None:
        return False
    is_handed_on = not all(_is_of_command(function.model, arg) for arg in handing_on(function))
    return is_handed_on or _is_picked_by_name(function) or _is_named_in_settings(function)


def _is_of_command(model: "Model", arg: cst.Arg) -> bool:
    """Whether an argument tells ``argparse`` what a command runs, ``parser.set_defaults(func=main)``, and what calls
    that then, ``args.func(args)``, switches no gradients off. What names no framework cannot.
    """
    call, name = model.tree.parent(arg), arg.keyword
    if name is None or not isinstance(call, cst.Call) or last_word(call.func) != "set_defaults":
        return False
    own = ((model, item) for item in model.calls_by_word.get(name.value, ()) if isinstance(item.func, cst.Attribute))
    return all(home.gradients.off(item) is False for home, item in (*own, *model.calls_elsewhere(name.value)))


def _is_named_in_settings(function: FunctionInfo) -> bool:
    """Whether a file of settings has the name of a function, and something picks functions by names from there, while
    no program calls it by its own.
    """
    model, name = function.model, function.name
    if function.owner is not None or model.project is None or name in model.calls_by_word:
        return False
    if not model.project.is_told(name) or any(True for _ in model.calls_elsewhere(name)):
        return False
    return model.project.is_written_anywhere(model.path, _PICKING)


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

    ``with no_grad(): probe.measure(inputs)`` calls the ``measure`` of whatever it is given. Where several files have
    such a method, it says something of this one only if all such calls are made so: one of them is of this one then.
    """
    project = None if function is None or function.owner is None else function.model.project
    if function is None or project is None:
        return False
    model, word = function.model, function.name
    defining = project.users(model.framework or "torch", f"def {word}(")
    is_one_of_several = any(path != model.path for path in defining)
    off = (
        other.gradients.off(call) is True
        for other, call in model.calls_elsewhere(word)
        if _is_of_something(other.value(call.func)) and takes(function, call)
    )
    return _all_of_some(off) if is_one_of_several else any(off)


def _all_of_some(found: Iterable[bool]) -> bool:
    """Whether all of some things are so, and there are any."""
    known = list(found)
    return bool(known) and all(known)


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
