"""What becomes of the output of a forward pass: whether anybody could want its graph."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.participants import places_of
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.modules.other_objects import is_touched_from_outside
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by, is_statement, uses, uses_of_bound
from mllint.semantic.values import Function, Module, Tensor
from mllint.syntax.shape import called_on, dotted_path, integer_literal, is_target, last_word, subscript_index
from mllint.syntax.walk import children, names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.training.runs import Run

_CUTTING = frozenset({"detach", "item", "tolist"})
_WITHOUT_GRAPH = frozenset({"data", "argmax", "argmin", "argsort", "shape", "size", "ndim", "dtype", "device"})
_FORM = frozenset({"shape", "size", "dim", "ndim", "dtype", "device"})
"""What is asked of a tensor that has nothing to do with its numbers."""
_PLACES = frozenset({"argmax", "argmin", "argsort"})
_MAX_STEPS = 3
_KEEPING = frozenset({
    "abs", "clamp", "clone", "contiguous", "cpu", "double", "exp", "flatten", "float", "half", "log", "mean", "permute",
    "relu", "reshape", "sigmoid", "softmax", "sqrt", "squeeze", "sum", "tanh", "transpose", "unsqueeze", "view",
})  # fmt: skip
"""Methods that give a tensor on the same graph."""
_ASKING = frozenset({"builtins.isinstance", "torch.is_tensor", "paddle.is_tensor", "builtins.len", "builtins.type"})
_WITH_PLACES = frozenset({"max", "min", "sort", "topk"})
"""Methods that give values on the same graph first, and second where they stood."""


def is_dropped(forward: Event) -> bool:
    """Whether nobody reads the numbers that a forward pass gives: it is run for its hooks, for the statistics that it
    collects, or to see the shape of what comes out.

    So it is as a statement, or as a name that is never read but for that.
    """
    model = forward.frame.model
    statement = model.tree.parent(forward.node)
    if not isinstance(statement, cst.Assign):
        return is_statement(model, forward.node) or _is_asked_for_form(model, forward.node)
    bound = bound_by(model, statement)
    is_named = all(isinstance(target.target, cst.Name) for target in statement.targets)
    return (
        is_named and bool(bound) and all(_is_asked_for_form(model, use) for item in bound for use in uses(model, item))
    )


def _is_asked_for_form(model: "Model", node: cst.CSTNode) -> bool:
    parent = model.tree.parent(node)
    return isinstance(parent, cst.Attribute) and parent.value is node and parent.attr.value in _FORM


def are_detached(forwards: tuple[Event, ...]) -> bool:
    """Whether the code takes what some forward passes give off its graph, wherever it reads it.

    What one of them gives to another is as good as that one's output.
    """
    found = [_is_output_cut(forward, forwards) for forward in forwards]
    return True in found and False not in found


def _is_output_cut(forward: Event, forwards: tuple[Event, ...]) -> bool | None:
    if not isinstance(forward.node, cst.Call):
        return False
    calls = {id(item.node) for item in forwards if item.frame is forward.frame}
    return _is_cut(forward.frame.model, forward.node, calls, _MAX_STEPS)


def _is_cut(
    model: "Model", node: cst.CSTNode, calls: set[int], steps: int, cutting: frozenset[str] = _CUTTING
) -> bool | None:
    """Whether a value is detached where it is read; ``None``: nothing is read of it that has a graph."""
    end, word = _end_of(model, node)
    if word is not None:
        return True if word in cutting else None
    holder = model.tree.parent(end)
    call = model.tree.parent(holder) if isinstance(holder, cst.Arg) else None
    if isinstance(holder, cst.Arg) and isinstance(call, cst.Call):
        return None if id(call) in calls else _is_argument_cut(model, call, holder, steps, cutting)
    if steps == 0 or not isinstance(holder, cst.Assign) or holder.value is not end:
        return False
    found = [_is_binding_cut(model, item, calls, steps, cutting) for item in bound_by(model, holder)]
    if not found or False in found:
        return False
    return True if True in found else None


def _is_argument_cut(model: "Model", call: cst.Call, arg: cst.Arg, steps: int, cutting: frozenset[str]) -> bool | None:
    """Whether a function of the project takes what it is given off its graph wherever it reads it: ``to_array(out)``.

    Or what it gives is taken off its graph, where it does nothing but compute that.
    """
    if model.qualified_name(call.func) in _ASKING:
        return None
    callee = model.value(call.func) if steps else None
    info = callee.definition if isinstance(callee, Function) else None
    if info is None or info.owner is not None or not info.is_plain or not info.is_transparent:
        return False
    parameter = given_to(info, call, arg, 0)
    own = [] if parameter is None else info.scope.bindings.get(parameter.name.value, [])
    first = next((item for item in own if item.kind is BindingKind.PARAMETER), None)
    read = [] if first is None else list(uses(info.model, first))
    found = {_is_cut(info.model, node, set(), steps - 1, cutting) for node in read}
    if read and False not in found:
        return True if True in found else None
    return _only_computes(info) and _is_cut(model, call, set(), steps - 1, cutting)


def _is_binding_cut(
    model: "Model", binding: Binding, calls: set[int], steps: int, cutting: frozenset[str]
) -> bool | None:
    if binding.kind is not BindingKind.ASSIGN:
        return False
    read = (
        _reads_of_attribute(model, binding) if "." in binding.key else [(model, node) for node in uses(model, binding)]
    )
    found = [False] if read is None else [_is_cut(home, node, calls, steps - 1, cutting) for home, node in read]
    if False in found:
        return False
    return True if True in found else None


def _reads_of_attribute(model: "Model", binding: Binding) -> "list[tuple[Model, cst.CSTNode]] | None":
    """Where an attribute of the instance is read that a binding gives it, but for methods that give it another thing
    first; ``None``: also where nobody can see.
    """
    statement = binding.node
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    owner = None if target is None else owner_of_attribute(model, target)
    name = binding.key.partition(".")[2]
    if owner is None or "." in name or owner.members.reads_computed_names or owner.members.may_be_read_elsewhere(name):
        return None
    if is_touched_from_outside(owner, name):
        return None
    read = [(item.method.model, item.node) for item in owner.members.reads(name)]
    return [(home, node) for home, node in read if not home.reaching(node) or binding in home.reaching(node)]


def is_detached(model: "Model", call: cst.Call, *, also_places: bool = False) -> bool:
    """Whether the code takes what a call gives off its graph, wherever it reads it: also as ``.data``.

    ``also_places``: or reads nothing of it but where it is largest, which has no graph.
    """
    ends = _CUTTING | {"data"} | (_PLACES if also_places else frozenset())
    return _is_cut(model, call, {id(call)}, _MAX_STEPS, ends) is True


def are_read_as_arrays(forwards: tuple[Event, ...]) -> bool:
    """Whether what a forward pass gives is read by PyTorch's ``numpy()`` as it is, which raises for what has a graph.

    Then there is none: the parameters ask for no gradients, or it is off where nobody can see.
    """
    return any(
        frame.model.framework == "torch" and _is_read_as_array(frame.model, node, _MAX_STEPS)
        for forward in forwards
        for frame, node in _given_back(forward)
    )


def _given_back(forward: Event) -> Iterator[tuple[Frame, cst.CSTNode]]:
    """Where a forward pass gives its output, in its own run, and in those to which functions give it back as it is."""
    frame: Frame | None = forward.frame
    node: cst.CSTNode | None = forward.node
    while frame is not None and node is not None:
        yield frame, node
        returned = () if frame.function is None else frame.function.scope.returns
        is_whole = _is_cut(frame.model, node, set(), _MAX_STEPS) is False
        if not is_whole or not any(item.value and comes_from(frame, item.value, node) for item in returned):
            return
        node, frame = frame.call, frame.caller


def _is_read_as_array(model: "Model", node: cst.CSTNode, steps: int) -> bool:
    while True:
        parent = model.tree.parent(node)
        if isinstance(parent, cst.Attribute) and parent.value is node:
            call: cst.CSTNode | None = model.tree.call_of(parent)
            word = parent.attr.value
            if call is None:
                return False
            if word == "numpy":
                return True
            if word in _WITH_PLACES:
                first = model.tree.parent(call)
                if not isinstance(first, cst.Subscript) or integer_literal(subscript_index(first)) != 0:
                    return False
                call = first
            elif word not in _KEEPING:
                return False
            node = call
        elif isinstance(parent, cst.Assign) and parent.value is node and steps:
            read = (use for item in bound_by(model, parent) if "." not in item.key for use in uses(model, item))
            return any(_is_read_as_array(model, use, steps - 1) for use in read)
        else:
            return False


def _end_of(model: "Model", node: cst.CSTNode) -> tuple[cst.CSTNode, str | None]:
    """What a value comes to by methods, indices, arithmetic and functions of tensors, and the word in all that which
    leaves the graph behind.
    """
    while True:
        parent = model.tree.parent(node)
        if isinstance(parent, cst.Attribute) and parent.value is node:
            word = parent.attr.value
            if word in _CUTTING or word in _WITHOUT_GRAPH:
                return parent, "detach" if word == "data" and _leaves_framework(model, parent) else word
            if word == "numpy" and model.framework == "paddle":
                return parent, "detach"  # which PyTorch would refuse
            node = parent
        elif parent is not None and _is_applied(parent, node):
            node = parent
        else:
            call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
            if not isinstance(call, cst.Call) or not _gives_tensor(model, call):
                return node, None
            node = call


def _leaves_framework(model: "Model", node: cst.CSTNode) -> bool:
    """Whether methods make something an array or a list: ``output.data`` of ``output.data.cpu().numpy()``."""
    for parent in model.tree.ancestors(node):
        if isinstance(parent, cst.Attribute) and parent.value is node:
            if parent.attr.value in ("numpy", "tolist"):
                return True
        elif not isinstance(parent, cst.Call) or parent.func is not node:
            return False
        node = parent
    return False


def _is_applied(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether a node is a term, or what is called, or what an index is taken of."""
    is_called = isinstance(parent, cst.Call) and parent.func is node
    is_indexed = isinstance(parent, cst.Subscript) and parent.value is node
    return is_called or is_indexed or isinstance(parent, cst.BinaryOperation)


def _gives_tensor(model: "Model", call: cst.Call) -> bool:
    """Whether a function of the framework is called that makes a tensor of tensors, or a layer without weights."""
    called = model.value(call.func)
    if isinstance(called, Module):
        return called.name is not None and has_weights(model, call.func) is False
    is_of_framework = (model.qualified_name(call.func) or "").startswith(("torch.", "paddle."))
    return is_of_framework and isinstance(model.value(call), Tensor)


def _only_computes(function: FunctionInfo) -> bool:
    """Whether a function does nothing but bind names of its own and give something back: it keeps nothing."""
    if function.owner is not None or not function.is_plain or not function.is_transparent or function.scope.outer_names:
        return False
    for node in subtree(function.node.body):
        match node:
            case cst.Expr() if not isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)):
                return False
            case (
                cst.AssignTarget(target=cst.Attribute() | cst.Subscript())
                | cst.AugAssign(target=cst.Attribute() | cst.Subscript())
            ):
                return False
            case cst.FunctionDef() | cst.Lambda() | cst.NamedExpr() | cst.Raise():
                return False
    return True


def comes_from(frame: Frame, expression: cst.CSTNode, source: cst.CSTNode) -> bool:
    """Whether something in an expression is a piece of code, or was bound in it, or by it."""
    return any(item is source for item in _sources(frame, expression))


def _sources(frame: Frame, expression: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What stands in an expression, what its names were bound to, and around where that was done."""
    seen: set[Binding] = set()
    pending = [expression]
    while pending:
        for name in subtree(pending.pop()):
            yield name
            bindings = frame.model.reaching(name) if isinstance(name, cst.Name) else ()
            for binding in set(bindings) - seen:
                seen.add(binding)
                yield binding.node
                yield from frame.model.tree.ancestors(binding.node)
                if binding.value is not None:
                    pending.append(binding.value)


def may_be_made_of(frame: Frame, expression: cst.CSTNode, call: cst.Call) -> bool:
    """Whether an expression may hold what a call of its run gives, also by way of what that is put into."""
    model = frame.model
    statement = model.tree.parent(call)
    if not isinstance(statement, cst.Assign):
        return True
    bound = [item.target for item in statement.targets]
    names = set().union(*map(names_in, bound))
    if any(isinstance(item, (cst.Attribute, cst.Subscript)) for target in bound for item in subtree(target)):
        return True  # whoever reads it there
    holders = {dotted_path(holder) for use in uses_of_bound(model, statement) for holder in _put_into(model, use)}
    if any(holder is None or "." in holder for holder in holders):
        return True
    behind = list(_sources(frame, expression))
    return any(
        item is call or (isinstance(item, cst.Name) and (item.value in names or item.value in holders))
        for item in behind
    )


def _put_into(model: "Model", use: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a statement may put a thing into that is read in it: ``losses.append(loss)``, ``total += loss``."""
    for parent in model.tree.ancestors(use):
        match parent:
            case cst.Call(func=cst.Attribute(value=holder)):
                yield holder
            case cst.AugAssign(target=target):
                yield target
            case cst.Assign(targets=targets):
                for item in targets:
                    yield item.target.value if isinstance(item.target, cst.Subscript) else item.target
            case cst.BaseCompoundStatement():
                return


def may_reach(frame: Frame, expression: cst.BaseExpression, forward: Event) -> bool:
    """Whether an expression in some run may hold what a forward pass gives, handed on by those that called it.

    A number that is taken of it holds nothing: ``log(loss.item())``.
    """
    places = {id(home): node for home, node in places_of(forward.frame, forward.node)}
    seen: set[tuple[int, Binding]] = set()
    pending: list[tuple[Frame, cst.CSTNode]] = [(frame, expression)]
    while pending:
        inner, part = pending.pop()
        source = places.get(id(inner))
        if source is not None:
            if any(item is source for item in subtree(part)) or comes_from(inner, part, source):
                return True
            continue
        for name in _uncut_names(part):
            for binding in () if _is_settled(inner.model, name) else inner.model.reaching(name):
                if (id(inner), binding) in seen:
                    continue
                seen.add((id(inner), binding))
                given = inner.given(binding)
                if given is None and binding.kind is BindingKind.PARAMETER:
                    return True  # by whomever
                if given is not None or binding.value is not None:
                    pending.append(given or (inner, binding.value))  # type: ignore[arg-type]
    return False


def _is_settled(model: "Model", name: cst.Name) -> bool:
    """Whether a name is the ``self`` of an attribute that a constructor alone sets, ``self.options``, and into which
    nobody may put anything later: ``self.seen.append(output)``.
    """
    attribute = model.tree.parent(name)
    owner = owner_of_attribute(model, attribute) if isinstance(attribute, cst.Attribute) else None
    if owner is None or not isinstance(attribute, cst.Attribute):
        return False
    members, key = owner.members, attribute.attr.value
    places = list(members.assignments(key))
    is_set_once = bool(places) and all(place.method in members.setting_up for place in places)
    return is_set_once and not any(_may_take(read.method.model, read.node) for read in members.reads(key))


def _may_take(model: "Model", holder: cst.BaseExpression) -> bool:
    """Whether something may be put into what is read: a method is given something, or an entry is set."""
    parent = model.tree.parent(holder)
    if isinstance(parent, cst.Subscript) and parent.value is holder:
        above = model.tree.parent(parent)
        return is_target(above, parent) or (isinstance(above, cst.AugAssign) and above.target is parent)
    call = model.tree.call_of(parent) if isinstance(parent, cst.Attribute) else None
    return call is not None and bool(call.args) and last_word(call.func) != "get"


def _uncut_names(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names in an expression but for those of which only a number, an array, or a copy without a graph is taken."""
    pending = [node]
    while pending:
        item = pending.pop()
        word = item.func.attr.value if isinstance(item, cst.Call) and isinstance(item.func, cst.Attribute) else None
        if word in _CUTTING or word == "numpy":
            continue
        if isinstance(item, cst.Name):
            yield item
        pending += [item.value] if isinstance(item, cst.Attribute) else children(item)


def is_used_for_backward(run: "Run", frame: Frame, node: cst.CSTNode) -> bool:
    """Whether gradients may be computed of what a loop or call made, in its function or in those that called it, or of
    what it puts into a list.
    """
    for home, place in places_of(frame, node):
        backward = [event.node for event in run.events if event.kind is Kind.BACKWARD and event.frame is home]
        lists = {grown for call in home.model.tree.calls_in(place) if (grown := _grown_by(call)) is not None}
        for item in (item for part in backward for item in _sources(home, part)):
            if item is place or (isinstance(item, cst.Name) and item.value in lists):
                return True
    return False


def _grown_by(call: cst.Call) -> str | None:
    """``rows`` of ``rows.append(row)``."""
    holder = called_on(call)
    return dotted_path(holder) if holder is not None and last_word(call.func) in ("append", "extend") else None


def is_in_forward_pass(frame: Frame, outer: Frame) -> bool:
    """Whether a body runs within the forward pass of a module that is called in ``outer``.

    What is not known there computes, and trains nothing.
    """
    inside = itertools.takewhile(lambda run: run is not outer, frame.led_by())
    functions = (run.function for run in inside)
    return any(
        info is not None and info.owner is not None and info.owner.framework and info.owner.called is info
        for info in functions
    )
