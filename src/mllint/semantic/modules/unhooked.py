"""Modules on which nobody can have put a hook, or has a reason to; and those whose ``forward`` others replace, or call
for the object that holds them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.graph.looked_at import binds_names_only
from mllint.semantic.modules.module_keys import module_keys
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.uses import uses, uses_of_bound
from mllint.semantic.values import Module, Value
from mllint.syntax.shape import dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

# With a module of which nothing else is asked nobody trains, and nobody has got hold of it.
_ONLY_RUN = frozenset({"forward", "to", "cuda", "cpu", "half", "float", "double", "eval", "train"})
_MAX_NAMES = 4
"""Through how many names a result is followed."""
_HOOKS = (
    "register_forward_hook", "register_forward_pre_hook", "register_forward_post_hook", "register_backward_hook",
    "register_full_backward_hook",
)  # fmt: skip


def is_unhooked(model: "Model", node: cst.BaseExpression, module: Module) -> bool:
    """Whether the module that an expression stands for is made for one call, is only run, or has no weights."""
    if module.call is node or _is_only_run(model, node, module):
        return True
    return _is_without_weights(model, node, module) and not _may_be_hooked(model, module)


def is_only_shown(model: "Model", call: cst.Call) -> bool:
    """Whether all that comes of what a call gives, outside of any loop, is printed or asserted: a check by hand."""
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, (cst.For, cst.While, cst.BaseComp)):
            return False
        if isinstance(ancestor, cst.FunctionDef):
            break
    return _is_shown(model, call, _MAX_NAMES)


def _is_shown(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    for ancestor in model.tree.ancestors(node):
        match ancestor:
            case cst.Assert():
                return True
            case cst.Call() if last_word(ancestor.func) == "print":
                return True
            case cst.Assign():
                read = list(uses_of_bound(model, ancestor)) if steps and binds_names_only(ancestor) else []
                return bool(read) and all(_is_shown(model, use, steps - 1) for use in read)
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                return False
    return False


def _is_only_run(model: "Model", node: cst.BaseExpression, module: Module) -> bool:
    """Whether a module is made right there, and nothing is done with it but to move it and to call ``forward``."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    if len(bindings) != 1 or module.call is None:
        return False
    made = bindings[0].value
    while isinstance(made, cst.Call) and made is not module.call and isinstance(made.func, cst.Attribute):
        made = made.func.value  # `Net().cuda()`
    if made is not module.call:
        return False
    for use in uses(model, bindings[0]):
        attribute = model.tree.parent(use)
        if not isinstance(attribute, cst.Attribute) or attribute.attr.value not in _ONLY_RUN:
            return False
    return True


def _is_without_weights(model: "Model", node: cst.BaseExpression, module: Module) -> bool:
    """Whether a module is a loss, a distance, an activation: nothing in it is trained, nor in what it is made of."""
    if module.wrappers or module.others:
        return False
    if module.definition is None:
        known = None if module.name is None else lookup.class_(module.name)
        return (known is not None and known.kind == "loss") or has_weights(model, node) is False
    keys = module_keys(model, node, module)
    if keys.certain or "" in keys.open:
        return False
    unknown = {key.partition(".")[0] for key in (*keys.optional, *keys.open)}
    return not any(_may_be_run(place) for name in unknown for place in _places(module.definition, name))


def _places(definition: "ClassInfo", attribute: str) -> Iterator["tuple[Model, cst.CSTNode]"]:
    """Where the classes that a class consists of have an attribute of that name."""
    for info in definition.lineage:
        for name in info.model.names_within(attribute, info.model.scope(info.node)):
            parent = info.model.tree.parent(name)
            if isinstance(parent, cst.Attribute) and parent.attr is name:
                yield info.model, parent


def _may_be_run(place: "tuple[Model, cst.CSTNode]") -> bool:
    """Whether an attribute is called there, or gone through, as a module is and a tensor is not."""
    model, node = place
    parent = model.tree.parent(node)
    while isinstance(parent, cst.Subscript):
        node, parent = parent, model.tree.parent(parent)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in ("forward", "parameters")
    return isinstance(parent, (cst.For, cst.CompFor)) or (isinstance(parent, cst.Call) and parent.func is node)


def _may_be_hooked(model: "Model", module: Module) -> bool:
    """Whether the file puts a hook on a module, on one of its class, or on what is not known."""
    for word in _HOOKS:
        for name in model.names_by_word.get(word, ()):
            attribute = model.tree.parent(name)
            hooked = model.value(attribute.value) if isinstance(attribute, cst.Attribute) else None
            if not isinstance(hooked, Module) or hooked.is_only_some:
                return True
            if (hooked.name, hooked.definition) == (module.name, module.definition):
                return True
    return False


def is_handed_on(model: "Model", call: cst.Call) -> bool:
    """Whether a call of ``held.forward`` stands in the ``forward`` of an object that hands on to what it holds.

    An object that is no module has a ``forward`` for no other reason; of a module all methods have to hand on.
    """
    info = function_around(model, call)
    if info is None or info.name != "forward" or info.owner is None:
        return False
    if info.owner.framework is None:
        return True
    held = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    methods = [item for item in info.owner.methods.values() if not item.name.startswith("__") and not item.is_property]
    return len(methods) > 1 and all(_hands_on(method.node, held) for method in methods)


def _hands_on(method: cst.FunctionDef, held: str | None) -> bool:
    """Whether a method does nothing but to call the method of its name of another thing."""
    body = method.body.body
    line = body[0] if isinstance(method.body, cst.IndentedBlock) and len(body) == 1 else None
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    call = statement.value if isinstance(statement, (cst.Return, cst.Expr)) else None
    return isinstance(call, cst.Call) and dotted_path(call.func) == f"{held}.{method.name.value}"


def replaces_forward(model: "Model", value: Value | None) -> bool:
    """Whether a file may assign the ``forward`` of a module: it deals with the method as such.

    Not where each module of which it does is surely of another class.
    """
    for name in model.names_by_word.get("forward", ()):
        attribute = model.tree.parent(name)
        if not isinstance(attribute, cst.Attribute) or not isinstance(model.tree.parent(attribute), cst.AssignTarget):
            continue
        if not _are_of_other_classes(model.value(attribute.value), value):
            return True
    return False


def is_wrapper(value: Module) -> bool:
    """Whether it is surely an object of a class that wraps modules: ``DataParallel(network)``, whatever the network."""
    outer = value.wrappers[0] if value.wrappers and value.inside is None else ""
    return lookup.wrapper(outer) is not None and outer.rpartition(".")[2][:1].isupper()


def _are_of_other_classes(one: Value | None, other: Value | None) -> bool:
    """Whether the classes of two modules are known, and have none in common."""
    if not isinstance(one, Module) or not isinstance(other, Module):
        return False
    mine, theirs = _classes(one), _classes(other)
    return bool(mine and theirs) and not mine & theirs


def _classes(value: Module) -> frozenset[object]:
    """The classes of a module, and those from which it derives; none where they are not known."""
    if is_wrapper(value):
        return frozenset({value.wrappers[0]})
    if value.wrappers or value.others:
        return frozenset()
    if value.definition is None:
        return frozenset({value.name}) - PLAIN_BASES - {None}
    bases = frozenset(value.definition.library_bases) - PLAIN_BASES
    return frozenset() if value.definition.has_unknown_base else bases.union(value.definition.lineage)
