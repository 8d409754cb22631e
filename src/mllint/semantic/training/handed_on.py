"""What an argument is made of further out: in the body of a caller, from which functions of the project hand it on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.things import Frame
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.training.data_loops import FILLING, filled_by, is_next
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_STEPS = 16
"""How many names, functions' parameters among them, are followed from a forward pass to the loop that feeds it."""


def as_given(frame: Frame, expression: cst.BaseExpression, outer: Frame) -> Iterator[cst.BaseExpression]:
    """What an expression is made of in the body of an outer run, from which functions of the project lead to it."""
    reached = [(frame, expression)]
    seen: set[tuple[int, Binding]] = set()
    for steps in range(_MAX_STEPS + 1):
        sources: list[tuple[Frame, cst.BaseExpression]] = []
        for inner, part in reached:
            if _is_same_run(inner, outer) or steps == _MAX_STEPS or is_next(part):
                yield part
                continue
            names = (item for item in subtree(part) if type(item) is cst.Name)
            for binding in without_narrowing(binding for name in names for binding in inner.model.reaching(name)):
                if (id(inner), binding) not in seen:
                    seen.add((id(inner), binding))
                    sources += _sources(inner, binding)
                    sources += ((inner, item) for item in _put_into(binding))
        reached = sources


def _is_same_run(inner: Frame, outer: Frame) -> bool:
    """Whether two are one run of a body, the one perhaps in a round of a loop over literals."""
    return inner is outer or (inner.scope is outer.scope and inner.call is outer.call and inner.caller is outer.caller)


def _put_into(binding: Binding) -> Iterator[cst.BaseExpression]:
    """What a body puts into the list that a name stands for: ``row`` of ``rows.append(row)``."""
    model = binding.scope.model
    for call in _fillings(model).get(binding.key, ()):
        if model.scope_of(call) is binding.scope:
            yield from (arg.value for arg in call.args)


@worked_out_once
def _fillings(model: "Model") -> dict[str, list[cst.Call]]:
    """The calls in a file that put something into a list, by the name of that."""
    found: dict[str, list[cst.Call]] = {}
    for call in (call for word in FILLING for call in model.calls_by_word.get(word, ())):
        for name in filled_by(call):
            found.setdefault(name, []).append(call)
    return found


def _sources(frame: Frame, binding: Binding) -> list[tuple[Frame, cst.BaseExpression]]:
    """What a name was bound to: what the caller gives, also as a part of ``**batch``, or what is assigned."""
    given = frame.given(binding)
    if given is not None:
        return [given]
    function = frame.function
    is_passed = binding.kind is BindingKind.PARAMETER and function is not None and binding.key != function.self_name
    if is_passed and frame.call is not None and frame.caller is not None:
        return [(frame.caller, arg.value) for arg in frame.call.args if arg.star]
    return [(frame, binding.value)] if binding.value is not None and binding.kind is BindingKind.ASSIGN else []
