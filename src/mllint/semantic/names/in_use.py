"""Functions and classes that something names: the file outside of any function, a function that is named itself, or an
importer.
"""

import itertools
import re
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from mllint.semantic.files.testing import is_tried_out
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.conditions import is_unreachable
from mllint.semantic.names.wrappers import are_only_wrapped

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_Definition: TypeAlias = cst.FunctionDef | cst.ClassDef
_COMMENT = re.compile(r"#.*")
_LOOKS_FOR_CLASSES = re.compile(rb"__subclasses__|__init_subclass__|getmembers|\bmetaclass[ \t]*=")
"""What finds classes whose names nobody writes."""
_LOOKS_UP_NAMES = re.compile(rb"\bimport_module\(|\b__import__\(|\bglobals\(\)|\bvars\(|\bsys\.modules\b")
"""What finds anything by a name that is made, or comes from outside."""
_LOOKS_UP_ATTRIBUTES = re.compile(r"\bgetattr\(\s*[\w.]+\s*,\s*(?![\"'])")
"""What finds a method by a name that is made."""
_SKIPPING = frozenset({"pytest.mark.skip", "unittest.skip"})
_CALLED_BY_MODULES = frozenset({
    "_apply", "_build_once", "_call_impl", "_convert_attn_mask", "_dygraph_call_func", "_get_backward_hooks",
    "_get_name", "_load_from_state_dict", "_named_members", "_obtain_parameters_buffers",
    "_register_state_dict_hook", "_replicate_for_data_parallel", "_save_to_state_dict", "_slow_forward",
    "_state_dict_impl", "_to_impl", "_transform", "_wrapped_call_impl",
})  # fmt: skip
"""Methods beginning with an underscore that ``torch.nn.Module`` 2.13 and ``paddle.nn.Layer`` 3.3 call themselves."""


def outermost_function(model: "Model", node: cst.CSTNode) -> cst.FunctionDef | None:
    """The function of a file in which a place stands, itself or in a function of its own."""
    around = [item for item in (node, *model.tree.ancestors(node)) if isinstance(item, cst.FunctionDef)]
    return around[-1] if around else None


def is_named(model: "Model", function: cst.FunctionDef) -> bool:
    """Whether a file names a function outside of any, or in one that is named itself, or one that imports it does."""
    pending = [function]
    for reached in pending:  # which grows
        if model.project is not None and model.project.importers(model.path, reached.name.value):
            return True
        homes = _named_in(model, reached)
        if None in homes:
            return True
        pending += [home for home in homes if home is not None and home not in pending]
    return False


def _named_in(model: "Model", function: cst.FunctionDef) -> "list[cst.FunctionDef | None]":
    """The outermost functions of a file that name one, in document order; ``None`` for what stands outside of any."""
    is_method = model.function_info(function).owner is not None
    names = (
        name
        for name in model.names_by_word.get(function.name.value, ())
        if name is not function.name and _may_name(model, name, is_method=is_method)
    )
    return list(dict.fromkeys(outermost_function(model, name) for name in names))


def _may_name(model: "Model", name: cst.Name, *, is_method: bool) -> bool:
    """Whether a word may stand for a function: of a method as an attribute, of another one as what is read by it.

    ``from torch import save as write`` and ``save(path=path)`` say nothing of functions that are called like this.
    """
    parent = model.tree.parent(name)
    if isinstance(parent, cst.Attribute) and parent.attr is name:
        return is_method
    is_read = not isinstance(parent, (cst.ImportAlias, cst.Param, cst.AssignTarget))
    return not is_method and is_read and not (isinstance(parent, cst.Arg) and parent.keyword is name)


def is_never_named(model: "Model", definition: _Definition) -> bool:
    """Whether nothing says the name of a function or class of a file again, but for what nothing names itself: no text
    in it, such as those of ``__all__``, no file that imports it, no attribute of that name, no notebook, and no other
    text of the project.

    No method: those are called by names that nobody writes, by a trainer, or by a class above. And no class where the
    project asks which classes there are, or looks things up by names that it makes; no function where its file does.
    """
    if isinstance(definition, cst.FunctionDef) and model.function_info(definition).owner is not None:
        return False
    reached: list[_Definition] = [definition]
    for each in reached:  # which grows
        homes = _said_in(model, each)
        if _may_be_registered(model, each) or None in homes or _is_named_by_others(model, each):
            return False
        reached += [home for home in homes if home is not None and home not in reached]
    return True


def _may_be_registered(model: "Model", definition: _Definition) -> bool:
    """Whether a decorator may keep a function or class, so that what has it needs no name."""
    if not definition.decorators:
        return False
    return isinstance(definition, cst.ClassDef) or not are_only_wrapped(model.function_info(definition))


def _said_in(model: "Model", definition: _Definition) -> "list[_Definition | None]":
    """The outermost definitions of a file that have the name of one; ``None`` for what stands outside of any, and for
    what a text says.
    """
    word = definition.name.value
    names = model.names_by_word.get(word, ())
    homes = [_outermost(model, name) for name in names if name is not definition.name]
    is_in_text = len(_words_of(model, word)) > len(names)
    return list(dict.fromkeys([*homes, None] if is_in_text else homes))


def _outermost(model: "Model", node: cst.CSTNode) -> _Definition | None:
    around = [item for item in model.tree.ancestors(node) if isinstance(item, (cst.FunctionDef, cst.ClassDef))]
    return around[-1] if around else None


def _is_named_by_others(model: "Model", definition: _Definition) -> bool:
    """Whether another file or text of the project says the name of a function or class, or may ask for all classes."""
    project, word = model.project, definition.name.value
    if project is None:
        return True
    if any(project.takes(path, word) for path in project.importers(model.path, word)):
        return True
    mentions = project.mentions(model.path)
    is_read = mentions.readers(word, frozenset(), project.disk.real(str(model.path))) != ()
    if is_read or mentions.are_in_a_notebook(word) or project.is_told(word):
        return True
    if isinstance(definition, cst.FunctionDef):
        return _LOOKS_UP_NAMES.search(model.source.text.encode()) is not None
    return any(project.is_written_anywhere(model.path, pattern) for pattern in (_LOOKS_FOR_CLASSES, _LOOKS_UP_NAMES))


def is_only_tried_out(model: "Model", definition: _Definition) -> bool:
    """Whether nothing but its own file says the name of a function or class, and that only where it tries itself out:
    right under ``if __name__ == "__main__":``; in a program of several files.
    """
    if model.project is None or _may_be_registered(model, definition) or _is_named_by_others(model, definition):
        return False
    names = (name for name in model.names_by_word.get(definition.name.value, ()) if name is not definition.name)
    others = [name for name in names if not model.tree.is_inside(name, definition)]
    is_tried = bool(others) and all(is_tried_out(model, name) for name in others)
    return (is_tried or is_never_named(model, definition)) and model.project.is_of_program(model.path)


def is_out_of_use(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in code that nothing runs any more, or does not yet.

    That is what nothing gets to, a test that is left out, or a function in a function of which nothing says the name
    again; or, in a program of several files, a function or class of the file that nothing names, beside others of its
    kind that something does. What a package that is installed has is there for others, unless its name begins with an
    underscore.
    """
    if is_unreachable(model, node):
        return True
    around = [item for item in (node, *model.tree.ancestors(node)) if isinstance(item, (cst.FunctionDef, cst.ClassDef))]
    if any(_is_left_inside(model, inner, outer) for inner, outer in itertools.pairwise(around)):
        return True
    if not around:
        return False
    if any(_is_skipped(model, item) for item in around):
        return True
    if any(_is_left_in_class(model, inner, outer) for inner, outer in itertools.pairwise(around)):
        return True
    name = around[-1].name.value
    key = ("out of use", name)
    if key not in model.remembered:
        model.remembered[key] = (
            is_never_named(model, around[-1])
            and _stands_beside_used(model, around[-1])
            and model.project is not None
            and model.project.is_of_program(model.path)
            and (name.startswith("_") or not model.project.is_installed(model.path))
        )
    return bool(model.remembered[key])


def _is_skipped(model: "Model", definition: _Definition) -> bool:
    """Whether a decorator leaves a test out, whatever is the case: ``@pytest.mark.skip(reason="...")``."""
    called = (
        item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
        for item in definition.decorators
    )
    return any(model.qualified_name(item) in _SKIPPING for item in called)


def _words_of(model: "Model", word: str) -> list[str]:
    """Where a file says a word, but for its comments."""
    return re.findall(rf"\b{re.escape(word)}\b", _COMMENT.sub("", model.source.text))


def _is_left_inside(model: "Model", inner: cst.CSTNode, outer: cst.CSTNode) -> bool:
    if not isinstance(inner, cst.FunctionDef) or not isinstance(outer, cst.FunctionDef) or inner.decorators:
        return False
    return len(model.names_by_word.get(inner.name.value, ())) == 1


def _is_left_in_class(model: "Model", method: cst.CSTNode, holder: cst.CSTNode) -> bool:
    """Whether a method is there for its own class alone, by its name, and nothing in the project says that again.

    In a program of several files, of a class of which all bases are in sight, or have no such method to call; and
    where nothing looks methods up.
    """
    if not isinstance(method, cst.FunctionDef) or not isinstance(holder, cst.ClassDef):
        return False
    word = method.name.value
    # What ends with one may be meant for a method that Python calls, and misspelled: `__init_`.
    if not word.startswith("_") or word.endswith("_") or method.decorators:
        return False
    key = ("left in class", id(method))
    if key not in model.remembered:
        model.remembered[key] = _is_private_left(model, method, model.class_info(holder))
    return bool(model.remembered[key])


def _is_private_left(model: "Model", method: cst.FunctionDef, owner: "ClassInfo") -> bool:
    word = method.name.value
    if owner.has_unknown_base or any(base not in PLAIN_BASES or "ightning" in base for base in owner.library_bases):
        return False
    # Bases and heirs have methods of the same name, and may well mean this one.
    named = re.compile(rb"(?<!\bdef )\b" + re.escape(word.encode()) + rb"\b")
    project = model.project
    if project is None or not project.is_of_program(model.path) or project.is_written_anywhere(model.path, named):
        return False
    if len(_words_of(model, word)) > 1 or _is_named_by_others(model, method):
        return False
    return word not in _CALLED_BY_MODULES and not any(
        _LOOKS_UP_ATTRIBUTES.search(info.model.source.text) for info in owner.lineage
    )


def _stands_beside_used(model: "Model", definition: _Definition) -> bool:
    """Whether something names another function, or another class, of a file."""
    others = [item for item in model.tree.module.body if type(item) is type(definition) and item is not definition]
    if isinstance(definition, cst.FunctionDef):
        return any(isinstance(other, cst.FunctionDef) and is_named(model, other) for other in others)
    return any(isinstance(other, cst.ClassDef) and _is_class_named(model, other) for other in others)


def _is_class_named(model: "Model", definition: cst.ClassDef) -> bool:
    names = (name for name in model.names_by_word.get(definition.name.value, ()) if name is not definition.name)
    if any(not model.tree.is_inside(name, definition) for name in names):
        return True
    return model.project is not None and bool(model.project.importers(model.path, definition.name.value))


def is_idle(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in a function that nothing names, beside others of the file that something does."""
    function = outermost_function(model, node)
    return function is not None and is_never_named(model, function) and _stands_beside_used(model, function)
