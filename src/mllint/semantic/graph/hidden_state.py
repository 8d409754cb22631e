"""Hidden states that a training loop carries, with their graph, over the ``backward()`` of each iteration."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.construction.constants import constant_of
from mllint.semantic.graph.dependence import Dependence, hands_on
from mllint.semantic.graph.losses import loss_of, retaining
from mllint.semantic.names.changes import is_changed_in_place
from mllint.semantic.names.conditions import loop_of_every_round
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import bound_by, reads
from mllint.semantic.values import Elements, Framework, Module, Object, Repeated, Tensor, Value
from mllint.syntax.shape import argument, dotted_path, items_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Loop = cst.For | cst.While
_REPORTS = frozenset({"print", "append", "info", "debug", "add_scalar", "add_histogram", "format"})


class Carried(msgspec.Struct, frozen=True):
    """A hidden state that goes from one iteration to the next.

    ``call`` is the call of the recurrent module, ``names`` what holds the state, ``value`` what each of them is as soon
    as the module has given it (``None``: not known, or it holds it only later).
    ``is_kept``: the graph of every iteration is kept on purpose, but the weights change under it.
    """

    call: cst.Call
    names: tuple[str, ...]
    value: Value | None
    framework: Framework
    is_kept: bool


def carried_over(model: "Model", backward: cst.Call) -> Carried | None:
    """The hidden state that surely brings the graph of earlier iterations to a ``backward()`` call."""
    walked = walked_in_loop(model, backward)
    if walked is None or model.framework is None:
        return None
    loop, loss, is_kept = walked
    for statement in _assignments(model, loop):
        names = tuple(_carried_names(model, statement, loop))
        if not names:
            continue
        walk = Dependence(model, lambda binding, node=statement: binding.node is node)  # type: ignore[misc]
        if walk.of(loss):
            assert isinstance(statement.value, cst.Call)
            value = _state(model, statement, names)
            return Carried(statement.value, names, value, model.framework, is_kept)
    return None


def walked_in_loop(model: "Model", backward: cst.Call) -> tuple[Loop, cst.BaseExpression, bool] | None:
    """The loop of which every round walks back through a graph, from which loss, and whether that graph is kept.

    ``None`` too where all rounds may be walked through again on purpose.
    """
    loop, loss = loop_of_every_round(model, backward), loss_of(backward)
    if loop is None or loss is None or model.gradients.off(backward) is not False:
        return None
    is_kept = retaining(model, backward) is not None
    is_plain = not any(_may_be_on(model, backward, word) for word in ("retain_graph", "create_graph"))
    # Torch raises as soon as the weights have changed; Paddle goes through all iterations again and again.
    is_meant = not is_plain and not (is_kept and model.framework == "torch" and _steps(model, loop))
    return None if is_meant else (loop, loss, is_kept)


def _may_be_on(model: "Model", backward: cst.Call, word: str) -> bool:
    """Whether a flag of ``backward()`` is given, and not written as ``False``."""
    given = argument(backward, None, word)
    return given is not None and constant_of(model, given.value) is not False


def _steps(model: "Model", loop: Loop) -> bool:
    """Whether every round of a loop changes the weights."""
    return any(
        isinstance(call.func, cst.Attribute)
        and isinstance(value := model.value(call.func.value), Object)
        and value.kind == "optimizer"
        and loop_of_every_round(model, call) is loop
        for call in model.calls_by_word.get("step", ())
    )


def _assignments(model: "Model", loop: Loop) -> Iterator[cst.Assign]:
    """The statements of a loop that bind what a recurrent module gives."""
    for statement in model.assignments_by_scope.get(id(model.scope_of(loop)), ()):
        if not isinstance(statement.value, cst.Call):
            continue
        if not model.tree.is_below(statement, loop):
            continue
        if isinstance(model.value(statement.value.func), Module) and model.gradients.off(statement) is False:
            yield statement


def _carried_names(model: "Model", statement: cst.Assign, loop: Loop) -> Iterator[str]:
    """The names that a call is given and whose state it hands on, from one round of the loop to the next."""
    call = statement.value
    assert isinstance(call, cst.Call)
    module = model.value(call.func)
    assert isinstance(module, Module)
    own = {binding.key: binding for binding in bound_by(model, statement)}
    for position, arg in enumerate(call.args):
        for node in (item for item in items_of(arg.value) if isinstance(item, cst.Name)):
            found = _round_trip(model, node, own, loop)
            if found is None or not is_handed_on(module, call, position, found):
                continue
            if not any(_may_be_cut(model, key, loop) for key in {node.value, found.key}):
                yield node.value


def _round_trip(model: "Model", node: cst.Name, own: dict[str, Binding], loop: Loop) -> Binding | None:
    """The binding by the statement that its own argument sees in the next round, untouched in between."""
    inside, outside = _inside(model, node, loop)
    if not inside or not outside:
        return None
    found: Binding | None = None
    for binding in inside:
        origin = _origin(model, binding, loop)
        if origin is None or own.get(origin.key) is not origin or (found is not None and found is not origin):
            return None
        found = origin
    return found


def _inside(model: "Model", node: cst.Name, loop: Loop) -> tuple[list[Binding], list[Binding]]:
    """The bindings that reach a name: those in the loop, and those before it."""
    bindings = model.reaching(node)
    inside = [item for item in bindings if model.tree.is_below(item.node, loop)]
    return inside, [item for item in bindings if item not in inside and item.node is not loop]


def _origin(model: "Model", binding: Binding, loop: Loop) -> Binding | None:
    """The binding behind plain copies: of ``new`` in ``hidden = new``."""
    for _ in range(4):
        if not isinstance(binding.value, cst.Name):
            return binding
        behind, _before = _inside(model, binding.value, loop)
        if len(behind) != 1 or binding.path:
            return None
        binding = behind[0]
    return None


def is_handed_on(module: Module, call: cst.Call, position: int, binding: Binding) -> bool:
    """Whether a module computes what it gives at a place from what it is given at another, graph and all."""
    if module.wrappers:
        return False
    if module.definition is None:
        fact = None if module.name is None else lookup.class_(module.name)
        if fact is None or fact.kind != "rnn":
            return False
        is_state = position == 1 or (call.args[position].keyword is not None)
        is_cell = (module.name or "").endswith("Cell")
        return is_state and (is_cell or binding.path[:1] == (1,))
    forward = module.definition.called
    if forward is None or any(arg.star for arg in call.args):
        return False
    keyword = call.args[position].keyword
    if keyword is None:
        parameters = forward.parameters[position + 1 : position + 2]
    else:
        parameters = tuple(item for item in forward.parameters if item.name.value == keyword.value)
    return len(parameters) == 1 and hands_on(forward, parameters[0], binding.path)


def _may_be_cut(model: "Model", key: str, loop: Loop) -> bool:
    """Whether the loop may detach a state in place: ``h.detach_()``, ``for t in h: ...``, ``repackage(h)``.

    ``h.stop_gradient = True`` does, too: what Paddle computes from the state after that has no way back through it.
    """
    for place in reads(model, key):
        if not model.tree.is_below(place, loop):
            continue
        if is_changed_in_place(model, place):
            return True
        child: cst.CSTNode = place
        for ancestor in model.tree.ancestors(place):
            if isinstance(ancestor, (cst.For, cst.CompFor)) and ancestor.iter is child:
                return True
            if isinstance(ancestor, cst.AssignTarget):
                return True
            if isinstance(ancestor, cst.Call) and isinstance(model.tree.parent(ancestor), cst.Expr):
                name = ancestor.func.attr.value if isinstance(ancestor.func, cst.Attribute) else ""
                name = name or dotted_path(ancestor.func) or ""
                if ancestor.func is not child and name not in _REPORTS:
                    return True
            if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                break
            child = ancestor
    return False


def _state(model: "Model", statement: cst.Assign, names: tuple[str, ...]) -> Value | None:
    """What each of the names holds, where they all hold the same, and hold it as soon as the module gives it."""
    values = [model.binding_value(binding) for binding in bound_by(model, statement) if binding.key in names]
    kinds = {type(value) for value in values}
    if len(values) != len(names) or len(kinds) != 1:
        return None
    return values[0] if isinstance(values[0], (Tensor, Elements, Repeated)) else None
