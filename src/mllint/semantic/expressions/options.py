"""What the options of a program are, from what ``argparse`` is told of them."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.values import Nothing, Number, Object, Repeated, Symbol, Text, Value, join
from mllint.syntax.shape import argument, constant, dotted_path, has_star_arguments, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool"})
_SWITCHES = frozenset({"store_true", "store_false", "count"})


def option(declaring: "Model", reading: "Model", name: str) -> Value | None:
    """What ``options.name`` is, where ``declaring`` is the file that parses them and ``reading`` the one that asks.

    ``None`` also for an option to which one of the files assigns something else.
    """
    if _is_assigned(declaring, name) or (reading is not declaring and _is_assigned(reading, name)):
        return None
    result: Value | None = Nothing()
    for call in declaring.calls_by_word.get("add_argument", ()):
        if _destination(call) == name:
            result = join(result, _declared(declaring, call))
            if result is None:
                return None
    return None if isinstance(result, Nothing) else result


def declaration(declaring: "Model", reading: "Model", name: str) -> cst.Call | None:
    """The call that declares ``options.name``; ``None`` where it is not one, or where a file assigns something else."""
    if _is_assigned(declaring, name) or (reading is not declaring and _is_assigned(reading, name)):
        return None
    calls = [call for call in declaring.calls_by_word.get("add_argument", ()) if _destination(call) == name]
    return calls[0] if len(calls) == 1 else None


def default_of_option(declaring: "Model", reading: "Model", name: str) -> cst.BaseExpression | None:
    """The default of ``options.name``; ``None`` where there is none, or where a file assigns something else."""
    declared = declaration(declaring, reading, name)
    default = None if declared is None else argument(declared, None, "default")
    return None if default is None else default.value


def _is_assigned(model: "Model", name: str) -> bool:
    """Whether an attribute of that name is assigned anywhere in a file; what an object keeps itself is no option."""
    for node in model.names_by_word.get(name, ()):
        attribute = model.tree.parent(node)
        if isinstance(attribute, cst.Attribute) and attribute.attr is node and dotted_path(attribute.value) != "self":
            holder = model.tree.parent(attribute)
            if isinstance(holder, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)) and holder.target is attribute:
                return True
    return False


def _destination(call: cst.Call) -> str | None:
    """The attribute under which the value of an option is found."""
    given = argument(call, None, "dest")
    if given is not None:
        return string_literal(given.value)
    flags = [string_literal(arg.value) or "" for arg in call.args if arg.keyword is None and not arg.star]
    chosen = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    return chosen.lstrip("-").replace("-", "_")


def _declared(model: "Model", call: cst.Call) -> Value | None:
    if has_star_arguments(call):
        return None
    action, kind = argument(call, None, "action"), argument(call, None, "type")
    default, count = argument(call, None, "default"), argument(call, None, "nargs")
    if action is not None:
        return Number() if string_literal(action.value) in _SWITCHES else None
    value = Text() if kind is None else _converted(model.value(kind.value))
    if value is None or (default is not None and not _agrees(value, default.value, model)):
        return None
    if count is None or string_literal(count.value) == "?":
        return value
    return Repeated(value)


def _converted(kind: Value | None) -> Value | None:
    name = kind.name if isinstance(kind, Symbol) else None
    if name in ("pathlib.Path", "pathlib.PurePath"):
        return Object("path", name)
    return Number() if name in _NUMBERS else Text() if name == "builtins.str" else None


def _agrees(value: Value, default: cst.BaseExpression, model: "Model") -> bool:
    """Whether the default is a thing of the same kind; a string is converted like one that is typed."""
    if constant(default) is None or isinstance(model.value(default), Text):
        return True
    return type(model.value(default)) is type(value)
