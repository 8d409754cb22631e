"""The runs of a file: every way in which one of its events comes about."""

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import libcst as cst
import msgspec

from mllint.semantic.events.steps import Event, Loop, Step, events
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.flow import EVENT_WORDS, MODE_WORDS, WORDS
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around
from mllint.semantic.training.callers import Root, roots_elsewhere, roots_of
from mllint.semantic.training.managed import is_managed
from mllint.semantic.training.unfolding import unfold
from mllint.syntax.shape import dotted_path, last_word, string_literal
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

ResultT = TypeVar("ResultT")


class Run(msgspec.Struct, eq=False):
    """One way through the code, from a body that nobody in sight calls. ``is_cut``: more happens than is followed."""

    frame: Frame
    steps: list[Step]
    is_cut: bool
    events: tuple[Event, ...]
    """All its events, in the order in which they are written."""
    _derived: dict[object, object] = {}

    def derived(self, key: object, derive: Callable[[], ResultT]) -> ResultT:
        """What a question that is asked of many events has for an answer, worked out once for the run."""
        if key not in self._derived:
            self._derived[key] = derive()
        return self._derived[key]  # type: ignore[return-value]

    def note(self, key: object, answer: object) -> None:
        """Put down what ``derived`` is to answer from now on."""
        self._derived[key] = answer

    @property
    def loops(self) -> "tuple[Loop, ...]":
        """The loops in which events happen, each time that one comes about."""
        return self.derived(
            "loops", lambda: tuple({id(loop): loop for item in self.events for loop in item.loops}.values())
        )

    def forget(self) -> None:
        """Drop the answers, for some questions are about the files around, too."""
        self._derived.clear()


class Occurrence(msgspec.Struct, frozen=True):
    """One time that an event of a file comes about. ``is_open``: its body may have callers that are not in sight."""

    run: Run
    event: Event
    is_open: bool


class LoopRun(msgspec.Struct, frozen=True):
    """One time that a loop of a file comes about."""

    run: Run
    loop: Loop


class Runs:
    """The runs through one file, unfolded when somebody asks for an event of theirs."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._runs: dict[tuple[int, int], Run] = {}
        self._roots: dict[tuple[int, bool, bool], tuple[Root, ...]] = {}
        self._events: dict[tuple[int, int], tuple[Run, dict[int, list[Event]]]] = {}
        """By the function and the run, which is held, so that no other one gets its ``id``."""
        self._loops: dict[int, tuple[LoopRun, ...]] = {}

    def at(self, node: cst.CSTNode, accelerated: bool = False) -> tuple[Occurrence, ...]:
        """Every time that the event at a node of this file comes about.

        Empty where nothing is known of it: it is no event, or a trainer of another framework runs the body. Of what
        runs with accelerate only the order of calls and the modes of modules are known (``accelerated``).
        """
        return tuple(self.each(node, accelerated))

    def each(self, node: cst.CSTNode, accelerated: bool = False, by_hand: bool = False) -> Iterator[Occurrence]:
        """As ``at``, but whoever has had enough of the first ones leaves the runs of the others alone.

        ``by_hand``: also in modules of Lightning that clear, compute and step by themselves.
        """
        function = function_around(self.model, node)
        for root in self._followed_roots(function, accelerated, by_hand):
            run = self._run_of(root)
            key = (0 if function is None else id(function.node), id(run))
            if key not in self._events:
                self._events[key] = run, self._events_in(run, function)
            for event in self._events[key][1].get(id(node), ()):
                yield Occurrence(run, event, root.is_open)

    def within(self, call: cst.Call, accelerated: bool = False) -> Iterator[Occurrence]:
        """What happens right in the function of the project that a call of this file runs, each time that it does."""
        function = function_around(self.model, call)
        for root in self._followed_roots(function, accelerated):
            run = self._run_of(root)
            for event in run.events:
                caller, entry = event.frame.caller, event.frame.call
                if caller is not None and entry is not None and self._own_place(entry, caller, function) is call:
                    yield Occurrence(run, event, root.is_open)

    def always(
        self, node: cst.CSTNode, holds: Callable[[Occurrence], bool], accelerated: bool = False, by_hand: bool = False
    ) -> bool:
        """Whether the event at a node of this file comes about, and something holds every time."""
        occurrence = None
        for occurrence in self.each(node, accelerated, by_hand):
            if not holds(occurrence):
                return False
        return occurrence is not None

    def _followed_roots(
        self, function: FunctionInfo | None, accelerated: bool, by_hand: bool = False
    ) -> tuple[Root, ...]:
        """The bodies from which a function is reached; none where a trainer of another framework runs one of them."""
        key = (0 if function is None else id(function.node), accelerated, by_hand)
        if key not in self._roots:
            roots = roots_of(self.model, function)
            is_left = any(is_managed(_frame_of(root), accelerated, by_hand) for root in roots)
            self._roots[key] = () if is_left else roots
        return self._roots[key]

    def _events_in(self, run: Run, function: FunctionInfo | None) -> dict[int, list[Event]]:
        """The events of a run in a body of this file, by the ``id`` of the node."""
        found: dict[int, list[Event]] = {}
        for event in run.events:
            node = self._own_place(event.node, event.frame, function)
            if node is not None:
                found.setdefault(id(node), []).append(event)
        return found

    def _own_place(self, node: cst.CSTNode, frame: Frame, function: FunctionInfo | None) -> cst.CSTNode | None:
        """The node of this file at which something in a body of it comes about; ``None`` for what does elsewhere.

        A run that comes from another file goes through the model that the project keeps of this one.
        """
        if frame.model is self.model:
            return node if frame.function is function else None
        if frame.function is None or function is None or not frame.function.is_same_as(function):
            return None
        return self._own(node, frame)

    def loops_at(self, node: cst.For | cst.While | cst.CompFor) -> tuple[LoopRun, ...]:
        """Every time that a loop of this file comes about in which something happens, also with accelerate."""
        if id(node) not in self._loops:
            self._loops[id(node)] = self._loops_at(node)
        return self._loops[id(node)]

    def _loops_at(self, node: cst.For | cst.While | cst.CompFor) -> tuple[LoopRun, ...]:
        info = function_around(self.model, node)
        found = self._loops_from(self._followed_roots(info, accelerated=True), node, info)
        if found or info is None or not _is_chosen_by_caller(self.model, node, info):
            return found
        # Those who call the function in its own file choose another branch.
        roots = roots_elsewhere(info)
        return () if any(is_managed(_frame_of(root), True) for root in roots) else self._loops_from(roots, node, info)

    def _loops_from(
        self, roots: tuple[Root, ...], node: cst.For | cst.While | cst.CompFor, info: FunctionInfo | None
    ) -> tuple[LoopRun, ...]:
        found: list[LoopRun] = []
        for root in roots:
            run = self._run_of(root)
            for loop in run.loops:
                frame = loop.frame
                is_here = frame.model is self.model or (
                    info is not None and frame.function is not None and frame.function.is_same_as(info)
                )
                if is_here and self._own(loop.node, frame) is node:
                    found.append(LoopRun(run, loop))
        return tuple(found)

    def _own(self, node: cst.CSTNode, frame: Frame) -> cst.CSTNode | None:
        """The node of this file that stands where a node stands in another model of it."""
        return node if frame.model is self.model else self.model.tree.twin(node, frame.model.tree)

    def node_here(self, event: Event) -> cst.CSTNode | None:
        """The node of this file at which an event comes about; ``None`` for one that comes about in another file."""
        function = event.frame.function
        if event.frame.model is self.model or function is None:
            return event.node if event.frame.model is self.model else None
        node = self.model.tree.twin(event.node, event.frame.model.tree)
        here = None if node is None else self.model.enclosing_function(node)
        return node if here is not None and function.is_same_as(self.model.function_info(here)) else None

    def call_here(self, frame: Frame) -> cst.CSTNode | None:
        """The call of this file that runs the function of a frame; ``None`` where none of this file does."""
        caller = frame.caller
        if caller is None or frame.call is None or caller.model is not self.model:
            return None
        return frame.call

    def _run_of(self, root: Root) -> Run:
        """The run that begins with a body; of an object of a class of this file, this file keeps it."""
        if root.instance_of is None:
            return root.model.runs.run_of(root.function)
        return self.run_of(root.function, root.instance_of)

    def run_of(self, function: FunctionInfo | None, instance_of: ClassInfo | None = None) -> Run:
        """The run that begins with a function of this file, or with the file itself.

        Or with what a base class defines of the methods of a class.
        """
        key = (0 if function is None else id(function.node), id(instance_of))
        if key not in self._runs:
            frame = _frame_of(Root(self.model, function, instance_of=instance_of))
            steps, is_cut = unfold(frame)
            self._runs[key] = Run(frame, steps, is_cut, tuple(events(steps)))
        return self._runs[key]

    def forget_callers(self) -> None:
        """Drop what rests on who calls the functions of the file. What happens in a run that begins here does not."""
        self._roots.clear()
        self._events.clear()
        self._loops.clear()
        for run in self._runs.values():
            run.forget()

    def empty(self) -> None:
        """Break what holds itself: an event and the steps around it. Nobody may ask about the runs any more."""
        for run in self._runs.values():
            for event in run.events:
                event.around = ()

    @cached_property
    def used_as_modules(self) -> frozenset[str]:
        """The dotted paths of which the file takes ``parameters()``, or that it switches to another mode."""
        calls = [
            call
            for word in _METHODS_OF_MODULES
            for call in self.model.calls_by_word.get(word, ())
            if word != "eval" or not call.args
        ]
        paths = (dotted_path(call.func.value) for call in calls if isinstance(call.func, cst.Attribute))
        return frozenset(path for path in paths if path is not None and path != "self")

    @cached_property
    def kept_methods(self) -> frozenset[str]:
        """The names to which the file binds a method that would be an event, without calling it."""
        return frozenset(
            target.target.value
            for statement in self.model.tree.by_type.get(cst.Assign, ())
            if isinstance(statement.value, cst.Attribute) and statement.value.attr.value in EVENT_WORDS
            for target in statement.targets
            if isinstance(target.target, cst.Name)
        )

    @cached_property
    def kept_names(self) -> frozenset[str]:
        """The names of what the file keeps in objects of no class of its own, or in records: ``args.model = net``.

        Of what is made with a keyword, too, of whatever class.
        """
        tree = self.model.tree
        assigned = [item.target for item in tree.by_type.get(cst.AssignTarget, ())]
        names = {
            item.attr.value
            for item in assigned
            if type(item) is cst.Attribute and not (type(item.value) is cst.Name and item.value.value == "self")
        }
        for word, calls in self.model.calls_by_word.items():
            if "A" <= word[0] <= "Z":
                names.update([arg.keyword.value for call in calls for arg in call.args if arg.keyword is not None])
        for definition in tree.by_type.get(cst.ClassDef, ()):
            if definition.decorators or any(last_word(base.value) == "NamedTuple" for base in definition.bases):
                names.update(_declared(definition))
        for call in self.model.calls_by_word.get("namedtuple", ()):
            names.update(text for node in subtree(call) if (text := string_literal(node)) is not None)
        return frozenset(" ".join(names).replace(",", " ").split())

    @cached_property
    def holding_switches(self) -> frozenset[int]:
        """The ids of what a method that switches a mode stands in without being called there, or that a lambda calls.

        Up to the statement; of the method, too.
        """
        found: set[int] = set()
        tree = self.model.tree
        for attribute in self.model.tree.by_type.get(cst.Attribute, ()):
            if attribute.attr.value not in MODE_WORDS:
                continue
            around = list(itertools.takewhile(_is_in_statement, tree.ancestors(attribute)))
            if tree.call_of(attribute) is None or any(isinstance(node, cst.Lambda) for node in around):
                found.update(map(id, (attribute, *around)))
        return frozenset(found)

    @cached_property
    def kept_switches(self) -> frozenset[str]:
        """The names to which the file binds something that such a method stands in."""
        return frozenset(
            target.target.value
            for statement in self.model.tree.by_type.get(cst.Assign, ())
            if id(statement.value) in self.holding_switches
            for target in statement.targets
            if isinstance(target.target, cst.Name)
        )

    @cached_property
    def worded(self) -> frozenset[int]:
        """The functions of the file (by the id of the ``def``) in whose bodies a word of a training stands."""
        found: set[int] = set()
        parents = self.model.tree.parents
        for attribute in self.model.tree.by_type.get(cst.Attribute, ()):
            child: cst.CSTNode | None = attribute if attribute.attr.value in _ALL_WORDS else None
            while child is not None:
                holder = parents.get(id(child))
                if holder.__class__ is cst.FunctionDef and child is holder.body:
                    if id(holder) in found:
                        break
                    found.add(id(holder))
                child = holder
        return frozenset(found)

    @cached_property
    def passes(self) -> dict[int, bool]:
        """For methods of this file (by the id of the ``def``): whether they call modules. Filled as asked."""
        return {}

    @cached_property
    def relevance(self) -> dict[int, bool]:
        """For functions of this file (by the id of the ``def``): whether anything in them matters. Filled as asked."""
        return {}

    @cached_property
    def telling_of_modes(self) -> dict[int, list[cst.CSTNode]]:
        """For bodies of this file (by their id): what in them may tell whether a module has a mode. Filled as asked."""
        return {}

    @cached_property
    def fed_names(self) -> dict[int, set[str]]:
        """For loops of this file (by their id): the names that hold the data. Filled as asked."""
        return {}

    @cached_property
    def pieces(self) -> dict[int, tuple[set[str], set[str]]]:
        """For loops that count (by their id): the names of numbers, and of what they cut out. Filled as asked."""
        return {}

    @cached_property
    def may_evaluate(self) -> dict[int, bool]:
        """For loops of this file (by their id): whether they may call a model. Filled as asked."""
        return {}


def _declared(definition: cst.ClassDef) -> Iterator[str]:
    """The attributes that the body of a class declares."""
    for line in definition.body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name):
                yield statement.target.value


def _is_in_statement(node: cst.CSTNode) -> bool:
    return not isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement))


def _is_chosen_by_caller(model: "Model", node: cst.CSTNode, function: FunctionInfo) -> bool:
    """Whether a branch around a node hangs on a parameter of its function."""
    given = {parameter.name.value for parameter in function.parameters}
    for parent in model.tree.ancestors(node):
        if parent is function.node:
            return False
        if isinstance(parent, cst.If) and given & names_in(parent.test):
            return True
    return False


def _frame_of(root: Root) -> Frame:
    """The run of a body that nobody calls, before anything is unfolded."""
    if root.instance_of is None or root.function is None:
        return Frame(root.model, root.function)
    receiver = Thing(frozenset({root.instance_of}))
    return Frame(root.function.model, root.function, receiver=receiver, instance_of=root.instance_of)


_ALL_WORDS = WORDS | MODE_WORDS
_METHODS_OF_MODULES = ("parameters", "named_parameters", "eval")
"""What of all things with a step, a mode or a state only modules have."""
