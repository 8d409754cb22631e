"""Through which calls a function was entered, and what its parameters stand for then."""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Value
from mllint.syntax.shape import argument

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_DEPTH = 12
"""Through how many names and calls something is followed."""


class Route(msgspec.Struct, frozen=True):
    """The call through which a function was entered, in the file of ``caller``."""

    caller: "Follower"
    call: cst.Call
    definition: "FunctionInfo"

    def argument(self, name: str) -> "tuple[Follower, cst.BaseExpression] | None":
        """What the call gives for a parameter, with where that stands."""
        definition = self.definition
        names = [parameter.name.value for parameter in definition.parameters]
        skipped = 1 if definition.self_name is not None else 0
        position = names.index(name) - skipped if name in names else None
        given = argument(self.call, position, name)
        if given is not None:
            return self.caller, given.value
        default = next((item.default for item in definition.named_parameters if item.name.value == name), None)
        if default is None or any(arg.star for arg in self.call.args):
            return None
        return Follower(definition.model), default


class Follower:
    """Follows names in one file; ``route`` says how the function at hand was entered."""

    def __init__(self, model: "Model", route: Route | None = None, depth: int = 0) -> None:
        self.model = model
        self.route = route
        self.depth = depth

    def given(self, binding: Binding) -> "tuple[Follower, cst.BaseExpression] | None":
        """What a parameter is given by the call through which its function was entered, with where that stands."""
        route = self.route
        if route is None or binding.kind is not BindingKind.PARAMETER:
            return None
        return route.argument(binding.key) if binding.scope.node is route.definition.node else None

    def origin(self, node: cst.BaseExpression) -> "tuple[Follower, cst.BaseExpression]":
        """The expression that a parameter stands for, through the calls that led here; others stand for themselves."""
        if isinstance(node, cst.Name):
            bindings = self.model.reaching(node)
            given = self.given(bindings[0]) if len(bindings) == 1 else None
            if given is not None:
                return given[0].origin(given[1])
        return self, node

    def value(self, node: cst.BaseExpression) -> Value | None:
        """What an expression is, through the calls that led here."""
        follower, source = self.origin(node)
        return follower.model.value(source)
