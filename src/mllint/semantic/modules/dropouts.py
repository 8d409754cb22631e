"""Calls of dropout functions that drop values in evaluation too."""

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge.dropouts import Dropout
from mllint.semantic.modules.known_rates import is_switched_off, surely_drops
from mllint.semantic.modules.modes import is_same_in_all_modes, mentions_mode, runs_in_one_mode
from mllint.semantic.names.conditions import conditions
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import argument, constant, dotted_path, has_star_arguments
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo


# What a class is called whose dropout is on by design: the pre-net of Tacotron 2, Monte Carlo dropout.
_ON_BY_DESIGN = ("prenet", "mcdrop", "montecarlo", "bayes", "alwayson", "stochastic", "augment")


# What puts a module to evaluation mode, itself or by a trainer that does.
_EVALUATING = re.compile(
    rb"\.eval\(\s*\)|\.train\(\s*(?:mode\s*=\s*)?False|\bvalidation_step\b|\bTrainer\(|\.evaluate\(|paddle\.Model\("
)


class AlwaysOn(NamedTuple):
    """A call that drops values in every mode, in a method of a module.

    ``receiver`` is what the method calls its instance, ``probability`` the argument where one is given.
    """

    receiver: str
    probability: cst.BaseExpression | None
    function: Dropout


def always_on(model: "Model", call: cst.Call, function: Dropout) -> AlwaysOn | None:
    """What a call of a dropout function does wrong; ``None`` when it may be right."""
    if has_star_arguments(call) or argument(call, function.training, "training") is not None:
        return None
    method = _method_around(model, call)
    if method is None or method.owner is None or method.self_name is None or _is_by_design(method):
        return None
    given = argument(call, function.probability, function.name)
    probability = None if given is None else given.value
    if probability is None and function.default == 0:
        return None
    # The probability is asked first: most say there that they drop in training alone.
    others = sorted(call.args[1:], key=lambda arg: arg is not given)
    if any(mentions_mode(model, arg.value) for arg in others):
        return None
    if probability is not None and not is_same_in_all_modes(model, probability):
        return None
    if (
        _is_asked_for(model, call)
        or runs_in_one_mode(model, call)
        or (probability is not None and _is_zero_here(model, call, probability))
        or (probability is not None and not surely_drops(model, probability))
        or is_switched_off(model, call)
        or not _is_evaluated(model)
    ):
        return None
    return AlwaysOn(method.self_name, probability, function)


def _is_evaluated(model: "Model") -> bool:
    """Whether the project puts anything to evaluation mode.

    Elsewhere nobody asks for less than what a training does: of what is made to be compiled, or to be an adversary.
    """
    if _EVALUATING.search(model.source.text.encode()):
        return True
    return model.project is not None and model.project.is_written_anywhere(model.path, _EVALUATING)


def _method_around(model: "Model", node: cst.CSTNode) -> "FunctionInfo | None":
    """The method of a module in which a place stands, also in a function inside it."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.FunctionDef):
            info = model.function_info(ancestor)
            if info.owner is not None:
                is_of_instance = not info.is_static and "builtins.classmethod" not in info.decorators
                return info if is_of_instance and info.owner.framework is not None else None
        elif isinstance(ancestor, cst.ClassDef):
            return None
    return None


def _is_asked_for(model: "Model", call: cst.Call) -> bool:
    """Whether a flag that comes in as an argument, or as a part of one, says whether to drop: the caller decides."""
    for flag in (flag for test in conditions(model, call) for flag in _flags(test)):
        for binding in model.reaching(flag):
            given = (
                model.reaching(binding.value) if binding.path and isinstance(binding.value, cst.Name) else (binding,)
            )
            if any(item.kind is BindingKind.PARAMETER for item in given):
                return True
    return False


def _flags(test: cst.BaseExpression) -> list[cst.Name]:
    """The names in ``flag``, ``not flag`` and ``flag and other``."""
    match test:
        case cst.Name():
            return [test]
        case cst.UnaryOperation():
            return _flags(test.expression)
        case cst.BooleanOperation():
            return _flags(test.left) + _flags(test.right)
    return []


def _is_by_design(method: "FunctionInfo") -> bool:
    assert method.owner is not None
    name = f"{method.owner.name}.{method.name}".lower().replace("_", "")
    return any(mark in name for mark in _ON_BY_DESIGN)


def _is_zero_here(model: "Model", call: cst.Call, probability: cst.BaseExpression) -> bool:
    """Whether a condition around the call lets it run only while the probability is zero."""
    path = dotted_path(probability)
    child: cst.CSTNode = call
    for ancestor in model.tree.ancestors(call):
        if path is not None and isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
            if _compares_to_zero(model, ancestor.test, path, 2):
                return True
        elif isinstance(ancestor, cst.FunctionDef):
            return False
        child = ancestor
    return False


def _compares_to_zero(model: "Model", test: cst.BaseExpression, path: str, steps: int) -> bool:
    for part in subtree(test):
        if isinstance(part, cst.Comparison) and dotted_path(part.left) == path:
            target = part.comparisons[0]
            if isinstance(target.operator, cst.Equal) and constant(target.comparator) == 0:
                return True
        elif isinstance(part, cst.UnaryOperation) and isinstance(part.operator, cst.Not):
            if dotted_path(part.expression) == path:
                return True
        elif isinstance(part, cst.Attribute) and steps > 0:
            owner = owner_of_attribute(model, part)
            for binding in () if owner is None else owner.assignments(part.attr.value):
                last = path.rpartition(".")[2]
                value = binding.value
                if value is not None and any(_compares_to_zero(model, value, p, steps - 1) for p in (path, last)):
                    return True
    return False
