"""Which calls make a thing: what binds it, a function of the project that gives it back, a list or a dict it is in."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.events.elements import EVERY
from mllint.semantic.events.entered import entered
from mllint.semantic.events.places import is_nothing
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.names.uses import uses, without_narrowing
from mllint.semantic.values import ClassObject, Function, Instance, Member, Module, Object, Symbol
from mllint.syntax.shape import dotted_path, fingerprint, last_word, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

ACCELERATORS = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator"})
"""What wraps, moves, saves and clips what it is given; modes, gradients and the order of calls it leaves to the script.

Source: https://github.com/huggingface/accelerate/blob/v1.10.1/src/accelerate/accelerator.py
"""
_STEPS = 12
_COLLECTIONS = (cst.List, cst.Tuple, cst.Dict, cst.ListComp)


def makers_of(root: Binding | ClassInfo, path: tuple[str, ...]) -> tuple[Binding, ...]:
    """The bindings that make a thing: its own, or those of the attribute, of whatever holds it."""
    if isinstance(root, ClassInfo):
        assigned = root.assignments(path[0].removeprefix(".")) if path else ()
        bindings = [item for item in assigned if not is_nothing(item) and not isinstance(item.node, cst.Del)]
        makers = [makers_of(item, path[1:]) for item in bindings]
        return tuple(maker for several in makers for maker in several) if all(makers) else ()
    if not path:
        return (root,)
    value = root.scope.model.binding_value(root)
    definition = value.definition if isinstance(value, (Instance, Module)) else None
    return () if definition is None else makers_of(definition, path)


def names_of_makers(thing: Thing | None) -> list[str]:
    """The qualified names of what may have made a thing, a function or class; empty ones for what is not known."""
    made = [] if thing is None else [item for root in thing.roots for item in makers_of(root, thing.path)]
    return [
        item.scope.model.qualified_name(item.value.func) or ""
        if isinstance(item.value, cst.Call) and not item.path
        else ""
        for item in made
    ]


def is_accelerator(thing: Thing | None) -> bool:
    """Whether a thing surely is accelerate's ``Accelerator``."""
    names = names_of_makers(thing)
    return bool(names) and ACCELERATORS.issuperset(names)


class Made(msgspec.Struct, frozen=True):
    """The constructor call that made a thing, and the run in which it stands."""

    frame: Frame
    call: cst.Call


def made_by(frame: Frame, binding: Binding) -> Made | None:
    """Where the library object was made that a binding binds, also by a function of the project that returns it."""
    model, home = binding.scope.model, run_of(frame, binding.scope)
    passed = home.given(binding) if binding.kind is BindingKind.PARAMETER else None
    if passed is not None and isinstance(passed[1], cst.Call):  # `train(net, Adam(net.parameters()))`
        made = passed[0].value(passed[1])
        return Made(passed[0], passed[1]) if isinstance(made, Object) and made.call is passed[1] else None
    value = model.binding_value(binding)
    call = value.call if isinstance(value, Object) else None
    if call is None:
        return None
    if model.tree.parent(call) is not None and model.scope_of(call) is binding.scope:
        return Made(home, call)
    if isinstance(binding.value, cst.Call):
        called = home.value(binding.value.func)
        if isinstance(called, Function) and called.definition.model.tree.parent(call) is not None:
            inner = entered(home, binding.value, called)
            if called.definition.model.enclosing_function(call) is called.definition.node:
                return Made(inner, call)
    return None


def makings(frame: Frame, binding: Binding) -> list[Made | None]:
    """Every call by which what a binding binds may be made; ``None`` among them for what is not known.

    Functions of the project are looked into that give it back, alone or as a part of a tuple.
    """
    if binding.value is None or binding.kind is not BindingKind.ASSIGN:
        return [None]
    return _makings(run_of(frame, binding.scope), binding.value, binding.path, _STEPS)


def makings_of(frame: Frame, node: cst.BaseExpression) -> list[Made | None]:
    """Every call by which what an expression stands for may be made; ``None`` among them for what is not known."""
    return _makings(frame, node, (), _STEPS)


def _makings(frame: Frame, node: cst.BaseExpression, path: tuple[int | None, ...], steps: int) -> list[Made | None]:
    if steps <= 0:
        return [None]
    match node:
        case cst.Name(value="None"):
            return []
        case cst.Name() if not path:
            bindings = [item for item in without_narrowing(frame.model.reaching(node)) if not is_nothing(item)]
            passed = frame.given(bindings[0]) if len(bindings) == 1 else None
            if passed is not None:
                return _makings(*passed, (), steps - 1)
            is_plain = bindings and all(item.kind is BindingKind.ASSIGN and item.value is not None for item in bindings)
            found = (_makings(frame, item.value, item.path, steps - 1) for item in bindings if item.value is not None)
            return [made for several in found for made in several] if is_plain else [None]
        case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(left=one, operator=cst.Or(), right=other) if (
            not path
        ):
            return [*_makings(frame, one, (), steps - 1), *_makings(frame, other, (), steps - 1)]
        case cst.Tuple() if len(path) == 1 and path[0] is not None and path[0] < len(node.elements):
            return _makings(frame, node.elements[path[0]].value, (), steps - 1)
        case cst.Call():
            called = frame.value(node.func)
            if isinstance(called, (Symbol, ClassObject, Member)):
                return [None if path else Made(frame, node)]
            if not isinstance(called, Function):
                return [None]
            if frame.runs(called.definition) or not called.definition.scope.returns:
                return [None]
            inner = entered(frame, node, called)
            given = (item.value for item in called.definition.scope.returns)
            return [made for value in given if value is not None for made in _makings(inner, value, path, steps - 1)]
    return [None]


def run_of(frame: Frame, scope: Scope) -> Frame:
    """The run of the body with a scope: one that led to ``frame``, or any."""
    found = frame.run_of(scope)
    info = scope.model.function_info(scope.node) if isinstance(scope.node, cst.FunctionDef) else None
    return Frame(scope.model, info) if found is None else found


def makings_of_elements(frame: Frame, thing: Thing | None) -> list[Made | None]:
    """The calls by which each element of a list is made, in its display or where it is appended, or the one that a
    tuple or dict has at a place; ``None`` among them for what is not known. Empty for what is no element.
    """
    if thing is None or not thing.path or not thing.path[-1].startswith("["):
        return []
    found: list[Made | None] = []
    for root in thing.roots:
        for binding in makers_of(root, thing.path[:-1]) or (None,):
            listed = binding.value if binding is not None and binding.kind is BindingKind.ASSIGN else None
            if binding is None or binding.path or not isinstance(listed, _COLLECTIONS):
                return [None]
            home = run_of(frame, binding.scope)
            if isinstance(listed, cst.ListComp):
                found.append(Made(home, listed.elt) if isinstance(listed.elt, cst.Call) else None)
            elif isinstance(listed, cst.Dict):
                found += _makings_under_key(home, binding, listed, thing.path[-1])
            elif thing.path == (EVERY,):
                made = [*(item.value for item in listed.elements), *_added(home.model, binding)]
                found += [Made(home, item) if isinstance(item, cst.Call) else None for item in made]
            else:
                found += _makings_at(home, listed, thing.path[-1]) if isinstance(listed, cst.Tuple) else [None]
    return found


def _makings_at(home: Frame, display: cst.Tuple, step: str) -> list[Made | None]:
    """The calls that make what a tuple has at a place, or at each."""
    places = [f"[{place}]" for place in range(len(display.elements))]
    given = [item.value for place, item in zip(places, display.elements, strict=True) if step in (EVERY, place)]
    return [made for value in given for made in makings_of(home, value)] if given else [None]


def _makings_under_key(home: Frame, binding: Binding, display: cst.Dict, step: str) -> list[Made | None]:
    """The calls that make what a dict has under a key, or under all, that is written there, or in its body below."""
    items = [(item.key, item.value) for item in display.elements if isinstance(item, cst.DictElement)]
    filled = _filled(home.model, binding)
    if len(items) < len(display.elements) or filled is None:
        return [None]
    given = [value for key, value in (*items, *filled) if step in (EVERY, f"[{fingerprint(key)}]")]
    if not given or (step != EVERY and len(given) > 1):
        return [None]
    return [made for value in given for made in makings_of(home, value)]


def _filled(model: "Model", binding: Binding) -> list[tuple[cst.BaseExpression, cst.BaseExpression]] | None:
    """The keys and items that are put into what a name, or an attribute, is bound to, in the body that binds it.

    ``None`` where a key is not written there, or another body puts some in.
    """
    word, found = binding.key.rpartition(".")[2], []
    for statement in model.tree.by_type.get(cst.Assign, ()):
        for target in (item.target for item in statement.targets):
            if not isinstance(target, cst.Subscript) or last_word(target.value) != word:
                continue
            is_here, key = model.scope_of(target) is binding.scope, subscript_index(target)
            if isinstance(target.value, cst.Attribute) != ("." in binding.key) or not (is_here or "." in binding.key):
                continue
            if not is_here or dotted_path(target.value) != binding.key or key is None or string_literal(key) is None:
                return None
            found.append((key, statement.value))
    return found


def _added(model: "Model", binding: Binding) -> Iterator[cst.BaseExpression | None]:
    """What is appended to a list; ``None`` for what may be put into it otherwise."""
    for node in uses(model, binding):
        parent = model.tree.parent(node)
        if isinstance(parent, cst.Attribute):
            call = model.tree.parent(parent)
            is_plain = parent.attr.value == "append" and isinstance(call, cst.Call) and len(call.args) == 1
            yield call.args[0].value if is_plain and isinstance(call, cst.Call) else None
        elif not isinstance(parent, (cst.For, cst.CompFor, cst.Subscript, cst.If)):
            yield None
