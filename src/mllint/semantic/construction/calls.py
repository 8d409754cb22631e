"""What built-in functions and the methods of modules, lists, dicts and strings give while a module is built."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, LOADING
from mllint.semantic.construction.libraries import fill_dict
from mllint.semantic.construction.operators import MAX_LENGTH, truth
from mllint.semantic.construction.parts import UNKNOWN, Bound, Container, Entries, Given, Items, Mark, Part
from mllint.semantic.values import Symbol

if TYPE_CHECKING:
    from mllint.semantic.construction.evaluation import Evaluator, Frame

_ADDITIONS = ADDING_MODULES | ADDING_PARAMETERS
_CREATIONS = frozenset({"create_parameter", "create_variable", "create_tensor"})
# Methods of a module that give the module itself.
_SAME = frozenset({
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval", "apply", "requires_grad_", "to_empty",
    "share_memory",
})  # fmt: skip
_HARMLESS = frozenset({
    "modules", "children", "parameters", "named_modules", "named_children", "named_parameters", "sublayers",
    "named_sublayers", "buffers", "named_buffers", *LOADING, "state_dict",
    "zero_grad", "register_forward_hook", "register_forward_pre_hook", "forward", "extra_repr", "full_name", "compile",
    "save_hyperparameters", "log", "print", "get_submodule", "get_parameter",
})  # fmt: skip


def escape(given: Given) -> None:
    """Parts and lists that are handed to something unknown may be changed there."""
    for value in (*given.positional, *(value for _, value in given.keywords)):
        if isinstance(value, Part):
            value.forget()
        elif isinstance(value, (Items, Entries)):
            value.is_open = True


# -- methods -----------------------------------------------------------------------------------------------------------


def call_method(method: Bound, given: Given, frame: "Frame") -> Any:
    """What a method that the project does not define gives and does."""
    receiver = method.receiver
    match receiver:
        case Part():
            return _part_method(receiver, method.name, given, frame)
        case Items():
            return _list_method(receiver, method.name, given, frame)
        case Entries():
            return _dict_method(receiver, method.name, given, frame)
        case str():
            return _text_method(receiver, method.name, given)
    escape(given)
    return UNKNOWN


def _part_method(part: Part, name: str, given: Given, frame: "Frame") -> Any:
    if name in _SAME:
        return part
    if name in _ADDITIONS:
        value = given.get(1, "module", UNKNOWN)
        return _add(part, _name_given(given), value if value is not UNKNOWN else _added(given), frame)
    if name == "register_buffer":
        return _register_buffer(part, given, frame)
    if name in _CREATIONS:
        return Mark.PARAMETER if name == "create_parameter" else Mark.TENSOR
    if part.container is Container.SEQUENCE and name in ("append", "extend"):
        return _extend(part, name, given, frame)
    if part.container is Container.MAPPING and name == "update" and frame.is_certain:
        fill_dict(part, given.get(0, "modules"))
        return None
    if name in ("values", "items", "keys") and part.container is Container.MAPPING and not part.is_open:
        views: dict[str, Iterable[Any]] = {"values": part.children.values(), "keys": part.children}
        return Items(list(views.get(name, part.children.items())), bool(part.loose))
    if name not in _HARMLESS:
        # Some method of a base or of a library: it may register anything.
        part.is_open = True
    return UNKNOWN


def _name_given(given: Given) -> Any:
    return given.get(0, "name")


def _added(given: Given) -> Any:
    for name in ("sublayer", "parameter", "param"):
        value = given.get(None, name)
        if value is not UNKNOWN:
            return value
    return UNKNOWN


def _add(part: Part, name: Any, value: Any, frame: "Frame") -> Any:
    if not isinstance(name, str):
        part.is_open = True
    elif frame.is_certain:
        part.register(name, value)
    else:
        part.loosen(name)
    return value


def _register_buffer(part: Part, given: Given, frame: "Frame") -> Any:
    name, value = _name_given(given), given.get(1, "tensor")
    persistent = given.get(2, "persistent", given.get(None, "persistable", True))
    if not isinstance(name, str):
        part.is_open = True
    elif not frame.is_certain or truth(persistent) is None:
        part.loosen(name)
    elif truth(persistent) and value is not None:
        # What is registered as a buffer is a tensor, or `None`: of a variable that cannot be told.
        part.register(name, Mark.TENSOR if value is Mark.TENSOR or value is Mark.PARAMETER else UNKNOWN, as_buffer=True)
    else:
        part.remove(name)
    return None


def _extend(part: Part, name: str, given: Given, frame: "Frame") -> Any:
    value = given.get(0, "module" if name == "append" else "modules")
    values = [value] if name == "append" else _listed(value)
    if values is None or not frame.is_certain or part.is_open:
        part.is_open = True
    else:
        part.append(values)
    return part


def _listed(value: Any) -> list[Any] | None:
    match value:
        case Items() if not value.is_open:
            return list(value.values)
        case tuple():
            return list(value)
        case Part() if value.container is Container.SEQUENCE and not value.is_open and not value.loose:
            return list(value.children.values())
    return None


def _list_method(items: Items, name: str, given: Given, frame: "Frame") -> Any:
    if name in ("index", "count"):
        return UNKNOWN
    if name == "copy":
        return Items(list(items.values), items.is_open)
    value = given.get(0, "object")
    if name == "append" and frame.is_certain:
        items.values.append(value)
    elif name == "extend" and frame.is_certain and (values := _listed(value)) is not None:
        items.values += values
    elif name == "insert" and frame.is_certain and isinstance(value, int):
        items.values.insert(value, given.get(1, "object"))
    elif name == "pop" and frame.is_certain and not items.is_open and items.values:
        position = given.get(0, "index", -1)
        if isinstance(position, int) and -len(items.values) <= position < len(items.values):
            return items.values.pop(position)
        items.is_open = True
    elif name == "reverse" and frame.is_certain and not items.is_open:
        items.values.reverse()
    else:
        items.is_open = True
    return UNKNOWN if name == "pop" else None


def _dict_method(entries: Entries, name: str, given: Given, frame: "Frame") -> Any:
    match name:
        case "keys":
            return Items(list(entries.values), entries.is_open)
        case "values":
            return Items(list(entries.values.values()), entries.is_open)
        case "items":
            return Items(list(entries.values.items()), entries.is_open)
        case "get":
            key = given.get(0, "key")
            if isinstance(key, (str, int)) and not entries.is_open:
                return entries.values.get(key, given.get(1, "default", None))
            return UNKNOWN
        case "copy":
            return Entries(dict(entries.values), entries.is_open)
        case "pop" if frame.is_certain and not entries.is_open and isinstance(key := given.get(0, "key"), (str, int)):
            return entries.values.pop(key, UNKNOWN)
        case "update" if frame.is_certain:
            more = given.get(0, "other", Entries())
            if isinstance(more, Entries):
                entries.values.update(more.values)
                entries.values.update(given.keywords)
                entries.is_open = entries.is_open or more.is_open
                return None
    entries.values.clear()
    entries.is_open = True
    return UNKNOWN


_TEXT_METHODS = frozenset({
    "format", "join", "replace", "removeprefix", "removesuffix", "split", "rsplit", "partition", "rpartition", "lower",
    "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "find", "index", "count", "title", "capitalize",
})  # fmt: skip


def _text_method(text: str, name: str, given: Given) -> Any:
    values = [_plain(value) for value in given.positional]
    keywords = {key: _plain(value) for key, value in given.keywords}
    if name not in _TEXT_METHODS or not given.is_exact or UNKNOWN in (*values, *keywords.values()):
        return UNKNOWN
    if name == "format" and len(text) > MAX_LENGTH:
        return UNKNOWN
    try:
        result = getattr(text, name)(*values, **keywords)
    except (TypeError, ValueError, LookupError, AttributeError):
        return UNKNOWN
    return Items(result) if isinstance(result, list) else result


def _plain(value: Any) -> Any:
    """A value that string methods take; ``UNKNOWN`` for others."""
    if isinstance(value, Items) and not value.is_open:
        value = tuple(value.values)
    if isinstance(value, tuple):
        return value if all(isinstance(item, (str, int)) for item in value) else UNKNOWN
    return value if isinstance(value, (str, int, float)) or value is None else UNKNOWN


# -- functions ---------------------------------------------------------------------------------------------------------


def call_builtin(evaluator: "Evaluator", name: str, given: Given, frame: "Frame") -> Any:
    """What a function of Python or of its standard library gives."""
    module, _, last = name.rpartition(".")
    if module == "math":
        return _mathematics(last, given)
    if name in ("copy.deepcopy", "copy.copy"):
        first = given.get(0, "x")
        return first.copy() if isinstance(first, Part) else first
    if name == "collections.OrderedDict":
        return _dict(evaluator, given)
    function = _BUILTINS.get(last) if module == "builtins" else None
    if function is not None:
        return function(evaluator, given, frame)
    if module != "builtins":
        escape(given)
    return UNKNOWN


def _mathematics(name: str, given: Given) -> Any:
    function = getattr(math, name, None)
    if not callable(function) or not all(isinstance(value, (int, float)) for value in given.positional):
        return UNKNOWN
    try:
        result = function(*given.positional)
    except (TypeError, ValueError, ArithmeticError):
        return UNKNOWN
    return result if isinstance(result, (int, float)) else UNKNOWN


def _dict(evaluator: "Evaluator", given: Given, frame: "Frame | None" = None) -> Any:
    found = Entries(is_open=not given.is_exact)
    first = given.positional[0] if given.positional else Entries()
    if isinstance(first, Entries):
        found.values.update(first.values)
        found.is_open = found.is_open or first.is_open
    else:
        pairs = evaluator.iterated(first)
        found.is_open = found.is_open or pairs is None
        for pair in pairs or ():
            items = tuple(pair.values) if isinstance(pair, Items) else pair
            if isinstance(items, tuple) and len(items) == 2 and isinstance(items[0], (str, int)):
                found.values[items[0]] = items[1]
            else:
                found.is_open = True
    found.values.update(given.keywords)
    return found


def _range(_: "Evaluator", given: Given, __: "Frame") -> Any:
    known = given.is_exact and 1 <= len(given.positional) <= 3
    if not known or not all(isinstance(value, int) for value in given.positional):
        return UNKNOWN
    try:
        return range(*given.positional)
    except ValueError:
        return UNKNOWN


def _len(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
    first = given.get(0, "obj")
    if isinstance(first, Part) and first.container is not None:
        return UNKNOWN if first.is_open else first.length
    values = evaluator.iterated(first)
    return UNKNOWN if values is None else len(values)


def _list(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
    values = evaluator.iterated(given.get(0, "iterable", ()))
    return Items(is_open=True) if values is None else Items(values)


def _tuple(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
    values = evaluator.iterated(given.get(0, "iterable", ()))
    return UNKNOWN if values is None else tuple(values)


def _reversed(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
    values = evaluator.iterated(given.get(0, "sequence"))
    return Items(is_open=True) if values is None else Items(values[::-1])


def _enumerate(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
    values, start = evaluator.iterated(given.get(0, "iterable")), given.get(1, "start", 0)
    if values is None or not isinstance(start, int):
        return Items(is_open=True)
    return Items(list(enumerate(values, start)))


def _zip(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
    columns = [evaluator.iterated(value) for value in given.positional]
    if not given.is_exact or None in columns:
        return Items(is_open=True)
    return Items(list(zip(*[column for column in columns if column is not None], strict=False)))


def _number(function: Callable[..., Any]) -> Callable[["Evaluator", Given, "Frame"], Any]:
    def call(evaluator: "Evaluator", given: Given, _: "Frame") -> Any:
        values = given.positional
        if len(values) == 1 and isinstance(values[0], (Items, tuple)):
            values = tuple(evaluator.iterated(values[0]) or (UNKNOWN,))
            values = (values,) if function is sum else values
        flat = values[0] if function is sum and isinstance(values[0], tuple) else values
        if not given.is_exact or given.keywords or not all(isinstance(value, (int, float)) for value in flat):
            return UNKNOWN
        try:
            result = function(*values)
        except (TypeError, ValueError, ArithmeticError):
            return UNKNOWN
        return result if isinstance(result, (int, float)) else UNKNOWN

    return call


def _text(_: "Evaluator", given: Given, __: "Frame") -> Any:
    first = given.get(0, "object")
    return str(first) if isinstance(first, (int, str)) else UNKNOWN


def _truth(_: "Evaluator", given: Given, __: "Frame") -> Any:
    known = truth(given.get(0, "x"))
    return UNKNOWN if known is None else known


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "builtins.int": int, "builtins.str": str, "builtins.float": float, "builtins.bool": bool, "builtins.tuple": tuple,
    "builtins.list": Items, "builtins.dict": Entries,
}  # fmt: skip


def _isinstance(_: "Evaluator", given: Given, __: "Frame") -> Any:
    value, wanted = given.get(0, "obj"), given.get(1, "types")
    choices = wanted if isinstance(wanted, tuple) else (wanted,)
    types = [_PYTHON_TYPES.get(choice.name) if isinstance(choice, Symbol) else None for choice in choices]
    if None in types or isinstance(value, (Mark, Bound)):
        return UNKNOWN
    return any(isinstance(value, kind) for kind in types if kind is not None)


def _setattr(_: "Evaluator", given: Given, frame: "Frame") -> Any:
    part = given.get(0, "obj")
    if isinstance(part, Part):
        _add(part, given.get(1, "name"), given.get(2, "value"), frame)
    return None


def _getattr(_: "Evaluator", given: Given, __: "Frame") -> Any:
    part, name = given.get(0, "obj"), given.get(1, "name")
    return part.member(name) if isinstance(part, Part) and isinstance(name, str) else UNKNOWN


def _nothing(_: "Evaluator", given: Given, __: "Frame") -> Any:
    return None


def _unknown(_: "Evaluator", given: Given, __: "Frame") -> Any:
    return UNKNOWN


_BUILTINS: dict[str, Callable[["Evaluator", Given, "Frame"], Any]] = {
    "range": _range,
    "len": _len,
    "list": _list,
    "set": _list,
    "sorted": _unknown,
    "tuple": _tuple,
    "dict": _dict,
    "reversed": _reversed,
    "enumerate": _enumerate,
    "zip": _zip,
    "int": _number(int),
    "float": _number(float),
    "abs": _number(abs),
    "round": _number(round),
    "min": _number(min),
    "max": _number(max),
    "sum": _number(sum),
    "str": _text,
    "bool": _truth,
    "isinstance": _isinstance,
    "setattr": _setattr,
    "getattr": _getattr,
    "hasattr": _unknown,
    "print": _nothing,
    "type": _unknown,
}
