"""What the code that belongs to a load saves, where it is not known which file is read.

That is the function beside the one that loads (``state_dict`` beside ``load_state_dict``, ``save_checkpoint`` beside
``load_checkpoint``): what one of the two reads the other has to write. And it is what saves all the other entries that
are read of the same file.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, Record, State, entry_at
from mllint.semantic.checkpoints.handling import branches_without, items_of_same
from mllint.semantic.checkpoints.resuming import COUNTERS, resumes_from
from mllint.semantic.checkpoints.rewritten import is_converted
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, path_option, read_path
from mllint.semantic.names.definitions import class_around
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

_COUNTERPARTS = {"load": ("save", "store", "dump"), "restore": ("save", "store"), "resume": ("save",)}
MANY = 2
"""So many entries tell a file that the project writes from any other."""
_RESUMING = re.compile("resum|continu", re.IGNORECASE)
OF_TRAINING = ("optim", "sched", "lr_sched", "scaler")
"""How the keys begin of what is no model."""
_OWN = {"load_state_dict": "state_dict", "set_state_dict": "state_dict"}


def never_saved(model: "Model", given: cst.BaseExpression, content: Content | None) -> list[tuple[Saved, Content]]:
    """The entry that is read of a dict, where the counterpart of the function around surely does not save it.

    ``content`` is what is known of the dict that is loaded; the list has one element for each save, or is empty.
    """
    if isinstance(content, FromFile) and content.trail and not content.renames:
        trail, saves = content.trail, _counterparts(model, given, content)
    elif content is None:
        trail, saves = _own_state(model, given)
        if not saves:
            trail, saves = _given_to_function(model, given)
    else:
        return []
    found: list[tuple[Saved, Content]] = []
    for saved in saves:
        inner = entry_at(saved.content, trail)
        if not isinstance(inner, Absent) or not isinstance(inner.holder, Record):
            return []
        found.append((saved, inner))
    return [] if found and _is_saved_elsewhere(model, given, trail[0]) else found


def _is_saved_elsewhere(model: "Model", given: cst.BaseExpression, key: str) -> bool:
    """Whether something else writes such an entry into a file, which may be what is read.

    Not into one that has nothing of what else is read, but how far a training has come.
    """
    read = other_entries(model, given) - COUNTERS
    records = [saved.content.items for saved in model.surroundings.saved if isinstance(saved.content, Record)]
    return any(key in items and (not read or read & items.keys()) for items in records)


def written_beside(model: "Model", given: cst.BaseExpression, content: FromFile) -> list[tuple[Saved, Content | None]]:
    """The entry that is read of a dict, as the counterpart of the function around saves it, each time it does.

    It is the file of another run perhaps, whose networks have other layers. Nothing where it is not saved each time.
    """
    found: list[tuple[Saved, Content | None]] = []
    saves = _counterparts(model, given, content) if content.trail and not content.renames else []
    for saved in [item for item in saves if item.place.model is model] or saves:
        inner = entry_at(saved.content, content.trail)
        if isinstance(inner, Absent):
            return []
        found.append((saved.of_some_run(), inner))
    return found


def records_written(model: "Model", receiver: str | None, content: FromFile) -> list[tuple[Saved, Content | None]]:
    """What was read, where the code that belongs to it saves the state in another form each time.

    One is loaded as a whole that is saved as an entry, or an entry is that the code does not save. That is the code of
    the function beside, or, where what is told of a path speaks of resuming, all that the file saves of what has the
    receiver's name.
    """
    path = read_path(content)
    if path is None or path.is_of_others or content.renames or receiver is None:
        return []
    saves = [] if content.trail else list(saved_beside(model, content.place))
    if not saves and path.is_blank and is_to_resume(content):
        saves = [item for item in model.surroundings.saved if item.place.model is model and not is_converted(item)]
    found: list[tuple[Saved, Content | None]] = []
    for saved in saves:
        items = saved.content.items.values() if isinstance(saved.content, Record) else (saved.content,)
        if any(isinstance(item, State) and item.name == receiver for item in items):
            found.append((saved.of_some_run(), entry_at(saved.content, content.trail)))
    if content.trail and not any(_are_together(saved.place, content.place) for saved, _ in found):
        return []
    return found if all(isinstance(inner, Absent if content.trail else Record) for _, inner in found) else []


def _are_together(one: Place, other: Place) -> bool:
    """Whether two places of a file are in one class, or in one function, or one is in the script around."""
    owners = [class_around(place.model, place.node) for place in (one, other)]
    functions = [place.model.enclosing_function(place.node) for place in (one, other)]
    return owners[0] is owners[1] if any(owners) else functions[0] is functions[1] or None in functions


def is_to_resume(content: FromFile) -> bool:
    """Whether a name in what gives the path, or the declaration of the option, says that a training goes on."""
    path, option = read_path(content), path_option(content)
    texts = [] if option is None else [string_literal(arg.value) for arg in option.args]
    texts += [] if path is None else [path.text]
    return any(_RESUMING.search(text) is not None for text in texts if text)


def _counterparts(model: "Model", given: cst.BaseExpression, content: FromFile) -> list[Saved]:
    path = read_path(content)
    beside = list(saved_beside(model, content.place))
    return beside or ([] if path is not None and path.is_of_others else with_the_other_entries(model, given, content))


def is_crosswise(model: "Model", call: cst.Call, saved: Saved, state: State) -> bool:
    """Whether a load is of the state of another thing, into which the function around loads the state of this one.

    ``save(net, scheduler, optimizer)`` of ``def save(net, optimizer, scheduler)``.
    """
    receiver = _receiver(call)
    items = saved.content.items if isinstance(saved.content, Record) else {}
    own = [key for key, item in items.items() if isinstance(item, State) and item.name == receiver]
    if state.name in (None, receiver) or len(own) != 1:
        return False
    return any(_receiver(other) == state.name for other in _loads_of_entry(model, call, own[0]))


def _receiver(call: cst.Call) -> str | None:
    return last_word(call.func.value) if isinstance(call.func, cst.Attribute) else None


def _loads_of_entry(model: "Model", beside: cst.Call, key: str) -> Iterator[cst.Call]:
    """The loads of an entry with this key in the function around another load."""
    assert isinstance(beside.func, cst.Attribute)
    function = model.enclosing_function(beside)
    for call in model.calls_by_word.get(beside.func.attr.value, ()):
        given = call.args[0].value if call.args and model.enclosing_function(call) is function else None
        if isinstance(given, cst.Subscript) and string_literal(subscript_index(given)) == key:
            yield call


def saved_beside(model: "Model", read: Place) -> Iterator[Saved]:
    """What the functions save that are named after the one in which a file is read."""
    if read.model is not model:
        return
    function = model.enclosing_function(read.node)
    names = () if function is None else _names(function.name.value)
    if function is None or not names:
        return
    for saved in model.surroundings.saved:
        if saved.place.model is model:
            saver = model.enclosing_function(saved.place.node)
            if saver is None or saver.name.value not in names or is_converted(saved):
                continue
            if model.scope(function).parent is model.scope(saver).parent:
                yield saved


def with_the_other_entries(model: "Model", given: cst.BaseExpression, content: FromFile) -> list[Saved]:
    """The saves that hold all other entries, several of them, that the function reads of the same dict."""
    others = other_entries(model, given)
    # Who goes on counting where the file ends has written it.
    is_counted = others <= COUNTERS and resumes_from(model, others)
    is_resumed = len(others) == 1 and (is_counted or (is_to_resume(content) and not _is_saved_here(model, given)))
    if len(others) < MANY and not is_resumed:
        return []
    saves = [saved for saved in model.surroundings.saved if _holds_most(saved, others, model, is_resumed=is_resumed)]
    return saves or ([] if is_resumed else _with_most_of_the_others(model, given, others))


def _is_saved_here(model: "Model", given: cst.BaseExpression) -> bool:
    """Whether the file saves an entry with the key under which one is taken, whatever stands beside it."""
    key = string_literal(subscript_index(given)) if isinstance(given, cst.Subscript) else None
    records = [saved.content for saved in model.surroundings.saved if saved.place.model is model]
    return any(isinstance(record, Record) and key in record.items for record in records)


def _with_most_of_the_others(model: "Model", given: cst.BaseExpression, others: set[str]) -> list[Saved]:
    """The saves of other files that hold most of some entries, more than two, where one is read whenever they are."""
    if not isinstance(given, cst.Subscript):
        return []
    beside = [item for item in items_of_same(given.value, model) if not branches_without(given, item, model)]
    always = others & {string_literal(subscript_index(item)) for item in beside if item is not given}
    return [
        saved
        for saved in model.surroundings.saved
        if isinstance(record := saved.content, Record)
        and len(held := always & record.items.keys()) > MANY
        and 2 * len(held) > len(others)
        and not is_converted(saved)
    ]


def other_entries(model: "Model", given: cst.BaseExpression) -> set[str]:
    """The other entries that a function reads of the dict of which one is given."""
    while isinstance(given, cst.Subscript) and isinstance(given.value, cst.Subscript):
        given = given.value
    if not isinstance(given, cst.Subscript):
        return set()
    found = {string_literal(subscript_index(item)) or "" for item in items_of_same(given.value, model)}
    return found - {string_literal(subscript_index(given)) or ""}


def is_of_own_training(model: "Model", given: cst.Subscript, content: FromFile) -> bool:
    """Whether an entry is read of what the training itself has written, to go on from there.

    The file saves all the other entries that are read, several of them, or one where what is told of the path speaks of
    resuming: in the very function, or with the state of an optimizer, which is of no use to anybody else.
    """
    others, function = other_entries(model, given), model.enclosing_function(given)
    if len(others) < (1 if is_to_resume(content) else MANY):
        return False
    is_resumed = any(key.lower().startswith(OF_TRAINING[0]) for key in others)
    return any(
        record.place.model is model and (is_resumed or model.enclosing_function(record.place.node) is function)
        for saved in model.surroundings.saved
        if isinstance(record := saved.content, Record) and others <= record.items.keys()
    )


def is_of_the_project(model: "Model", given: cst.Subscript, content: FromFile) -> bool:
    """Whether an entry is read of what other code of the project has written.

    All that the project saves of networks under the keys that are read beside it is known, and has most of these keys;
    the path is not that of what somebody else has trained.
    """
    path, others = read_path(content), other_entries(model, given)
    if path is None or path.is_of_others or len(others) < MANY:
        return False
    everything = model.surroundings.saved
    if any(
        saved.content is None or (isinstance(saved.content, Record) and saved.content.is_open) for saved in everything
    ):
        return False
    records = [saved.content.items for saved in everything if isinstance(saved.content, Record)]
    alike = [items for items in records if len(others & items.keys()) >= MANY]
    return bool(alike) and all(any(isinstance(items.get(key), State) for key in others) for items in alike)


def _holds_most(saved: Saved, others: set[str], model: "Model", *, is_resumed: bool) -> bool:
    """Whether a save of the file holds most of some entries, more than one; another file's, or the only one: all."""
    if not isinstance(saved.content, Record):
        return False
    held = len(others & saved.content.items.keys())
    if saved.place.model is not model:
        holds = not is_resumed and held == len(others)
    else:
        holds = held == len(others) if is_resumed else held >= MANY and 2 * held > len(others)
    return holds and not is_converted(saved)


def _names(loader: str) -> tuple[str, ...]:
    """The names of the function that belongs to a loading one.

    `save_best` to `load_best`, `save` to `try_load`, `save_model` to `auto_load_model`.
    """
    pairs = [(word, other) for word, others in _COUNTERPARTS.items() if word in loader for other in others]
    bare = [other for word, other in pairs if loader.endswith(f"_{word}")]
    names = [loader.replace(word, other, 1) for word, other in pairs]
    names += [other + loader.partition(f"_{word}")[2] for word, other in pairs if f"_{word}_" in loader]
    return (*names, *(name.replace("_from_", "_", 1) for name in names), *bare)


def _given_to_function(model: "Model", given: cst.BaseExpression) -> tuple[tuple[str, ...], list[Saved]]:
    """The key taken of what a function is given, and what the class, or file, around it saves with the other entries.

    ``def resume(self, state): self.epoch, self.best = state["epoch"], state["best"]``.
    """
    key = string_literal(subscript_index(given)) if isinstance(given, cst.Subscript) else None
    bindings = model.reaching(given.value) if isinstance(given, cst.Subscript) and key is not None else ()
    if key is None or len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return (), []
    others, owner = other_entries(model, given), class_around(model, given)
    saves = [
        saved
        for saved in (model.surroundings.saved if len(others) >= MANY else ())
        if saved.place.model is model
        and class_around(model, saved.place.node) is owner
        and isinstance(saved.content, Record)
        and others <= saved.content.items.keys()
        and not is_converted(saved)
    ]
    # Such a dict need not come from a file: one that is kept may be made with other keys.
    return ((), []) if not saves or is_written_near(model, key) else ((key,), saves)


def is_written_near(model: "Model", key: str) -> bool:
    """Whether code around a file, or in it, writes an entry with a key into a dict, by the look of it."""
    word = re.escape(key)
    written = rf"""['"]{word}['"]\s*(?::|\]\s*=)|[(,]\s*{word}\s*=\s*[\w.]+\.state_dict"""
    if model.project is None:
        return re.search(written, model.source.text) is not None
    return model.project.is_written_near(model.path, re.compile(written.encode()))


def _own_state(model: "Model", given: cst.BaseExpression) -> tuple[tuple[str, ...], list[Saved]]:
    """The keys taken of what a class's own ``load_state_dict`` is given, and what its ``state_dict`` returns."""
    keys: list[str | None] = []
    while isinstance(given, cst.Subscript):
        keys.append(string_literal(subscript_index(given)))
        given = given.value
    bindings = model.reaching(given)
    if not keys or len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return (), []
    function = bindings[0].scope.node
    info = model.function_info(function) if isinstance(function, cst.FunctionDef) else None
    if info is None or info.owner is None or info.name not in _OWN or len(info.parameters) < 2:
        return (), []
    state = info.owner.methods.get(_OWN[info.name])
    if state is None or info.parameters[1] is not bindings[0].node:
        return (), []
    keys.reverse()
    known = keys[: keys.index(None)] if None in keys else keys
    trail = tuple(key for key in known if key is not None)
    return (trail, _returned(state)) if trail else ((), [])


def _returned(state: "FunctionInfo") -> list[Saved]:
    values = [statement.value for statement in state.scope.returns]
    if len(values) != 1 or values[0] is None:
        return []
    return [Saved(Place(state.model, values[0]), None, partial(Tracer(state.model).content, values[0]))]
