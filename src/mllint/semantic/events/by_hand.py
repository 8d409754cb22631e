"""What is done by hand to gradients, ``w.grad.zero_()``, and with them to parameters: ``w.data -= rate * w.grad``."""

from collections.abc import Iterable

import libcst as cst

from mllint.semantic.events.owners import owner_of_parameters
from mllint.semantic.events.things import Frame, Thing
from mllint.syntax.shape import called_on, dotted_path
from mllint.syntax.walk import subtree

GRADIENT = frozenset({"grad", "_grad"})


def holder_of_gradient(call: cst.Call) -> cst.BaseExpression | None:
    """The parameter of whose gradient a method is called; ``None`` where it is called of anything else."""
    receiver = called_on(call)
    while isinstance(receiver, cst.Attribute) and receiver.attr.value == "data":
        receiver = receiver.value
    is_gradient = isinstance(receiver, cst.Attribute) and receiver.attr.value in GRADIENT
    return receiver.value if is_gradient and isinstance(receiver, cst.Attribute) else None


def owner_updated(frame: Frame, target: cst.BaseExpression, given: Iterable[cst.CSTNode]) -> Thing | None:
    """The module whose parameter is changed in place by its own gradient, if that is what happens."""
    is_data = isinstance(target, cst.Attribute) and target.attr.value == "data"
    parameter = target.value if is_data and isinstance(target, cst.Attribute) else target
    path = dotted_path(parameter)
    if path is None or "grad" not in frame.model.names_by_word:
        return None
    parts = (item for part in given for item in subtree(part) if type(item) is cst.Attribute)
    is_own = any(item.attr.value in GRADIENT and dotted_path(item.value) == path for item in parts)
    return owner_of_parameters(frame, parameter) if is_own else None
