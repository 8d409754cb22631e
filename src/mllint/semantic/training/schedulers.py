"""Learning-rate schedulers, of a library or of the project, that are made, given their optimizer, and never stepped."""

import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.events.makers import ACCELERATORS
from mllint.semantic.events.places import is_nothing
from mllint.semantic.expressions.imports import imported_files
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import bound_by, uses, without_narrowing
from mllint.semantic.training.held_schedulers import (
    MAX_STEPS,
    is_rate_of_idle_optimizer,
    parameter_given,
    reads_of_bound,
)
from mllint.semantic.training.nearby import stand_in_two_arms
from mllint.semantic.training.rates_by_hand import framework_of_own, is_set_by_hand, named_thing
from mllint.semantic.values import ClassObject, Function, Method, Symbol, Text, is_object
from mllint.syntax.shape import argument, called_on, constant, followed, has_star_arguments, targets_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_MAKERS = 3
"""Through how many of them one may be given back."""

# https://huggingface.co/docs/transformers/main_classes/optimizer_schedules: each gives a LambdaLR or its like. The
# first releases had classes: `WarmupLinearSchedule`. `diffusers.optimization` has the functions, too.
# https://huggingface.co/docs/timm/reference/schedulers and `paddlenlp/transformers/optimization.py` have classes.
_OF_LIBRARIES = {
    re.compile(
        r"(?:(?:pytorch_)?transformers|diffusers\.optimization)\.(?:\w+\.)*"
        r"(?:get_\w*(?:schedule|scheduler)\w*|\w+Schedule)"
    ): "torch",
    re.compile(r"timm\.scheduler\.(?:\w+\.)*\w+LRScheduler"): "torch",
    re.compile(r"paddlenlp\.transformers\.(?:\w+\.)*\w+With(?:Warmup|WarmupDecay)"): "paddle",
}
# What is read of a scheduler without stepping it.
_HARMLESS = frozenset({
    "get_lr", "get_last_lr", "last_epoch", "last_lr", "base_lrs", "state_dict", "load_state_dict", "set_state_dict",
    "set_dict", "optimizer", "verbose", "print_lr", "gamma", "milestones", "step_size", "T_max", "eta_min",
})  # fmt: skip
_SHOWING = frozenset({"builtins.print", "builtins.type", "builtins.id", "builtins.repr", "builtins.str"})
_MAKES_STEPS = ("step", "minimize")
_PICKS = "getattr"
_GROWS = "append"
# https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#configure-optimizers
_CONFIGURING = "configure_optimizers"


class NeverStepped(NamedTuple):
    """A scheduler that nobody steps: the call that makes it, and what it is bound to, if it is bound.

    ``is_to_return``: who steps it is given what the function returns.
    """

    call: cst.Call
    key: str | None
    is_to_return: bool = False


def never_stepped(model: "Model") -> Iterator[NeverStepped]:
    """The schedulers of a file that trains which nothing ever steps."""
    is_stepping = any(model.calls_by_word.get(word) for word in _MAKES_STEPS) or _may_step_nearby(model)
    if not (is_stepping or _CONFIGURING in model.function_names) or "locals" in model.calls_by_word:
        return
    for call in calls_that_may_make(model):
        framework = _makes_scheduler(model, call)
        if framework is None or is_in_a_test(model, call) or _is_only_shown(model, call, framework):
            continue
        if _changes_nothing(model, call):
            continue
        found = _judge(model, call, framework)
        optimizer = argument(call, 0, "optimizer") if framework == "torch" else None
        if found is None or (optimizer is not None and _is_rate_changed(model, call, optimizer.value)):
            continue
        if _is_configured(model, call):
            yield found._replace(is_to_return=True)
        elif is_stepping:
            yield found
    yield from _unpacked(model) if is_stepping else ()


def calls_that_may_make(model: "Model") -> Iterator[cst.Call]:
    """The calls that by their names may make a scheduler, and those of functions of the project."""
    imported = model.scope(model.tree.module).bindings
    for word, calls in model.calls_by_word.items():
        if word == _PICKS:  # `getattr(lr_scheduler, name)(optimizer)`
            yield from (made for named in calls if (made := model.tree.call_of(named)) is not None)
        elif _may_make_scheduler(word):
            yield from calls
        elif word in model.function_names or word in imported:
            yield from (call for call in calls if isinstance(model.value(call.func), Function))


def _may_step_nearby(model: "Model") -> bool:
    """Whether a file of the project from which something is imported calls ``step()`` of anything, by its text.

    Or one that imports something: a class of it derives from the one that makes the optimizer, and trains.
    """
    project = model.project
    if project is None or not any(map(_may_make_scheduler, model.calls_by_word)):
        return False
    if any(project.importers(model.path, word) for word in _MAKES_STEPS):
        return True
    for path in imported_files(model, project):
        project.reads.note(str(model.path), ("content", str(path)))
        if any(project.may_call(path, word) for word in _MAKES_STEPS):
            return True
    return False


def _is_configured(model: "Model", call: cst.Call) -> bool:
    """Whether a call stands in a method that gives a trainer its optimizers, which steps what it is given."""
    function = model.enclosing_function(call)
    return (
        function is not None and function.name.value == _CONFIGURING and model.function_info(function).owner is not None
    )


def _unpacked(model: "Model") -> Iterator[NeverStepped]:
    """Those that a function of the project gives beside others: ``optimizer, scheduler = build(network)``."""
    for statement in model.tree.by_type.get(cst.Assign, ()):
        call = statement.value
        target = statement.targets[0].target
        if type(call) is not cst.Call or not isinstance(target, (cst.Tuple, cst.List)):
            continue
        callee = model.value(call.func)
        if not isinstance(callee, Function) or is_in_a_test(model, call):
            continue
        for binding in bound_by(model, statement):
            framework = _gives_scheduler(callee, binding.path, _MAX_MAKERS)
            if framework is None or not _is_left_alone(model, binding, framework):
                continue
            others = [item for item in bound_by(model, statement) if item is not binding and "." not in item.key]
            if others and all(next(uses(model, item), None) is None for item in others):
                continue  # the optimizer is not wanted either: nothing is trained here
            beside = [thing for item in target.elements if (thing := named_thing(model, item.value)) is not None]
            if framework != "torch" or not is_set_by_hand(model, beside):
                yield NeverStepped(call, binding.key)


def _is_rate_changed(model: "Model", call: cst.Call, optimizer: cst.BaseExpression) -> bool:
    """Whether somebody else changes the rate of the optimizer for which a call makes a scheduler: by hand, or by
    another scheduler of it, which is stepped.
    """
    thing = named_thing(model, optimizer)
    if thing is None:
        return False
    if is_set_by_hand(model, {thing}):
        return True
    for other in calls_that_may_make(model):
        given = argument(other, 0, "optimizer") if other is not call else None
        if given is None or named_thing(model, given.value) != thing or _makes_scheduler(model, other) is None:
            continue
        if _is_stepped(model, other) and not stand_in_two_arms(model, call, other):
            return True
    return False


def _is_stepped(model: "Model", call: cst.Call) -> bool:
    """Whether the file steps what a call makes, under the name that it is bound to, or as an attribute of anything."""
    receivers = [receiver for step in model.calls_by_word.get("step", ()) if (receiver := called_on(step)) is not None]
    for target in targets_of(model.tree.parent(call) or call):
        if isinstance(target, cst.Attribute):
            return any(isinstance(item, cst.Attribute) and item.attr.value == target.attr.value for item in receivers)
        thing = named_thing(model, target)
        if thing is not None and any(named_thing(model, item) == thing for item in receivers):
            return True
    return False


def _may_make_scheduler(word: str) -> bool:
    """Whether a call of that name may make one: of a library, by a function called so, or of a class of the project."""
    return word in lookup.last_words("scheduler") or "sched" in word.lower() or word[:1].isupper() or word == _PICKS


def _makes_scheduler(model: "Model", call: cst.Call, steps: int = _MAX_MAKERS) -> str | None:
    """The framework whose scheduler a call makes."""
    callee = model.value(call.func)
    if isinstance(callee, Function):
        return _gives_scheduler(callee, (), steps - 1) if steps > 0 else None
    if isinstance(callee, ClassObject):
        bases = map(lookup.framework_of, callee.definition.library_bases)
        is_derived = callee.definition.kind == "scheduler"
        return next(bases, None) if is_derived else framework_of_own(callee.definition)
    if not isinstance(callee, Symbol):  # one of several: `getattr(lr_scheduler, name)`, `{"step": StepLR}[name]`
        made = model.value(call)
        return made.framework if is_object(made, "scheduler") else None
    known = lookup.class_(callee.name)
    if known is not None and known.kind == "scheduler":
        return lookup.framework_of(callee.name)
    return next((framework for name, framework in _OF_LIBRARIES.items() if name.fullmatch(callee.name)), None)


def _gives_scheduler(callee: Function, path: tuple[int | None, ...], steps: int) -> str | None:
    """The framework of the scheduler that a function of the project makes, and only gives back: it steps it nowhere.

    Of several it gives one, or none, as it is asked; ``path`` is where in what it returns.
    """
    info = callee.definition
    if not info.is_transparent or not info.is_plain:
        return None
    found: set[str | None] = set()
    for statement in info.scope.returns:
        part = None if statement.value is None else _part_of(statement.value, path)
        found |= set() if statement.value is None else {None} if part is None else _gives(info.model, part, steps)
    return found.pop() if len(found) == 1 else None


def _part_of(value: cst.BaseExpression, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
    """What stands at a place in what is returned; of nothing there is nothing at every place."""
    part, rest = followed(value, path)
    return None if rest and constant(part) is not None else part


def _gives(home: "Model", given: cst.BaseExpression, steps: int) -> set[str | None]:
    """The frameworks of the schedulers that a function makes for what it returns; ``None`` among them where that may be
    something else, or be used otherwise. Nothing is no scheduler, nor is an error.
    """
    if isinstance(given, cst.Call):
        return set() if _is_error(home, given) else {_makes_scheduler(home, given, steps)}
    if not isinstance(given, cst.Name) or given.value == "None":
        return set() if isinstance(given, cst.Name) else {None}
    found: set[str | None] = set()
    bindings = without_narrowing(home.reaching(given))
    for binding in bindings:
        if is_nothing(binding):
            continue
        is_bound = binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED) and not binding.path
        made = binding.value if is_bound else None
        framework = _makes_scheduler(home, made, steps) if isinstance(made, cst.Call) else None
        is_kept = framework is not None and all(
            _is_returned(home, node) or _is_harmless(home, node, framework) for node in uses(home, binding)
        )
        found.add(framework if is_kept else None)
    return found if bindings else {None}


def _is_error(home: "Model", call: cst.Call) -> bool:
    """Whether an exception is made, and returned where it should be raised."""
    name = (home.qualified_name(call.func) or "").removeprefix("builtins.")
    error = getattr(builtins, name, None)
    return isinstance(error, type) and issubclass(error, BaseException)


def _is_returned(home: "Model", node: cst.CSTNode) -> bool:
    """Whether a place stands in a return statement, by itself or beside others."""
    parent = home.tree.parent(node)
    while isinstance(parent, (cst.Element, cst.Tuple)):
        parent = home.tree.parent(parent)
    return isinstance(parent, cst.Return)


def _changes_nothing(model: "Model", call: cst.Call) -> bool:
    """Whether a scheduler would leave the rate as it is if it were stepped: ``LambdaLR(optimizer, lambda _: 1.0)``."""
    given = argument(call, 1, "lr_lambda")
    made = None if given is None else given.value
    if isinstance(made, cst.Name):
        made = only_assigned(model, made)
    return isinstance(made, cst.Lambda) and constant(made.body) is not ...


def _is_only_shown(model: "Model", call: cst.Call, framework: str) -> bool:
    """Whether nothing is done with the optimizer of a scheduler but making schedulers for it: a lesson shows them.

    In Paddle none is given its optimizer, and in PyTorch some are given other schedulers.
    """
    given = argument(call, 0, "optimizer") if framework == "torch" else None
    value = None if given is None else model.value(given.value)
    if value is not None and not is_object(value, "optimizer"):
        return False
    bindings = model.reaching(given.value) if given is not None and isinstance(given.value, cst.Name) else ()
    if not bindings or any(binding.kind is not BindingKind.ASSIGN for binding in bindings):
        return False
    return all(_is_shown(model, node) for binding in bindings for node in uses(model, binding))


def _is_shown(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a place that reads an optimizer makes a scheduler for it, or looks at its settings."""
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value == "param_groups"
    maker = None if parent is None else model.tree.parent(parent)
    if not isinstance(maker, cst.Call) or not isinstance(parent, cst.Arg):
        return False
    if _is_prepared(model, maker):
        found = _given_back(model, maker, parent)
        return found is not None and all(_is_shown(model, item) for item in uses(model, found))
    return _makes_scheduler(model, maker) is not None


def _judge(model: "Model", call: cst.Call, framework: str) -> NeverStepped | None:
    parent = model.tree.parent(call)
    if isinstance(parent, cst.Expr):
        return NeverStepped(call, None)
    if isinstance(parent, cst.Arg) and not _list_grown_by(model, parent):
        is_held = framework == "paddle" and is_rate_of_idle_optimizer(model, parent)
        return NeverStepped(call, None) if is_held else None
    bindings = _kept_by(model, call)
    if len(bindings) != 1 or bindings[0].path or not _is_left_alone(model, bindings[0], framework):
        return None
    return NeverStepped(call, bindings[0].key if bindings[0].value is call else None)


def _kept_by(model: "Model", call: cst.Call) -> tuple[Binding, ...]:
    """What binds what a call makes, also in a list of such: ``schedulers = [StepLR(item, 10) for item in several]``."""
    made: cst.CSTNode = call
    parent = model.tree.parent(call)
    if isinstance(parent, cst.Arg):
        return _list_grown_by(model, parent)
    if isinstance(parent, cst.Element):
        made, parent = parent, model.tree.parent(parent)
    if isinstance(parent, cst.List) or (isinstance(parent, cst.ListComp) and parent.elt is made):
        made, parent = parent, model.tree.parent(parent)
    is_bound = isinstance(parent, (cst.Assign, cst.AnnAssign)) and parent.value is made
    return bound_by(model, parent) if is_bound and parent is not None else ()


def _list_grown_by(model: "Model", arg: cst.Arg) -> tuple[Binding, ...]:
    """What binds the list to which something is appended, where that is empty at first."""
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != _GROWS:
        return ()
    bindings = model.reaching(call.func.value) if isinstance(call.func.value, (cst.Name, cst.Attribute)) else ()
    is_empty = len(bindings) == 1 and isinstance(bindings[0].value, cst.List) and not bindings[0].value.elements
    return tuple(bindings) if is_empty else ()


def _is_left_alone(model: "Model", binding: Binding, framework: str) -> bool:
    """Whether nobody who may step it gets at a scheduler by the name that it is bound to."""
    if binding.key.startswith("_"):
        return False  # it is not wanted: `optimizer, _schedule = build(network)`
    reads = reads_of_bound(model, binding)
    if reads is None or not all(_is_harmless(home, node, framework) for home, node in reads):
        return False
    return not _is_replaced(model, binding)


def _is_replaced(model: "Model", binding: Binding) -> bool:
    """Whether another scheduler takes the name of one: that is the one that counts.

    Not one of another branch, to which only the next round of a loop around comes.
    """
    scope = binding.scope
    return any(
        isinstance(other.value, cst.Call)
        and _makes_scheduler(model, other.value) is not None
        and binding in scope.reaching(binding.key, other.node).bindings
        for other in scope.bindings[binding.key]
        if other is not binding and not stand_in_two_arms(model, binding.node, other.node)
    )


def _is_harmless(model: "Model", node: cst.BaseExpression, framework: str, steps: int = MAX_STEPS) -> bool:
    """Whether a place that reads a scheduler surely does not step it, and hands it to nobody who may."""
    parent = model.tree.parent(node)
    match parent:
        case cst.Attribute():
            return parent.value is node and (parent.attr.value in _HARMLESS or parent.attr.value == _GROWS)
        case cst.Subscript():  # one of a list
            return parent.value is node and _is_harmless(model, parent, framework, steps)
        case cst.For() | cst.CompFor() if parent.iter is node:
            return all(_is_harmless(model, item, framework, steps) for item in _each_of(model, parent))
        case cst.Arg():
            call = model.tree.parent(parent)
            if not isinstance(call, cst.Call):
                return False
            if framework == "paddle" and is_rate_of_idle_optimizer(model, parent):
                return True
            if _is_prepared(model, call):
                return steps > 0 and _stays_prepared(model, call, parent, framework, steps - 1)
            callee = model.value(call.func)
            if isinstance(callee, ClassObject):  # of the project: `Trainer(network, optimizer, scheduler)`
                constructor = callee.definition.method("__init__")
                callee = None if constructor is None else Function(constructor, callee.definition.instance(call))
            if isinstance(callee, Function):
                return steps > 0 and _is_left_alone_by(callee, call, parent, framework, steps - 1)
            is_formatted = isinstance(callee, Method) and isinstance(callee.receiver, Text) and callee.name == "format"
            return is_formatted or (isinstance(callee, Symbol) and callee.name in _SHOWING)
        case cst.Assign() if parent.value is node and steps > 0:
            kept = bound_by(model, parent)
            read = (
                reads_of_bound(model, kept[0]) if len(kept) == 1 and "." in kept[0].key and not kept[0].path else None
            )
            return read is not None and all(_is_harmless(home, item, framework, steps - 1) for home, item in read)
        case cst.Comparison() | cst.ComparisonTarget() | cst.FormattedStringExpression() | cst.Expr():
            return True
        case cst.If() | cst.While():
            return parent.test is node
        case cst.IfExp():
            return parent.test is node or _is_harmless(model, parent, framework, steps)
        case cst.UnaryOperation():
            return isinstance(parent.operator, cst.Not)
    return False


def _is_prepared(model: "Model", call: cst.Call) -> bool:
    """Whether Accelerate wraps what a call is given, and gives it back: ``accelerator.prepare(network, schedule)``."""
    holder = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "prepare" else None
    made = None if holder is None else only_assigned(model, holder)
    return isinstance(made, cst.Call) and model.qualified_name(made.func) in ACCELERATORS


def _stays_prepared(model: "Model", call: cst.Call, arg: cst.Arg, framework: str, steps: int) -> bool:
    """Whether nobody steps the wrapped scheduler that ``prepare`` gives back in the place in which it was given."""
    found = _given_back(model, call, arg)
    read = None if found is None else reads_of_bound(model, found)
    return read is not None and all(_is_harmless(home, node, framework, steps) for home, node in read)


def _given_back(model: "Model", call: cst.Call, arg: cst.Arg) -> Binding | None:
    """What binds what ``prepare`` gives back for an argument."""
    statement = model.tree.parent(call)
    if not isinstance(statement, cst.Assign) or has_star_arguments(call):
        return None
    path = (call.args.index(arg),) if len(call.args) > 1 else ()
    bound = [binding for binding in bound_by(model, statement) if binding.path == path]
    return bound[0] if len(bound) == 1 else None


def _each_of(model: "Model", loop: cst.For | cst.CompFor) -> Iterator[cst.BaseExpression]:
    """The places that read what a loop binds to one name; all of the loop where it binds more."""
    if not isinstance(loop.target, cst.Name):
        yield loop.target
    elif isinstance(loop, cst.For):
        yield from (node for binding in bound_by(model, loop) for node in uses(model, binding))
    else:
        name, made = loop.target, model.tree.parent(loop)
        names = (node for node in (() if made is None else subtree(made)) if isinstance(node, cst.Name))
        yield from (node for node in names if node is not name and node.value == name.value)


def is_commented_out(key: str, model: "Model") -> bool:
    """Whether a comment has the step of a scheduler: somebody has done without it on purpose."""
    return re.search(rf"#.*(?<![\w.]){re.escape(key)}\.step\(", model.source.text) is not None


def _is_left_alone_by(callee: Function, call: cst.Call, arg: cst.Arg, framework: str, steps: int) -> bool:
    """Whether a function of the project that is given a scheduler never steps it."""
    home, binding = callee.definition.model, parameter_given(callee, call, arg)
    if binding is None or is_commented_out(binding.key, home):
        return False
    return all(_is_harmless(home, node, framework, steps) for node in uses(home, binding))
