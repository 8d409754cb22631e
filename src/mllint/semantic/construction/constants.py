"""What a name, an attribute of a class or an entry of a dict always stands for: it is bound once, and never changed."""

import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from mllint.semantic.construction.evaluation import Evaluator, Frame, TooMuchError
from mllint.semantic.construction.parts import UNKNOWN
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.foreign_reads import is_derived_elsewhere
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import ClassObject
from mllint.syntax.shape import constant, is_target

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_READING = (cst.Name, cst.Attribute, cst.Subscript)


def constant_of(model: "Model", node: cst.BaseExpression | None) -> object:
    """The constant that an expression is, or what it reads always stands for: ``STRICT``, ``Options.strict``,
    ``OPTIONS["strict"]``. ``Ellipsis`` for anything else.
    """
    value = constant(node)
    if value is not ... or not isinstance(node, _READING):
        return value
    found = Constants().worth(model, node)
    return found if found is None or isinstance(found, (bool, int, float, str)) else ...


class Constants(Evaluator):
    """The value of what an expression reads. Calls are not followed, nor is what a function binds anew."""

    def worth(self, model: "Model", node: cst.BaseExpression) -> Any:
        """The value, ``UNKNOWN`` where it cannot be told."""
        try:
            return self.evaluate(node, Frame(model))
        except TooMuchError:
            return UNKNOWN

    def call(self, node: cst.Call, frame: Frame) -> Any:
        """What a call gives is not known."""
        return UNKNOWN

    def _bound(self, binding: Binding) -> Any:
        home, is_local = binding.scope.model, binding.scope.is_function
        is_changed = binding.key in names_set_elsewhere(home)
        if is_changed or (not is_local and _is_set_from_outside(home, binding.key)):
            return UNKNOWN
        return super()._bound(binding)

    def evaluate(self, node: cst.CSTNode, frame: Frame) -> Any:
        """Of a class, and of its own object, what the body of the class binds where nothing else sets it."""
        owner = _owner(frame.model, node.value) if isinstance(node, cst.Attribute) else None
        if owner is None or not isinstance(node, cst.Attribute):
            return super().evaluate(node, frame)
        return self.class_attribute(owner, node.attr.value) if _is_set_once(owner, node.attr.value) else UNKNOWN


@worked_out_once
def _is_set_from_outside(model: "Model", name: str) -> bool:
    """Whether some file of the project sets what may be the name of a file or class: ``settings.STRICT = True``."""
    pattern = re.compile(rb"\." + re.escape(name.encode()) + rb"[ \t]*=(?!=)")
    return model.project is not None and model.project.is_written_anywhere(model.path, pattern)


def reads_body_of_class(model: "Model", node: cst.Attribute) -> bool:
    """Whether an attribute is one that the body of its class binds, or of a base of the project."""
    owner, name = _owner(model, node.value), node.attr.value
    return owner is not None and any(name in info.model.scope(info.node).bindings for info in owner.lineage)


def _owner(model: "Model", node: cst.BaseExpression) -> "ClassInfo | None":
    """The class that an expression is, or of whose object it is the name in a method."""
    method = method_of_receiver(model, node)
    if method is not None:
        return method.owner
    value = model.value(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
    return value.definition if isinstance(value, ClassObject) else None


@worked_out_once
def names_set_elsewhere(model: "Model") -> frozenset[str]:
    """The names of a file that a function of it binds, too: ``global STRICT``."""
    declared = (*model.tree.by_type.get(cst.Global, ()), *model.tree.by_type.get(cst.Nonlocal, ()))
    return frozenset(item.name.value for statement in declared for item in statement.names)


def _is_set_once(definition: "ClassInfo", name: str) -> bool:
    """Whether only the body of a class sets an attribute. Of an enumeration and a record it is something else."""
    is_plain = all(base in PLAIN_BASES for base in definition.library_bases) and not definition.node.decorators
    if definition.has_unknown_base or not is_plain or definition.members.sets_computed_names:
        return False
    if is_derived_elsewhere(definition.members):
        return False  # a class of another file may set it anew
    is_set = any(
        is_target(home.tree.parent(attribute), attribute)
        for home in definition.members.models
        for attribute in attributes(home, name)
    )
    return not is_set and len(list(definition.members.assignments(name))) == 1
