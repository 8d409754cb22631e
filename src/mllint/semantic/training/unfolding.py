"""From statements to steps: the events of a body in the order in which they happen, calls of the project followed."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import libcst as cst

from mllint.semantic import flow
from mllint.semantic.events.entered import receiver_of
from mllint.semantic.events.given import literal_rounds, truth
from mllint.semantic.events.kinds import kind_of
from mllint.semantic.events.manual import rounds_of_trainer
from mllint.semantic.events.steps import (
    Around,
    Attempt,
    Branches,
    Event,
    Helper,
    Kind,
    Leave,
    Loop,
    Round,
    Step,
    Within,
)
from mllint.semantic.events.things import Frame, Named
from mllint.semantic.names.conditions import ends_program
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.training.kept_calls import Kept, Wrapped, can_be_entered, filled, kept_call, wrapping_of
from mllint.semantic.training.made_in_mode import may_switch
from mllint.semantic.training.outputs import comes_from
from mllint.semantic.training.passes_out_of_sight import is_pass_out_of_sight
from mllint.semantic.training.relevance import calls_what_matters, is_pass, matters, names_event
from mllint.semantic.training.touched import is_of_any_name, touched
from mllint.semantic.values import (
    ClassObject,
    Function,
    Instance,
    Method,
    Module,
    Value,
    as_called,
    functions_of,
    own_method,
)
from mllint.syntax.shape import called_on, constant, is_main_guard, is_super_call
from mllint.syntax.walk import children, subtree

_MAX_DEPTH = 7
_MAX_EVENTS = 1_500


def unfold(frame: Frame) -> tuple[list[Step], bool]:
    """The steps of the body that a frame runs, and whether there was more of them than is followed."""
    unfolding = _Unfolding()
    body = frame.model.tree.module if frame.function is None else frame.function.node
    rounds = rounds_of_trainer(frame)
    steps = unfolding.body(body, frame, () if rounds is None else (Around(rounds),))
    if rounds is not None:
        rounds.body = steps
        steps = [rounds]
    if frame.function is not None and wrapping_of(frame.function) is not None:  # whoever calls it, by the decorator
        steps.insert(0, Event(Kind.SET_MODE, frame.function.node, frame, None, None, False, ()))
    return steps, unfolding.is_cut


_Way = Callable[[tuple[Around, ...]], list[Step]]


class _Unfolding:
    """One run while it is being unfolded."""

    def __init__(self) -> None:
        self.is_cut = False
        self._events = 0
        self._wrapped: dict[Frame, Wrapped] = {}
        """Which function the run of a decorator's wrapper calls, and how."""
        self._entered: list[Kept] = []

    def body(self, node: cst.Module | cst.FunctionDef, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        suite: cst.CSTNode = node if isinstance(node, cst.Module) else node.body
        return self._suite(getattr(suite, "body", ()), frame, around)

    # -- statements ----------------------------------------------------------------------------------------------------

    def _suite(self, statements: Iterable[cst.CSTNode], frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        steps: list[Step] = []
        for statement in statements:
            if statement.__class__ is cst.SimpleStatementLine:
                for small in statement.body:
                    steps += self._small(small, frame, around)
            elif (unfold_it := _COMPOUND.get(statement.__class__)) is not None:
                steps += unfold_it(self, statement, frame, around)
            elif isinstance(statement, cst.BaseSmallStatement):  # of `if test: statement`
                steps += self._small(statement, frame, around)
            if steps and _leaves(steps[-1]):
                break
        return steps

    def _small(self, statement: cst.CSTNode, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        kind = type(statement)
        seen = flow.read_statement(frame, statement)
        if seen is not None:
            return [self._event(seen, statement, frame, around)]
        steps: list[Step] = []
        if kind is cst.Assign or kind is cst.AnnAssign:
            value = statement.value  # type: ignore[attr-defined]
            steps += [] if value is None else self._expression(value, frame, around)
        elif kind not in _WITHOUT_EVENTS:
            for child in children(statement):
                steps += self._expression(child, frame, around)
        word = "raise" if ends_program(statement) else _LEAVING.get(kind)
        return steps if word is None else [*steps, Leave(word)]

    def _for(self, node: cst.For, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        rounds = literal_rounds(frame, node)
        if rounds:
            bodies = [self._suite(node.body.body, item, around) for item in rounds]
            return [Round(body) for body in bodies if body]
        return [*self._expression(node.iter, frame, around), *self._loop(Loop(node, frame), node, frame, around)]

    def _while(self, node: cst.While, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        always = constant(node.test) in (True, 1)
        loop = Loop(node, frame, runs=always, is_endless=always)
        return [*self._expression(node.test, frame, around), *self._loop(loop, node, frame, around)]

    def _with(self, node: cst.With, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        within = Within(node, frame)
        steps: list[Step] = []
        for item in node.items:
            steps += [*self._expression(item.item, frame, around), *self._managing(item, "__enter__", frame, around)]
        within.body = self._suite(node.body.body, frame, (*around, Around(within)))
        steps += [within] if within.body else []
        left = (self._managing(item, "__exit__", frame, around) for item in reversed(node.items))
        return [*steps, *(step for several in left for step in several)]

    def _managing(self, item: cst.WithItem, word: str, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        """The events of what the project's class of a context does before, or behind, the body."""
        value = frame.value(item.item)
        method = own_method(value, word)
        if method is None:
            return []
        call = frame.model.tree.standing_in(item, word, lambda: cst.Call(cst.Attribute(item.item, cst.Name(word))))
        return self._helper(call, Function(method, value), frame, around)

    def _match(self, node: cst.Match, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        branches = Branches(node, frame)
        arms = [
            self._suite(case.body.body, frame, (*around, Around(branches, arm))) for arm, case in enumerate(node.cases)
        ]
        branches.arms = (*arms, [])
        return [*self._expression(node.subject, frame, around), *_kept(branches)]

    def _if(self, node: cst.If, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        steps = self._expression(node.test, frame, around)
        if is_main_guard(node.test):
            return [*steps, *self._suite(node.body.body, frame, around)]
        ways = partial(self._suite, node.body.body, frame), partial(self._orelse, node, frame)
        return [*steps, *_branching(node, frame, around, ways)]

    def _orelse(self, node: cst.If, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        if isinstance(node.orelse, cst.Else):
            return self._suite(node.orelse.body.body, frame, around)
        return [] if node.orelse is None else self._if(node.orelse, frame, around)

    def _loop(self, loop: Loop, node: cst.For | cst.While, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        loop.body = self._suite(node.body.body, frame, (*around, Around(loop)))
        if node.orelse is not None:
            loop.orelse = self._suite(node.orelse.body.body, frame, around)
        return [loop] if loop.body or loop.orelse else []

    def _try(self, node: cst.Try | cst.TryStar, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        attempt = Attempt(node, frame)
        attempt.body = self._suite(node.body.body, frame, (*around, Around(attempt, 0)))
        handlers: Sequence[cst.ExceptHandler | cst.ExceptStarHandler] = node.handlers
        attempt.handlers = tuple(
            self._suite(handler.body.body, frame, (*around, Around(attempt, arm + 1)))
            for arm, handler in enumerate(handlers)
        )
        if node.orelse is not None:
            attempt.orelse = self._suite(node.orelse.body.body, frame, (*around, Around(attempt, 0)))
        if node.finalbody is not None:
            attempt.final = self._suite(node.finalbody.body.body, frame, around)
        return [attempt]

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _expression(self, node: cst.CSTNode, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        """The events in an expression: what is evaluated first comes first."""
        if not frame.model.tree.holds_call(node):
            return []
        unfold_it = _EXPRESSIONS.get(type(node))
        if unfold_it is not None:
            return unfold_it(self, node, frame, around)
        return [step for child in children(node) for step in self._expression(child, frame, around)]

    def _nothing(self, node: cst.CSTNode, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        return []

    def _of_value(self, node: cst.Attribute | cst.Arg, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        return self._expression(node.value, frame, around)

    def _evaluated_call(self, node: cst.Call, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        steps = [step for part in (node.func, *node.args) for step in self._expression(part, frame, around)]
        return [*steps, *self._call(node, frame, around)]

    def _conditional(self, node: cst.IfExp, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        ways = partial(self._expression, node.body, frame), partial(self._expression, node.orelse, frame)
        return [*self._expression(node.test, frame, around), *_branching(node, frame, around, ways)]

    def _boolean_operation(self, node: cst.BooleanOperation, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        branches = Branches(node, frame)
        branches.arms = (self._expression(node.right, frame, (*around, Around(branches, 0))), [])
        return [*self._expression(node.left, frame, around), *_kept(branches)]

    def _elements(self, node: cst.BaseSimpleComp, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        return self._comprehension(node.for_in, (node.elt,), frame, around)

    def _pairs(self, node: cst.DictComp, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        return self._comprehension(node.for_in, (node.key, node.value), frame, around)

    def _comprehension(
        self, clause: cst.CompFor, made: Sequence[cst.CSTNode], frame: Frame, around: tuple[Around, ...]
    ) -> list[Step]:
        loop = Loop(clause, frame)
        inside = (*around, Around(loop))
        if clause.inner_for_in is not None:
            loop.body = self._comprehension(clause.inner_for_in, made, frame, inside)
        else:
            loop.body = [step for part in made for step in self._expression(part, frame, inside)]
        return [*self._expression(clause.iter, frame, around), *([loop] if loop.body else [])]

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: cst.Call, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        switches = [self._event(seen, call, frame, around) for seen in flow.read_handed(frame, call)]
        if flow.is_about_data(frame.model, call):
            return [*switches]
        return [*switches, *self._called(call, frame, around)]

    def _called(self, call: cst.Call, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        wrapped = self._wrapped.get(frame)
        if wrapped is not None and getattr(call.func, "value", None) == wrapped.name:
            return self._followed(wrapped.call, wrapped.called, wrapped.frame, around)
        seen = flow.read(frame, call)
        if seen is not None:
            closures = self._closures(call, frame, around) if seen.kind in (Kind.STEP, Kind.MINIMIZE) else []
            inside = self._forward(call, frame, around) if seen.kind is Kind.FORWARD else []
            return [*closures, self._event(seen, call, frame, around), *inside]
        value = as_called(_dispatched(call, frame.value(call.func), frame))
        if isinstance(value, ClassObject):
            return self._constructor(call, value.definition, frame, around)
        if isinstance(value, Function):
            return self._helper(call, value, frame, around)
        if len(several := functions_of(value)) > 1:
            branches = Branches(call, frame)
            branches.arms = tuple(
                self._helper(call, function, frame, (*around, Around(branches, arm)))
                for arm, function in enumerate(several)
            )
            return _kept(branches)
        if type(call.func) is cst.Name and (kept := kept_call(frame, call.func)) is not None:
            return self._kept_call(call, kept, frame, around)
        is_pass_of_it = is_pass_out_of_sight(frame, call, value)
        steps = [] if is_pass_of_it or flow.does_nothing(frame, call, value) else self._unknown(call, frame, around)
        if is_pass_of_it or _gives_loss(call, value, frame):
            assert isinstance(call.func, cst.Attribute)
            seen = flow.Seen(Kind.FORWARD, frame.thing(call.func.value), is_proven=False)
            steps.append(self._event(seen, call, frame, around))
        return steps

    def _kept_call(self, call: cst.Call, kept: Kept, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        """The events of a lambda, or of what ``partial`` was given, where a name of it is called."""
        function = filled(frame, call, kept)
        if function is not None:
            return self._followed(call, function[0], frame, around, function[1])
        if kept in self._entered or not can_be_entered(frame, call, kept):
            made = self._unknown(kept.node, kept.frame, around) if isinstance(kept.node, cst.Call) else []
            return [*made, *self._unknown(call, frame, around)]
        self._entered.append(kept)
        steps = self._expression(kept.node.body, kept.frame, around) if isinstance(kept.node, cst.Lambda) else []
        self._entered.pop()
        return steps

    def _forward(self, call: cst.Call, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        """The events of the project's ``forward`` method that the call of a module runs."""
        value = frame.value(call.func)
        forward = own_method(value, "forward") if isinstance(value, Module) else None
        return [] if forward is None else self._helper(call, Function(forward, value), frame, around)

    def _closures(self, call: cst.Call, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        """The events of the function that an optimizer's ``step`` calls first."""
        steps: list[Step] = []
        for arg in call.args:
            value = frame.value(arg.value)
            if isinstance(value, Function):
                steps += self._helper(call, value, frame, around)
        return steps

    def _constructor(
        self, call: cst.Call, definition: ClassInfo, frame: Frame, around: tuple[Around, ...]
    ) -> list[Step]:
        """The events of making an object that is no module: it may switch, or train, what it is given."""
        made, constructor = definition.instance(call), definition.method("__init__")
        if not isinstance(made, Instance) or constructor is None or not names_event(constructor):
            return []
        return self._helper(call, Function(constructor, made), frame, around)

    def _helper(self, call: cst.Call, called: Function, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        """The events of a function of the project, and of what a decorator calls around it."""
        wrapping = wrapping_of(called.definition)
        if wrapping is None or (wrapping.wrapper is not None and frame.runs(wrapping.wrapper)):
            return self._followed(call, called, frame, around)
        if wrapping.wrapper is None:
            unknown = [self._event(flow.Seen(Kind.SET_MODE), call, frame, around) for _ in range(2)]
            return [unknown[0], *self._followed(call, called, frame, around), unknown[1]]
        inner = Frame(wrapping.wrapper.model, wrapping.wrapper, frame, call)
        helper = Helper(call, inner)
        self._wrapped[inner] = Wrapped(wrapping.name, call, called, frame)
        helper.body = self.body(wrapping.wrapper.node, inner, (*around, Around(helper)))
        return [helper]

    def _followed(
        self, call: cst.Call, called: Function, frame: Frame, around: tuple[Around, ...], given: Named | None = None
    ) -> list[Step]:
        function, instance_of = called.definition, _class_of(call, called, frame)
        is_followed = matters(function) or is_pass(called, frame.function)
        if not is_followed and (instance_of is None or not calls_what_matters(function, instance_of)):
            return []
        if frame.runs(function):
            return []
        if frame.depth >= _MAX_DEPTH or self._events > _MAX_EVENTS or not _can_be_followed(function):
            self.is_cut = self.is_cut or self._events > _MAX_EVENTS
            is_hidden = called.receiver is not None and not _can_be_followed(function) and may_switch([function])
            hidden = [self._event(flow.Seen(Kind.SET_MODE), call, frame, around)] if is_hidden else []
            return [*hidden, *self._unknown(call, frame, around)]
        receiver, outer = receiver_of(frame, call, called), function.scope.parent
        around_it = frame.run_of(outer) if outer is not None and outer.is_function else None
        inner = Frame(function.model, function, frame, call, receiver, around_it, instance_of, elements=given or {})
        helper = Helper(call, inner)
        helper.body = self.body(function.node, inner, (*around, Around(helper)))
        return [helper] if helper.body else []

    def _unknown(self, call: cst.Call, frame: Frame, around: tuple[Around, ...]) -> list[Step]:
        if not call.args and not isinstance(call.func, cst.Attribute) and not is_of_any_name(call.func):
            return []
        self._events += 1
        event = Event(Kind.UNKNOWN, call, frame, None, None, False, around)
        event.touching = partial(touched, call, frame)
        return [event]

    def _event(self, seen: "flow.Seen", node: cst.CSTNode, frame: Frame, around: tuple[Around, ...]) -> Event:
        self._events += 1
        return Event(seen.kind, node, frame, seen.thing, seen.other, seen.is_proven, around)


# Tables, since a pattern that does not match costs a call into `abc`, and every statement and expression comes by.
_COMPOUND: dict[type[cst.CSTNode], Callable[[_Unfolding, Any, Frame, tuple[Around, ...]], list[Step]]] = {
    cst.If: _Unfolding._if,
    cst.For: _Unfolding._for,
    cst.While: _Unfolding._while,
    cst.With: _Unfolding._with,
    cst.Try: _Unfolding._try,
    cst.TryStar: _Unfolding._try,
    cst.Match: _Unfolding._match,
}
_EXPRESSIONS: dict[type[cst.CSTNode], Callable[[_Unfolding, Any, Frame, tuple[Around, ...]], list[Step]]] = {
    **dict.fromkeys(
        (
            cst.Name, cst.Lambda, cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.TemplatedString,
            cst.Integer, cst.Float, cst.Imaginary,
        ),
        _Unfolding._nothing,
    ),
    **dict.fromkeys((cst.ListComp, cst.SetComp, cst.GeneratorExp), _Unfolding._elements),
    cst.Attribute: _Unfolding._of_value,
    cst.Arg: _Unfolding._of_value,
    cst.Call: _Unfolding._evaluated_call,
    cst.IfExp: _Unfolding._conditional,
    cst.BooleanOperation: _Unfolding._boolean_operation,
    cst.DictComp: _Unfolding._pairs,
}  # fmt: skip
_WITHOUT_EVENTS = frozenset({cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal, cst.Pass})
_LEAVING: dict[type[cst.CSTNode], str] = {
    cst.Return: "return",
    cst.Break: "break",
    cst.Continue: "continue",
    cst.Raise: "raise",
}


def _leaves(step: Step) -> bool:
    """Whether nothing behind a step is reached: a word leaves there, or what is called always raises."""
    if isinstance(step, Helper):
        last = step.body[-1] if step.body else None
        return (isinstance(last, Leave) and last.word == "raise") or (isinstance(last, Helper) and _leaves(last))
    return isinstance(step, Leave)


def _branching(
    node: cst.If | cst.IfExp, frame: Frame, around: tuple[Around, ...], ways: "tuple[_Way, _Way]"
) -> list[Step]:
    """The steps of the one of two ways that is surely taken; else both, as the arms of a branch."""
    chosen = truth(frame, node.test)
    if chosen is not None:
        return ways[0 if chosen else 1](around)
    branches = Branches(node, frame)
    branches.arms = tuple(way((*around, Around(branches, arm))) for arm, way in enumerate(ways))
    return _kept(branches)


def _kept(branches: Branches) -> list[Step]:
    return [branches] if any(branches.arms) else []


def _can_be_followed(function: FunctionInfo) -> bool:
    """Whether a call runs the body then and there."""
    return function.is_plain or function.node.asynchronous is not None


def _is_own_method(call: cst.Call, frame: Frame) -> bool:
    """``self.method()``."""
    own = None if frame.function is None else frame.function.self_name
    return isinstance(call.func, cst.Attribute) and own is not None and getattr(call.func.value, "value", None) == own


def _dispatched(call: cst.Call, value: Value | None, frame: Frame) -> Value | None:
    """What is called: of ``self.method()`` in a base class the method of the class that the object is of."""
    if frame.instance_of is None or not isinstance(call.func, cst.Attribute) or not _is_own_method(call, frame):
        return value
    method = frame.instance_of.method(call.func.attr.value)
    return value if method is None else Function(method, Instance(frame.instance_of))


def _class_of(call: cst.Call, called: Function, frame: Frame) -> ClassInfo | None:
    """The class of the object whose method is called, where it derives from the one that defines it."""
    is_by_super = is_super_call(called_on(call))
    if frame.instance_of is not None and (_is_own_method(call, frame) or is_by_super):
        return frame.instance_of
    if is_by_super and frame.function is not None and frame.function.owner is not None:
        return frame.function.owner
    definition = called.receiver.definition if isinstance(called.receiver, (Instance, Module)) else None
    return None if definition is called.definition.owner else definition


def _gives_loss(call: cst.Call, value: Value | None, frame: Frame) -> bool:
    """Whether a method of a module that is not known gives a loss, of which its caller computes gradients.

    ``model.compute_loss(batch)`` is a forward pass, then. What a class of the project does not define as a method is
    something that its objects hold: ``self._criterion(output, target)`` says nothing of the rest of it.
    """
    model = frame.model
    if not isinstance(call.func, cst.Attribute) or not call.args or not (value is None or isinstance(value, Method)):
        return False
    function = model.enclosing_function(call)
    losses = [item for item in model.calls_by_word.get("backward", ()) if model.enclosing_function(item) is function]
    called = kind_of(frame, call.func.value) if losses else None
    if called is None or called.kind != "module":
        return False
    holder = frame.value(call.func.value)
    if isinstance(holder, (Instance, Module)) and holder.definition is not None:
        return False
    return any(any(part is call for part in subtree(item)) or comes_from(frame, item, call) for item in losses)
