"""What is in a file of which the path tells little, by what the project saves of the same option or of the same class.

``test.py`` loads ``torch.load(args.model_file)["state_dict"]`` into the policy, ``train.py`` goes on with
``torch.load(args.model_file)["policy"]``, and under that key the project saves each policy that it saves.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, Record, State, Whole, entry_at
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.rewritten import is_converted
from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, default_path, path_given, read_path
from mllint.semantic.names.scopes import BindingKind, only_assigned
from mllint.semantic.values import Module, Object
from mllint.syntax.shape import dotted_path, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_SAVED_WHOLE = rb"save\w*\(\s*[\w.\[\]]+\.state_dict\(\)"


def written_as_read_elsewhere(load: Load, content: FromFile) -> list[tuple[Saved, Content | None]]:
    """What was read, as the project saves all things of the receiver's name, in a form that another function reads.

    Nothing where the project writes anything in the form that is read here: that may be what the option is for.
    """
    path, name = read_path(content), last_word(load.receiver)
    if not load.is_strict or name is None or content.renames or path is None or path.is_of_others:
        return []
    if default_path(content) is not None or len(content.trail) > 1:
        return []
    options = options_read(content)
    if len(options) != 1 or None in options or any(Path.unknown(item or "").is_of_others for item in options):
        return []
    found = [
        (saved.of_some_run(), entry_at(saved.content, content.trail))
        for saved in load.model.surroundings.saved
        if not is_converted(saved) and _holds(saved.content, name)
    ]
    if not found or not all(isinstance(inner, Absent if content.trail else Record) for _, inner in found):
        return []
    for other in _loads_elsewhere(load, name):
        given = Tracer(other.model).content(other.given)
        if not isinstance(given, FromFile) or not options & options_read(given) or given.renames or is_guarded(other):
            continue
        if all(isinstance(entry_at(saved.content, given.trail), State) for saved, _ in found):
            return [] if _may_be_written(load.model, content.trail) else found
    return []


def options_read(content: FromFile) -> set[str | None]:
    """The names under which the path of a file is taken as it is from what holds the options: attributes, or keys.

    ``None`` among them: from elsewhere, too. Of a parameter, each call of the function tells.
    """
    given = path_given(content)
    if given is None:
        return set()
    reader, source = Tracer(content.place.model, content.route).origin(given)
    bindings = reader.model.reaching(source) if isinstance(source, cst.Name) else ()
    function = bindings[0].scope.node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    if not isinstance(function, cst.FunctionDef):
        return {_option(source)}
    definition, surroundings = reader.model.function_info(function), content.place.model.surroundings
    calls = (*surroundings.calls_of(definition), *surroundings.calls_elsewhere(definition))
    passed = [Route(Follower(model), call, definition).argument(bindings[0].key) for model, call in calls]
    return {None if item is None else _option(item[1]) for item in passed}


def _option(source: cst.BaseExpression) -> str | None:
    if isinstance(source, cst.Subscript):
        return string_literal(subscript_index(source))
    is_own = isinstance(source, cst.Attribute) and isinstance(source.value, cst.Name) and source.value.value == "self"
    return source.attr.value if isinstance(source, cst.Attribute) and not is_own else None


def _holds(content: Content | None, name: str) -> bool:
    """Whether what is saved has the state of something with a name in it."""
    items = content.items.values() if isinstance(content, Record) else (content,)
    return any(isinstance(item, State) and item.name == name and not isinstance(item.owner, Object) for item in items)


def _loads_elsewhere(load: Load, name: str) -> Iterator[Load]:
    """The loads of other functions, here and in other files, into things with a name."""
    function = load.model.enclosing_function(load.call)
    for model in load.model.surroundings.models:
        for call in (call for word in sorted(LOADING) for call in model.calls_by_word.get(word, ())):
            other = None if model.enclosing_function(call) is function and model is load.model else load_of(model, call)
            if other is not None and last_word(other.receiver) == name:
                yield other


def _may_be_written(model: "Model", trail: tuple[str, ...], beside: Iterable[str | None] = ()) -> bool:
    """Whether any file of the project writes an entry with a key, or a state dict as it is.

    ``beside``: names of which that file has to have one.
    """
    if model.project is None:
        return True
    key = re.escape(trail[0]).encode() if trail else b""
    keyword = rb"""[(,]\s*%s\s*=\s*[\w.]+\.state_dict""" % key
    pattern = rb"""['"]%s['"]\s*(?::|\]\s*=)|%s""" % (key, keyword) if trail else _SAVED_WHOLE
    if names := "|".join(sorted(re.escape(name) for name in beside if name)):
        pattern = rb"(?s)\A(?=.*?\b(?:%s)\b).*?(?:%s)" % (names.encode(), pattern)
    return model.project.is_written_anywhere(model.path, re.compile(pattern))


def written_of_class(load: Load, content: FromFile) -> list[tuple[Saved, Content | None]]:
    """What was read, as every save of networks of this class of the project writes it.

    Nothing where any of what is saved may be such a network in another form, or the file loads two forms of it.
    """
    wanted = load.value.definition if isinstance(load.value, Module) and not load.value.others else None
    path = read_path(content) if wanted is not None and not content.renames else None
    if wanted is None or path is None or path.is_of_others:
        return []
    given = path_given(content)
    if isinstance(given, cst.Subscript) and isinstance(Tracer(load.model).content(given), FromFile):
        return []  # it is no path at all
    found: list[tuple[Saved, Content | None]] = []
    for saved in load.model.surroundings.saved:
        if _is_sequence(saved):
            continue  # nothing loads that: data, or what is unpacked first
        held = _has_one(saved.content, wanted, last_word(load.receiver))
        if held is None:
            return []
        if held and not is_converted(saved):
            inner = entry_at(saved.content, content.trail)
            if isinstance(inner, State):
                return []
            found.append((saved.of_some_run(), inner))
    # An option says which file is read: that the project's have no such entry is told by the class.
    is_told = path.is_blank and bool(content.trail) and not _is_written_out_of_sight(load, wanted, found)
    is_told = is_told or any(saved.path is not None and path.is_alike(saved.path) for saved, _ in found)
    return found if is_told and not is_loaded_otherwise(load, content) else []


def _is_written_out_of_sight(load: Load, wanted: "ClassInfo", found: list[tuple[Saved, Content | None]]) -> bool:
    """Whether a file of the project writes one of the entries that are missing in what the files around save.

    It has the name of the class, or of what makes the network where it is loaded.
    """
    made = only_assigned(load.model, load.receiver)
    names = {wanted.name, last_word(made.func) if isinstance(made, cst.Call) else None}
    absent = {inner.key for _, inner in found if isinstance(inner, Absent)}
    return any(_may_be_written(load.model, (key,), beside=names) for key in sorted(absent))


def _is_sequence(saved: Saved) -> bool:
    """Whether a tuple or a list is saved, as it is written in the call."""
    call = saved.place.node
    return isinstance(call, cst.Call) and bool(call.args) and isinstance(call.args[0].value, (cst.Tuple, cst.List))


def is_loaded_otherwise(load: Load, content: FromFile) -> bool:
    """Whether the file loads into the same thing what it reads in another form: the weights of somebody else."""
    model, path = load.model, dotted_path(load.receiver)
    for word in LOADING:
        for call in model.calls_by_word.get(word, ()):
            other = load_of(model, call) if call is not load.call else None
            if other is not None and dotted_path(other.receiver) == path:
                given = Tracer(model).content(other.given)
                if not isinstance(given, FromFile) or given.trail != content.trail:
                    return True
    return False


def _has_one(content: Content | None, wanted: "ClassInfo", name: str | None) -> bool | None:
    """Whether a network of a class is in what is saved; ``None`` where that is not known.

    Of what functions are given, and nobody knows what it is, the name tells.
    """
    match content:
        case Record():
            held = [_has_one(item, wanted, name) for item in content.items.values() if isinstance(item, (State, Whole))]
            return True if any(held) else None if None in held or content.is_open else False
        case State(owner=Object()):
            return False
        case State(owner=None) if content.name is not None:
            return True if content.name == name else None
        case State() | Whole():
            owner = content.owner
            definition = owner.definition if isinstance(owner, Module) and not owner.others else None
            return None if definition is None else definition.is_same_as(wanted)
    return None
