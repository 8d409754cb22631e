"""What is held under a key, at a place or as an attribute: the expression that was put there, and the run of it.

A thing that has a name of its own is that thing, too, where a dict, a list, a record or a namespace hands it on:
``nets["student"]`` of ``evaluate({"student": net})``, ``state.model`` of ``State(net, optimizer)``.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from mllint.semantic.events.places import changes_of_kept, is_handed_on, is_nothing
from mllint.semantic.events.stars import starred
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.classes import fields_of
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Instance, Module
from mllint.syntax.shape import (
    argument,
    dotted_path,
    has_star_arguments,
    integer_literal,
    last_word,
    string_literal,
    subscript_index,
)

if TYPE_CHECKING:
    from mllint.semantic.events.things import Frame

Given: TypeAlias = tuple["Frame", cst.BaseExpression]
_MAX_STEPS = 4
_NAMESPACES = frozenset({
    "builtins.dict", "types.SimpleNamespace", "argparse.Namespace", "munch.Munch", "easydict.EasyDict", "addict.Dict",
    "collections.OrderedDict",
})  # fmt: skip
"""What keeps each of its keywords under its name, and does nothing else with it."""
_ASSIGNED = (BindingKind.ASSIGN, BindingKind.ANNOTATED)


class _Collection(NamedTuple):
    """A display, or the call that makes a record, in its run; and what is put into it later, by key or name."""

    frame: "Frame"
    node: cst.BaseExpression
    filled: dict[object, cst.BaseExpression]


def held(frame: "Frame", node: cst.BaseExpression, steps: int = _MAX_STEPS) -> Given | None:
    """The expression that an index or an attribute leads to; ``None`` where that cannot be told."""
    if steps == 0:
        return None
    if type(node) is cst.Subscript:
        key = _literal_index(frame, node)
        found = None if key is None else _collection(frame, node.value, steps)
        return None if found is None or key is None else _at(found, key)
    if type(node) is cst.Attribute:
        return _field(frame, node.value, node.attr.value, steps)
    return None


def unpacked_from(frame: "Frame", binding: Binding) -> Given | None:
    """What a name is bound to that stands at a place in something with a name: of ``net, head = nets``."""
    place = binding.path[0] if len(binding.path) == 1 and binding.kind is BindingKind.ASSIGN else None
    is_named = binding.value.__class__ in (cst.Name, cst.Attribute, cst.Subscript)
    found = _collection(frame, binding.value, _MAX_STEPS) if place is not None and is_named and binding.value else None
    return None if found is None or place is None else _at(found, place)


def parts_of(frame: "Frame", node: cst.BaseExpression, steps: int = 2) -> Iterator[Given]:
    """All that is put into what an expression stands for, a display or a record, where that is in sight; and into
    those parts of it that are displays themselves.
    """
    for home, part in _parts(frame, node):
        yield home, part
        if steps and part.__class__ in (cst.Dict, cst.List, cst.Tuple):
            yield from parts_of(home, part, steps - 1)


def _parts(frame: "Frame", node: cst.BaseExpression) -> Iterator[Given]:
    bindings = frame.bindings_of(node) if isinstance(node, cst.Name) else ()
    for binding in bindings:
        prefix = f"{binding.key}."
        assigned = (item for key, found in binding.scope.bindings.items() if key.startswith(prefix) for item in found)
        yield from ((_home(frame, item), item.value) for item in assigned if item.value is not None)
        given = frame.given(binding)
        if given is not None and isinstance(given[1], cst.Name):
            yield from _parts(*given)
    found = _collection(frame, node, _MAX_STEPS)
    if found is None:
        return
    match found.node:
        case cst.Dict(elements=elements):
            yield from ((found.frame, item.value) for item in elements)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            yield from ((found.frame, item.value) for item in elements)
        case cst.Call(args=args) if _is_record(found):
            yield from ((found.frame, arg.value) for arg in args)
    yield from ((found.frame, value) for value in found.filled.values())


def _literal_index(frame: "Frame", node: cst.Subscript) -> str | int | None:
    """The key or place that an index says, also that of a round over literals: ``for key in ("net", "head")``."""
    index = subscript_index(node)
    if index.__class__ is cst.Name and frame.literals:
        bindings = frame.model.reaching(index)
        index = frame.literals.get(bindings[0]) if len(bindings) == 1 else None
    text = string_literal(index)
    return integer_literal(index) if text is None else text


def _at(found: _Collection, key: str | int) -> Given | None:
    """What stands under a key that is written there, and only once."""
    node, given = found.node, list[cst.BaseExpression]()
    match node:
        case cst.Dict(elements=elements):
            if not all(isinstance(item, cst.DictElement) for item in elements):
                return None
            given = [item.value for item in elements if isinstance(item, cst.DictElement) and _is(item.key, key)]
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            is_plain = not any(isinstance(item, cst.StarredElement) for item in elements)
            given = [elements[key].value] if is_plain and isinstance(key, int) and 0 <= key < len(elements) else []
        case cst.Call() if not has_star_arguments(node):
            if isinstance(key, int):
                fields = fields_of(found.frame.model, node.func)
                kept = _of_record(found, fields[key]) if 0 <= key < len(fields) else None
            else:
                kept = _of_record(found, key)
            given = [] if kept is None else [kept]
    if key in found.filled:
        given.append(found.filled[key])
    if len(given) != 1 or (isinstance(key, str) and _is_put_elsewhere(found, key)):
        return None
    return found.frame, given[0]


def _is_set_elsewhere(binding: Binding, name: str) -> bool:
    """Whether another body of the file assigns an attribute of that name: a function may be given what is bound."""
    model = binding.scope.model
    for node in model.names_by_word.get(name, ()):
        attribute = model.tree.parent(node)
        if isinstance(attribute, cst.Attribute) and attribute.attr is node and dotted_path(attribute.value) != "self":
            statement = model.tree.parent(attribute)
            if isinstance(statement, cst.AssignTarget) and model.scope_of(attribute) is not binding.scope:
                return True
    return False


def _is_put_elsewhere(found: _Collection, key: str) -> bool:
    """Whether another body of the file puts something under a key: a function may be given the dict."""
    model, home = found.frame.model, found.frame.scope
    return any(
        string_literal(subscript_index(item.target)) == key and model.scope_of(item) is not home
        for item in model.tree.by_type.get(cst.AssignTarget, ())
        if isinstance(item.target, cst.Subscript)
    )


def _is(node: cst.BaseExpression, key: str | int) -> bool:
    return isinstance(key, str) and string_literal(node) == key


def _of_record(found: _Collection, name: str) -> cst.BaseExpression | None:
    """What the call that makes a record or a namespace puts into a field."""
    call, model = found.node, found.frame.model
    if not isinstance(call, cst.Call) or has_star_arguments(call):
        return None
    fields = fields_of(model, call.func)
    is_namespace = not fields and model.qualified_name(call.func) in _NAMESPACES
    if not is_namespace and name not in fields:
        return None
    given = argument(call, None if is_namespace else fields.index(name), name)
    return None if given is None else given.value


def _is_record(found: _Collection) -> bool:
    call, model = found.node, found.frame.model
    return isinstance(call, cst.Call) and (
        bool(fields_of(model, call.func)) or model.qualified_name(call.func) in _NAMESPACES
    )


def _field(frame: "Frame", holder: cst.BaseExpression, name: str, steps: int) -> Given | None:
    """What an attribute of a record, or of an object of no class of the project, is given."""
    run: Frame | None = frame  # a plain loop: it is asked for every attribute that is not known
    while run is not None and name not in run.model.runs.kept_names:
        run = run.caller
    if run is None:
        return None
    own = None if frame.function is None else frame.function.self_name
    if (type(holder) is cst.Name and holder.value == own) or isinstance(frame.model.value(holder), Module):
        return None
    found = _collection(frame, holder, steps, field=name)
    if found is None:
        return None
    made = _of_record(found, name)
    given = [item for item in (made, found.filled.get(name)) if item is not None]
    return (found.frame, given[0]) if len(given) == 1 else None


def _collection(frame: "Frame", node: cst.BaseExpression, steps: int, field: str | None = None) -> _Collection | None:
    """The display, or the call that makes a record, that an expression stands for, and what it is filled with.

    ``None`` where it may be changed otherwise.
    """
    if steps <= 0:
        return None
    if type(node) is cst.Name:
        bindings = frame.bindings_of(node)
        if len(bindings) != 1:
            return None
        if (display := starred(frame, bindings[0])) is not None:
            return _Collection(*display, {})
        given = frame.given(bindings[0])
        return _bound(frame, bindings[0], steps, field) if given is None else _collection(*given, steps - 1, field)
    if type(node) is cst.Attribute:
        return _kept(frame, node, steps, field)
    if type(node) is cst.Subscript:
        inner = held(frame, node, steps - 1)
        return None if inner is None else _collection(*inner, steps - 1, field)
    return _Collection(frame, node, {}) if type(node) in (cst.Dict, cst.List, cst.Tuple, cst.Call) else None


def _bound(frame: "Frame", binding: Binding, steps: int, field: str | None) -> _Collection | None:
    is_plain = field is not None and binding.kind in (BindingKind.ASSIGN, BindingKind.PARAMETER)
    # What a class of the project keeps, its own methods bind.
    if is_plain and not isinstance(binding.scope.model.binding_value(binding), (Instance, Module)):
        assigned = [item for item in binding.scope.bindings.get(f"{binding.key}.{field}", ()) if not is_handed_on(item)]
        if assigned:
            only = (
                assigned[0] if len(assigned) == 1 and assigned[0].kind in _ASSIGNED and not assigned[0].path else None
            )
            if only is None or only.value is None or _is_set_elsewhere(binding, str(field)):
                return None
            return _Collection(_home(frame, binding), binding.value or only.value, {field: only.value})
    if binding.path or binding.value is None or binding.kind not in _ASSIGNED:
        return None
    if binding.value.__class__ in (cst.Name, cst.Attribute, cst.Subscript):
        return _collection(_home(frame, binding), binding.value, steps - 1, field)
    changes = changes_of_bound(binding.scope.model, binding) if field is None else iter(())
    return _filled(_home(frame, binding), binding, changes)


def _home(frame: "Frame", binding: Binding) -> "Frame":
    return frame.run_of(binding.scope) or frame.at(binding)


def _kept(frame: "Frame", node: cst.Attribute, steps: int, field: str | None) -> _Collection | None:
    """What an object keeps as an attribute: what its class binds it to, or what its maker was given for it."""
    owner = frame.owner_of(node)
    if owner is None:
        inner = held(frame, node, steps - 1)
        return None if inner is None else _collection(*inner, steps - 1, field)
    bound = [item for item in owner.assignments(node.attr.value) if not is_nothing(item)]
    if len(bound) != 1 or bound[0].path or bound[0].value is None or bound[0].kind not in _ASSIGNED:
        return None
    holder = frame.thing(node.value)
    if holder is None:
        return None
    binding = bound[0]
    home = frame.home_of(binding, holder)
    if binding.value.__class__ in (cst.Name, cst.Attribute, cst.Subscript):
        kept = frame.kept(holder, node.attr.value)
        return None if kept is None else _collection(*kept, steps - 1, field)
    return _filled(home, binding, changes_of_kept(owner, binding) if field is None else iter(()))


def _filled(home: "Frame", binding: Binding, changes: Iterator[cst.CSTNode]) -> _Collection | None:
    """What a name is bound to, with the items that are put into it under keys that are written there."""
    value, filled, tree = binding.value, dict[object, cst.BaseExpression](), binding.scope.model.tree
    if value.__class__ not in (cst.Dict, cst.List, cst.Tuple, cst.Call) or value is None:
        return None
    if isinstance(value, cst.Call) and not _is_record(_Collection(home, value, filled)):
        return None
    for change in changes:
        if isinstance(change, cst.Call):
            if last_word(change.func) != "append" or not isinstance(value, cst.List):
                return None
            continue
        target = tree.parent(change)
        statement = None if target is None else tree.parent(target)
        if not isinstance(change, cst.Subscript) or not isinstance(statement, cst.Assign):
            return None
        if isinstance(change.value, cst.Subscript):
            continue  # of `nets["student"]["head"] = head` the item is the one that it was
        key = string_literal(subscript_index(change))
        if key is None or key in filled or binding.scope.model.scope_of(change) is not binding.scope:
            return None
        filled[key] = statement.value
    return _Collection(home, value, filled)
