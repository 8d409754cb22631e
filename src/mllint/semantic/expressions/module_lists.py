"""What the modules in a ``ModuleList`` are: those that the class puts into it, whichever of them one is.

Of a ``Sequential`` that is written out it is known which layer has which number, and of a ``ModuleDict`` which has
which name.
"""

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Module, Symbol, Value, join
from mllint.syntax.shape import constant, integer_literal, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MODULE_LISTS = frozenset({"torch.nn.ModuleList", "paddle.nn.LayerList"})
MODULE_DICTS = frozenset({"torch.nn.ModuleDict", "paddle.nn.LayerDict"})
_SEQUENCES = frozenset({"torch.nn.Sequential", "paddle.nn.Sequential"})
_PUTTING = {"append": 0, "insert": 1}
_CHANGING = frozenset({
    "append", "insert", "extend", "pop", "update", "clear", "add_module", "register_module", "add_sublayer",
    "__setitem__", "_modules", "_sub_layers",
})  # fmt: skip
_Item = tuple["Model", cst.BaseExpression | None]
"""What is put into a list, and the file that says so; ``None``: something of which nothing is known."""


def listed_module(model: "Model", node: cst.BaseExpression) -> Module | None:
    """What each module is in the list that an attribute of the object itself holds; ``None``: that is not certain."""
    method = method_of_receiver(model, node.value) if isinstance(node, cst.Attribute) else None
    owner = None if method is None else method.owner
    if owner is None or not isinstance(node, cst.Attribute):
        return None
    name = node.attr.value
    found = model.derivation.once(owner.listed, (id(owner), name), owner, lambda owner: _joined(owner, name))
    return found if isinstance(found, Module) else None


def module_at(model: "Model", node: cst.Subscript, holder: Module) -> Value | None:
    """What is taken out of a list, a sequence or a dict of modules by one index; ``None``: that is not certain."""
    if holder.name in MODULE_LISTS:
        return listed_module(model, node.value) or module_in_display(model, holder)
    if holder.name in MODULE_DICTS:
        return named_module(model, holder, string_literal(subscript_index(node)))
    return numbered_module(model, node, holder)


def numbered_module(model: "Model", node: cst.Subscript, sequence: Module) -> Module | None:
    """The layer that has a number in a ``Sequential`` of the file: ``self.head[0]``; ``None``: that is not certain."""
    position, call = integer_literal(subscript_index(node)), sequence.call
    if position is None or call is None or sequence.wrappers or id(call) not in model.tree.parents:
        return None
    is_plain = not any(arg.star or arg.keyword for arg in call.args)
    if sequence.name not in _SEQUENCES or not is_plain or not -len(call.args) <= position < len(call.args):
        return None
    if any(_may_renumber(model, name) for name in model.names_by_word.get(last_word(node.value) or "", ())):
        return None
    found = model.value(call.args[position].value)
    return found if isinstance(found, Module) else None


def named_module(model: "Model", holder: Module, key: str | None) -> Value | None:
    """The module that has a name in a ``ModuleDict`` of the file: ``self.parts["norm"]``, ``self.parts.norm``.

    ``None``: that is not certain, or there is none.
    """
    call = holder.call
    if holder.name not in MODULE_DICTS or call is None or holder.wrappers or id(call) not in model.tree.parents:
        return None
    given = call.args[0].value if len(call.args) == 1 and call.args[0].keyword is None else None
    found = [value for name, value in _named(model, given) if name == key]
    return model.value(found[0]) if len(found) == 1 and not _may_change(model, call) else None


def _named(model: "Model", given: cst.BaseExpression | None) -> Iterator[tuple[str | None, cst.BaseExpression]]:
    """The names and values of a dict that is written out: ``{"norm": norm}``, ``dict(norm=norm)``."""
    if isinstance(given, cst.Dict):
        for item in given.elements:
            if isinstance(item, cst.DictElement):
                yield string_literal(item.key), item.value
    elif isinstance(given, cst.Call) and model.qualified_name(given.func) == "builtins.dict":
        for arg in given.args:
            if arg.keyword is not None:
                yield arg.keyword.value, arg.value


def module_in_display(model: "Model", sequence: Module) -> Module | None:
    """What each module is in a list of the file that is written out where it is made, and into which nothing else is
    put by its name; ``None``: that is not certain.
    """
    call = sequence.call
    if call is None or sequence.wrappers or len(call.args) != 1 or id(call) not in model.tree.parents:
        return None
    if _may_change(model, call):
        return None
    given = call.args[0].value
    items = list(_of_display(model, given)) if isinstance(given, (cst.List, cst.Tuple, cst.ListComp)) else []
    values = [None if item is None else home.value(item) for home, item in items]
    if not values or any(not isinstance(value, Module) or value.wrappers or value.is_only_some for value in values):
        return None
    found = reduce(join, values)
    return found if isinstance(found, Module) else None


def _may_change(model: "Model", call: cst.Call) -> bool:
    """Whether something may be put into, or taken out of, the collection that a call makes, by the name it gets there:
    of an attribute, of an argument of ``dict``, or as a key.
    """
    place = model.tree.parent(call)
    match place:
        case cst.Assign(targets=[target]):
            name = last_word(target.target)
        case cst.Arg(keyword=cst.Name(value=word)):
            name = word
        case cst.DictElement(key=key):
            name = string_literal(key)
        case _:
            return True
    if name is None:
        return True
    keyed = (
        item for item in model.tree.by_type.get(cst.Subscript, ()) if string_literal(subscript_index(item)) == name
    )
    return any(_may_renumber(model, item) for item in (*model.names_by_word.get(name, ()), *keyed))


def _may_renumber(model: "Model", name: cst.Name | cst.Subscript) -> bool:
    """Whether a place puts a layer into what has this name, takes one out, or puts another in its place."""
    holder: cst.CSTNode = name
    above = model.tree.parent(holder)
    if isinstance(above, cst.Attribute) and above.attr is name:
        holder, above = above, model.tree.parent(above)
    if isinstance(above, cst.Attribute):
        return above.attr.value in _CHANGING
    if not isinstance(above, cst.Subscript) or above.value is not holder:
        return False
    return isinstance(model.tree.parent(above), (cst.AssignTarget, cst.AnnAssign, cst.Del))


def put_in_list(owner: "ClassInfo", name: str) -> Iterator[Module]:
    """The modules that a class surely puts into a list of its objects, whatever else may be in there."""
    for model, item in _items(owner, name):
        value = None if item is None else model.value(item)
        if isinstance(value, Module) and not value.wrappers:
            yield value


def _joined(owner: "ClassInfo", name: str) -> Value | None:
    values: list[Value | None] = []
    for model, item in _items(owner, name):
        if constant(item) is None:
            continue  # it keeps a place free, and is never run
        value = None if item is None else model.value(item)
        if not isinstance(value, Module) or value.wrappers or value.is_only_some:
            return None
        values.append(value)
    return reduce(join, values) if values else None


def _items(owner: "ClassInfo", name: str) -> Iterator[_Item]:
    """What is in a list of modules from the start, and what the class puts into it later."""
    for binding in owner.assignments(name):
        if binding.kind is not BindingKind.NARROWED:
            yield from _begun_with(binding)
    for read in owner.members.reads(name):
        model = read.method.model
        parent = model.tree.parent(read.node)
        above = None if parent is None else model.tree.parent(parent)
        if isinstance(parent, cst.Attribute) and isinstance(above, cst.Call) and above.func is parent:
            word = parent.attr.value
            if word in _PUTTING:
                position = _PUTTING[word]
                yield model, above.args[position].value if len(above.args) > position else None
            elif word in ("extend", "__iadd__"):
                yield from _of_display(model, above.args[0].value if above.args else None)
        elif isinstance(parent, cst.Subscript) and parent.value is read.node and isinstance(above, cst.AssignTarget):
            statement = model.tree.parent(above)
            yield model, statement.value if isinstance(statement, cst.Assign) else None


def _begun_with(binding: Binding) -> Iterator[_Item]:
    model, value = binding.scope.model, binding.value
    if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
        yield from _of_display(model, binding.node.value)
        return
    made = model.value(value.func) if isinstance(value, cst.Call) and not binding.path else None
    if not isinstance(made, Symbol) or made.name not in MODULE_LISTS or not isinstance(value, cst.Call):
        yield model, None
    elif value.args:
        yield from _of_display(model, value.args[0].value)


def _of_display(model: "Model", node: cst.BaseExpression | None) -> Iterator[_Item]:
    """The items of a list that is written out, or goes through something."""
    if isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            yield model, element.value if isinstance(element, cst.Element) else None
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        yield model, node.elt
    elif isinstance(node, cst.Name):
        yield from _of_local(model, node)
    else:
        yield model, None


def _of_local(model: "Model", name: cst.Name) -> Iterator[_Item]:
    """The items of a list with a name in the function, that it begins and appends to."""
    bindings = model.reaching(name)
    begun = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN else None
    if not isinstance(begun, (cst.List, cst.ListComp)) or bindings[0].path:
        yield model, None
        return
    yield from _of_display(model, begun)
    for other in model.names_in(name.value, model.scope_of(name)):
        parent = model.tree.parent(other)
        is_attribute = isinstance(parent, cst.Attribute) and parent.attr is other
        if other is name or is_attribute or isinstance(parent, cst.AssignTarget):
            continue
        call = None if parent is None else model.tree.parent(parent)
        if isinstance(parent, cst.Attribute) and isinstance(call, cst.Call) and parent.attr.value == "append":
            yield model, call.args[0].value if call.args else None
        elif not (isinstance(parent, cst.Subscript) and parent.value is other):
            yield model, None
