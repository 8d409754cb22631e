"""Networks that no optimizer has, because the one that is called after them was given another network's parameters; and
groups of parameters that are made for an optimizer, and that none is given.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import GIVING_PARAMETERS
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.graph.flags import flagged_module
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Module, is_object
from mllint.syntax.shape import dotted_path, last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words of a name: of ``optimizer_G``, ``optimG``, ``genOptim``, ``opt2``."""
_FREEZING = frozenset({"requires_grad_", "requires_grad", "stop_gradient", "trainable"})
_CLIPS = "clip_grad"


class Forgotten(NamedTuple):
    """A network that an optimizer is called after, and the other optimizer, whose parameters that one was given."""

    network: str
    other: str


def forgotten_network(model: "Model", given: cst.Call) -> Forgotten | None:
    """What an optimizer is missing that is given ``encoder.parameters()``, as the encoder's own one is."""
    owner, scope = (
        dotted_path(given.func.value) if isinstance(given.func, cst.Attribute) else None,
        model.scope_of(given),
    )
    same = [] if owner is None else _taken(model).get((id(scope), owner), [])
    optimizer = _optimizer_given(model, given) if len(same) > 1 else None
    if owner is None or optimizer is None or not isinstance(given.func, cst.Attribute):
        return None
    bound = model.reaching(given.func.value)
    for call in same:
        other = _optimizer_given(model, call)
        is_same = isinstance(call.func, cst.Attribute) and model.reaching(call.func.value) == bound
        if other is None or other == optimizer or not is_same:
            continue
        alike = _called_alike(optimizer, other, owner, scope)
        networks = [name for name in alike if _is_module(model, alike[name])]
        if len(networks) == 1 and _is_left_alone(model, alike[networks[0]], owner):
            return Forgotten(networks[0], other)
    return None


@worked_out_once
def _taken(model: "Model") -> dict[tuple[int, str], list[cst.Call]]:
    """The calls that take parameters, by the scope they are in and what they are taken of."""
    found: dict[tuple[int, str], list[cst.Call]] = {}
    for call in model.calls_by_word.get("parameters", ()):
        path = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
        if path is not None:
            found.setdefault((id(model.scope_of(call)), path), []).append(call)
    return found


def _optimizer_given(model: "Model", given: cst.Call) -> str | None:
    """The name of the optimizer that is made of the parameters of one module, and of nothing else."""
    above = model.tree.parent(given)
    while isinstance(above, (cst.Arg, cst.Element, cst.List, cst.DictElement, cst.Dict, cst.Call)):
        if isinstance(above, cst.List) and len(above.elements) > 1:
            return None
        made = above
        above = model.tree.parent(above)
        if isinstance(made, cst.Call) and is_object(model.value(made), "optimizer"):
            is_one = isinstance(above, cst.Assign) and len(above.targets) == 1
            others = (part for part in subtree(made) if isinstance(part, cst.Call) and part is not given)
            is_all = not any(last_word(part.func) in GIVING_PARAMETERS for part in others)
            return dotted_path(above.targets[0].target) if is_one and is_all and isinstance(above, cst.Assign) else None
    return None


def _called_alike(optimizer: str, other: str, owner: str, scope: Scope) -> dict[str, list[Binding]]:
    """The names that are to one optimizer what the owner's name is to the other one: ``netD`` of ``optimizerD``."""
    holder, _, name = owner.rpartition(".")
    named = _differing(_words(optimizer), _words(other))
    found: dict[str, list[Binding]] = {}
    around: Scope | None = scope
    while around is not None and named is not None:
        for key, bindings in around.bindings.items():
            pair = _differing(_words(key), _words(name)) if key.rpartition(".")[0] == holder else None
            if pair is not None and _stands_for(named[0], *pair) and _stands_for(named[1], *reversed(pair)):
                found.setdefault(key, bindings)
        around = around.parent
    return found


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name.rpartition(".")[2])]


def _differing(words: list[str], others: list[str]) -> tuple[str, str] | None:
    """The only word in which two names differ, in each of them."""
    pairs = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    return pairs[0] if len(words) == len(others) and len(pairs) == 1 else None


def _stands_for(word: str, name: str, other: str) -> bool:
    """Whether a word is short for a name, ``enc`` for ``encoder``, and not for another one."""
    return name.startswith(word) and not other.startswith(word)


def _is_module(model: "Model", bindings: list[Binding]) -> bool:
    """Whether a name is that of a module, by what it is bound to or by what is done with it."""
    if any(isinstance(model.binding_value(binding), Module) for binding in bindings):
        return True
    is_bound = all(binding.kind in (BindingKind.ASSIGN, BindingKind.PARAMETER) for binding in bindings)
    places = (place for binding in bindings for place in uses(model, binding))
    return is_bound and any(flagged_module(model, place) is not None for place in places)


def _is_left_alone(model: "Model", bindings: list[Binding], owner: str) -> bool:
    """Whether a name is that of a module whose parameters nobody takes, neither by itself nor as a part of another."""
    word = bindings[0].key.rpartition(".")[2]
    taking = (call for giving in GIVING_PARAMETERS for call in model.calls_by_word.get(giving, ()))
    if any(word in (dotted_path(call.func) or word).split(".") for call in taking if not _is_clipped(model, call)):
        return False
    is_made = all(_is_made(binding, owner) for binding in bindings)
    places = (place for binding in bindings for place in uses(model, binding))
    return is_made and not any(_may_be_trained_otherwise(model, place, owner) for place in places)


def _is_made(binding: Binding, owner: str) -> bool:
    """Whether something is bound to what a call makes, or what a function is given, and not to a part of a thing."""
    if binding.kind is BindingKind.PARAMETER:
        return True
    made = None if binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED) else binding.value
    return isinstance(made, (cst.Call, cst.Tuple, cst.IfExp, cst.Name)) and dotted_path(made) != owner


def _is_clipped(model: "Model", call: cst.Call) -> bool:
    """Whether parameters are only given to what clips their gradients."""
    around = model.tree.call_given(call)
    return around is not None and (last_word(around.func) or "").startswith(_CLIPS)


def _may_be_trained_otherwise(model: "Model", place: cst.BaseExpression, owner: str) -> bool:
    """Whether a mention of a module freezes it, takes its parameters in some way, or has it held by something else."""
    word, parent = last_word(place), model.tree.parent(place)
    match parent:
        case cst.Attribute(attr=cst.Name(value=taken)):
            return taken in _FREEZING or ("param" in taken and taken not in GIVING_PARAMETERS)
        case cst.Element() | cst.StarredElement() | cst.DictElement():
            # What a function returns, its callers get together with the optimizers.
            return not isinstance(model.tree.parent(model.tree.parent(parent) or parent), cst.Return)
        case cst.Assign():
            return any(last_word(item.target) != word for item in parent.targets)
        case cst.Arg():
            statement = model.tree.nearest(place, cst.Assign)
            targets = [] if statement is None else [dotted_path(item.target) or "" for item in statement.targets]
            call = model.tree.parent(parent)
            is_held = isinstance(call, cst.Call) and isinstance(model.value(call), Module)
            is_of_owner = any(f"{target}.".startswith(f"{owner}.") for target in targets)
            return is_of_owner or (is_held and [target.rpartition(".")[2] for target in targets] != [word])
    return False


_GROWING = frozenset({"append", "extend", "insert", "update"})
_KEY = "params"
_MAX_STEPS = 3
"""Through how many names it is followed whether something is made of parameters."""


def lost_group(model: "Model", statement: cst.Assign) -> str | None:
    """The name to which a statement binds groups of parameters, in a function that makes an optimizer without them."""
    if GIVING_PARAMETERS.isdisjoint(model.calls_by_word) or lookup.last_words("optimizer").isdisjoint(
        model.calls_by_word
    ):
        return None
    name, scope = statement.targets[0].target, model.scope_of(statement)
    if not isinstance(name, cst.Name) or len(statement.targets) > 1 or not scope.is_function:
        return None
    binding = next((item for item in scope.bindings.get(name.value, ()) if item.node is statement), None)
    if binding is None or name.value in scope.outer_names or "locals" in model.calls_by_word:
        return None
    given = list(_values_of_key(statement.value))
    for place in _uses_of_list(model, binding):
        filled = _filled(model, place)
        if filled is None:
            return None
        given += filled
    if not any(_is_of_parameters(model, node, _MAX_STEPS) for node in given) or is_in_a_test(model, statement):
        return None
    return binding.key if _makes_optimizer(model, scope) else None


def _uses_of_list(model: "Model", binding: Binding) -> Iterator[cst.BaseExpression]:
    """Where the object that a binding binds is used; ``+=`` binds a list to its name again, and it is the same list."""
    pending, seen = [binding], set[int]()
    while pending:
        for place in uses(model, pending.pop()):
            grown = model.tree.parent(place)
            if isinstance(grown, cst.AugAssign) and grown.target is place and id(grown) not in seen:
                seen.add(id(grown))
                pending += bound_by(model, grown)
            yield place


def _values_of_key(display: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What stands under the key of the parameters, in a dict or in those of a list."""
    groups = [element.value for element in display.elements] if isinstance(display, cst.List) else [display]
    for group in groups:
        items = group.elements if isinstance(group, cst.Dict) else ()
        yield from (
            item.value for item in items if isinstance(item, cst.DictElement) and string_literal(item.key) == _KEY
        )


def _filled(model: "Model", place: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """What is put into a group, or a list of them, where it is mentioned; ``None`` where it is read."""
    holder, above = place, model.tree.parent(place)
    is_of_parameters = True
    if isinstance(above, cst.Subscript):
        index = subscript_index(above)
        is_of_parameters = string_literal(index) == _KEY
        holder, above = above, model.tree.parent(above)
    value: cst.BaseExpression | None = None
    if isinstance(above, cst.AssignTarget) and holder is not place:
        statement = model.tree.parent(above)
        value = statement.value if isinstance(statement, cst.Assign) else None
    elif isinstance(above, cst.AugAssign) and above.target is holder:
        value = above.value
    elif isinstance(above, cst.Attribute) and above.attr.value in _GROWING:
        call = model.tree.call_of(above)
        if call is not None and call.args and isinstance(model.tree.parent(call), cst.Expr):
            value = call.args[-1].value
    if value is None:
        return None
    return [value] if is_of_parameters else []


def _is_of_parameters(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether something is made of the parameters of a module: all, some, or those that a loop puts into a list."""
    return steps > 0 and any(
        last_word(part.func) in GIVING_PARAMETERS
        if isinstance(part, cst.Call)
        else isinstance(part, cst.Name) and any(_binds_them(model, item, steps) for item in model.reaching(part))
        for part in subtree(node)
    )


def _binds_them(model: "Model", binding: Binding, steps: int) -> bool:
    value = binding.value
    if value is None or binding.kind not in (BindingKind.ASSIGN, BindingKind.LOOP):
        return False
    if _is_of_parameters(model, value, steps - 1):
        return True
    filled = (
        (_filled(model, place) for place in uses(model, binding)) if isinstance(value, (cst.List, cst.Tuple)) else ()
    )
    return any(_is_of_parameters(model, item, steps - 1) for items in filled for item in items or ())


def _makes_optimizer(model: "Model", scope: Scope) -> bool:
    calls = (call for word in lookup.last_words("optimizer") for call in model.calls_by_word.get(word, ()))
    return any(model.scope_of(call) is scope and is_object(model.value(call), "optimizer") for call in calls)
