"""The first factor of a schedule that a function gives: what the function of a ``LambdaLR`` is worth at zero."""

import math
from collections.abc import Callable, Sequence
from typing import cast

import libcst as cst
import msgspec

from mllint.semantic.events.makers import Made, run_of
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.expressions.quantities import (
    IMPOSSIBLE,
    NOT_NEGATIVE,
    POSITIVE,
    UNKNOWN,
    Quantity,
    binary,
    compared,
    either,
    exactly,
    largest,
    negative,
    of_bool,
    rounded,
    smallest,
)
from mllint.semantic.names.definitions import FunctionInfo, function_around
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.values import Function, Options, Symbol, Value
from mllint.syntax.shape import constant, has_star_arguments, items_of, subscript_index

_MAX_STEPS = 40
"""How many functions and names are followed, one within another."""
_NEGLIGIBLE = 1e-3
"""A factor below this is as good as zero: a warm-up may begin with it."""

_Locals = dict[str, Quantity]


class _Given(msgspec.Struct, frozen=True):
    """A function, and the run of the body in which it is written. ``bound``: what ``partial`` gives it."""

    node: cst.Lambda | cst.FunctionDef
    frame: Frame
    bound: tuple[tuple[str, Quantity], ...] = ()


def begins_above_zero(made: Made, node: cst.BaseExpression) -> bool:
    """Whether every function that is given to a scheduler, one or a list of them, is surely not zero at zero."""
    functions = [item for given in items_of(node) for item in _functions(made.frame, given, _MAX_STEPS) or (None,)]
    count = exactly(0, is_count=True)
    return bool(functions) and all(
        item is not None and _is_plain(_called(item, (count,), {}, _MAX_STEPS)) for item in functions
    )


def factors(made: Made, node: cst.BaseExpression) -> list[tuple[Frame, str, cst.CSTNode]] | None:
    """Each function that is given to a scheduler, one or a list of them: the run in which it is written, what it calls
    the number of steps, and its body. ``None`` where one is not known, or counts otherwise.
    """
    found: list[tuple[Frame, str, cst.CSTNode]] = []
    for given in items_of(node):
        functions = _functions(made.frame, given, _MAX_STEPS)
        if functions is None:
            return None
        for item in functions:
            free = [param.name.value for param in item.node.params.params if param.default is None]
            free = [name for name in free if name not in dict(item.bound)]
            if len(free) != 1:
                return None
            found.append((item.frame, free[0], item.node.body))
    return found


def is_above_zero(made: Made, node: cst.BaseExpression) -> bool:
    """Whether a number that is given to a scheduler is surely not zero."""
    return _is_plain(_Body(made.frame, None, _MAX_STEPS).quantity(node))


def _is_plain(found: Quantity) -> bool:
    return found.is_never_zero and (found.number is None or abs(found.number) >= _NEGLIGIBLE)


# -- which function ----------------------------------------------------------------------------------------------------


def _functions(frame: Frame, node: cst.BaseExpression, steps: int) -> list[_Given] | None:
    """The functions that an expression may be, in the run where it stands; ``None`` where one is not known."""
    if steps <= 0:
        return None
    if isinstance(node, cst.Lambda):
        return [_Given(node, frame)]
    if isinstance(node, cst.Name):
        return _named(frame, node, steps)
    value = frame.value(node.func if isinstance(node, cst.Call) else node)
    if not isinstance(node, cst.Call):
        return _defined(frame, value)
    if isinstance(value, Symbol) and value.name == "functools.partial" and node.args and not has_star_arguments(node):
        inner = _functions(frame, node.args[0].value, steps - 1)
        if inner is None or any(arg.keyword is None for arg in node.args[1:]):
            return None
        body = _Body(frame, None, steps)
        bound = tuple((arg.keyword.value, body.quantity(arg.value)) for arg in node.args[1:] if arg.keyword is not None)
        return [_Given(item.node, item.frame, (*item.bound, *bound)) for item in inner]
    if not isinstance(value, Function) or not value.definition.is_transparent or frame.runs(value.definition):
        return None
    info = value.definition
    run = Frame(info.model, info, frame, node, captured=_home(frame, info))
    results = [None if item.value is None else _functions(run, item.value, steps - 1) for item in info.scope.returns]
    return None if None in results else [found for several in results for found in several or ()]


def _named(frame: Frame, name: cst.Name, steps: int) -> list[_Given] | None:
    home, bindings = _bindings(frame, name.value)
    reaching = frame.model.reaching(name)
    bindings = list(reaching) or bindings
    binding = bindings[0] if len(bindings) == 1 else None
    if home is None or binding is None or binding.path:
        return None
    if binding.kind is BindingKind.FUNCTION and isinstance(binding.node, cst.FunctionDef):
        return None if binding.node.decorators else [_Given(binding.node, home)]
    if binding.kind is BindingKind.ASSIGN and binding.value is not None:
        return _functions(home, binding.value, steps - 1)
    if binding.kind is BindingKind.PARAMETER:
        given = home.given(binding)
        return None if given is None else _functions(*given, steps - 1)
    return _defined(frame, frame.value(name))


def _defined(frame: Frame, value: Value | None) -> list[_Given] | None:
    if not isinstance(value, Function) or not value.definition.is_transparent:
        return None
    return [_Given(value.definition.node, _home(frame, value.definition))]


def _bindings(frame: Frame, name: str) -> tuple[Frame | None, list[Binding]]:
    """What binds a name in the body of a run or around it, at any time, and the run in which it does."""
    scope: Scope | None = frame.scope
    while scope is not None:
        if not scope.is_class and name in scope.bindings:
            return run_of(frame, scope), scope.bindings[name]
        scope = scope.parent
    return None, []


def _home(frame: Frame, info: FunctionInfo) -> Frame:
    """The run of what stands around a function."""
    scope = info.scope.parent
    while scope is not None and scope.is_class:
        scope = scope.parent
    return Frame(info.model) if scope is None else run_of(frame, scope)


# -- what it is worth --------------------------------------------------------------------------------------------------


def _called(given: _Given, args: Sequence[Quantity], keywords: _Locals, steps: int) -> Quantity:
    """What a function gives for some arguments."""
    node, params = given.node, given.node.params
    if steps <= 0 or params.star_kwarg is not None or isinstance(params.star_arg, cst.Param):
        return UNKNOWN
    info = None if isinstance(node, cst.Lambda) else given.frame.model.function_info(node)
    named: _Locals = {**dict(given.bound), **keywords}
    known: _Locals = {}
    free = [*params.posonly_params, *params.params]
    if info is not None and info.self_name is not None:
        known[free.pop(0).name.value] = UNKNOWN
    around = _Body(given.frame, None, steps - 1)
    for param in [*free, *params.kwonly_params]:
        name = param.name.value
        if name in named:
            known[name] = named[name]
        elif args and param in free:
            known[name], *args = args
        else:
            known[name] = UNKNOWN if param.default is None else around.quantity(param.default)
    body = _Body(given.frame, known, steps - 1, info)
    if isinstance(node, cst.Lambda):
        return body.quantity(node.body)
    falls_through = body.run(node.body)
    return UNKNOWN if falls_through or body.is_lost else either(body.returned)


class _Body:
    """The body of a function while it is worked out; without ``known`` the expressions of a run that is over."""

    def __init__(self, frame: Frame, known: _Locals | None, steps: int, info: FunctionInfo | None = None) -> None:
        self.frame = frame
        self.known = known
        self.steps = steps
        self.returned: list[Quantity] = []
        self.is_lost = False
        self._model = frame.model
        self._own = frozenset() if info is None else frozenset(info.scope.bindings) - set(info.scope.outer_names)

    # -- statements ----------------------------------------------------------------------------------------------------

    def run(self, suite: cst.BaseSuite) -> bool:
        """Work out the statements; whether the end of them may be reached."""
        for line in suite.body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else (line,):
                if self.is_lost or not self._statement(statement):
                    return False
        return True

    def _statement(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Return(value=value):
                self.returned.append(UNKNOWN if value is None else self.quantity(value))
                return False
            case cst.Raise():
                return False
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                self._bind(name, self.quantity(value))
            case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
                self._bind(name, self.quantity(value))
            case cst.AugAssign(target=cst.Name(value=name) as target, operator=done, value=value):
                word = type(done).__name__.removesuffix("Assign")
                self._bind(name, binary(word, self.quantity(target), self.quantity(value)))
            case cst.If():
                return self._branches(node)
            case cst.For(target=cst.Name(value=name), orelse=None):
                self._rounds(name, node)
            case cst.Pass() | cst.Expr() | cst.Assert() | cst.Global() | cst.Nonlocal():
                pass
            case _:
                self.is_lost = True
        return True

    def _bind(self, name: str, value: Quantity) -> None:
        assert self.known is not None
        self.known[name] = value

    def _branches(self, node: cst.If) -> bool:
        chosen = self.truth(node.test)
        before, ends = dict(self.known or {}), []
        for outcome in (True, False):
            if chosen is (not outcome):
                continue
            self.known = dict(before)
            arm: cst.CSTNode | None = node.body if outcome else node.orelse
            if isinstance(arm, cst.If):
                goes_on = self._branches(arm)
            else:
                suite = arm.body if isinstance(arm, cst.Else) else arm
                goes_on = not isinstance(suite, cst.BaseSuite) or self.run(suite)
            if goes_on:
                ends.append(self.known)
        self.known = _merged(ends)
        return bool(ends)

    def _rounds(self, name: str, node: cst.For) -> None:
        """None, one or more rounds of a loop, until nothing changes any more."""
        element = self._element(self.quantity(node.iter))
        for _ in range(4):
            before = dict(self.known or {})
            self._bind(name, element)
            self.run(node.body)
            after = dict(self.known or {})
            self.known = _merged([before, {**before, **after} if after else before])
            if self.known == before:
                return
        self.is_lost = True

    @staticmethod
    def _element(items: Quantity) -> Quantity:
        return UNKNOWN if items.parts is None else either(items.parts)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def truth(self, node: cst.BaseExpression) -> bool | None:
        """The outcome of a test."""
        return self.quantity(node).truth

    def quantity(self, node: cst.BaseExpression) -> Quantity:
        """What an expression is worth."""
        if isinstance(node, (cst.Integer, cst.Float)):
            number = constant(node)
            return exactly(number) if isinstance(number, (int, float)) else UNKNOWN
        match node:
            case cst.Name():
                return self._name(node)
            case cst.Attribute():
                return self._attribute(node)
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                return negative(self.quantity(inner))
            case cst.UnaryOperation(operator=cst.Plus(), expression=inner):
                return self.quantity(inner)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                known = self.truth(inner)
                return of_bool(None if known is None else not known)
            case cst.BinaryOperation(left=left, operator=done, right=right):
                return binary(type(done).__name__, self.quantity(left), self.quantity(right))
            case cst.BooleanOperation():
                return self._boolean(node)
            case cst.Comparison():
                return self._comparison(node)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                chosen = self.truth(test)
                arms = [self.quantity(body)] if chosen is not False else []
                return either([*arms, self.quantity(orelse)] if chosen is not True else arms)
            case cst.List() | cst.Tuple():
                if any(isinstance(item, cst.StarredElement) for item in node.elements):
                    return UNKNOWN
                return Quantity(parts=tuple(self.quantity(item.value) for item in node.elements))
            case cst.Subscript():
                # Which one cannot be told: the list may have been sorted since it was made.
                return UNKNOWN if subscript_index(node) is None else self._element(self.quantity(node.value))
            case cst.Call():
                return self._call(node)
        return UNKNOWN

    def _boolean(self, node: cst.BooleanOperation) -> Quantity:
        decisive = isinstance(node.operator, cst.Or)
        left = self.quantity(node.left)
        if left.truth is decisive:
            return left
        right = self.quantity(node.right)
        return right if left.truth is not None else either([left, right])

    def _comparison(self, node: cst.Comparison) -> Quantity:
        left, outcome = self.quantity(node.left), True
        for target in node.comparisons:
            right = self.quantity(target.comparator)
            known = compared(type(target.operator).__name__, left, right)
            if known is False:
                return of_bool(False)
            outcome, left = outcome and known is True, right
        return of_bool(True if outcome else None)

    def _name(self, node: cst.Name) -> Quantity:
        name = node.value
        if name in ("True", "False"):
            return exactly(int(name == "True"))
        if self.known is not None and name in self.known:
            return self.known[name]
        if name in self._own or self.steps <= 0:
            return UNKNOWN
        home, bindings = _bindings(self.frame, name)
        if home is None or not bindings:
            return UNKNOWN
        return either(_bound(home, binding, self.steps - 1) for binding in bindings)

    def _attribute(self, node: cst.Attribute) -> Quantity:
        if self._model.qualified_name(node) in _CONSTANTS:
            return POSITIVE
        holder = self.frame.value(node.value)
        if isinstance(holder, Options):
            default = default_of_option(holder.model, self._model, node.attr.value)
            return UNKNOWN if default is None else _by_default(_Body(Frame(holder.model), None, 4).quantity(default))
        info = function_around(self._model, node)
        own = None if info is None or info.owner is None else info.owner
        if own is None or info is None or getattr(node.value, "value", None) != info.self_name or self.steps <= 0:
            return UNKNOWN
        assigned = [_bound(self.frame, item, self.steps - 1) for item in own.assignments(node.attr.value)]
        return either(assigned) if assigned else UNKNOWN

    def _call(self, node: cst.Call) -> Quantity:
        if has_star_arguments(node):
            return UNKNOWN
        args = [self.quantity(arg.value) for arg in node.args if arg.keyword is None]
        callee = self.frame.value(node.func)
        name = callee.name if isinstance(callee, Symbol) else None
        if name in _FUNCTIONS and args and len(args) == len(node.args):
            return _FUNCTIONS[name or ""](args)
        if name in ("bisect.bisect", "bisect.bisect_right", "bisect.bisect_left"):
            return NOT_NEGATIVE
        if name == "builtins.len":
            return NOT_NEGATIVE
        if self.steps <= 0 or self.known is None:
            return UNKNOWN
        found = _functions(self.frame, node.func, self.steps - 1)
        keywords = {arg.keyword.value: self.quantity(arg.value) for arg in node.args if arg.keyword is not None}
        return UNKNOWN if not found else either(_called(item, args, keywords, self.steps // 2) for item in found)


def _merged(several: list[_Locals]) -> _Locals:
    """What is known where several ways meet."""
    names = set[str]().union(*several)
    return {name: either(item.get(name, UNKNOWN) for item in several) for name in names}


def _bound(home: Frame, binding: Binding, steps: int) -> Quantity:
    """What a binding in a run that is over, or still goes on, may be worth, worked out once."""
    key = (binding, steps)
    if key not in home.worths:
        home.worths[key] = _worked_out(home, binding, steps)
    return cast("Quantity", home.worths[key])


def _worked_out(home: Frame, binding: Binding, steps: int) -> Quantity:
    body = _Body(home, None, steps)
    if steps <= 0 or binding.path:
        return UNKNOWN
    if binding.kind is BindingKind.PARAMETER:
        given = home.given(binding)
        if given is not None:
            return _Body(given[0], None, steps).quantity(given[1])
        default = binding.node.default if isinstance(binding.node, cst.Param) else None
        is_left_out = home.call is not None and not has_star_arguments(home.call)
        return UNKNOWN if default is None or not is_left_out else body.quantity(default)
    is_plain = binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED)
    return UNKNOWN if binding.value is None or not is_plain else body.quantity(binding.value)


def _by_default(default: Quantity) -> Quantity:
    """What an option may be worth: of the sign of its default, and where that is zero it may be more."""
    if default.parts is not None:
        return Quantity(parts=tuple(_by_default(item) for item in default.parts))
    return NOT_NEGATIVE if default.truth is False else Quantity(default.signs)


def _of_one(function: Callable[[float], float], otherwise: Quantity) -> Callable[[list[Quantity]], Quantity]:
    """A function of one number; what it gives where that is not known."""

    def work_out(args: list[Quantity]) -> Quantity:
        number = args[0].number
        try:
            return otherwise if number is None else exactly(function(number), is_count=args[0].is_count)
        except (ArithmeticError, ValueError):
            return IMPOSSIBLE

    return work_out


def _several(choose: Callable[[list[Quantity]], Quantity]) -> Callable[[list[Quantity]], Quantity]:
    return lambda args: choose(list(args[0].parts) if len(args) == 1 and args[0].parts is not None else args)


_FUNCTIONS: dict[str, Callable[[list[Quantity]], Quantity]] = {
    "builtins.min": _several(smallest),
    "builtins.max": _several(largest),
    "builtins.float": lambda args: args[0],
    "builtins.int": lambda args: rounded(args[0]) if len(args) == 1 else UNKNOWN,
    "builtins.round": lambda args: rounded(args[0]) if len(args) == 1 else UNKNOWN,
    "builtins.abs": lambda args: largest([args[0], negative(args[0])]),
    "builtins.pow": lambda args: binary("Power", args[0], args[-1]),
    "math.pow": lambda args: binary("Power", args[0], args[-1]),
    "numpy.minimum": smallest,
    "numpy.maximum": largest,
    **{
        f"{library}.{name}": _of_one(function, otherwise)
        for library in ("math", "numpy")
        for name, function, otherwise in (
            ("cos", math.cos, UNKNOWN),
            ("sin", math.sin, UNKNOWN),
            ("exp", math.exp, POSITIVE),
            ("sqrt", math.sqrt, NOT_NEGATIVE),
            ("floor", math.floor, UNKNOWN),
            ("ceil", math.ceil, UNKNOWN),
        )
    },
}  # fmt: skip
_CONSTANTS = ("math.pi", "math.e", "numpy.pi", "numpy.e")
