"""Calls of ``load_state_dict`` and its kind: what they are given, and which keys they want."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import facts
from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, State, renamed
from mllint.semantic.checkpoints.counterparts import never_saved
from mllint.semantic.checkpoints.rewritten import is_rewritten
from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.checkpoints.saves import MAX_ROUTES, Saved, resolved
from mllint.semantic.checkpoints.tracing import Tracer, default_path, read_path
from mllint.semantic.construction.constants import constant_of
from mllint.semantic.construction.state_keys import KeySet
from mllint.semantic.expressions.returns import is_called_class
from mllint.semantic.modules.module_keys import ANYTHING, module_keys
from mllint.semantic.values import (
    ClassObject,
    File,
    Framework,
    Function,
    Instance,
    Module,
    Object,
    Symbol,
    Value,
    is_object,
    own_method,
)
from mllint.syntax.shape import argument, dotted_path, is_super_call, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class Load(msgspec.Struct, frozen=True):
    """A call that loads a state dict.

    ``receiver`` is what it is loaded into and ``value`` what that is; ``given`` the dict. ``is_strict``: keys that do
    not match raise (``None``: not known).
    """

    model: "Model"
    call: cst.Call
    receiver: cst.BaseExpression
    value: Value | None
    given: cst.BaseExpression
    is_strict: bool | None

    @property
    def method(self) -> str:
        """The name of the method."""
        assert isinstance(self.call.func, cst.Attribute)
        return self.call.func.attr.value

    @property
    def framework(self) -> Framework | None:
        """The framework to which the receiver belongs."""
        if isinstance(self.value, (Module, Object)):
            return self.value.framework
        return self.model.framework


def load_of(model: "Model", call: cst.Call) -> Load | None:
    """The load that a call is; ``None`` where a project class defines what the call does."""
    function = call.func
    if not isinstance(function, cst.Attribute) or function.attr.value not in LOADING:
        return None
    given = argument(call, 0, "state_dict")
    value = model.value(function.value)
    if given is None or isinstance(value, (Instance, ClassObject, Symbol, File)):
        return None
    if isinstance(model.value(function), Function) or is_super_call(function.value):
        return None
    if isinstance(value, Module) and any(own_method(other, function.attr.value) is not None for other in value.others):
        return None
    return Load(model, call, function.value, value, given.value, _strictness(model, call, function.attr.value))


def contents(load: Load) -> Iterator[tuple[Saved | None, Content | None]]:
    """What the dict holds that is loaded: one entry for each file that it may come from."""
    content = Tracer(load.model).content(load.given)
    if content is None:
        yield from _of_several_files(load) or never_saved(load.model, load.given, None)
        return
    if not isinstance(content, FromFile):
        yield None, content
        return
    found: tuple[Saved | None, Content | None] | None = None
    for found in _of_file(load, content):
        yield found
    if found is None and content.renames:
        # Of the keys of any file it is known what was done to them.
        state: Content | None = State(lambda: ANYTHING, None, content.place)
        for rename in content.renames:
            state = renamed(state, rename)
        yield None, state


def _of_several_files(load: Load) -> list[tuple[Saved, Content | None]]:
    """What the files hold one of which is read, where it is known of each; what is there before what is not."""
    found: list[tuple[Saved, Content | None]] = []
    for way in Tracer(load.model).ways(load.given):
        held = list(of_known_file(load, way))
        if not held:
            return []
        found += held
    return sorted(found, key=lambda item: isinstance(item[1], Absent))


def _of_file(load: Load, content: FromFile) -> Iterator[tuple[Saved, Content | None]]:
    """What the file holds that is read, as it is saved; else what the code saves that belongs to the load."""
    known = of_known_file(load, content)
    first = next(known, None)
    if first is None:
        yield from never_saved(load.model, load.given, content)
    else:
        yield first
        yield from known


def of_known_file(load: Load, content: FromFile) -> Iterator[tuple[Saved, Content | None]]:
    """What the file holds that is read, where its path tells what saves it; nothing where it does not."""
    path = read_path(content)
    if path is not None and path.text.endswith(".ckpt") and not facts.LIGHTNING_ENTRIES.isdisjoint(content.trail[:1]):
        return  # its trainer writes such files, whoever else does
    if path is not None and path.is_blank:
        path = default_path(content) or path
    saves = (saved for saved in load.model.surroundings.saved if not is_rewritten(content, saved))
    known = iter(()) if path is None else resolved(content, saves, path)
    first = next(known, None)
    if first is None:
        known = _through_callers(load)
        first = next(known, None)
    if first is not None:
        yield first
        yield from known


def _through_callers(load: Load) -> Iterator[tuple[Saved, Content | None]]:
    """The same, for a function that is told which file to read."""
    function = load.model.enclosing_function(load.call)
    if function is None:
        return
    definition = load.model.function_info(function)
    for model, call in islice(load.model.surroundings.calls_of(definition), MAX_ROUTES):
        content = Tracer(load.model, Route(Follower(model), call, definition)).content(load.given)
        path = read_path(content) if isinstance(content, FromFile) else None
        if isinstance(content, FromFile) and path is not None:
            yield from resolved(content, load.model.surroundings.saved, path)


def wanted(load: Load) -> KeySet:
    """The keys of what is loaded into."""
    if not isinstance(load.value, Module):
        return ANYTHING
    if dotted_path(load.receiver) == "self" or (load.value.call is None and not load.value.others):
        # Of an instance of some derived class not even the class is known.
        return ANYTHING
    if _may_be_derived(load.model, load.value):
        return ANYTHING
    return module_keys(load.model, load.receiver, load.value)


def _may_be_derived(model: "Model", value: Module) -> bool:
    """Whether a module is made by ``cls()`` in a class from which others derive, in whatever file."""
    if value.call is None or value.definition is None or id(value.call) not in model.tree.parents:
        return False
    return is_called_class(model, value.call.func) and any(value.definition.subclasses)


def _strictness(model: "Model", call: cst.Call, method: str) -> bool | None:
    if method != "load_state_dict":
        return False
    given = argument(call, 1, "strict")
    if any(arg.star for arg in call.args):
        return None
    if given is None:
        return True
    value = constant_of(model, given.value)
    return value if isinstance(value, bool) else None


def is_read_back(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the file gives the name of something to what it reads: ``model = torch.load(path)``.

    Not where the state is loaded at once, ``load_state_dict(torch.load(path))``, or a part is taken.
    """
    name = last_word(node)
    for call in model.calls_by_word.get("load", ()):
        parent = model.tree.parent(call)
        if isinstance(parent, (cst.Arg, cst.Subscript)) or model.qualified_name(call.func) not in (
            "torch.load",
            "paddle.load",
        ):
            continue
        assigned = model.tree.nearest(call, cst.Assign)
        targets = [target.target for target in assigned.targets] if assigned is not None else []
        several = [item.value for target in targets if isinstance(target, cst.Tuple) for item in target.elements]
        if any(last_word(target) == name for target in (*targets, *several)):
            return True
    return False


def is_optimizer_of_paddle(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether something surely is an optimizer of Paddle 2; those of ``fluid`` have the names of layers' methods."""
    bound = [model.binding_value(binding) for binding in model.reaching(node)]
    values = bound or [model.value(node)]
    return all(is_object(value, "optimizer") and value.name.startswith("paddle.optimizer.") for value in values)
