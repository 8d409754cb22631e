"""What calling a module gives back."""

from functools import reduce
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.knowledge.networks import is_ready_made
from mllint.knowledge.schema import Class as ClassFact
from mllint.semantic.expressions import tensors
from mllint.semantic.expressions.attributes import MODULE_SEQUENCES
from mllint.semantic.expressions.passed_graph import with_graph_of_arguments
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import (
    Elements,
    Module,
    Nothing,
    Object,
    Output,
    Repeated,
    Tensor,
    Unfinished,
    Value,
    join,
    under_gradients,
)
from mllint.syntax.shape import argument, constant

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_OF_ANY_RANK = frozenset({"PReLU"})
"""Layers with weights that take a tensor without a dimension, and give one."""


def module_output(model: "Model", call: cst.Call, module: Module) -> Value | None:
    """What calling a module gives."""
    framework = module.framework
    attached = False if model.gradients.off(call) else True if model.gradients.off(call) is False else None
    if module.others:
        outputs = [module_output(model, call, replace(other, wrappers=module.wrappers)) for other in module.others]
        joined = reduce(join, outputs)
        if isinstance(joined, (Tensor, Output)) and joined.attached is None and not _is_given_cut_output(model, call):
            return replace(joined, attached=attached)  # as of any module
        return joined or Output(framework, attached)
    if module.definition is not None:
        forward = module.definition.called
        result = None if forward is None else forward.model.returned(forward)
        if result is None or isinstance(result, Nothing):
            # Where a part runs without gradients, what it gives may be made of that part alone.
            is_partly_off = forward is not None and forward.model.gradients.are_spoken_of(forward.node.body)
            return Output(framework, None if is_partly_off and attached else attached)
        assert forward is not None
        if attached and isinstance(result, Tensor) and result.scalar and _is_given_cut_output(model, call):
            attached = None  # a loss, whose own weights may be frozen
        result = under_gradients(with_graph_of_arguments(model, call, forward, result, 1) or result, attached)
        # DataParallel gathers one value a device: what was 0-d comes back with a dimension.
        return _without_rank(result) if module.wrappers else result
    if module.is_only_some and attached and _is_given_cut_output(model, call):
        return Output(framework)  # of a loss, which has no weights of its own, it would hang on no graph
    if module.name is None or module.wrappers:
        return Output(framework, attached)
    fact = lookup.class_(module.name)
    if fact is None:
        return Output(framework, attached)
    return _library_output(model, call, module, fact, attached)


def _is_given_cut_output(model: "Model", call: cst.Call) -> bool:
    """Whether something that a module is given was computed by another one without gradients: no data of a loader."""
    for arg in call.args:
        value = model.value(arg.value)
        if isinstance(value, Output) and value.attached is False:
            return True
        if isinstance(value, Tensor) and value.attached is False:
            made = (item.node for item in model.reaching(arg.value) if item.kind is BindingKind.ASSIGN)
            if any(model.gradients.off(node) is True for node in made):
                return True
    return False


def _library_output(
    model: "Model", call: cst.Call, module: Module, fact: ClassFact, attached: bool | None
) -> Value | None:
    framework, name = module.framework, module.name or ""
    if module.name in MODULE_SEQUENCES:
        return _sequence_output(model, module, attached)
    inputs = [model.value(arg.value) for arg in call.args]
    state = lookup.layer_state(name)
    # Where it has weights, the graph begins here, whatever it is given.
    is_own = is_ready_made(name) if state is None else bool(state.keys)
    if not is_own and any(isinstance(value, Unfinished) for value in inputs):
        return Unfinished()
    if fact.kind == "loss":
        scalar = None
        if module.call is not None:
            scalar = True if is_reduced(fact, module.call) else False if tensors.is_unreduced(module.call) else None
        return Tensor(framework, tensors.attachment(model, call, inputs), scalar)
    if not is_own:
        of_inputs = tensors.attachment(model, call, inputs)
        attached = None if state is None and attached is not False and not of_inputs else of_inputs
    if fact.kind == "rnn":
        hidden: Value = Tensor(framework, attached)
        if "LSTM" in name:
            hidden = Elements((hidden, hidden))
        packed = next((value for value in inputs if isinstance(value, Object) and value.kind == "packed"), None)
        is_alone = name.endswith("Cell") and framework == "torch"  # Paddle's cells give the output beside the state
        return hidden if is_alone else Elements((packed or Tensor(framework, attached), hidden))
    if fact.called in ("tensor", "scalar"):
        of_row = len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].scalar is False
        return Tensor(framework, attached, _keeps_rank(name, fact, of_row=of_row))
    if fact.called == "tensors":
        return Repeated(Tensor(framework, attached), "tuple")
    return Output(framework, attached)


def _keeps_rank(name: str, fact: ClassFact, *, of_row: bool) -> bool | None:
    """``False``: what a layer gives has a dimension, as it does where the layer has weights for one.

    A layer without weights, and one that has a single slope, is given a thing with a dimension then (``of_row``).
    """
    state = lookup.layer_state(name)
    if fact.kind != "layer" or fact.called != "tensor" or state is None:
        return None
    has_dimension = bool(state.keys) and name.rpartition(".")[2] not in _OF_ANY_RANK
    return False if has_dimension or of_row else None


def _sequence_output(model: "Model", module: Module, attached: bool | None) -> Value | None:
    """A ``Sequential`` gives what its last layer gives."""
    if module.call is None or not module.call.args or module.call.args[-1].star:
        return Output(module.framework, attached)
    last = model.value(module.call.args[-1].value)
    if isinstance(last, Module) and last.name is not None:
        fact = lookup.class_(last.name)
        if fact is not None and fact.called == "tensor":
            return Tensor(module.framework, attached, _rank_of_sequence(model, module.call))
    return Output(module.framework, attached)


def _rank_of_sequence(model: "Model", call: cst.Call) -> bool | None:
    """``False``: from its last layer with weights on, what a ``Sequential`` gives has a dimension."""
    of_row = False
    for arg in call.args:
        layer = None if arg.star or arg.keyword is not None else model.value(arg.value)
        name = layer.name if isinstance(layer, Module) and not layer.wrappers and not layer.others else None
        fact = None if name is None else lookup.class_(name)
        of_row = name is not None and fact is not None and _keeps_rank(name, fact, of_row=of_row) is False
    return False if of_row else None


def is_reduced(fact: ClassFact, call: cst.Call) -> bool:
    """Whether a loss built by this call gives a 0-d tensor: ``reduction`` is not ``"none"`` and surely so."""
    positions = fact.parameters.split(" *")[0].split()
    for parameter, wanted in (
        ("reduction", ("mean", "sum", "batchmean")),
        ("reduce", (True, None)),
    ):
        position = positions.index(parameter) if parameter in positions else None
        given = argument(call, position, parameter)
        if given is not None and constant(given.value) not in wanted:
            return False
    return not any(arg.star for arg in call.args)


def _without_rank(value: Value) -> Value:
    match value:
        case Tensor():
            return replace(value, scalar=None)
        case Elements():
            return Elements(tuple(None if item is None else _without_rank(item) for item in value.items))
    return value
