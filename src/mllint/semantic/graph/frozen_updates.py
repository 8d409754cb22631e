"""Parameters that are frozen in the middle of a training and that their optimizer goes on moving.

An optimizer skips a parameter without gradient. One whose gradient is zero it does not skip: weight decay, momentum and
running averages move it on. Gradients are left at zero by ``zero_grad(set_to_none=False)``, by ``zero_grad()`` before
torch 2.0, by ``parameter.grad.zero_()``, and by Paddle's ``clear_grad()``.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import CLEARING
from mllint.semantic.events.by_hand import holder_of_gradient
from mllint.semantic.expressions.sources import names_in
from mllint.semantic.graph.leaves import whose_parameters
from mllint.semantic.graph.losses import WALKING
from mllint.semantic.names.scopes import BindingKind, only_assigned
from mllint.semantic.names.uses import calls_of_path
from mllint.semantic.values import Function, Module, Object, Tensor, is_object
from mllint.syntax.shape import (
    argument,
    constant,
    constant_given,
    dotted_path,
    fingerprint,
    has_star_arguments,
    last_word,
    part_at,
    subscript_index,
)
from mllint.syntax.walk import children

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Version = tuple[int, int] | None
# Optimizers that move a parameter with a gradient of zero only when they are told to decay it, or have momentum.
_PLAIN = frozenset({"SGD", "RMSprop", "RMSProp", "Adagrad"})
_AVERAGING = frozenset({"Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Momentum"})
_IN_PLACE = "zero_"
# Methods of a network that compute nothing with it.
_HARMLESS = frozenset({"train", "eval", "parameters", "named_parameters", "state_dict", "zero_grad", "clear_gradients"})
_INEXACT = ("add_param_group",)


class StillUpdated(msgspec.Struct, frozen=True):
    """A freeze in the middle of a training: the optimizer, and the calls that leave its gradients at zero."""

    optimizer: Object
    zeroing: tuple[cst.Call, ...]


def still_updated(model: "Model", node: cst.CSTNode, path: str, version: Version) -> StillUpdated | None:
    """The optimizer that goes on moving the parameters of the module at ``path``, frozen by a statement.

    The statement is one that sets their flag, or the call of the module under ``no_grad``. ``version`` is the version
    of torch that the code is for (``None``: the newest).
    """
    if _is_undone(model, path):
        return None
    for place in (node, *_calls_that_freeze(model, node, path)):
        for optimizer in _optimizers(model, path, place):
            zeroing = (*_zeroing(model, optimizer, place), *_zeroing_by_hand(model, path, place))
            if not zeroing or not all(_leaves_zeros(call, optimizer, version) for call in zeroing):
                continue
            sites = [site for step in _calls(model, optimizer, ("step",)) for site in _sites(model, step, place)]
            if _moves_on_zero(optimizer) and _is_between(model, place, sites):
                return StillUpdated(optimizer, zeroing)
    return None


def _calls_that_freeze(model: "Model", node: cst.CSTNode, path: str) -> Iterator[cst.Call]:
    """Where an object calls a method of its own that does nothing on its way but to freeze a part of the object."""
    function = model.enclosing_function(node)
    info = None if function is None else model.function_info(function)
    if info is None or info.owner is None or info.self_name != "self" or not path.startswith("self."):
        return
    for ancestor in model.tree.ancestors(node):
        if ancestor is function:
            break
        if isinstance(ancestor, (cst.If, cst.While, cst.Try)):
            return
    for call in calls_of_path(model, f"self.{info.name}"):
        around = model.enclosing_function(call)
        if around is not None and model.function_info(around).owner is info.owner:
            yield call


def frozen_path(model: "Model", statement: cst.CSTNode) -> str | None:
    """The module whose parameters a statement freezes: ``net.body`` of ``net.body.requires_grad_(False)``.

    Also of ``net.body.weight.requires_grad = False``, and of ``parameter.requires_grad = False`` in a loop over
    ``net.body.parameters()``.
    """
    match statement:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="requires_grad_")) as callee):
            given = statement.args[0].value if len(statement.args) == 1 else None
            if constant(given) is not False:
                return None
            return _looped_module(model, statement, callee.value) or _path(callee.value)
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="requires_grad")) as target)]
        ):
            if constant(statement.value) is not False:
                return None
            value = model.value(target.value)
            if isinstance(value, Tensor) and value.parameter and isinstance(target.value, cst.Attribute):
                return _path(target.value.value)
            return _looped_module(model, statement, target.value)
    return None


def cut_path(model: "Model", call: cst.Call) -> str | None:
    """The module that is called under ``no_grad`` from some round of a loop on, and with a gradient before that.

    ``net.body`` in ``if epoch >= 5: with no_grad(): x = net.body(x)``, ``else: x = net.body(x)``.
    """
    path = dotted_path(call.func)
    if path is None or model.gradients.off(call) is not True:
        return None
    child: cst.CSTNode = call
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, cst.If) and isinstance(ancestor.orelse, cst.Else):
            is_body = child is ancestor.body
            other = ancestor.orelse if is_body else ancestor.body
            if _begins_later(ancestor.test) if is_body else _ends_later(ancestor.test):
                return path if any(_is_trained(model, item, other) for item in calls_of_path(model, path)) else None
        if isinstance(ancestor, (cst.FunctionDef, cst.For, cst.While)):
            return None
        child = ancestor
    return None


def cut_in_later_loop(model: "Model", call: cst.Call) -> str | None:
    """The module that a whole loop calls under ``no_grad`` alone, and that an earlier loop of the block has trained."""
    path, loop = dotted_path(call.func), None
    if path is None or model.gradients.off(call) is not True:
        return None
    for ancestor in model.tree.ancestors(call):
        if isinstance(ancestor, (cst.If, cst.Try, cst.FunctionDef)):
            break
        loop = ancestor if isinstance(ancestor, (cst.For, cst.While)) else loop
    block = None if loop is None else model.tree.parent(loop)
    if loop is None or not isinstance(block, (cst.IndentedBlock, cst.Module)) or _may_train(model, path, loop):
        return None
    if any(isinstance(item, (cst.For, cst.While)) for item in model.tree.ancestors(loop)):
        return None  # the loops take turns
    for earlier in block.body:
        if earlier is loop:
            return None
        if isinstance(earlier, (cst.For, cst.While)) and _trains(model, path, earlier):
            return path
    return None


def _trains(model: "Model", path: str, loop: cst.CSTNode) -> bool:
    """Whether a loop computes gradients of what it calls a module for, or a network that calls it in ``forward``."""
    if not any(model.tree.is_inside(call, loop) for word in WALKING for call in model.calls_by_word.get(word, ())):
        return False
    holder, _, part = path.rpartition(".")
    calls = [call for call in calls_of_path(model, path) if _is_trained(model, call, loop)]
    for call in calls_of_path(model, holder) if holder and not calls else ():
        module = model.value(call.func)
        forward = module.definition.called if isinstance(module, Module) and module.definition is not None else None
        if forward is not None and _is_trained(model, call, loop):
            calls += calls_of_path(forward.model, f"{forward.self_name}.{part}")
    return bool(calls)


def _may_train(model: "Model", path: str, loop: cst.CSTNode) -> bool:
    """Whether a loop may call a module with gradients on, by whatever name: more than its calls under ``no_grad``."""
    root = path.partition(".")[0]
    for name in model.names_by_word.get(root, ()):
        if not model.tree.is_inside(name, loop):
            continue
        named: cst.CSTNode = name
        while isinstance(above := model.tree.parent(named), cst.Attribute) and above.value is named:
            named = above
            if dotted_path(named) == path:
                break
        text = dotted_path(named) or ""
        if text == path:
            call = model.tree.call_of(named)
            if call is None or model.gradients.off(call) is not True:
                return True
        elif f"{path}.".startswith(f"{text}."):
            return True
        elif f"{path}.".startswith(f"{text.rpartition('.')[0]}.") and _is_called_as_method(model, named):
            return True  # of what holds the module: it may call it
    return False


def _is_called_as_method(model: "Model", named: cst.CSTNode) -> bool:
    """Whether something is called that is no module, and computes something, as far as is known."""
    is_module = isinstance(model.value(named), Module)
    return model.tree.call_of(named) is not None and last_word(named) not in _HARMLESS and not is_module


def _is_trained(model: "Model", call: cst.Call, branch: cst.CSTNode) -> bool:
    return model.tree.is_inside(call, branch) and model.gradients.off(call) is False


def _looped_module(model: "Model", statement: cst.CSTNode, parameter: cst.BaseExpression) -> str | None:
    """The module over whose parameters the loop around a statement runs, with the parameter as its variable."""
    loop = model.tree.nearest(statement, cst.For, cst.FunctionDef)
    if not isinstance(loop, cst.For) or dotted_path(parameter) not in {item.value for item in names_in(loop.target)}:
        return None
    return _owner(loop.iter)


def _owner(call: cst.CSTNode) -> str | None:
    """``net`` of ``net.parameters()`` and ``net.named_parameters()``."""
    module = whose_parameters(call)
    return None if module is None else _path(module)


def _path(node: cst.CSTNode) -> str | None:
    """A dotted path, in which items have a part of their own: ``net.[0]`` of ``net[0]``."""
    if isinstance(node, cst.Subscript):
        holder, index = _path(node.value), subscript_index(node)
        return None if holder is None or index is None else f"{holder}.[{fingerprint(index)}]"
    if isinstance(node, cst.Attribute):
        holder = _path(node.value)
        return None if holder is None else f"{holder}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else None


def _is_undone(model: "Model", path: str) -> bool:
    """Whether the file thaws parameters again, takes their gradients away itself, or changes the optimizer's groups."""
    if any(word in model.calls_by_word for word in _INEXACT):
        return True
    for target in model.tree.by_type.get(cst.AssignTarget, ()):
        if isinstance(target.target, cst.Attribute):
            statement = model.tree.parent(target)
            value = constant(statement.value) if isinstance(statement, cst.Assign) else ...
            name = target.target.attr.value
            if (name == "grad" and value is None) or (name == "requires_grad" and value is not False):
                return True
    thawing = [call for call in model.calls_by_word.get("requires_grad_", ()) if not _is_freezing(call)]
    return any(dotted_path(call.func) is None or _overlaps(dotted_path(call.func) or "", path) for call in thawing)


def _is_freezing(call: cst.Call) -> bool:
    return len(call.args) == 1 and constant(call.args[0].value) is False


def _overlaps(method: str, path: str) -> bool:
    """Whether what a method is called on may hold the module, or be a part of it, or of its parameters."""
    owner = method.rpartition(".")[0]
    is_related = f"{owner}.".startswith(f"{path}.") or f"{path}.".startswith(f"{owner}.")
    return is_related or "." not in owner


def _optimizers(model: "Model", path: str, node: cst.CSTNode) -> Iterator[Object]:
    """The optimizers of the file that are given the parameters of a module, or of one that holds it."""
    owner = model.tree.nearest(node, cst.ClassDef)
    for call in model.tree.by_type.get(cst.Call, ()):
        if not any(
            _is_within(path, item) for held in _held(model, call) for item in (held, *_kept_as(model, call, held))
        ):
            continue
        is_near = model.scope_of(call) is model.scope_of(node)
        is_near = is_near or (
            path.startswith("self.") and owner is not None and model.tree.nearest(call, cst.ClassDef) is owner
        )
        value = model.value(call) if is_near else None
        if is_object(value, "optimizer") and not has_star_arguments(call):
            yield value


def _held(model: "Model", call: cst.Call) -> Iterator[str]:
    """The modules whose parameters stand in the arguments of a call, or in what is called by a name there."""
    pending: list[cst.CSTNode] = [
        arg.value
        for position, arg in enumerate(call.args)
        if position < 2 or (arg.keyword is not None and arg.keyword.value in ("params", "parameters"))
    ]
    passed: set[int] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Name):
            node = only_assigned(model, node) or node
        if id(node) in passed:
            continue  # a round of a loop may make it of itself
        passed.add(id(node))
        held = _owner(node)
        if held is not None:
            yield held
        elif type(node) is not cst.Lambda:
            pending += children(node)


def _kept_as(model: "Model", call: cst.Call, held: str) -> Iterator[str]:
    """What the object calls a module that its method is given and keeps: ``self.net`` of ``net``."""
    function = model.enclosing_function(call)
    info = None if function is None or held.startswith("self.") else model.function_info(function)
    if info is None or info.owner is None or info.self_name != "self":
        return
    root, dot, rest = held.partition(".")
    if [binding.kind for binding in info.scope.bindings.get(root, ())] != [BindingKind.PARAMETER]:
        return
    for key, bindings in info.scope.bindings.items():
        value = part_at(bindings[0].value, bindings[0].path)
        if not key.startswith("self.") or not isinstance(value, cst.Name) or value.value != root:
            continue
        if len(list(info.owner.assignments(key.removeprefix("self.")))) == 1:
            yield f"{key}{dot}{rest}"


def _is_within(path: str, held: str) -> bool:
    return f"{path}.".startswith(f"{held}.")


def _calls(model: "Model", optimizer: Object, words: tuple[str, ...]) -> Iterator[cst.Call]:
    """The calls of methods of that very optimizer."""
    for word in words:
        for call in model.calls_by_word.get(word, ()):
            if isinstance(call.func, cst.Attribute):
                value = model.value(call.func.value)
                if isinstance(value, Object) and value.call is not None and value.call is optimizer.call:
                    yield call


def _zeroing(model: "Model", optimizer: Object, node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls that clear the gradients of the optimizer, and those around the statement that may do so."""
    for word in CLEARING:
        own = list(_calls(model, optimizer, (word,)))
        for call in model.calls_by_word.get(word, ()):
            value = model.value(call.func.value) if isinstance(call.func, cst.Attribute) else None
            is_other = isinstance(value, Object) and value.call is not None
            if call in own or (not is_other and any(True for _ in _sites(model, call, node))):
                yield call


def _zeroing_by_hand(model: "Model", path: str, node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls around the statement that clear one gradient after the other: ``parameter.grad.zero_()``."""
    for call in model.calls_by_word.get(_IN_PLACE, ()):
        holder = holder_of_gradient(call)
        owner = None if holder is None else _looped_module(model, call, holder)
        if owner is not None and _is_within(path, owner) and any(True for _ in _sites(model, call, node)):
            yield call


def _leaves_zeros(call: cst.Call, optimizer: Object, version: Version) -> bool:
    if last_word(call.func) == _IN_PLACE:
        return True
    if has_star_arguments(call):
        return False
    if optimizer.framework == "paddle":
        return constant_given(call, 0, "set_to_zero", True) is True
    given = argument(call, 0, "set_to_none")
    if given is None:
        return version is not None and version < (2, 0)
    return constant(given.value) is False


def _moves_on_zero(optimizer: Object) -> bool:
    """Whether the optimizer moves a parameter whose gradient is zero."""
    name, call = optimizer.name.rpartition(".")[2], optimizer.call
    if name in _AVERAGING:
        return True
    if name not in _PLAIN or call is None:
        return False
    return any(
        (given := argument(call, None, word)) is not None
        and isinstance(constant(given.value), (int, float))
        and constant(given.value) != 0
        for word in ("weight_decay", "momentum")
    )


def _sites(model: "Model", call: cst.Call, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Where, in the function of the freezing statement, a call is made: there, or in a function that it calls."""
    here = model.enclosing_function(node)
    function = model.enclosing_function(call)
    if function is here:
        yield call
        return
    if function is None:
        return
    for other in model.calls_by_word.get(function.name.value, ()):
        callee = model.value(other.func)
        is_here = model.enclosing_function(other) is here and isinstance(callee, Function)
        if is_here and isinstance(callee, Function) and callee.definition.node is function:
            yield other


def _is_between(model: "Model", node: cst.CSTNode, sites: list[cst.CSTNode]) -> bool:
    """Whether steps are made before a statement, and again behind it."""
    line = [node, *model.tree.ancestors(node)]
    is_conditional = False
    for child, ancestor in pairwise(line):
        if isinstance(ancestor, cst.If) and child is ancestor.body:
            is_conditional = is_conditional or _begins_later(ancestor.test)
        elif isinstance(ancestor, cst.If):
            is_conditional = is_conditional or _ends_later(ancestor.test)
        is_loop = isinstance(ancestor, (cst.For, cst.While))
        if is_loop and is_conditional and any(model.tree.is_inside(site, ancestor) for site in sites):
            return True
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            return False
        if isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
            position = next(index for index, item in enumerate(ancestor.body) if item is child)
            before, behind = ancestor.body[:position], ancestor.body[position + 1 :]
            if isinstance(child, (cst.For, cst.While)):
                behind = [child, *behind]  # what the rounds of a loop do behind a statement of it
            if all(
                any(model.tree.is_inside(site, item) for item in part for site in sites) for part in (before, behind)
            ):
                return True
    return False


def _begins_later(test: cst.BaseExpression) -> bool:
    """Whether a test holds from some round on, but not in the first: ``epoch == 5``, ``epoch >= options.freeze``."""
    limit = _limit(test, (cst.Equal, cst.GreaterThan, cst.GreaterThanEqual))
    return limit is not None and (limit != 0 or _limit(test, (cst.GreaterThan,)) is not None)


def _ends_later(test: cst.BaseExpression) -> bool:
    """Whether a test holds in the first round, but not from some round on: ``epoch < 5``."""
    limit = _limit(test, (cst.LessThan, cst.LessThanEqual))
    return limit is not None and limit != 0


def _limit(test: cst.BaseExpression, operators: tuple[type[cst.BaseCompOp], ...]) -> object:
    """What a name is compared to by one of these operators: a number, or ``...`` for another name."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or dotted_path(test.left) is None:
        return None
    comparison = test.comparisons[0]
    limit = constant(comparison.comparator)
    is_number = isinstance(limit, (int, float)) or (limit is ... and dotted_path(comparison.comparator) is not None)
    return limit if is_number and isinstance(comparison.operator, operators) else None
