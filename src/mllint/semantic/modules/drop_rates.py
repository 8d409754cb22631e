"""How much the layers of a module drop, where what makes the module says so: nothing, by a default or a setting."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Instance, Options
from mllint.syntax.shape import (
    argument,
    constant,
    has_star_arguments,
    last_word,
    string_literal,
    subscript_index,
    targets_of,
)

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
            if default is not None:
                return constant(default) in NOTHING
            return _is_field_of_nothing(model, given)
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
    """The key under which settings may have a rate that is zero if they have none: ``kwargs.get("dropout", 0)``.

    Also ``kwargs.pop("dropout", 0)``, ``getattr(args, "dropout", 0)``, and a name that stands for one of them.
    """
    call = only_assigned(model, rate) if isinstance(rate, cst.Name) else rate
    if not isinstance(call, cst.Call) or any(arg.keyword is not None or arg.star for arg in call.args):
        return None
    written = [arg.value for arg in call.args]
    if isinstance(call.func, cst.Name) and call.func.value == "getattr":
        del written[:1]
    elif not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("get", "pop"):
        return None
    return string_literal(written[0]) if len(written) == 2 and constant(written[1]) in NOTHING else None


def _is_given_more(model: "Model", key: str) -> bool:
    """Whether somebody in a file gives something else than zero under a key: ``Net(dropout=0.3)``, ``args.dropout =
    0.3``, an option of the program.
    """
    keywords = (
        arg.value
        for call in model.tree.by_type.get(cst.Call, ())
        for arg in call.args
        if arg.keyword is not None and arg.keyword.value == key
    )
    option = default_of_option(model, model, key)
    options = () if option is None else (option,)
    said = (*map(constant, (*keywords, *options, *_assigned(model, key))), *given_by_settings(model, key))
    return any(value is not ... and value not in NOTHING for value in said)


def _assigned(model: "Model", key: str) -> Iterator[cst.BaseExpression]:
    """What a file assigns to an attribute of some settings, also in the body of their class: ``args.dropout = 0.3``."""
    for name in model.names_by_word.get(key, ()):
        node = model.tree.parent(name)
        target = node if isinstance(node, cst.Attribute) and node.attr is name else name
        holder = model.tree.parent(target)
        statement = holder if holder is None or isinstance(holder, cst.AnnAssign) else model.tree.parent(holder)
        is_field = model.scope_of(name).is_class if target is name else not _is_of_module(model, target)
        if not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is None or not is_field:
            continue
        if any(item is target for item in targets_of(statement)):
            yield statement.value


def _is_of_module(model: "Model", attribute: cst.CSTNode) -> bool:
    """Whether an attribute is one of a module's own, which says nothing of how it was made."""
    function = function_around(model, attribute)
    owner = None if function is None else function.owner
    is_own = isinstance(attribute, cst.Attribute) and function is not None and _is_own(attribute, function)
    return is_own and owner is not None and owner.framework is not None


def _is_field_of_nothing(model: "Model", field: cst.Attribute) -> bool:
    """Whether a field of settings that the project declares is zero by default, and nobody gives more for it:
    ``dropout: float = 0.0`` of a dataclass.
    """
    name, records = field.attr.value, list(_records(model, field.value))
    homes = {id(home): home for home, _ in records}
    for _, record in records:
        bound = [] if record is None else list(record.assignments(name))
        if len(bound) != 1 or record is None or not bound[0].scope.is_class or bound[0].value is None:
            return False
        homes |= {id(home): home for home in (record.model, bound[0].scope.model)}
        if constant(_default(bound[0].value)) not in NOTHING:
            return False
    return bool(records) and not any(_is_given_more(home, name) for home in (model, *homes.values()))


def default_of_field(model: "Model", field: cst.Attribute) -> cst.BaseExpression | None:
    """The default of a field of settings that the project declares: ``dropout: float = 0.1`` of a dataclass."""
    for _, record in _records(model, field.value):
        bound = [] if record is None else list(record.assignments(field.attr.value))
        if len(bound) == 1 and bound[0].scope.is_class and bound[0].value is not None:
            return _default(bound[0].value)
    return None


def _default(value: cst.BaseExpression) -> cst.BaseExpression:
    """What a field is by default: ``0.1``, ``field(default=0.1)``."""
    default = argument(value, None, "default") if isinstance(value, cst.Call) else None
    return value if default is None else default.value


def _records(model: "Model", node: cst.BaseExpression) -> "Iterator[tuple[Model, ClassInfo | None]]":
    """The classes of the settings that an expression stands for, also as those who make the module give them, and the
    files that say so; ``None`` among them for what is not known.
    """
    value = model.value(node)
    found = _parameter(model, node) if value is None else None
    for home, known in (
        [(model, value)] if found is None else [(home, home.value(given)) for home, given in passed_anywhere(*found)]
    ):
        yield home, known.definition if isinstance(known, Instance) else None


def given_by_settings(model: "Model", key: str) -> list[object]:
    """What the dicts that are written out in a file have under a key."""
    displays = model.tree.by_type.get(cst.Dict, ())
    items = (item for display in displays for item in display.elements if isinstance(item, cst.DictElement))
    return [constant(item.value) for item in items if string_literal(item.key) == key]


def _is_set_to_nothing(model: "Model", key: str) -> bool:
    """Whether the settings of a file, which are dicts that are written out, say nothing else than zero for a key."""
    said = given_by_settings(model, key)
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
