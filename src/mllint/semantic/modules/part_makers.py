"""What a call may make a part of a module by: a class that a setting, a table or a caller picks.

``NORMS[kind](channels)``, ``norm_layer(channels)`` behind ``if norm_layer is None: norm_layer = nn.BatchNorm2d``,
``partial(nn.BatchNorm2d, eps=1e-3)(channels)``. What nobody in sight gives is taken to be its default.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.given import truth
from mllint.semantic.events.held import held
from mllint.semantic.events.places import is_nothing
from mllint.semantic.events.things import Frame
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Choice, Mapping, Nothing, Value
from mllint.syntax.shape import called_on, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 8
_MAX_ENTRIES = 30
_ASSIGNED = (BindingKind.ASSIGN, BindingKind.ANNOTATED)


def makers(model: "Model", callee: cst.BaseExpression, run: Frame | None) -> tuple[Value | None, ...]:
    """The classes and functions that a callee may stand for, in the run of its function where that is known.

    ``None`` is among them where it may be something else.
    """
    known = model.value(callee)
    if known is not None and not isinstance(known, Choice):
        return (known,)
    return tuple(dict.fromkeys(_makers(run or Frame(model), callee, _MAX_STEPS)))


def _makers(frame: Frame, node: cst.BaseExpression, steps: int) -> Iterator[Value | None]:
    value = frame.value(node)
    if steps == 0 or (value is not None and not isinstance(value, Choice)):
        yield value
        return
    match node:
        case cst.Name():
            yield from _bound(frame, frame.bindings_of(node), steps - 1)
        case cst.IfExp():
            is_met = truth(frame, node.test)
            for side in (node.body, node.orelse) if is_met is None else (node.body if is_met else node.orelse,):
                yield from _makers(frame, side, steps - 1)
        case cst.BooleanOperation():
            given = list(_makers(frame, node.left, steps - 1))  # nothing: `norm_layer or nn.LayerNorm`
            yield from given or _makers(frame, node.right, steps - 1)
        case cst.Lambda(body=cst.Call(func=made)):
            yield from _makers(frame, made, steps - 1)
        case cst.Call(func=func, args=[first, *_]) if frame.model.qualified_name(func) == "functools.partial":
            yield from _makers(frame, first.value, steps - 1)
        case cst.Call(args=[word, *others]) if last_word(node.func) == "get":
            default = others[0].value if others else None
            yield from _picked(frame, called_on(node), word.value, default, steps - 1)
        case cst.Subscript() if (key := subscript_index(node)) is not None:
            yield from _picked(frame, node.value, key, None, steps - 1)
        case _:
            kept = held(frame, node)
            yield from (None,) if kept is None else _makers(*kept, steps - 1)


def _bound(frame: Frame, bindings: tuple[Binding, ...], steps: int) -> Iterator[Value | None]:
    """What the bindings of a name give: of a parameter what the caller gives, or its default.

    Where that is nothing, another binding is there to take its place; and only then.
    """
    given = [item for item in bindings if item.kind is BindingKind.PARAMETER]
    assigned = [item.value for item in bindings if item.kind in _ASSIGNED and not item.path and not is_nothing(item)]
    is_given = False
    for binding in given:
        home, passed = frame.given(binding) or (frame, _default(binding))
        if passed is None:
            yield None
        elif not isinstance(home.value(passed), Nothing):
            is_given = True
            yield from _makers(home, passed, steps)
    for value in () if is_given else assigned:
        yield from (None,) if value is None else _makers(frame, value, steps)
    if not given and not assigned:
        yield None


def _default(binding: Binding) -> cst.BaseExpression | None:
    return binding.node.default if isinstance(binding.node, cst.Param) else None


def _picked(
    frame: Frame,
    table: cst.BaseExpression | None,
    key: cst.BaseExpression,
    default: cst.BaseExpression | None,
    steps: int,
) -> Iterator[Value | None]:
    """What a table that is written out has under a key; all that it has where the key is not known."""
    known = None if table is None else frame.value(table)
    if not isinstance(known, Mapping) or not isinstance(known.node, cst.Dict) or known.home is None:
        yield None
        return
    word, home = _word(frame, key, steps), Frame(known.home)
    elements = [item for item in known.node.elements[:_MAX_ENTRIES] if isinstance(item, cst.DictElement)]
    found = [item for item in elements if word is None or string_literal(item.key) == word]
    for element in found:
        yield from _makers(home, element.value, steps)
    if default is not None and (word is None or not found):
        yield from _makers(frame, default, steps)


def _word(frame: Frame, node: cst.BaseExpression, steps: int) -> str | None:
    """The text that an expression stands for: as it is given, or else by default."""
    written = string_literal(node)
    if written is not None or steps == 0:
        return written
    if not isinstance(node, cst.Name):
        kept = held(frame, node)
        return None if kept is None else _word(*kept, steps - 1)
    bindings = frame.bindings_of(node)
    if len(bindings) != 1:
        return None
    given, default = frame.given(bindings[0]), _default(bindings[0])
    word = None if given is None else _word(*given, steps - 1)
    if word is None and default is not None:
        return string_literal(default)
    is_assigned = bindings[0].kind in _ASSIGNED and bindings[0].value is not None and not bindings[0].path
    return _word(frame, bindings[0].value, steps - 1) if word is None and is_assigned else word  # type: ignore[arg-type]
