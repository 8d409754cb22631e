"""Assignments that are meant to change a parameter, and bind its name to another tensor instead."""

import enum
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.graph.leaves import FLAGS, is_parameter_of_module
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import mentions, reads, uses, uses_of_bound
from mllint.semantic.values import Framework, Module, StateDict, Tensor
from mllint.syntax.iteration import sources
from mllint.syntax.shape import called_on, constant, dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What makes a leaf of a tensor again, or keeps the gradient of one that is none.
_REVIVING = frozenset({*FLAGS, "requires_grad_", "retain_grad", "retain_grads", "register_hook", "is_leaf"})
_NEW_LEAVES = frozenset({*_REVIVING, "Parameter", "Variable"})
# What makes a tensor anew, or puts it into the memory of another.
_NEW = frozenset({*_NEW_LEAVES, "detach", "tensor", "as_tensor", "to_tensor", "out"})
_OF_STATE: dict[str, tuple[int, ...]] = {"values": (), "items": (1,)}
"""Where the tensors of a state dict are in what its methods give."""
_PATHS = frozenset({cst.Name, cst.Attribute})
_COMPUTED = frozenset({cst.BinaryOperation, cst.Call})
# Methods and functions of both frameworks that are written as operators otherwise.
_OPERATORS = frozenset({"add", "sub", "subtract", "mul", "multiply", "div", "divide"})
# What gives no tensor and computes with none.
_LITERALS = frozenset({
    cst.SimpleString, cst.Integer, cst.Float, cst.Dict, cst.DictComp, cst.FormattedString, cst.Lambda, cst.Set,
})  # fmt: skip


class Form(enum.Enum):
    """What becomes of the parameter."""

    LOST = "lost"
    """The new tensor is read by nobody; the parameter stays as it was."""
    REPLACED = "replaced"
    """The code goes on with the new tensor, which is no leaf or needs no gradient."""
    REFUSED = "refused"
    """A module does not take a tensor in the place of a parameter: it raises."""


class Rebound(msgspec.Struct, frozen=True):
    """An assignment to the name of a parameter."""

    path: str
    form: Form
    framework: Framework


def may_rebind(statement: cst.Assign | cst.AugAssign) -> bool:
    """Whether one name or attribute is assigned: where it is not, ``rebound`` gives nothing."""
    if statement.__class__ is cst.AugAssign:
        return statement.target.__class__ in _PATHS
    targets = statement.targets  # type: ignore[union-attr]
    return len(targets) == 1 and targets[0].target.__class__ in _PATHS and statement.value.__class__ not in _LITERALS


def rebound(model: "Model", statement: cst.Assign | cst.AugAssign) -> Rebound | None:
    """What an assignment does to the parameter that its target names; ``None`` where that is nothing, or not known."""
    if isinstance(statement, cst.Assign):
        target = statement.targets[0].target if len(statement.targets) == 1 else None
    else:
        target = statement.target
    path = None if target is None else dotted_path(target)
    framework = model.framework
    if path is None or framework is None or target is None:
        return None
    if type(statement) is cst.AugAssign and framework != "paddle":
        return None  # torch works in place
    computes = _computes_with(model, statement, path)
    if not computes and path not in model.loop_variables:
        return None  # most assignments end here
    scope = model.scope_of(statement)
    if not computes and not any(binding.kind is BindingKind.LOOP for binding in scope.bindings.get(path, ())):
        return None  # neither a step nor the variable of a loop
    made = next((item for item in scope.bindings.get(path, ()) if item.node is statement), None)
    if made is None or any(_is_effect(part) for part in subtree(statement.value)):
        return None
    beginnings = _beginnings(model, target)
    is_parameter = bool(beginnings) and all(value.parameter for value in beginnings)
    if is_parameter_of_module(model, target) or (is_parameter and _is_of_module(model, target)):
        return Rebound(path, Form.REFUSED, framework) if computes else None
    before = scope.reaching(path, statement.value).bindings
    if _is_lost(model, statement, path, made, before):
        return Rebound(path, Form.LOST, framework)
    is_step = computes and _reads_gradient(statement.value, path)
    carries = _arrives(model, made, path, before) or (
        not before and bool(beginnings) and all(value.leaf for value in beginnings)
    )
    if is_step and carries and not _is_revived(model, path, made):
        return Rebound(path, Form.REPLACED, framework)
    return None


def _beginnings(model: "Model", target: cst.BaseExpression) -> list[Tensor]:
    """What an attribute of the receiver of a method was before anything computed with it; empty where not known."""
    owner = owner_of_attribute(model, target)
    if owner is None or not isinstance(target, cst.Attribute):
        return []
    values: list[Tensor] = []
    for binding in owner.assignments(target.attr.value):
        is_step = isinstance(binding.node, (cst.Assign, cst.AugAssign)) and _computes_with(
            binding.scope.model, binding.node, binding.key
        )
        value = None if is_step else binding.scope.model.binding_value(binding)
        if isinstance(value, Tensor):
            values.append(value)
        elif not is_step:
            return []
    return values


def _is_of_module(model: "Model", target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Attribute) and isinstance(model.value(target.value), Module)


def _is_effect(node: cst.CSTNode) -> bool:
    """Whether a call changes something in place: ``p.clamp_(0)``, ``init.zeros_(p)``, ``out=``; or binds a name."""
    if type(node) is not cst.Call:
        return type(node) in (cst.NamedExpr, cst.Await, cst.Yield)
    callee = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    name = callee.value if isinstance(callee, cst.Name) else ""
    return name.endswith("_") or any(arg.keyword is not None and arg.keyword.value == "out" for arg in node.args)


def _computes_with(model: "Model", statement: cst.Assign | cst.AugAssign, path: str) -> bool:
    """Whether the new value is arithmetic with the old one: ``w - step``, ``w.data - step``, ``w -= step``."""
    if type(statement) is cst.AugAssign:
        return True
    computed = _arithmetic(statement.value)
    if computed is None or (isinstance(computed, cst.Call) and not _is_of_framework(model, computed)):
        return False
    pending: list[cst.BaseExpression] = [computed]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.BinaryOperation):
            pending += [node.left, node.right]
        elif isinstance(node, cst.Call) and last_word(node.func) in _OPERATORS:
            pending += [called_on(node) or node.func, *(arg.value for arg in node.args)]
        elif dotted_path(node.func if isinstance(node, cst.Call) else node) in (path, f"{path}.data", f"{path}.detach"):
            return computed is statement.value or _is_handed_through(model, statement.value, computed)
    return False


def _is_of_framework(model: "Model", call: cst.Call) -> bool:
    """Whether a call is no function or method of the project, by its name."""
    name = model.qualified_name(call.func)
    if name is not None:
        return lookup.framework_of(name) == model.framework
    return isinstance(call.func, cst.Attribute) and call.func.attr.value not in model.function_names


def _arithmetic(node: cst.BaseExpression) -> cst.BinaryOperation | cst.Call | None:
    """The arithmetic at the bottom of a chain of calls: ``w - step`` of ``(w - step).clamp(0, 1)``, ``w.sub(step)``."""
    # Nearly every assignment comes by here: see `dotted_path` for what `isinstance` costs.
    while node.__class__ is cst.Call:
        word = node.func.attr if node.func.__class__ is cst.Attribute else node.func
        if word.__class__ is cst.Name and word.value in _OPERATORS and node.args:
            return node
        node = _handed_on(node)
    return node if node.__class__ is cst.BinaryOperation else None


def _handed_on(call: cst.Call) -> cst.BaseExpression:
    """What a call seems to compute with: what it is a method of, or its first argument."""
    callee = call.func
    receiver = callee.value if callee.__class__ is cst.Attribute else callee
    if receiver.__class__ in _COMPUTED or not call.args:
        return receiver
    return call.args[0].value


def _is_handed_through(model: "Model", node: cst.BaseExpression, computed: cst.BinaryOperation | cst.Call) -> bool:
    """Whether each call of a chain computes a tensor of the graph from the one below: it makes no leaf of it."""
    framework = model.framework
    while node is not computed and isinstance(node, cst.Call) and framework is not None:
        below = _handed_on(node)
        if isinstance(node.func, cst.Attribute) and node.func.value is below:
            name = node.func.attr.value
            fact = None if name in model.function_names else lookup.tensor_method(framework, name)
        else:
            name = model.qualified_name(node.func) or ""
            fact = lookup.function(name) if lookup.framework_of(name) == framework else None
        words = {name.rpartition(".")[2], *(arg.keyword.value for arg in node.args if arg.keyword is not None)}
        if fact is None or fact.returns != "tensor" or not words.isdisjoint(_NEW):
            return False
        node = below
    return node is computed


def _reads_gradient(value: cst.BaseExpression, path: str) -> bool:
    return any(isinstance(node, cst.Attribute) and dotted_path(node) == f"{path}.grad" for node in subtree(value))


def _is_lost(
    model: "Model",
    statement: cst.Assign | cst.AugAssign,
    path: str,
    made: Binding,
    before: tuple[Binding, ...],
) -> bool:
    """Whether the variable of a loop over parameters is bound anew, and nobody reads what it is bound to."""
    if "." in path or not before or any(binding.kind is not BindingKind.LOOP for binding in before):
        return False
    value = model.binding_value(before[0])
    is_parameter = isinstance(value, Tensor) and (value.parameter or _is_of_state(model, before[0]))
    has_gradient = (value is None or isinstance(value, Tensor)) and _reads_gradient(statement.value, path)
    if not is_parameter and not (has_gradient and _computes_with(model, statement, path)):
        return False
    return _gives_tensor(model, statement, path) and _is_read_by_nobody(model, made)


def _is_of_state(model: "Model", binding: Binding) -> bool:
    """Whether a loop goes through the tensors in the state dict of a module, which are those of the module."""
    for source in sources(binding.value) if binding.value is not None else ():
        state = called_on(source.node)
        if state is not None and isinstance(source.node, cst.Call):
            place = _OF_STATE.get(last_word(source.node.func) or "")
            if place is not None and binding.path == source.path + place:
                return isinstance(model.value(state), StateDict)
    return False


def _is_read_by_nobody(model: "Model", made: Binding) -> bool:
    """Whether what a binding binds is not read; ``p += noise`` below only changes what nobody reads."""
    for node in uses(model, made):
        statement = model.tree.parent(node)
        if not isinstance(statement, cst.AugAssign) or statement.target is not node:
            return False
        if any(use is not node for use in uses_of_bound(model, statement)):
            return False
    return True


def _gives_tensor(model: "Model", statement: cst.Assign | cst.AugAssign, path: str) -> bool:
    """Whether the new value is surely a tensor that was computed or taken from elsewhere, without any other effect."""
    value = statement.value
    if _computes_with(model, statement, path):
        return True
    if isinstance(value, cst.Call):
        name = model.qualified_name(value.func)
        if name == "copy.deepcopy":
            return True
        is_of_framework = name is not None and lookup.framework_of(name) == model.framework
        is_method = isinstance(value.func, cst.Attribute) and isinstance(model.value(value.func.value), Tensor)
        return isinstance(model.value(value), Tensor) and (is_of_framework or is_method)
    if (dotted_path(value) or "").partition(".")[0] == path:
        return False  # a shorter name for the thing or for a part of it
    known = model.value(value)
    if isinstance(value, cst.Subscript) and known is None:
        return True  # what was kept of it before, `backup[name]`: nothing else comes of such a statement
    return isinstance(known, Tensor) and isinstance(
        value, (cst.Name, cst.Attribute, cst.Subscript, cst.BinaryOperation)
    )


def _arrives(model: "Model", made: Binding, path: str, before: tuple[Binding, ...]) -> bool:
    """Whether the next round begins with the new tensor, or with what is computed from it: ``w = w.clamp(0, 1)``."""
    if made in before:
        return True
    for binding in before:
        if binding.kind is not BindingKind.ASSIGN or binding.value is None:
            continue
        names = [node for node in subtree(binding.value) if isinstance(node, cst.Name)]
        is_new_leaf = any(name.value in _NEW_LEAVES for name in names)
        if not is_new_leaf and any(name.value == path and made in model.reaching(name) for name in names):
            return True
    return False


def _is_revived(model: "Model", path: str, made: Binding) -> bool:
    """Whether the file makes a leaf of it again, gives it a gradient by hand, or asks for one that is not kept.

    What is done to a name where the new tensor does not get says nothing: ``w.stop_gradient = False`` in front of the
    loop made the leaf.
    """
    for node in mentions(model, path):
        holder = model.tree.parent(node)
        if not isinstance(holder, cst.Attribute) or (isinstance(node, cst.Name) and not _may_be(model, node, made)):
            continue
        if holder.attr.value in _REVIVING:
            return True
        given = model.tree.parent(holder)
        if holder.attr.value == "grad" and isinstance(given, cst.AssignTarget):
            statement = model.tree.parent(given)
            if isinstance(statement, cst.Assign) and constant(statement.value) is not None:
                return True
    return any(
        isinstance(parent := model.tree.parent(node), cst.Attribute)
        and parent.attr.value in _REVIVING
        and (isinstance(node, cst.Attribute) or _may_be(model, node, made))
        for node in reads(model, path)
    )


def _may_be(model: "Model", node: cst.BaseExpression, made: Binding) -> bool:
    """Whether a name may stand for the new tensor, or for what a later statement of the loop makes of it."""
    scope = model.scope_of(node)
    if scope is not made.scope:
        return made.key not in scope.bindings
    bindings = model.reaching(node)
    return not bindings or any(binding is made or _arrives(model, made, made.key, (binding,)) for binding in bindings)
