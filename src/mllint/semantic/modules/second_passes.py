"""Backward passes through a graph that an earlier one has freed."""

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.construction.constants import constant_of
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.passed_graph import may_cut
from mllint.semantic.files.testing import is_in_a_test, is_meant_to_fail, is_test_code
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.graph.dependence import Dependence, hands_on
from mllint.semantic.graph.given_graphs import is_attached
from mllint.semantic.graph.losses import loss_of, retaining
from mllint.semantic.graph.saved import operation
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.conditions import is_above, loop_of_every_round
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import bound_by
from mllint.semantic.values import Function, Module, Output, Symbol, Tensor
from mllint.syntax.shape import argument, dotted_path, fingerprint, has_star_arguments, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo
    from mllint.semantic.names.scopes import Scope

MAX_SOURCES = 40
"""How many assignments above a backward pass are looked at."""
MAX_PASSES = 6
"""How many backward passes above another one are looked at."""
_Loop = cst.For | cst.While
# What may take the graph away from a name that was bound before, or freeze what has made it.
_CHANGING = (
    "detach_", "requires_grad", "requires_grad_", "set_requires_grad", "stop_gradient", "trainable", "toggle_grad",
    "freeze", "unfreeze", "checkpoint", "no_sync", "Function", "PyLayer", "retain_grad",
)  # fmt: skip
# What runs later, or perhaps not at all.
_ELSEWHERE = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp, cst.FunctionDef, cst.ClassDef)
_WALKING = frozenset({"grad", "vjp", "jvp", "jacobian", "hessian", "functional_call", "checkpoint", "vmap"})


class SecondPass(msgspec.Struct, frozen=True):
    """A part of a graph through which a backward pass goes once more: what holds it, and the pass that has freed it.

    ``first`` is ``None`` where it is the same call, in the round of the loop before.
    """

    name: str
    first: cst.Call | None


def second_pass(model: "Model", backward: cst.Call) -> SecondPass | None:
    """The part of its graph that is surely freed when a ``backward()`` call gets there."""
    found = _second_pass(model, backward)
    is_meant = found is not None and not may_change_graphs(model, backward) and not is_meant_to_fail(model, backward)
    return found if is_meant else None


def _second_pass(model: "Model", backward: cst.Call) -> SecondPass | None:
    loss = plain_loss(model, backward)
    if loss is None:
        return None
    above = [call for call in _passes_written_above(model, backward) if _is_plain(model, call, freeing=True)]
    spent = {call: other for call in above if (other := loss_of(call)) is not None}
    loop = loop_of_every_round(model, backward) if _is_plain(model, backward, freeing=True) else None
    if not spent and loop is None:
        return None
    for first in spent:
        for statement in _freed_where_made(model, backward, first):
            is_shared = _may_share(model, statement, loss, spent[first]) and _carries_pass(model, loss, statement)
            if is_shared and _carries(model, spent[first], statement):
                return SecondPass(dotted_path(statement.targets[0].target) or "", first)
    scope = model.scope_of(backward)
    firsts = [call for call in spent if runs_before(scope, call, backward)]
    for statement in filter(_binds_result, assignments_above(model, backward)):
        name = dotted_path(statement.targets[0].target) or ""
        behind = [
            call
            for call in firsts
            if _may_share(model, statement, loss, spent[call]) and runs_before(scope, statement, call)
        ]
        in_every_round = loop is not None and not model.tree.is_inside(statement, loop)
        if not (behind or in_every_round) or not _carries_pass(model, loss, statement):
            continue
        for first in behind:
            if _carries(model, spent[first], statement):
                return SecondPass(name, first)
        if in_every_round:
            return SecondPass(name, None)
    carried = None if loop is None else _total(model, loss, loop)
    return None if carried is None else SecondPass(carried, None)


def repeated_pass(model: "Model", backward: cst.Call) -> cst.BaseExpression | None:
    """The loss of a ``backward()`` call, where the statement right above has run the same pass and kept its graph.

    So an optimizer that steps further down, in the same function, gets all gradients twice.
    """
    loss, first = loss_of(backward), _call_right_above(model, backward)
    if loss is None or first is None or dotted_path(loss) is None or retaining(model, first) is None:
        return None
    other = loss_of(first)
    if other is None or fingerprint(other) != fingerprint(loss) or _is_weighted(first) or _is_weighted(backward):
        return None
    scope = model.scope_of(backward)
    is_used = any(model.scope_of(step) is scope and is_above(scope, backward, step) for step in _updates(model))
    return loss if is_used and not is_test_code(model) and not is_in_a_test(model, backward) else None


def _updates(model: "Model") -> Iterator[cst.Call]:
    return (call for word in ("step", "minimize") for call in model.calls_by_word.get(word, ()))


def _call_right_above(model: "Model", call: cst.Call) -> cst.Call | None:
    """The call of the same method that is the statement above, where both stand alone in their lines."""
    line = model.tree.parent(model.tree.parent(call) or call)
    block = None if line is None else model.tree.parent(line)
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    above = next((one for one, other in itertools.pairwise(block.body) if other is line), None)
    small = above.body if isinstance(above, cst.SimpleStatementLine) else ()
    found = small[0].value if len(small) == 1 and isinstance(small[0], cst.Expr) else None
    return found if isinstance(found, cst.Call) and last_word(found.func) == last_word(call.func) else None


def _is_weighted(backward: cst.Call) -> bool:
    """Whether a pass is given more than its loss and what becomes of the graph: what it begins with, or ends at."""
    names = [arg.keyword.value for arg in backward.args if arg.keyword is not None]
    given = [arg.value for arg in backward.args if arg.keyword is None]
    return has_star_arguments(backward) or not set(names) <= {"retain_graph"} or given not in ([], [loss_of(backward)])


def plain_loss(model: "Model", backward: cst.Call) -> cst.BaseExpression | None:
    """What a backward pass begins with; ``None`` where it is not known which tensors the pass reaches."""
    if not _is_plain(model, backward, freeing=False) or model.gradients.off(backward) is not False:
        return None
    return loss_of(backward) if backward in model.backward.calls else None


def may_change_graphs(model: "Model", node: cst.CSTNode) -> bool:
    """Whether the function around a node changes flags, or takes graphs off by a statement."""
    scope = model.scope_of(node)
    return any(not _is_told(model, name) for word in _CHANGING for name in model.names_within(word, scope))


def _is_told(model: "Model", name: cst.Name) -> bool:
    """Whether a function of a library is told a flag of what it makes: ``zeros(3, requires_grad=True)``."""
    arg = model.tree.parent(name)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) and arg.keyword is name else None
    return isinstance(call, cst.Call) and model.library_name(call.func) is not None


def passes_above(model: "Model", node: cst.Call) -> list[cst.Call]:
    """The backward passes that have surely run before a call."""
    scope = model.scope_of(node)
    return [call for call in _passes_written_above(model, node) if runs_before(scope, call, node)]


def _passes_written_above(model: "Model", node: cst.Call) -> list[cst.Call]:
    """The backward passes that stand above a call in its function, those next to it."""
    scope = model.scope_of(node)
    passes = (call for call in reversed(model.backward.calls_in(scope.node)) if is_above(scope, call, node))
    return list(itertools.islice(passes, MAX_PASSES))


def _freed_where_made(model: "Model", backward: cst.Call, first: cst.Call) -> Iterator[cst.Assign]:
    """What a loop or branch above has made before a pass of the same block that always follows it there.

    Nobody knows whether the block has run; but who reads what it has made comes behind that pass.
    """
    scope = model.scope_of(backward)
    if runs_before(scope, first, backward) or any(isinstance(a, cst.Try) for a in model.tree.ancestors(first)):
        return
    line = model.tree.parent(model.tree.parent(first) or first)
    block = None if line is None else model.tree.parent(line)
    if not isinstance(block, cst.IndentedBlock):
        return
    for statement in reversed(block.body[: block.body.index(line)]):
        if any(isinstance(part, (cst.Break, cst.Continue)) for part in subtree(statement)):
            return
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
        if isinstance(small, cst.Assign) and _binds_result(small):
            yield small


def assignments_above(model: "Model", node: cst.Call) -> list[cst.Assign]:
    """The assignments that have surely run before a call, those next to it."""
    scope = model.scope_of(node)
    written = reversed(model.assignments_by_scope.get(id(scope), ()))
    found = itertools.islice((item for item in written if is_above(scope, item, node)), MAX_SOURCES)
    return [statement for statement in found if runs_before(scope, statement, node)]


def _binds_result(statement: cst.Assign) -> bool:
    """Whether a statement binds one name to what a call or an operator gives."""
    is_named = len(statement.targets) == 1 and dotted_path(statement.targets[0].target) is not None
    return is_named and isinstance(statement.value, (cst.Call, cst.BinaryOperation))


def keeps_for_backward(model: "Model", call: cst.Call) -> bool:
    """Whether a call is the pass of a module with weights that keeps, for its gradients, what it has computed."""
    module, value = model.value(call.func), model.value(call)
    if not isinstance(module, Module) or not isinstance(value, (Tensor, Output)) or value.attached is not True:
        return False
    if model.gradients.off(call) is not False or "?" in module.wrappers:
        return False
    return has_weights(model, call.func) is True


def _computes_with_pass(model: "Model", statement: cst.Assign) -> bool:
    """Whether what a statement makes carries what keeps something for its gradients: a pass, an operation, a loss."""
    walk = Uncut(model, lambda _: False, lambda call: keeps_for_backward(model, call) or _keeps_operands(model, call))
    return walk.of(statement.value) or _makes_loss(model, statement)


def _keeps_operands(model: "Model", call: cst.Call) -> bool:
    """Whether a call is an operation that keeps its result, or an input, for gradients that it surely has to give."""
    found = operation(model, call)
    if found is None or model.gradients.off(call) is not False:
        return False
    if found.has_weights or found.saved.result:
        return is_attached(model, call)
    needing = {needs for _, needs in found.saved.inputs if needs < len(found.operands)}
    return any(is_attached(model, found.operands[needs]) for needs in needing)


def _makes_loss(model: "Model", statement: cst.Assign) -> bool:
    """Whether a statement binds a loss of the frameworks that hangs on a graph: each of them keeps what it is given."""
    callee = model.value(statement.value.func) if isinstance(statement.value, cst.Call) else None
    if isinstance(callee, Module) and callee.name is not None:
        known = lookup.class_(callee.name)
        is_loss = known is not None and known.kind == "loss"
    elif isinstance(callee, Symbol):
        function = lookup.function(callee.name)
        is_loss = ".nn.functional." in callee.name and function is not None and "reduction" in function.parameters
    else:
        return False
    values = [model.binding_value(binding) for binding in bound_by(model, statement)]
    return is_loss and all(isinstance(value, Tensor) and value.attached is True for value in values)


def runs_before(scope: "Scope", earlier: cst.CSTNode, later: cst.CSTNode) -> bool:
    """Whether a node has surely run whenever another one of the scope is come to, in the same round of a loop."""
    here, there = scope.place_of(earlier), scope.place_of(later)
    if here is None or there is None or here[1] >= there[1]:
        return False
    for ancestor in scope.tree.ancestors(earlier):
        if ancestor is scope.node:
            break
        if isinstance(ancestor, (cst.If, cst.For, cst.While, cst.Try, cst.Match, cst.ExceptHandler, cst.Else)):
            return _are_in_one_suite(scope, earlier, later, ancestor)
        if isinstance(ancestor, _ELSEWHERE):
            return False
    return True


def _are_in_one_suite(scope: "Scope", earlier: cst.CSTNode, later: cst.CSTNode, holder: cst.CSTNode) -> bool:
    """Whether both stand in the body of the same compound statement, and not in its other branches."""
    body = getattr(holder, "body", None)
    if isinstance(holder, (cst.Try, cst.Match)) or body is None:
        return False
    return scope.tree.is_inside(earlier, body) and scope.tree.is_inside(later, body)


def _is_plain(model: "Model", call: cst.Call, *, freeing: bool) -> bool:
    """Whether a backward pass is of a kind that is known; ``freeing``: that keeps nothing for another one."""
    if has_star_arguments(call) or argument(call, None, "inputs") is not None:
        return False
    for name in ("retain_graph", "retain_variables", "create_graph") if freeing else ():
        given = argument(call, None, name)
        if given is not None and constant_of(model, given.value) is not False:
            return False
    positional = [arg for arg in call.args if arg.keyword is None]
    return not freeing or len(positional) < 2


def _may_share(model: "Model", statement: cst.Assign, *losses: cst.BaseExpression) -> bool:
    """Whether a walk back from each of several losses may come to a statement: whether one does costs more."""
    return all(id(statement) in model.backward.sources(loss) for loss in losses)


def _carries_pass(model: "Model", loss: cst.BaseExpression, statement: cst.Assign) -> bool:
    """Whether a loss surely hangs on what a statement has made, and that on what keeps something for its gradients."""
    is_candidate = _may_share(model, statement, loss) and _computes_with_pass(model, statement)
    return is_candidate and _carries(model, loss, statement)


def _carries(model: "Model", loss: cst.BaseExpression, statement: cst.Assign) -> bool:
    """Whether a loss surely hangs on what a statement has made."""
    return Uncut(model, lambda binding: binding.node is statement).of(loss)


class Uncut(Dependence):
    """Walks back as ``Dependence`` does, through nothing of which it is not known that the gradients come through.

    ``is_pass`` says of which calls of modules the result is a goal, too.
    """

    def __init__(
        self,
        model: "Model",
        is_goal: Callable[[Binding], bool],
        is_pass: Callable[[cst.Call], bool] = lambda _: False,
    ) -> None:
        super().__init__(model, is_goal)
        self.is_pass = is_pass

    def of(self, node: cst.CSTNode) -> bool:
        """Whether an expression surely carries the graph of the goal, whichever way it is computed."""
        if isinstance(node, cst.IfExp):
            return super().of(node.body) and super().of(node.orelse)
        if isinstance(node, cst.BooleanOperation):
            return False
        if isinstance(node, cst.Subscript):
            return super().of(node.value)
        return super().of(node)

    def _of_call(self, call: cst.Call) -> bool:
        if self.is_pass(call):
            return True
        callee = self.model.value(call.func)
        if self._ends(self.model.value(call)) or has_star_arguments(call):
            return False
        if isinstance(callee, Function):
            return self._through(callee.definition, call)
        if isinstance(callee, Module):
            if callee.definition is None:
                state = None if callee.name is None else lookup.layer_state(callee.name)
                is_layer = callee.call is not None or (state is not None and not state.sized)
                return is_layer and "?" not in callee.wrappers and any(self.of(arg.value) for arg in call.args)
            forward = callee.definition.called
            return forward is not None and self._through(forward, call)
        if isinstance(callee, Symbol):
            value = self.model.value(call)
            is_new = isinstance(value, Tensor) and value.leaf  # made anew of what it is given
            is_attached = isinstance(value, (Tensor, Output)) and value.attached is True and not is_new
            return is_attached and callee.name.rpartition(".")[2] not in _WALKING and super()._of_call(call)
        if callee is None and not isinstance(call.func, cst.Attribute):
            return False
        if callee is None and isinstance(call.func, cst.Attribute):
            receiver = self.model.value(call.func.value)
            if not isinstance(receiver, (Tensor, Output)):
                return False
        return super()._of_call(call)

    def _through(self, info: "FunctionInfo", call: cst.Call) -> bool:
        """Whether what the project's own function computes of what it is given carries the graph of the goal."""
        positions = [item for item in info.parameters if item.name.value != info.self_name]
        for position, arg in enumerate(call.args):
            if arg.keyword is not None:
                given = [item for item in positions if item.name.value == arg.keyword.value]
            else:
                given = positions[position : position + 1]
            if given and self.of(arg.value):
                return hands_on(info, given[0], ()) and not may_cut(info)
        return False


def _total(model: "Model", loss: cst.BaseExpression, loop: _Loop) -> str | None:
    """The total to which every round of a loop adds a loss, and of which it runs the backward pass."""
    if not isinstance(loss, cst.Name):
        return None
    bindings = model.reaching(loss)
    if len(bindings) != 1 or not model.tree.is_inside(bindings[0].node, loop):
        return None
    binding = bindings[0]
    inside = [
        item
        for item in binding.scope.bindings.get(binding.key, ())
        if model.tree.is_inside(item.node, loop) and item.kind is not BindingKind.NARROWED
    ]
    if inside != [binding] or loop_of_every_round(model, binding.node) is not loop:
        return None
    before, added = _summands(binding)
    if before is None or added is None or binding not in model.reaching(before):
        return None
    walk = Uncut(model, lambda _: False, lambda call: keeps_for_backward(model, call))
    if walk.of(added) or (_begins_as_number(model, before, loop) and _is_computed_loss(model, added, loop)):
        return binding.key
    return None


def _begins_as_number(model: "Model", total: cst.BaseExpression, loop: _Loop) -> bool:
    """Whether a total hangs on nothing when its loop begins: what can be walked is what the rounds have added."""
    begun = [item for item in model.reaching(total) if not model.tree.is_inside(item.node, loop)]
    return bool(begun) and all(
        item.kind is BindingKind.ASSIGN and not item.path and hangs_on_nothing(model.binding_value(item))
        for item in begun
    )


def _is_computed_loss(model: "Model", node: cst.BaseExpression, loop: _Loop) -> bool:
    """Whether an expression is a loss that the round computes from something that may hang on a graph."""
    if isinstance(node, cst.Name):
        made = only_assigned(model, node)
        if made is None or not model.tree.is_inside(made, loop):
            return False
        node = made
    if not isinstance(node, cst.Call) or not is_called_loss(node) or hangs_on_nothing(model.value(node)):
        return False
    return not all(hangs_on_nothing(model.value(arg.value)) for arg in node.args)


def _summands(binding: Binding) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """What was there before, and what is added to it: of ``total += loss``, ``total = total + loss``."""
    node = binding.node
    if isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign):
        return node.target, node.value
    value = binding.value
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        for before, added in ((value.left, value.right), (value.right, value.left)):
            if dotted_path(before) == binding.key:
                return before, added
    return None, None
