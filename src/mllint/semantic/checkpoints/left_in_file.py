"""Loads of a checkpoint from which training goes on, and which leave the state of the optimizer in the file.

What the code writes beside the load tells that it is there. That training goes on is told by a scheduler, or another
optimizer, whose state is read of the same file, by a counter that starts a loop, or by the optimizer that a loading
function is given and has no other use for.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State
from mllint.semantic.checkpoints.counterparts import other_entries, written_beside
from mllint.semantic.checkpoints.handling import uses_in_function
from mllint.semantic.checkpoints.loads import Load, load_of, of_known_file
from mllint.semantic.checkpoints.resuming import COUNTERS, callers_that_go_on, has_state, resumes_from
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.names.in_use import is_named, outermost_function
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import uses_of_bound
from mllint.semantic.values import Loaded, Object, is_object
from mllint.syntax.shape import dotted_path, last_word, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_OF_TRAINING = ("optim", "sched")
_RESUMING = re.compile("resum", re.IGNORECASE)
_LEFT_OUT = re.compile(r"#.*(?:(?:load|set)_.*opt|opt.*\.(?:load|set)_)")
"""A comment that says that somebody has left it out on purpose."""


class Left(NamedTuple):
    """A state that is left in a file: its key, what the code calls the optimizer, and the dict that is read.

    ``is_of_caller``: the optimizer is not at hand where the file is read, but where that is called.
    """

    key: str
    optimizer: str
    holder: cst.BaseExpression
    is_of_caller: bool = False


def left_in_file(model: "Model", call: cst.Call) -> Left | None:
    """The optimizer whose state a load of a network leaves in the file that it reads."""
    load = load_of(model, call)
    item = None if load is None else _entry(load)
    if load is None or item is None or _is_of_training(load):
        return None
    read = other_entries(model, item)
    content = Tracer(model).content(item) if read else None
    if not isinstance(content, FromFile) or len(content.trail) != 1 or content.renames:
        return None
    loads = list(_loads_of_same(model, item))
    first = next((each.call for each in loads if not _is_of_training(each)), None)
    if first is not call or not _stays_here(model, item):
        return None
    for key, name in _left_unread(_written(load, item, content), read).items():
        if _is_mentioned(model, key) or _is_loaded_into(model, name) or _LEFT_OUT.search(model.source.text):
            continue
        path = _at_hand(load, name)
        is_of_caller = path is None and _is_at_hand_of_caller(load, key, name, read & COUNTERS)
        if is_of_caller or (path is not None and _goes_on(load, item, loads, name)):
            return None if _trains_no_more(load) else Left(key, path or name, item.value, is_of_caller)
    return None


def _left_unread(written: Iterator[Saved], read: set[str]) -> dict[str, str]:
    """The optimizers, by their keys, whose states are saved each time, and of which nothing is read.

    What is saved takes long to follow: the others are not asked where the first has no such state.
    """
    first = next(written, None)
    left = {} if first is None else {key: name for key, name in _optimizers(first.content).items() if key not in read}
    for saved in written if left else ():
        others = _optimizers(saved.content)
        left = {key: name for key, name in left.items() if key in others}
    return left


def _is_of_training(load: Load) -> bool:
    """Whether what is loaded into is an optimizer or a scheduler, by its name where nothing else is known."""
    if load.value is not None:
        return isinstance(load.value, Object)
    return any(word in (last_word(load.receiver) or "").lower() for word in _OF_TRAINING)


def _entry(load: Load) -> cst.Subscript | None:
    """The entry that is loaded, also by the name that the function has given it."""
    given: cst.CSTNode | None = load.given
    if isinstance(given, cst.Name):
        bindings = load.model.reaching(given)
        given = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    return given if isinstance(given, cst.Subscript) else None


def _loads_of_same(model: "Model", item: cst.Subscript) -> Iterator[Load]:
    """The loads in the function around of entries of the same dict, in document order of the entries."""
    for holder in _holders(model, item):
        if not isinstance(holder, cst.Subscript):
            continue
        above = model.tree.parent(holder)
        named = uses_of_bound(model, above) if isinstance(above, cst.Assign) else ()
        for given in (holder, *named):
            call = model.tree.call_given(given)
            other = None if call is None else load_of(model, call)
            if other is not None and other.given is given:
                yield other


def _holders(model: "Model", item: cst.Subscript) -> Iterator[cst.CSTNode | None]:
    """What the function does with the very dict of which an entry is read: what each use of it stands in."""
    bindings = model.reaching(item.value)
    for use in uses_in_function(item.value, model):
        if model.reaching(use) == bindings:
            yield model.tree.parent(use)


def _stays_here(model: "Model", item: cst.Subscript) -> bool:
    """Whether nobody else gets the whole dict, and may read more of it."""
    known = (cst.Subscript, cst.Attribute, cst.AssignTarget, cst.ComparisonTarget, cst.Del)
    return all(isinstance(holder, known) for holder in _holders(model, item))


def _written(load: Load, item: cst.Subscript, content: FromFile) -> Iterator[Saved]:
    """What the code writes into the file that is read, each time it does; else what is saved here with its entries."""
    model = load.model
    known = (saved for saved, _ in of_known_file(load, content))
    first = next(known, None)
    if first is not None:
        yield first
        yield from known
        return
    beside = written_beside(model, item, content)
    yield from (saved for saved, _ in beside)
    if not beside:
        keys = other_entries(model, item) | set(content.trail)
        yield from (saved for saved in model.surroundings.saved if saved.place.model is model and _has(saved, keys))


def _has(saved: Saved, keys: set[str]) -> bool:
    return isinstance(saved.content, Record) and keys <= saved.content.items.keys()


def _optimizers(content: Content | None) -> dict[str, str]:
    """The keys under which optimizers that keep anything are saved, each with what the code calls the optimizer."""
    items = content.items if isinstance(content, Record) and not content.is_open else {}
    return {key: item.name for key, item in items.items() if isinstance(item, State) and item.name and _keeps(item)}


def _keeps(state: State) -> bool:
    owner = state.owner
    if is_object(owner, "optimizer"):
        return owner.call is None or has_state(owner)
    return owner is None and "optim" in (state.name or "").lower()


def _is_loaded_into(model: "Model", name: str) -> bool:
    """Whether a file loads a state into an optimizer of this name."""
    return any(
        isinstance(call.func, cst.Attribute) and last_word(call.func.value) == name
        for word in LOADING
        for call in model.calls_by_word.get(word, ())
    )


def _is_at_hand_of_caller(load: Load, key: str, name: str, counters: set[str]) -> bool:
    """Whether a function that is given no optimizer gives back a counter, and who calls it goes on from that with one:
    ``start = resume(path, model)``.
    """
    counted = [
        (home, call)
        for item in load.model.tree.by_type.get(cst.Subscript, ())
        if load.model.enclosing_function(item) is load.model.enclosing_function(load.call)
        and (value := load.model.value(item)).__class__ is Loaded
        and value.keys[-1:]
        and value.keys[-1] in counters
        for home, call in callers_that_go_on(load.model, item)
    ]
    return any(
        _has_optimizer(home, call, name) and not _is_mentioned(home, key) and not _is_loaded_into(home, name)
        for home, call in counted
    )


def _has_optimizer(model: "Model", call: cst.Call, name: str) -> bool:
    """Whether the function around a call has an optimizer of a name."""
    function = model.enclosing_function(call)
    named = (node for node in model.names_by_word.get(name, ()) if model.enclosing_function(node) is function)
    return any(is_object(model.value(node), "optimizer") for node in named)


def _at_hand(load: Load, name: str) -> str | None:
    """What the function, or the class, calls the optimizer of this name; ``None`` where it has none."""
    model = load.model
    function = model.enclosing_function(load.call)
    info = None if function is None else model.function_info(function)
    if info is not None and info.owner is not None and any(info.owner.assignments(name)):
        return f"{info.self_name}.{name}"
    named = [node for node in model.names_by_word.get(name, ()) if model.enclosing_function(node) is function]
    # What is only declared to be global may not be there at all.
    is_there = any(not isinstance(model.tree.parent(node), cst.NameItem) for node in named)
    return name if is_there or (named and _is_bound(model, name)) else None


def _trains_no_more(load: Load) -> bool:
    """Whether what loads is in use, and optimizers are stepped in functions that are not: a copy of a training."""
    model = load.model
    around = {outermost_function(model, call) for call in model.calls_by_word.get("step", ())}
    in_use = {function is None or is_named(model, function) for function in around}
    home = outermost_function(model, load.call)
    return in_use == {False} and (home is None or is_named(model, home))


def _is_bound(model: "Model", name: str) -> bool:
    """Whether anything in a file is assigned to a name."""
    return any(isinstance(model.tree.parent(node), cst.AssignTarget) for node in model.names_by_word.get(name, ()))


def _goes_on(load: Load, item: cst.Subscript, loads: list[Load], name: str) -> bool:
    """Whether training surely goes on from the file."""
    if any(_is_of_training(other) for other in loads) or _takes_in_vain(load, name):
        return True
    model, counters = load.model, other_entries(load.model, item) & COUNTERS
    if not counters:
        return False
    function = model.enclosing_function(load.call)
    said = [function.name.value] if function is not None else []
    for binding in model.reaching(item.value):
        source = binding.value.args[0].value if isinstance(binding.value, cst.Call) and binding.value.args else None
        said.append(dotted_path(source) or "" if source is not None else "")
    return any(_RESUMING.search(text) for text in said) or resumes_from(model, counters)


def _is_mentioned(model: "Model", key: str) -> bool:
    """Whether a key stands anywhere but in the dicts that are made: ``checkpoint[key]``, ``checkpoint.get(key)``."""
    for text in model.tree.by_type.get(cst.SimpleString, ()):
        holder = model.tree.parent(text)
        if string_literal(text) == key and not (isinstance(holder, cst.DictElement) and holder.key is text):
            return True
    return False


def _takes_in_vain(load: Load, name: str) -> bool:
    """Whether the function around takes the optimizer and does nothing with it but to ask whether it is there."""
    model = load.model
    function = model.enclosing_function(load.call)
    used = [node for node in model.names_by_word.get(name, ()) if model.enclosing_function(node) is function]
    is_taken = function is not None and any(
        binding.kind is BindingKind.PARAMETER and binding.scope.node is function
        for node in used
        for binding in model.reaching(node)
    )
    return is_taken and not any(isinstance(model.tree.parent(node), (cst.Arg, cst.Attribute)) for node in used)
