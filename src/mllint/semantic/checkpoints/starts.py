"""Loads from which a training starts: a file of another training goes into what is just being built, or into a part."""

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.contents import FromFile
from mllint.semantic.checkpoints.deliberate import parts_of
from mllint.semantic.checkpoints.handling import names_behind
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.names.classes import Role
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path, root_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.checkpoints.contents import Content
    from mllint.semantic.checkpoints.loads import Load
    from mllint.semantic.names.definitions import ClassInfo

_PROBE = "layer1.0.conv.weight"


def is_start(load: "Load") -> bool:
    """Whether a module takes over what fits of another network, as a backbone does of a classifier.

    A module that loads into itself where it is made, or into a part of its own beside others. Where the words say that
    the file is of another training, also a module that loads into itself later, a part of any module, and one that a
    function builds and gives back. The whole model of a training is none: whether its file was read shows nowhere else.
    """
    method = method_of_receiver(load.model, root_of(load.receiver))
    owner = None if method is None else method.owner
    steps = (dotted_path(load.receiver) or "").count(".")
    if method is None:
        is_one = steps > 0 or _is_built_here(load)
    elif owner is None or not isinstance(owner.instance(), Module):
        is_one = steps > 1  # what a trainer holds is a whole model
    else:
        is_made = method in owner.members.setting_up
        if is_made and (steps == 0 or _has_other_parts(owner, load.receiver)):
            return True
        is_one = True
    return is_one and _says_pretrained(load)


def is_put_below(content: "Content | None") -> bool:
    """Whether every key was put behind the name of a part: ``state["backbone." + key] = value``. The rest is absent."""
    if not isinstance(content, FromFile) or not content.renames:
        return False
    keys: tuple[str, ...] = (_PROBE,)
    for rename in content.renames:
        made = [rename(key) for key in keys]
        keys = tuple(key for several in made for key in several or ())
    return any(key != _PROBE and key.endswith(_PROBE) and not key.startswith(WRAPPER_PREFIXES) for key in keys)


def _has_other_parts(owner: "ClassInfo", part: cst.BaseExpression) -> bool:
    """Whether a constructor makes other modules beside a part: that the part is all there is, nobody can tell then."""
    constructor = owner.method("__init__")
    name = (dotted_path(part) or "").split(".")[1:2]
    if constructor is None:
        return False
    prefix = f"{constructor.self_name}."
    others = (key.split(".")[1] for key in constructor.scope.bindings if key.startswith(prefix))
    return any(
        assignment.role in (Role.SUBMODULE, Role.PARAMETER)
        for other in dict.fromkeys(others)
        if [other] != name
        for assignment in owner.members.assignments(other)
    )


def _says_pretrained(load: "Load") -> bool:
    """Whether the words of the file's path, or of what is around the load, say that it is of another training.

    That is the function's name, and what is asked before: ``if pretrained:``.
    """
    function = load.model.enclosing_function(load.call)
    words = [] if function is None else [function.name.value]
    asked = (part for test in conditions(load.model, load.call) for part in subtree(test))
    words += [
        part.value for part in itertools.chain(parts_of(load), asked) if isinstance(part, (cst.Name, cst.SimpleString))
    ]
    # What the dict itself is called says less.
    behind = [part for name in names_behind(load.given, load.model) for part in subtree(name)]
    held = {part.value for part in behind if isinstance(part, cst.Name)}
    return any("pretrain" in word.lower() for word in words if word not in held)


def _is_built_here(load: "Load") -> bool:
    """Whether the function around a load makes the module and gives it back."""
    function = load.model.enclosing_function(load.call)
    if function is None or not isinstance(load.value, Module) or not isinstance(load.receiver, cst.Name):
        return False
    scope = load.model.function_info(function).scope
    is_made = any(binding.kind is BindingKind.ASSIGN for binding in scope.bindings.get(load.receiver.value, ()))
    returned = (item.value for item in scope.returns if item.value is not None)
    return is_made and any(dotted_path(value) == load.receiver.value for value in returned)
