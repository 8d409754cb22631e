"""What is in a file that an option names, as another function of the project takes it from the same option.

``test.py`` loads ``torch.load(args.model_file)["state_dict"]`` into the policy, ``train.py`` goes on with
``torch.load(args.model_file)["policy"]``, and under that key the project saves each policy that it saves.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, Record, State, entry_at
from mllint.semantic.checkpoints.converted import is_converted
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, default_path, path_given, read_path
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Object
from mllint.syntax.shape import last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

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
    options = _options(content)
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
        if not isinstance(given, FromFile) or not options & _options(given) or given.renames or is_guarded(other):
            continue
        if all(isinstance(entry_at(saved.content, given.trail), State) for saved, _ in found):
            return [] if _may_be_written(load.model, content.trail) else found
    return []


def _options(content: FromFile) -> set[str | None]:
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


def _may_be_written(model: "Model", trail: tuple[str, ...]) -> bool:
    """Whether any file of the project writes an entry with a key, or a state dict as it is."""
    if model.project is None:
        return True
    key = re.escape(trail[0]).encode() if trail else b""
    keyword = rb"""[(,]\s*%s\s*=\s*[\w.]+\.state_dict""" % key
    pattern = rb"""['"]%s['"]\s*(?::|\]\s*=)|%s""" % (key, keyword) if trail else _SAVED_WHOLE
    return model.project.is_written_anywhere(model.path, re.compile(pattern))
