"""What calls hand on with stars, ``evaluate(*args)``, ``evaluate(**settings)``, and what ``*args`` holds in a run."""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.events.things import Frame

Given: TypeAlias = tuple["Frame", cst.BaseExpression]


class _Arguments(NamedTuple):
    """The arguments of a call, in order and by name. ``is_open``: behind those in order come more."""

    positional: list[Given]
    keywords: dict[str, Given]
    is_open: bool = False


def given_with_stars(frame: "Frame", position: int | None, name: str) -> Given | None:
    """What the caller of a run gives for a parameter, where it hands on with stars what it was given itself."""
    if frame.call is None or frame.caller is None:
        return None
    arguments = _arguments(frame.caller, frame.call)
    if position is not None and 0 <= position < len(arguments.positional):
        return arguments.positional[position]
    return arguments.keywords.get(name)


def handed_on_to(frame: "Frame", call: cst.Call) -> tuple[list[Given], dict[str, Given]] | None:
    """What a call in a run gives, in order and by name, also with stars; ``None`` where more may be given in order."""
    arguments = _arguments(frame, call)
    return None if arguments.is_open else (arguments.positional, arguments.keywords)


def starred(frame: "Frame", binding: Binding) -> "tuple[Frame, cst.Tuple | cst.Dict] | None":
    """What a parameter with a star holds in a run, as though it were written as a display there."""
    if binding.kind is not BindingKind.PARAMETER or not isinstance(binding.node, cst.Param) or not binding.node.star:
        return None
    home = frame.run_of(binding.scope, of_callers=False)
    if home is None:
        return None
    if binding.node.star == "*":
        given = _rest_in_order(home)
        elements = None if given is None else [cst.Element(node) for _, node in given]
        return None if not given or elements is None else _at_one_place(given, cst.Tuple(elements))
    named = _rest_by_name(home)
    if not named:
        return None
    items = [cst.DictElement(cst.SimpleString(repr(key)), node) for key, (_, node) in named.items()]
    return _at_one_place(list(named.values()), cst.Dict(items))


def _at_one_place(given: list[Given], node: cst.Tuple | cst.Dict) -> "tuple[Frame, cst.Tuple | cst.Dict] | None":
    home = given[0][0]
    return (home, node) if all(item[0] is home for item in given) else None


def _arguments(frame: "Frame", call: cst.Call) -> _Arguments:
    positional, keywords, is_open = list[Given](), dict[str, Given](), False
    for arg in call.args:
        if arg.keyword is not None:
            keywords[arg.keyword.value] = frame, arg.value
        elif arg.star == "**":
            keywords.update(_spread_by_name(frame, arg.value))
        elif arg.star:
            spread = None if is_open else _spread_in_order(frame, arg.value)
            is_open = spread is None
            positional += spread or ()
        elif not is_open:
            positional.append((frame, arg.value))
    return _Arguments(positional, keywords, is_open)


def _spread_in_order(frame: "Frame", node: cst.BaseExpression) -> list[Given] | None:
    """What ``*args`` gives: what the function around was given so itself, or a list or tuple that is written there."""
    binding = _bound_once(frame, node)
    if binding is not None and isinstance(binding.node, cst.Param) and binding.node.star == "*":
        return _rest_in_order(frame)
    made = node if binding is None else assigned(binding)
    if not isinstance(made, (cst.List, cst.Tuple)) or any(
        isinstance(item, cst.StarredElement) for item in made.elements
    ):
        return None
    return [(frame, item.value) for item in made.elements]


def _spread_by_name(frame: "Frame", node: cst.BaseExpression) -> dict[str, Given]:
    binding = _bound_once(frame, node)
    if binding is not None and isinstance(binding.node, cst.Param) and binding.node.star == "**":
        return _rest_by_name(frame)
    made = node if binding is None else assigned(binding)
    if isinstance(made, cst.Call) and frame.model.qualified_name(made.func) == "builtins.dict":
        return {arg.keyword.value: (frame, arg.value) for arg in made.args if arg.keyword is not None}
    items = made.elements if isinstance(made, cst.Dict) else ()
    found = ((string_literal(item.key), item.value) for item in items if isinstance(item, cst.DictElement))
    return {key: (frame, value) for key, value in found if key is not None}


def _bound_once(frame: "Frame", node: cst.BaseExpression) -> Binding | None:
    """What binds a name in the run, the only one to do so, where nothing changes it in place."""
    bindings = frame.model.reaching(node) if isinstance(node, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].scope is not frame.scope:
        return None
    return None if any(True for _ in changes_of_bound(frame.model, bindings[0])) else bindings[0]


def _rest_in_order(frame: "Frame") -> list[Given] | None:
    """What ``*args`` of the function that runs holds: the arguments in order that have no parameter of their own."""
    if frame.call is None or frame.caller is None or frame.function is None:
        return None
    arguments = _arguments(frame.caller, frame.call)
    taken = len(frame.function.parameters) - (frame.function.self_name is not None)
    return None if arguments.is_open else arguments.positional[taken:]


def _rest_by_name(frame: "Frame") -> dict[str, Given]:
    """What ``**kwargs`` of the function that runs holds."""
    if frame.call is None or frame.caller is None or frame.function is None:
        return {}
    named = {parameter.name.value for parameter in frame.function.named_parameters}
    return {key: given for key, given in _arguments(frame.caller, frame.call).keywords.items() if key not in named}
