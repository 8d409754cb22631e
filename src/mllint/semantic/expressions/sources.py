"""What an expression is computed from: by its spelling alone, and without a function between."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.syntax.shape import constant, dotted_path, last_word, subscript_index
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NO_VALUES = (BindingKind.IMPORT, BindingKind.FUNCTION, BindingKind.CLASS)
"""What nothing is computed from: the ``np`` of ``np.mean(losses)``."""
_TAKING_ONE_NUMBER = frozenset({"backward", "manual_backward", "scale", "scale_loss"})


class Sources:
    """The names and paths that an expression is computed from without a function, each as it is bound there.

    Of one item of a thing (``out[1]``) another one is no source.
    """

    def __init__(self, model: "Model", node: cst.BaseExpression) -> None:
        self._model = model
        self._entry = constant(subscript_index(node)) if isinstance(node, cst.Subscript) else ...
        paths = operands(node)
        for path in tuple(paths):  # `loss *= weight` goes on with the graph of the loss before
            changes = [binding.node for binding in model.reaching(path) if binding.kind is BindingKind.AUGMENTED]
            paths += [change.target for change in changes if isinstance(change, cst.AugAssign)]
        bindings = (binding for path in paths for binding in model.reaching(path))
        self._bindings = {id(binding) for binding in bindings if binding.kind not in _NO_VALUES}
        self._unbound = {dotted_path(path) for path in paths if not model.reaching(path)}

    def include(self, node: cst.BaseExpression, bindings: tuple[Binding, ...]) -> bool:
        """Whether a name or path elsewhere stands for one of them."""
        if self._entry is not ... and self._is_apart(node):
            return False
        if not bindings:
            return isinstance(node, cst.Attribute) and dotted_path(node) in self._unbound
        return any(id(binding) in self._bindings for binding in bindings)

    def _is_apart(self, node: cst.BaseExpression) -> bool:
        """Whether the other place reads another item, or the whole as one number, of which only the first is one."""
        parent = self._model.tree.parent(node)
        if isinstance(parent, cst.Subscript) and parent.value is node:
            other = constant(subscript_index(parent))
            is_counted = isinstance(other, int) and isinstance(self._entry, int) and (other < 0) == (self._entry < 0)
            return other != self._entry and (is_counted or (isinstance(other, str) and isinstance(self._entry, str)))
        call = self._model.tree.parent(parent) if isinstance(parent, (cst.Arg, cst.Attribute)) else None
        is_number = isinstance(call, cst.Call) and last_word(call.func) in _TAKING_ONE_NUMBER
        return is_number and self._entry not in (0, -1)


_SAME_GRAPH = frozenset({"mean", "sum", "float", "double", "cpu", "clone", "squeeze", "view", "to"})


def operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The names and dotted paths whose graph an expression shares: operands, and receivers of reductions."""
    match node:
        case cst.Name() | cst.Attribute() if dotted_path(node) is not None:
            return [node]
        case cst.BinaryOperation():
            return [*operands(node.left), *operands(node.right)]
        case cst.UnaryOperation():
            return operands(node.expression)
        case cst.Subscript():
            return operands(node.value)
        case cst.Call(func=cst.Attribute() as callee) if callee.attr.value in _SAME_GRAPH:
            return operands(callee.value)
    return []


def paths_in(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The names and dotted paths in an expression, with the shorter paths that they begin with."""
    found: list[cst.BaseExpression] = []
    pending: list[cst.CSTNode] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.Arg):
            pending.append(current.value)  # the keyword is no name of the scope
        elif isinstance(current, cst.Attribute):
            found += [] if dotted_path(current) is None else [current]
            pending.append(current.value)  # the last name is no name of the scope
        elif isinstance(current, cst.Name):
            found.append(current)
        else:
            pending.extend(children(current))
    return found


def names_in(node: cst.CSTNode) -> list[cst.Name]:
    """The names of the scope that an expression reads."""
    return [path for path in paths_in(node) if isinstance(path, cst.Name)]
