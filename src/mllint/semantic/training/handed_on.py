"""What an argument is made of further out: in the body of a caller, from which functions of the project hand it on."""

from collections.abc import Iterator

import libcst as cst

from mllint.semantic.events.things import Frame
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.training.data_loops import filled_by, is_next
from mllint.syntax.walk import subtree

_MAX_STEPS = 16
"""How many names, functions' parameters among them, are followed from a forward pass to the loop that feeds it."""


def as_given(frame: Frame, expression: cst.BaseExpression, outer: Frame) -> Iterator[cst.BaseExpression]:
    """What an expression is made of in the body of an outer run, from which functions of the project lead to it."""
    reached = [(frame, expression)]
    seen: set[tuple[int, Binding]] = set()
    for steps in range(_MAX_STEPS + 1):
        sources: list[tuple[Frame, cst.BaseExpression]] = []
        for inner, part in reached:
            if inner is outer or steps == _MAX_STEPS or is_next(part):
                yield part
                continue
            names = (item for item in subtree(part) if type(item) is cst.Name)
            for binding in without_narrowing(binding for name in names for binding in inner.model.reaching(name)):
                if (id(inner), binding) not in seen:
                    seen.add((id(inner), binding))
                    sources += _sources(inner, binding)
                    sources += ((inner, item) for item in _put_into(binding))
        reached = sources


def _put_into(binding: Binding) -> Iterator[cst.BaseExpression]:
    """What a body puts into the list that a name stands for: ``row`` of ``rows.append(row)``."""
    model = binding.scope.model
    for name in model.names_within(binding.key, binding.scope):
        method = model.tree.parent(name)
        call = model.tree.call_of(method) if isinstance(method, cst.Attribute) and method.value is name else None
        if call is not None and filled_by(call):
            yield from (arg.value for arg in call.args)


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
