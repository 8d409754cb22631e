"""Hidden states that a module keeps itself, with their graph: ``output, self.hidden = self.rnn(x, self.hidden)``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.graph.dependence import Dependence
from mllint.semantic.graph.hidden_state import Carried, Loop, is_handed_on, walked_in_loop
from mllint.semantic.names.changes import is_changed_in_place
from mllint.semantic.names.conditions import always_runs
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Function, Module, Symbol
from mllint.syntax.shape import constant, dotted_path, items_of, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model


_MAX_DEPTH = 3
"""How deep in a module the part may lie that keeps a state."""


class _Kept(msgspec.Struct, frozen=True):
    """A state that goes with its graph from one forward pass into the next.

    ``call`` is that of the recurrent layer, ``path`` what keeps the state. ``touching`` are the other methods,
    which may begin it anew, or cut it. ``holder``: the path of the part that keeps it in the module that is called.
    """

    call: cst.Call
    model: "Model"
    path: str
    touching: frozenset[str]
    holder: str = ""


def kept_by_module(model: "Model", backward: cst.Call) -> Carried | None:
    """The hidden state that a module keeps, and that surely brings the graph of earlier rounds to a ``backward()``."""
    walked = walked_in_loop(model, backward)
    if walked is None or model.framework is None:
        return None
    loop, loss, is_graph_kept = walked
    for call in model.tree.calls_in(loop.body):
        value = model.value(call.func)
        if not isinstance(value, Module) or value.definition is None or value.wrappers:
            continue
        if model.gradients.off(call) is not False or not _outlives(model, call.func, loop):
            continue
        kept = _state_kept(value.definition) or _state_kept_by_part(value.definition, _MAX_DEPTH)
        if kept is None or _may_begin_anew(model, call.func, kept, loop):
            continue
        if _FromCall(model, call).of(loss):
            name = kept.path.partition(".")[2]
            is_here = kept.model is model
            path = kept.path if is_here else f"{dotted_path(call.func)}.{kept.holder}{name}"
            return Carried(kept.call if is_here else call, (path,), None, model.framework, is_graph_kept)
    return None


class _FromCall(Dependence):
    """Walks from a value back to what one call gives."""

    def __init__(self, model: "Model", call: cst.Call) -> None:
        super().__init__(model, lambda _: False)
        self.call = call

    def of(self, node: cst.CSTNode) -> bool:
        """Whether an expression surely carries the graph of what the call gives."""
        return node is self.call or super().of(node)


# -- in the class ------------------------------------------------------------------------------------------------------


def _state_kept(definition: ClassInfo) -> _Kept | None:
    """The attribute that the forward pass of a class gives a recurrent layer, and binds to the state that it gives."""
    forward = definition.called
    if forward is None or forward.self_name is None or not forward.is_plain or not forward.is_transparent:
        return None
    for key, bindings in forward.scope.bindings.items():
        if not key.startswith(f"{forward.self_name}.") or key.count(".") != 1:
            continue
        if f"{key}.stop_gradient" in forward.scope.bindings:
            continue  # which cuts it off, in Paddle
        bound = [item for item in bindings if item.kind is not BindingKind.NARROWED]
        kept = [item for item in bound if always_runs(forward.model, item.node, forward.node)]
        if len(kept) != 1 or not all(
            is_for_first(forward.model, item.node, key) for item in bound if item is not kept[0]
        ):
            continue
        call = _call_of_layer(forward, kept[0], key)
        if call is not None and _gives_what_hangs_on(forward, call):
            return _Kept(call, forward.model, key, frozenset(_touching(definition, key.partition(".")[2], forward)))
    return None


def _state_kept_by_part(definition: ClassInfo, depth: int) -> _Kept | None:
    """The state that a part of a module keeps, which every forward pass of the module runs once, for all that it gives.

    Nothing else in the passes of the module speaks of the part.
    """
    forward = definition.called
    if depth == 0 or forward is None or forward.self_name is None:
        return None
    if not forward.is_plain or not forward.is_transparent:
        return None
    model = forward.model
    for call in model.tree.calls_in(forward.node.body):
        value = model.value(call.func)
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if dotted_path(call.func) != f"{forward.self_name}.{name}" or not isinstance(value, Module):
            continue
        if value.definition is None or value.wrappers or model.gradients.off(call) is not False:
            continue
        kept = _state_kept(value.definition) or _state_kept_by_part(value.definition, depth - 1)
        if kept is None or not always_runs(model, call, forward.node) or not _is_only_called(definition, name, call):
            continue
        if _gives_what_hangs_on(forward, call):
            touching = kept.touching.union(_touching(definition, name, forward))
            return msgspec.structs.replace(kept, touching=touching, holder=f"{name}.{kept.holder}")
    return None


def _is_only_called(definition: ClassInfo, name: str, call: cst.Call) -> bool:
    """Whether the forward passes of a class read an attribute in one call of it alone."""
    running = definition.members.reachable("forward")
    return all(read.node is call.func for read in definition.members.reads(name) if read.method in running)


def is_for_first(model: "Model", node: cst.CSTNode, key: str) -> bool:
    """Whether a statement begins a state where there is none yet: ``if self.hidden is None: self.hidden = ...``."""
    child: cst.CSTNode = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.If):
            return child is ancestor.body and _asks_for_none(ancestor.test, key)
        if isinstance(ancestor, cst.FunctionDef):
            return False
        child = ancestor
    return False


def _asks_for_none(test: cst.BaseExpression, key: str) -> bool:
    """Whether a test is ``self.hidden is None``, or ``not self.hidden``."""
    match test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=other)]):
            return dotted_path(left) == key and constant(other) is None
        case cst.UnaryOperation(operator=cst.Not(), expression=asked):
            return dotted_path(asked) == key
    return False


def _call_of_layer(forward: FunctionInfo, kept: Binding, key: str) -> cst.Call | None:
    """The call of the recurrent layer whose new state is bound to what it was given, as it was."""
    model = forward.model
    made = kept
    for _ in range(3):  # `hidden` of `self.hidden = hidden`
        bindings = model.reaching(made.value) if isinstance(made.value, cst.Name) and not made.path else ()
        if len(bindings) != 1:
            break
        made = bindings[0]
    call = made.value
    module = model.value(call.func) if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or not isinstance(module, Module) or not always_runs(model, call, forward.node):
        return None
    if model.gradients.off(call) is not False:
        return None
    for position, arg in enumerate(call.args):
        for node in items_of(arg.value):
            if _is_state_of_call(forward, node, key) and is_handed_on(module, call, position, made):
                return call
    return None


def _is_state_of_call(forward: FunctionInfo, node: cst.BaseExpression, key: str) -> bool:
    """Whether an expression is what the attribute was bound to by the pass before, untouched."""
    model = forward.model
    if isinstance(node, cst.Name):
        bindings = model.reaching(node)
        value = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN else None
        if value is None or bindings[0].path or is_changed_in_place(model, node):
            return False
        node = value
    if dotted_path(node) != key or is_changed_in_place(model, node):
        return False
    return forward.scope.reaching(key, node).may_be_unbound


def _gives_what_hangs_on(forward: FunctionInfo, call: cst.Call) -> bool:
    """Whether everything that the pass gives surely carries the graph of what the layer gives."""
    model = forward.model
    given = [part for item in forward.scope.returns for part in ([] if item.value is None else items_of(item.value))]
    walk = _FromCall(model, call)
    return bool(given) and all(walk.of(part) for part in given)


def _touching(definition: ClassInfo, name: str, forward: FunctionInfo) -> Iterator[str]:
    """The methods of a class, besides the pass itself, that speak of an attribute."""
    for info in definition.lineage:
        for node in attributes(info.model, name):
            method = method_of_receiver(info.model, node.value)
            if method is not None and method is not forward and method.owner in definition.lineage:
                yield method.name


# -- in the loop -------------------------------------------------------------------------------------------------------


def _outlives(model: "Model", node: cst.BaseExpression, loop: Loop) -> bool:
    """Whether a module was there before a loop began."""
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    bindings = [*model.reaching(node), *model.reaching(root)]
    return isinstance(root, cst.Name) and not any(
        item.node is loop or model.tree.is_below(item.node, loop) for item in bindings
    )


def _may_begin_anew(model: "Model", module: cst.BaseExpression, kept: _Kept, loop: Loop) -> bool:
    """Whether something in a loop may cut the state that a module keeps, or give it another one."""
    name, path = kept.path.partition(".")[2], dotted_path(module)
    if path is None or any(model.tree.is_below(node, loop) for node in attributes(model, name)):
        return True
    return any(_may_cut(model, call, path, name, kept) for call in model.tree.calls_in(loop))


def _may_cut(model: "Model", call: cst.Call, path: str, name: str, kept: _Kept) -> bool:
    """Whether a call may change the state that a module keeps, written as ``path``: it is one of its methods, a pass
    without gradients, or gets at the module.
    """
    value = model.value(call.func)
    if last_word(call.func) in kept.touching:
        return True
    if dotted_path(call.func) == path:
        return model.gradients.off(call) is not False
    is_given = any(f"{dotted_path(arg.value)}.".startswith(f"{path}.") for arg in call.args)
    if isinstance(value, Function):
        words = {name, path.rpartition(".")[2], *kept.touching}
        parts = subtree(value.definition.node)
        return is_given or any(isinstance(part, cst.Name) and part.value in words for part in parts)
    if is_given and not isinstance(value, Symbol):
        return True
    return value is None and _may_reach(dotted_path(call.func) or "", path)


def _may_reach(method: str, path: str) -> bool:
    """Whether a method of which nothing is known is one of a module, or of what holds it: ``self.update()``."""
    holder = method.rpartition(".")[0]
    return bool(holder) and (path == holder or path.startswith(f"{holder}."))
