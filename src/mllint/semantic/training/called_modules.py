"""What a forward pass calls: the module, and what is made on the ways to it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import networks
from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.places import as_itself
from mllint.semantic.events.steps import Event
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.arguments import takes
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.modules.modes import name_of_weights
from mllint.semantic.modules.weights import have_weights
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import Binding
from mllint.semantic.values import Function, Method, Module, Value
from mllint.syntax.shape import part_at, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_RECORDING_NOTHING = frozenset({
    "torch.jit.freeze", "torch.jit.optimize_for_inference", "torch.quantization.convert",
    "torch.ao.quantization.convert", "torch.quantization.quantize_dynamic", "torch.ao.quantization.quantize_dynamic",
    "torch2trt.torch2trt", "torch2trt.TRTModule", "poptorch.trainingModel", "poptorch.inferenceModel",
    "ultralytics.YOLO", "ultralytics.RTDETR", "ultralytics.SAM", "ultralytics.FastSAM", "ultralytics.NAS",
    "ultralytics.YOLOWorld", "ultralytics.YOLOE",
})  # fmt: skip
"""What makes a program of a module whose weights ask for no gradients, and models that call themselves without.

Those of ultralytics predict in inference mode, and so does what its repository gives by ``torch.hub``: ``AutoShape`` of
YOLOv5, read in ``models/common.py``. What poptorch makes runs as a program on an IPU, which does the whole step of a
training: https://docs.graphcore.ai/projects/poptorch-user-guide/en/latest/reference.html
"""


def can_be_called(value: Value | None, call: cst.Call) -> bool:
    """Whether the ``forward`` of a module's class takes what a call gives, as far as that is known.

    A call without arguments may stand for a pass that a library runs, as where it traces a model.
    """
    definition = value.definition if isinstance(value, Module) and not value.wrappers else None
    forward = None if definition is None else definition.called
    return not call.args or forward is None or not forward.is_plain or takes(forward, call)


def module_called(forward: Event) -> Value | None:
    """What a forward pass calls; of ``network.forward(x)`` the network.

    Or what was made, where it was given to a function that gives it back: ``network = load(network, path)``.
    """
    called = forward.called
    if called is None:
        return None
    holder = called.value if isinstance(called, cst.Attribute) and called.attr.value == "forward" else None
    value = (None if holder is None else forward.frame.value(holder)) or forward.frame.value(called)
    ways = made(forward) if value is None else []
    return ways[0] if len(ways) == 1 and isinstance(ways[0], Module) else value


def is_loss(forward: Event) -> bool:
    """Whether what is called is a loss, as it is spelled, and is given an output and a target: no model at all.

    Not where it is seen to have weights.
    """
    node = forward.node
    if not isinstance(node, cst.Call) or len(node.args) < 2 or not is_called_loss(node):
        return False
    value = module_called(forward)
    return not isinstance(value, Module) or not have_weights(value)


def is_out_of_sight(forward: Event) -> bool:
    """Whether nothing is known of what a forward pass calls but that it may be a module: a setting picks its class.

    So it is of a class that leaves its ``forward`` open, or has none: what derives from it says what it is made of.
    """
    value = module_called(forward)
    if not isinstance(value, Module):
        return value is None or isinstance(value, Method)
    if value.is_only_some or value.definition is None:
        return value.is_only_some
    runs = value.definition.called
    return runs is None or runs.is_left_open


def is_of_any_family(forward: Event) -> bool:
    """Whether a library picks the class of the module that is called by the name of weights that nobody in sight says:
    ``AutoModel.from_pretrained(path)``.
    """
    makers = _makers(forward)
    calls = [(maker.scope.model, as_itself(maker.value)) for maker in makers if maker.value is not None]
    return bool(calls) and len(calls) == len(makers) and all(_picks_by_weights(*item) for item in calls)


def _picks_by_weights(model: "Model", call: cst.BaseExpression) -> bool:
    if not isinstance(call, cst.Call) or not networks.is_of_any_family(model.qualified_name(call.func) or ""):
        return False
    return name_of_weights(model, call) is None


def made(forward: Event) -> list[Value | None]:
    """What is made on the ways to a call of a module: on others it may be loaded as a whole."""
    return [maker.scope.model.binding_value(maker) for maker in _makers(forward)]


def records_nothing(forward: Event) -> bool:
    """Whether a forward pass calls what was made of a module to infer with: its weights are constants, or out of sight.

    By functions of PyTorch, by what another library calls ``compile``, or by a converter. Or what a library made that
    switches gradients off itself.
    """
    for maker in _makers(forward):
        made = None if maker.value is None else as_itself(maker.value)
        if isinstance(made, cst.Call) and _gives_what_records_nothing(maker.scope.model, made):
            return True
    return False


def _gives_what_records_nothing(model: "Model", call: cst.Call) -> bool:
    name = model.qualified_name(call.func) or ""
    if name == "torch.hub.load" and call.args:
        return (string_literal(call.args[0].value) or "").startswith("ultralytics/")
    first, _, last = name.partition(".")
    return name in _RECORDING_NOTHING or (last.endswith("compile") and first not in ("torch", "paddle"))


def _makers(forward: Event) -> list[Binding]:
    """What binds the module of a forward pass where it is made, also to the attribute that it is."""
    thing = forward.thing
    return [] if thing is None else [maker for root in thing.roots for maker in makers_of(root, thing.path)]


def made_elsewhere(forward: Event) -> Iterator[Value | None]:
    """What a function of the project may make that gives the module: one class or another, as it is asked."""
    for maker in _makers(forward):
        call = None if maker.value is None else as_itself(maker.value)
        called = maker.scope.model.value(call.func) if isinstance(call, cst.Call) else None
        if isinstance(called, Function):
            yield from _returned(called.definition, maker.path)


def ways_made(forward: Event) -> list[Module | None]:
    """The modules of which a forward pass calls one, as they are made; ``None`` among them for what is not known."""
    value = module_called(forward)
    if not isinstance(value, Module):
        return []
    known = (value,) if value.call is not None else value.others
    several: tuple[Value | None, ...] = known or tuple(made_elsewhere(forward))
    return [way if isinstance(way, Module) and way.call is not None else None for way in several]


def _returned(function: FunctionInfo, path: tuple[int | None, ...]) -> Iterator[Value | None]:
    """What a function makes in its return statements, or binds to the names there, or at a place in what it returns."""
    frame = Frame(function.model, function)
    for statement in function.scope.returns:
        part = part_at(statement.value, path)
        call = None if part is None else as_itself(part)
        if isinstance(call, cst.Call):
            yield function.model.value(call)
            continue
        thing = None if part is None else frame.thing(part)
        for root in () if thing is None or thing.path else thing.roots:
            yield root.scope.model.binding_value(root) if isinstance(root, Binding) else None
