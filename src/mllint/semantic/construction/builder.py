"""Building a module without running anything: ``__init__`` is carried out on abstract values.

What surely happens is done: assignments to ``self``, loops of known length, helper methods and functions of the
project, library layers. Where a condition, a loop or a call cannot be decided, whatever it would write counts as
unknown, and the keys under that name as open. A construction never fails; at worst nothing is known of what it gives.
"""

from typing import TYPE_CHECKING, Any

import libcst as cst

from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, SETTING
from mllint.semantic.construction.calls import call_builtin, call_method, escape
from mllint.semantic.construction.evaluation import Frame, TooMuchError
from mllint.semantic.construction.libraries import PLAIN_BASES, constructed, initialize, is_module_class
from mllint.semantic.construction.parts import (
    UNKNOWN,
    Bound,
    Closure,
    Entries,
    Given,
    Mark,
    Part,
    Partial,
    open_part,
)
from mllint.semantic.construction.statements import Flow, Statements
from mllint.semantic.values import ClassObject, Function, Symbol
from mllint.syntax.shape import dotted_path, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

MAX_CALLS = 14
"""How deep calls may nest."""

# A class that defines one of these changes the names in its state dict.
_STATE_HOOKS = frozenset({
    "state_dict", "load_state_dict", "set_state_dict", "set_dict", "load_dict", "_load_from_state_dict",
    "_save_to_state_dict", "get_extra_state", "__setattr__", "__new__", "to_static_state_dict",
})  # fmt: skip
_HOOK_REGISTRATIONS = frozenset({
    "_register_state_dict_hook", "_register_load_state_dict_pre_hook", "register_load_state_dict_pre_hook",
    "register_state_dict_pre_hook", "register_state_dict_post_hook", "register_state_dict_hook",
})  # fmt: skip
_REGISTRATIONS = ADDING_MODULES | ADDING_PARAMETERS | SETTING | {"register_buffer", "delattr"}
# What is set of a parameter, and registers nothing: ``self.fc.weight.data = x``.
_OF_PARAMETERS = frozenset({"data", "grad", "requires_grad", "stop_gradient"})


class Construction(Statements):
    """Carries out constructors; one object a question.

    ``is_new``: the modules are asked about as they are made, whatever their methods may register or replace later.
    """

    def __init__(self, *, is_new: bool = False) -> None:
        super().__init__()
        self.is_new = is_new
        self.calls = 0
        self._run: set[int] = set()

    # -- entry points ------------------------------------------------------------------------------------------------

    def built_by(
        self, call: cst.Call, model: "Model", definition: "ClassInfo", names: dict[str, Any] | None = None
    ) -> Any:
        """The module that a call of a project class builds, where some names have the given values."""
        try:
            return self.instance(definition, self.arguments(call, Frame(model, dict(names or {}))))
        except TooMuchError:
            return open_part()

    def built_by_library(self, call: cst.Call, model: "Model", name: str) -> Part:
        """The module that a call of a library class builds."""
        try:
            part = constructed(name, self.arguments(call, Frame(model)))
        except TooMuchError:
            return open_part()
        return part if isinstance(part, Part) else open_part()

    def built_at(self, node: cst.BaseExpression, model: "Model") -> Any:
        """The value of an expression at its place in a file."""
        try:
            return self.evaluate(node, Frame(model))
        except TooMuchError:
            return UNKNOWN

    def value_with(self, expression: cst.BaseExpression, names: dict[str, Any], model: "Model") -> Any:
        """The value of an expression in which some names have the given values."""
        try:
            return self.evaluate(expression, Frame(model, dict(names)))
        except TooMuchError:
            return UNKNOWN

    def round_of(self, loop: cst.For, value: Any, names: dict[str, Any], model: "Model") -> None:
        """Carry out one round of a loop over a value; the lists and dicts in ``names`` change."""
        frame = Frame(model, dict(names), is_running=True)
        try:
            self.unpack(loop.target, value, frame)
            self.suite(loop.body, frame)
        except TooMuchError:
            frame.may_have_left = True
        if frame.may_have_left:
            escape(Given(tuple(names.values())))

    # -- classes -----------------------------------------------------------------------------------------------------

    def instance(self, definition: "ClassInfo", given: Given) -> Any:
        """An instance of a project class; ``UNKNOWN`` when it is no module."""
        if definition.framework is None:
            return Mark.OBJECT if not definition.has_unknown_base else UNKNOWN
        part = Part(definition)
        if definition.has_unknown_base or definition.node.decorators:
            part.is_open = True
        self._initialize(part, definition, given, Frame(definition.model, is_running=True))
        for info in () if self.is_new else definition.lineage:
            for method in info.methods.values():
                if id(method.node) not in self._run:
                    _loosen_by(method, part)
        if _has_hooks(definition):
            part.forget()
        return part

    def _initialize(self, part: Part, definition: "ClassInfo", given: Given, frame: Frame) -> None:
        """What ``__init__`` of a class does to a new module."""
        method = definition.methods.get("__init__")
        if method is None:
            self._initialize_base(part, definition, given, frame)
        else:
            self.run(method, given.behind(part), frame)

    def _initialize_base(self, part: Part, owner: "ClassInfo", given: Given, frame: Frame) -> None:
        """What ``super().__init__(...)`` does in a class."""
        bases = [base for base in owner.bases if not (isinstance(base, Symbol) and base.name in PLAIN_BASES)]
        if len(bases) > 1:
            bases = [base for base in bases if not _is_mixin(base)]
        if len(bases) > 1:
            part.is_open = True
            return
        match bases:
            case [ClassObject(definition)]:
                self._initialize(part, definition, given, frame)
            case [Symbol(name)]:
                initialize(part, name, given)
            case [None]:
                part.is_open = True

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, node: cst.Call, frame: Frame) -> Any:
        """What a call gives, and what it does to the parts it is given."""
        function = node.func
        if isinstance(function, cst.Attribute) and _is_super(function.value, frame):
            return self._call_super(function.attr.value, node, frame)
        callee = self.evaluate(function, frame)
        return self.apply(callee, self.arguments(node, frame), frame)

    def apply(self, callee: Any, given: Given, frame: Frame) -> Any:
        """What calling a value gives."""
        match callee:
            case ClassObject():
                return self.instance(callee.definition, given)
            case Function():
                return self.run(callee.definition, _with_receiver(callee, given), frame)
            case Symbol():
                return self._call_symbol(callee.name, given, frame)
            case Bound(receiver, _, definition) if definition is not None:
                static = definition.is_static
                more = given if static else given.behind(receiver)
                return self.run(definition, more, frame)
            case Bound():
                return call_method(callee, given, frame)
            case Closure():
                return self._run_closure(callee, given, frame)
            case Partial():
                return self.apply(callee.callee, callee.given.after(given), frame)
            case Part() if any(isinstance(value, Part) for value in given.positional):
                return UNKNOWN
            case Part():
                return Mark.TENSOR
        escape(given)
        return UNKNOWN

    def _call_symbol(self, name: str, given: Given, frame: Frame) -> Any:
        owner, _, last = name.rpartition(".")
        if last == "__init__" and given.positional and isinstance(given.positional[0], Part):
            initialize(given.positional[0], owner, Given(given.positional[1:], given.keywords, given.is_exact))
            return None
        if name == "functools.partial" and given.positional:
            return Partial(given.positional[0], Given(given.positional[1:], given.keywords, given.is_exact))
        if name.startswith(("builtins.", "math.", "copy.", "collections.", "itertools.")):
            return call_builtin(self, name, given, frame)
        result = constructed(name, given)
        if result is UNKNOWN and not name.startswith(("torch.nn.init.", "paddle.nn.initializer.")):
            escape(given)
        return result

    def _call_super(self, name: str, node: cst.Call, frame: Frame) -> Any:
        current = _method_frame(frame)
        given = self.arguments(node, frame)
        if current is None or current.owner is None or not isinstance(current.receiver, Part):
            return UNKNOWN
        if name == "__init__":
            if frame.is_certain:
                self._initialize_base(current.receiver, current.owner, given, frame)
            else:
                current.receiver.is_open = True
            return None
        for base in current.owner.bases:
            method = base.definition.method(name) if isinstance(base, ClassObject) else None
            if method is not None:
                return self.run(
                    method, Given((current.receiver, *given.positional), given.keywords, given.is_exact), frame
                )
        return call_method(Bound(current.receiver, name), given, frame)

    def run(self, info: "FunctionInfo", given: Given, caller: Frame) -> Any:
        """Carry out a function of the project."""
        self._run.add(id(info.node))
        if self.calls >= MAX_CALLS or not info.is_plain or not info.is_transparent:
            escape(given)
            return UNKNOWN
        frame = Frame(info.model, is_running=True, is_certain=caller.is_certain, owner=info.owner)
        self._bind(info.node.params, given, frame)
        if info.self_name is not None:
            frame.receiver = frame.names.get(info.self_name, UNKNOWN)
        return self._carry_out(info.node.body, frame)

    def _run_closure(self, closure: Closure, given: Given, caller: Frame) -> Any:
        outer: Frame = closure.frame
        if self.calls >= MAX_CALLS:
            escape(given)
            return UNKNOWN
        frame = Frame(outer.model, {}, outer, True, caller.is_certain)
        self._bind(closure.node.params, given, frame)
        if isinstance(closure.node, cst.Lambda):
            return self.evaluate(closure.node.body, frame)
        return self._carry_out(closure.node.body, frame)

    def _carry_out(self, body: cst.BaseSuite, frame: Frame) -> Any:
        self.calls += 1
        try:
            flow = self.suite(body, frame)
        finally:
            self.calls -= 1
        if flow is Flow.RAISE and frame.is_certain:
            # These arguments are refused; nothing is known of a module that was built with others.
            raise TooMuchError
        return UNKNOWN if frame.may_have_left else frame.result

    def _bind(self, parameters: cst.Parameters, given: Given, frame: Frame) -> None:
        """Give the parameters of a function their values."""
        keywords = dict(given.keywords)
        positional = [*parameters.posonly_params, *parameters.params]
        defaults = Frame(frame.model, outer=frame.outer)
        for index, parameter in enumerate((*positional, *parameters.kwonly_params)):
            name = parameter.name.value
            if index < min(len(positional), len(given.positional)):
                value = given.positional[index]
            elif name in keywords:
                value = keywords[name]
            elif parameter.default is not None and given.is_exact:
                value = self.evaluate(parameter.default, defaults)
            else:
                value = UNKNOWN
            frame.names[name] = value
            keywords.pop(name, None)
        if isinstance(parameters.star_arg, cst.Param):
            rest = given.positional[len(positional) :]
            frame.names[parameters.star_arg.name.value] = rest if given.is_exact else UNKNOWN
        if parameters.star_kwarg is not None:
            frame.names[parameters.star_kwarg.name.value] = Entries(dict(keywords), not given.is_exact)


def _method_frame(frame: Frame) -> Frame | None:
    current: Frame | None = frame
    while current is not None and current.owner is None:
        current = current.outer
    return current


def _is_super(node: cst.BaseExpression, frame: Frame) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and frame.model.qualified_name(node.func) == "builtins.super"
    )


def _with_receiver(function: Function, given: Given) -> Given:
    receiver = function.receiver
    if not isinstance(receiver, ClassObject):
        return given
    return given.behind(receiver)


def _is_mixin(base: Any) -> bool:
    """Whether a base registers nothing while a module is built: no constructor, no library module above it."""
    if not isinstance(base, ClassObject):
        return isinstance(base, Symbol) and not is_module_class(base.name) and base.name.startswith("typing.")
    definition = base.definition
    return definition.method("__init__") is None and definition.framework is None


def _has_hooks(definition: "ClassInfo") -> bool:
    """Whether the class names the entries of its state dict itself."""
    for info in definition.lineage:
        if _STATE_HOOKS & info.methods.keys():
            return True
        for word in _HOOK_REGISTRATIONS:
            for call in info.model.calls_by_word.get(word, ()):
                if info.model.tree.is_below(call, info.node):
                    return True
    return False


def _loosen_by(method: "FunctionInfo", part: Part) -> None:
    """Forget what a method that may be called later would register."""
    name = method.self_name
    if name is None:
        return
    prefix = f"{name}."
    for key in method.scope.bindings:
        attribute, *below = key.removeprefix(prefix).split(".")
        if key.startswith(prefix) and not (below and below[-1] in _OF_PARAMETERS):
            part.loosen(attribute)
    for word in _REGISTRATIONS:
        for call in method.model.calls_by_word.get(word, ()):
            if method.model.enclosing_function(call) is not method.node or not call.args:
                continue
            on_self = isinstance(call.func, cst.Attribute) and dotted_path(call.func.value) == name
            first = call.args[0].value
            if on_self:
                part.loosen(string_literal(first) or UNKNOWN)
            elif isinstance(first, cst.Name) and first.value == name and len(call.args) > 1:
                part.loosen(string_literal(call.args[1].value) or UNKNOWN)
