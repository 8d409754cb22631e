"""Calls that save an object of Python, alone or in a dict or list, to the file that another call reads."""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.pickles import OBJECTS_OF_NUMPY
from mllint.knowledge.words import STATEFUL
from mllint.semantic.checkpoints.contents import FromFile, Record
from mllint.semantic.checkpoints.counterparts import MANY, saved_beside
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.tracing import path_given, read_path
from mllint.semantic.events.places import as_itself
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.imports import origins
from mllint.semantic.names.definitions import class_around, function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.names.uses import mentions, uses_of_bound
from mllint.semantic.values import Array, Elements, Instance, Mapping, Module, Object, Options, Value
from mllint.syntax.shape import argument, dotted_path, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

OF_MODULES = frozenset({
    "eval", "train", "parameters", "named_parameters", "modules", "children", "forward", "state_dict",
    "load_state_dict", "zero_grad", "sublayers",
})  # fmt: skip
"""What is asked of modules alone, or of what holds a state like theirs."""
_PLAIN = (Counter, OrderedDict, list, str, int, float, set, bytes)
_OF_VALUES = frozenset({name for kind in _PLAIN for name in dir(kind)})
_PICKLED_OTHERWISE = ("__reduce__", "__reduce_ex__")
_WITHOUT_STATE = ("loader", "sampler")
"""Objects of the framework that are saved whole, or not at all."""
MAX_FILES = 20
"""How many files of a project are looked at for what they save with an entry."""
_STEPS = 4
"""Through how many names and collections an entry is looked for."""


def saves_to_same(model: "Model", load: cst.Call) -> list[Place]:
    """Where the code saves to the very file that is read.

    Of a path that the caller gives it is the file that the function beside writes: ``save_checkpoint(filename)`` and
    ``load_checkpoint(path)`` of one class, or of one file.
    """
    path = read_path(FromFile(Place(model, load)))
    if path is None or (path.is_blank and not model.calls_by_word.get("save")):
        return []
    saves = [item.place for item in model.surroundings.saved if item.path is not None and item.path.is_same_as(path)]
    if path.is_blank:  # `self.path` of one class is not that of another
        owner = class_around(model, load)
        saves = [place for place in saves if place.model is model and class_around(model, place.node) is owner]
        saves = saves or [item.place for item in saved_beside(model, Place(model, load))]
    return saves or list(_saves_to_same_folder(model, load, path))


def _saves_to_same_folder(model: "Model", load: cst.Call, path: Path) -> Iterator[Place]:
    """Where files further away save to a path that is put together with the same name: ``from config import OUT``."""
    given = path_given(FromFile(Place(model, load)))
    for part in () if given is None else parts_of_path(model, given):
        if not isinstance(part, cst.Name):
            continue
        homes = (item.scope.model for item in origins(model, part.value, Frame(model).bindings_of(part)))
        for other in (other for home in homes if home is not model for other in home.importers(part.value)):
            if other not in model.surroundings.models:
                saved = (item for item in other.surroundings.saved if item.place.model is other)
                yield from (item.place for item in saved if item.path is not None and item.path.is_same_as(path))


def parts_of_path(model: "Model", given: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """The parts of the expression that gives a path, and of what the names in it are bound to in the file."""
    pending, seen = [given], set[int]()
    while pending:
        for part in subtree(pending.pop()):
            yield part
            if not isinstance(part, (cst.Name, cst.Attribute)):
                continue
            owner = owner_of_attribute(model, part)
            if owner is not None and isinstance(part, cst.Attribute):
                bindings = tuple(owner.assignments(part.attr.value))
            else:
                bindings = Frame(model).bindings_of(part) if isinstance(part, cst.Name) else model.reaching(part)
            for binding in bindings:
                if binding.value is not None and binding.scope.model is model and id(binding) not in seen:
                    seen.add(id(binding))
                    pending.append(binding.value)


def may_save_object(place: Place) -> bool:
    """Whether an object may be saved somewhere, in a dict or list also: what is used as no plain value can be."""
    given = argument(place.node, 0, "obj") if isinstance(place.node, cst.Call) else None
    return given is not None and _may_hold_object(place.model, given.value, _STEPS)


def _may_hold_object(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether an expression may be an object, or a dict or list with one in it."""
    node, value = as_itself(node), model.value(node)
    if holds_object(value) or _is_of_numpy(model, node):
        return True
    inner: list[tuple[Model, cst.BaseExpression]] = []
    match value:
        case Mapping(node=cst.Dict(elements=elements), home=home) if home is not None:
            inner = [(home, item.value) for item in elements if isinstance(item, cst.DictElement)]
    match node:
        case cst.Dict(elements=elements):
            inner = [(model, item.value) for item in elements if isinstance(item, cst.DictElement)]
        case cst.List(elements=entries) | cst.Tuple(elements=entries):
            inner = [(model, item.value) for item in entries]
        case cst.Name() | cst.Attribute() if (path := dotted_path(node)) is not None:
            if value is None and _is_used_as_object(model, node, path):
                return True
            made = only_assigned(model, node)
            inner += [(model, item) for item in (*_set_later(model, node, path), *([made] if made else []))]
    return steps > 0 and any(_may_hold_object(home, item, steps - 1) for home, item in inner)


def _is_of_numpy(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether NumPy has made something, which is an object also where it is one number: ``np.mean(losses)``."""
    name = model.qualified_name(node.func) if isinstance(node, cst.Call) else None
    return name is not None and name.startswith("numpy.")


def _is_used_as_object(model: "Model", node: cst.BaseExpression, path: str) -> bool:
    """Whether what has a name, and is not known, is read for what no plain value has: ``self.config.lr``."""
    # `self.net` is the same in all methods of a class, and a name in its function only.
    around = class_around if "." in path else function_around
    reads = (model.tree.parent(use) for use in mentions(model, path) if around(model, use) is around(model, node))
    found = [read.attr.value for read in reads if isinstance(read, cst.Attribute)]
    return any(name in OF_MODULES or not is_of_plain_value(name) for name in found)


def _set_later(model: "Model", node: cst.BaseExpression, path: str) -> Iterator[cst.BaseExpression]:
    """What the function around puts under a key of the dict that has a name: ``checkpoint["config"] = config``."""
    function = function_around(model, node)
    for use in mentions(model, path):
        item = model.tree.parent(use)
        target = model.tree.parent(item) if isinstance(item, cst.Subscript) and item.value is use else None
        statement = model.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
        if isinstance(statement, cst.Assign) and function_around(model, use) is function:
            yield statement.value


def is_saved_with_object(model: "Model", load: cst.Call) -> bool:
    """Whether the project saves all the entries that are read there by their names with an object beside, each time.

    That is for a file of which nobody knows what saves it.
    """
    keys = _keys_read(model, load)
    if not keys or model.project is None or saves_to_same(model, load):
        return False
    paths = model.project.users("torch", max(sorted(keys), key=len))[:MAX_FILES]
    others = (model if path == model.path else model.neighbour(path) for path in paths)
    places = [
        saved.place
        for other in others
        if other is not None and "save" in other.calls_by_word
        for saved in other.surroundings.saved
        if saved.place.model is other and isinstance(saved.content, Record) and keys <= saved.content.items.keys()
    ]
    return bool(places) and all(map(may_save_object, places))


def _keys_read(model: "Model", load: cst.Call) -> set[str]:
    """The names of the entries that are taken of what is read, at once or by its name."""
    statement = model.tree.parent(load)
    found = [load, *(uses_of_bound(model, statement) if isinstance(statement, cst.Assign) else ())]
    keys: set[str | None] = set()
    for node in found:
        item = model.tree.parent(node)
        if isinstance(item, cst.Subscript) and item.value is node:
            keys.add(string_literal(subscript_index(item)))
        elif isinstance(item, cst.Attribute) and item.attr.value == "get" and (call := model.tree.call_of(item)):
            keys.add(string_literal(call.args[0].value) if call.args else None)
    return {key for key in keys if key is not None}


def saves_object(place: Place) -> bool:
    """Whether an object surely is what is saved somewhere, or stands in what is."""
    given = argument(place.node, 0, "obj") if isinstance(place.node, cst.Call) else None
    return given is not None and _surely_holds(place.model, given.value)


def _surely_holds(model: "Model", node: cst.BaseExpression, steps: int = _STEPS) -> bool:
    """Whether an expression surely is an object, or a dict with one in it, as the state of NumPy's generator is."""
    made = only_assigned(model, node) if isinstance(node, (cst.Name, cst.Attribute)) else node
    if isinstance(made, cst.Call) and model.qualified_name(made.func) in OBJECTS_OF_NUMPY:
        return True
    if holds_object(model.value(node)):
        return True
    return steps > 0 and any(_surely_holds(home, item, steps - 1) for _, home, item in _entries(model, node))


def _entries(model: "Model", node: cst.BaseExpression) -> "Iterator[tuple[str | None, Model, cst.BaseExpression]]":
    """The keys and values of the display of a dict, with the file in which it stands."""
    match model.value(node):
        case Mapping(node=cst.Dict(elements=elements), home=home) if home is not None:
            for item in elements:
                if isinstance(item, cst.DictElement):
                    yield string_literal(item.key), home, item.value


def reads_object(model: "Model", load: cst.Call) -> bool:
    """Whether an entry is taken of what is read that is an object wherever the code around saves all that are taken.

    That is for a file of which nobody knows what saves it, and for more entries than one.
    """
    path, keys = read_path(FromFile(Place(model, load))), _keys_read(model, load)
    if path is None or path.is_of_others or len(keys) < MANY:
        return False
    places = [
        saved.place
        for saved in model.surroundings.saved
        if isinstance(saved.content, Record) and keys <= saved.content.items.keys()
    ]
    return bool(places) and any(all(_saves_object_as(place, key) for place in places) for key in sorted(keys))


def _saves_object_as(place: Place, key: str) -> bool:
    """Whether an object surely is what a call saves under a key."""
    given = argument(place.node, 0, "obj") if isinstance(place.node, cst.Call) else None
    entries = () if given is None else _entries(place.model, given.value)
    found = [_surely_holds(home, item) for name, home, item in entries if name == key]
    return bool(found) and all(found)


def holds_object(value: Value | None) -> bool:
    """Whether an object is what is saved, or surely stands in a dict or list that is."""
    match value:
        case Instance(definition=definition) | Module(definition=definition):
            return definition is None or not any(map(definition.method, _PICKLED_OTHERWISE))
        case Object():
            return value.kind in STATEFUL or value.kind in _WITHOUT_STATE
        case Array() | Options():
            return True
        case Elements(items=items):
            return any(map(holds_object, items))
        case Mapping(node=cst.Dict(elements=elements), home=home) if home is not None:
            return any(isinstance(item, cst.DictElement) and holds_object(home.value(item.value)) for item in elements)
    return False


def is_of_plain_value(name: str) -> bool:
    """Whether a tensor, or a plain value that may stand in any such file, has an attribute or method of that name."""
    return (
        name in _OF_VALUES
        or lookup.tensor_method("torch", name) is not None
        or lookup.tensor_attribute("torch", name) is not None
    )
