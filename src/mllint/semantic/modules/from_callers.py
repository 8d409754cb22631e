"""Things of which only the callers in sight say what they are: others may give something else."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.events.places import as_itself, handed_back
from mllint.semantic.events.things import Frame
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Function
from mllint.syntax.iteration import sources
from mllint.syntax.shape import argument, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def is_from_callers(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a thing, or what it is an attribute or an element of, is a parameter that is not declared.

    Also where it goes through names, attributes of ``self``, or a function that gives back what it is given.
    """
    return _Search().is_given(model, node)


class _Search:
    """What names are bound to is looked into once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def is_given(self, model: "Model", node: cst.BaseExpression) -> bool:
        node = as_itself(node)
        match node:
            case cst.Name():
                return any(map(self._is_bound_to_given, Frame(model).bindings_of(node)))
            case cst.Attribute():
                owner = owner_of_attribute(model, node)
                if owner is not None:
                    return any(map(self._is_bound_to_given, owner.assignments(node.attr.value)))
                bindings = model.reaching(node)
                return any(map(self._is_bound_to_given, bindings)) if bindings else self.is_given(model, node.value)
            case cst.Subscript():
                return self.is_given(model, node.value)
            case cst.IfExp():
                return any(self.is_given(model, side) for side in (node.body, node.orelse))
            case cst.Call():
                return self._is_handed_back(model, node)
        return False

    def _is_bound_to_given(self, binding: Binding) -> bool:
        if id(binding) in self._seen:
            return False
        self._seen.add(id(binding))
        if binding.kind is BindingKind.PARAMETER:
            return isinstance(binding.node, cst.Param) and binding.node.annotation is None
        if binding.value is None or binding.kind not in (BindingKind.ASSIGN, BindingKind.LOOP, BindingKind.WITH):
            return False  # declared, or tested by `isinstance`
        model = binding.scope.model
        values = [item.node for item in sources(binding.value)] if binding.kind is BindingKind.LOOP else [binding.value]
        return any(self.is_given(model, value) for value in values)

    def _is_handed_back(self, model: "Model", call: cst.Call) -> bool:
        called = model.value(call.func)
        back = handed_back(called.definition) if isinstance(called, Function) else None
        given = None if back is None or has_star_arguments(call) else argument(call, *back)
        return given is not None and self.is_given(model, given.value)
