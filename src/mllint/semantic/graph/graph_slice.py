"""The part of the graph that a loss hangs on: what it is computed from in its function, and what else uses that."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import calls_of, is_passed_around
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.expressions.imports import is_of_standard_library
from mllint.semantic.graph.additions import appended, augmented
from mllint.semantic.graph.class_slices import is_walked_apart
from mllint.semantic.graph.data_sources import (
    TAKING_SHAPES,
    comes_from_data,
    hangs_on_nothing,
    is_handed_in,
    is_iterator_of_data,
    is_of_data,
)
from mllint.semantic.graph.depth import may_be_deep
from mllint.semantic.graph.filled import put_into
from mllint.semantic.graph.looked_at import CUTTING, is_only_looked_at, only_looks, reports
from mllint.semantic.graph.losses import WALKING, index_target, is_library_loss
from mllint.semantic.graph.rounds import Round
from mllint.semantic.graph.settings import is_set_before
from mllint.semantic.graph.statefulness import (
    called,
    computes_afresh,
    gives_no_graph,
    is_out_of_sight,
    is_stateless,
    keeps_no_graph,
    may_be_plain_module,
    runs_backward,
    walks_backwards,
)
from mllint.semantic.names.changes import is_flagged
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import attributes, bound_by, uses
from mllint.semantic.values import (
    Choice,
    ClassObject,
    Elements,
    Function,
    Instance,
    Method,
    Module,
    Object,
    Symbol,
    Tensor,
    functions_of,
)
from mllint.syntax.shape import argument, constant, dotted_path, is_of_names, last_word, string_literal
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.scopes import Scope

# Functions of the libraries that run what they are given, later or again.
_RUNNING = frozenset({"checkpoint", "checkpoint_sequential", "grad", "functional_call", "vmap"})
# What an attribute of these holds may have been computed at any time.
_HOLDERS = (Module, Instance, Object, Symbol, ClassObject, Function)
# What functions and layers call what is none of their tensors.
_OPTIONS = frozenset({"size", "shape", "scale_factor", "mode", "dim", "axis", "device", "dtype", "reduction"})
MAX_STEPS = 400
"""How many expressions and bindings are looked at for one loss."""
_VIEWS = frozenset({"items", "values", "get", "pop", "copy"})  # methods of dicts and lists that give what they hold
_Loop = cst.For | cst.While


class GraphSlice:
    """What a loss is computed from, in the function where ``backward()`` is called on it.

    ``is_open``: some part of it is not understood, or may be older than one round of the loop around the call (one call
    of the function, without a loop). ``is_deep``: it goes through a module, so that there is much to keep.
    ``begins_anew`` says of which calls that are not understood nothing of an earlier round is left in what they give.
    """

    def __init__(
        self,
        model: "Model",
        loss: cst.BaseExpression,
        call: cst.Call,
        begins_anew: Callable[[cst.Call], bool] = lambda _: False,
    ) -> None:
        self.model = model
        self.call = call
        self._begins_anew = begins_anew
        self.scope: Scope = model.scope_of(call)
        self.round = Round(model, call)
        around = model.tree.nearest(call, cst.Lambda, cst.FunctionDef)
        self._is_in_lambda = isinstance(around, cst.Lambda)  # which may be called again and again
        self.bindings: dict[int, Binding] = {}
        self._beside: list[Binding] = []  # what is unpacked of the same results
        self._calls: set[int] = set()  # whose results the loss is computed from
        self.is_open = self.is_deep = False
        self._steps = 0
        self._follow(loss)

    # -- upwards -----------------------------------------------------------------------------------------------------

    def _follow(self, node: cst.CSTNode) -> None:
        pending = [node]
        while pending and not self.is_open:
            self._steps += 1
            if self._steps > MAX_STEPS:
                self.is_open = True
            pending += self._behind(pending.pop())

    def _behind(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The expressions from which this one is computed, as far as they may hang on a graph."""
        value = self.model.value(node)
        is_growing = isinstance(value, Elements) and value.mutable
        if hangs_on_nothing(value) and not is_growing:
            self.is_open = self._is_flagged_later(node)
            return []
        if isinstance(value, (Module, Object, Symbol, ClassObject, Function)):
            return []
        if isinstance(value, Tensor) and value.parameter:
            return []
        match node:
            case cst.Name() | cst.Attribute() if dotted_path(node) is not None and self.model.reaching(node):
                return self._behind_name(node)
            case cst.Attribute(attr=cst.Name(value=name)) if name in CUTTING:
                return []
            case cst.Attribute(value=cst.Name()) if self._is_of_object(node) and self._is_apart(node):
                self.is_deep = True
                return []  # what other methods have made is judged with the class
            case cst.Attribute() if not isinstance(self.model.value(node.value), _HOLDERS):
                return [node.value]
            case cst.Call():
                return self._behind_call(node)
            case cst.Subscript() | cst.BinaryOperation() | cst.UnaryOperation() | cst.IfExp() | cst.BooleanOperation():
                return _expressions(node)
            case cst.Tuple() | cst.List() | cst.Dict():
                return [element.value for element in node.elements]
            case cst.ListComp() | cst.GeneratorExp():
                return [node.elt]
            case cst.DictComp():
                return [node.value]
            case cst.Comparison() | cst.FormattedString() | cst.SimpleString() | cst.Lambda():
                return []
        return self._unknown(node)

    def _unknown(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Nothing is behind settings and data; of anything else it is not known what is."""
        value = self.model.value(node)
        is_growing = isinstance(value, Elements) and value.mutable
        is_known = isinstance(node, cst.BaseExpression) and (
            is_set_before(self.model, node) or (not is_growing and is_of_data(self.model, node))
        )
        self.is_open = not is_known
        return []

    def _behind_name(self, node: cst.BaseExpression) -> list[cst.CSTNode]:
        if self.model.scope_of(node) is not self.scope or (
            isinstance(node, cst.Attribute) and not self._is_apart(node)
        ):
            return self._unknown(node)
        grown = put_into(self.model, node)
        if grown is None:
            return self._unknown(node)
        found: list[cst.CSTNode] = list(grown)
        for binding in self.model.reaching(node):
            found += self._behind_binding(binding, node, is_grown=bool(grown))
        return found

    def _is_of_object(self, attribute: cst.Attribute) -> bool:
        method = function_around(self.model, attribute)
        return method is not None and method.self_name is not None and dotted_path(attribute.value) == method.self_name

    def _is_apart(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute is one of the object, no other pass of whose class shares anything with this one."""
        if self.round.loop is not None or self._is_in_lambda or isinstance(attribute.value, cst.Attribute):
            return False
        return self._walks_apart

    @cached_property
    def _walks_apart(self) -> bool:
        return is_walked_apart(self.model, self.call)

    def _behind_binding(self, binding: Binding, node: cst.BaseExpression, *, is_grown: bool) -> list[cst.CSTNode]:
        if not is_grown and comes_from_data(self.model, binding):
            return []
        if self._is_leaf(binding):
            return []
        if self._is_in_lambda or not self.round.is_fresh(binding, node):
            return self._unknown(node)
        if id(binding) in self.bindings:
            return []
        self.bindings[id(binding)] = binding
        if binding.path:
            self._beside += bound_by(self.model, binding.node)
        if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
            return [binding.node.target, binding.node.value]
        if binding.kind is BindingKind.NARROWED and isinstance(binding.node, cst.Call):
            return [binding.node.args[0].value]  # what the test asks about is what it was before
        if binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED, BindingKind.LOOP) and binding.value is not None:
            return [binding.value]
        return self._unknown(node)

    def _is_leaf(self, binding: Binding) -> bool:
        """Whether a binding makes a tensor that requires a gradient of its own, and is computed from nothing."""
        call = binding.value
        if binding.kind is not BindingKind.ASSIGN or binding.path or not isinstance(call, cst.Call):
            return False
        flag = argument(call, None, "requires_grad")
        is_data = all(hangs_on_nothing(self.model.value(arg.value)) for arg in call.args)
        return flag is not None and constant(flag.value) is True and is_data

    def _is_flagged_later(self, node: cst.CSTNode) -> bool:
        """Whether a name gets a gradient flag of its own, and may be older than this round, with a graph behind it."""
        if not isinstance(node, cst.Name) or not is_flagged(self.model, node):
            return False
        return not all(self.round.is_fresh(binding, node) for binding in self.model.reaching(node))

    def _behind_call(self, call: cst.Call) -> list[cst.CSTNode]:
        self._calls.add(id(call))
        callee = self.model.value(called(self.model, call))
        self.is_deep = self.is_deep or may_be_deep(self.model, call, callee)
        index = index_target(callee, call)
        if index is not None and not is_handed_in(self.model, index.value):
            index = None  # probabilities, perhaps, which hang on a graph
        given: list[cst.CSTNode] = [arg.value for arg in call.args if not (_is_told(arg) or arg is index)]
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else (dotted_path(call.func) or "")
        match callee:
            case Symbol(name="builtins.next") if call.args and is_iterator_of_data(self.model, call.args[0].value):
                return []
            case Symbol():
                is_known = lookup.framework_of(callee.name) is not None or is_of_standard_library(callee.name)
                if is_known and callee.name.rpartition(".")[2] not in _RUNNING:
                    return given
            case Module():
                is_loss = callee.definition is None and is_called_loss(call)
                if is_loss or keeps_no_graph(callee) or is_library_loss(callee):
                    return given
            case Function():
                if computes_afresh(callee.definition):
                    return given
            case Choice():
                functions = functions_of(callee)
                if functions and all(computes_afresh(item.definition) for item in functions):
                    return given
            case Method(name="scale") if len(call.args) == 1:
                return given  # of a scaler
            case Method(receiver=Tensor()):
                return [] if name in CUTTING else [call.func, *([] if name in TAKING_SHAPES else given)]
            case Instance():
                if is_stateless(callee.definition):
                    return given
            case None | Method():
                if name in CUTTING:
                    return []
                if isinstance(call.func, cst.Attribute) and self._is_tensor_method(call.func, name):
                    return [call.func.value, *([] if name in TAKING_SHAPES else given)]
                if is_called_loss(call) and name not in self.model.function_names:
                    return given
                if name in _VIEWS and isinstance(call.func, cst.Attribute) and name not in self.model.function_names:
                    return [call.func.value, *given]
        if (callee is None or isinstance(callee, Module)) and (self._begins_anew(call) or self._is_walked_alone(call)):
            return given
        if call.args and is_out_of_sight(callee) and self.round.is_stepped_alone:
            return given
        return self._unknown(call)

    def _is_walked_alone(self, call: cst.Call) -> bool:
        """Whether a module that is not known is called anew for the last backward pass of its round.

        Another pass might go through what it keeps. One that keeps its graph without any would grow with each round.
        """
        return self.round.is_last_pass and bool(call.args) and may_be_plain_module(self.model, called(self.model, call))

    def _is_tensor_method(self, callee: cst.Attribute, name: str) -> bool:
        if isinstance(self.model.value(callee.value), (Module, Object, Instance)) or name in self.model.function_names:
            return False
        return lookup.tensor_method(self.model.framework or "torch", name) is not None

    # -- downwards ---------------------------------------------------------------------------------------------------

    @property
    def is_spent_once(self) -> bool:
        """Whether nothing of the slice is seen by another backward pass, or leaves the function with its graph."""
        if self._is_gradient_computed_with or self._is_walked_beside:
            return False
        pending = [(binding, False) for binding in self.bindings.values()]
        seen = {(id(binding), False) for binding, _ in pending}
        while pending:
            binding, was_carried = pending.pop()
            if len(seen) > MAX_STEPS:
                return False
            for node in uses(self.model, binding):
                if self.model.scope_of(node) is not self.scope:
                    return False
                if id(binding) in self.bindings and is_in_another_branch(self.model, node, self.call):
                    continue  # made anew in the round that goes there
                is_carried = was_carried or not self.round.is_made_anew_for(binding, node)
                derived = self._use(node, is_carried=is_carried)
                if derived is None:
                    return False
                new = [(item, is_carried) for item in derived if (id(item), is_carried) not in seen]
                seen.update((id(item), is_carried) for item, is_carried in new)
                pending += new
        return True

    @property
    def _is_walked_beside(self) -> bool:
        """Whether another pass of the function goes into what is unpacked beside a part of the slice: it shares it."""
        pending, seen = [(binding, False) for binding in self._beside], set[tuple[int, bool]]()
        while pending:
            binding, was_carried = pending.pop()
            if (id(binding), was_carried) in seen or len(seen) > MAX_STEPS:
                continue
            seen.add((id(binding), was_carried))
            for node in uses(self.model, binding):
                if is_in_another_branch(self.model, node, self.call):
                    continue
                is_carried = was_carried or not self.round.is_made_anew_for(binding, node)
                derived = self._computed_from(node, is_carried=is_carried)
                if derived is None:
                    return True
                pending += [(item, is_carried) for item in derived]
        return False

    def _computed_from(self, node: cst.BaseExpression, *, is_carried: bool) -> list[Binding] | None:
        """What a use is bound to further on; ``None`` where another backward pass begins with it."""
        child: cst.CSTNode = node
        for ancestor in self.model.tree.ancestors(node):
            match ancestor:
                case cst.Attribute() if ancestor.value is child and ancestor.attr.value in CUTTING:
                    return []
                case cst.Call() if last_word(ancestor.func) in WALKING:
                    return [] if ancestor is self.call or (not is_carried and self.round.is_over(ancestor)) else None
                case cst.Assign() | cst.AugAssign() | cst.AnnAssign():
                    return list(bound_by(self.model, ancestor))
                case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                    return []
            child = ancestor
        return []

    @property
    def _is_gradient_computed_with(self) -> bool:
        """Whether the function computes with the ``.grad`` of something and runs another backward pass.

        Before PyTorch 0.4, and where the gradient that is given needs one itself, that pass goes through this graph.
        """
        walks = (call for word in WALKING for call in self.model.calls_by_word.get(word, ()))
        if not any(call is not self.call and self.model.scope_of(call) is self.scope for call in walks):
            return False
        return any(
            isinstance(self.model.tree.parent(attribute), cst.BinaryOperation)
            and self.model.scope_of(attribute) is self.scope
            for attribute in attributes(self.model, "grad")
        )

    def _use(self, node: cst.BaseExpression, *, is_carried: bool) -> list[Binding] | None:
        """What a use of a part of the slice is bound to further on; ``None`` when it may reach another backward.

        A pass above that walks what its own round has made is over before the one in question keeps anything.
        """
        if self.model.tree.is_inside(node, self.call):
            return []
        child: cst.CSTNode = node
        for ancestor in self.model.tree.ancestors(node):
            match ancestor:
                case cst.Comparison():
                    return []
                case cst.Attribute() if ancestor.value is child and ancestor.attr.value in CUTTING:
                    return []
                case cst.Call() if not is_carried and self._has_walked(ancestor, child):
                    if self.round.is_over(ancestor):
                        return []  # else it goes on with the gradients
                case cst.Call() if ancestor.func is not child:
                    verdict = self._given(ancestor, child)
                    if verdict is not None:
                        return [] if verdict else None
                case cst.Call() if isinstance(ancestor.func, cst.Attribute) and ancestor.func.attr.value in WALKING:
                    return None
                case cst.Assign() | cst.AugAssign() | cst.AnnAssign() | cst.NamedExpr():
                    return self._bound(ancestor)
                case cst.For() | cst.CompFor() if ancestor.iter is child:
                    return list(bound_by(self.model, ancestor))
                case cst.For() | cst.Index():
                    return []
                case cst.CompFor() | cst.Lambda() | cst.Return() | cst.Yield() | cst.With() | cst.Await():
                    return self._handed_back(ancestor)
                case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                    return []
            is_expression = isinstance(ancestor, cst.BaseExpression)
            if is_expression and hangs_on_nothing(self.model.value(ancestor)):
                return []
            child = ancestor
        return []

    def _has_walked(self, call: cst.Call, part: cst.CSTNode) -> bool:
        """Whether a call is a backward pass, or a function that makes one, that has run by then in the same round."""
        if last_word(call.func) in WALKING:
            return self.round.has_run(call)
        callee = self.model.value(call.func) if call.func is not part else None
        is_walk = isinstance(callee, Function) and not callee.definition.scope.outer_names
        return is_walk and runs_backward(callee.definition) and self.round.has_run(call)  # type: ignore[union-attr]

    def _given(self, call: cst.Call, arg: cst.CSTNode) -> bool | None:
        """Whether what is given to a call surely ends there; ``None``: it goes on into what the call gives."""
        callee = self.model.value(call.func)
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else (dotted_path(call.func) or "")
        if name in WALKING:
            return False
        if reports(self.model, call):
            return True
        if name == "append" and self._is_of_slice(call.func):
            return True  # into a list whose own uses are looked at
        if name == "append":
            collected = appended(self.model, call)
            return collected is not None and not collected.needs_graph
        is_statement = isinstance(self.model.tree.parent(call), cst.Expr)
        if isinstance(callee, Symbol):
            return True if is_statement else None
        if isinstance(callee, Function):
            if walks_backwards(callee.definition):
                return False
            if is_statement:
                return isinstance(arg, cst.Arg) and only_looks(self.model, call, arg)
            return True if gives_no_graph(callee.definition) else None
        if isinstance(callee, (Module, Method)) or is_called_loss(call) or id(call) in self._calls:
            return None
        framework = self.model.framework
        is_method = isinstance(call.func, cst.Attribute) and framework is not None
        if is_method and lookup.tensor_method(framework or "", name) is not None:
            return None
        return None if self.round.is_stepped_alone else False

    def _is_of_slice(self, part: cst.BaseExpression) -> bool:
        """Whether something is a method, or an item, of what the loss is computed from."""
        bound = self.model.reaching(part.value) if isinstance(part, (cst.Attribute, cst.Subscript)) else ()
        return bool(bound) and all(id(binding) in self.bindings for binding in bound)

    def _bound(self, statement: cst.CSTNode) -> list[Binding] | None:
        """The names that a statement binds; ``None`` when it stores the thing elsewhere."""
        if isinstance(statement, cst.NamedExpr):
            return None
        assert isinstance(statement, (cst.Assign, cst.AugAssign, cst.AnnAssign))
        targets = [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else []
        if not isinstance(statement, cst.Assign):
            targets.append(statement.target)
        if not all(is_of_names(target) or self._is_of_slice(target) for target in targets):
            total = None if isinstance(statement, cst.AnnAssign) else augmented(self.model, statement)
            if total is not None and not total.needs_graph:
                return []  # a sum for a report
            if not self.round.is_stepped_alone and (self.round.loop is not None or not self._walks_apart):
                return None
        return list(bound_by(self.model, statement))

    def _handed_back(self, node: cst.CSTNode) -> list[Binding] | None:
        """Nothing for a closure that an optimizer calls, or where all callers only look at the value of the loss."""
        function = self.scope.node
        if not isinstance(node, cst.Return) or not isinstance(function, cst.FunctionDef):
            return None
        handed = [
            name
            for name in self.model.names_by_word.get(function.name.value, ())
            if name is not function.name and not isinstance(self.model.tree.parent(name), cst.Attribute)
        ]
        if handed and all(self._is_closure(name) for name in handed):
            return []
        info = self.model.function_info(function)
        calls = [] if is_passed_around(self.model, info) else calls_of(self.model, info)
        return [] if calls and all(is_only_looked_at(self.model, call) for call, _ in calls) else None

    def _is_closure(self, name: cst.Name) -> bool:
        arg = self.model.tree.parent(name)
        call = None if arg is None else self.model.tree.parent(arg)
        return (
            isinstance(arg, cst.Arg)
            and isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "step"
        )


def _is_told(arg: cst.Arg) -> bool:
    """Whether an argument tells how to compute, and is no part of what is computed: ``size=shape``."""
    return arg.keyword is not None and arg.keyword.value in _OPTIONS


def _expressions(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The expressions directly in one, behind the nodes for indexes."""
    found: list[cst.CSTNode] = []
    for child in children(node):
        if isinstance(child, (cst.SubscriptElement, cst.Index, cst.Slice)):
            found += _expressions(child)
        elif isinstance(child, cst.BaseExpression) and string_literal(child) is None:
            found.append(child)
    return found
