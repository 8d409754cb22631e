"""Where the file names something, by its spelling alone: a name, a dotted path, an attribute of whatever object; and
where the thing that a binding binds is read again.
"""

import builtins
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo


def reads(model: "Model", key: str, within: Scope | None = None) -> Iterator[cst.BaseExpression]:
    """The places of the file, or of a scope, that read a name or dotted path of this text, in document order."""
    names = None if within is None else model.names_within(key.rpartition(".")[2], within)
    for node in mentions(model, key, names):
        if not _is_no_read(node, model.tree.parent(node)) and not is_unpacked_into(model, node):
            yield node


def is_unpacked_into(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a name or path is bound as a part of ``for name, parameter in ...`` or ``a, b = ...``."""
    parent = model.tree.parent(node)
    if not isinstance(parent, cst.BaseElement):
        return False
    while isinstance(parent, (cst.BaseElement, cst.Tuple, cst.List)):
        node, parent = parent, model.tree.parent(parent)
    return isinstance(parent, (cst.AssignTarget, cst.For, cst.CompFor)) and parent.target is node


# Of what binds names: the field that holds what is bound, where another may hold what is read.
_BINDING_FIELDS: dict[type, str] = {
    cst.AssignTarget: "target", cst.AnnAssign: "target", cst.For: "target", cst.CompFor: "target", cst.Del: "target",
    cst.AsName: "name", cst.Arg: "keyword", cst.Param: "name", cst.FunctionDef: "name", cst.ClassDef: "name",
}  # fmt: skip
_BINDING_ALL = frozenset({cst.ImportAlias, cst.ImportFrom, cst.NameItem})


def _is_no_read(node: cst.BaseExpression, parent: cst.CSTNode | None) -> bool:
    """Whether a name or path is bound, deleted, declared or a keyword there."""
    kind = type(parent)
    field = _BINDING_FIELDS.get(kind)
    return getattr(parent, field) is node if field is not None else kind in _BINDING_ALL


def is_statement(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an expression is a statement, or what one comes to: ``switch() if test else other()``, ``test and it()``.

    ``a(), b()`` are two of them.
    """
    parent = model.tree.parent(node)
    match parent:
        case cst.Expr():
            return True
        case cst.IfExp(test=other) | cst.BooleanOperation(left=other) if other is not node:
            return is_statement(model, parent)
        case cst.Element():
            display = model.tree.parent(parent)
            return isinstance(display, (cst.Tuple, cst.List)) and is_statement(model, display)
    return False


def bound_by(model: "Model", statement: cst.CSTNode) -> tuple[Binding, ...]:
    """The bindings of names and dotted paths that a statement makes."""
    bindings = model.scope_of(statement).bindings.values()
    return tuple(binding for several in bindings for binding in several if binding.node is statement)


def uses(model: "Model", binding: Binding) -> Iterator[cst.BaseExpression]:
    """The places of the file that may read what a binding of the file bound, in document order."""
    # A name is seen where it is bound and further in; a path may be read in another method.
    within = None if "." in binding.key or binding.scope.model is not model else binding.scope
    for node in reads(model, binding.key, within):
        scope = model.scope_of(node)
        if scope is binding.scope:
            if binding in without_narrowing(scope.reaching(binding.key, node).bindings):
                yield node
        elif _is_seen_from(scope, binding):
            yield node


def uses_of_bound(model: "Model", statement: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The places of the file that may read what a statement bound, each name by itself."""
    return (node for binding in bound_by(model, statement) for node in uses(model, binding))


def is_nowhere_bound(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a name that no scope around any of its places in the file binds: reading it raises."""
    if not isinstance(node, cst.Name) or model.reaching(node) or hasattr(builtins, node.value):
        return False
    if "*" in model.scope(model.tree.module).bindings:
        return False
    scopes = {id(scope): scope for word in model.names_by_word.get(node.value, ()) for scope in (model.scope_of(word),)}
    return all(node.value not in scope.bindings and scope.home_of(node.value) is None for scope in scopes.values())


def without_narrowing(bindings: Iterable[Binding]) -> list[Binding]:
    """The bindings behind those that only say ``isinstance``.

    In a loop such a test holds before itself, and two of them before each other.
    """
    found: dict[Binding, None] = {}
    passed: set[Binding] = set()
    pending = list(bindings)
    while pending:
        binding = pending.pop()
        if binding.kind is not BindingKind.NARROWED:
            found[binding] = None
        elif binding not in passed:
            passed.add(binding)
            pending += binding.scope.reaching(binding.key, binding.node).bindings
    return list(found)


def _is_seen_from(scope: Scope, binding: Binding) -> bool:
    """Whether the text of the key means in another scope the thing that the binding bound."""
    root, is_path = binding.key.partition(".")[0], "." in binding.key
    method, other = _function(scope), _function(binding.scope)
    if is_path and method is not None and other is not None and method.owner is not None:
        # `self.x` is set in one method and read in another.
        return method.owner is other.owner and method.self_name == other.self_name == root
    current: Scope | None = scope
    while current is not None and current is not binding.scope:
        is_visible = current is scope or not current.is_class
        if is_visible and root in current.bindings and root not in current.outer_names:
            return False
        current = current.parent
    return current is binding.scope and not current.is_class


def _function(scope: Scope) -> "FunctionInfo | None":
    return scope.model.function_info(scope.node) if isinstance(scope.node, cst.FunctionDef) else None


def kept_as(model: "Model", node: cst.Name) -> str | None:
    """The attribute under which the method of a name keeps the same thing: ``self.net`` after ``self.net = net``."""
    scope = model.scope_of(node)
    method = _function(scope)
    if method is None or method.self_name is None:
        return None
    for key, bindings in scope.bindings.items():
        holder, _, rest = key.partition(".")
        value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        if holder != method.self_name or not rest or "." in rest or not isinstance(value, cst.Name):
            continue
        if value.value == node.value and bindings[0].kind is BindingKind.ASSIGN:
            return key if model.reaching(value) == model.reaching(node) else None
    return None


def whole(model: "Model", name: cst.Name) -> cst.Name | cst.Attribute:
    """The attribute of which a name is the last word: ``self.net`` of its ``net``; else the name itself."""
    around = model.tree.parent(name)
    # By the class itself: what `isinstance` denies costs a call into `abc`, and nearly every name comes by here.
    return around if around.__class__ is cst.Attribute and around.attr is name else name


def mentions(model: "Model", key: str, within: Iterable[cst.Name] | None = None) -> Iterator[cst.Name | cst.Attribute]:
    """The places of the file that name a name or dotted path of this text, in document order.

    ``within``: the names among which the last words of these places are looked for.
    """
    for name in model.names_by_word.get(key.rpartition(".")[2], ()) if within is None else within:
        node = whole(model, name)
        if dotted_path(node) == key:
            yield node


def attributes(model: "Model", word: str) -> Iterator[cst.Attribute]:
    """The attributes of this name in the file, of whatever object."""
    for name in model.names_by_word.get(word, ()):
        node = whole(model, name)
        if node is not name:
            yield node  # type: ignore[misc]


def calls_of_path(model: "Model", path: str) -> Iterator[cst.Call]:
    """The calls in the file of what is written like this."""
    return (call for call in model.calls_by_word.get(path.rpartition(".")[2], ()) if dotted_path(call.func) == path)


def calls_among(model: "Model", names: Iterable[cst.Name]) -> Iterator[cst.Call]:
    """The calls of what some names are the last words of: of the few in one scope, where the file has many."""
    found = (model.tree.call_of(whole(model, name)) for name in names)
    return (call for call in found if call is not None)


def method_calls(model: "Model", path: str, words: Iterable[str]) -> Iterator[cst.Call]:
    """The calls in the file of some methods of what is written like this."""
    return (call for word in words for call in calls_of_path(model, f"{path}.{word}"))
