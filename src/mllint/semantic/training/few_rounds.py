"""Evaluations that record a graph often enough to matter: not those of three sentences that are written out."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import is_passed_around, passed_anywhere
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.training import evaluation
from mllint.semantic.training.data_loops import may_evaluate
from mllint.semantic.training.data_rounds import AnyLoop
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import has_few_rounds

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FEW = 20
"""Of fewer graphs than this, each gone with its round, nobody wants to hear."""
_MAX_STEPS = 2
"""Through how many functions it is followed what a loop runs over."""


def evaluates_more(model: "Model", loop: AnyLoop) -> bool:
    """Whether a loop evaluates with a graph that nobody wants, more often than a few times."""
    if not evaluation.evaluates_with_graph(model, loop) or evaluation.is_let_be(model, loop):
        return False
    if isinstance(loop, cst.For) and has_few_rounds(loop, _FEW):
        return False
    return isinstance(loop, cst.While) or not runs_over_few(model, loop.iter)


def is_in_another(model: "Model", loop: AnyLoop) -> bool:
    """Whether a loop around in the same function does so, too: what mends that mends both."""
    for around in model.tree.ancestors(loop):
        if isinstance(around, cst.FunctionDef):
            return False
        if isinstance(around, cst.For) and may_evaluate(model, around) and evaluates_more(model, around):
            return True
    return False


def runs_over_few(model: "Model", iterable: cst.BaseExpression, steps: int = _MAX_STEPS) -> bool:
    """Whether a loop runs over a short list that stands there, is bound to a name, or is given by all callers."""
    data = run_over(iterable)
    if isinstance(data, (cst.List, cst.Tuple)):
        is_whole = not any(isinstance(item, cst.StarredElement) for item in data.elements)
        return is_whole and 0 < len(data.elements) < _FEW  # an empty one is there to be filled
    if not isinstance(data, cst.Name):
        return False
    bindings = list(model.reaching(data))
    if not bindings:
        home = model.scope_of(data).home_of(data.value)
        bindings = [] if home is None else home.bindings.get(data.value, [])
    return bool(bindings) and all(_is_few(model, binding, steps) for binding in bindings)


def is_of_few_rounds(model: "Model", call: cst.Call) -> bool:
    """Whether the innermost loop around a call in its function runs over a short list."""
    for around in model.tree.ancestors(call):
        if isinstance(around, cst.For):
            return runs_over_few(model, around.iter)
        if isinstance(around, (cst.FunctionDef, cst.While)):
            break
    return False


def _is_few(model: "Model", binding: Binding, steps: int) -> bool:
    value = assigned(binding)
    if value is not None:
        return runs_over_few(model, value, 0) and next(changes_of_bound(model, binding), None) is None
    if binding.kind is not BindingKind.PARAMETER or not isinstance(binding.node, cst.Param) or not steps:
        return False
    function = model.enclosing_function(binding.node)
    info = None if function is None else model.function_info(function)
    if info is None or is_passed_around(model, info):
        return False
    given = list(passed_anywhere(info, binding.node))
    return bool(given) and all(runs_over_few(home, value, steps - 1) for home, value in given)
