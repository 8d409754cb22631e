"""What a module keeps of a forward pass, where a method that the loop calls has run ``backward()`` on the whole."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.sources import operands
from mllint.semantic.graph.losses import loss_of, retaining
from mllint.semantic.names.scopes import assigned
from mllint.semantic.values import Function, Module
from mllint.syntax.shape import dotted_path, is_super_call
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.graph.accumulation import Accumulator
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo


def is_spent_in_call(accumulator: "Accumulator") -> bool:
    """Whether what is added is a term that the ``forward`` of a module gives back a sum of, and a call spends that.

    ``total += self.net.rec_loss`` behind ``self.train_batch(x)``, which runs ``self.net(x).backward()``: what was
    saved for that is freed, and the nodes of the graph are left.
    """
    model, core = accumulator.model, accumulator.core
    holder = model.value(core.value) if isinstance(core, cst.Attribute) else None
    definition = holder.definition if isinstance(holder, Module) else None
    if definition is None or not isinstance(core, cst.Attribute) or not _gives_back(definition, core.attr.value):
        return False
    calls = (node for node in subtree(accumulator.loop.body) if isinstance(node, cst.Call))
    called = (callee for call in calls if isinstance(callee := model.value(call.func), Function))
    return any(_spends_output(callee.definition, definition) for callee in called)


def _gives_back(definition: "ClassInfo", name: str) -> bool:
    """Whether all that ``forward`` gives back is computed of an attribute of the module, with its graph."""
    forward = definition.method("forward")
    values = [] if forward is None else [statement.value for statement in forward.scope.returns]
    path = "" if forward is None else f"{forward.self_name}.{name}"
    return bool(values) and all(
        value is not None and any(dotted_path(part) == path for part in operands(value)) for value in values
    )


def _spends_output(function: "FunctionInfo", definition: "ClassInfo") -> bool:
    """Whether a function runs ``backward()`` on what a module of a class has given, and does not keep its graph."""
    model = function.model
    calls = model.calls_by_word.get("backward", ())
    own = (call for call in calls if model.enclosing_function(call) is function.node and not retaining(model, call))
    return any((loss := loss_of(call)) is not None and _is_output(model, loss, definition) for call in own)


def _is_output(model: "Model", loss: cst.BaseExpression, definition: "ClassInfo") -> bool:
    bindings = model.reaching(loss)
    made = [assigned(binding) for binding in bindings] or [loss]
    return all(isinstance(item, cst.Call) and _is_call_of(model, item, definition) for item in made)


def _is_call_of(model: "Model", call: cst.Call, definition: "ClassInfo") -> bool:
    """Whether a call runs the ``forward`` of a module of a class: ``net(x)``, ``net.forward(x)``."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value == "forward":
        func = func.value
    value = None if is_super_call(call) else model.value(func)
    return isinstance(value, Module) and value.definition is definition
