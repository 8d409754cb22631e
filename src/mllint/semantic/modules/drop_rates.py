"""How much the layers of a module drop, where what makes the module says so: nothing, by a default or a setting."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.names.assigned import only_assigned
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Options
from mllint.syntax.shape import argument, constant, has_star_arguments, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_BOUND = (BindingKind.ASSIGN, BindingKind.LOOP)
_MAX_STEPS = 4
"""Through how many names and lists a rate is followed."""
NOTHING = (False, None, 0)
"""The constants that drop nothing, or leave a layer out."""


class Making(NamedTuple):
    """The class of a module, and the call that makes the module with the file in which it stands, if they are known."""

    definition: ClassInfo
    call: cst.Call | None = None
    model: "Model | None" = None


def rate_of(call: cst.Call) -> cst.BaseExpression | None:
    """How much a layer, a function or what is made of such layers is told to drop, as it is written."""
    last = last_word(call.func) or ""
    given = argument(call, None, "dropout")
    if "dropout" in last.lower():
        given = argument(call, 1 if last.islower() else 0, "p")
    return None if given is None else given.value


def drops_nothing(model: "Model", rate: cst.BaseExpression | None, making: Making) -> bool:
    """Whether how much is dropped in a class is zero for what a call makes: a parameter that it leaves, a setting."""
    if rate is None:
        return False
    found = _parameter(model, rate)
    if found is None:
        key = _entry_left_out(model, rate)
        is_more = key is not None and making.model is not None and _is_given_more(making.model, key)
        return not is_more and _is_nothing(model, rate, _MAX_STEPS)
    function, parameter = found
    if making.call is not None and making.model is not None and function is making.definition.method("__init__"):
        position = next(index for index, item in enumerate(function.named_parameters) if item is parameter)
        given = argument(making.call, position - 1, parameter.name.value)
        if given is not None or has_star_arguments(making.call):
            return given is not None and _is_nothing(making.model, given.value, _MAX_STEPS)
    return is_nothing_by_default(parameter)


def drops_nothing_in_sight(model: "Model", rate: cst.BaseExpression, steps: int = _MAX_STEPS) -> bool:
    """Whether a rate is zero: a setting, or a parameter that is zero by default, for which nobody gives more."""
    found = _parameter(model, rate)
    if found is None:
        return _is_nothing(model, rate, steps)
    is_zero = is_nothing_by_default(found[1])
    return is_zero and all(_is_nothing(home, given, steps) for home, given in passed_anywhere(*found))


def is_nothing_by_default(parameter: cst.Param) -> bool:
    """Whether a parameter is false, zero or nothing where it is not given."""
    return parameter.default is not None and constant(parameter.default) in NOTHING


def _is_nothing(model: "Model", given: cst.BaseExpression, steps: int) -> bool:
    """Whether zero is given, an option of the program or an item of its settings that is zero, or what is handed on."""
    match given:
        case cst.Attribute():
            options = model.value(given.value)
            declaring = options.model if isinstance(options, Options) else model
            default = default_of_option(declaring, model, given.attr.value)
            return default is not None and constant(default) in NOTHING
        case cst.Subscript():
            key = string_literal(subscript_index(given))
            return key is not None and _is_set_to_nothing(model, key)
        case cst.Call():
            key = _entry_left_out(model, given)
            return key is not None and not _is_given_more(model, key)
        case cst.Name() if steps:
            bindings = _bindings(model, given)
            if any(binding.kind is BindingKind.PARAMETER for binding in bindings):
                return drops_nothing_in_sight(model, given, steps - 1)
            made = only_assigned(model, given)
            return made is not None and _is_nothing(model, made, steps - 1)
    return constant(given) in NOTHING


def _entry_left_out(model: "Model", rate: cst.BaseExpression) -> str | None:
    """The key under which a dict of settings may have a rate that is zero if it has none: ``kwargs.get("dropout", 0)``.

    A name may stand for that.
    """
    call = only_assigned(model, rate) if isinstance(rate, cst.Name) else rate
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "get":
        return None
    written = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    return string_literal(written[0]) if len(written) == 2 and constant(written[1]) in NOTHING else None


def _is_given_more(model: "Model", key: str) -> bool:
    """Whether somebody in a file gives something else than zero under a key: ``Net(dropout=0.3)``."""
    keywords = (
        arg.value
        for call in model.tree.by_type.get(cst.Call, ())
        for arg in call.args
        if arg.keyword is not None and arg.keyword.value == key
    )
    said = (*map(constant, keywords), *_settings(model, key))
    return any(value is not ... and value not in NOTHING for value in said)


def _settings(model: "Model", key: str) -> list[object]:
    """What the dicts that are written out in a file have under a key."""
    displays = model.tree.by_type.get(cst.Dict, ())
    items = (item for display in displays for item in display.elements if isinstance(item, cst.DictElement))
    return [constant(item.value) for item in items if string_literal(item.key) == key]


def _is_set_to_nothing(model: "Model", key: str) -> bool:
    """Whether the settings of a file, which are dicts that are written out, say nothing else than zero for a key."""
    said = _settings(model, key)
    return bool(said) and all(value in NOTHING for value in said)


def _parameter(model: "Model", rate: cst.BaseExpression) -> tuple[FunctionInfo, cst.Param] | None:
    """The parameter that a rate is, or that the constructor keeps as ``self.rate``, and the function that has it."""
    function = function_around(model, rate)
    if isinstance(rate, cst.Attribute) and function is not None and function.owner is not None:
        bound = list(function.owner.assignments(rate.attr.value)) if _is_own(rate, function) else []
        kept = bound[0].value if len(bound) == 1 else None
        if not isinstance(kept, cst.Name):
            return None
        rate, model = kept, bound[0].scope.model
        function = function_around(model, kept)
    names = _sources(model, rate, _MAX_STEPS)
    while function is not None and len(names) == 1:
        found = next((item for item in function.named_parameters if item.name.value in names), None)
        if found is not None:
            return function, found
        function = function_around(model, function.node)
    return None


def _sources(model: "Model", node: cst.BaseExpression, steps: int) -> set[str | None]:
    """The names of the parameters that a rate comes from, also as an item of a list of rates; ``None``: another thing.

    ``rates = [rate] * depth``, ``for rate in rates``.
    """
    match node:
        case cst.Name() if steps:
            found: set[str | None] = set()
            for binding in without_narrowing(_bindings(model, node)):
                if binding.kind is BindingKind.PARAMETER:
                    found.add(node.value)
                elif binding.path or binding.value is None or binding.kind not in _BOUND:
                    found.add(None)
                elif binding.value is not node:
                    found |= _sources(model, binding.value, steps - 1)
            return found or {None}
        case cst.BinaryOperation(left=cst.List(), operator=cst.Multiply()):
            return _sources(model, node.left, steps)
        case cst.List():
            return {name for element in node.elements for name in _sources(model, element.value, steps)} or {None}
    return {None}


def _bindings(model: "Model", name: cst.Name) -> tuple[Binding, ...]:
    """What binds a name where it stands, or in a function around that one, which makes the layer when it is called."""
    scope = model.scope_of(name)
    home = scope.home_of(name.value)
    return model.reaching(name) if home in (scope, None) else tuple(home.bindings[name.value])


def _is_own(attribute: cst.Attribute, function: FunctionInfo) -> bool:
    return function.self_name is not None and getattr(attribute.value, "value", None) == function.self_name
