"""The order of a training as it is written in one body: answers that need no run to be unfolded, for the usual case.

Most trainings are right, and written in one place. What can be seen there is seen before anything is followed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import CLEARING, UPDATING
from mllint.semantic.events.kinds import kind_at_sight
from mllint.semantic.expressions.hints import is_called_loss
from mllint.semantic.flow import is_about_data
from mllint.semantic.modules.mode_layers import depends_on_mode
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.uses import mentions, whole
from mllint.semantic.training.data_loops import is_within_step, may_be_event_of_module, may_be_model
from mllint.semantic.values import Module
from mllint.syntax.shape import all_given, dotted_path, fingerprint, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMPUTING = ("backward", "minimize")
_PASSED_THROUGH = (cst.IndentedBlock, cst.SimpleStatementLine, cst.Expr, cst.With)
_BODIES = (cst.IndentedBlock, cst.Module)
_LOOPS = (cst.For, cst.While)
_ROUNDS = (*_LOOPS, cst.FunctionDef)
_OF_THEIR_OWN = (cst.FunctionDef, cst.Lambda, cst.ClassDef)


def clears_beside(model: "Model", step: cst.Call) -> bool:
    """Whether the gradients of the optimizer of a step are cleared in the same round of the same body."""
    written = {fingerprint(part) for part in all_given(step)}  # `scaler.step(optimizer)`
    home = model.tree.nearest(step, *_ROUNDS)
    return any(
        isinstance(call.func, cst.Attribute)
        and fingerprint(call.func.value) in written
        and (home is model.tree.nearest(call, *_ROUNDS) or model.tree.is_below(call, home))
        and not stand_in_two_arms(model, step, call)
        and not _is_counted(model, call, step)
        for word in CLEARING
        for call in _calls_beside(model, step, word)
    )


def _is_counted(model: "Model", call: cst.Call, step: cst.Call) -> bool:
    """Whether a call stands under a test of the number of a round, and the step does not: ``if i % 10 == 0``.

    Or under any test with an ``else``: the other rounds may come to the step all the same.
    """
    return any(
        isinstance(item, cst.If)
        and not model.tree.is_below(step, item)
        and (
            isinstance(item.orelse, cst.Else)
            or any(isinstance(getattr(part, "operator", None), cst.Modulo) for part in subtree(item.test))
        )
        for item in model.tree.ancestors(call)
    )


def _calls_beside(model: "Model", node: cst.CSTNode, word: str) -> Iterator[cst.Call]:
    """The calls of what has this name in the function around a node: of a large file a small part."""
    for name in model.names_within(word, model.scope_of(node)):
        call = model.tree.call_of(whole(model, name))
        if call is not None:
            yield call


def steps_in_same_block(model: "Model", backward: cst.Call) -> bool:
    """Whether something steps in the very block in which gradients are computed, as it is in most trainings."""
    line = model.tree.nearest(backward, cst.SimpleStatementLine)
    block = None if line is None else model.tree.parent(line)
    calls = (call for word in ("step", "minimize") for call in _calls_beside(model, backward, word))
    lines = (model.tree.nearest(call, cst.SimpleStatementLine) for call in calls)
    return any(item is not None and model.tree.parent(item) is block for item in lines)


def stand_in_two_arms(model: "Model", one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether two nodes stand in two arms of one ``if``: no round that takes the one need come by the other."""
    ways = [(node, *model.tree.ancestors(node)) for node in (one, other)]
    places = {id(item): position for position, item in enumerate(ways[1])}
    for position, item in enumerate(ways[0]):
        if id(item) in places:
            return isinstance(item, cst.If) and ways[0][position - 1] is not ways[1][places[id(item)] - 1]
    return False


def word_before(model: "Model", call: cst.CSTNode) -> str | None:
    """What is called last before a call in the same block: ``backward``, ``step`` or ``minimize``; ``None``: none."""
    return _nearest(model, call, ahead=False)


def word_behind(model: "Model", call: cst.CSTNode) -> str | None:
    """What is called first behind a call in the same block: ``backward``, ``step`` or ``minimize``; ``None``: none."""
    return _nearest(model, call, ahead=True)


def _nearest(model: "Model", call: cst.CSTNode, *, ahead: bool) -> str | None:
    line = model.tree.nearest(call, cst.SimpleStatementLine)
    block = None if line is None else model.tree.parent(line)
    if line is None or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    lines = {id(item): position for position, item in enumerate(block.body)}
    home, found = lines[id(line)], []
    for word in UPDATING:
        for other in _calls_beside(model, call, word):
            position = next((lines[id(item)] for item in model.tree.ancestors(other) if id(item) in lines), None)
            if position is not None and (position > home if ahead else position < home):
                found.append((abs(position - home), word))
    return min(found)[1] if found else None


def follows_optimizer(model: "Model", schedule: cst.Call) -> bool:
    """Whether something steps an optimizer before a call in the loop around it, and nothing in the body does behind."""
    before, behind = _around_in_round(model, schedule)
    if before is None:
        return False
    stepping = [
        call
        for word in _and_who_calls(model, "step", "minimize")
        for call in _calls_beside(model, schedule, word)
        if call is not schedule and not (word == "step" and steps_no_optimizer(model, call))
    ]
    holders = [{id(item) for item in model.tree.ancestors(call)} for call in stepping]
    return any(item & before for item in holders) and not any(item & behind for item in holders)


def _around_in_round(model: "Model", node: cst.CSTNode) -> tuple[set[int] | None, set[int]]:
    """The statements before and behind a node in one round of the innermost loop around it; no loop, none before."""
    before, behind = set[int](), set[int]()
    child = node
    for parent in model.tree.ancestors(node):
        if isinstance(parent, _BODIES):
            place = next(position for position, item in enumerate(parent.body) if item is child)
            before |= {id(item) for item in parent.body[:place]}
            behind |= {id(item) for item in parent.body[place + 1 :]}
        elif isinstance(parent, _LOOPS):
            return before, behind
        elif isinstance(parent, _OF_THEIR_OWN):
            break
        child = parent
    return None, behind


def steps_no_optimizer(model: "Model", step: cst.Call) -> bool:
    """Whether what steps is surely another thing, such as a scheduler."""
    if step.args or not isinstance(step.func, cst.Attribute):
        return False
    return kind_at_sight(model, step.func.value) not in (None, "optimizer", "scaler")


def steps_in_every_round(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an optimizer steps right in the body of the loop around a node, whatever happens in a round."""
    loop = next(model.tree.loops_around(node), None)
    if loop is None or any(type(item) is cst.Continue for item in subtree(loop.body)):
        return False
    return any(
        isinstance(call.func, cst.Attribute)
        and kind_at_sight(model, call.func.value) == "optimizer"
        and _is_reached_from(model, call, loop)
        for call in _calls_beside(model, node, "step")
    )


def is_switched_back(model: "Model", switch: cst.Call) -> bool:
    """Whether all training of a file puts what a call switches to training mode itself, to go by how it is written.

    The call stands in a function of its own and in no loop, such as one that evaluates, which no function that trains
    calls.
    """
    home = model.enclosing_function(switch)
    word = last_word(switch.func.value) if isinstance(switch.func, cst.Attribute) else None
    computing = _computing(model)
    if home is None or not computing or word is None or model.tree.nearest(switch, *_ROUNDS) is not home:
        return False
    if home.name.value.startswith("__"):
        return False  # a constructor, say: who calls it calls it by another name
    leading = _and_who_calls(model, *_and_who_calls(model, home.name.value))
    if any(function is None or function is home or function.name.value in leading for function in computing.values()):
        return False
    return computing.keys() <= _switching(model, word)


@worked_out_once
def _computing(model: "Model") -> dict[int, cst.FunctionDef | None]:
    """The functions of a file that compute gradients, by their ``id``; ``None`` for the file's own statements."""
    calls = (call for word in _COMPUTING for call in model.calls_by_word.get(word, ()))
    functions = (model.enclosing_function(call) for call in calls)
    return {id(function): function for function in functions}


@worked_out_once
def _switching(model: "Model", word: str) -> frozenset[int]:
    """The functions of a file, by their ``id``, that call ``train()`` of what has a name."""
    return frozenset(
        id(model.enclosing_function(call))
        for call in model.calls_by_word.get("train", ())
        if isinstance(call.func, cst.Attribute) and last_word(call.func.value) == word and not call.args
    )


def trains_in_every_round(model: "Model", loop: cst.For | cst.While | cst.CompFor) -> bool:
    """Whether gradients are computed right in the body of a loop, in no branch, loop or function of its own."""
    return not isinstance(loop, cst.CompFor) and any(
        isinstance(call.func, cst.Attribute) and _is_reached_from(model, call, loop)
        for word in _COMPUTING
        for call in _calls_beside(model, loop, word)
    )


def _is_reached_from(model: "Model", node: cst.CSTNode, loop: cst.For | cst.While) -> bool:
    """Whether every round of a loop comes by a node in it, to go by what stands around the node."""
    child = node
    for parent in model.tree.ancestors(node):
        if parent is loop:
            return child is loop.body
        if not isinstance(parent, _PASSED_THROUGH):
            return False
        child = parent
    return False


def trains_around(model: "Model", node: cst.CSTNode) -> bool:
    """Whether the body around a node computes gradients, or calls a function of the file that does: no run infers."""
    home, computing = model.enclosing_function(node), _computing(model)
    return id(home) in computing or any(
        model.enclosing_function(call) is home and _is_own(call.func)
        for function in computing.values()
        if function is not None
        for call in _calls_beside(model, node, function.name.value)
    )


def _is_own(callee: cst.BaseExpression) -> bool:
    """Whether a callee is spelled as a function of the file, or as a method of the same object."""
    return isinstance(callee, cst.Name) or (isinstance(callee, cst.Attribute) and dotted_path(callee.value) == "self")


def calls_what_was_switched(model: "Model", node: cst.For) -> bool:
    """Whether all that a loop may evaluate was surely put to evaluation mode in the same body."""
    switched = _evaluated_before(model, node)
    calls = list(model.tree.calls_in(node.body)) if switched else []
    others = [call for call in calls if dotted_path(call.func) not in switched]
    return len(others) < len(calls) and not any(_may_ask_for_mode(model, call) for call in others)


def may_be_in_training_mode(model: "Model", call: cst.Call) -> bool:
    """Whether a call may be one of a module that was not surely put to evaluation mode in the same body."""
    if is_about_data(model, call):
        return False  # no event comes of it, whatever it is called on
    if is_within_step(model, model.enclosing_function(call)) or not _may_ask_for_mode(model, call):
        return False
    if not may_be_event_of_module(model, call):
        return False
    return dotted_path(call.func) not in _evaluated_before(model, call)


def _may_ask_for_mode(model: "Model", call: cst.Call) -> bool:
    """Whether what is called may be a module to which the mode makes a difference: a loss is none, to go by names."""
    if not may_be_model(model, call.func) or is_called_loss(call):
        return False
    value = model.value(call.func)
    # The layers of a class of the project are not looked through for this.
    is_of_library = isinstance(value, Module) and value.name is not None and not value.others
    return not is_of_library or depends_on_mode(value, model) is not False


def _evaluated_before(model: "Model", node: cst.CSTNode) -> frozenset[str]:
    """The dotted paths of what is surely in evaluation mode when a node is reached, in whatever run.

    The body around the node calls ``eval()`` of them, in no branch, and does nothing behind that which may switch back.
    """
    found: set[str] = set()
    if "eval" not in model.calls_by_word:
        return frozenset()
    passed: list[cst.CSTNode] = [node] if isinstance(node, cst.For) else []
    child = node
    for parent in model.tree.ancestors(node):
        if isinstance(parent, _LOOPS):
            passed.append(parent)
        elif isinstance(parent, _BODIES):
            place = next(position for position, item in enumerate(parent.body) if item is child)
            for statement in reversed(parent.body[:place]):
                path = _evaluated_by(statement)
                if path is not None and not any(_may_switch_back(model, item, path) for item in passed):
                    found.add(path)
                passed.append(statement)
        if isinstance(parent, _OF_THEIR_OWN):
            break
        child = parent
    return frozenset(found)


def _evaluated_by(statement: cst.CSTNode) -> str | None:
    """The dotted path of what a statement puts to evaluation mode: ``net.eval()``, ``net = net.eval()``."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
    if not isinstance(call, cst.Call) or last_word(call.func) != "eval" or call.args:
        return None
    path = dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None
    if isinstance(small, cst.Assign) and [dotted_path(target.target) for target in small.targets] != [path]:
        return None
    return path


def _may_switch_back(model: "Model", statement: cst.CSTNode, path: str) -> bool:
    """Whether some code may put what has a path to training mode, or bind the path anew."""
    if any(
        model.tree.is_below(call, statement)
        for name in _and_who_calls(model, "train")
        for call in model.calls_by_word.get(name, ())
    ):
        return True
    is_round = isinstance(statement, _LOOPS)
    names = model.names_within(path.rpartition(".")[2], model.scope_of(statement))
    held = (model.tree.parent(node) for node in mentions(model, path, names) if model.tree.is_below(node, statement))
    return any(isinstance(item, cst.AssignTarget) or (isinstance(item, cst.Arg) and not is_round) for item in held)


@worked_out_once
def _and_who_calls(model: "Model", *words: str) -> frozenset[str]:
    """Some names of what a file calls, and those of its functions that call these."""
    calls = (call for word in words for call in model.calls_by_word.get(word, ()))
    functions = (model.enclosing_function(call) for call in calls)
    names = frozenset(function.name.value for function in functions if function is not None)
    return names.union(words)
