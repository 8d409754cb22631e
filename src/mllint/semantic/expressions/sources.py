"""What an expression is computed from without a function between."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.operands import operands
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class Sources:
    """The names and paths that an expression is computed from without a function, each as it is bound there."""

    def __init__(self, model: "Model", node: cst.BaseExpression) -> None:
        paths = operands(node)
        for path in tuple(paths):  # `loss *= weight` goes on with the graph of the loss before
            changes = [binding.node for binding in model.reaching(path) if binding.kind is BindingKind.AUGMENTED]
            paths += [change.target for change in changes if isinstance(change, cst.AugAssign)]
        self._bindings = {id(binding) for path in paths for binding in model.reaching(path)}
        self._unbound = {dotted_path(path) for path in paths if not model.reaching(path)}

    def include(self, node: cst.BaseExpression, bindings: tuple[Binding, ...]) -> bool:
        """Whether a name or path elsewhere stands for one of them."""
        if not bindings:
            return isinstance(node, cst.Attribute) and dotted_path(node) in self._unbound
        return any(id(binding) in self._bindings for binding in bindings)
