"""Pretrained networks of a library: where inference is done with one, and modules of the project that hold one as
``from_pretrained`` gave it, and are trained as they were made.

The module is in training mode, as all new ones are, but that network in it is in evaluation mode, and does not drop.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import networks
from mllint.knowledge.facts import PADDLE_BUILDERS
from mllint.semantic.events.places import children_of
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.modes import library_name, network_depends
from mllint.semantic.names.definitions import ClassInfo, function_around
from mllint.semantic.names.receivers import making_methods
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.inferences import calls_of_kept, is_used_as_made
from mllint.semantic.training.made_in_mode import is_switched_by_maker, switches_itself
from mllint.semantic.training.runs import Occurrence, Run
from mllint.semantic.training.training_modes import LOADED, UPDATES, is_updated_in, modes_before, training_forwards
from mllint.semantic.values import Module
from mllint.syntax.shape import constant, string_literal, targets_of
from mllint.syntax.walk import names_in

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_ASIDE = frozenset({
    "requires_grad", "requires_grad_", "no_grad", "inference_mode", "detach", "freeze", "train", "eval", "training",
    "modules", "named_modules", "children", "named_children", "apply",
})  # fmt: skip
"""Words of a class that keeps a part of itself from being trained, knows of its mode, or changes its layers."""


def may_hold_pretrained(definition: ClassInfo) -> bool:
    """Whether ``from_pretrained`` is called in one of the files of a class."""
    return any("from_pretrained" in info.model.calls_by_word for info in definition.lineage)


def is_trained_with_part_as_loaded(run: Run, forward: Event) -> bool:
    """Whether a forward pass trains a module of the project, and a network in it that nothing has switched since it was
    loaded.
    """
    module, value = forward.thing, module_called(forward)
    if forward.kind is not Kind.FORWARD or module is None or run.is_cut or not isinstance(value, Module):
        return False
    definition = value.definition
    if (
        definition is None
        or "?" in value.wrappers
        or forward not in training_forwards(run)
        or switches_itself(definition)
    ):
        return False
    if any(event.kind is Kind.FREEZE for event in run.events) or is_switched_by_maker(module):
        return False
    if any(_picks_parameters(event.frame.model) for event in run.events if event.kind in UPDATES):
        return False
    parts = [module.part(f".{name}") for name in _parts_as_loaded(definition)]
    return any(
        any(is_updated_in(loop, part) for loop in forward.loops)
        and modes_before(run, part, forward, LOADED) <= {LOADED}
        for part in parts
    )


def _picks_parameters(model: "Model") -> bool:
    """Whether a function of a file may give an optimizer some parameters alone, by their names.

    Those of two comprehensions with conditions are all of them: with and without weight decay.
    """
    calls = model.calls_by_word.get("named_parameters", ())
    clauses = [clause for call in calls if (clause := model.tree.nearest(call, cst.CompFor, cst.For)) is not None]
    homes = [id(model.enclosing_function(item)) for item in clauses if isinstance(item, cst.CompFor) and item.ifs]
    return any(homes.count(home) == 1 for home in homes) or any(isinstance(item, cst.For) for item in clauses)


def _parts_as_loaded(definition: ClassInfo) -> Iterator[str]:
    """The attributes that the constructor of a class binds to such networks, which its ``forward`` calls to train."""
    forward = definition.method("forward")
    if forward is None or any(not _ASIDE.isdisjoint(names_in(info.node.body)) for info in definition.lineage):
        return
    called = {
        call.func.attr.value
        for call in forward.model.tree.calls_in(forward.node.body)
        if isinstance(call.func, cst.Attribute) and getattr(call.func.value, "value", None) == forward.self_name
    }
    for method in making_methods(definition):
        model = method.model
        for call in model.tree.calls_in(method.node.body):
            statement = model.tree.parent(call)
            name = library_name(model.value(call.func))
            if not isinstance(statement, cst.Assign) or not networks.is_made_as_loaded(name):
                continue
            if network_depends(model, name, call, switched=True) is not True or _is_told_to_drop(call):
                continue
            for target in targets_of(statement):
                if isinstance(target, cst.Attribute) and target.attr.value in called:
                    yield target.attr.value


def _is_told_to_drop(call: cst.Call) -> bool:
    """Whether a call says how much is dropped, perhaps nothing, or gives settings that may."""
    words = [arg.keyword.value for arg in call.args if arg.keyword is not None]
    return any(arg.star for arg in call.args) or any("drop" in word or word == "config" for word in words)


PRETRAINED = ("pretrained", "weights")
"""The arguments with which a builder of a library is asked for a pretrained model."""
_BUILDERS = ("torchvision.models.", "timm.create_model")
"""What gives models in training mode, pretrained or not (run: torchvision 0.28, timm 1.0)."""


def inferences_ready_made(model: "Model") -> Iterator[cst.Call]:
    """The first forward pass, in a file, of each pretrained model that nobody switched."""
    if is_test_code(model) or "backward" in model.calls_by_word:
        return
    for word in PRETRAINED:
        for name in model.names_by_word.get(word, ()):
            making = _asked_for(model, name)
            node = None if making is None else _first_use(model, making)
            if node is not None:
                yield node


def _asked_for(model: "Model", name: cst.Name) -> cst.Call | None:
    """The call of a builder that an argument asks for pretrained weights."""
    arg = model.tree.parent(name)
    call = None if arg is None else model.tree.parent(arg)
    if not isinstance(arg, cst.Arg) or arg.keyword is not name or not isinstance(call, cst.Call):
        return None
    # Most of what is made with such an argument is only given back.
    if not _called_as(model, call) or not _says_yes(model, arg.value):
        return None
    called = model.qualified_name(call.func) or ""
    return call if called.startswith(_BUILDERS) or called in PADDLE_BUILDERS else None


def _says_yes(model: "Model", value: cst.BaseExpression) -> bool:
    """``True``, or the name of some weights: ``"DEFAULT"``, ``ResNet18_Weights.DEFAULT``."""
    if isinstance(value, cst.Name) and constant(value) is not True:
        bound = [binding.value for binding in model.reaching(value)]
        return len(bound) == 1 and isinstance(bound[0], cst.Attribute)
    return constant(value) is True or string_literal(value) is not None or isinstance(value, cst.Attribute)


def _first_use(model: "Model", making: cst.Call) -> cst.Call | None:
    """The first call of what a call makes, if that is only used to infer with."""
    for node in _called_as(model, making):
        if model.runs.always(node, lambda item: _is_of(item, making) and is_used_as_made(item)):
            return node
    return next((node for thing in _kept(model, making) for node in calls_of_kept(model, thing)), None)


def _kept(model: "Model", making: cst.Call) -> Iterator[Thing]:
    """What an object that is no module keeps of what a call in its constructor makes, or of the children of that."""
    function = function_around(model, making)
    owner = None if function is None else function.owner
    if owner is None or owner.has_unknown_base or owner.library_bases not in ((), ("builtins.object",)):
        return
    made = [making, *_made_of_children(model, list(_bound(model, making)))]
    for call in made if function in making_methods(owner) else ():
        for name in _bound(model, call, attributes=True) if function_around(model, call) is function else ():
            yield Thing(frozenset({owner}), (f".{name}",))


def _called_as(model: "Model", making: cst.Call) -> list[cst.Call]:
    """The calls in a file of what has a name to which it binds what a call makes, or what is made of its children."""
    whole = [*_bound(model, making), *_bound(model, making, attributes=True)]
    words = (*whole, *_parts_of(model, whole)) if whole else ()
    return [node for word in words for node in model.calls_by_word.get(word, ())]


def _bound(model: "Model", making: cst.Call, *, attributes: bool = False) -> Iterator[str]:
    """The names to which a file binds what a call makes, or those of the attributes of its object."""
    for item in model.tree.ancestors(making):
        if isinstance(item, cst.Assign):
            for target in targets_of(item):
                if attributes and isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
                    yield target.attr.value
                elif not attributes and isinstance(target, cst.Name):
                    yield target.value
        if isinstance(item, cst.BaseSmallStatement):
            return


def _parts_of(model: "Model", names: list[str]) -> Iterator[str]:
    """The names to which a file binds what is made of the children of a model, or by which an object keeps it."""
    for call in _made_of_children(model, names):
        yield from _bound(model, call)
        yield from _bound(model, call, attributes=True)


def _made_of_children(model: "Model", names: list[str]) -> Iterator[cst.Call]:
    """What is made of the children of a model with one of some names."""
    for call in model.calls_by_word.get("Sequential", ()):
        whole = children_of(call)
        if isinstance(whole, cst.Name) and whole.value in names:
            yield call


def _is_of(occurrence: Occurrence, making: cst.Call) -> bool:
    value, thing = module_called(occurrence.event), occurrence.event.thing
    if isinstance(value, Module) and value.call is not None and children_of(value.call) is not None and thing:
        made = (root.scope.model.binding_value(root) for root in thing.roots if isinstance(root, Binding))
        return any(isinstance(item, Module) and item.call is making for item in made)
    return isinstance(value, Module) and value.call is making
