"""Files that hold objects of Python, which ``torch.load`` with ``weights_only`` refuses, the default since PyTorch
2.6; and whole things that are saved for readers who say that they want them.

What the code does with what it has read tells: some of it no tensor, plain value or collection of these can do. So does
what it has saved to that file.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile, Record, State
from mllint.semantic.checkpoints.handling import is_saved_together
from mllint.semantic.checkpoints.mistaken import entries_used, taken_for_module
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.saved_objects import (
    OF_MODULES,
    holds_object,
    is_of_plain_value,
    may_save_object,
    reads_object,
    saves_object,
    saves_to_same,
)
from mllint.semantic.checkpoints.tracing import default_path, path_given, read_path
from mllint.semantic.expressions.annotations import annotated
from mllint.semantic.names.conditions import conditions, narrowing, verdicts
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import (
    ClassObject,
    Instance,
    Module,
    Tensor,
    Value,
)
from mllint.syntax.shape import (
    argument,
    constant,
    constant_given,
    dotted_path,
    has_star_arguments,
    last_word,
    string_literal,
    subscript_index,
)
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ALSO_OF_MODULES = frozenset({"module", "cuda", "half", "float", "to", "requires_grad_", "generate"})
"""What modules are asked more often than tensors that come straight out of a file."""
_ALLOWED = re.compile(
    rb"safe_globals|NO_WEIGHTS_ONLY|torch\.load\s*=[^=]|partial\(\s*torch\.load|\b(?:ultralytics|torch_geometric)\b"
)
"""Where classes are allowed, by a library for its own, too, or another function is put in the place of this one."""
_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "callable", "type", "getattr"})
_OTHER_ERRORS = frozenset({
    "FileNotFoundError", "OSError", "IOError", "PermissionError", "IsADirectoryError", "KeyError", "AttributeError",
    "TypeError", "ValueError", "IndexError", "ImportError", "ModuleNotFoundError", "KeyboardInterrupt", "MemoryError",
})  # fmt: skip
"""What catches no ``UnpicklingError``."""
_DECLARE_NO_CLASS = re.compile(r"\.(?:TypedDict|Protocol|Parameter|Tensor)$")
_MOVING = frozenset({"to", "cpu", "cuda", "float", "double", "half"})
"""What gives back the module it is asked of, and another tensor."""
_MAKING_ARRAYS = frozenset({"numpy.array"})
"""What is given lists as well. `asarray` is for what may be an array already."""
_TAKING = frozenset({"get", "pop"})
_STEPS = 3


def may_hold_object(model: "Model", load: cst.Call) -> bool:
    """Whether what a call of ``torch.load`` reads may be no tensor, plain value or collection of these: it is used as
    a module, read for what none of these has, or has to be of a class of the project.
    """
    found = _may_be_read(model, load, _STEPS)
    is_used = any(_may_be_object(model, node) or _has_to_be_of_class(model, node) for node in found)
    return is_used or _is_declared(model, load) or any(map(may_save_object, saves_to_same(model, load)))


def is_refused(model: "Model", load: cst.Call) -> bool:
    """Whether what a call of ``torch.load`` reads is surely no tensor, plain value or collection of these.

    Nowhere in the files around it may a class be allowed. What the code asks about first may be either.
    """
    is_used = any(
        _is_object(model, use, key) and not _is_saved_as_state(model, key)
        for use, key in _read(model, load, load, _STEPS)
    )
    is_told = is_used or (
        not _is_tried(model, load)
        and (_is_declared(model, load) or _is_saved_as_object(model, load) or reads_object(model, load))
    )
    if not is_told:
        return False
    is_mistaken = taken_for_module(model, load) is not None or any(entries_used(model, load))
    if is_mistaken or _is_read_safely(model, load) or is_read_again(model, load):
        return False  # the code has saved a dict there, or knows that it can be read so, or not
    if model.project is None:
        return _ALLOWED.search(model.source.text.encode()) is None
    return not model.project.is_written_near(model.path, _ALLOWED)


def _is_read_safely(model: "Model", load: cst.Call) -> bool:
    """Whether the code reads the very file with ``weights_only=True`` as well."""
    path = read_path(FromFile(Place(model, load)))
    if path is None:
        return False
    for other in model.surroundings.models:
        for call in other.calls_by_word.get("load", ()):
            option = argument(call, None, "weights_only")
            if option is None or constant(option.value) is not True or other.library_name(call.func) != "torch.load":
                continue
            read = read_path(FromFile(Place(other, call)))
            if read is not None and read.is_same_as(path) and not (path.is_blank and other is not model):
                return True
    return False


def is_read_again(model: "Model", load: cst.Call) -> bool:
    """Whether the file is read with ``weights_only=False`` where an error of the call is caught."""
    tries = (item for item in model.tree.ancestors(load) if isinstance(item, cst.Try))
    handlers = [handler for item in tries if model.tree.is_inside(load, item.body) for handler in item.handlers]
    calls = (part for handler in handlers for part in subtree(handler) if isinstance(part, cst.Call))
    return any(last_word(call.func) == "load" and constant_given(call, None, "weights_only") is False for call in calls)


def _is_tried(model: "Model", load: cst.Call) -> bool:
    """Whether an ``UnpicklingError`` of the call is caught where it stands."""
    tries = (item for item in model.tree.ancestors(load) if isinstance(item, cst.Try))
    return any(
        any(_may_catch(handler) for handler in item.handlers) and model.tree.is_inside(load, item.body)
        for item in tries
    )


def _may_catch(handler: cst.ExceptHandler) -> bool:
    names = [] if handler.type is None else [dotted_path(handler.type)]
    if isinstance(handler.type, cst.Tuple):
        names = [dotted_path(element.value) for element in handler.type.elements]
    return not names or any(name not in _OTHER_ERRORS for name in names)


def _is_declared(model: "Model", load: cst.Call) -> bool:
    """Whether an annotation says that what is read is a module, or an object of a class of the project.

    ``model: Net = torch.load(path)``, or a function that says it returns a ``Net`` and gives back what it has read,
    also by a name, or moved: ``return torch.load(path).to(device)``.
    """
    read: cst.BaseExpression = load
    while (outer := _moved(model, read)) is not None:
        read = outer
    parent = model.tree.parent(read)
    annotation = parent.annotation if isinstance(parent, cst.AnnAssign) else None
    if annotation is None and _is_given_back(model, load, read):
        function = model.enclosing_function(load)
        annotation = None if function is None else function.returns
    return annotation is not None and _is_of_class(annotated(model, annotation.annotation))


def _moved(model: "Model", node: cst.BaseExpression) -> cst.Call | None:
    method = model.tree.parent(node)
    is_moving = isinstance(method, cst.Attribute) and method.attr.value in _MOVING
    return model.tree.call_of(method) if method is not None and is_moving else None


def _is_given_back(model: "Model", load: cst.Call, read: cst.BaseExpression) -> bool:
    """Whether the function gives back what it has read; not where it asks what that is, and may have taken a part."""
    parent = model.tree.parent(read)
    if not isinstance(parent, cst.Assign):
        return isinstance(parent, cst.Return)
    uses = list(uses_of_bound(model, parent))
    is_returned = any(isinstance(model.tree.parent(use), cst.Return) for use in uses)
    return is_returned and not any(_is_asked(model, use) or _is_asked_first(model, use, load) for use in uses)


def _is_asked(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether it is asked what something is, or what is in it."""
    call = model.tree.call_given(use)
    if call is not None and last_word(call.func) in _ASKING:
        return True
    target = model.tree.parent(use)
    return isinstance(target, cst.ComparisonTarget) and isinstance(target.operator, (cst.In, cst.NotIn))


def _is_of_class(value: Value | None) -> bool:
    """Whether a declared thing surely is none of those that are read with ``weights_only``.

    A ``TypedDict`` is a plain dict, and a ``Protocol`` or a class of tensors may be anything.
    """
    if isinstance(value, Module):
        return holds_object(value)
    if not isinstance(value, Instance) or value.definition.has_unknown_base:
        return False
    is_class = not any(map(_DECLARE_NO_CLASS.search, value.definition.library_bases))
    return is_class and holds_object(value)


def _is_saved_as_object(model: "Model", load: cst.Call) -> bool:
    """Whether the code saves to the very file that is read, and each time something with an object in it."""
    saves = saves_to_same(model, load)
    return bool(saves) and all(map(saves_object, saves))


def _may_be_object(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module, or any other object, is used like that, or an entry of what is read there."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute) and parent.value is node:
        name = parent.attr.value
        return name in OF_MODULES | _ALSO_OF_MODULES or not is_of_plain_value(name)
    return model.tree.call_of(node) is not None or _is_computed_with(model, node)


def _is_computed_with(model: "Model", entry: cst.BaseExpression) -> bool:
    """Whether NumPy computes with an entry as with an array, which is an object: ``np.isnan(history["loss"])``."""
    given = model.tree.parent(entry)
    call = model.tree.parent(given) if isinstance(given, cst.Arg) and isinstance(entry, cst.Subscript) else None
    name = model.qualified_name(call.func) if isinstance(call, cst.Call) else None
    return name is not None and name.startswith("numpy.") and name not in _MAKING_ARRAYS


def _has_to_be_of_class(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether it is asked to be an object of a class of the project: ``isinstance(state, Session)``."""
    asked = model.tree.call_given(node)
    narrowed = narrowing(asked) if isinstance(asked, cst.Call) else None
    return narrowed is not None and isinstance(model.value(narrowed[1]), ClassObject)


def _read(
    model: "Model", node: cst.BaseExpression, load: cst.Call, steps: int, name: str | None = None
) -> Iterator[tuple[cst.BaseExpression, str | None]]:
    """Where a loaded thing is read, and each entry of it, with the name that an entry has there."""
    yield node, name
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        key = string_literal(subscript_index(parent))
        if key is None or not _need_not_be_there(model, parent, key):
            yield from _read(model, parent, load, steps, key)
    elif isinstance(parent, (cst.Assign, cst.AnnAssign)) and parent.value is node and steps:
        for use in uses_of_bound(model, parent):
            if not _is_asked_first(model, use, load):
                yield from _read(model, use, load, steps - 1, name)


def _may_be_read(model: "Model", node: cst.BaseExpression, steps: int) -> Iterator[cst.BaseExpression]:
    """Where a loaded thing is read, or an entry of it, also if the code reckons with several kinds of file."""
    yield node
    chosen, parent = node, model.tree.parent(node)
    while isinstance(parent, cst.BooleanOperation) or (isinstance(parent, cst.IfExp) and parent.test is not chosen):
        chosen, parent = parent, model.tree.parent(parent)
        yield chosen
    if isinstance(parent, cst.Subscript) and parent.value is chosen:
        yield from _may_be_read(model, parent, steps)
    elif isinstance(parent, cst.Attribute) and parent.attr.value in _TAKING and (call := model.tree.call_of(parent)):
        yield from _may_be_read(model, call, steps)
    elif isinstance(parent, (cst.Assign, cst.AnnAssign)) and parent.value is chosen and steps:
        for use in uses_of_bound(model, parent):
            yield from _may_be_read(model, use, steps - 1)


def _need_not_be_there(model: "Model", item: cst.Subscript, key: str) -> bool:
    """Whether an entry is read only where it is found, ``if "logger" in checkpoint``, and nothing near saves it."""
    asked = (part for test in conditions(model, item) for part in subtree(test) if isinstance(part, cst.Comparison))
    return any(string_literal(test.left) == key for test in asked) and not is_saved_together(model, {key})


def _is_saved_as_state(model: "Model", key: str | None) -> bool:
    """Whether the file saves a state dict under the name of an entry: who takes that for an object is mistaken."""
    records = (item.content for item in model.surroundings.saved if key is not None and item.place.model is model)
    return any(isinstance(record, Record) and isinstance(record.items.get(key or ""), State) for record in records)


def _is_object(model: "Model", node: cst.BaseExpression, key: str | None) -> bool:
    """Whether a module, or for an entry with a name any object, has what is read here, and no plain value.

    What is loaded as a whole, or stands in a list, may be of a library that allows its own classes: graphs, boxes.
    """
    if model.tree.call_of(node) is not None:
        return True
    parent = model.tree.parent(node)
    if not isinstance(parent, cst.Attribute) or parent.value is not node:
        return False
    name = parent.attr.value
    if name in OF_MODULES:
        return True
    return key is not None and not is_of_plain_value(name) and not _is_set_on_tensor(model, name)


def _is_set_on_tensor(model: "Model", name: str) -> bool:
    """Whether the file gives a tensor an attribute of that name, which it keeps: ``state["head"].layout = 2``."""
    return any(
        isinstance(target.target, cst.Attribute)
        and target.target.attr.value == name
        and isinstance(model.value(target.target.value), Tensor)
        for statement in model.tree.by_type.get(cst.Assign, ())
        for target in statement.targets
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


MAX_FILES = 100
"""How many files of a project are looked at for what they read."""
_OF_ANYTHING = frozenset({".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".tar", ".model", ".th", ".t7"})
"""Endings that tell nothing of what is in a file."""


def is_meant_whole(model: "Model", save: cst.Call) -> bool:
    """Whether whoever reads what a call saves allows any class, as far as the code around shows.

    Those that read the very file. Where there are none, the files of that ending are a format of the project if a read
    asks for it: ``if path.endswith(".net"): net = torch.load(path, weights_only=False)``.
    """
    saved = (item for item in model.surroundings.saved if item.place.is_of(model, save))
    written = [item.path for item in saved if item.path is not None and not item.path.is_blank]
    surely: list[bool] = []
    by_ending: list[bool] = []
    for read in _reads(model) if written else ():
        path = read_path(read)
        if path is None or path.is_blank:
            path = default_path(read)
        if path is not None and any(path.is_same_as(other) for other in written):
            surely.append(_allows_classes(read))
        elif path is None and any(ending in _asked_endings(read) for ending in _endings(written)):
            by_ending.append(_allows_classes(read))
    return all(surely) if surely else any(by_ending)


def _reads(model: "Model") -> Iterator[FromFile]:
    """The calls of ``torch.load`` in the project; none where nobody says there what is to be read.

    A file that reads whole modules need not do anything else with them, so it is not one of those around.
    """
    project = model.project
    if project is None or not project.users("torch", "weights_only"):
        return
    paths = project.users("torch", "load(")
    others = [model.neighbour(path) for path in paths[:MAX_FILES] if path != model.path]
    for other in dict.fromkeys((*model.surroundings.models, *others)):
        for call in () if other is None else other.calls_by_word.get("load", ()):
            if other is not None and other.library_name(call.func) == "torch.load":
                yield FromFile(Place(other, call))


def _allows_classes(read: FromFile) -> bool:
    """Whether a read allows any class, or may do so, also when it was tried without before."""
    model, call = read.place.model, read.place.node
    if not isinstance(call, cst.Call) or has_star_arguments(call) or argument(call, 2, "pickle_module") is not None:
        return True
    given = argument(call, None, "weights_only")
    if given is not None:
        return constant(given.value) is not True
    return is_read_again(model, call)


def _endings(paths: Iterable[Path]) -> set[str]:
    """The endings of files' names that tell what is in them."""
    names = (path.known[-1].rpartition("/")[2] for path in paths)
    return {f".{name.rpartition('.')[2]}" for name in names if "." in name} - _OF_ANYTHING


def _asked_endings(read: FromFile) -> set[str]:
    """The endings of which a test tells that the path has one where a file is read."""
    model, given = read.place.model, path_given(read)
    path = None if given is None else dotted_path(given)
    if path is None:
        return set()
    name = path.partition(".")[0]
    tests = (test for test, holds in verdicts(model, read.place.node) if holds and name in names_in(test))
    texts = (string_literal(part) for test in tests for part in subtree(test) if isinstance(part, cst.SimpleString))
    return {text for text in texts if text is not None and text.startswith(".")}
