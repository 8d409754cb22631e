"""What a call may make a part of a module by: a class that a setting, a table or a caller picks.

``NORMS[kind](channels)``, ``norm_layer(channels)`` behind ``if norm_layer is None: norm_layer = nn.BatchNorm2d``,
``partial(nn.BatchNorm2d, eps=1e-3)(channels)``.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.held import held
from mllint.semantic.events.places import is_nothing
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.tables import dict_value
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Choice, Mapping, Nothing, Symbol, Value
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 6
_ASSIGNED = (BindingKind.ASSIGN, BindingKind.ANNOTATED)


def makers(model: "Model", callee: cst.BaseExpression, run: Frame | None) -> tuple[Value | None, ...]:
    """The classes and functions that a callee may stand for, in the run of its function where that is known.

    ``None`` is among them where it may be something else. Of several, ``RReLU`` is none: tables of activations have it,
    and hardly anybody picks it.
    """
    known = model.value(callee)
    if known is not None and not isinstance(known, Choice):
        return (known,)
    several = tuple(dict.fromkeys(_makers(run or Frame(model), callee, _MAX_STEPS)))
    return tuple(maker for maker in several if not (isinstance(maker, Symbol) and maker.name.endswith(".RReLU")))


def _makers(frame: Frame, node: cst.BaseExpression, steps: int) -> Iterator[Value | None]:
    value = frame.value(node)
    if value is not None or steps == 0:
        yield from value.options if isinstance(value, Choice) else (value,)
    elif isinstance(node, cst.Name):
        yield from _bound(frame, frame.bindings_of(node), steps - 1)
    elif isinstance(node, cst.IfExp):
        for side in (node.body, node.orelse):
            yield from _makers(frame, side, steps - 1)
    elif isinstance(node, cst.BooleanOperation):
        given = list(_makers(frame, node.left, steps - 1))  # nothing: `norm_layer or nn.LayerNorm`
        yield from given or _makers(frame, node.right, steps - 1)
    elif isinstance(node, cst.Call):
        yield from _given_back(frame, node, steps - 1)
    else:
        kept = held(frame, node)
        yield from (None,) if kept is None else _makers(*kept, steps - 1)


def _bound(frame: Frame, bindings: tuple[Binding, ...], steps: int) -> Iterator[Value | None]:
    """What the bindings of a name give: of a parameter what the caller gives, or its default where no caller is known.

    Where that is nothing, another binding is there to take its place; and only then.
    """
    given = [item for item in bindings if item.kind is BindingKind.PARAMETER]
    assigned = [item for item in bindings if item.kind in _ASSIGNED and item.value is not None and not item.path]
    is_given = False
    for binding in given:
        home, passed = frame.given(binding) or (frame, _default(binding))
        if passed is None:
            yield None
        elif not isinstance(home.value(passed), Nothing):
            is_given = True
            yield from _makers(home, passed, steps)
    for binding in () if is_given else assigned:
        assert binding.value is not None
        if not is_nothing(binding):
            yield from _makers(frame, binding.value, steps)
    if not given and not assigned:
        yield None


def _default(binding: Binding) -> cst.BaseExpression | None:
    return binding.node.default if isinstance(binding.node, cst.Param) else None


def _given_back(frame: Frame, call: cst.Call, steps: int) -> Iterator[Value | None]:
    """What ``partial`` calls, and what ``get`` of a table finds, or gives where it finds nothing."""
    if call.args and frame.model.qualified_name(call.func) == "functools.partial":
        yield from _makers(frame, call.args[0].value, steps)
        return
    table = frame.value(call.func.value) if isinstance(call.func, cst.Attribute) else None
    picked = dict_value(table) if isinstance(table, Mapping) and last_word(call.func) == "get" else None
    yield from picked.options if isinstance(picked, Choice) else (picked,)
    for arg in call.args[1:] if picked is not None else ():
        yield from _makers(frame, arg.value, steps)
