"""Schedulers of Paddle that are stepped, and that no optimizer was given: the rate that they work out is nobody's.

One of PyTorch is given its optimizer; one of Paddle is given to it: as the ``learning_rate``, or by
``set_lr_scheduler``.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.files.testing import is_in_a_test
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.training.held_schedulers import MAX_STEPS, parameter_given, reads_of_bound
from mllint.semantic.training.schedulers import calls_that_may_make
from mllint.semantic.values import Function, Symbol, is_object
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_MAKERS = 3
"""Through how many functions that only make one a call is followed."""
_STEP = "step"
_KEPT = frozenset({"state_dict", "set_state_dict", "set_dict"})
"""What saves and loads where a schedule stands."""
_READ = frozenset({"get_lr", "last_lr", "last_epoch"})
_SHOWING = re.compile(r"print|log|info|debug|write|scalar|postfix|description|format", re.IGNORECASE)
"""What by its name only shows or notes what it is given."""
_TRAINING = frozenset({"backward", "minimize", "clear_grad", "clear_gradients"})


def schedulers_of_none(model: "Model") -> Iterator[cst.Call]:
    """The calls that make a scheduler which the code around steps, where nothing else gets hold of it."""
    if model.framework != "paddle":
        return
    for call in calls_that_may_make(model):
        if _makes_one(model, call, _MAX_MAKERS) and not is_in_a_test(model, call) and _is_of_none(model, call):
            yield call


def _makes_one(model: "Model", call: cst.Call, steps: int) -> bool:
    """Whether a call makes a scheduler of Paddle, by a function that does nothing else with it, too."""
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        known = lookup.class_(callee.name)
        return known is not None and known.kind == "scheduler" and lookup.framework_of(callee.name) == "paddle"
    if not isinstance(callee, Function) or steps == 0:
        return False
    info = callee.definition
    values = [statement.value for statement in info.scope.returns]
    return (
        bool(values)
        and info.is_transparent
        and info.is_plain
        and all(isinstance(value, cst.Call) and _makes_one(info.model, value, steps - 1) for value in values)
    )


def _is_of_none(model: "Model", call: cst.Call) -> bool:
    statement = model.tree.parent(call)
    if not isinstance(statement, (cst.Assign, cst.AnnAssign)):
        return False
    kept = bound_by(model, statement)
    read = reads_of_bound(model, kept[0]) if len(kept) == 1 and not kept[0].path else None
    if read is None:
        return False
    reads = [place for home, node in read for place in _reads_where_given(home, node, MAX_STEPS)]
    words = {_word_read(home, node) for home, node in reads}
    if _STEP not in words or not words <= {_STEP, *_KEPT, *_READ}:
        return False
    if not all(_is_shown(home, node) for home, node in reads if _word_read(home, node) in _READ):
        return False
    steps = [(home, node) for home, node in reads if _word_read(home, node) == _STEP]
    return any(_trains(home, node) for home, node in (*steps, (model, call)))


def _reads_where_given(
    model: "Model", node: cst.BaseExpression, steps: int
) -> "Iterator[tuple[Model, cst.BaseExpression]]":
    """A place that reads a scheduler; where it is given to a function of the project, those in there instead."""
    arg = model.tree.parent(node)
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) and steps else None
    callee = model.value(call.func) if isinstance(call, cst.Call) else None
    given = None
    if isinstance(callee, Function) and isinstance(call, cst.Call) and isinstance(arg, cst.Arg):
        given = parameter_given(callee, call, arg)
    if given is None:
        yield model, node
        return
    home = given.scope.model
    for use in uses(home, given):
        yield from _reads_where_given(home, use, steps - 1)


def _word_read(model: "Model", node: cst.BaseExpression) -> str:
    """The attribute that a place reads of a scheduler; empty where it does anything else with that."""
    parent = model.tree.parent(node)
    return parent.attr.value if isinstance(parent, cst.Attribute) and parent.value is node else ""


def _trains(model: "Model", node: cst.CSTNode) -> bool:
    """Whether the body around a place computes gradients, or makes an optimizer: nobody just looks at rates there."""
    body = model.tree.nearest(node, cst.FunctionDef, cst.Module) or model.tree.module
    calls = model.tree.calls_in(body)
    return any(last_word(call.func) in _TRAINING or is_object(model.value(call), "optimizer") for call in calls)


def _is_shown(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what is read of a scheduler is only printed or noted, and given to nobody who may set a rate."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.Call) and _SHOWING.search(last_word(ancestor.func) or ""):
            return True
        if isinstance(ancestor, cst.BaseSmallStatement):
            return isinstance(ancestor, cst.Expr) and ancestor.value is model.tree.parent(node)
    return False
