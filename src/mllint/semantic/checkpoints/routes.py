"""Expressions in some file, through which calls their function was entered, and what its parameters stand for then."""

from pathlib import PurePath
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.diagnostics import Location
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Value
from mllint.syntax.parse import ParseError
from mllint.syntax.shape import argument
from mllint.syntax.spans import RoundTripError, spans_of

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


class Place(msgspec.Struct, frozen=True):
    """An expression in some file."""

    model: "Model"
    node: cst.CSTNode

    def is_of(self, model: "Model", node: cst.CSTNode) -> bool:
        """Whether it is this expression of a file, also where that file was read twice."""
        if self.model is model or self.node is node:
            return self.model is model and self.node is node
        return self.model.path == model.path and self.model.tree.twin(node, model.tree) is self.node

    def seen_from(self, model: "Model") -> str:
        """The place as a message in another file, or in the same one, names it: ``train.py:12`` or ``line 12``."""
        start = self._start()
        if self.model is model:
            if start is None:
                return "this file"
            return f"line {start.row}" if start.cell is None else f"cell {start.cell}, line {start.row}"
        name = PurePath(self.model.source.path).name
        return f"`{name}`" if start is None else f"{name}:{start.row}"

    def _start(self) -> Location | None:
        """Where the expression begins; ``None`` in a file that cannot be printed back as it was."""
        source = self.model.source
        try:
            tree = self.model.full_tree
            node = tree.twin(self.node, self.model.tree)
            start = None if node is None else spans_of(tree.module, [node], source.program)[id(node)][0]
        except (ParseError, RoundTripError):
            return None
        return None if start is None else source.placed(source.location(start))
