"""Through which hands a module has come to a place: names, arguments and functions, and the wrappers on the way."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.checkpoints.wrappings import bindings_of, parts_returned, passed_to, returned_by, takes_out
from mllint.semantic.events.places import itself_of
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_PLACES = 60
"""After how many expressions a journey is no longer followed."""


class Journey:
    """How the module that an expression stands for has come there, on all ways and backwards.

    ``bindings`` are the names and parameters that it had, ``wrapped`` what was put into a wrapper that adds a prefix
    (with the file), and ``models`` the files through which it came.
    """

    def __init__(self, model: "Model", node: cst.BaseExpression) -> None:
        self.bindings: set[Binding] = set()
        self.wrapped: list[tuple[Model, cst.BaseExpression]] = []
        self._pending = [(model, node)]
        for here, place in self._pending:
            if len(self._pending) <= MAX_PLACES:
                self._go_back(here, place)
        self.models = tuple(dict.fromkeys(here for here, _ in self._pending))

    def _go_back(self, model: "Model", node: cst.BaseExpression) -> None:
        """Note what an expression stands for, one step back."""
        if isinstance(node, cst.IfExp):
            self._pending += [(model, node.body), (model, node.orelse)]
        elif isinstance(node, cst.Call):
            self._go_into(model, node)
        elif not takes_out(node):
            for binding in bindings_of(model, node):
                if binding not in self.bindings:
                    self.bindings.add(binding)
                    self._pending += _before(binding)

    def _go_into(self, model: "Model", call: cst.Call) -> None:
        itself = itself_of(model, call)
        if itself is not None:
            self._pending.append((model, itself))
            return
        wrapper = lookup.wrapper(model.qualified_name(call.func) or "")
        if wrapper is not None and wrapper.prefix and call.args and not call.args[0].star:
            self.wrapped.append((model, call.args[0].value))
            self._pending.append((model, call.args[0].value))
        else:
            self._pending += returned_by(model.value(call.func))


def _before(binding: Binding) -> list[tuple["Model", cst.BaseExpression]]:
    """What a binding binds; where that is a part of what a function returns, that part."""
    home, value = binding.scope.model, binding.value
    if binding.kind is BindingKind.PARAMETER:
        return passed_to(binding)
    if binding.kind is not BindingKind.ASSIGN or value is None:
        return []
    if not binding.path:
        return [(home, value)]
    return parts_returned(home.value(value.func), binding.path) if isinstance(value, cst.Call) else []


@worked_out_once
def journey_of(model: "Model", node: cst.BaseExpression) -> Journey:
    """The journey of what an expression stands for: every load around asks, and it is followed once."""
    return Journey(model, node)
