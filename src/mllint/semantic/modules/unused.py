"""Submodules that a module registers and never uses, or replaces before anything has used them."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import ADDING_MODULES, LOADING
from mllint.semantic.events.places import as_itself
from mllint.semantic.modules.fresh import is_fresh, takes_others
from mllint.semantic.modules.other_objects import is_made_of
from mllint.semantic.modules.weights import has_only_statistics, has_weights
from mllint.semantic.names.classes import Assignment, Role
from mllint.semantic.names.conditions import decided, is_unreachable, verdicts
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Module, Output, Tensor
from mllint.syntax.shape import all_given, argument, constant, constant_given, dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
    from mllint.semantic.values import Value

# What is done with a module before it is used: filling a container, giving weights their first values.
_PREPARING = ADDING_MODULES | {"append", "extend", "insert", "apply"}
_STATE_DICTS = ("state_dict", "named_parameters")
_WEIGHTS = frozenset({"weight", "bias", "data"})
_USED = re.compile(r"\bself\.(\w+)(?=\(|,\s*$|\.\w|\[|\s*[-+*/@]|\s*[,)\]]+.*[)\]]\s*$)")
"""An attribute that a comment uses as code does: called, asked, computed with, an item or argument among others."""


MIN_VARIANT = 3
"""A class that leaves so many submodules unused, and all of another class, is a variant: it keeps them on purpose."""


def unused_submodules(definition: "ClassInfo") -> tuple[tuple[str, Assignment], ...]:
    """The new submodules with weights that nothing in the project reads: their names, and where they are assigned.

    None where the class is a variant of one that uses them, and has them so that the same checkpoint fits both.
    """
    found = tuple(_unused(definition))
    names = frozenset(name for name, _ in found)
    is_variant = len(found) >= MIN_VARIANT and definition.members.are_used_by_a_variant(names)
    if is_variant or (found and (_is_all_it_has(definition, names) or _is_downloaded(definition))):
        return ()
    return found


def _unused(definition: "ClassInfo") -> Iterator[tuple[str, Assignment]]:
    constructor = definition.methods.get("__init__")
    if constructor is None or constructor.self_name is None or definition.framework is None:
        return
    prefix = f"{constructor.self_name}."
    is_complete = False
    for key, bindings in constructor.scope.bindings.items():
        name = key.removeprefix(prefix)
        if not key.startswith(prefix) or "." in name or not _may_be_made(bindings) or _is_read_here(definition, name):
            continue
        # Most attributes hold no module, and are read: that shows before anything has to be known of them.
        if _is_used(definition, name):
            continue
        is_complete = is_complete or _is_complete(definition)
        if not is_complete:
            return
        places = list(definition.members.assignments(name))
        made = [place.value for place in places if place.value is not None and _makes_module(place)]
        if len(made) < len(places):
            continue
        # To tell whether a layer has weights it may have to be built: that comes after what a file says by its text.
        kinds = [_is_worth_a_word(place.model, value) for place, value in zip(places, made, strict=True)]
        if True in kinds and None not in kinds and not definition.members.may_be_read_elsewhere(name):
            place = places[kinds.index(True)]
            is_dead = _is_on_demand(place) or is_unreachable(place.model, place.node)
            if not is_dead and not _is_left_empty(definition, name, places):
                yield name, place


def _is_worth_a_word(model: "Model", node: cst.BaseExpression) -> bool | None:
    """Whether a module has weights, or a table of its own, and not only the statistics of a normalization."""
    return has_weights(model, node) and not has_only_statistics(model, node)


def _may_be_made(bindings: list[Binding]) -> bool:
    """Whether all that a constructor assigns to an attribute are calls, as those that make modules are."""
    for binding in bindings:
        if binding.kind is BindingKind.ASSIGN and (binding.path or type(binding.value) is not cst.Call):
            return False
    return True


def _is_all_it_has(definition: "ClassInfo", names: frozenset[str]) -> bool:
    """Whether a class has no weights but these: they are there so that it has parameters, and a device."""
    others = (
        place
        for info in definition.lineage
        for method in info.methods.values()
        for key in method.scope.bindings
        if (name := key.removeprefix(f"{method.self_name}.")) != key and "." not in name and name not in names
        for place in definition.members.assignments(name)
    )
    return all(place.role is not Role.SUBMODULE and not _may_be_weights(place) for place in others)


def _may_be_weights(place: Assignment) -> bool:
    whole = place.node.value if isinstance(place.node, cst.Assign) else None
    several = [item.value for item in whole.elements] if isinstance(whole, cst.Tuple) else [place.value]
    return any(value is None or isinstance(place.model.value(value), (Module, Tensor, Output)) for value in several)


def _is_on_demand(place: Assignment) -> bool:
    """Whether a layer is only made where somebody sets a parameter of the constructor, or another option, to what it
    is not by default.
    """
    return is_out_by_default(place.model, place.node)


def _is_left_empty(definition: "ClassInfo", name: str, places: list[Assignment]) -> bool:
    """Whether an attribute is a list that is made empty, and that nothing is ever put into."""
    if not all(isinstance(place.value, cst.Call) and _is_empty(place.value) for place in places):
        return False
    written = {id(place.node) for place in places}
    for method in (method for info in definition.lineage for method in info.methods.values()):
        for word in method.model.names_by_word.get(name, ()):
            around = list(method.model.tree.ancestors(word))
            if method.node in around and not any(id(node) in written for node in around):
                return False
    return True


def _is_empty(made: cst.Call) -> bool:
    """Whether a container is made of nothing: ``ModuleList([])``."""
    given = [arg.value for arg in made.args]
    return all(isinstance(node, (cst.List, cst.Tuple, cst.Dict)) and not node.elements for node in given)


def _is_read_here(definition: "ClassInfo", name: str) -> bool:
    """Whether the class itself calls the attribute: the common case, which costs little to see."""
    return id(definition.node) in _classes_that_call(definition.model, name)


@worked_out_once
def _classes_that_call(model: "Model", name: str) -> set[int]:
    owners: set[int] = set()
    for call in model.calls_by_word.get(name, ()):
        method = method_of_receiver(model, call.func.value) if isinstance(call.func, cst.Attribute) else None
        if method is not None and method.owner is not None:
            owners.add(id(method.owner.node))
    return owners


def _is_complete(definition: "ClassInfo") -> bool:
    """Whether all that instances of the class do is in sight: a ``forward``, known bases, attributes by their names."""
    members = definition.members
    if not members.has_only_plain_bases or "__getattr__" in definition.methods:
        return False
    forward = definition.method("forward")
    if forward is None or forward.is_left_open or not _uses_instance(forward):
        return False
    return not (members.sets_computed_names or members.reads_computed_names or _has_weights_from_a_file(definition))


def _uses_instance(method: "FunctionInfo") -> bool:
    """Whether a method names its object at all: a ``forward`` that does not is still to be written."""
    own = method.self_name
    return any(isinstance(node, cst.Name) and node.value == own for node in subtree(method.node.body))


def _has_weights_from_a_file(definition: "ClassInfo") -> bool:
    """Whether a file says what layers there are: the constructor loads one, or the class is loaded and never saved.

    So it is for the parts of such a class, and for a script that neither trains nor saves, but loads several.
    """
    model = definition.model
    if _loads_itself(definition) or definition.name in _parts_of_loaded(model):
        return True
    loads = [call for word in LOADING for call in model.calls_by_word.get(word, ())]
    if _saves(model):
        return any(_fits_a_file(definition, model, call) for call in loads) and not _may_be_saved(definition)
    loaded = list(_loaded_into(model))
    if any(_is_instance(definition, value) for value in loaded):
        return True
    # A script that loads whichever of its classes: what these are made of is handed to them.
    is_one_of_several = any(isinstance(value, Module) and value.others for value in loaded)
    return is_one_of_several and "backward" not in model.calls_by_word and not any(model.importers(definition.name))


def _saves(model: "Model") -> bool:
    """Whether a file may write weights to another."""
    return any(model.calls_by_word.get(word) for word in ("save", *_STATE_DICTS))


def _loaded_into(model: "Model") -> Iterator["Value | None"]:
    """What a file loads into, as far as it is known."""
    for call in (call for word in LOADING for call in model.calls_by_word.get(word, ())):
        if isinstance(call.func, cst.Attribute):
            yield model.value(call.func.value)


def _fits_a_file(definition: "ClassInfo", model: "Model", call: cst.Call) -> bool:
    """Whether an instance gets its weights of what is read right there, all keys of which have to fit."""
    is_made = isinstance(call.func, cst.Attribute) and is_made_of(definition, model.value(call.func.value))
    is_read = any(isinstance(arg.value, cst.Call) and last_word(arg.value.func) == "load" for arg in call.args)
    return is_made and is_read and not _is_partial(call)


def _may_be_saved(definition: "ClassInfo") -> bool:
    """Whether the file of a class may save one: what it is called there is named where something is saved."""
    model = definition.model
    names: set[str | None] = set()
    for call in model.calls_by_word.get(definition.name, ()):
        made: cst.CSTNode = call
        while isinstance(parent := model.tree.parent(made), (cst.Call, cst.Attribute)):
            made = parent  # `Net().to(device)`
        target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
        names.add(None if target is None else last_word(target))
    saving = (call for word in ("save", *_STATE_DICTS) for call in model.calls_by_word.get(word, ()))
    words = {node.value for call in saving for node in subtree(call) if isinstance(node, cst.Name)}
    return None in names or not names.isdisjoint(words)


@worked_out_once
def _parts_of_loaded(model: "Model") -> frozenset[str]:
    """The names of what classes of a file may be made of, at any depth, that load a state dict in their constructor, or
    are loaded in a file that saves nothing.
    """
    calls = (call for word in LOADING for call in model.calls_by_word.get(word, ()))
    functions = (function for call in calls if (function := model.enclosing_function(call)) is not None)
    owners = (model.function_info(function).owner for function in functions if function.name.value == "__init__")
    loaded = () if _saves(model) else _loaded_into(model)
    made = [value.definition for value in loaded if isinstance(value, Module) and value.definition is not None]
    pending = [owner.node for owner in owners if owner is not None and _loads_itself(owner)]
    pending += [info.node for info in made if info.model is model]
    classes = {node.name.value: node for node in model.tree.by_type[cst.ClassDef]}
    seen = {node.name.value for node in pending}
    while pending:
        words = {item.value for item in subtree(pending.pop().body) if type(item) is cst.Name}
        pending += [classes[word] for word in words & classes.keys() - seen]
        seen |= words
    return frozenset(seen)


def _loads_itself(definition: "ClassInfo") -> bool:
    """Whether the constructor loads a state dict into the instance, all keys of which have to fit."""
    for method in definition.members.reachable("__init__"):
        for call in (call for word in LOADING for call in method.model.calls_by_word.get(word, ())):
            if method.model.enclosing_function(call) is not method.node or not isinstance(call.func, cst.Attribute):
                continue
            if dotted_path(call.func.value) == method.self_name and not _is_partial(call):
                return True
    return False


def _is_downloaded(definition: "ClassInfo") -> bool:
    """Whether a function of the project loads into an instance what it downloads, all keys of which have to fit."""
    for model in (*definition.members.models, *definition.model.importers(*LOADING)):
        for call in (call for word in LOADING for call in model.calls_by_word.get(word, ())):
            # A function of the project may load, which is given the module, too: `load_state_dict(net, state)`.
            is_loaded = not _is_partial(call) and any(
                is_made_of(definition, model.value(part)) for part in all_given(call)
            )
            if is_loaded and any(_downloads(model, arg.value) for arg in call.args):
                return True
    return False


def _is_partial(call: cst.Call) -> bool:
    """Whether a call loads the keys that fit, and lets the others be."""
    return constant_given(call, 1, "strict") is False


def _downloads(model: "Model", node: cst.BaseExpression, steps: int = 2) -> bool:
    """Whether a function of an expression speaks of a URL, or one behind the names in it."""
    for part in subtree(node):
        if isinstance(part, cst.Call) and "url" in (last_word(part.func) or "").lower():
            return True
        if isinstance(part, cst.Name) and steps:
            bound = (item.value for item in model.reaching(part) if item.value is not None)
            if any(_downloads(model, value, steps - 1) for value in bound):
                return True
    return False


def _is_instance(definition: "ClassInfo", value: "Value | None") -> bool:
    """Whether a module is one of the class or of one that derives from it, as far as that is known."""
    if not isinstance(value, Module):
        return value is None
    return value.is_only_some or (value.definition is not None and definition in value.definition.lineage)


def _makes_module(place: Assignment) -> bool:
    """Whether an assignment makes a new submodule, and gives it no other name."""
    if place.role is not Role.SUBMODULE or not isinstance(place.value, cst.Call):
        return False
    if isinstance(place.node, cst.Assign) and len(place.node.targets) > 1:
        return False
    if not isinstance(as_itself(place.value), cst.Call):
        return False  # a module that is there already: `self.net.to(device)`
    return isinstance(place.model.value(place.value), Module) and not takes_others(place.model, place.value)


def _is_used(definition: "ClassInfo", name: str) -> bool:
    """Whether the files of a class do anything with an attribute, or have its name in a text or a comment."""
    members = definition.members
    for model in members.models:
        for attribute in attributes(model, name):
            method = method_of_receiver(model, attribute.value)
            if method is None and model.library_name(attribute) is not None:
                continue  # `F.layer_norm` is no attribute of an object
            if (method is None or members.is_related(method)) and _is_use(model, attribute):
                return True
        if name in _spoken_of(model):
            return True
    return False


@worked_out_once
def _spoken_of(model: "Model") -> frozenset[str]:
    """The attributes that texts of a file begin with, and those that are used in its comments, or in texts that are
    statements: who took the use out knows of it.
    """
    quoted = (word for begun in re.findall(r"[\"']([\w.]+)", model.source.text) for word in begun.split("."))
    comments = re.findall(r"#[^\n]*", model.source.text)
    texts = (item for item in model.tree.by_type.get(cst.SimpleString, ()) if "self." in item.value)
    taken_out = [item.value for item in texts if isinstance(model.tree.parent(item), cst.Expr)]
    used = (word for text in (*comments, *taken_out) for word in _USED.findall(text))
    return frozenset(quoted).union(used)


def _is_use(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether one mention of a submodule does more than set it, fill it, or give its weights their first values."""
    parent = model.tree.parent(node)
    while isinstance(parent, cst.Attribute) and parent.attr.value in _WEIGHTS:
        node, parent = parent, model.tree.parent(parent)
    match parent:
        case cst.AssignTarget() | cst.AnnAssign():
            return isinstance(parent, cst.AnnAssign) and parent.value is node
        case cst.Subscript() if parent.value is node and isinstance(model.tree.parent(parent), cst.AssignTarget):
            return False
        case cst.Attribute(attr=cst.Name(value=method)):
            return model.tree.call_of(parent) is None or not (method in _PREPARING or method.endswith("_"))
        case cst.Arg():
            call = model.tree.parent(parent)
            path = dotted_path(call.func) if isinstance(call, cst.Call) else None
            return path is None or "init" not in path.lower()
    return True


_MAX_STEPS = 4
"""Through how many names a default is followed."""


def _holds_by_default(model: "Model", test: cst.BaseExpression) -> bool | None:
    """Whether a test holds with the defaults of what is asked in it; ``None`` where nothing of it has one."""
    return decided(test, partial(_by_default, model))


def is_out_by_default(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a function does not come by a place with the defaults of what is asked before it."""
    return any(_holds_by_default(model, test) is (not is_met) for test, is_met in verdicts(model, node))


def _by_default(model: "Model", node: cst.BaseExpression, steps: int = _MAX_STEPS) -> object:
    """The constant that an option is where nobody sets it: the default of a parameter, or of ``getattr()``, also under
    other names; ``Ellipsis`` where it is not known.
    """
    literal = constant(node)
    if literal is not ... or steps == 0:
        return literal
    if isinstance(node, cst.Call):
        # Of a dict, or of an object of options.
        asked = {"getattr": 2, "get": 1, "pop": 1}.get(last_word(node.func) or "")
        default = None if asked is None else argument(node, asked, None)
        return ... if default is None else constant(default.value)
    bound = [item.node.default for item in model.reaching(node) if isinstance(item.node, cst.Param)]
    if bound:
        return constant(bound[0]) if len(bound) == len(model.reaching(node)) == 1 else ...
    kept = only_assigned(model, node)
    return ... if kept is None else _by_default(model, kept, steps - 1)


_LEAVING = (cst.Return, cst.Break, cst.Continue)


def replaced_submodules(definition: "ClassInfo") -> Iterator[tuple[str, cst.CSTNode, Sequence[cst.CSTNode]]]:
    """The new submodules with weights that the same block replaces before they are read: their names, their statements
    and the lines from there to what replaces them.
    """
    constructor = definition.methods.get("__init__")
    if constructor is None or constructor.self_name is None or definition.framework is None:
        return
    prefix = f"{constructor.self_name}."
    for key, bindings in constructor.scope.bindings.items():
        name = key.removeprefix(prefix)
        if len(bindings) > 1 and key.startswith(prefix) and "." not in name:
            made = [item for item in bindings if _is_assigned_alone(item)]
            for binding, later in pairwise(made):
                lines = _lines(constructor, binding.node, later.node)
                if lines is not None and _is_replaced(definition, constructor, name, binding, later, lines[1:-1]):
                    yield name, binding.node, lines


def _is_assigned_alone(binding: Binding) -> bool:
    """Whether the result of a call is assigned to the attribute and to nothing else."""
    statement = binding.node
    is_one = isinstance(statement, cst.AnnAssign) or (isinstance(statement, cst.Assign) and len(statement.targets) == 1)
    return is_one and binding.kind is not BindingKind.AUGMENTED and not binding.path and type(binding.value) is cst.Call


def _is_replaced(
    definition: "ClassInfo",
    constructor: "FunctionInfo",
    name: str,
    binding: Binding,
    later: Binding,
    between: Sequence[cst.CSTNode],
) -> bool:
    model, value, other = constructor.model, binding.value, later.value
    if value is None or other is None or not isinstance(model.value(other), Module):
        return False
    if any(_may_use(definition, constructor, name, part) for part in (*between, other)):
        return False
    return is_fresh(model, value) and has_weights(model, value) is True and not has_only_statistics(model, value)


def _lines(constructor: "FunctionInfo", start: cst.CSTNode, end: cst.CSTNode) -> Sequence[cst.CSTNode] | None:
    """The lines from one statement to another of a block that surely runs to its end; ``None`` where it may not."""
    tree = constructor.model.tree
    first, last = tree.parent(start), tree.parent(end)
    block = None if first is None else tree.parent(first)
    if not isinstance(block, cst.IndentedBlock) or first is last or isinstance(tree.parent(block), cst.Try):
        return None
    lines: list[cst.CSTNode] = list(block.body)
    if first not in lines or last not in lines:
        return None
    lines = lines[lines.index(first) : lines.index(last) + 1]
    return None if any(isinstance(node, _LEAVING) for line in lines[1:-1] for node in subtree(line)) else lines


def _may_use(definition: "ClassInfo", constructor: "FunctionInfo", name: str, part: cst.CSTNode) -> bool:
    """Whether a piece of the constructor may do anything with an attribute: by its name, or with the whole object."""
    tree, members = constructor.model.tree, definition.members
    for node in subtree(part):
        if not isinstance(node, cst.Name) or node.value not in (constructor.self_name, "super"):
            continue
        attribute = tree.parent(node)
        if not isinstance(attribute, cst.Attribute) or attribute.value is not node:
            return True
        word = attribute.attr.value
        if isinstance(tree.parent(attribute), cst.AssignTarget):
            continue
        methods = members.reachable(word)
        if word == name or not (methods or any(True for _ in members.assignments(word))):
            return True
        if any(read.method in methods for read in members.reads(name)):
            return True
    return False
