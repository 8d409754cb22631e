"""State dicts of wrapped modules that are saved: their keys begin with the prefix of the wrapper."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State
from mllint.semantic.checkpoints.deliberate import is_download
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.tracing import Tracer, read_path
from mllint.semantic.checkpoints.wrapped_later import given_to, is_wrapped_later
from mllint.semantic.checkpoints.wrappings import (
    journey_of,
    prefix_of,
    takes_out,
    ways,
    wrappers_of,
    wrappings,
)
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.expressions.arguments import passed_for
from mllint.semantic.names.conditions import parts_of_test, verdicts
from mllint.semantic.names.definitions import class_around, function_around
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path, fingerprint

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

# Code that takes the prefix off, or looks for it: `k.replace("module.", "")`, `k[7:]`, `consume_prefix...`.
_PREFIX_HANDLED = re.compile(
    rb"""
    (?:replace|removeprefix|startswith|lstrip|strip|r?split|sub|partition|find|match|len)
        \(\s*[rf]?["']\^?(?:module|_orig_mod)\\?\.?["']
    | \b(?:k|key|name|param|layer)\w*\[\s*(?:7|10)\s*:\s*\]
    | consume_prefix_in_state_dict_if_present
    """,
    re.VERBOSE,
)


class WrappedSave(msgspec.Struct, frozen=True):
    """A call ``wrapped.state_dict()`` whose result is saved.

    ``wrappers`` are those that put a prefix in front of the keys, outermost first; ``is_certain``: the module surely is
    in them, whichever way the program takes. ``trail`` are the keys under which a checkpoint holds the state dict.
    """

    call: cst.Call
    call_model: "Model"
    receiver: cst.BaseExpression
    wrappers: tuple[str, ...]
    is_certain: bool
    saved: Saved
    trail: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """What stands in front of every key."""
        return prefix_of(self.wrappers)


def wrapped_save(model: "Model", call: cst.Call) -> WrappedSave | None:
    """The save of what a ``state_dict()`` call of this file gives, where that is the state of a wrapped module."""
    if not isinstance(call.func, cst.Attribute):
        return None
    found = wrappings(model, call.func.value)
    wrapped = [wrappers for wrappers in found if wrappers]
    # Asked first: where the state goes costs far more to tell.
    if not wrapped or any(wrappers != wrapped[0] for wrappers in wrapped):
        return None
    if _is_taken_out_beside(model, call.func.value):
        return None
    for saved in model.surroundings.saved:
        for trail, state in _states(saved.content):
            if state.place.is_of(model, call):
                certain = len(wrapped) == len(found)
                changed = not _is_unchanged(state)
                return None if changed else WrappedSave(call, model, call.func.value, wrapped[0], certain, saved, trail)
    return None


def _states(content: Content | None, trail: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], State]]:
    """The state dicts in what is saved, with the keys that lead to them."""
    if isinstance(content, State):
        yield trail, content
    elif isinstance(content, Record):
        for key, item in content.items.items():
            yield from _states(item, (*trail, key))


def _is_unchanged(state: State) -> bool:
    """Whether some key still begins with a wrapper's prefix, as it seems: nothing has taken it off on the way."""
    return not state.is_unclear and any(state.keys.may_begin_with(prefix) for prefix in WRAPPER_PREFIXES)


def _is_taken_out_beside(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether another way takes the module out of the thing: there it is wrapped, here not.

    So it is in the other branch of an ``if``, also of one that leaves the function, in an ``if`` of the same function
    with the opposite test, and in the ``try`` before an ``except``.
    """
    path, here = dotted_path(node), {id(test): (test, held) for test, held in verdicts(model, node)}
    tests = {_opposite(test) if held else fingerprint(test) for test, held in here.values()} - {""}
    tried = [item.body for item in model.tree.ancestors(node) if isinstance(item, cst.Try)]
    for prefix in WRAPPER_PREFIXES if here or tried else ():
        for taken in attributes(model, prefix.removesuffix(".")):
            if dotted_path(taken.value) != path:
                continue
            there = list(verdicts(model, taken))
            if any(id(test) in here and here[id(test)][1] is not held for test, held in there):
                return True
            if tests & {fingerprint(part) for test, held in there if held for part in parts_of_test(test)}:
                return True
            if any(model.tree.is_below(taken, body) and not model.tree.is_below(node, body) for body in tried):
                return True
    return False


def _opposite(test: cst.BaseExpression) -> str:
    """The text of the test that holds where another does not: ``ddp`` for ``not ddp``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return fingerprint(test.expression)
    return ""


def is_taken_off(model: "Model") -> bool:
    """Whether this file, or one of the project near it, takes the prefix of a wrapper off by itself."""
    if _PREFIX_HANDLED.search(model.source.text.encode("utf-8", "replace")):
        return True
    return model.project is not None and model.project.is_written_near(model.path, _PREFIX_HANDLED)


def loads_around(model: "Model") -> Iterator[Load]:
    """The loads in a file and in the files around it."""
    for other in model.surroundings.models:
        for word in sorted(LOADING):
            for call in other.calls_by_word.get(word, ()):
                load = load_of(other, call)
                if load is not None:
                    yield load


def is_loaded_wrapped(load: Load) -> bool | None:
    """Whether a load goes into a wrapped module: surely, surely not, or (``None``) maybe."""
    found = wrappings(load.model, load.receiver)
    if all(wrappers for wrappers in found):
        return True
    if all(wrappers == () for wrappers in found) or is_wrapped_later(load):
        return False
    return None


def is_handed_in(save: WrappedSave) -> bool:
    """Whether the wrapped module comes in as an argument, also where an attribute keeps it: others may pass another."""
    journey = journey_of(save.call_model, save.receiver)
    insides = [journey_of(model, node).bindings for model, node in journey.wrapped]
    return any(item.kind is BindingKind.PARAMETER for item in journey.bindings.difference(*insides))


def is_into_what_is_wrapped(load: Load, save: WrappedSave) -> bool:
    """Whether a load is into the very module around which the wrapper of a save is put, wherever that happens.

    A function may load it and return it, and who wraps it hand it to the one that saves it.
    """
    receiver, *passed = given_to(load)
    journey = journey_of(save.call_model, save.receiver)
    insides = [journey_of(model, node).bindings for model, node in journey.wrapped]
    for model, node in passed or [receiver] if insides else ():
        bindings = set(model.reaching(node))
        if not bindings or any(wrappers_of(item.scope.model.binding_value(item)) for item in bindings):
            return False
        if not any(bindings <= inside for inside in insides):
            return False
    return bool(insides)


def is_into_the_inside(load: Load) -> bool:
    """Whether a load takes the module out of its wrapper itself: ``model.module.load_state_dict(state)``."""
    return takes_out(load.receiver)


def is_loaded_bare(load: Load, save: WrappedSave) -> bool:
    """Whether a load surely goes into a bare module, or into the one that the wrapper of a save is put around."""
    found = is_loaded_wrapped(load)
    return found is False or (found is None and is_into_what_is_wrapped(load, save))


def may_read(load: Load, save: WrappedSave) -> bool:
    """Whether a load by the look of it reads what was saved: the same file, or an entry of the same name.

    A load in another file of a path that is not known, or to which nothing writes, reads what the project saves of that
    class, where all of it is saved this way. So does one of the same program, into the thing before it is wrapped: that
    goes on from there. Not where the path is called after weights that others have made, of which a training starts.
    """
    given = [Tracer(load.model).content(item) for item in (load.given, *_given_by_callers(load))]
    if any(_is_of(content, save) for content in given):
        return True
    may_be = [content for content in given if isinstance(content, FromFile) and _may_be_of(content, save)]
    is_around = bool(may_be) and is_into_what_is_wrapped(load, save)
    if is_around and (any(map(_is_of_others, may_be)) or _is_called_for_others(load)):
        return False
    is_told = any(map(_is_of_unknown_path, may_be)) and (is_around or _begins_with(load, save))
    return (is_told and not _is_read_as_saved(save)) or (bool(may_be) and _is_of_the_class(load, save))


def is_read_by_class(load: Load, save: WrappedSave) -> bool:
    """Whether a load elsewhere reads a file of which not only the entry tells that it may be what was saved."""
    given = [Tracer(load.model).content(item) for item in (load.given, *_given_by_callers(load))]
    may_be = any(isinstance(content, FromFile) and _may_be_of(content, save) for content in given)
    paths = [read_path(content) for content in given if isinstance(content, FromFile) and not content.renames]
    written = save.saved.path
    is_same = written is not None and any(path is not None and path.is_same_as(written) for path in paths)
    return is_same or (may_be and _is_of_the_class(load, save))


def _given_by_callers(load: Load) -> list[cst.BaseExpression]:
    """What the calls in the file pass, where the parameter of a function is loaded as it comes."""
    function = function_around(load.model, load.given)
    bindings = load.model.reaching(load.given)
    if function is None or len(bindings) != 1 or not isinstance(bindings[0].node, cst.Param):
        return []
    return passed_for(load.model, function, bindings[0].node)


def _may_be_of(content: FromFile, save: WrappedSave) -> bool:
    """Whether a file of which nothing is known but the entry that is read may be the one that was saved.

    So may one under another name, if it is not somebody else's, and nothing else that is saved goes there; not where
    both names are known in full.
    """
    if content.renames or content.trail != save.trail:
        return False
    path = read_path(content)
    if path is None or path.is_blank:
        return True
    written = [saved.path for saved in save.call_model.surroundings.saved]
    if path.is_literal and save.saved.path is not None and save.saved.path.is_literal:
        return False
    return not path.is_of_others and not any(other is not None and other.is_same_as(path) for other in written)


def _is_of_unknown_path(content: FromFile) -> bool:
    path = read_path(content)
    return path is None or path.is_blank


def _is_read_as_saved(save: WrappedSave) -> bool:
    """Whether another load reads a file of which no more is known into what is wrapped where the saved module is.

    That one goes on from what was saved, and what is loaded before the wrapper may be any weights.
    """
    others = [load for load in loads_around(save.call_model) if not is_into_the_inside(load)]
    return any(
        isinstance(content := Tracer(load.model).content(load.given), FromFile)
        and _may_be_of(content, save)
        and is_loaded_wrapped(load) is None
        and any(wrappings(load.model, load.receiver))
        for load in others
    )


def _is_never_called(load: Load, here: "Model") -> bool:
    """Whether a load stands in a method that loads the object itself, and that nothing around calls."""
    function = function_around(load.model, load.call)
    if function is None or function.owner is None or dotted_path(load.receiver) != function.self_name:
        return False
    return not any(model.calls_by_word.get(function.name) for model in (load.model, *here.surroundings.models))


def _is_of_others(content: FromFile) -> bool:
    path = read_path(content)
    return path is not None and path.is_of_others


def _is_called_for_others(load: Load) -> bool:
    """Whether all calls that hand over what is loaded into name others: ``restore(net, args.pretrained)``."""
    _, *passed = given_to(load)
    calls = [model.tree.nearest(node, cst.Call) for model, node in passed]
    named = [[Path.unknown(fingerprint(arg.value)) for arg in call.args] for call in calls if call is not None]
    return bool(named) and all(any(path.is_of_others for path in paths) for paths in named)


def _is_of_the_class(load: Load, save: WrappedSave) -> bool:
    """Whether a load elsewhere is into the class, of which the files around surely save no bare module.

    Weights that were published, as their name or the code around tells, are nothing that the project has saved.
    """
    here = save.call_model
    classes = _classes(load.model, load.receiver)
    if _is_never_called(load, here) or is_download(load):
        return False
    if load.model is here or len(classes) != 1 or not classes <= _classes(here, save.receiver):
        return False
    for saved in here.surroundings.saved:
        for _, state in _states(saved.content):
            call = state.place.node
            if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
                return False
            of = state.place.model, call.func.value
            if all(wrappers == () for wrappers in wrappings(*of)) and classes & (_classes(*of) or classes):
                return False
    return True


def _begins_with(load: Load, save: WrappedSave) -> bool:
    """Whether a load is into the very thing that is saved, before it is wrapped in the same function."""
    if load.model is not save.call_model or dotted_path(load.receiver) != dotted_path(save.receiver):
        return False
    functions = [load.model.enclosing_function(node) for node in (load.receiver, save.receiver)]
    owners = [class_around(load.model, node) for node in (load.receiver, save.receiver)]
    is_same = functions[0] is functions[1] or (owners[0] is not None and owners[0] is owners[1])
    return is_same and is_wrapped_later(load)


def _classes(model: "Model", node: cst.BaseExpression) -> set["ClassInfo"]:
    """The classes of the project of which the module that an expression stands for may be."""
    found = [item for value in ways(model, node) if isinstance(value, Module) for item in (value, *value.others)]
    return {item.definition for item in found if item.definition is not None}


def _is_of(content: Content | None, save: WrappedSave) -> bool:
    if not isinstance(content, FromFile) or content.renames:
        return False
    path: Path | None = read_path(content)
    if path is not None and save.saved.path is not None and path.is_same_as(save.saved.path):
        return True
    return bool(save.trail) and content.trail == save.trail
