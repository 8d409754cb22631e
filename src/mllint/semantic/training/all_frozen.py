"""Modules of which every parameter is frozen, and whose optimizer steps all the same.

``for p in net.parameters(): p.requires_grad = False``, where all but the head was meant.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import GIVING_PARAMETERS, OF_MODULES
from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.steps import UPDATES, Event, Kind
from mllint.semantic.events.things import Thing
from mllint.semantic.files.testing import is_in_a_test, is_test_code
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.training_modes import covers
from mllint.semantic.values import Module
from mllint.syntax.shape import constant, dotted_path, root_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

FLAGS = {"requires_grad": False, "stop_gradient": True}
"""The flags of a parameter, and how they are set where it is frozen."""


def freezes_each(loop: cst.For) -> bool:
    """Whether a loop over all parameters of something does no more than to freeze each."""
    return _flag_set(loop) is not None and _owner(loop) is not None


def _owner(loop: cst.For) -> cst.BaseExpression | None:
    """``net`` of a loop over ``net.parameters()``."""
    call = loop.iter
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return None
    return call.func.value if call.func.attr.value in GIVING_PARAMETERS else None


def _flag_set(loop: cst.For) -> cst.Assign | None:
    """The one statement in the body of a loop, if it freezes what the loop is at."""
    line = loop.body.body[0] if len(loop.body.body) == 1 else None
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or loop.orelse is not None:
        return None
    target, item = statement.targets[0].target, loop.target
    name = item.elements[-1].value if isinstance(item, cst.Tuple) and len(item.elements) == 2 else item
    if not isinstance(target, cst.Attribute) or target.attr.value not in FLAGS:
        return None
    is_of_loop = isinstance(name, cst.Name) and dotted_path(target.value) == name.value
    return statement if is_of_loop and constant(statement.value) is FLAGS[target.attr.value] else None


def is_trained_all_the_same(model: "Model", loop: cst.For) -> bool:
    """Whether an optimizer steps behind such a loop that has parameters of what is frozen, and no others."""
    owner, flag = _owner(loop), _flag_set(loop)
    if owner is None or flag is None or is_test_code(model) or is_in_a_test(model, loop):
        return False
    if dotted_path(owner) is None or _is_decided_again(model, loop) or _gets_parts(model, owner, loop):
        return False
    return model.runs.always(flag, partial(_steps_in_vain, model))


def _steps_in_vain(model: "Model", occurrence: Occurrence) -> bool:
    run, freeze = occurrence.run, occurrence.event
    module = freeze.thing
    if run.is_cut or module is None or freeze.kind is not Kind.FREEZE:
        return False
    later = run.events[run.events.index(freeze) + 1 :]
    if any(map(_may_thaw, run.events)) or any(_may_change(item, module) for item in later):
        return False
    if any(_makes_parts(item) for item in {event.frame.model for event in later} - {model}):
        return False
    if not any(item.kind is Kind.BACKWARD for item in later):
        return False
    paths: Paths[bool] = Paths(run.steps, False, lambda state, event: state or event is freeze)
    return any(True in paths.before(item) and _has_nothing_else(item, module) for item in later)


def _may_thaw(event: Event) -> bool:
    """Whether parameters ask for gradients again, or may: ``p.requires_grad = name in chosen``."""
    if event.kind is not Kind.FREEZE:
        return event.kind is Kind.THAW
    node = event.node
    if isinstance(node, cst.Assign):
        return constant(node.value) is ...
    return isinstance(node, cst.Call) and any(constant(arg.value) is ... for arg in node.args)


def _may_change(event: Event, module: Thing) -> bool:
    """Whether something that cannot be looked into is given the module: it may get new parts, or be thawed."""
    return event.kind is Kind.UNKNOWN and any(item is not None and item.may_be(module) for item in event.touched)


def _has_nothing_else(event: Event, module: Thing) -> bool:
    """Whether an optimizer steps that was given parameters of a module, and nothing else."""
    if event.kind not in UPDATES:
        return False
    modules = modules_of_optimizer(event.frame, event.thing)
    return bool(modules) and all(
        item is not None and covers(module, item) and item.roots <= module.roots for item in modules
    )


def _is_decided_again(model: "Model", loop: cst.For) -> bool:
    """Whether what decides about the freezing is asked again: there it may be that nothing is trained."""
    tests = list(conditions(model, loop))
    asked = {path for test in tests for path in _paths_in(test)}
    function = model.enclosing_function(loop)
    branches = (branch for branch in model.tree.by_type.get(cst.If, ()) if not model.tree.is_inside(loop, branch))
    others = (branch.test for branch in branches if model.enclosing_function(branch) is function)
    return any(not asked.isdisjoint(_paths_in(test)) for test in others)


def _paths_in(test: cst.CSTNode) -> Iterator[str]:
    """The names and dotted paths in a test, each as a whole."""
    inner: set[int] = set()
    for part in subtree(test):
        if isinstance(part, cst.Attribute):
            inner.update((id(part.value), id(part.attr)))
        path = dotted_path(part) if isinstance(part, (cst.Name, cst.Attribute)) and id(part) not in inner else None
        if path is not None:
            yield path


def _gets_parts(model: "Model", owner: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether a file gives anything new parts, but for what is frozen before that, or calls methods of it that may."""
    path, scope, function = dotted_path(owner), model.scope_of(owner), model.enclosing_function(loop)
    for statement in model.tree.by_type.get(cst.Assign, ()):
        if not _may_make_part(model, statement, path) or _is_apart(model, statement, loop):
            continue
        key = dotted_path(statement.targets[0].target)
        is_of_it = key is not None and key.rpartition(".")[0] == path
        is_here = is_of_it and model.enclosing_function(statement) is function
        before = scope.reaching(key, loop).bindings if is_here and key is not None else ()
        if not any(binding.value is statement.value for binding in before):
            return True
    called = (call.func for calls in model.calls_by_word.values() for call in calls)
    methods = (item for item in called if isinstance(item, cst.Attribute) and dotted_path(item.value) == path)
    return "setattr" in model.calls_by_word or any(
        item.attr.value not in OF_MODULES for item in methods if model.enclosing_function(item) is function
    )


def _makes_parts(model: "Model") -> bool:
    """Whether a file may give new layers or parameters to what is no object of the class around."""
    statements = model.tree.by_type.get(cst.Assign, ())
    return "setattr" in model.calls_by_word or any(_may_make_part(model, item, None) for item in statements)


def _may_make_part(model: "Model", statement: cst.Assign, path: str | None) -> bool:
    """Whether a layer or a parameter is assigned to a part of something else than ``self``.

    What is not known may be one where it is assigned to a part of what has the path, or of what the function is given
    and uses as a module.
    """
    target = statement.targets[0].target
    whole: cst.BaseExpression = target
    while isinstance(whole, cst.Subscript):
        whole = whole.value
    key = dotted_path(whole)
    if not isinstance(target, (cst.Attribute, cst.Subscript)) or key is None:
        return False
    if key.startswith("self.") and key.count(".") == 1 and whole is target:
        return False
    value = model.value(statement.value)
    if isinstance(value, Module) or makes_parameter(model, statement.value):
        return True
    is_flag = isinstance(target, cst.Attribute) and target.attr.value in FLAGS
    if value is not None or is_flag or constant(statement.value) is not ...:
        return False
    return (path is not None and f"{key}.".startswith(f"{path}.")) or _is_used_as_module(model, whole)


def _is_used_as_module(model: "Model", whole: cst.BaseExpression) -> bool:
    """Whether the function around is given what has a part, and calls it, or a method that all modules have."""
    root = root_of(whole)
    if not isinstance(root, cst.Name) or not any(item.kind is BindingKind.PARAMETER for item in model.reaching(root)):
        return False
    function = model.enclosing_function(root)
    names = (item for item in model.names_by_word.get(root.value, ()) if model.enclosing_function(item) is function)
    for name in names:
        above = model.tree.parent(name)
        is_called = isinstance(above, cst.Call) and above.func is name
        if is_called or (isinstance(above, cst.Attribute) and above.value is name and above.attr.value in OF_MODULES):
            return True
    return False


def _is_apart(model: "Model", statement: cst.CSTNode, loop: cst.For) -> bool:
    """Whether a statement stands in another function than a loop, and nothing in the file names that one."""
    own, other = model.enclosing_function(loop), model.enclosing_function(statement)
    if other is None or other is own:
        return False
    return len(model.names_by_word.get(other.name.value, ())) <= 1 and model.tree.parent(other) is not None
