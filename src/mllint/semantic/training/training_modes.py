"""In which mode, training or evaluation, an event finds a module; where a graph is recorded; which forwards train."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import networks
from mllint.semantic.events.given import truth
from mllint.semantic.events.made_anew import makes_anew
from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.owners import modules_of_optimizer
from mllint.semantic.events.participants import places_of
from mllint.semantic.events.places import as_itself, children_given, children_of
from mllint.semantic.events.steps import Event, Helper, Kind, Loop, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.modules.mode_layers import depends_on_mode, is_given_unseen
from mllint.semantic.modules.weights import is_container
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.called_modules import (
    can_be_called,
    is_of_any_family,
    is_out_of_sight,
    made,
    made_elsewhere,
    module_called,
)
from mllint.semantic.training.holders import was_made_with
from mllint.semantic.training.made_in_mode import is_switched_by_maker
from mllint.semantic.training.outputs import may_be_made_of
from mllint.semantic.training.paths import Paths
from mllint.semantic.training.runs import Run
from mllint.semantic.training.touched import may_switch_unseen
from mllint.semantic.values import Module
from mllint.syntax.shape import last_word

FRESH = "fresh"
"""Nothing has switched the module since the run began."""
LOADED = "loaded"
"""The same, and it has the mode that a file or a library gave it, whatever is computed with it."""
TRAIN = "train"
"""It was switched to training, and nothing has been trained since."""
TRAINED = "trained"
"""It is in training mode, and gradients have been computed since it got there."""
EVAL = "eval"
PARTLY = "partly"
"""Parts of it were switched to evaluation, it may be one after the other, and nothing has been trained since."""
UNKNOWN = "unknown"
_Mode: TypeAlias = str | Frame | Loop
"""One of these, or the run of a function that put the module back to training after an evaluation of its own, or the
loop of a training in which that was done: for its next round."""

COMPUTES = (Kind.BACKWARD, Kind.MINIMIZE)
"""What computes gradients."""
UPDATES = (Kind.STEP, Kind.MINIMIZE, Kind.UPDATE)
"""What updates parameters with them."""
SWITCHES = (Kind.TRAIN, Kind.EVAL, Kind.SET_MODE)
"""What switches the mode of a module."""


def covers(switched: Thing, module: Thing) -> bool:
    """Whether what is switched is the module itself, or something that holds it."""
    return len(switched.path) <= len(module.path) and switched.may_be(module)


def is_one(one: Thing | None, other: Thing | None) -> bool:
    """Whether two things are one module, or one is a part of the other."""
    return one is not None and other is not None and one.may_be(other)


def modes_before(run: Run, module: Thing, event: Event, first: str = FRESH) -> frozenset[str]:
    """The modes in which an event of a run may find a module that is in the first one when the run begins."""
    paths: Paths[_Mode] = run.derived(("modes", module, first), partial(_paths, run, module, first))
    return frozenset(_seen_from(event.frame, event.loops, state) for state in paths.before(event))


def modes_at_end(run: Run, module: Thing, first: str) -> frozenset[str]:
    """The modes in which a run may leave a module that it finds in the first one."""
    paths: Paths[_Mode] = run.derived(("modes", module, first), partial(_paths, run, module, first))
    return frozenset(_seen_from(run.frame, (), state) for state in paths.left)


def _seen_from(frame: Frame, loops: tuple[Loop, ...], state: "_Mode") -> str:
    """Outside of the function that has put it back, or of the loop, a module has the mode of its training; within, one
    of its own.
    """
    if isinstance(state, str):
        return state
    is_within = state in loops if isinstance(state, Loop) else any(item is state for item in frame.led_by())
    return TRAIN if is_within else TRAINED


def is_switched_to_training(run: Run, module: Thing, event: Event) -> bool:
    """Whether a run has put a module to training mode before an event; a loop on the way is taken to have a round."""
    modes = modes_before(run, module, event, LOADED)
    return bool(modes & {TRAIN, TRAINED}) and modes <= {LOADED, TRAIN, TRAINED}


def _paths(run: Run, module: Thing, first: str) -> "Paths[_Mode]":
    parts, back = list(_named_parts(module)), _switches_back(run, module)
    copied = {event: _mode_of_copy(run, event, first) for event in copyings(run, module)}

    def advance(state: _Mode, event: Event) -> _Mode:
        if event in copied:
            return copied[event]
        if event.kind in SWITCHES:
            if event.thing is None:
                return UNKNOWN
            if event in back:
                return event.frame
            if covers(event.thing, module):
                goes_on = _loop_going_on(event) if event.kind is Kind.TRAIN else None
                return goes_on or {Kind.TRAIN: TRAIN, Kind.EVAL: EVAL}.get(event.kind, UNKNOWN)
            if event.kind is Kind.EVAL and state != EVAL and module.may_be(event.thing):
                return PARTLY
            if any(covers(event.thing, part) for part in parts) or _may_hold(event, module):
                return UNKNOWN
            if was_made_with(event.thing, module):  # a framework that was given its model
                return TRAIN if event.kind is Kind.TRAIN else UNKNOWN
        elif event.kind is Kind.UNKNOWN:
            return UNKNOWN if state != EVAL and may_switch_unseen(event, module) else state
        elif event.kind in COMPUTES and (not isinstance(state, str) or state in (FRESH, TRAIN, PARTLY)):
            return TRAINED
        return state

    return Paths(run.steps, first, advance, partial(makes_anew, thing=module))


def _loop_going_on(switch: Event) -> Loop | None:
    """The innermost loop around a switch to training mode in which anything is trained: its next round is meant."""
    around = (loop for loop in reversed(switch.loops) if any(event.kind in COMPUTES for event in events(loop.body)))
    return next(around, None)


def _mode_of_copy(run: Run, copying: Event, first: str) -> str:
    """The mode in which a copy is made: that of what is copied."""
    key = ("being copied", copying, first)
    if copying.thing is None or run.derived(key, lambda: False):
        return UNKNOWN  # two that are copied from each other
    run.note(key, True)
    modes = modes_before(run, copying.thing, copying, first)
    run.note(key, False)
    if TRAINED in modes and modes <= {first, TRAIN, TRAINED}:
        return TRAINED
    return next(iter(modes)) if len(modes) == 1 else UNKNOWN


def _switches_back(run: Run, module: Thing) -> set[Event]:
    """The switches to training by which a function undoes its own to evaluation: for who goes on behind it."""
    found, evaluating = set[Event](), set[int]()
    for event in run.events:
        if event.kind in SWITCHES and event.frame is not run.frame and event.thing and covers(event.thing, module):
            if event.kind is Kind.EVAL:
                evaluating.add(id(event.frame))
            elif event.kind is Kind.TRAIN and id(event.frame) in evaluating:
                found.add(event)
    return found


def _may_hold(switch: Event, module: Thing) -> bool:
    """Whether what a base class switches to evaluation may be made of a module that an object of its class keeps.

    The base class has a name for what ``self.build()`` gives, the derived class one for each part of it.
    """
    function, switched = switch.frame.function, switch.thing
    if switch.kind is not Kind.EVAL or function is None or function.owner is None or switched is None:
        return False
    is_local = all(isinstance(root, Binding) for root in switched.roots)
    return is_local and any(isinstance(root, ClassInfo) and function.owner in root.lineage[1:] for root in module.roots)


def is_made_of_evaluated(run: Run, forward: Event) -> bool:
    """Whether a module is made of one that is in evaluation mode, and nothing says that it has such layers itself."""
    value, module = module_called(forward), forward.thing
    if module is None or not isinstance(value, Module) or value.definition is None:
        return False
    is_of_others = depends_on_mode(replace(value, call=None), forward.frame.model) is not True
    return is_of_others and any(modes_before(run, part, forward) == {EVAL} for part in _given(module))


def _named_parts(module: Thing) -> Iterator[Thing]:
    """The modules that have names of their own, too, in a container: ``net`` of ``Sequential(net, nn.Flatten())``."""
    return _given(module, lambda frame, made: is_container(frame.model.library_name(made.func) or ""))


def _given(module: Thing, is_meant: Callable[[Frame, cst.Call], bool] = lambda *_: True) -> Iterator[Thing]:
    """What has a name of its own of what a module is made of."""
    for root in module.roots if not module.path else ():
        made = as_itself(root.value) if isinstance(root, Binding) and root.value is not None else None
        if not isinstance(root, Binding) or not isinstance(made, cst.Call):
            continue
        frame = Frame(root.scope.model)
        if not is_meant(frame, made):
            continue
        given = (children_given(arg) or arg.value for arg in made.args)
        things = (frame.thing(part) for part in given if isinstance(part, (cst.Name, cst.Attribute)))
        yield from (thing for thing in things if thing is not None)


def records_graph(event: Event) -> bool | None:
    """Whether a graph is recorded where an event happens, to go by its own function and by those that call it here."""
    frame, node, unknown = event.frame, event.node, False
    for frame, node in places_of(event.frame, event.node):
        state = frame.model.gradients.inside(node, partial(truth, frame))
        if state == "off" or (state == "on" and not unknown):
            return state == "on"
        unknown |= state == "unknown"
    off = None if unknown else frame.model.gradients.off(node)
    return None if off is None else not off


# -- what is trained ---------------------------------------------------------------------------------------------------


def training_forwards(run: Run) -> tuple[Event, ...]:
    """The forward passes from whose output gradients are computed: of each module the last one before a backward."""
    return run.derived("training forwards", partial(_training_forwards, run))


def _training_forwards(run: Run) -> tuple[Event, ...]:
    backwards = [event for event in run.events if event.kind in COMPUTES]
    forwards = [event for event in run.events if event.kind is Kind.FORWARD and event.thing is not None]
    if not backwards or not forwards:
        return ()
    found: dict[int, Event] = {}
    for module in dict.fromkeys(event.thing for event in forwards):
        own = {event for event in forwards if event.thing == module and _may_feed(event, backwards)}
        paths: Paths[Event | None] = Paths(run.steps, None, partial(_last_of, own))
        for backward in backwards:
            found.update((id(event), event) for event in paths.before(backward) if event is not None)
    return tuple(event for event in forwards if id(event) in found)


def _may_feed(forward: Event, backwards: list[Event]) -> bool:
    """Whether gradients may be computed from the output of a forward pass: not where a function of the project keeps
    it to itself, which is called for something else, or what it gives: ``score = evaluate(model)``.
    """
    if records_graph(forward) is False:
        return False
    inside = [around.step for around in forward.around]
    for position, helper in enumerate(inside):
        if isinstance(helper, Helper) and _is_for_something_else(helper, backwards):
            runs = [step.frame.function for step in inside[position:] if isinstance(step, Helper)]
            keeps = any(function is None or _sets_attributes(function) for function in runs)
            if not keeps and not any(helper in (around.step for around in item.around) for item in backwards):
                return False
    return True


def _is_for_something_else(helper: Helper, backwards: list[Event]) -> bool:
    """Whether what a function gives is dropped where it is called, hangs on no graph, or no gradients are of it."""
    frame, call = _frame_around(helper), helper.node
    while not isinstance(frame.model.tree.parent(call), cst.Expr) and not hangs_on_nothing(frame.value(call)):
        places = {event: dict(_by_frame(event)).get(id(frame)) for event in backwards}
        if any(place is not None and may_be_made_of(frame, place, call) for place in places.values()):
            return False
        backwards = [event for event, place in places.items() if place is None]
        if not backwards or frame.function is None or frame.caller is None or frame.call is None:
            return True
        returned = frame.function.scope.returns
        is_returned = any(item.value is not None and may_be_made_of(frame, item.value, call) for item in returned)
        if frame.function.is_plain and not is_returned:
            return True
        call, frame = frame.call, frame.caller
    return True


def _by_frame(event: Event) -> Iterator[tuple[int, cst.CSTNode]]:
    return ((id(frame), node) for frame, node in places_of(event.frame, event.node))


def _sets_attributes(function: FunctionInfo) -> bool:
    """Whether a method keeps something in its object."""
    prefix = f"{function.self_name}."
    return function.self_name is not None and any(key.startswith(prefix) for key in function.scope.bindings)


def _frame_around(helper: Helper) -> Frame:
    """The run from which a function of the project is called."""
    return helper.frame.caller or helper.frame


def _last_of(own: set[Event], state: Event | None, event: Event) -> Event | None:
    """The last of some events, until an optimizer has stepped."""
    if event in own:
        return event
    return None if event.kind in UPDATES else state


def is_trained(run: Run, module: Thing) -> bool:
    """Whether a run computes gradients from a module's output in a loop, and no other modules alone are updated."""
    trained = (event for event in training_forwards(run) if is_one(event.thing, module))
    return any(is_updated_in(loop, module) for event in trained for loop in _rounds_of_training(event))


def _rounds_of_training(forward: Event) -> tuple[Loop, ...]:
    """The loops in which what a forward pass trains may be updated: the two right around it, and the first one in which
    anything is. The losses of all the steps of a sequence, say, may be added up.
    """
    updating = (loop for loop in reversed(forward.loops) if any(item.kind in UPDATES for item in events(loop.body)))
    return (*forward.loops[-2:], *itertools.islice(updating, 1))


def is_copy_of_trained(run: Run, module: Thing) -> bool:
    """Whether a module is a copy of one that a run trains, and what was trained is evaluated by way of it."""
    return any(is_trained(run, original) for original in originals(run, module))


def learns(run: Run, module: Thing) -> bool:
    """Whether a run trains a module, or what it is a copy of."""
    return is_trained(run, module) or is_copy_of_trained(run, module)


def is_updated_in(loop: Loop, module: Thing) -> bool:
    """Whether an optimizer steps in a loop that may have the module's parameters, or these are updated by hand."""
    for event in events(loop.body):
        if event.kind in UPDATES:
            is_by_hand = event.kind is Kind.UPDATE
            owned = (event.thing,) if is_by_hand else modules_of_optimizer(event.frame, event.thing)
            if None in owned or any(is_one(item, module) for item in owned):
                return True
    return False


# -- made in evaluation mode -------------------------------------------------------------------------------------------


def is_as_loaded(forward: Event) -> bool:
    """Whether the module of a forward pass is what ``from_pretrained`` of transformers gave, in evaluation mode."""
    return networks.is_made_as_loaded(_maker_of_called(forward))


def has_mode_from_file(forward: Event) -> bool:
    """Whether the module of a forward pass came with its mode: also of ``jit.load``, as it was when it was saved."""
    return is_as_loaded(forward) or _maker_of_called(forward) in ("torch.jit.load", "paddle.jit.load")


def is_loaded_program(forward: Event) -> bool:
    """Whether Paddle's ``jit.load`` made the module of a forward pass: a program, which is made for evaluation and
    keeps no graph of its parameters there.
    """
    return _maker_of_called(forward) == "paddle.jit.load"


def _maker_of_called(forward: Event) -> str:
    """The library function that surely made the module of a forward pass; empty where there is none."""
    value = module_called(forward)
    if forward.thing is None or not isinstance(value, Module) or value.call is None or value.definition is not None:
        return ""
    makers = [maker for root in forward.thing.roots for maker in makers_of(root, forward.thing.path)]
    names = [maker.scope.model.qualified_name(value.call.func) or "" for maker in makers]
    return names[0] if len(names) == 1 else ""


def is_trained_as_loaded(run: Run, forward: Event) -> bool:
    """Whether a forward pass in a loop trains what nothing has switched to training since the run began."""
    module = forward.thing
    if module is None or not forward.loops or run.is_cut or forward not in training_forwards(run):
        return False
    loop = next((item for item in reversed(forward.loops) if is_updated_in(item, module)), None)
    if loop is None or is_switched_by_maker(module):
        return False
    return modes_before(run, module, forward, LOADED) <= {LOADED}


def is_made_within(run: Run, module: Thing) -> bool:
    """Whether a module is made in the run itself: by the file, or in one of the functions that run."""
    running = {function for event in run.events for function in event.frame.running()}
    scopes = {id(function.scope) for function in running}
    return not module.path and all(
        isinstance(root, Binding)
        and root.kind is BindingKind.ASSIGN
        and (id(root.scope) in scopes or (run.frame.function is None and root.scope.parent is None))
        for root in module.roots
    )


def may_concern(run: Run, event: Event, module: Thing | None) -> bool:
    """Whether an event may be about a module or a part of it; of what, is not always known.

    Then it is not about what a function makes for itself, if that function is not running.
    """
    if event.thing is not None or module is None:
        return event.thing is None or is_one(event.thing, module)
    running = {id(function.scope) for function in event.frame.running()}
    return not is_made_within(run, module) or any(
        not isinstance(root, Binding)
        or root.scope.parent is None
        or id(root.scope) in running
        or root.value is None
        or not isinstance(as_itself(root.value), cst.Call)
        for root in module.roots
    )


def keeps_its_output(forward: Event) -> bool:
    """Whether something that may be no module gives nothing that is read: it keeps what it computes, and is written
    by hand. Of a module that is known to be one the output is forgotten.
    """
    value = module_called(forward)
    is_statement = isinstance(forward.frame.model.tree.parent(forward.node), cst.Expr)
    return is_statement and (not isinstance(value, Module) or value.is_only_some)


def mode_matters(forward: Event, run: Run | None = None, *, if_asked: bool | None = None) -> bool | None:
    """Whether the mode makes a difference to the module that is called; ``None``: not known.

    In a run that has put it to training mode, what libraries have loaded into it counts, too; and who puts a module of
    a class that is out of sight to evaluation mode elsewhere, or to training mode in each round of a loop around, takes
    the mode to matter. ``if_asked`` is the answer where the class asks for its mode, to do another thing then.
    """
    matters = _matters(forward, switched=False, if_asked=if_asked)
    if matters is True or run is None or forward.thing is None:
        return matters
    if is_switched_to_training(run, forward.thing, forward):
        matters = _matters(forward, switched=True, if_asked=if_asked)
    if matters is not None or not _is_switched_elsewhere(run, forward.thing, forward, Kind.EVAL, Kind.TRAIN):
        return matters
    is_unseen = is_out_of_sight(forward) or is_of_any_family(forward)
    is_meant = is_unseen or (_is_switched_elsewhere(run, forward.thing, forward, Kind.EVAL) and _is_of_unseen(forward))
    return True if is_meant else matters


def _is_of_unseen(forward: Event) -> bool:
    """Whether a module is given parts where it is made of which nothing is known."""
    return is_given_unseen(module_called(forward), *(frame.model for frame in forward.frame.led_by()))


def _is_switched_elsewhere(run: Run, module: Thing, forward: Event, *kinds: Kind) -> bool:
    """Whether somebody means a module to be in evaluation mode for some passes, and this need not find it there.

    Who switches to training mode once, before all, may do so out of habit.
    """
    is_meant = any(
        event.kind is Kind.EVAL or not set(event.loops).isdisjoint(forward.loops)
        for event in run.events
        if event.kind in kinds and event.thing is not None and covers(event.thing, module)
    )
    return is_meant and modes_before(run, module, forward) != {EVAL}


def _matters(forward: Event, *, switched: bool, if_asked: bool | None) -> bool | None:
    if not isinstance(forward.node, cst.Call):
        return None
    value, models = module_called(forward), [frame.model for frame in forward.frame.led_by()]
    if forward.called is forward.node.func and not can_be_called(value, forward.node):
        return False  # it raises in both
    depends = partial(depends_on_mode, switched=switched, if_asked=if_asked)
    matters = depends(value, *models)
    if isinstance(value, Module) and value.call is not None and children_of(value.call) is not None:
        return matters  # without its head a model may be another
    if matters is None:
        ways = (*made(forward), *made_elsewhere(forward))
        answers = {depends(way, *models) for way in ways}
        return True if True in answers else False if False in answers else None
    return matters


_COPYING = "deepcopy"


def copyings(run: Run, module: Thing) -> tuple[Event, ...]:
    """The events of a run by which a module is made as a copy of another.

    ``copy.deepcopy(net)``: a copy has the mode that the module has where it is made.
    """
    made = {id(call) for call in _copying_calls(module)}
    return tuple(event for event in run.events if event.kind is Kind.COPY and id(event.node) in made) if made else ()


def originals(run: Run, module: Thing) -> list[Thing]:
    """What a module is a copy of."""
    return [event.thing for event in copyings(run, module) if event.thing is not None and event.thing != module]


def _copying_calls(module: Thing) -> Iterator[cst.Call]:
    for root in module.roots:
        for maker in makers_of(root, module.path):
            made = None if maker.value is None or maker.path else as_itself(maker.value)
            if isinstance(made, cst.Call) and last_word(made.func) == _COPYING:
                yield made
