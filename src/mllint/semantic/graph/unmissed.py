"""Results that are thrown away and that nobody misses, by what is read: it is taken wherever it is, in any shape."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.evidence import from_use
from mllint.semantic.expressions.iteration import yields_batches
from mllint.semantic.graph.devices import is_made_on_cpu
from mllint.semantic.graph.leaves import FLAGS, is_parameter_of_module
from mllint.semantic.graph.needless import PLACING, before_writes
from mllint.semantic.graph.placement import is_read_below, reads_clock
from mllint.semantic.graph.spread import is_spread_anyway
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Batch, Tensor
from mllint.syntax.shape import (
    before_methods,
    constant,
    detaches,
    last_word,
    root_of,
    string_literal,
)

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MOVING = (*PLACING, "cpu")
_RANDOM = frozenset({"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm"})
_LOSSES = ("loss", "entropy")
_MAKING_OF_ANYTHING = frozenset({"paddle.to_tensor", "torch.as_tensor", "torch.tensor"})
_OF_NUMBERS = frozenset({"float", "int", "print", "round"})


def is_unmissed(model: "Model", statement: cst.Expr, call: cst.Call, operand: cst.BaseExpression) -> bool:
    """Whether all that reads ``operand`` computes the same, be a statement that drops ``call`` mended or not."""
    word = last_word(call.func)
    if word in _MOVING and (_goes_with_module(model, operand) or _is_only_moved(model, operand)):
        return True
    if _asks_for_cpu(model, call) and _is_on_cpu(model, operand):
        return True
    if detaches(call) and _has_no_use_of_graph(model, statement, operand):
        return True
    if is_spread_anyway(model, call) or _is_tensor_already(model, call, operand):
        return True
    return _is_timed_alone(model, statement, operand) or _is_tried_loss(model, call)


def _is_tensor_already(model: "Model", call: cst.Call, operand: cst.BaseExpression) -> bool:
    """Whether a tensor is made of what is one: a part of a batch that the code below uses as it is, as a tensor."""
    if model.library_name(call.func) not in _MAKING_OF_ANYTHING or len(call.args) != 1:
        return False
    value, bindings = model.value(operand), model.reaching(operand)
    is_of_batch = isinstance(value, Batch) and not value.opaque and bool(bindings)
    return is_of_batch and all(isinstance(from_use(model, binding), Tensor) for binding in bindings)


def _goes_with_module(model: "Model", operand: cst.BaseExpression) -> bool:
    """Whether a move is of a parameter of the module whose method that is: it goes where the module goes."""
    node = before_writes(operand)
    if isinstance(node, cst.Attribute) and node.attr.value == "data":
        node = node.value
    own = method_of_receiver(model, root_of(node))
    return own is not None and is_parameter_of_module(model, node)


def _is_only_moved(model: "Model", operand: cst.BaseExpression) -> bool:
    """Whether a part of a batch is read nowhere else: the loop goes through the data without anything being computed.

    It measures, or looks for, how long that takes. (What is bound to elements of a list may be meant to change them.)
    """
    bindings = model.reaching(operand) if isinstance(operand, cst.Name) else ()
    if not bindings or not all(_is_bound_by_loader(model, item) for item in bindings):
        return False
    return all(use is operand for binding in bindings for use in uses(model, binding))


def _is_bound_by_loader(model: "Model", binding: Binding) -> bool:
    """Whether a loop over a data loader binds a name: each round of it makes a new batch."""
    if binding.kind is not BindingKind.LOOP or binding.value is None:
        return False
    is_of_dict = isinstance(binding.value, cst.Call) and last_word(binding.value.func) in ("values", "items")
    is_of_loader = not is_of_dict and yields_batches(model.value(binding.value))
    return is_of_loader and isinstance(model.binding_value(binding), Batch)


def _asks_for_cpu(model: "Model", call: cst.Call) -> bool:
    """Whether a move is to the CPU: ``x.cpu()``, ``x.to("cpu")``, ``x.to(torch.device("cpu"))``."""
    word, target = last_word(call.func), call.args[0].value if len(call.args) == 1 else None
    if isinstance(target, cst.Call) and model.library_name(target.func) == "torch.device" and target.args:
        target = target.args[0].value
    return (word == "cpu" and not call.args) or (word == "to" and string_literal(target) == "cpu")


def _is_on_cpu(model: "Model", operand: cst.BaseExpression) -> bool:
    """Whether a thing was made on the CPU, or is what a loader yields, as it is."""
    bindings = model.reaching(operand)
    return bool(bindings) and all(_is_bound_on_cpu(model, binding) for binding in bindings)


def _is_bound_on_cpu(model: "Model", binding: Binding) -> bool:
    value = assigned(binding)
    if isinstance(value, cst.Call) and last_word(value.func) == "Variable" and value.args:
        value = value.args[0].value
    if isinstance(value, cst.Name):
        return all(_is_bound_by_loader(model, item) for item in model.reaching(value) or (binding,))
    return _is_bound_by_loader(model, binding) if value is None else is_made_on_cpu(model, value)


def _has_no_use_of_graph(model: "Model", statement: cst.Expr, operand: cst.BaseExpression) -> bool:
    """Whether what is detached has no graph, or one that nobody asks for any more."""
    if _is_computed_without_gradients(model, operand) or _is_shown_to_be_a_leaf(model, operand):
        return True
    return _is_over_with(model, statement, operand)


def _is_computed_without_gradients(model: "Model", operand: cst.BaseExpression) -> bool:
    """Whether what is detached was computed where gradients are switched off: it has no graph."""
    computed = all_assigned(model, operand) if isinstance(operand, cst.Name) else []
    operations = (cst.BinaryOperation, cst.UnaryOperation)
    return bool(computed) and all(
        isinstance(before_methods(item), operations) and model.gradients.inside(item) == "off" for item in computed
    )


def _is_over_with(model: "Model", statement: cst.Expr, operand: cst.BaseExpression) -> bool:
    """Whether the gradients of what is detached have been computed above, and below nothing but its number is read:
    its graph is freed, and goes with the name.
    """
    found = [use for binding in model.reaching(operand) for use in uses(model, binding) if use is not operand]
    scope = model.scope_of(statement)
    above = [use for use in found if is_above(scope, use, statement)]
    if not isinstance(operand, cst.Name) or not any(_method_on(model, use) == "backward" for use in above):
        return False
    return all(_is_end(model, use) for use in found if not is_above(scope, use, statement))


def _is_end(model: "Model", use: cst.BaseExpression) -> bool:
    """Whether a use reads but the number of a thing, or deletes its name."""
    parent, taker = model.tree.parent(use), model.tree.call_given(use)
    if isinstance(parent, (cst.Del, cst.FormattedStringExpression)) or _method_on(model, use) == "item":
        return True
    return taker is not None and last_word(taker.func) in _OF_NUMBERS


def _method_on(model: "Model", use: cst.BaseExpression) -> str | None:
    """The method that is called on a thing."""
    parent = model.tree.parent(use)
    is_called = isinstance(parent, cst.Attribute) and parent.value is use and model.tree.call_of(parent) is not None
    return parent.attr.value if isinstance(parent, cst.Attribute) and is_called else None


def _is_shown_to_be_a_leaf(model: "Model", operand: cst.BaseExpression) -> bool:
    """Whether what is detached is asked to need a gradient, and that gradient is read: only leaves without a graph
    get one.
    """
    bindings = model.reaching(operand) if isinstance(operand, cst.Name) else ()
    read = [model.tree.parent(use) for binding in bindings for use in uses(model, binding)]
    asked = [node for node in read if isinstance(node, cst.Attribute)]
    if not any(node.attr.value == "grad" for node in asked):
        return False
    return any(_sets_flag(model, node) for node in asked)


def _sets_flag(model: "Model", node: cst.Attribute) -> bool:
    """Whether an attribute of a tensor is its flag, which is set there so that it needs a gradient."""
    target = model.tree.parent(node)
    statement = None if target is None else model.tree.parent(target)
    if isinstance(target, cst.AssignTarget) and isinstance(statement, cst.Assign):
        wanted = FLAGS.get(node.attr.value)
        return wanted is not None and constant(statement.value) is wanted
    call = model.tree.call_of(node)
    if call is None or node.attr.value != "requires_grad_":
        return False
    return not call.args or constant(call.args[0].value) is True


def _is_timed_alone(model: "Model", statement: cst.Expr, operand: cst.BaseExpression) -> bool:
    """Whether the clock is read right behind a statement, and further up, and nothing below reads what it is about."""
    line = model.tree.parent(statement)
    block = None if line is None else model.tree.parent(line)
    lines = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    place = next((index for index, item in enumerate(lines) if item is line), len(lines))
    if not isinstance(operand, cst.Name) or place + 1 >= len(lines) or not reads_clock(model, lines[place + 1]):
        return False
    is_begun = any(isinstance(item, cst.SimpleStatementLine) and reads_clock(model, item) for item in lines[:place])
    return is_begun and not is_read_below(model, operand, statement)


def _is_tried_loss(model: "Model", call: cst.Call) -> bool:
    """Whether a loss is computed of numbers that are drawn in the statement itself, to see that it can be."""
    name = model.library_name(call.func) or ""
    is_loss = ".functional." in name and name.endswith(_LOSSES)
    return is_loss and any(_is_drawn(model, arg.value) for arg in call.args)


def _is_drawn(model: "Model", node: cst.BaseExpression) -> bool:
    name = model.library_name(node.func) if isinstance(node, cst.Call) else None
    return name is not None and name.rpartition(".")[2] in _RANDOM
