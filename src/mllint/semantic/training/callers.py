"""The bodies from which a function is reached, where the ways of a training begin."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import MODES, UPDATING
from mllint.semantic.files.testing import may_be_of_tests
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, class_around, function_around
from mllint.semantic.names.scopes import redefinition
from mllint.semantic.names.uses import uses_of_bound, whole
from mllint.semantic.values import ClassObject, Function, Instance, Module
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_DEPTH = 5
_MAX_ROOTS = 12
_MAX_FILES = 8
_MAX_CALLS = 2 * _MAX_FILES


class Root(msgspec.Struct, frozen=True):
    """A body that nobody in sight calls: a function, or (no function) a file. ``is_open``: somebody else may.

    ``instance_of`` is the class of the object whose method it is, where a base class of that one defines the method.
    """

    model: "Model"
    function: FunctionInfo | None
    is_open: bool = False
    instance_of: ClassInfo | None = None


def roots_of(model: "Model", function: FunctionInfo | None) -> tuple[Root, ...]:
    """The bodies from which a function of a file is reached, in source order; the file itself for its own statements.

    Empty where there are more than anybody would follow.
    """
    found: dict[tuple[int, int], Root] = {}
    if not _climb(function, model, found, (), False, None):
        return ()
    return tuple(found.values())


def roots_elsewhere(function: FunctionInfo) -> tuple[Root, ...]:
    """The bodies from which a function is reached by way of other files, though its own calls it, too.

    That need not be asked but for what no call in its own file comes by.
    """
    found: dict[tuple[int, int], Root] = {}
    for call in _calls_elsewhere(function, None) if _calls(function, None) else ():
        info = function_around(call.model, call.node)
        if not _climb(info, call.model, found, (function,), False, None) or len(found) > _MAX_ROOTS:
            return ()
    return tuple(found.values())


def runs_without_gradients_elsewhere(model: "Model", node: cst.CSTNode) -> bool:
    """Whether other files call the function around a place, and all of them with gradients switched off.

    Where nobody in sight calls it, the other functions of its file say what they are for.
    """
    info = function_around(model, node)
    if info is None or info.owner is not None:
        return False
    known = _records(info)
    if known is None and not model.calls_by_word.get(info.name):
        others = map(model.function_info, model.tree.by_type[cst.FunctionDef])
        found = {_records(item) for item in others if item.owner is None and item is not info}
        return False in found and True not in found
    return known is False


def _records(function: FunctionInfo, steps: int = 2) -> bool | None:
    """Whether a function may run with gradients where other files call it; ``None``: none of them does."""
    calls = _calls_elsewhere(function, None)
    return any(_may_record(call, steps) for call in calls) if calls else None


def _may_record(call: "_Call", steps: int) -> bool:
    """Whether gradients may be on at a call, as far as its file and those that call its function tell."""
    if call.model.gradients.off(call.node) is True:
        return False
    caller = call.model.enclosing_function(call.node)
    return caller is None or steps == 0 or _records(call.model.function_info(caller), steps - 1) is not False


def _climb(
    function: FunctionInfo | None,
    model: "Model",
    found: "dict[tuple[int, int], Root]",
    below: tuple[FunctionInfo, ...],
    is_open: bool,
    instance_of: ClassInfo | None,
) -> bool:
    if function is None:
        found.setdefault((id(model), 0), Root(model, None, is_open))
        return True
    if function in below:
        return True
    if len(below) >= _MAX_DEPTH:
        # Nobody would be followed from further out: it is as though somebody called who is not in sight.
        found.setdefault((id(model), id(function.node)), Root(model, function, True, instance_of))
        return True
    calls = [*_calls(function, instance_of), *_calls_in_bases(function, instance_of)]
    calls += _calls_by_super(function, instance_of)
    calls += _makings_of_what_switches(function)
    is_open = is_open or _has_other_callers(function, calls)
    if all(call.model.enclosing_function(call.node) is None for call in calls):
        # A file that is run as a script may be imported, too.
        calls += _calls_elsewhere(function, instance_of)
    if not calls and not is_open and _is_replaced(function):
        return True  # nobody can call it
    if makings := _makings_of_what_steps(function):
        # Whoever calls what is made there need not be seen.
        found.setdefault((id(instance_of or model), id(function.node)), Root(model, function, True, instance_of))
        calls += makings
    if not calls:
        for holder in (instance_of,) if instance_of is not None else _completing(function) or (None,):
            found.setdefault((id(holder or model), id(function.node)), Root(model, function, is_open, holder))
    for call in calls:
        info = function_around(call.model, call.node)
        is_followed = _climb(info, call.model, found, (*below, function), is_open, call.instance_of)
        if not is_followed or len(found) > _MAX_ROOTS:
            return False
    return True


def _is_replaced(function: FunctionInfo) -> bool:
    """Whether a later definition takes the name of a function before anybody can have reached it."""
    # Who registers it may keep it.
    return not function.node.decorators and redefinition(function.model.tree, function.node) is not None


def _completing(function: FunctionInfo) -> tuple[ClassInfo, ...]:
    """The classes of its file that inherit a method which calls others that its own class leaves open."""
    owner, own = function.owner, function.self_name
    if owner is None or own is None or not function.model.tree.by_type.get(cst.ClassDef):
        return ()
    called = _called_on_instance(function, owner)
    missing = {name for name in called if owner.method(name) is None}
    if not missing:
        return ()
    classes = (function.model.class_info(node) for node in function.model.tree.by_type[cst.ClassDef])
    return tuple(
        item
        for item in classes
        if item is not owner
        and owner in item.lineage
        and item.method(function.name) is function
        and any(item.method(name) is not None for name in missing)
    )


def _called_on_instance(function: FunctionInfo, owner: ClassInfo) -> set[str]:
    """The methods of its object that a method calls, itself or by way of others that its class defines."""
    pending, found = [function], set[str]()
    while pending:
        method = pending.pop()
        for call in method.model.tree.calls_in(method.node.body):
            if not isinstance(call.func, cst.Attribute) or call.func.attr.value in found:
                continue
            if getattr(call.func.value, "value", None) == method.self_name:
                found.add(call.func.attr.value)
                other = owner.method(call.func.attr.value)
                pending += [] if other is None or other is function else [other]
    return found


class _Call(msgspec.Struct, frozen=True):
    """A call, and the file in which it stands; of ``self.method()`` in a base class the class of the object."""

    model: "Model"
    node: cst.Call
    instance_of: ClassInfo | None = None


def _calls(function: FunctionInfo, instance_of: ClassInfo | None) -> list[_Call]:
    """The calls in its file that surely reach a function, also through ``step(closure)``."""
    model = function.model
    found = [
        _Call(model, call, instance_of if _is_on_self(model, call) else None)
        for call in model.calls_by_word.get(function.name, ())
        if isinstance(value := model.value(call.func), Function) and value.definition is function
    ]
    found += [_Call(model, call) for call in _given_to(function)]
    is_only_handed_on = not found and function.owner is None
    return [_Call(model, call) for call in _handed_to(function)] if is_only_handed_on else found


def _calls_in_bases(function: FunctionInfo, instance_of: ClassInfo | None) -> list[_Call]:
    """The calls of ``self.method()`` in the base classes of the class that overrides the method."""
    holder = instance_of or function.owner
    if holder is None or function.name.startswith("__") or holder.method(function.name) is not function:
        return []
    return [
        _Call(base.model, call, holder)
        for base in holder.lineage[1:]
        if base is not function.owner
        for call in base.model.calls_by_word.get(function.name, ())
        if _is_on_self(base.model, call) and class_around(base.model, call) is base
    ]


def _calls_by_super(function: FunctionInfo, instance_of: ClassInfo | None) -> list[_Call]:
    """The calls of ``super().method()`` in another file, by which the class of the object, or a base class, hands on
    what it overrides: also of ``__call__``.
    """
    bases = [] if instance_of is None else instance_of.lineage
    overriding = [base for base in bases if base.model is not function.model and function.name in base.methods]
    return [
        _Call(base.model, call, instance_of)
        for base in overriding
        for call in base.model.calls_by_word.get(function.name, ())
        if isinstance(value := base.model.value(call.func), Function)
        and value.definition is function
        and base.model.enclosing_function(call) is base.methods[function.name].node
    ]


def _is_on_self(model: "Model", call: cst.Call) -> bool:
    """Whether a method of the instance is called."""
    method = function_around(model, call)
    own = None if method is None else method.self_name
    return isinstance(call.func, cst.Attribute) and own is not None and getattr(call.func.value, "value", None) == own


def _calls_elsewhere(function: FunctionInfo, instance_of: ClassInfo | None) -> list[_Call]:
    """The calls of a function in the files that import its own, or the class of the object whose method it is.

    Where that class inherits the method, in its own file, too.
    """
    owner = instance_of or function.owner
    model = function.model if instance_of is None else instance_of.model
    if model.project is None or function.name.startswith("__"):
        return []
    found: list[_Call] = []
    word = function.name if owner is None else owner.name
    others = [model] if model is not function.model else []
    for path in model.project.importers(model.path, word)[:_MAX_FILES]:
        # How a test uses it says nothing of how it is meant.
        is_of_tests = may_be_of_tests(path, model.project.root)
        other = None if is_of_tests else model.neighbour(path, calling=function.name)
        others += [] if other is None else [other]
    for other in others:
        for call in other.calls_by_word.get(function.name, ()):
            value = other.value(call.func)
            if isinstance(value, Function) and function.is_same_as(value.definition):
                found += [] if _is_of_sister(value, instance_of) else [_Call(other, call)]
    return found if len(found) <= _MAX_CALLS else []


def _is_of_sister(called: Function, instance_of: ClassInfo | None) -> bool:
    """Whether a method is surely called of another class than that of an object, which inherits it as well."""
    other = called.receiver.definition if isinstance(called.receiver, (Instance, Module)) else None
    if instance_of is None or other is None:
        return False
    mine, theirs = {info.name for info in instance_of.lineage}, {info.name for info in other.lineage}
    return instance_of.name not in theirs and other.name not in mine


def _makings_of_what_steps(function: FunctionInfo) -> list[_Call]:
    """The calls that make an object which updates when it is called: ``Scaler()`` of ``scaler(loss, optimizer)``."""
    model, owner = function.model, function.owner
    if (
        function.name != "__call__"
        or owner is None
        or not any(last_word(call.func) == "step" for call in model.tree.calls_in(function.node.body))
    ):
        return []
    return [
        _Call(home, call)
        for home in _homes_of_makers(owner)
        for call in home.calls_by_word.get(owner.name, ())
        if isinstance(value := home.value(call.func), ClassObject) and value.definition.is_same_as(owner)
    ]


def _homes_of_makers(owner: ClassInfo) -> "Iterator[Model]":
    """The files in which objects of a class may be made: its own, and those that import it."""
    model, project = owner.model, owner.model.project
    yield model
    for path in () if project is None else project.importers(model.path, owner.name)[:_MAX_FILES]:
        is_of_tests = project is not None and may_be_of_tests(path, project.root)
        other = None if is_of_tests else model.neighbour(path, calling=owner.name)
        if other is not None:
            yield other


def _makings_of_what_switches(function: FunctionInfo) -> list[_Call]:
    """The calls that run a constructor, or a ``__call__``, which switches modes and trains nothing: ``Predictor(net)``.

    Of an object that is no module. A training is left to begin where it always did.
    """
    model, owner = function.model, function.owner
    if function.name not in ("__init__", "__call__") or owner is None or owner.framework is not None:
        return []
    if owner.method("__del__") is not None:
        return []  # which may switch back when nobody looks
    words = {last_word(call.func) for call in model.tree.calls_in(function.node.body)}
    if words.isdisjoint(MODES) or not words.isdisjoint(UPDATING):
        return []
    found: list[_Call] = []
    for home in _homes_of_makers(owner):
        is_made = function.name == "__init__"
        calls = home.calls_by_word.get(owner.name, ()) if is_made else home.tree.by_type.get(cst.Call, ())
        for call in calls:
            value = home.value(call.func)
            if isinstance(value, ClassObject if is_made else Instance) and value.definition.is_same_as(owner):
                found.append(_Call(home, call))
    return found if len(found) <= _MAX_CALLS else []


def _given_to(function: FunctionInfo) -> Iterator[cst.Call]:
    """The calls of ``step`` that are given a function to call."""
    for arg in handing_on(function):
        call = function.model.tree.parent(arg) if isinstance(arg.value, cst.Name) else None
        match call:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="step" | "minimize"))):
                yield call


def _handed_to(function: FunctionInfo) -> Iterator[cst.Call]:
    """The calls that hand a function to another one of the project which calls it, also by way of ``partial``.

    Only to one that trains, ``fit(net, loader, evaluate)``: from others nothing is known that it does not know itself.
    """
    model = function.model
    for arg in handing_on(function):
        call = model.tree.parent(arg)
        if not isinstance(call, cst.Call):
            continue
        if _calls_what_it_is_given(model, call, arg):
            yield call
        elif call.args[0] is arg and model.qualified_name(call.func) == "functools.partial":
            yield from _partly_handed_to(model, call)


def _partly_handed_to(model: "Model", made: cst.Call) -> Iterator[cst.Call]:
    """The same, of what ``partial`` makes of one: where a name of it is called, it is that call which makes it."""
    holder = model.tree.parent(made)
    places = [made] if isinstance(holder, cst.Arg) else list(uses_of_bound(model, holder)) if holder else []
    for place in places if isinstance(holder, (cst.Arg, cst.Assign)) else ():
        parent = model.tree.parent(place)
        if isinstance(parent, cst.Call) and parent.func is place:
            yield parent
        call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
        if isinstance(parent, cst.Arg) and isinstance(call, cst.Call) and _calls_what_it_is_given(model, call, parent):
            yield call


def _calls_what_it_is_given(model: "Model", call: cst.Call, arg: cst.Arg) -> bool:
    """Whether a call is one of a function of the project that calls what an argument gives it."""
    value = model.value(call.func)
    if not isinstance(value, Function) or arg.star:
        return False
    info = value.definition
    own = info.parameters if info.self_name is None else info.parameters[1:]
    if arg.keyword is not None:
        name = arg.keyword.value
    else:
        position = call.args.index(arg)
        name = own[position].name.value if position < len(own) else ""
    calls = info.model.tree.calls_in(info.node.body)
    is_called = any(isinstance(item.func, cst.Name) and item.func.value == name for item in calls)
    return is_called and id(info.node) in info.model.runs.worded


def _has_other_callers(function: FunctionInfo, calls: list[_Call]) -> bool:
    """Whether a function's name is used otherwise than in the calls that surely reach it."""
    model = function.model
    sure = {id(call.node) for call in calls}
    for name in model.names_by_word.get(function.name, ()):
        parent = model.tree.parent(name)
        if isinstance(parent, cst.FunctionDef):
            continue  # it is defined there, or another one by its name
        node: cst.CSTNode = name
        if isinstance(parent, cst.Attribute):
            if parent.attr is not name:
                continue
            node, parent = parent, model.tree.parent(parent)
        if isinstance(parent, cst.Call) and parent.func is node:
            if id(parent) not in sure and model.value(parent.func) is None:
                return True
            continue
        if isinstance(parent, cst.Arg) and (parent.keyword is name or id(model.tree.parent(parent)) in sure):
            continue
        value = model.value(node) if isinstance(node, cst.BaseExpression) else None
        if isinstance(value, Function) and value.definition is function:
            return True
    return False


def handing_on(function: FunctionInfo) -> Iterator[cst.Arg]:
    """The arguments by which its file hands a function on."""
    model = function.model
    for name in model.names_by_word.get(function.name, ()):
        node = whole(model, name)
        parent = model.tree.parent(node)
        if not isinstance(parent, cst.Arg) or parent.value is not node:
            continue
        value = model.value(node)
        if isinstance(value, Function) and value.definition is function:
            yield parent
