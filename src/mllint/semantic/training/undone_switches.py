"""Parts of a module that its constructor puts to evaluation mode for good, and that `train()` of the whole puts back.

A frozen network keeps its weights, but in training mode its dropout drops, and its batch normalization uses each batch
and goes on changing its statistics.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge.words import MODES
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.modules.made_with import making_run
from mllint.semantic.modules.mode_layers import depends_on_mode
from mllint.semantic.modules.switched_off import is_fixed, parts_off, skips
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.receivers import making_methods
from mllint.semantic.training.called_modules import module_called, ways_made
from mllint.semantic.training.runs import Run
from mllint.semantic.training.training_modes import LOADED, TRAIN, TRAINED, covers, modes_before, training_forwards
from mllint.semantic.values import Module
from mllint.syntax.shape import called_on

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_DEPTH = 3
"""How deep in a module the parts are looked for."""
_SWITCHING_ITSELF = re.compile(
    rb"\bdef (?:__init__|\w*(?:freez|froz|fix)\w*)\((?:(?!\n\s+def |\nclass ).)*?\.(?:eval\(\)|train\(\s*False)",
    re.DOTALL,
)
"""A constructor that may put something to evaluation mode, or a method that is named for it."""


class Undone(NamedTuple):
    """What is put back to training mode: an attribute of the class whose constructor has switched it, or its layers of
    some kinds.
    """

    owner: ClassInfo
    part: str = ""
    kinds: str | None = None


def may_undo(model: "Model", call: cst.Call) -> bool:
    """Whether a call of ``train()`` may be of a module whose class puts a part of it to evaluation mode.

    Where it is not known what that is, no class of the project may. Few do, so that few trainings are followed.
    """
    assert isinstance(call.func, cst.Attribute)
    value = model.value(call.func.value)
    if isinstance(value, Module) and value.definition is not None:
        return any(True for _ in _fixed_parts(value, [model], _DEPTH))
    if model.project is None:
        return _SWITCHING_ITSELF.search(model.source.text.encode()) is not None
    return model.project.is_written_anywhere(model.path, _SWITCHING_ITSELF)


def undone_by(run: Run, switch: Event) -> Undone | None:
    """What a switch of a module to training mode puts back there, of what its class means to stay in evaluation mode:
    it is the first to switch the part since that was made, and nothing else does before the module is trained.
    """
    whole = switch.thing
    if switch.kind is not Kind.TRAIN or whole is None or run.is_cut:
        return None
    for forward in training_forwards(run):
        module = forward.thing
        if module is None or not covers(whole, module):
            continue
        for value in _modules(forward):
            for path, undone in _fixed_parts(value, [frame.model for frame in forward.frame.led_by()], _DEPTH):
                part = module
                for step in path:
                    part = part.part(step)
                is_undone = modes_before(run, part, forward, LOADED) <= {TRAIN, TRAINED}
                if is_undone and LOADED in modes_before(run, part, switch, LOADED):
                    return undone
    return None


def _modules(forward: Event) -> Iterator[Module]:
    """What a forward pass calls, or one of which."""
    value = module_called(forward)
    ways = (value,) if isinstance(value, Module) and value.definition is not None else ways_made(forward)
    yield from (way for way in ways if isinstance(way, Module))


def _fixed_parts(module: Module, makers: list["Model"], depth: int) -> Iterator[tuple[tuple[str, ...], Undone]]:
    """The parts of a module that are frozen and put to evaluation mode when it is made, each with the way to it.

    ``makers`` are the files in which it may have been made, beside those of its class.
    """
    owner = module.definition
    if owner is None or _knows_modes(owner):
        return
    models = [*makers, *(info.model for info in owner.lineage)]
    making = next((model for model in models if id(module.call) in model.tree.parents), None)
    off = parts_off(owner, skips(owner, None if making is None else making_run(making, module.call, owner, None)))
    if off.kinds and depends_on_mode(module, *(info.model for info in owner.lineage), switched=True) is True:
        yield (), Undone(owner, kinds=", ".join(sorted(off.kinds)))
    for name in sorted(off.attributes):
        value, models = owner.attribute(name), [info.model for info in owner.lineage]
        if is_fixed(owner, name) and depends_on_mode(value, *models, switched=True) is True:
            yield (f".{name}",), Undone(owner, name)
    for name in sorted(_attributes(owner)) if depth else ():
        part = owner.attribute(name)
        if isinstance(part, Module):
            for path, undone in _fixed_parts(part, models, depth - 1):
                yield (f".{name}", *path), undone


def _attributes(owner: ClassInfo) -> set[str]:
    """The attributes that the constructors of a class set."""
    return {
        key.partition(".")[2]
        for method in making_methods(owner)
        for key in method.scope.bindings
        if key.count(".") == 1 and key.startswith(f"{method.self_name}.")
    }


def _knows_modes(owner: ClassInfo) -> bool:
    """Whether a class has a switch of its own, or a method beside its constructor that switches a part of it."""
    made = {id(method.node) for method in making_methods(owner)}
    return (
        owner.has_unknown_base
        or owner.method("train") is not None
        or any(_switches_later(info, made) or _sets_modes(info) for info in owner.lineage)
    )


def _switches_later(info: ClassInfo, made: set[int]) -> bool:
    """Whether a class switches a part of itself in another method than those that make it."""
    model = info.model
    calls = (call for word in MODES for call in model.calls_by_word.get(word, ()))
    return any(
        getattr(called_on(call), "value", None) != "self"
        and model.tree.is_inside(call, info.node)
        and id(model.enclosing_function(call)) not in made
        for call in calls
    )


def _sets_modes(info: ClassInfo) -> bool:
    """Whether a class puts another function in the place of a switch, or sets a mode itself: ``net.train = keep``."""
    targets = (target.target for target in info.model.tree.by_type.get(cst.AssignTarget, ()))
    return any(
        isinstance(target, cst.Attribute)
        and target.attr.value in (*MODES, "training")
        and info.model.tree.is_inside(target, info.node)
        for target in targets
    )
