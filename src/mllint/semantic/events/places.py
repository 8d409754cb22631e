"""Where bindings stand: what an assignment binds, what is made of a call's result, what a ``return`` gives back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.schema import Wrapper
from mllint.knowledge.words import GIVING_ITSELF
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import bound_by
from mllint.semantic.values import ClassObject, Function, Module
from mllint.syntax.shape import before_methods, dotted_path, last_word, part_at

if TYPE_CHECKING:
    from mllint.semantic.model import Model


_SWITCHES = {"train": 1, "eval": 0}
"""Those of them that what is no module may have, too, and how much those of a module are given at most."""


def itself_of(model: "Model", node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a method is called on that gives the very object: ``net`` of ``net.to(device)``, and of ``net.eval()``.

    What ``trainer.eval(loader)`` gives is another thing.
    """
    if (
        not isinstance(node, cst.Call)
        or not isinstance(node.func, cst.Attribute)
        or node.func.attr.value not in GIVING_ITSELF
    ):
        return None
    most = _SWITCHES.get(node.func.attr.value)
    if most is not None:
        called = model.value(node.func)
        if len(node.args) > most or (isinstance(called, Function) and not isinstance(called.receiver, Module)):
            return None
    return node.func.value


def place_in_returns(function: FunctionInfo, binding: Binding) -> tuple[int, ...] | None:
    """Where every ``return`` of a function gives what a binding binds: ``()`` for all of it, or an index.

    ``None`` where one of them does not, but for those that give nothing.
    """
    found: set[tuple[int, ...]] = set()
    for statement in function.scope.returns:
        value = statement.value
        if value is None or (isinstance(value, cst.Name) and value.value == "None"):
            continue
        parts = value.elements if isinstance(value, cst.Tuple) else ()
        places = [((), as_itself(value)), *(((index,), as_itself(part.value)) for index, part in enumerate(parts))]
        here = [path for path, node in places if isinstance(node, cst.Name) and node.value == binding.key]
        if len(here) != 1:
            return None
        found.add(here[0])
    return found.pop() if len(found) == 1 else None


def as_itself(node: cst.BaseExpression) -> cst.BaseExpression:
    """What methods that give the very object are called on: ``net`` of ``net.to(device)``."""
    return before_methods(node, GIVING_ITSELF)


def handed_back(function: FunctionInfo, place: tuple[int | None, ...] = ()) -> tuple[int | None, str] | None:
    """The parameter that a function gives back, the very object: where it is given in a call, and its name.

    ``place`` is where it stands in what the function gives back: ``(0,)`` of ``return net, optimizer``.
    """
    if not function.is_transparent or not function.scope.returns:
        return None
    own = function.parameters if function.self_name is None else function.parameters[1:]
    positional = list(enumerate(own))
    for position, item in (*positional, *((None, item) for item in function.node.params.kwonly_params)):
        name = item.name.value
        bindings = function.scope.bindings.get(name, [])
        if bindings and place_in_returns(function, bindings[0]) == place and all(map(_stays_itself, bindings)):
            return position, name
    return None


def _stays_itself(binding: Binding) -> bool:
    """Whether a binding gives a name to what has it already: a parameter, ``net = net.to(device)``."""
    if binding.kind is BindingKind.PARAMETER:
        return True
    value = None if binding.value is None else as_itself(binding.value)
    return not binding.path and isinstance(value, cst.Name) and value.value == binding.key


def inside_of(model: "Model", call: cst.Call) -> cst.BaseExpression | None:
    """What a call puts into a wrapper that hands it on: ``net`` of ``DataParallel(net)``.

    Or takes out of one: of ``accelerator.unwrap_model(net)``, which gives the very module that was wrapped.
    """
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "unwrap_model":
        return call.args[0].value if call.args and not call.args[0].star else None
    name = model.qualified_name(call.func) or ""
    wrapper = lookup.wrapper(name) or (None if lookup.framework_of(name) else _inherited_wrapper(model, call))
    return call.args[0].value if wrapper is not None and not wrapper.copies and call.args else None


def _inherited_wrapper(model: "Model", call: cst.Call) -> Wrapper | None:
    """The wrapper of which a class of the project is made that a call makes, as that makes itself."""
    is_class = bool(call.args) and (last_word(call.func) or "")[:1].isupper()  # or so it is written
    made = model.value(call.func) if is_class else None
    if not isinstance(made, ClassObject) or made.definition.method("__init__") is not None:
        return None
    return next(filter(None, map(lookup.wrapper, made.definition.library_bases)), None)


def handed_through(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """What moves and wrappers hand through: ``net`` of ``DataParallel(net.cuda())``."""
    while isinstance(node, cst.Call):
        inner = itself_of(model, node) or inside_of(model, node)
        if inner is None:
            break
        node = inner
    return node


def is_bound_by_way(model: "Model", name: cst.Name, binding: Binding) -> bool:
    """Whether what a name stands for is what a binding binds, on one of the ways there: ``if deep: net = Deep()``,
    ``else: net = Flat()``. Also where it was wrapped on some of them: ``if devices > 1: net = DataParallel(net)``.
    """
    pending, makers, seen = [name], set[Binding](), set[Binding]()
    while pending:
        for item in binding.scope.reaching(binding.key, pending.pop()).bindings:
            if item in seen:
                continue
            seen.add(item)
            value = None if item.value is None or item.path else handed_through(model, item.value)
            if isinstance(value, cst.Name) and value.value == binding.key:
                pending.append(value)
            else:
                makers.add(item)
    return binding in makers and (len(makers) == 1 or all(item.kind is BindingKind.ASSIGN for item in makers))


def children_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The module of whose children a container is made, from the first one on: ``net`` of
    ``Sequential(*list(net.children())[:-1])``.
    """
    call = as_itself(node)
    return children_given(call.args[0]) if isinstance(call, cst.Call) and len(call.args) == 1 else None


def children_given(arg: cst.Arg) -> cst.BaseExpression | None:
    """The module whose children an argument gives, from the first one on: ``net`` of ``*list(net.children())[:-1]``."""
    if arg.star != "*":
        return None
    given = arg.value
    while isinstance(given, cst.Subscript):
        part = given.slice[0].slice
        if not isinstance(part, cst.Slice) or part.lower is not None or part.step is not None:
            return None
        given = given.value
    if isinstance(given, cst.Call) and dotted_path(given.func) == "list" and len(given.args) == 1:
        given = given.args[0].value
    if not isinstance(given, cst.Call) or not isinstance(given.func, cst.Attribute) or given.args:
        return None
    return given.func.value if given.func.attr.value == "children" else None


def bound_to_call(model: "Model", call: cst.Call, path: tuple[int, ...]) -> Binding | None:
    """What an assignment binds to the result of a call, or to a part of it, also to ``build().to(device)``."""
    node: cst.CSTNode = call
    parent = model.tree.parent(node)
    while isinstance(parent, cst.Attribute) and not path:
        method = model.tree.parent(parent)
        if method is None or itself_of(model, method) is not node:
            return None
        node, parent = method, model.tree.parent(method)
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return None
    found = [item for item in bound_by(model, parent) if item.value is node and item.path == path]
    return found[0] if len(found) == 1 else None


def target_of(binding: Binding) -> cst.Attribute | None:
    """The attribute that an assignment binds."""
    statement = binding.node
    target: cst.CSTNode | None = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if isinstance(target, (cst.Tuple, cst.List)) and len(binding.path) == 1 and binding.path[0] is not None:
        target = target.elements[binding.path[0]].value
    return target if isinstance(target, cst.Attribute) else None


def unpacked(binding: Binding) -> cst.BaseExpression | None:
    """The expression that a binding binds, also of ``self.net, self.rate = net, rate``."""
    return part_at(binding.value, binding.path)


def is_nothing(binding: Binding) -> bool:
    """Whether a binding only says that there is nothing yet: ``optimizer = None``, or a declared type."""
    value = binding.value
    if value is None:
        return binding.kind is BindingKind.ANNOTATED
    return type(value) is cst.Name and value.value == "None" and binding.kind is not BindingKind.LOOP


def has_named_parts(value: cst.BaseExpression | None) -> bool:
    """Whether a list or tuple holds anything but what is made in its very display."""
    return isinstance(value, (cst.List, cst.Tuple)) and not (
        value.elements and all(isinstance(item.value, cst.Call) for item in value.elements)
    )


def keeps_named_parts(owner: ClassInfo, name: str) -> bool:
    """Whether a list that a class gives an attribute has, or is given later, anything but what is made right there."""
    for binding in owner.assignments(name):
        if isinstance(binding.value, (cst.List, cst.Tuple)):
            calls = (item for item in changes_of_kept(owner, binding) if isinstance(item, cst.Call))
            parts = [part.value for part in binding.value.elements] + [arg.value for call in calls for arg in call.args]
            if not all(isinstance(part, cst.Call) for part in parts):
                return True
    return False


def changes_of_kept(owner: ClassInfo, binding: Binding) -> Iterator[cst.CSTNode]:
    """What the files of a class change in place of what it gives an attribute."""
    models = dict.fromkeys(info.model for info in owner.lineage)
    return (change for model in models for change in changes_of_bound(model, binding))


def is_handed_on(binding: Binding) -> bool:
    """Whether an attribute is bound to what it is already: ``self.net = self.net.to(device)``, in a wrapper too.

    So it is where ``isinstance`` says of what kind it is.
    """
    if binding.kind is BindingKind.NARROWED:
        return True
    value = None if binding.path else binding.value
    node = None if value is None else handed_through(binding.scope.model, value)
    return node is not None and dotted_path(node) == binding.key


def runs_over_keys(model: "Model", index: cst.BaseExpression, collection: cst.BaseExpression) -> bool:
    """Whether an index runs over all keys of what it is an index of: ``for name in nets: nets[name]``."""
    bindings = model.reaching(index) if isinstance(index, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.LOOP or bindings[0].value is None:
        return False
    iterable, path = bindings[0].value, bindings[0].path
    if isinstance(iterable, cst.Call) and isinstance(iterable.func, cst.Attribute) and not iterable.args:
        if (iterable.func.attr.value, path) not in (("keys", ()), ("items", (0,))):
            return False
        iterable, path = iterable.func.value, ()
    own = dotted_path(collection)
    return not path and own is not None and dotted_path(iterable) == own
