"""Where gradients are switched off: contexts, decorators, switches, and functions that are only called from there, or
kept by somebody, so that it is not seen.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import takes
from mllint.semantic.graph.dependence import returns_graph_of
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import is_statement, whole
from mllint.semantic.values import ClassObject, Function, Instance, Method, Module, Value
from mllint.syntax.shape import called_on, constant, fingerprint, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SWITCHES = frozenset({
    "torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled",
    "paddle.set_grad_enabled", "torch._C._set_grad_enabled", "paddle.fluid.dygraph.base._switch_tracer_mode_guard_",
    "paddle.base.dygraph.base._switch_tracer_mode_guard_",
})  # fmt: skip
_ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad", "paddle.enable_grad"})
_ASKING = "is_grad_enabled"
_QUESTIONS = frozenset({"torch.is_grad_enabled", "paddle.is_grad_enabled"})
_WORDS = frozenset({
    "no_grad", "inference_mode", "set_grad_enabled", "enable_grad", "no_grad_", "_switch_tracer_mode_guard_",
    "enter_context",
})  # fmt: skip
_SWITCHING_ON = frozenset({"enable_grad", "set_grad_enabled", "_set_grad_enabled"})
# Trainers of other frameworks call these under no_grad themselves.
_HOOKS_WITHOUT_GRADIENTS = frozenset({
    "validation_step", "test_step", "predict_step", "validation_epoch_end", "test_epoch_end",
    "on_validation_epoch_end", "on_test_epoch_end",
})  # fmt: skip


_WALKING = ("backward", "manual_backward")
_CONTEXTS = (cst.Call, cst.IfExp, cst.Attribute)
Truth = Callable[[cst.BaseExpression], bool | None]


class Gradients:
    """Answers whether a place is certain to run with gradients switched off."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._functions: dict[int, bool | None] = {}
        self._carried: dict[tuple[int, tuple[int, ...]], bool] = {}

    def off(self, node: cst.CSTNode) -> bool | None:
        """``True``: surely off. ``False``: nothing switches them off. ``None``: it depends on something unknown."""
        asks = _ASKING in self.model.calls_by_word
        for ancestor in self.model.tree.ancestors(node):
            kind = ancestor.__class__  # `isinstance` of an abstract class is slow
            if kind is cst.With or (kind is cst.If and asks):
                assert isinstance(ancestor, (cst.With, cst.If))
                state = self._with(ancestor, node) if isinstance(ancestor, cst.With) else self._branch(ancestor, node)
                if state == "unknown" and isinstance(ancestor, cst.With):
                    state = self._switched_by_test(ancestor, node)
                if state != "untouched":
                    return {"off": True, "on": False}.get(state)
            elif kind is cst.FunctionDef:
                assert isinstance(ancestor, cst.FunctionDef)
                return self._function(ancestor)
        return self._switched(self.model.tree.module)

    def _switched_by_test(self, statement: cst.With, node: cst.CSTNode) -> str:
        """What ``with set_grad_enabled(phase == "train"):`` does at a place: what the same test says there.

        Somebody who walks the graph of what is computed inside has one: it is ``on`` in the rounds that matter.
        """
        context = statement.items[0].item if len(statement.items) == 1 else None
        name = self.model.qualified_name(context.func) if isinstance(context, cst.Call) else None
        if name not in _SWITCHES or not isinstance(context, cst.Call):
            return "unknown"
        test = fingerprint(context.args[0].value)
        told = [is_true for other, is_true in verdicts(self.model, node) if fingerprint(other) == test]
        if told:
            return "on" if told[0] else "off"
        around = self.model.tree.nearest(statement, cst.FunctionDef, cst.Module)
        walks = (call for word in _WALKING for call in self.model.calls_by_word.get(word, ()))
        is_walked = any(
            self.model.tree.is_inside(call, statement.body)
            or (
                self.model.tree.nearest(call, cst.FunctionDef, cst.Module) is around
                and any(is_true and fingerprint(other) == test for other, is_true in verdicts(self.model, call))
            )
            for call in walks
        )
        return "on" if is_walked else "unknown"

    @staticmethod
    def are_spoken_of(body: cst.CSTNode) -> bool:
        """Whether a word that switches gradients on or off stands somewhere in a body."""
        return any(node.value in _WORDS for node in subtree(body) if node.__class__ is cst.Name)

    def carries(self, info: FunctionInfo, parameter: cst.Param, part: tuple[int, ...]) -> bool:
        """Whether a part of what a function of this file returns surely carries the graph of what it is given.

        So it does wherever its caller has gradients on.
        """
        key = (id(parameter), part)
        if key not in self._carried:
            self._carried[key] = False  # what it calls may lead here again
            self._carried[key] = not self.are_spoken_of(info.node) and returns_graph_of(info, parameter, part)
        return self._carried[key]

    def inside(self, node: cst.CSTNode, truth: "Truth | None" = None) -> str:
        """What its own function, or file, does to gradients at a place: ``off``, ``on``, ``unknown`` or ``untouched``.

        Unlike ``off`` it does not ask who calls the function, and takes no context that it cannot look into for one
        that leaves gradients alone: but where one around it switches them off, none is there to switch them on again.
        ``truth`` knows what tests come out as: ``set_grad_enabled(phase == "train")``.
        """
        unknown = False
        for state in self._states_around(node, truth):
            if state == "off":
                return state
            if state == "on":
                return "unknown" if unknown else state
            unknown = True
        return "unknown" if unknown else "untouched"

    def _states_around(self, node: cst.CSTNode, truth: "Truth | None") -> Iterator[str]:
        """What each context, branch and decorator around a place in its function does to gradients, but nothing."""
        asks = _ASKING in self.model.calls_by_word
        states: Iterable[str]
        for ancestor in self.model.tree.ancestors(node):
            if asks and isinstance(ancestor, cst.If):
                states = (self._branch(ancestor, node),)
            elif isinstance(ancestor, cst.With):
                around = (item.item for item in reversed(ancestor.items) if item.item is not node)
                states = (self._looked_into(context, truth=truth) for context in around)
            elif isinstance(ancestor, cst.FunctionDef):
                decorators = (item.decorator for item in ancestor.decorators)
                states = (self._looked_into(item, is_decorator=True) for item in decorators)
            else:
                continue
            yield from (state for state in states if state != "untouched")
            if isinstance(ancestor, cst.FunctionDef):
                if self._switched(ancestor):
                    yield "unknown"
                return
        if self._switched(self.model.tree.module):
            yield "off"

    def _looked_into(
        self, context: cst.BaseExpression, is_decorator: bool = False, truth: "Truth | None" = None
    ) -> str:
        """What a context, or decorator, does to gradients, its function or the name it is bound to looked into."""
        state = self._context(context, truth)
        if state != "untouched":
            return state
        if isinstance(context, cst.IfExp):
            states = {self._looked_into(part, truth=truth) for part in (context.body, context.orelse)}
            return states.pop() if len(states) == 1 else "unknown"
        target = context.func if isinstance(context, cst.Call) else context
        value = self.model.value(target)
        if isinstance(value, Function):
            return "unknown" if self.are_spoken_of(value.definition.node) else "untouched"
        if value is not None:
            return "untouched"
        if isinstance(context, cst.Name):
            bindings = self.model.reaching(context)
            made = [binding.value for binding in bindings if binding.value is not None and not binding.path]
            states = {
                self._looked_into(item, truth=truth) if isinstance(item, (cst.Call, cst.IfExp)) else "unknown"
                for item in made
            }
            return states.pop() if len(states) == 1 and len(made) == len(bindings) else "unknown"
        # `@app.command()` registers a function; `with self.context():` may do anything.
        return "untouched" if is_decorator and isinstance(target, cst.Attribute) else "unknown"

    def _with(self, statement: cst.With, node: cst.CSTNode) -> str:
        for item in reversed(statement.items):
            context = item.item
            if context is node:
                continue
            state = self._context(context)
            if state != "untouched":
                return state
        return "untouched"

    def _branch(self, statement: cst.If, node: cst.CSTNode) -> str:
        """What is known of gradients at a place in ``if torch.is_grad_enabled():``, or behind its ``else``."""
        test = statement.test
        is_on = not isinstance(test, cst.UnaryOperation)
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test = test.expression
        made = [item.value for item in self.model.reaching(test)] if isinstance(test, cst.Name) else [test]
        asked = made[0] if len(made) == 1 else None
        if not isinstance(asked, cst.Call) or self.model.qualified_name(asked.func) not in _QUESTIONS:
            return "untouched"
        if self.model.tree.is_inside(node, statement.body):
            return "on" if is_on else "off"
        is_behind = statement.orelse is not None and self.model.tree.is_inside(node, statement.orelse)
        return "untouched" if not is_behind else "off" if is_on else "on"

    def _context(self, context: cst.BaseExpression, truth: "Truth | None" = None) -> str:
        """What entering a context does to gradients: ``off``, ``on``, ``unknown`` or ``untouched``."""
        target = context.func if isinstance(context, cst.Call) else context
        name = self.model.qualified_name(target)
        if name is None:
            if isinstance(context, cst.IfExp):
                return self._conditional(context, truth)
            # One context or another may switch anything; one of the project does where it speaks of gradients.
            if isinstance(context, cst.BooleanOperation) or self._may_switch(target):
                return "unknown"
            if target is context:
                return self._held(target, truth)
            return self._bound(target, truth) if isinstance(target, cst.Name) else "untouched"
        if name in _SWITCHES and isinstance(context, cst.Call) and context.args:
            value = constant(context.args[0].value)
            value = truth(context.args[0].value) if value is ... and truth is not None else value
            return "off" if value is False else "on" if value is True else "unknown"
        if name in _ON:
            return "on"
        if lookup.is_grad_off_context(name):
            return "off"
        # What another library calls so, which may hand on that of the framework, can do nothing else.
        is_foreign = last_word(target) in _WORDS and lookup.framework_of(name) is None
        return "unknown" if is_foreign else "untouched"

    def _conditional(self, context: cst.IfExp, truth: "Truth | None") -> str:
        """What one context or another does, where it is known which is entered. Otherwise it may switch anything."""
        test = None if truth is None else truth(context.test)
        if test is not None:
            return self._context(context.body if test else context.orelse, truth)
        parts = (context.body, context.orelse)
        states = {self._context(part, truth) for part in parts}
        is_known = all(self.model.qualified_name(part.func if isinstance(part, cst.Call) else part) for part in parts)
        return states.pop() if len(states) == 1 and is_known else "unknown"

    def _held(self, context: cst.BaseExpression, truth: "Truth | None") -> str:
        """What a context does that was made before, ``with guard:``: not known, unless it is known how it was made."""
        bindings: Iterable[Binding] = ()
        if isinstance(context, cst.Name):
            bindings = self.model.reaching(context)
        elif isinstance(context, cst.Attribute):
            method = method_of_receiver(self.model, context.value)
            owner = None if method is None else method.owner
            bindings = () if owner is None else tuple(owner.assignments(context.attr.value))
        if all(binding.value is None for binding in bindings):
            return "unknown" if self.model.value(context) is None else "untouched"
        states = {binding.scope.model.gradients._made(binding, truth) for binding in bindings}
        return states.pop() if len(states) == 1 else "unknown"

    def _made(self, binding: Binding, truth: "Truth | None") -> str:
        """What a context does that is bound somewhere in the file."""
        made = binding.value
        parts = [made.body, made.orelse] if isinstance(made, cst.IfExp) else [made]
        if binding.path or made is None or not all(part is not None and self._is_understood(part) for part in parts):
            return "unknown"
        return self._context(made, truth)

    def _is_understood(self, context: cst.BaseExpression) -> bool:
        if isinstance(context, cst.Call):
            return self.model.value(context.func) is not None
        return self.model.qualified_name(context) is not None

    def _bound(self, name: cst.Name, truth: "Truth | None") -> str:
        """What a context does that was bound to a name before, or what gives it: ``context = torch.no_grad``."""
        made = [binding.value for binding in self.model.reaching(name) if not binding.path]
        states = {self._context(value, truth) for value in made if isinstance(value, _CONTEXTS)}
        if len(made) == 1 and len(states) == 1:
            return states.pop()
        return "unknown" if states - {"untouched"} else "untouched"

    def _may_switch(self, target: cst.BaseExpression) -> bool:
        """Whether a function or class of the project says something of gradients: it may switch them as a context, as
        may what is made of it.

        Or something by a name for it, of a module that is not known: what ``torch`` is, a ``*`` may have imported.
        """
        if last_word(target) in _WORDS:
            return True
        value = self.model.value(target)
        if isinstance(value, Function):
            return self.are_spoken_of(value.definition.node.body)
        if not isinstance(value, (ClassObject, Instance)):
            return False
        classes = value.definition.lineage
        return value.definition.has_unknown_base or any(self.are_spoken_of(item.node.body) for item in classes)

    def _function(self, function: cst.FunctionDef) -> bool | None:
        key = id(function)
        if key not in self._functions:
            self._functions[key] = None  # a function that calls itself says nothing about its callers
            self._functions[key] = self._derive_function(function)
        return self._functions[key]

    def _derive_function(self, function: cst.FunctionDef) -> bool | None:
        for decorator in function.decorators:
            state = self._context(decorator.decorator)
            if state != "untouched":
                return {"off": True, "on": False}.get(state)
        if self._switched(function):
            return None
        info = self.model.function_info(function)
        if info.owner is not None and info.name in _HOOKS_WITHOUT_GRADIENTS:
            return None
        return self._from_callers(function)

    def _from_callers(self, function: cst.FunctionDef) -> bool | None:
        outer = self.model.enclosing_function(function)
        if outer is not None and self._function(outer) is not False:
            return self._function(outer)
        info = self.model.function_info(function)
        states = set()
        for call in self.model.calls_by_word.get(info.name, ()):
            # `optimizer.step()` is no call of a function `step`, and `model.train()` in `train` says nothing of it.
            is_other = info.owner is None and isinstance(call.func, cst.Attribute)
            if is_other or self.model.enclosing_function(call) is function or not takes(info, call):
                continue
            callee = self.model.value(call.func)
            if callee is None or (isinstance(callee, Function) and callee.definition is info):
                states.add(self.off(call))
            elif _is_of_some_module(callee, info) and self.off(call):
                states.add(None)  # it may be this method: that gradients are on is not certain
        if info.owner is not None:
            states.update(_under_bases(info.owner, info.name))
        if info.owner is not None and info.owner.called is info and isinstance(info.owner.instance(), Module):
            return False  # whoever trains the module calls that, and not its `forward` by name
        if states == {True}:
            return True
        return None if states & {True, None} else False

    def _switched(self, holder: cst.CSTNode) -> bool:
        """Whether a statement in this very body switches gradients off, or to something that is not known.

        ``set_grad_enabled(False)``, or ``no_grad().__enter__()``; in a function also the call of another one of the
        file with such a statement. What a file calls at its outside may do so at its very end. What a stack of contexts
        enters, ``stack.enter_context(no_grad())``, it leaves again.
        """
        return (
            id(holder) in self._stacking
            or id(holder) in self._switching
            or (
                isinstance(holder, cst.FunctionDef)
                and any(
                    isinstance(function, cst.FunctionDef) and self._is_called_in(function, holder)
                    for function in self._switching.values()
                )
            )
        )

    def _is_called_in(self, function: cst.FunctionDef, holder: cst.CSTNode) -> bool:
        calls = self.model.calls_by_word.get(function.name.value, ())
        for call in (item for item in calls if is_statement(self.model, item)):
            called = self.model.value(call.func) if self._holder_of(call) is holder else None
            if isinstance(called, Function) and called.definition.node is function:
                return True
        return False

    def _holder_of(self, call: cst.Call) -> cst.CSTNode:
        return self.model.enclosing_function(call) or self.model.tree.module

    @cached_property
    def _switching(self) -> dict[int, cst.CSTNode]:
        """The bodies with such a statement, by their ``id``."""
        found: dict[int, cst.CSTNode] = {}
        for word in ("set_grad_enabled", "_set_grad_enabled", "__enter__"):
            for call in self.model.calls_by_word.get(word, ()):
                entered = call.func.value if isinstance(call.func, cst.Attribute) and word == "__enter__" else call
                if is_statement(self.model, call) and self._context(entered) in ("off", "unknown"):
                    found[id(self._holder_of(call))] = self._holder_of(call)
        return found

    @cached_property
    def _stacking(self) -> frozenset[int]:
        """The ids of the bodies in which a stack enters such a context."""
        calls = (call for call in self.model.calls_by_word.get("enter_context", ()) if call.args)
        return frozenset(
            id(self._holder_of(call)) for call in calls if self._context(call.args[0].value) in ("off", "unknown")
        )


def _under_bases(owner: ClassInfo, method: str) -> Iterator[bool | None]:
    """Whether gradients are off where the classes of the project above one call a method of their own object."""
    for base in owner.lineage:
        for call in base.model.calls_by_word.get(method, ()) if base is not owner else ():
            receiver = called_on(call)
            caller = None if receiver is None else method_of_receiver(base.model, receiver)
            if caller is not None and caller.owner is base:
                state = base.model.gradients.inside(call)
                yield base.model.gradients.off(call) if state == "untouched" else {"off": True, "on": False}.get(state)


def may_be_switched_on_in(function: cst.FunctionDef) -> bool:
    """Whether a function may record a graph wherever it is called: ``@enable_grad()``, or a context in its body."""
    return any(node.value in _SWITCHING_ON for node in subtree(function) if isinstance(node, cst.Name))


def _is_of_some_module(callee: Value, info: FunctionInfo) -> bool:
    """Whether a method of some module or other is called: it may be that of any class."""
    holder = callee.receiver if isinstance(callee, Method) else None
    return info.owner is not None and isinstance(holder, Module) and holder.is_only_some


_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_HOLDERS = (cst.Element, cst.DictElement, cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.Param, cst.Return, cst.Yield)


def has_callers_out_of_sight(function: "FunctionInfo") -> bool:
    """Whether a function, or one of its file that calls it, is kept: in a table, or by what is not known."""
    model, pending, seen = function.model, [function], {function}
    while pending:
        for node in _mentions(pending.pop()):
            is_called = model.tree.call_of(node) is not None
            holders = model.tree.ancestors(node)
            caller = next((it for it in holders if isinstance(it, _FUNCTIONS)), None) if is_called else node
            if isinstance(caller, cst.BaseExpression) and _is_kept(model, caller):
                return True
            if isinstance(caller, cst.FunctionDef) and (calling := model.function_info(caller)) not in seen:
                pending.append(calling)
                seen.add(calling)
    return False


def _mentions(function: "FunctionInfo") -> Iterator[cst.BaseExpression]:
    """Where its file reads a function, by its name or as an attribute."""
    model = function.model
    for name in model.names_by_word.get(function.name, ()):
        if not isinstance(model.tree.parent(name), cst.FunctionDef):
            node = whole(model, name)
            value = model.value(node)
            if isinstance(value, Function) and value.definition is function:
                yield node


def _is_kept(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function is put, where it is not called, to where somebody else may find it."""
    parent = model.tree.parent(node)
    while isinstance(parent, (cst.IfExp, cst.BooleanOperation)):
        parent = model.tree.parent(parent)
    if not isinstance(parent, cst.Arg):
        return isinstance(parent, _HOLDERS)
    call = model.tree.parent(parent)
    if not isinstance(call, cst.Call) or last_word(call.func) == "apply":
        return False  # run there and then, with each module
    name = model.qualified_name(call.func)
    if name is not None and (name == "functools.partial" or lookup.wrapper(name) is not None):
        return _is_kept(model, call)
    callee = model.value(call.func)
    if isinstance(callee, Function):
        return model.gradients.are_spoken_of(callee.definition.node)
    return callee is None and name is None
