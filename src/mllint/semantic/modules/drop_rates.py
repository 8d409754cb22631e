"""How much the layers of a module drop, where what makes the module says so: nothing, by a default or an option."""

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.syntax.shape import argument, constant, has_star_arguments, last_word

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
    """Whether how much is dropped in a class is a parameter of its constructor that is zero for what a call makes."""
    found = None if rate is None else _parameter(model, rate)
    if found is None:
        return False
    function, parameter = found
    if making.call is not None and making.model is not None and function is making.definition.method("__init__"):
        position = next(index for index, item in enumerate(function.named_parameters) if item is parameter)
        given = argument(making.call, position - 1, parameter.name.value)
        if given is not None or has_star_arguments(making.call):
            return given is not None and _is_nothing(making.model, given.value)
    return is_nothing_by_default(parameter)


def drops_nothing_in_sight(model: "Model", rate: cst.BaseExpression) -> bool:
    """Whether a rate is a parameter of a constructor or function that is zero by default, and nobody gives more."""
    found = _parameter(model, rate)
    if found is None or not is_nothing_by_default(found[1]):
        return False
    return all(_is_nothing(home, given) for home, given in passed_anywhere(*found))


def is_nothing_by_default(parameter: cst.Param) -> bool:
    """Whether a parameter is false, zero or nothing where it is not given."""
    return parameter.default is not None and constant(parameter.default) in NOTHING


def _is_nothing(model: "Model", given: cst.BaseExpression) -> bool:
    """Whether zero is given, or an option of the program that is zero by default."""
    if isinstance(given, cst.Attribute):
        default = default_of_option(model, model, given.attr.value)
        return default is not None and constant(default) in NOTHING
    return constant(given) in NOTHING


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
    if function is None or len(names) != 1:
        return None
    return next(((function, item) for item in function.named_parameters if item.name.value in names), None)


def _sources(model: "Model", node: cst.BaseExpression, steps: int) -> set[str | None]:
    """The names of the parameters that a rate comes from, also as an item of a list of rates; ``None``: another thing.

    ``rates = [rate] * depth``, ``for rate in rates``.
    """
    match node:
        case cst.Name() if steps:
            found: set[str | None] = set()
            for binding in without_narrowing(model.reaching(node)):
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


def _is_own(attribute: cst.Attribute, function: FunctionInfo) -> bool:
    return function.self_name is not None and getattr(attribute.value, "value", None) == function.self_name
