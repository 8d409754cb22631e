"""What kind of thing takes part in a training: an optimizer, a scheduler, a gradient scaler, a module.

What the model knows of a thing decides; how it is used or named only where nothing else is known of it.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import STATEFUL
from mllint.semantic.events.makers import makings_of_elements
from mllint.semantic.events.manual import given_by_trainer
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import reads
from mllint.semantic.values import Instance, Loaded, Method, Module, Object, Symbol, Value
from mllint.syntax.comparison import or_default
from mllint.syntax.shape import constant, dotted_path, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_NAMES = {
    "optimizer": re.compile(r"(?:^|_)(?:optim|optimizer|optimiser|opt|optimizers|optims|opts)(?:_|\d|$)"),
    "scheduler": re.compile(r"(?:^|_)(?:scheduler|schedulers|sched|lr_sched)(?:_|\d|$)"),
    "scaler": re.compile(r"(?:^|_)(?:scaler|grad_scaler|gradscaler)(?:_|\d|$)"),
    "module": re.compile(r"(?:^|_)(?:model|models|net|network|module)(?:_|\d|$)"),
}
_SWITCHING = re.compile(r"(?:^|_)(?:train|training|eval|test|mode)(?:_|$)")
_MAX_STEPS = 3


class Called(msgspec.Struct, frozen=True):
    """What kind of thing an expression is: ``optimizer``, ``scheduler``, ``scaler``, ``module`` or ``other``.

    ``is_proven`` is false where only what is done with it, or its name, says so.
    """

    kind: str
    is_proven: bool = True


def kind_of(frame: Frame, node: cst.BaseExpression) -> Called | None:
    """What kind of thing an expression is; ``None`` when nothing says."""
    known = _kind_of_value(frame.value(node))
    if known is not None:
        return Called(known)
    if frame.model.imports_look_alike:
        return None  # a file of two frameworks: neither uses nor names tell of which of them a thing is
    named = _kind_of_named(frame, node) if frame.elements else None
    if named is not None:
        return named
    word, thing = _last_word(node), frame.thing(node)
    if word is None or thing is None:
        return None
    bound = _kind_of_element(frame, thing) if thing.path else _kind_of_bindings(thing.roots, _MAX_STEPS)
    if bound is not None:
        return Called(bound, is_proven=False)
    is_made = all(isinstance(root, Binding) and _is_made_of_parameters(root) for root in thing.roots)
    is_given = is_made or _is_parameter(frame, node) or all(_may_be_given(root, thing) for root in thing.roots)
    is_given = is_given or (not thing.path and all(map(_is_made_out_of_sight, thing.roots)))
    # It came in from outside, or something unknown made it: its uses and its name may say what nothing else does.
    # What is done to a scaler is done to nothing else, wherever it comes from.
    used = "optimizer" if is_made else used_as(frame.model, node)
    if used is not None and (is_given or used == "scaler" or (used == "optimizer" and has_cleared(frame.model, node))):
        return Called(used, is_proven=False)
    if used in (None, "module") and dotted_path(node) in frame.model.runs.used_as_modules:
        return Called("module", is_proven=False)
    kinds = [kind for kind, pattern in _NAMES.items() if pattern.search(word)]
    if len(kinds) != 1 or not (is_given or kinds == ["scaler"]):
        # `mover = self.optimizer`: what it stands for says more.
        stands_for = None if kinds or not isinstance(node, cst.Name) else only_assigned(frame.model, node)
        return kind_of(frame, stands_for) if isinstance(stands_for, (cst.Name, cst.Attribute)) else None
    return Called(kinds[0], is_proven=False)


def _kind_of_named(frame: Frame, node: cst.BaseExpression) -> Called | None:
    """What kind of thing the variable of a loop over a few names is, by that for which it stands in this round."""
    bindings = frame.model.reaching(node) if isinstance(node, cst.Name) else ()
    element = frame.elements.get(bindings[0]) if len(bindings) == 1 else None
    return None if element is None else kind_of(*element)


def is_output(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether a name stands for what a call of a module gave, which is no parameter."""
    bindings = frame.model.reaching(node) if isinstance(node, cst.Name) else ()
    made = [item.value for item in bindings if item.kind is BindingKind.ASSIGN and isinstance(item.value, cst.Call)]
    called = [kind_of(frame, call.func) for call in made if isinstance(call, cst.Call)]
    return 0 < len(called) == len(bindings) and all(item is not None and item.kind == "module" for item in called)


def kind_at_sight(model: "Model", node: cst.BaseExpression) -> str | None:
    """What kind of thing an expression is in every run, to go by its file alone; ``None`` when that does not say.

    What nothing but its name tells apart is of the kind that its name says.
    """
    known = _kind_of_value(model.value(node))
    word = _last_word(node)
    if known is not None or word is None:
        return known
    kinds = [kind for kind, pattern in _NAMES.items() if pattern.search(word)]
    return kinds[0] if len(kinds) == 1 else None


def _kind_of_value(value: Value | None) -> str | None:
    match value:
        case None | Symbol():
            return None
        case Object(kind=kind):
            return kind if kind in STATEFUL else "other"
        case Module():
            return "module"
        case Instance(definition=definition):
            if definition.kind in STATEFUL:
                return definition.kind
            # With a base that is not known it may be anything.
            return None if definition.has_unknown_base or definition.library_bases else "other"
    return "other"


def _kind_of_bindings(bindings: Iterable[Binding | ClassInfo], steps: int) -> str | None:
    """What a name is bound to on all ways; where something unknown makes or gives it on one, the others say it."""
    kinds = {binding: _kind_of_binding(binding, steps) for binding in bindings}
    known = set(kinds.values()) - {None}
    unknown = [binding for binding, kind in kinds.items() if kind is None]
    comes_from_outside = all(_is_made_out_of_sight(item) or _is_default(item) for item in unknown)
    if len(known) != 1 or (unknown and ("other" in known or not comes_from_outside)):
        return None
    return known.pop()


def _kind_of_element(frame: Frame, thing: Thing) -> str | None:
    """What each of those is that a list or dict may have at a place: ``optimizers["critic"]``."""
    made = makings_of_elements(frame, thing)
    kinds = {None if item is None else _kind_of_value(item.frame.value(item.call)) for item in made}
    return kinds.pop() if len(kinds) == 1 else None


def _is_made_out_of_sight(binding: Binding | ClassInfo) -> bool:
    return isinstance(binding, Binding) and binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Call)


def _is_default(binding: Binding | ClassInfo) -> bool:
    """Whether a parameter stands for what is made where nothing is given: ``if optimizer is None: optimizer = ...``."""
    if not isinstance(binding, Binding) or binding.kind is not BindingKind.PARAMETER:
        return False
    return constant(getattr(binding.node, "default", None)) is None


def _kind_of_binding(binding: Binding | ClassInfo, steps: int) -> str | None:
    """What a name is bound to, also by something that is given it and gives it back: ``net, optimizer = initialize(net,
    optimizer)``.
    """
    if isinstance(binding, ClassInfo) or steps == 0:
        return None
    known = _kind_of_value(binding.scope.model.binding_value(binding))
    if known is not None:
        return known
    call, pair = binding.value, None if binding.value is None or binding.path else or_default(binding.value)
    if pair is not None and isinstance(pair.given, cst.Name):
        reaching = binding.scope.reaching(pair.given.value, pair.given).bindings
        is_new = all(_is_made_out_of_sight(item) or _is_default(item) for item in reaching)
        return _kind_of_value(binding.scope.model.value(pair.default)) if is_new else None
    if binding.kind is not BindingKind.ASSIGN or not isinstance(call, cst.Call):
        return None
    asked_for = given_by_trainer(binding)
    if asked_for is not None:
        return asked_for
    if not binding.path:
        return "optimizer" if _is_made_of_parameters(binding) else None
    given = [arg.value for arg in call.args if isinstance(arg.value, cst.Name) and arg.value.value == binding.key]
    before = {_kind_of_bindings(binding.scope.reaching(binding.key, name).bindings, steps - 1) for name in given}
    return before.pop() if len(before) == 1 else None


def _last_word(node: cst.BaseExpression) -> str | None:
    while isinstance(node, cst.Subscript):
        node = node.value
    path = dotted_path(node)
    return None if path is None else path.rpartition(".")[2].lower()


def _is_parameter(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether a name is a parameter of the function that runs, wherever the caller has it from."""
    bindings = frame.model.reaching(node) if isinstance(node, cst.Name) else ()
    return len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER


def _may_be_given(root: Binding | ClassInfo, thing: Thing) -> bool:
    """Whether a thing comes in from outside: with a parameter, or as what an object of the project keeps."""
    if isinstance(root, ClassInfo) or root.kind is BindingKind.PARAMETER:
        return True
    return bool(thing.path) and isinstance(root.scope.model.binding_value(root), Instance)


def _is_made_of_parameters(binding: Binding) -> bool:
    """Whether a thing is what a call made of ``net.parameters()``, or of groups of them: an optimizer."""
    made = binding.value
    return (
        isinstance(made, cst.Call)
        and not binding.path
        and any(_gives_parameters(binding.scope.model, arg.value, _MAX_STEPS) for arg in made.args)
    )


def _gives_parameters(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether an expression is ``net.parameters()``, some of them, or a list of groups ``{"params": ...}``."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="parameters"))):
            return True
        case cst.Call(func=cst.Name(value="filter"), args=[_, cst.Arg(value=given)]):
            return _gives_parameters(model, given, steps)
        case cst.List(elements=[*elements]):
            return bool(elements) and all(_is_group(element.value) for element in elements)
        case cst.Name() if steps > 0:
            value = only_assigned(model, node)
            is_given = value is not None and not isinstance(value, cst.Call)
            return is_given and value is not None and _gives_parameters(model, value, steps - 1)
    return False


def _is_group(node: cst.BaseExpression) -> bool:
    """Whether an expression is a dict with parameters: nothing but an optimizer is made of several of these."""
    return isinstance(node, cst.Dict) and any(
        isinstance(item, cst.DictElement) and string_literal(item.key) == "params" for item in node.elements
    )


def may_name_thing(name: str) -> bool:
    """Whether a name is one that an optimizer, a scheduler, a scaler or a module would have."""
    return any(pattern.search(name.lower()) for pattern in _NAMES.values())


def may_have_mode(value: Value | None) -> bool:
    """Whether ``train()`` and ``eval()`` of a thing may switch the mode of a module."""
    return value is None or isinstance(value, (Loaded, Module, Method))  # a method: an attribute that a subclass sets


def is_word_of_mode(word: str) -> bool:
    """Whether a name speaks of a mode: ``in_eval_mode``."""
    return bool(_SWITCHING.search(word))


def is_named_switch(call: cst.Call) -> bool:
    """Whether a method is called without arguments that switches the mode of its object, to go by its name."""
    return not call.args and isinstance(call.func, cst.Attribute) and bool(_SWITCHING.search(call.func.attr.value))


def may_switch(frame: Frame, call: cst.Call) -> bool:
    """Whether a module of a class that is not known is asked to change its mode: ``net.adapters_train()``."""
    if not is_named_switch(call):
        return False
    receiver = frame.value(call.func.value)  # type: ignore[attr-defined]
    return isinstance(receiver, Module) and receiver.definition is None


def may_name_module(name: str) -> bool:
    """Whether a name is one that a module would have."""
    return _NAMES["module"].search(name.lower()) is not None


_CLEARS = frozenset({"zero_grad", "clear_grad", "clear_gradients"})
_OF_OPTIMIZERS = frozenset({"param_groups", "add_param_group", "set_lr", "minimize"})
_OF_SCALERS = frozenset({"scale", "unscale_", "get_scale"})
_OF_SCHEDULERS = frozenset({"get_last_lr", "get_lr", "last_epoch"})
_OF_MODULES = frozenset({
    "parameters", "named_parameters", "modules", "named_modules", "eval", "sublayers", "set_state_dict", "no_sync",
})  # fmt: skip
_OF_ENGINES = frozenset({"backward", "forward", "prepare"})
"""What has these beside ``step`` does more than an optimizer."""
_STEPS_TOO = re.compile(r"prof|sched|env|timer|progress|pbar|counter|logger|tracker|meter|warm|ema", re.IGNORECASE)
"""Names of other things that step."""


def used_as(model: "Model", node: cst.BaseExpression) -> str | None:
    """``optimizer``, ``scheduler``, ``scaler`` or ``module``; ``None`` when its uses do not say.

    An optimizer is what has its gradients cleared and steps; or the only thing that steps in a body in which gradients
    are computed: for something must use them.
    """
    key = dotted_path(node)
    if key is None:
        return None
    words = _words(model, key, node)
    if "step" in words and not words & _OF_ENGINES:
        if words & _OF_SCALERS:
            return "scaler"
        # A rate is what optimizers of Paddle give, too.
        says_rate = _OF_SCHEDULERS - {"get_lr"} if model.framework == "paddle" else _OF_SCHEDULERS
        if words & says_rate and not words & _CLEARS:
            return "scheduler"
        if words & (_CLEARS | _OF_OPTIMIZERS) or _is_only_one_to_step(model, key, node):
            return "optimizer"
    if words & _OF_MODULES and "step" not in words:
        return "module"
    return None


def has_cleared(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the body around a node clears the gradients of what it stands for."""
    key = dotted_path(node)
    return key is not None and bool(_words(model, key, node) & _CLEARS)


def _words(model: "Model", key: str, node: cst.BaseExpression) -> set[str]:
    """The attributes that the body around a node reads of a name or path, or of each in a list that has it."""
    return _words_by_function(model, key).get(id(model.enclosing_function(node)), set())


@worked_out_once
def _words_by_function(model: "Model", key: str) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for place in reads(model, key):
        parent = model.tree.parent(place)
        words = {parent.attr.value} if isinstance(parent, cst.Attribute) and parent.value is place else set()
        words |= _words_of_each(model, parent) if isinstance(parent, cst.Element) else set()
        if words:
            found.setdefault(id(model.enclosing_function(place)), set()).update(words)
    return found


def _words_of_each(model: "Model", element: cst.Element) -> set[str]:
    """The attributes that a loop reads of what a list has: ``for each in (one, other): each.zero_grad()``."""
    display = model.tree.parent(element)
    loop = None if display is None else model.tree.parent(display)
    if not isinstance(loop, cst.For) or loop.iter is not display or not isinstance(loop.target, cst.Name):
        return set()
    name = loop.target.value
    inside = (item for item in subtree(loop.body) if isinstance(item, cst.Attribute))
    return {item.attr.value for item in inside if isinstance(item.value, cst.Name) and item.value.value == name}


def _is_only_one_to_step(model: "Model", key: str, node: cst.BaseExpression) -> bool:
    """Whether a body computes gradients, and nothing else in it steps."""
    body = model.enclosing_function(node)
    stepping = {
        dotted_path(call.func.value)
        for call in model.calls_by_word.get("step", ())
        if isinstance(call.func, cst.Attribute) and model.enclosing_function(call) is body
    }
    given = any(
        call.args and isinstance(call.func, cst.Attribute) and dotted_path(call.func.value) == key
        for call in model.calls_by_word.get("step", ())
    )
    computes = any(model.enclosing_function(call) is body for call in model.calls_by_word.get("backward", ()))
    return computes and not given and stepping == {key} and _STEPS_TOO.search(key) is None
