"""What a method of a module class registers with the module, or asks of its tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, GIVING_PARAMETERS, LOADING, MODES
from mllint.semantic.expressions.annotations import members
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Module, Nothing, Tensor
from mllint.syntax.shape import last_statement

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_REGISTERS = ADDING_MODULES | ADDING_PARAMETERS | {"register_buffer"}
_ASKING = (
    *sorted(GIVING_PARAMETERS), *LOADING, *MODES, "state_dict", "children", "named_children", "modules",
    "named_modules", "buffers", "named_buffers", "sublayers", "named_sublayers", "zero_grad", "to", "cuda", "training",
)  # fmt: skip
"""What reads the tables, or what else the constructor of the framework's class sets."""


def registers(definition: "ClassInfo", method: "FunctionInfo", kind: type = cst.CSTNode) -> bool:
    """Whether a line of a method's body, a statement of some kind, surely registers something."""
    parts = (part for line in method.node.body.body for part in small_statements(line) if isinstance(part, kind))
    return any(registered_by(definition, method, part) is not None for part in parts)


def small_statements(line: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The statements on a line of a body; none for a compound one."""
    if isinstance(line, cst.SimpleStatementLine):
        return line.body
    return (line,) if isinstance(line, cst.BaseSmallStatement) else ()


def declares_module(definition: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether a line of a constructor declares that an attribute, ``None`` as yet, is to hold a module.

    None can ever be assigned to it: ``self.decoder: nn.Module | None = None``.
    """
    model = definition.model
    for line in method.node.body.body:
        for part in small_statements(line):
            if not isinstance(part, cst.AnnAssign) or part.value is None or not isinstance(part.target, cst.Attribute):
                continue
            if method_of_receiver(model, part.target.value) is method and isinstance(model.value(part.value), Nothing):
                declared = [value for value in members(model, part.annotation.annotation) if value != Nothing()]
                if declared and all(isinstance(value, Module) for value in declared):
                    return True
    return False


def uses_itself(definition: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether another method of a class than its constructor registers something, or asks for what is registered.

    So it is a module, though it has no ``forward``: ``self.parameters()``, ``self.decoder = nn.Linear(3, 4)``.
    """
    others = [item for item in definition.methods.values() if item is not method and item.self_name is not None]
    if any(registers(definition, item) for item in others):
        return True
    asked = (read for name in _ASKING if definition.method(name) is None for read in definition.members.reads(name))
    return any(read.method in others and _is_asked(read.method.model, read.node) for read in asked)


def _is_asked(model: "Model", name: cst.Attribute) -> bool:
    """Whether an attribute of the module is called, or is the flag that tells its mode."""
    parent = model.tree.parent(name)
    return name.attr.value == "training" or (isinstance(parent, cst.Call) and parent.func is name)


def registered_in_a_branch(definition: "ClassInfo", method: "FunctionInfo", branch: cst.If) -> str | None:
    """What a branch of an ``if`` surely registers that is not left before its end.

    Whoever comes there gets no further, whatever the other branches do.
    """
    current: cst.If | cst.Else | None = branch
    while current is not None:
        if not isinstance(last_statement(current.body), (cst.Return, cst.Raise)):
            for line in current.body.body:
                needs = registered_on(definition, method, line)
                if isinstance(line, cst.If):
                    needs = registered_in_a_branch(definition, method, line)
                if needs is not None:
                    return needs
        current = None if isinstance(current, cst.Else) else current.orelse
    return None


def registered_on(definition: "ClassInfo", method: "FunctionInfo", line: cst.CSTNode) -> str | None:
    """What the first statement on a line that surely registers something does."""
    names = (registered_by(definition, method, part) for part in small_statements(line))
    return next(filter(None, names), None)


def registered_by(definition: "ClassInfo", method: "FunctionInfo", part: cst.CSTNode) -> str | None:
    """What a statement surely registers with the module, or calls in order to."""
    model = definition.model
    if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call):
        function = part.value.func
        if isinstance(function, cst.Attribute) and method_of_receiver(model, function.value) is method:
            return function.attr.value if function.attr.value in _REGISTERS else None
        return None
    if not isinstance(part, (cst.Assign, cst.AnnAssign)) or part.value is None:
        return None
    targets = [part.target] if isinstance(part, cst.AnnAssign) else [target.target for target in part.targets]
    for attribute in targets:
        if isinstance(attribute, cst.Attribute) and method_of_receiver(model, attribute.value) is method:
            value = model.value(part.value)
            tensor = isinstance(value, Tensor) and (definition.framework == "paddle" or value.parameter)
            if _makes_parts(model, part.value):
                continue
            if isinstance(value, Module) or tensor or makes_parameter(model, part.value):
                return attribute.attr.value
    return None


def _makes_parts(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function calls a parameter of its own, before it is initialized: a class, whatever is declared."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    if not bindings or any(binding.kind is not BindingKind.PARAMETER for binding in bindings):
        return False
    called = (call.func for call in model.calls_by_word.get(bindings[0].key, ()))
    return any(isinstance(name, cst.Name) and model.reaching(name) == bindings for name in called)
