"""The rounds of the loops in which a model may be evaluated, and the forward passes of which these are the data."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.events.made_anew import is_made_in
from mllint.semantic.events.steps import Event, Kind, Loop, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.training.data_loops import fed_names, is_next, is_spelled_as_loader
from mllint.semantic.training.handed_on import as_given
from mllint.semantic.training.nearby import trains_in_every_round
from mllint.semantic.training.outputs import comes_from, is_in_forward_pass, may_reach
from mllint.semantic.training.pieces import is_fed_piece, is_piecewise
from mllint.semantic.training.runs import LoopRun, Run
from mllint.semantic.training.training_modes import records_graph
from mllint.semantic.values import is_object
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import all_given, dotted_path, has_one_round
from mllint.syntax.walk import names_in

if TYPE_CHECKING:
    from mllint.semantic.model import Model

AnyLoop = cst.For | cst.While | cst.CompFor

TRAINING = frozenset({
    Kind.BACKWARD, Kind.STEP, Kind.MINIMIZE, Kind.UPDATE, Kind.WRITE_GRADIENT, Kind.CLIP, Kind.SCALE, Kind.UNSCALE,
    Kind.FREEZE, Kind.THAW,
})  # fmt: skip
"""What a loop that only evaluates never does."""
_TELLING = TRAINING | {Kind.TRAIN, Kind.EVAL, Kind.SET_MODE}


class DataRound(msgspec.Struct, frozen=True):
    """One time that a loop runs, and the forward passes in it of which it is the loop over the data."""

    found: LoopRun
    forwards: tuple[Event, ...]


def all_rounds(
    model: "Model",
    node: AnyLoop,
    judge: Callable[[DataRound], bool],
    may_be: Callable[[DataRound], bool],
    enough: Callable[[Iterable[bool]], bool] = all,
) -> bool:
    """Whether every run of a loop that evaluates something may be wrong, and all (or any) of them surely are."""
    if trains_in_every_round(model, node):
        return False
    rounds = in_sight(list(rounds_of(model.runs.loops_at(node))))
    if not rounds or not all(may_be(item) for item in rounds):
        return False
    return enough(judge(item) for item in rounds)


def in_sight(rounds: list[DataRound]) -> list[DataRound]:
    """The rounds but those that begin with a function which nobody calls, and which neither trains nor switches a mode.

    They say nothing of what is done before, where others are known that train.
    """
    told = [item for item in rounds if item.found.run.frame.function is None or _happens(item.found.run, _TELLING)]
    return told if any(_happens(item.found.run, TRAINING) for item in told) else rounds


def _happens(run: Run, kinds: frozenset[Kind]) -> bool:
    return any(event.kind in kinds for event in run.events)


def rounds_of(found: tuple[LoopRun, ...]) -> Iterator[DataRound]:
    """The runs of a loop in which modules are called with its data and nothing trains them, as far as can be seen."""
    trains = any(trains_in(events(item.loop.body)) for item in found)
    for item in found:
        inside = list(events(item.loop.body))
        node = item.loop.node
        is_short = isinstance(node, cst.For) and has_one_round(node)
        if isinstance(node, cst.CompFor):
            # A list of a few things is none of the data.
            is_short = not any(is_over_loader(item.loop.frame, over) for over in (node.iter, run_over(node.iter)))
        if is_short or trains_in(inside):
            continue  # it looks at one batch, or trains
        forwards = tuple(
            event
            for event in inside
            if event.kind is Kind.FORWARD
            and event.thing is not None
            and _is_of_its_round(event, item)
            and not is_made_in(item.loop, event, event.thing)
        )
        found_round = DataRound(item, tuple(event for event in forwards if not _is_part_of_another(event, forwards)))
        clears = any(event.kind is Kind.ZERO for event in inside)
        if not found_round.forwards or (clears and _may_train_unseen(found_round, trains=trains)):
            continue
        if not any(event.kind is Kind.CLIP for event in inside) or not hands_on(found_round):
            yield found_round


def trains_in(inside: Iterable[Event]) -> bool:
    """Whether some events train, as far as can be seen. Gradients that none of them computes or uses are clipped for
    nothing, which is ML305.
    """
    return any(event.kind in TRAINING and event.kind is not Kind.CLIP for event in inside)


def _is_of_its_round(forward: Event, found: LoopRun) -> bool:
    """Whether a loop gives a forward pass its data, or goes on with it until something is done, to learn nothing."""
    if isinstance(found.loop.node, cst.CompFor):
        return forward.loops[-1] is found.loop and _is_given_element(found.loop, forward)
    over_data = loop_over_data(forward)
    if over_data is not None or isinstance(found.loop.node, cst.For):
        return over_data is found.loop
    around = [loop for loop in forward.loops if not isinstance(loop.node, cst.CompFor)]
    homes = (forward.frame, found.loop.frame)
    learns = (event.kind is Kind.BACKWARD and event.frame in homes for event in found.run.events)
    return around[-1] is found.loop and not any(learns)


def _is_given_element(loop: Loop, forward: Event) -> bool:
    """Whether a forward pass is given what a comprehension binds, as it is or made into something else."""
    args = forward.node.args if isinstance(forward.node, cst.Call) else ()
    bound = names_in(loop.node.target) if isinstance(loop.node, cst.CompFor) else set()
    return any(bound & names_in(part) for arg in args for part in as_given(forward.frame, arg.value, loop.frame))


def code_of(model: "Model", node: AnyLoop) -> cst.CSTNode:
    """All that is run in a loop: of the clause of a comprehension, the comprehension."""
    if not isinstance(node, cst.CompFor):
        return node
    return next((item for item in model.tree.ancestors(node) if isinstance(item, cst.BaseComp)), node)


def _may_train_unseen(found: DataRound, *, trains: bool) -> bool:
    """Whether gradients that are cleared in a loop may be computed there, by something that cannot be looked into.

    They are not where nothing records a graph, or where the loop is the phase of one that trains in another: in
    another round over literals, or (``trains``) in another run, as its caller chooses.
    """
    if all(records_graph(forward) is False for forward in found.forwards):
        return False
    return not (found.found.loop.frame.literals or trains) or hands_on(found)


def _is_part_of_another(forward: Event, forwards: tuple[Event, ...]) -> bool:
    """Whether what is called is a part of a module that is called too: by that one's ``forward``."""
    part = forward.thing
    return part is not None and any(
        event.thing is not None and len(event.thing.path) < len(part.path) and event.thing.may_be(part)
        for event in forwards
    )


def loop_over_data(forward: Event) -> Loop | None:
    """The innermost loop around a forward pass that gives it its data."""
    for loop in reversed(forward.loops):
        if isinstance(loop.node, cst.For) and (
            is_over_loader(loop.frame, loop.node.iter) or feeds(loop.frame, loop.node, forward)
        ):
            return loop
    return None


def is_over_loader(frame: Frame, iterable: cst.BaseExpression) -> bool:
    """Whether a loop runs over a loader, by what it is or how it is written."""
    return is_spelled_as_loader(frame.model, iterable) or is_object(frame.value(iterable), "loader")


def feeds(frame: Frame, node: cst.For, forward: Event) -> bool:
    """Whether what a loop binds, or takes from an iterator, is what a forward pass is given."""
    if not isinstance(forward.node, cst.Call) or forward.called is None:
        return False
    called = (dotted_path(part) or "" for part in as_given(forward.frame, forward.called, frame))
    if any(path.partition(".")[0] in names_in(node.target) for path in called):
        return False  # a loop over modules
    given = [part for arg in forward.node.args for part in as_given(forward.frame, arg.value, frame)]
    if is_piecewise(node) and frame.function is not None and frame.function.name == "forward":
        return False  # parts of one batch
    fed = fed_names(frame.model, node)
    return any(fed & names_in(part) or is_next(part) or is_fed_piece(frame.model, node, part) for part in given)


def hands_on(found: DataRound) -> bool:
    """Whether something unknown in the loop may train: it is given the model, or what hangs on a graph."""
    loop = found.found.loop
    unknown = (event for event in events(loop.body) if event.kind is Kind.UNKNOWN)
    return any(_may_train_with(event, found) for event in unknown if not is_in_forward_pass(event.frame, loop.frame))


def _may_train_with(event: Event, found: DataRound) -> bool:
    call, run = event.node, found.found.run
    if not isinstance(call, cst.Call) or any(event.concerns(forward.thing) for forward in found.forwards):
        return True
    if event.frame.thing(call.func) in run.derived("functions of losses", partial(_functions_of_losses, run)):
        return False
    return any(records_graph(forward) is not False and is_given_output(event, forward) for forward in found.forwards)


def is_given_output(event: Event, forward: Event) -> bool:
    """Whether what cannot be looked into is given what a forward pass puts out, with its graph: it may train."""
    return not isinstance(event.node, cst.Call) or any(
        may_reach(event.frame, part, forward)
        for part in all_given(event.node)
        if not hangs_on_nothing(event.frame.value(part))
    )


def _functions_of_losses(run: Run) -> frozenset[Thing]:
    """What cannot be looked into and gives the losses of a training: it computes them, and does not train by itself."""
    backwards = [event for event in run.events if event.kind is Kind.BACKWARD]
    made = (
        event.frame.thing(event.node.func)
        for event in run.events
        if event.kind is Kind.UNKNOWN and isinstance(event.node, cst.Call)
        if any(item.frame is event.frame and comes_from(item.frame, item.node, event.node) for item in backwards)
    )
    return frozenset(thing for thing in made if thing is not None)
