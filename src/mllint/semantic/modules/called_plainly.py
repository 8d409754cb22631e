"""Modules of which a call runs their ``forward``, and no other code of the project."""

import libcst as cst

from mllint.semantic.modules.unhooked import is_wrapper
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.values import Module, Value
from mllint.syntax.shape import dotted_path

# Lists and dicts of modules have no `forward`.
_NOT_CALLABLE = frozenset({"ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "LayerList", "LayerDict"})
_OF_ANY_CLASS = PLAIN_BASES | {None}


def is_called_plainly(receiver: cst.BaseExpression, value: Value | None) -> bool:
    """Whether a module is known to be of a class, and calling it runs ``forward`` and no other code of the project."""
    if not isinstance(value, Module) or any("jit" in name for name in value.wrappers):
        return False
    if isinstance(receiver, cst.Attribute) and receiver.attr.value in ("module", "_orig_mod", "_layers"):
        return False
    if is_wrapper(value):
        return True
    if "?" in value.wrappers:
        return False
    definition = value.definition
    if value.others:
        # Those of them that have no `forward` raise, whichever way they are called.
        called = [other for other in value.others if not _has_no_forward(other)]
        return bool(called) and all(is_called_plainly(receiver, other) for other in called)
    if definition is None:
        # Of what a function of a library builds only that is known; of what is annotated `Module` nothing is.
        maker = None if value.call is None else dotted_path(value.call.func)
        is_built = value.name is None and maker is not None and "jit" not in maker
        return is_built or (value.name not in _OF_ANY_CLASS and _is_callable(value.name))
    # `torch.jit.interface` asks for calls of the method; whatever else decorates a class may change how it is called.
    if definition.has_unknown_base or any(item.node.decorators for item in definition.lineage):
        return False
    if not all(map(_is_base_called_plainly, definition.library_bases)):
        return False
    return definition.method("__call__") is None and definition.method("forward") is not None


def _has_no_forward(value: Module) -> bool:
    """Whether a module is of a class of the project that is known in full, and neither it nor a base has a forward."""
    definition = value.definition
    if definition is None or definition.has_unknown_base or not PLAIN_BASES.issuperset(definition.library_bases):
        return False
    return definition.method("__call__") is None and definition.method("forward") is None


def _is_callable(name: str | None) -> bool:
    return name is not None and name.rpartition(".")[2] not in _NOT_CALLABLE


def _is_base_called_plainly(base: str) -> bool:
    """Whether a library class is called as every module is."""
    is_framework = base.partition(".")[0] in ("torch", "paddle") and "jit" not in base
    return base in PLAIN_BASES or base.startswith("typing.") or is_framework
