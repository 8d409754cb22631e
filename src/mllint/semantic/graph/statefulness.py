"""Whether an object may hold on to a graph from one call of it to the next."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.graph.losses import WALKING
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.names.receivers import method_of_receiver, owner_of_attribute
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import (
    ClassObject,
    Function,
    Instance,
    Method,
    Module,
    Object,
    Repeated,
    Symbol,
    Tensor,
    Value,
)
from mllint.syntax.shape import dotted_path, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_GROWING = ("append", "extend", "insert", "update", "appendleft", "copy_", "add_", "mul_", "set_")
MAX_CALLS = 3
"""Through how many methods that call each other what is read is followed."""
MAX_CLASSES = 24
"""How many classes of the parts of a module are looked into."""


def keeps_no_graph(module: Module) -> bool:
    """Whether a module surely starts every forward pass afresh: it keeps no hidden state with its graph.

    True of modules of the libraries, and of those of the project whose methods put nothing that may hang on a graph
    into attributes.
    """
    if module.definition is not None:
        return is_stateless(module.definition)  # whatever it is wrapped in
    if "?" in module.wrappers:
        return False
    # Of a module that is only declared to be one, nothing is known.
    return module.call is not None


def is_stateless(definition: ClassInfo) -> bool:
    """Whether no method of a class, or of the classes of its parts, keeps something that may hang on a graph."""
    return keeps_graph(definition) is False


def keeps_graph(definition: ClassInfo) -> bool | None:
    """Whether a method of a class, or of its parts, may keep what hangs on a graph; ``None``: none that is in sight."""
    seen: list[ClassInfo] = []
    pending = [definition]
    is_whole = True
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.append(current)
        if len(seen) > MAX_CLASSES:
            return None
        is_whole = is_whole and not current.has_unknown_base
        for info in current.lineage:
            if _keeps(info):
                return True
            pending += parts_made(info)
    return False if is_whole else None


def called(model: "Model", call: cst.Call) -> cst.BaseExpression:
    """What a call runs: of ``net(x)`` and ``net.forward(x)`` it is ``net``."""
    function = call.func
    is_forward = isinstance(function, cst.Attribute) and function.attr.value == "forward"
    return function.value if is_forward and isinstance(model.value(function.value), Module) else function  # type: ignore[attr-defined]


def may_be_plain_module(model: "Model", callee: cst.BaseExpression) -> bool:
    """Whether what is called is a module, or an object called like one, of which nothing says that it keeps a graph."""
    value = model.value(callee)
    if isinstance(value, Module):
        return value.definition is None or keeps_graph(value.definition) is not True
    if value is not None or (dotted_path(callee) or "").rpartition(".")[2] in model.function_names:
        return False
    if isinstance(callee, cst.Subscript):
        return string_literal(subscript_index(callee)) is not None  # one of several networks
    if isinstance(callee, cst.Name):
        kinds = {binding.kind for binding in model.reaching(callee)}
        return bool(kinds) and kinds <= {BindingKind.PARAMETER, BindingKind.ASSIGN}
    owner = owner_of_attribute(model, callee)
    return isinstance(callee, cst.Attribute) and owner is not None and any(owner.assignments(callee.attr.value))


def is_out_of_sight(callee: Value | None) -> bool:
    """Whether what is called is no function or class of the project: nothing says that it keeps a graph."""
    return callee is None or (
        isinstance(callee, (Module, Method, Symbol)) and getattr(callee, "definition", None) is None
    )


def computes_afresh(function: FunctionInfo, calls: int = MAX_CALLS) -> bool:
    """Whether what a function gives hangs on nothing but what it is given, and on weights.

    True of functions, and of methods of whatever class: a method of a trainer may read what the constructor has set up,
    and of what other methods leave behind nothing but modules, data and numbers.
    """
    if function.scope.outer_names or _reads_graph(function):
        return False
    owner, own = function.owner, function.self_name
    if owner is None or own is None:
        return owner is None or is_stateless(owner)
    if is_stateless(owner):
        return True
    if calls == 0:
        return False
    read = {
        part.attr.value
        for part in subtree(function.node.body)
        if isinstance(part, cst.Attribute) and dotted_path(part) == f"{own}.{part.attr.value}"
    }
    return all(_is_set_up(owner, name, calls) for name in sorted(read))


def _reads_graph(function: FunctionInfo) -> bool:
    """Whether a function reads what the file has computed from tensors that need gradients: every call hangs on that.

    A leaf, ``torch.randn(3, requires_grad=True)``, has no graph; divided by something it has.
    """
    model = function.model
    outside = model.scope(model.tree.module).bindings.keys() - function.scope.bindings.keys()
    for part in subtree(function.node.body):
        if type(part) is cst.Name and part.value in outside:
            value = model.value(part)
            if isinstance(value, Tensor) and value.attached is True and not (value.leaf or value.parameter):
                return True
    return False


def _is_set_up(owner: ClassInfo, name: str, calls: int) -> bool:
    """Whether an attribute is a method that computes afresh, or what the constructor alone binds, without a graph."""
    method = owner.method(name)
    if method is not None:
        return computes_afresh(method, calls - 1)
    assigned = list(owner.members.assignments(name))
    values = [(item, None if item.value is None else item.model.value(item.value)) for item in assigned]
    return bool(assigned) and all(
        carries_nothing(value)
        or (
            item.method is not None
            and not owner.has_unknown_base
            and _runs_in_constructor(item.method)
            and item.value is not None
            and not _is_graph(value)
        )
        for item, value in values
    )


def _is_graph(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.attached is not False and not value.parameter


def _keeps(info: ClassInfo) -> bool:
    """Whether the methods of this very class may put something with a graph into an attribute."""
    return any(_attribute_is_kept(method) for method in info.methods.values()) or _grows(info)


def _attribute_is_kept(method: FunctionInfo) -> bool:
    own = method.self_name
    if own is None:
        return False
    is_set_up = _runs_in_constructor(method)
    for key, bindings in method.scope.bindings.items():
        if not key.startswith(f"{own}."):
            continue
        for binding in bindings:
            if binding.kind is BindingKind.NARROWED:
                continue
            value = method.model.binding_value(binding)
            if is_set_up:
                if _is_graph(value):
                    return True
            elif not carries_nothing(value) and not _is_made_anew(method, key):
                return True
    return False


def _is_made_anew(method: FunctionInfo, key: str) -> bool:
    """Whether nobody reads an attribute but the method that binds it, and that only once it has done so.

    ``self.attention = softmax(scores)`` and ``return self.attention @ value``: what one call leaves behind, no other
    one finds.
    """
    owner, name = method.owner, key.partition(".")[2]
    if owner is None or "." in name or owner.members.reads_computed_names:
        return False
    if any(binding.kind is BindingKind.AUGMENTED for binding in method.scope.bindings[key]):
        return False
    for read in owner.members.reads(name):
        if read.method is not method or read.method.model.scope_of(read.node) is not method.scope:
            return False
        if method.scope.reaching(key, read.node).may_be_unbound:
            return False
    is_read_beside = any(model.receivers.attributes_of_others(name) for model in owner.members.models)
    return not is_read_beside and not owner.members.may_be_read_elsewhere(name)


def _runs_in_constructor(method: FunctionInfo, calls: int = MAX_CALLS) -> bool:
    """Whether a method is the constructor, or nothing but the constructor calls it: ``self.build_layers()``."""
    if method.name == "__init__":
        return True
    callers = list(_callers(method)) if calls > 0 else []
    return bool(callers) and all(caller is not None and _runs_in_constructor(caller, calls - 1) for caller in callers)


def _callers(method: FunctionInfo) -> Iterator[FunctionInfo | None]:
    """The methods of its class that call a method on themselves; ``None`` for anything else that is done with it."""
    model = method.model
    for name in model.names_by_word.get(method.name, ()):
        attribute = model.tree.parent(name)
        caller = method_of_receiver(model, attribute.value) if isinstance(attribute, cst.Attribute) else None
        owner = None if caller is None else caller.owner
        if isinstance(attribute, cst.FunctionDef) or (owner is not None and not _are_related(owner, method.owner)):
            continue  # a definition, or a method of another class that has the same name
        yield None if attribute is None or model.tree.call_of(attribute) is None else caller


def _are_related(one: ClassInfo, other: ClassInfo | None) -> bool:
    return other is None or one in other.lineage or other in one.lineage


def carries_nothing(value: Value | None) -> bool:
    """Whether something surely hangs on no graph that a pass has recorded: a module, a weight, data, a number."""
    if isinstance(value, (Module, Object, Instance, Function, ClassObject, Symbol)):
        return True
    if isinstance(value, Tensor) and value.parameter:
        return True
    return hangs_on_nothing(value) or (isinstance(value, Repeated) and carries_nothing(value.item))


def _grows(info: ClassInfo) -> bool:
    """Whether a method other than the constructor changes in place what an attribute holds."""
    model = info.model
    for word in _GROWING:
        for call in model.calls_by_word.get(word, ()):
            method = _method_around(model, call, info)
            path = dotted_path(call.func) or ""
            if method is None or not path.startswith(f"{method.self_name}.") or _runs_in_constructor(method):
                continue
            if model.gradients.off(call) is not True and not all(
                hangs_on_nothing(model.value(arg.value)) for arg in call.args
            ):
                return True
    for target in model.tree.by_type.get(cst.AssignTarget, ()):
        if isinstance(target.target, cst.Subscript):
            method = _method_around(model, target, info)
            path = dotted_path(target.target.value) or ""
            if method is not None and path.startswith(f"{method.self_name}.") and not _runs_in_constructor(method):
                return True
    return False


def _method_around(model: "Model", node: cst.CSTNode, info: ClassInfo) -> FunctionInfo | None:
    method = function_around(model, node)
    return method if method is not None and method.owner is info else None


def parts_made(info: ClassInfo) -> list[ClassInfo]:
    """The classes of the project that the constructor makes instances of."""
    constructor = info.methods.get("__init__")
    if constructor is None:
        return []
    found = []
    for call in info.model.tree.by_type.get(cst.Call, ()):
        if info.model.enclosing_function(call) is constructor.node:
            callee = info.model.value(call.func)
            if isinstance(callee, ClassObject):
                found.append(callee.definition)
    return found


def gives_no_graph(info: FunctionInfo) -> bool:
    """Whether a function computes all that it gives back without gradients: how good an output is, say."""
    given = [item.value for item in info.scope.returns if item.value is not None]
    return bool(given) and all(
        info.model.gradients.off(item) is True or hangs_on_nothing(info.model.value(item)) for item in given
    )


def walks_backwards(info: FunctionInfo) -> bool:
    """Whether a function runs a backward pass, or may keep what it is given beyond the call."""
    return bool(info.scope.outer_names) or runs_backward(info)


def runs_backward(info: FunctionInfo) -> bool:
    """Whether a backward pass stands in a function."""
    return any(
        info.model.tree.is_below(call, info.node) for word in WALKING for call in info.model.calls_by_word.get(word, ())
    )
