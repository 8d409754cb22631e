"""Where the graph of a loss is cut on the way to ``backward()``.

Followed backwards from the call: through names, branches, factors, sums, methods that keep the graph, and functions of
the project, to the expression that made the tensor anew. A gradient that arrives there goes no further.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.graph.data_sources import hangs_on_nothing, is_of_data
from mllint.semantic.graph.given_graphs import called_by
from mllint.semantic.graph.gradients import may_be_switched_on_in
from mllint.semantic.graph.leaves import is_copy_of_leaf
from mllint.semantic.graph.lost_leaves import is_given_to_optimizer
from mllint.semantic.graph.taken_off import MAKERS, adds_loss, computes_alone, computes_loss, is_computed, taken_off
from mllint.semantic.names.conditions import exclude_each_other, is_above
from mllint.semantic.names.scopes import Binding, BindingKind, assigned, only_assigned
from mllint.semantic.names.uses import calls_of_path, reads
from mllint.semantic.values import Function, Module, Number, Output, Symbol, Tensor
from mllint.syntax.shape import argument, constant, dotted_path, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 12
"""How many names and functions are followed back from a ``backward()``."""
# Methods through which a gradient passes and that compute nothing with another tensor.
PASSING = frozenset({
    "sum", "mean", "to", "cuda", "cpu", "float", "double", "half", "squeeze", "view", "reshape", "clone", "contiguous",
    "requires_grad_", "unsqueeze", "flatten", "astype", "cast",
})  # fmt: skip
# What is done with a tensor whose own gradient is wanted.
_LEAF_USES = frozenset({"grad", "register_hook", "retain_grad", "retain_grads", "gradient"})


class Cut(msgspec.Struct, frozen=True):
    """An expression (or the statement that sets a flag) behind which no gradient gets.

    ``way`` is how it is written, for the message. ``needs_gradient``: the new tensor needs one itself, so that
    ``backward()`` is silent in torch as well. ``source``: what the tensor is made of; ``of_output``: of an output, of
    which a loss is computed then. ``within``: the function of another file in which the place is, where ``node`` is the
    call of it. ``of_anything``: nothing is known of what is cut, but that the ``backward()`` gets nothing else.
    """

    node: cst.CSTNode
    way: str
    framework: str
    needs_gradient: bool
    source: cst.BaseExpression | None = None
    of_output: bool = False
    within: str | None = None
    of_anything: bool = False


class Cuts:
    """Follows the operand of one ``backward()`` back."""

    def __init__(self, model: "Model", paddle_data_cuts: bool) -> None:
        self.model = model
        self.paddle_data_cuts = paddle_data_cuts
        self._seen: set[int] = set()
        self._backward: cst.Call | None = None

    def of_backward(self, call: cst.Call) -> list[Cut]:
        """The cuts on the way to a call of ``backward()``; empty where some gradient may get through."""
        operand = operand_of(call)
        if operand is None or self.model.gradients.off(call) is not False:
            return []
        self._backward = call
        # A new leaf of nobody knows what may be one whose own gradient is wanted.
        return [cut for cut in self._follow(operand) if not (cut.of_anything and cut.needs_gradient)]

    def _follow(self, node: cst.BaseExpression) -> list[Cut]:
        if len(self._seen) >= MAX_STEPS or id(node) in self._seen:
            return []
        self._seen.add(id(node))
        match node:
            case cst.BinaryOperation():
                return self._arithmetic(node)
            case cst.Call():
                return self._call(node)
            case cst.Attribute() if node.attr.value == "data" and self._is_tensor(node.value):
                framework, is_loss = self._framework(node.value), self._is_loss(node.value)
                if framework is None or (framework == "paddle" and not self.paddle_data_cuts):
                    return []
                return [Cut(node, ".data", framework, False, node.value, of_anything=not is_loss)]
            case cst.Name() | cst.Attribute():
                return self._name(node)
            case cst.ListComp() if isinstance(self.model.tree.parent(node), (cst.Return, cst.Arg)):
                # A list that has a name may grow; who asks for gradients may want those of its elements.
                return [] if "grad" in self.model.names_by_word else self._follow(node.elt)
            case cst.Subscript() if string_literal(subscript_index(node)) is None:  # not `graph.data["x"]`: no tensor
                return self._follow(node.value)
        return []

    # -- expressions -----------------------------------------------------------------------------------------------

    def _arithmetic(self, node: cst.BinaryOperation) -> list[Cut]:
        """All parts of a sum must be cut; of a product with a number the other factor."""
        if not isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)):
            return []
        sides = [side for side in (node.left, node.right) if not isinstance(self.model.value(side), Number)]
        found = [self._follow(side) for side in sides]
        if not all(found):
            # The other part learns. `detach()` is meant here; a new leaf is not.
            return [cut for cuts in found for cut in cuts if cut.needs_gradient and self._had_graph(cut)]
        return [cut for cuts in found for cut in cuts]

    def _call(self, call: cst.Call) -> list[Cut]:
        callee = self.model.value(call.func)
        if isinstance(callee, Symbol):
            return self._made(call, callee.name) or self._of_inputs(call, lookup.function(callee.name))
        if isinstance(callee, Function):
            return self._returned(callee.definition, call)
        if isinstance(callee, Module) and callee.definition is not None and not callee.wrappers:
            forward = callee.definition.called
            return [] if forward is None else self._returned(forward, call)
        if isinstance(callee, Module) and callee.name is not None:
            fact = lookup.class_(callee.name)
            return self._of_inputs(call, fact) if fact is not None and fact.kind == "loss" else []
        if self._may_be_criterion(call, callee) and len(call.args) > 1:
            # `loss_of_critic(real, fake.detach())` may compute with weights; an output comes before its target.
            first, apart = call.args[0].value, Cuts(self.model, self.paddle_data_cuts)
            is_criterion = apart._cuts_of_output(first, True) or self._is_without_graph(first, True)
            return self._of_inputs(call, call) if is_criterion else []
        if not isinstance(call.func, cst.Attribute):
            return []
        name, receiver = call.func.attr.value, call.func.value
        if name == "detach" and not call.args and self._is_tensor(receiver):
            framework, is_loss = self._framework(receiver), self._is_loss(receiver)
            if framework is None or is_copy_of_leaf(self.model, receiver):
                return []
            return [Cut(call, ".detach()", framework, False, receiver, of_anything=not is_loss)]
        if name == "scale" and len(call.args) == 1 and not call.args[0].star:
            return self._follow(call.args[0].value)
        if name not in PASSING and not computes_alone(self.model, call):
            return []
        on = constant(call.args[0].value) if call.args else True
        cuts = self._follow(receiver)
        flagged = name == "requires_grad_" and on is True
        return [replace(cut, needs_gradient=True) for cut in cuts] if flagged else cuts

    def _may_be_criterion(self, call: cst.Call, callee: object) -> bool:
        """Whether a call is spelled as that of a loss, and is no method of something that may have weights.

        ``netD.loss(fake.detach(), real)`` computes with those of the network.
        """
        if callee is None and isinstance(call.func, cst.Attribute):
            around = self.model.enclosing_function(call)
            owner = None if around is None else self.model.function_info(around).self_name
            if owner is None or dotted_path(call.func.value) != owner:
                return False
        return (callee is None or isinstance(callee, Module)) and is_called_loss(call)

    def _made(self, call: cst.Call, name: str) -> list[Cut]:
        if name not in MAKERS or not call.args or call.args[0].star or call.args[0].keyword is not None:
            return []
        keyword, needed = MAKERS[name]
        position = {"torch.autograd.Variable": 1, "torch.nn.Parameter": 1, "paddle.to_tensor": 3}.get(name)
        flag = argument(call, position, keyword)
        source = call.args[0].value
        state = constant(flag.value) if flag is not None else name == "torch.nn.Parameter"
        if any(arg.star for arg in call.args) or not isinstance(state, bool) or not is_computed(self.model, source):
            return []
        framework = "paddle" if name.startswith("paddle") else "torch"
        needs = state is needed if flag is not None else state
        if not any(
            isinstance(part, cst.BaseExpression) and self._is_loss(part)
            for part in (*subtree(source), *self._named(call))
        ):
            return []
        return [Cut(call, f"{name.rpartition('.')[2]}()", framework, needs, source)]

    def _of_inputs(self, call: cst.Call, fact: object) -> list[Cut]:
        """What a function of the framework computes of what has lost its graph, and of data, alone."""
        framework = self._framework(call)
        if fact is None or framework is None or self._is_off(call) is not False:
            return []
        is_above, cuts = False, list[Cut]()
        is_loss = len(call.args) > 1 and computes_loss(self.model, call)
        for arg in call.args:
            found = [] if arg.star else self._cuts_of_output(arg.value, is_loss)
            if found:
                cuts += found
                continue
            value = self.model.value(arg.value)
            if arg.star or (isinstance(value, Tensor) and value.leaf) or self._is_made_leaf(arg.value):
                return []
            if self._is_without_graph(arg.value, is_loss):
                is_above = True
            elif not hangs_on_nothing(value) and not is_of_data(self.model, arg.value):
                return []
        return cuts or ([Cut(call, "no_grad() above", framework, False)] if is_above else [])

    def _cuts_of_output(self, node: cst.BaseExpression, is_loss: bool) -> list[Cut]:
        """The cuts on the way to what a model gave: ``torch.tensor(net(x))``, ``output.detach()``.

        What a loss is given may come from a model of which nothing is known: without a graph nobody would detach it.
        """
        if hangs_on_nothing(self.model.value(node)) and not isinstance(node, (cst.Name, cst.Call, cst.Attribute)):
            return []
        if is_loss and (without := self._given_back_without(node)) is not None:
            return [without]
        cuts = [cut for cut in self._follow(node) if cut.source and any(map(self._has_graph, subtree(cut.source)))]
        if cuts:
            return [replace(cut, of_output=True) for cut in cuts]
        off = taken_off(self.model, node) if is_loss else None
        framework = None if off is None else self._framework(off)
        if off is None or framework is None:
            return []
        way = ".data" if isinstance(off, cst.Attribute) else ".detach()"
        return [Cut(off, way, framework, False, off, of_output=True)]

    def _is_made_leaf(self, node: cst.BaseExpression) -> bool:
        """Whether a gradient is asked for of anything in an expression."""
        paths = dict.fromkeys(path for part in subtree(node) if (path := dotted_path(part)) is not None)
        return any(self._is_leaf_of_interest(path, node) or self._is_flagged_by_call(node, path) for path in paths)

    def _is_without_graph(self, node: cst.BaseExpression, is_loss: bool) -> bool:
        """Whether a name surely stands for what was computed under ``no_grad()``.

        A loss is given what a model has computed, also where nothing is known of that.
        """
        bindings = self.model.reaching(node) if isinstance(node, cst.Name) else ()
        return bool(bindings) and all(self._is_computed_without(binding, is_loss) for binding in bindings)

    def _is_computed_without(self, binding: Binding, is_loss: bool) -> bool:
        value = assigned(binding)
        if not isinstance(value, cst.Call) or not self._is_bound_without(binding):
            return False
        made = self.model.value(value)
        if made is None and is_loss and value.args:
            callee = self.model.value(value.func)
            return callee is None or isinstance(callee, Module)
        if isinstance(made, (Tensor, Output)):
            return isinstance(made, Output) or not made.leaf
        name = value.func.attr.value if isinstance(value.func, cst.Attribute) else ""
        fact = None if self.model.framework is None else lookup.tensor_method(self.model.framework, name)
        is_own = isinstance(self.model.value(value.func), Function) or name in self.model.function_names
        return fact is not None and fact.returns == "tensor" and not is_own

    def _given_back_without(self, node: cst.BaseExpression) -> Cut | None:
        """What the forward pass of a module computes under ``no_grad()`` and gives back, whatever it is given."""
        made = only_assigned(self.model, node) if isinstance(node, cst.Name) else node
        module = self.model.value(made.func) if isinstance(made, cst.Call) else None
        info = module.definition.called if isinstance(module, Module) and module.definition is not None else None
        if info is None or not info.is_transparent or not info.is_plain or not info.scope.returns:
            return None
        inner = Cuts(info.model, self.paddle_data_cuts)
        values = [statement.value for statement in info.scope.returns]
        is_off = all(value is not None and inner._is_without_graph(value, is_loss=True) for value in values)
        framework = self._framework(node) if is_off and made is not None else None
        return None if framework is None or made is None else Cut(made, "no_grad()", framework, False, within=info.name)

    def _returned(self, info: "FunctionInfo", call: cst.Call) -> list[Cut]:
        """What a function of the project gives back, if every ``return`` gives something that is cut."""
        if not info.is_transparent or not info.is_plain or not info.scope.returns:
            return []
        inner = self if info.model is self.model else Cuts(info.model, self.paddle_data_cuts)
        if inner is not self:
            inner._seen |= self._seen
        found: list[Cut] = []
        for statement in info.scope.returns:
            cuts = [] if statement.value is None else inner._follow(statement.value)
            if not cuts:
                return []
            found += cuts
        if info.model is self.model:
            return found
        return [replace(found[0], node=call, within=found[0].within or info.name, source=None)]

    def _is_off(self, node: cst.CSTNode) -> bool | None:
        """Whether gradients are off at a place, for a call that is made where they are on.

        That others call the function without gradients says nothing of this call.
        """
        off = self.model.gradients.off(node)
        return {"off": True, "untouched": False}.get(self.model.gradients.inside(node)) if off else off

    def _is_bound_without(self, binding: Binding) -> bool:
        """Whether gradients are off where a name is bound, and nothing that is called there switches them on."""
        if self._is_off(binding.node) is not True or binding.value is None:
            return False
        called = (self.model.value(part.func) for part in subtree(binding.value) if isinstance(part, cst.Call))
        return not any(info is not None and may_be_switched_on_in(info.node) for info in map(called_by, called))

    # -- names -----------------------------------------------------------------------------------------------------

    def _name(self, node: cst.Name | cst.Attribute) -> list[Cut]:
        path = dotted_path(node)
        if path is None or self._is_leaf_of_interest(path, node):
            return []
        flag = self._flag(node, path)
        if flag is not None:
            return [flag]
        found: list[Cut] = []
        ways = [self._binding(binding) for binding in self.model.reaching(node) if not self._is_ruled_out(binding)]
        for cuts in ways:
            found += cuts if all(ways) else [cut for cut in cuts if not cut.of_anything]
        if self._is_flagged_by_call(node, path):
            found = [replace(cut, needs_gradient=True) for cut in found]
        return found

    def _is_ruled_out(self, binding: Binding) -> bool:
        """Whether what was bound under a condition never gets to the call of ``backward()``, which has another one."""
        call = self._backward
        return (
            call is not None
            and binding.scope.model is self.model
            and exclude_each_other(self.model, call, binding.node)
        )

    def _binding(self, binding: Binding) -> list[Cut]:
        if binding.path or binding.value is None or is_guarded(self.model, binding.node, binding.key):
            return []
        if binding.kind is BindingKind.AUGMENTED:
            return self._augmented(binding)
        if binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED):
            return []
        if self._is_bound_without(binding) and self._is_computed_loss(binding.value, binding.key):
            framework = self._framework(binding.value)
            return [] if framework is None else [Cut(binding.value, "no_grad()", framework, False, binding.value)]
        return self._follow(binding.value)

    def _augmented(self, binding: Binding) -> list[Cut]:
        statement = binding.node
        assert isinstance(statement, cst.AugAssign)
        if isinstance(self.model.value(statement.value), Number):
            return self._follow(statement.target)
        return []

    def _flag(self, node: cst.Name | cst.Attribute, path: str) -> Cut | None:
        """``loss.requires_grad = True`` before ``loss.backward()``: it raises on a loss that still has its graph."""
        scope = self.model.scope_of(node)
        for flag, value, framework in (("requires_grad", True, "torch"), ("stop_gradient", True, "paddle")):
            if self.model.framework != framework or not is_called_loss(node):
                continue
            reaching = scope.reaching(f"{path}.{flag}", node).bindings
            set_here = [item for item in reaching if item.value is not None and constant(item.value) is value]
            if set_here and not is_guarded(self.model, set_here[0].node, path):
                return Cut(set_here[0].node, f"{flag} = True", framework, True)
        return None

    def _is_flagged_by_call(self, node: cst.BaseExpression, path: str) -> bool:
        """Whether ``loss.requires_grad_()`` or ``loss.requires_grad = True`` stands before the place."""
        scope = self.model.scope_of(node)
        calls = calls_of_path(self.model, f"{path}.requires_grad_")
        if any(self.model.scope_of(call) is scope and is_above(scope, call, node) for call in calls):
            return True
        return bool(scope.reaching(f"{path}.requires_grad", node).bindings)

    # -- what is a loss --------------------------------------------------------------------------------------------

    def _is_loss(self, node: cst.BaseExpression) -> bool:
        """Whether an expression hangs on a graph or is called a loss."""
        if not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BinaryOperation)):
            return False
        if self._has_graph(node) or is_called_loss(node):
            return True
        if not isinstance(node, cst.Name):
            return False
        bindings = self.model.reaching(node)
        if any(item.kind is BindingKind.AUGMENTED and adds_loss(item) for item in bindings):
            return True
        return bool(bindings) and all(
            isinstance(item.value, cst.Call) and is_called_loss(item.value) for item in bindings
        )

    def _is_tensor(self, node: cst.BaseExpression) -> bool:
        """Whether an expression may be a tensor, and surely is none of the project's own objects."""
        value = self.model.value(node)
        if value is not None:
            return isinstance(value, (Tensor, Output)) or self._is_loss(node)
        return self._is_loss(node) or "detach" not in self.model.function_names

    def _named(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The targets of the assignment that an expression, with the methods called on it, is the value of."""
        parent = self.model.tree.parent(call)
        while isinstance(parent, (cst.Attribute, cst.Call)):
            parent = self.model.tree.parent(parent)
        return [item.target for item in parent.targets] if isinstance(parent, cst.Assign) else []

    def _is_computed_loss(self, node: cst.BaseExpression, key: str) -> bool:
        """Whether a loss is computed right here for a name, and not only taken from where it was kept."""
        if isinstance(node, cst.BinaryOperation):
            return self._is_loss(node) or self._is_loss(node.left) or self._is_loss(node.right)
        if not isinstance(node, cst.Call):
            return False
        value, callee = self.model.value(node), self.model.value(node.func)
        is_tensor = isinstance(value, (Tensor, Output)) and isinstance(callee, (Module, Symbol))
        is_named = is_tensor and is_called_loss(cst.Name(key.rpartition(".")[2]))
        return is_named or (is_called_loss(node) and (is_tensor or value is None))

    def _had_graph(self, cut: Cut) -> bool:
        return cut.source is not None and self._has_graph(cut.source)

    def _has_graph(self, node: cst.CSTNode) -> bool:
        value = self.model.value(node) if isinstance(node, cst.BaseExpression) else None
        is_attached = isinstance(value, (Tensor, Output)) and value.attached is True
        return is_attached and not (isinstance(value, Tensor) and value.leaf)

    def _framework(self, node: cst.BaseExpression) -> str | None:
        value = self.model.value(node)
        return value.framework if isinstance(value, (Tensor, Output)) else self.model.framework

    def _is_leaf_of_interest(self, path: str, node: cst.BaseExpression) -> bool:
        """Whether somebody asks for the gradient of the thing itself, or optimizes it; of a name, where it is bound."""
        scope = self.model.scope_of(node)
        within = scope if "." not in path and path in scope.bindings else None
        asked = ("leaf of interest", path if within is None else f"{path} in {id(within)}")
        if asked not in self.model.remembered:
            found = any(map(self._asks_for_gradient, reads(self.model, path, within)))
            self.model.remembered[asked] = found
        return bool(self.model.remembered[asked])

    def _asks_for_gradient(self, node: cst.BaseExpression) -> bool:
        parent = self.model.tree.parent(node)
        if isinstance(parent, cst.Attribute):
            return parent.value is node and parent.attr.value in _LEAF_USES
        return is_given_to_optimizer(self.model, node)


def is_guarded(model: "Model", node: cst.CSTNode, key: str) -> bool:
    """Whether a branch that asks about the tensor holds a place: a number is wrapped there, or what has no graph."""
    words = {key.partition(".")[0], "requires_grad", "grad_fn", "isinstance", "is_tensor", "training"}
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            return False
        if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
            asked = (part.value for part in subtree(ancestor.test) if isinstance(part, cst.Name))
            if not words.isdisjoint(asked):
                return True
        if isinstance(ancestor, cst.ExceptHandler):
            return True
        child = ancestor
    return False


def remade(model: "Model") -> Iterator[Cut]:
    """The losses that are wrapped into new leaves, whoever calls ``backward()`` on them."""
    for word, framework in (("tensor", "torch"), ("Variable", "torch"), ("to_tensor", "paddle")):
        for call in model.calls_by_word.get(word, ()):
            source = call.args[0].value if call.args else None
            value = None if source is None else model.value(source)
            if source is None or not isinstance(value, Tensor) or value.attached is not True or value.leaf:
                continue
            if is_guarded(model, call, dotted_path(source) or ""):
                continue
            if value.scalar is True or value.one_element:
                cuts = Cuts(model, False)._follow(call)
                yield from (cut for cut in cuts if cut.needs_gradient and cut.framework == framework)


def returned_by_steps(model: "Model") -> Iterator[Cut]:
    """What a ``training_step`` gives to a trainer that calls ``backward()`` on it."""
    if "manual_backward" in model.calls_by_word or "automatic_optimization" in model.names_by_word:
        return
    for function in model.tree.by_type.get(cst.FunctionDef, ()):
        if function.name.value == "training_step" and model.function_info(function).owner is not None:
            for statement in model.function_info(function).scope.returns:
                if statement.value is not None:
                    cuts = Cuts(model, False)._follow(_entry(statement.value))
                    yield from (cut for cut in cuts if cut.needs_gradient and cut.framework == "torch")


def _entry(node: cst.BaseExpression) -> cst.BaseExpression:
    """The loss in ``{"loss": loss, "log": log}``."""
    for element in node.elements if isinstance(node, cst.Dict) else ():
        if isinstance(element, cst.DictElement) and string_literal(element.key) == "loss":
            return element.value
    return node


def operand_of(call: cst.Call) -> cst.BaseExpression | None:
    """What ``backward()`` is called on, or what ``accelerator.backward(loss)`` is given."""
    if not isinstance(call.func, cst.Attribute):
        return None
    positional = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if len(positional) == 1 and is_called_loss(positional[0]) and not is_called_loss(call.func.value):
        return positional[0]
    return call.func.value if not positional and not any(arg.star for arg in call.args) else None
