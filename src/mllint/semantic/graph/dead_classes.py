"""Losses of the project's own classes through which no gradient gets, whoever uses the class, or that are computed
where no graph is recorded.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.cuts import is_guarded
from mllint.semantic.graph.data_sources import comes_from_data
from mllint.semantic.graph.dependence import may_be_computed_from
from mllint.semantic.graph.differentiability import Cut, DeadLoss, Origin, Trace
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.in_use import is_only_tried_out
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, assigned
from mllint.semantic.values import Module, Output, Tensor
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

_TAKING_OFF = frozenset({"item", "tolist", "numpy", "detach"})
_CHOOSING = frozenset({"argmax", "argmin", "argsort"})
_ASKED = frozenset({"size", "shape", "device", "dtype", "dim", "ndim"})
_COPYING = frozenset({
    "torch.tensor", "torch.from_numpy", "torch.FloatTensor", "torch.Tensor", "torch.cuda.FloatTensor",
    "paddle.to_tensor",
})  # fmt: skip
TAKEN_OFF = _TAKING_OFF | {name.rpartition(".")[2] for name in _COPYING}
"""The names of the cuts that take a thing off its graph; the others choose or count."""
# Who speaks of these computes gradients on the way, or puts one in by hand.
_GRADIENTS = ("backward", "grad", "apply", "register_hook")


class _OfClass(Trace):
    """As the losses of ``backward()``, but that what takes a thing off its graph is a cut, too."""

    def _method(self, call: cst.Call, callee: cst.Attribute) -> Origin | None:
        name = callee.attr.value
        if name in _TAKING_OFF:
            return self.of(callee.value) or Origin((Cut(call, name, False),))
        return super()._method(call, callee)

    def _library(self, call: cst.Call, name: str) -> Origin | None:
        origin = super()._library(call, name)
        is_copy = origin is None and name in _COPYING and len(call.args) > 0 and not self._is_kept_setting(call)
        return Origin((Cut(call, name.rpartition(".")[2], False),)) if is_copy else origin

    def _is_kept_setting(self, call: cst.Call) -> bool:
        """Whether what is copied is a number that the object is made with, which was on no graph: ``self.value``."""
        copied = call.args[0].value
        owner = owner_of_attribute(self.model, copied)
        made = owner.assignments(copied.attr.value) if owner is not None and isinstance(copied, cst.Attribute) else []
        return bool(made) and all(_is_given_to_constructor(item) or _is_data(item) for item in made)


def _is_data(binding: Binding) -> bool:
    return comes_from_data(binding.scope.model, binding)


def _is_given_to_constructor(binding: Binding) -> bool:
    function, given = binding.scope.node, assigned(binding)
    if not isinstance(function, cst.FunctionDef) or function.name.value != "__init__" or given is None:
        return False
    behind = binding.scope.model.reaching(given) if isinstance(given, cst.Name) else ()
    return bool(behind) and all(item.kind is BindingKind.PARAMETER for item in behind)


def _chosen_first(model: "Model", info: "FunctionInfo") -> cst.Call | None:
    """What makes whole numbers of all that a loss reads of the output that it is given first: there the graph ends.

    What copies the result later on takes nothing away.
    """
    output = next((item.name.value for item in info.node.params.params if item.name.value != info.self_name), None)
    found: cst.Call | None = None
    for name in () if output is None else model.names_within(output, info.scope):
        around = list(itertools.takewhile(lambda item: not isinstance(item, cst.BaseSuite), model.tree.ancestors(name)))
        choosing = [item for item in around if isinstance(item, cst.Call) and last_word(item.func) in _CHOOSING]
        found = found or next(iter(choosing), None)
        is_asked = isinstance(around[0], cst.Attribute) and around[0].attr.value in _ASKED
        if not (choosing or is_asked or isinstance(around[0], cst.Param)):
            return None
    return found


def dead_forward(model: "Model", node: cst.ClassDef) -> DeadLoss | None:
    """What lets no gradient through in the ``forward`` of a class that is called a loss, on any of its ways.

    Not of one that nobody makes but its own file, to try it out.
    """
    if not node.name.value.lower().endswith("loss") or model.framework is None:
        return None
    definition = model.class_info(node)
    info = definition.called
    if info is None or info.owner is not definition or not isinstance(definition.instance(), Module):
        return None
    if not info.is_transparent or not info.is_plain or model.gradients.inside(info.node.body) != "untouched":
        return None
    if any(model.names_within(word, info.scope) for word in _GRADIENTS):
        return None
    trace = _OfClass(model, model.framework, {}, 0)
    origins = [None if item.value is None else trace.of(item.value) for item in info.scope.returns]
    if not origins or None in origins:
        return None
    cuts = tuple(dict.fromkeys(cut for origin in origins if origin is not None for cut in origin.cuts))
    chosen = _chosen_first(model, info) if cuts and cuts[0].name in TAKEN_OFF else None
    if chosen is not None:
        cuts = (Cut(chosen, last_word(chosen.func) or "argmax", False),)
    if not cuts or is_only_tried_out(model, node):
        return None
    return DeadLoss(cuts[0].node, Origin(cuts), model.framework)


_CALLED = frozenset({"forward", "__call__"})
_COMPUTING = (cst.Call, cst.BinaryOperation, cst.UnaryOperation)


def given_back_without_graph(model: "Model", statement: cst.With) -> Iterator[cst.BaseExpression]:
    """What a class that is called a loss computes of its inputs under ``no_grad()``, and gives back as it is.

    A decorator that switches the gradients off for all of it is meant.
    """
    info = function_around(model, statement)
    if info is None or info.owner is None or info.name not in _CALLED or not info.owner.name.endswith(("Loss", "loss")):
        return
    if model.gradients.inside(statement) != "untouched" or is_guarded(model, statement, ""):
        return
    given = {id(parameter) for parameter in info.parameters[1:]}
    for line in info.scope.returns:
        is_off = model.tree.is_below(line, statement) and model.gradients.inside(line) == "off"
        value = line.value if is_off else None
        is_made = value is not None and _is_computed_in(model, value, statement)
        if value is not None and is_made and not given.isdisjoint(may_be_computed_from(model, value)):
            yield value


def _is_computed_in(model: "Model", node: cst.BaseExpression, holder: cst.CSTNode) -> bool:
    """Whether an expression computes what may be a tensor, or names what is computed inside of a statement."""
    if isinstance(node, cst.Name):
        made = all_assigned(model, node)
        return bool(made) and all(
            model.tree.is_below(item, holder) and _is_computed_in(model, item, holder) for item in made
        )
    value = model.value(node)
    return isinstance(node, _COMPUTING) and (value is None or isinstance(value, (Tensor, Output)))
