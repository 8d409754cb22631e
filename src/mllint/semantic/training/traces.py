"""Models that are traced in training mode: ``torch.jit.trace`` writes down what they do then, for good."""

from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.training.called_modules import module_called
from mllint.semantic.training.in_training_mode import is_put_to_training
from mllint.semantic.training.made_in_mode import is_switched_by_maker, switches_itself
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.training_modes import (
    has_mode_from_file,
    is_made_within,
    is_taken_out,
    mode_matters,
    modes_before,
)
from mllint.semantic.values import Module
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SAVING = ("save", "_save_for_lite_interpreter")


def is_traced_in_training_mode(model: "Model", call: cst.Call) -> bool:
    """Whether a call traces a model in training mode, and what it gives is saved in the same body."""
    if is_test_code(model) or not _is_saved(model, call):
        return False
    return model.runs.always(call, _is_in_training_mode, accelerated=True)


def _is_saved(model: "Model", call: cst.Call) -> bool:
    """Whether a traced model is saved: ``torch.jit.trace(net, x).save(path)``, ``torch.jit.save(traced, path)``."""
    parent = model.tree.parent(call)
    if _is_save(model, call, parent):
        return True
    bindings = (
        (
            item
            for name in (target.target for target in parent.targets)
            if isinstance(name, cst.Name)
            for item in model.scope_of(name).bindings.get(name.value, ())
        )
        if isinstance(parent, cst.Assign)
        else ()
    )
    return any(
        _is_save(model, node, model.tree.parent(node))
        for item in bindings
        if item.value is call and item.kind is BindingKind.ASSIGN
        for node in uses(model, item)
    )


def _is_save(model: "Model", node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value in _SAVING
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and last_word(call.func) == "save"


def _is_in_training_mode(occurrence: Occurrence) -> bool:
    run, trace = occurrence.run, occurrence.event
    module = trace.thing
    if trace.kind is not Kind.TRACE or module is None or run.is_cut or not is_made_within(run, Thing(module.roots)):
        return False
    if not is_put_to_training(modes_before(run, module, trace)):
        return False
    forward = _forward_of(trace)
    value = module_called(forward)
    if not isinstance(value, Module) or has_mode_from_file(forward) or mode_matters(forward) is not True:
        return False
    is_switched = is_switched_by_maker(module) or (value.definition is not None and switches_itself(value.definition))
    return not is_switched and not is_taken_out(forward)


def _forward_of(trace: Event) -> Event:
    """The forward pass that tracing a model is."""
    assert isinstance(trace.node, cst.Call)
    return replace(trace, kind=Kind.FORWARD, node=cst.Call(trace.node.args[0].value))
