"""What is read from a file and taken for something else. What the code saves tells what is in the file."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst
import msgspec

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State, Whole, entry_at
from mllint.semantic.checkpoints.counterparts import saved_beside, with_the_other_entries
from mllint.semantic.checkpoints.handling import is_caught, is_guarded
from mllint.semantic.checkpoints.loads import Load, of_known_file
from mllint.semantic.checkpoints.never_written import entries
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.saves import Saved, resolved
from mllint.semantic.checkpoints.tracing import Tracer, default_path, path_given, read_path
from mllint.semantic.events.places import place_in_returns
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.names.definitions import class_around
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import bound_by, uses, uses_of_bound
from mllint.semantic.values import Loaded
from mllint.syntax.shape import dotted_path, last_word, part_at, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_METHODS = frozenset({
    "eval", "train", "to", "cuda", "cpu", "half", "parameters", "named_parameters", "modules", "children", "zero_grad",
    "state_dict", "load_state_dict", "set_state_dict", "requires_grad_", "sublayers", "step",
})  # fmt: skip
"""Methods of modules, and of what trains them, that no dict has."""


class Mistaken(msgspec.Struct, frozen=True):
    """The method of modules, or `module`, of what was read (empty: it is called itself), and what is in the file."""

    method: str
    saved: Saved


def taken_for_module(model: "Model", read: cst.Call) -> Mistaken | None:
    """The first use of what a call of ``load`` reads as a module, where the file surely holds a dict.

    ``model = torch.load(path)``, ``model(x)``: the reverse of loading a whole module as a state dict.
    """
    name, found = _used_as_module(model, read)
    if found is None:
        return None
    use, node = found
    call = use if isinstance(use, cst.Call) else read
    if is_guarded(Load(model, call, node, None, node, None)) or is_guarded(Load(model, read, read, None, read, None)):
        return None
    written = list(_written(model, name, FromFile(Place(model, read))))
    if not written or not all(_is_dict(content) for _, content in written):
        return None
    taken = use.func if isinstance(use, cst.Call) else use
    is_of_it = isinstance(taken, cst.Attribute) and taken.value is node
    return Mistaken(taken.attr.value if isinstance(taken, cst.Attribute) and is_of_it else "", written[0][0])


def _used_as_module(
    model: "Model", read: cst.Call
) -> tuple[str | None, tuple[cst.BaseExpression, cst.BaseExpression] | None]:
    """The name that is given to what is read, and the first use of it as a module, with what is used there."""
    chained = _use(model, read)
    if chained is not None:
        return None, (chained, read)
    statement = model.tree.parent(model.tree.beyond_choices(read))
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None, None
    name = dotted_path(statement.targets[0].target)
    for binding in bound_by(model, statement):
        for node in uses(model, binding) if binding.key == name else ():
            use = _use(model, node)
            if use is not None:
                return name, (use, node)
    return name, None


def _use(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The use of an expression as a module: a call, or `.module`, which takes the module out of a wrapper."""
    above = model.tree.parent(node)
    if isinstance(above, cst.Attribute) and above.value is node and above.attr.value == "module":
        return None if isinstance(model.tree.parent(above), cst.AssignTarget) else above
    return use_as_object(model, node)


def use_as_object(model: "Model", node: cst.BaseExpression) -> cst.Call | None:
    """The call of an expression, or of a method of modules on it, that it stands in."""
    above = model.tree.parent(node)
    if isinstance(above, cst.Attribute) and above.value is node and above.attr.value in _METHODS:
        node = above
    return model.tree.call_of(node)


def _written(model: "Model", name: str | None, content: FromFile) -> Iterator[tuple[Saved, Content | None]]:
    """What the file holds that was read; else what the code writes of what has this name.

    Wherever it does, if an option says which file is read; where the path is known, in the function beside only: any
    other file may have come from anywhere.
    """
    path = read_path(content)
    if path is None:
        return
    saved: tuple[Saved, ...] = model.surroundings.saved
    if path.is_blank:
        default = default_path(content)
        known = [] if default is None else list(resolved(content, saved, default))
    else:
        known = list(resolved(content, saved, path))
        saved = tuple(saved_beside(model, content.place))
    if not known and name is not None and not path.is_of_others and all(_is_dict(item.content) for item in saved):
        known = [(item, item.content) for item in saved if _is_saved_state_of(item.content, name, content.place)]
    yield from known


def _is_dict(content: Content | None) -> bool:
    return isinstance(content, (State, Record))


def _is_saved_state_of(content: Content | None, name: str, read: Place) -> bool:
    """Whether ``name.state_dict()`` is saved as it is, of the same variable, or attribute of the same class."""
    call = content.place.node if isinstance(content, State) and content.place.model is read.model else None
    if not isinstance(call, cst.Call) or dotted_path(call.func) != f"{name}.state_dict":
        return False
    functions = [read.model.enclosing_function(node) for node in (call, read.node)]
    owners = [class_around(read.model, node) for node in (call, read.node)]
    return functions[0] is functions[1] or ("." in name and owners[0] is not None and owners[0] is owners[1])


class ReadAgain(msgspec.Struct, frozen=True):
    """The key of what is taken for a path, and what saves something else there."""

    key: str
    saved: Saved
    is_state: bool


def read_again(model: "Model", read: cst.Call) -> ReadAgain | None:
    """What a call of ``load`` is given in the place of a path; ``None`` where that may be one.

    ``torch.load(checkpoint["model"])``.
    """
    given = path_given(FromFile(Place(model, read)))
    content = Tracer(model).content(given) if isinstance(given, cst.Subscript) else None
    if given is None or not isinstance(content, FromFile) or content.renames or not content.trail:
        return None
    load = Load(model, read, given, None, given, None)
    if is_guarded(load):
        return None
    found = list(of_known_file(load, content))
    if not found:
        saves = with_the_other_entries(model, given, content)
        found = [(saved, entry_at(saved.content, content.trail)) for saved in saves]
    if not found or not all(isinstance(inner, (State, Record, Whole)) for _, inner in found):
        return None
    return ReadAgain(content.trail[-1], found[0][0], all(isinstance(inner, State) for _, inner in found))


_PAIR = 2
"""So many things did ``load_dygraph`` give: the parameters, and the state of the optimizer."""


class Unpacked(msgspec.Struct, frozen=True):
    """A dict that several names share, and what saves it: ``None`` where nothing in sight saves anything."""

    saved: Saved | None


def unpacked(model: "Model", read: cst.Call) -> Unpacked | None:
    """The dict that a call of ``load`` reads, where several names share it and one of them is loaded.

    ``params, optimizer = paddle.load(path)``: ``fluid.load_dygraph`` of old Paddle returned a pair; ``paddle.load`` and
    ``torch.load`` return what was saved, and a dict that is unpacked gives its keys.
    """
    statement = model.tree.parent(read)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) < 2:
        return None
    if not _is_loaded(model, statement):
        return None
    first: Saved | None = None
    for saved, content in _written_to(model, FromFile(Place(model, read))):
        if not isinstance(content, (State, Record)):
            return None
        first = first or saved
    is_old_pair = first is None and len(target.elements) == _PAIR and not model.surroundings.saved
    return Unpacked(first) if first is not None or (is_old_pair and _is_of_paddle(model, read)) else None


def _is_of_paddle(model: "Model", read: cst.CSTNode) -> bool:
    """Whether a call is that of Paddle, for whose own pair what it reads is mistaken."""
    value = model.value(read)
    return isinstance(value, Loaded) and value.framework == "paddle"


def _is_loaded(model: "Model", statement: cst.Assign) -> bool:
    """Whether one of the names that a statement binds is loaded into something, and the code is sure what it is."""
    for name in uses_of_bound(model, statement):
        arg = model.tree.parent(name)
        call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.args[0] is arg:
            is_load = call.func.attr.value in LOADING
            if is_load and not is_guarded(Load(model, call, call.func.value, None, name, None)):
                return True
    return False


def _written_to(model: "Model", content: FromFile) -> Iterator[tuple[Saved, Content | None]]:
    """What is saved to the path that is read; of Paddle all that the code saves."""
    path = read_path(content)
    saved = model.surroundings.saved
    known = [] if path is None or path.is_blank else list(resolved(content, saved, path))
    if not known and _is_of_paddle(model, content.place.node):
        yield from ((item, item.content) for item in saved)
    yield from known


_QUESTIONS = frozenset({"isinstance", "hasattr", "type", "callable"})
_STEPS = 2
"""Out of how many functions an entry is followed."""


class EntryUsed(NamedTuple):
    """An entry that is taken for an object, with its key, and how it is used."""

    item: cst.Subscript
    key: str
    mistaken: Mistaken


def entries_used(model: "Model", read: cst.Call) -> Iterator[EntryUsed]:
    """The entries of what a call of ``load`` reads that are used as objects, where the file surely holds a state.

    ``scheduler = checkpoint["scheduler"]``: a call of a method that no dict has tells what an entry is taken for,
    there, or where a function hands the entry on to those that call it.
    """
    for item in entries(model, read):
        use = _use_of_entry(model, item)
        key = string_literal(subscript_index(item))
        if use is None or key is None or is_caught(Load(model, read, read, None, item, None)):
            continue
        written = list(_written_under(model, read, item))
        if written and all(_is_state(content) for _, content in written) and _is_state_everywhere(model, key):
            method = use.func.attr.value if isinstance(use.func, cst.Attribute) else ""
            yield EntryUsed(item, key, Mistaken(method, written[0][0]))


def _use_of_entry(model: "Model", item: cst.Subscript) -> cst.Call | None:
    """The first use of an entry as an object: of it, or of the name that it is given."""
    found = use_as_object(model, item)
    statement = model.tree.parent(item)
    if found is not None or not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return found
    places = [node for binding in bound_by(model, statement) for node in _uses(model, binding, _STEPS)]
    if any(last_word(call.func) in _QUESTIONS for node in places if (call := model.tree.call_given(node)) is not None):
        return None
    return next((use for node in places if (use := use_as_object(model, node)) is not None), None)


def _uses(model: "Model", binding: Binding, steps: int) -> Iterator[cst.BaseExpression]:
    """Where what a binding bound is read, also by those that call the function, where it returns that."""
    yield from uses(model, binding)
    function = binding.scope.node
    if not steps or not isinstance(function, cst.FunctionDef):
        return
    info = model.function_info(function)
    path = place_in_returns(info, binding) if info.is_transparent else None
    for call, _ in () if path is None else calls_of(model, info):
        statement = model.tree.parent(call)
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            target = part_at(statement.targets[0].target, path) if path else statement.targets[0].target
            for bound in bound_by(model, statement):
                if bound.path == path and isinstance(target, cst.Name) and target.value == bound.key:
                    yield from _uses(model, bound, steps - 1)


def _written_under(model: "Model", read: cst.Call, item: cst.Subscript) -> Iterator[tuple[Saved, Content | None]]:
    """What is saved under the key: to this file, or by the code that saves all else that is read of it."""
    content = Tracer(model).content(item)
    if not isinstance(content, FromFile) or content.renames:
        return
    known = [(saved, inner) for saved, inner in of_known_file(Load(model, read, read, None, item, None), content)]
    path = read_path(content)
    if not known and (path is None or not path.is_of_others):
        saves = with_the_other_entries(model, item, content)
        known = [(saved, entry_at(saved.content, content.trail)) for saved in saves]
    yield from known


def _is_state(content: Content | None) -> bool:
    return isinstance(content, State) and not content.is_unclear


def _is_state_everywhere(model: "Model", key: str) -> bool:
    """Whether all that the code saves under a key are states."""
    records = (saved.content.items for saved in model.surroundings.saved if isinstance(saved.content, Record))
    return all(_is_state(items[key]) for items in records if key in items)
