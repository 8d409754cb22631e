"""What else a function does to a thing that a name is bound to: changes in place, gradient flags."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.uses import attributes, mentions
from mllint.syntax.shape import constant, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.scopes import Binding

# The flags of gradients, and what switches them off.
_OFF = {"requires_grad": False, "stop_gradient": True}
_ASSIGNING = frozenset({cst.AssignTarget, cst.AugAssign, cst.AnnAssign})
_GROWING = frozenset({"append", "extend", "insert", "update", "appendleft", "setdefault", "add"})


def is_changed_in_place(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the scope of a name or dotted path changes what it holds otherwise than by binding it anew.

    That is a subscript or slice that is assigned, a method that works in place, or a list or dict that grows.
    """
    return any(True for _ in changes_in_place(model, node))


def new_items(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """What the scope of a name or dotted path puts in the place of what a list was made with.

    ``None`` where it changes the items in some other way.
    """
    found: list[cst.BaseExpression] = []
    for change in changes_in_place(model, node):
        if isinstance(change, cst.Call) and last_word(change.func) in ("append", "extend"):
            continue
        target = model.tree.parent(change)
        statement = None if target is None else model.tree.parent(target)
        if not isinstance(change, cst.Subscript) or not isinstance(statement, cst.Assign):
            return None
        if not isinstance(change.value, cst.Subscript):  # of `x[0][1] = value` the item is the one that it was
            found.append(statement.value)
    return found


def changes_in_place(model: "Model", node: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """The subscripts and calls that change in place what a name or dotted path holds."""
    return _changes_at(model, _places(model, node))


def changes_of_bound(model: "Model", binding: "Binding") -> Iterator[cst.CSTNode]:
    """As ``changes_in_place``, of what a name is bound to; of an attribute, those that the file makes of any such."""
    return _changes_at(model, _places_of_bound(model, binding))


def _changes_at(model: "Model", places: Iterable[cst.BaseExpression]) -> Iterator[cst.CSTNode]:
    for place in places:
        target: cst.CSTNode = place
        parent = model.tree.parents.get(id(place))
        kind = parent.__class__  # asked of every use of every new tensor, and `isinstance` of these is slow
        while kind is cst.Subscript and parent.value is target:  # type: ignore[union-attr]
            assert parent is not None
            target, parent = parent, model.tree.parents.get(id(parent))
            kind = parent.__class__
        if target is not place and _is_assigned(target, parent):
            yield target
        elif kind is cst.Attribute and parent.value is target and _changes(parent.attr.value):  # type: ignore[union-attr]
            assert parent is not None
            call = model.tree.call_of(parent)
            if call is not None:
                yield call
        elif kind is cst.Arg and parent.keyword is not None and parent.keyword.value == "out":  # type: ignore[union-attr]
            assert parent is not None
            yield parent


def is_flagged(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the scope makes a name or dotted path a leaf that requires a gradient, by a statement of its own."""
    return _is_flagged_at(model, _places(model, node))


def is_flagged_bound(model: "Model", binding: "Binding") -> bool:
    """As ``is_flagged``, of what a name is bound to; of an attribute, where the file does so to any such."""
    return _is_flagged_at(model, _places_of_bound(model, binding))


def _is_flagged_at(model: "Model", places: Iterable[cst.BaseExpression]) -> bool:
    for place in places:
        flag = model.tree.parent(place)
        if not isinstance(flag, cst.Attribute) or flag.value is not place:
            continue
        use = model.tree.parent(flag)
        if flag.attr.value in _OFF and _is_assigned(flag, use):
            statement = model.tree.parent(use) if isinstance(use, cst.AssignTarget) else use
            if constant(getattr(statement, "value", None)) is not _OFF[flag.attr.value]:
                return True
        is_call = flag.attr.value == "requires_grad_" and isinstance(use, cst.Call) and use.func is flag
        if use is not None and is_call and isinstance(model.tree.parent(use), cst.Expr):
            return True
    return False


def _changes(name: str) -> bool:
    is_in_place = name.endswith("_") and not name.startswith("_") and name != "requires_grad_"
    return is_in_place or name in _GROWING


def _is_assigned(target: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
    return parent.__class__ in _ASSIGNING and getattr(parent, "target", None) is target


def _places_of_bound(model: "Model", binding: "Binding") -> Iterator[cst.BaseExpression]:
    """Where the scope names what a binding binds, and those inside it; where the file has attributes of that name."""
    word = binding.key.rpartition(".")[2]
    if word == binding.key:
        yield from model.names_within(word, binding.scope)
        return
    yield from attributes(model, word)


def _places(model: "Model", node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Where the scope of a name or dotted path names it, as a whole expression."""
    key = dotted_path(node)
    names = () if key is None else model.names_in(key.rpartition(".")[2], model.scope_of(node))
    return mentions(model, key or "", names)
