"""Tensors and modules that a statement computes and throws away."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions import new_results
from mllint.semantic.expressions.hints import may_name_layer
from mllint.semantic.expressions.tensors import GRADIENTS
from mllint.semantic.files.testing import ends_a_test
from mllint.semantic.graph import needless, placement
from mllint.semantic.graph.leaves import sets_flags
from mllint.semantic.graph.unmissed import is_unmissed
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Batch, ClassObject, Elements, Function, Instance, Module, Number, Output, Tensor
from mllint.syntax.shape import called_on, detaches, dotted_path, last_word, root_of, writes_elsewhere

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Called for what else they do: random state, in-place updates, the error on a matrix that is not positive definite.
_EFFECTS = frozenset({
    "assign", "increment", "set_value", "bernoulli", "multinomial", "normal", "poisson", "rand_like", "randn_like",
    "randint_like", "cholesky", "inv", "inverse", "to_static",
})  # fmt: skip
# They make a tensor of what they are given, whatever that is.
_MAKERS = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "paddle.to_tensor"})
# It copies nothing and moves nothing, so that it is called for nothing but what it gives, also of an array made there.
_OF_ARRAY = "torch.from_numpy"
# They read something and change nothing.
_READERS = frozenset({"torch.load", "paddle.load"})
# A class method of Lightning's modules and data modules: it makes a new object (2.6 refuses the call on an instance).
_MAKING_ANEW = "load_from_checkpoint"
_OF_LIGHTNING = (".LightningModule", ".LightningDataModule")
# What functions of tensors call their first argument.
_INPUTS = frozenset({"input", "x", "self", "tensors", "A", "condition"})
_NAMED = frozenset({"clone", "copy", "eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "logical_not"})


class Discarded(NamedTuple):
    """What a statement throws away: the operand that stays as it was, and what was done with it.

    ``is_meant``: it can only have been written to have the operand changed. ``keeps_numbers``: with the result in its
    place the code below surely computes what it did. ``is_gradient``: gradients that an optimizer is meant to find.
    """

    operand: cst.BaseExpression
    what: str
    is_meant: bool
    keeps_numbers: bool = False
    is_gradient: bool = False


def discarded(model: "Model", statement: cst.Expr, call: cst.Call, paddle: tuple[int, int] | None) -> Discarded | None:
    """What is lost of a call whose result a statement throws away; ``None``: nothing, or it is called for more.

    ``paddle`` is the version of Paddle that the project runs on; ``None`` for the newest.
    """
    found = _by_method(model, statement, call, paddle)
    if found is None and not ends_a_test(model, statement):
        found = _by_class_method(model, call) or _by_function(model, call) or _by_layer(model, call)
    if found is None or placement.wants_no_result(model, statement) or new_results.is_measured(model, call):
        return None
    if model.library_name(call.func) not in _READERS and needless.is_computed_again(model, call):
        return None
    if last_word(call.func) not in needless.PLACING and needless.is_among_notes(model, statement):
        return None
    if is_unmissed(model, statement, call, found.operand):
        return None
    if not found.is_meant or not placement.can_be_rebound(model, found.operand, statement):
        return found._replace(is_meant=False)
    changes = (
        new_results.gives_other_shape(found.what)
        or new_results.moves_one_of_several(model, call)
        or new_results.asks_for_cpu_type(call)
        or placement.loses_gradient(model, found.operand, statement)
    )
    return found._replace(keeps_numbers=found.keeps_numbers and not changes)


def _by_method(model: "Model", statement: cst.Expr, call: cst.Call, paddle: tuple[int, int] | None) -> Discarded | None:
    """A method that gives a new tensor, on a tensor that outlives the statement."""
    if not isinstance(call.func, cst.Attribute) or writes_elsewhere(call):
        return None
    name, receiver = call.func.attr.value, call.func.value
    facts = [lookup.tensor_method(framework, name) for framework in ("torch", "paddle")]
    if name in _EFFECTS or not any(fact is not None and fact.returns in new_results.NEW for fact in facts):
        return None
    root = placement.root_of_chain(model, receiver)
    if root is None and isinstance(receiver, cst.Call) and isinstance(model.value(receiver), Module):
        return _by_function(model, receiver)  # nn.DataParallel(model).cuda()
    if root is None and name in new_results.RESHAPING and _is_given_back(model, receiver):
        return Discarded(receiver, f"{name}()", False)
    if root is None or new_results.is_other_object(model, receiver):
        return None
    if needless.is_made_there(model, call) or needless.is_taken_anywhere(model, call):
        return None
    if needless.keeps_shape(call) or needless.is_shaped_anew(model, call) or needless.is_of_that_type(model, call):
        return None
    value = model.value(receiver)
    if detaches(call) and isinstance(value, (Tensor, Output)) and value.attached is False and not sets_flags(model):
        return None  # there is no graph to take it out of
    is_sure = new_results.gives_new(model, value, name, paddle)
    if not (
        is_sure
        or new_results.gives_new_on_some_way(model, receiver, name, paddle)
        or (value is None and _gives_new_shape(model, statement, call))
        or (value is None and is_moved_tensor(model, receiver, name))
        or new_results.is_cut_tensor(model, value, call)
    ):
        return None
    returns = {fact.returns for fact in facts if fact is not None}
    is_same = new_results.keeps_numbers(name) and not new_results.is_converted(receiver)
    is_meant = "tensors" not in returns and name not in _NAMED and not name.startswith("new")
    return Discarded(root, f"{name}()", is_meant, is_sure and is_same and not detaches(call))


def _gives_new_shape(model: "Model", statement: cst.Expr, call: cst.Call) -> bool:
    """Whether a thing that is not known surely has a new one made of it, of another shape.

    A part of another object than the own one is for that to read, where the function neither reads it again nor hands
    the object on.
    """
    operand = call.func.value if isinstance(call.func, cst.Attribute) else None
    is_of_other = isinstance(operand, cst.Attribute) and method_of_receiver(model, root_of(operand)) is None
    if isinstance(operand, cst.Attribute) and is_of_other and not placement.is_read_below(model, operand, statement):
        return _is_handed_on(model, operand, statement) and new_results.gives_new_shape(model, call)
    return new_results.gives_new_shape(model, call)


def _is_handed_on(model: "Model", part: cst.Attribute, statement: cst.Expr) -> bool:
    """Whether the object that something is a part of is more than asked for its parts and methods below."""
    scope, root = model.scope_of(statement), root_of(part)
    reads = [use for binding in model.reaching(root) for use in uses(model, binding)]
    return any(
        is_above(scope, statement, use) and not isinstance(model.tree.parent(use), cst.Attribute) for use in reads
    )


def _is_given_back(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function of the project gives a tensor back: who wants what else it does needs no other shape."""
    callee = model.value(node.func) if isinstance(node, cst.Call) else None
    return isinstance(callee, Function) and isinstance(model.value(node), Tensor)


def _by_class_method(model: "Model", call: cst.Call) -> Discarded | None:
    """The class method of Lightning that reads a new module, and leaves the one that it is called on as it is."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != _MAKING_ANEW:
        return None
    if any(isinstance(model.value(arg.value), Module) for arg in call.args):
        return None  # the new module may hold this one, and what is read goes into that
    value = model.value(call.func.value)
    definition = value.definition if isinstance(value, (Module, Instance, ClassObject)) else None
    if definition is not None:
        is_own = definition.has_unknown_base or definition.method(_MAKING_ANEW) is not None
        is_inherited = not is_own and any(name.endswith(_OF_LIGHTNING) for name in definition.library_bases)
    else:
        is_known = model.imports("pytorch_lightning") or model.imports("lightning")
        is_own = _MAKING_ANEW in model.function_names or new_results.is_defined_beside(model, _MAKING_ANEW)
        is_inherited = isinstance(value, (Module, type(None))) and is_known and not is_own
    return Discarded(call.func.value, f"{_MAKING_ANEW}()", False) if is_inherited else None


def _by_function(model: "Model", call: cst.Call) -> Discarded | None:
    """A function of the framework that gives a new tensor or module, from its first argument."""
    name = model.library_name(call.func)
    if name is None or not call.args or call.args[0].star or writes_elsewhere(call, lookup.parameters(name)):
        return None
    given, last, fact = call.args[0].value, name.rpartition(".")[2], lookup.function(name)
    if name in _READERS:
        return Discarded(given, name + "()", False)
    if name in GRADIENTS:
        return Discarded(given, f"{last}()", False, is_gradient=True) if _is_to_train(model, call) else None
    root = placement.root_of_chain(model, given)
    if last in _EFFECTS:
        return None
    is_wrapper = lookup.wrapper(name) is not None
    if is_wrapper or (fact is not None and fact.returns == "module" and "inplace" in fact.parameters):
        is_module = root is not None and isinstance(model.value(given), (Module, type(None)))
        tried_out = last in ("script", "trace") and placement.is_tried_out(model, given, call)
        return Discarded(given, f"{last}()", True, is_wrapper) if is_module and not tried_out else None
    if fact is None or fact.returns not in new_results.NEW or lookup.framework_of(name) == "numpy":
        return None
    if name in _MAKERS and (root is not None or name == _OF_ARRAY):
        return Discarded(root or given, f"{last}()", isinstance(given, (cst.Name, cst.Attribute)))
    if not _INPUTS.intersection(fact.parameters.split()[:1]):
        return None
    values = [model.value(arg.value) for arg in call.args]
    if isinstance(values[0], Elements) and any(isinstance(item, (Tensor, Output)) for item in values[0].items):
        return Discarded(given, f"{last}()", False)
    if root is None or not isinstance(values[0], (Tensor, Batch, Output, type(None))):
        return None
    alone = not any(isinstance(value, (Tensor, Batch, Output)) for value in values[1:])
    is_meant = alone and fact.returns == "tensor" and last not in _NAMED | {"where"}
    return Discarded(given, f"{last}()", is_meant)


def _is_to_train(model: "Model", call: cst.Call) -> bool:
    """Whether gradients that nobody takes are computed for a step in the same function, and not for a hook."""
    function = model.enclosing_function(call)
    steps = model.calls_by_word.get("step", ())
    hooked = any("hook" in word for word in model.calls_by_word)
    return not hooked and any(model.enclosing_function(step) is function for step in steps)


def _by_layer(model: "Model", call: cst.Call) -> Discarded | None:
    """A layer without state (an activation, dropout, pooling), called on a tensor."""
    if len(call.args) != 1 or call.args[0].star or placement.root_of_chain(model, call.args[0].value) is None:
        return None
    layer = model.value(call.func) if may_name_layer(model, call.func) else None
    if not isinstance(layer, Module) or layer.name is None or not new_results.is_without_state(layer):
        return None
    return Discarded(call.args[0].value, layer.name.rpartition(".")[2], True)


MOVES = frozenset({"to", "cuda", "cpu", "detach"})
"""Methods that arrays and numbers do not have."""
_OF_DATA = frozenset({"numpy", "cpu", "cuda", "item"})
"""What is asked of the ``data`` of a tensor: that of an array is a buffer, which has none of them."""
_BINDING = (BindingKind.ASSIGN, BindingKind.PARAMETER, BindingKind.LOOP)
_COUNTED = frozenset({"sum", "float", "mean", "all", "any", "long", "int", "nonzero"})
"""What is asked of the tensor that a comparison of tensors gives."""
_OF_TENSORS = frozenset({"gt", "lt", "ge", "le", "eq", "ne", "argmax"})
"""Methods that what has a ``to()`` of its own, a module, a graph or a batch of tokens, has not."""
_OF_NUMBERS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)


def is_moved_tensor(model: "Model", receiver: cst.BaseExpression, method: str) -> bool:
    """Whether a name that is moved there is a tensor, to go by what the function computes with the very same thing.

    A module has ``to()`` as well, and so has a batch of tokens or a graph, and it changes in place. But nobody adds
    them up, compares them and counts where they agree, cuts them along several dimensions or has them masked; and an
    array, with which all of this is done, has no ``to()``. (Paddle's tensors changed in place by that once, so they are
    left alone.)
    """
    if method not in MOVES or not isinstance(receiver, cst.Name) or model.framework != "torch":
        return False
    bindings = model.reaching(receiver)
    if len(bindings) != 1 or bindings[0].kind not in _BINDING:
        return False
    return _is_cut_out(model, bindings[0]) or any(
        _is_computed_with(model, use) for use in uses(model, bindings[0]) if _stands_for(model, use, bindings[0])
    )


def _is_cut_out(model: "Model", binding: Binding) -> bool:
    """Whether a thing is what a method gives that tensors have, and arrays: ``target = target.squeeze(1)``."""
    made = assigned(binding)
    name = made.func.attr.value if isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) else ""
    fact = lookup.tensor_method("torch", name)
    is_shared = name in lookup.shared_methods() or name in model.function_names
    return fact is not None and fact.returns == "tensor" and name in new_results.RESHAPING and not is_shared


def _stands_for(model: "Model", use: cst.BaseExpression, binding: Binding) -> bool:
    """Whether a place reads what was bound, or that on another device: behind ``if fast: x = x.cuda()``."""
    others = [item for item in model.reaching(use) if item is not binding]
    return all(_is_moved_itself(other) for other in others)


def _is_moved_itself(binding: Binding) -> bool:
    value = assigned(binding)
    operand = called_on(value) if value is not None and last_word(getattr(value, "func", value)) in MOVES else None
    return operand is not None and dotted_path(operand) == binding.key


def _is_computed_with(model: "Model", use: cst.BaseExpression) -> bool:
    parent = model.tree.parent(use)
    match parent:
        case cst.Subscript(value=value, slice=parts):
            return value is use and len(parts) > 1
        case cst.Attribute(attr=cst.Name(value="data")):
            asked = model.tree.parent(parent)
            return isinstance(asked, cst.Attribute) and asked.attr.value in _OF_DATA
        case cst.Attribute(attr=cst.Name(value="shape")):
            return isinstance(model.tree.parent(parent), (cst.Subscript, cst.Assign))
        case cst.Attribute(attr=cst.Name(value=name)) if name in MOVES and _is_made_an_array(model, parent):
            return True
        case cst.Attribute(attr=cst.Name(value=name)) if name in _OF_TENSORS or name in lookup.tensor_only_methods():
            call = model.tree.call_of(parent)
            is_wanted = call is not None and not isinstance(model.tree.parent(call), cst.Expr)
            return is_wanted and name not in model.function_names
        case cst.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, _OF_NUMBERS):
            other = right if left is use else left
            is_cut = isinstance(other, cst.Subscript) and len(other.slice) > 1
            return is_cut or isinstance(model.value(other), (Tensor, Output, Number))
        case cst.Comparison():
            return _is_counted(model, parent)
        case cst.ComparisonTarget():
            comparison = model.tree.parent(parent)
            return isinstance(comparison, cst.Comparison) and _is_counted(model, comparison)
    return False


def _is_made_an_array(model: "Model", moved: cst.Attribute) -> bool:
    """Whether what a move gives is read as an array: ``x.cpu().numpy()``, ``x.detach().cpu().data.numpy()``."""
    node: cst.CSTNode | None = moved
    while isinstance(node, cst.Attribute) and node.attr.value in MOVES | {"data"}:
        node = model.tree.parent(model.tree.call_of(node) or node)
    return isinstance(node, cst.Attribute) and node.attr.value in ("numpy", "item")


def _is_counted(model: "Model", comparison: cst.Comparison) -> bool:
    """Whether what a comparison gives is counted: ``(predicted == labels).sum()``."""
    attribute = model.tree.parent(comparison)
    if not isinstance(attribute, cst.Attribute) or len(comparison.comparisons) > 1:
        return False
    return attribute.attr.value in _COUNTED and model.tree.call_of(attribute) is not None
