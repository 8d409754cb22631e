"""Settings that are given to a load: what was read out of a file of plain text, or written in a dict, is no state."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.routes import Follower, Route
from mllint.semantic.construction.builder import Construction
from mllint.semantic.construction.parts import Entries
from mllint.semantic.expressions.arguments import is_asked_about
from mllint.semantic.names.definitions import class_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Symbol
from mllint.syntax.shape import dotted_path, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_READERS = frozenset({
    "yaml.load", "yaml.safe_load", "yaml.full_load", "json.load", "json.loads", "toml.load", "toml.loads",
    "tomllib.load", "tomllib.loads", "omegaconf.OmegaConf.load",
})  # fmt: skip
"""What reads a file of plain text: no tensor is in there."""
_WRAPPERS = frozenset(
    {"easydict.EasyDict", "omegaconf.OmegaConf.create", "addict.Dict", "munch.Munch", "builtins.dict"}
)
"""What makes of a dict one whose entries are attributes as well."""
_MAX_STEPS = 6
"""Through how many names, parts and calls a setting is followed."""


def is_setting(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a part of what was read out of a file of plain text, or a text in a dict of settings."""
    key = _key(node)
    holder = _holder(node)
    return key is not None and holder is not None and _holds_text(model, holder, (key,), _MAX_STEPS)


def _key(node: cst.BaseExpression) -> str | None:
    """Under which name a part is taken of something: ``settings["path"]``, ``settings.path``, ``.get("path")``."""
    match node:
        case cst.Subscript():
            return string_literal(subscript_index(node))
        case cst.Attribute():
            return node.attr.value
        case cst.Call(func=cst.Attribute(attr=cst.Name("get")), args=[cst.Arg(value=value)]):
            return string_literal(value)
    return None


def _holder(node: cst.BaseExpression) -> cst.BaseExpression | None:
    match node:
        case cst.Subscript() | cst.Attribute():
            return node.value
        case cst.Call(func=cst.Attribute(value=value)):
            return value
    return None


def _holds_text(model: "Model", node: cst.BaseExpression, trail: tuple[str, ...], steps: int) -> bool:
    """Whether what is found under some keys of an expression surely is plain text, or made of such."""
    if steps == 0 or _is_set(model, trail[0]):
        return False
    bindings = _bindings(model, node)
    if bindings:
        return all(_binds_text(item, trail, steps - 1) for item in bindings)
    if isinstance(node, cst.Call):
        name = model.qualified_name(node.func)
        if name in _READERS:
            return True
        if name in _WRAPPERS and len(node.args) == 1 and node.args[0].keyword is None:
            return _holds_text(model, node.args[0].value, trail, steps - 1)
    key, holder = _key(node), _holder(node)
    if key is not None and holder is not None and not isinstance(model.value(holder), Symbol):
        return _holds_text(model, holder, (key, *trail), steps - 1)
    return isinstance(node, (cst.Dict, cst.Name)) and _is_written(model, node, trail)


def _bindings(model: "Model", node: cst.BaseExpression) -> tuple[Binding, ...]:
    """What binds a name, or an attribute that the methods of a class share."""
    found = model.reaching(node)
    if not found and isinstance(node, cst.Attribute) and dotted_path(node.value) == "self":
        owner = class_around(model, node)
        found = () if owner is None or owner.has_unknown_base else tuple(owner.lasting(node.attr.value))
    return found


def _binds_text(binding: Binding, trail: tuple[str, ...], steps: int) -> bool:
    home = binding.scope.model
    if binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED) and not binding.path and binding.value is not None:
        return _holds_text(home, binding.value, trail, steps)
    function = binding.scope.node
    if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
        return False
    info = home.function_info(function)
    if not info.is_transparent or not isinstance(binding.node, cst.Param) or is_asked_about(home, info, binding.node):
        return False
    calls = (*home.surroundings.calls_of(info), *home.surroundings.calls_elsewhere(info))
    given = [Route(Follower(caller), call, info).argument(binding.key) for caller, call in calls]
    return bool(given) and all(item is not None and _holds_text(item[0].model, item[1], trail, steps) for item in given)


def _is_written(model: "Model", node: cst.BaseExpression, trail: tuple[str, ...]) -> bool:
    """Whether a dict that is written out has a text under some keys."""
    value = Construction().built_at(node, model)
    for key in trail:
        value = value.values.get(key) if isinstance(value, Entries) else None
    return isinstance(value, str)


def _is_set(model: "Model", key: str) -> bool:
    """Whether a file sets a part of that name of anything: a state may be put there."""
    targets = [item.target for item in model.tree.by_type.get(cst.AssignTarget, ())]
    return any(
        isinstance(target, (cst.Attribute, cst.Subscript))
        and _key(target) == key
        and dotted_path(target.value) != "self"
        for target in targets
    )
