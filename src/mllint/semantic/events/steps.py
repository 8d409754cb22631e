"""The steps of a run: events, and the branches, loops, contexts and helper functions in which they stand."""

import enum
from collections.abc import Callable, Iterator
from typing import TypeAlias

import libcst as cst
import msgspec

from mllint.semantic.events.applied import module_applied
from mllint.semantic.events.things import Frame, Thing


class Kind(enum.Enum):
    """What happens to a thing in an event."""

    FORWARD = "forward"
    """A module is called."""
    BACKWARD = "backward"
    """Gradients are computed; the thing is the loss, ``other`` the scaler that scaled it."""
    STEP = "step"
    """An optimizer updates its parameters; ``other`` is the scaler through which it does."""
    MINIMIZE = "minimize"
    """Paddle's ``minimize``: in dynamic mode an update with the gradients that are there."""
    UPDATE = "update"
    """The parameters of a module are changed by hand, with their own gradients."""
    ZERO = "zero"
    """Gradients are cleared: those of an optimizer, a module, or (no thing) of some parameters."""
    WRITE_GRADIENT = "write gradient"
    """Gradients are set by hand."""
    CLIP = "clip"
    """Gradients are clipped: those of a module or an optimizer, or (no thing) of some parameters."""
    SCALE = "scale"
    """A scaler (``other``) multiplies a loss."""
    UNSCALE = "unscale"
    """A scaler (``other``) divides the gradients of an optimizer by its scale."""
    UPDATE_SCALE = "update scale"
    """A scaler's ``update()``."""
    SCHEDULE = "schedule"
    """A scheduler steps."""
    TRAIN = "train"
    EVAL = "eval"
    SET_MODE = "set mode"
    """A module is switched to a mode that is not written there: ``model.train(was_training)``."""
    FREEZE = "freeze"
    """A module's parameters stop, or may stop, to ask for gradients."""
    THAW = "thaw"
    """A module's parameters ask for gradients (again)."""
    COPY = "copy"
    """A deep copy of a thing is made."""
    LOAD = "load"
    """State is loaded into a thing."""
    TRACE = "trace"
    """A module is run to write down what it does in the mode in which it is."""
    SAVE = "save"
    """Something is written to a file."""
    UNKNOWN = "unknown"
    """Something that cannot be looked into, with all that it is given."""


UPDATES = frozenset({Kind.STEP, Kind.MINIMIZE})
"""What an optimizer does to parameters."""


class Around(msgspec.Struct, frozen=True):
    """A step that holds others, and which of its arms they stand in."""

    step: "Branches | Loop | Within | Attempt | Helper"
    arm: int = 0


class Event(msgspec.Struct, eq=False):
    """Something that happens at a node.

    ``thing`` is what it happens to (``None``: cannot be told, or nothing in particular). ``is_proven``: the model knows
    what is called; otherwise only its name says so. ``around`` are the steps that hold the event, outermost first.
    ``touching`` tells which things something unknown is given; few are ever asked.
    """

    kind: Kind
    node: cst.CSTNode
    frame: Frame
    thing: Thing | None = None
    other: Thing | None = None
    is_proven: bool = True
    around: tuple[Around, ...] = ()
    touching: "Callable[[], tuple[Thing | None, ...]]" = tuple
    _touched: tuple[Thing | None, ...] | None = None

    @property
    def touched(self) -> tuple[Thing | None, ...]:
        """The things that something unknown is given; ``None`` among them for what cannot be told."""
        if self._touched is None:
            self._touched = self.touching()
        return self._touched

    @property
    def called(self) -> cst.BaseExpression | None:
        """What a forward pass calls, as it is written there, also by a function of a library; ``None``: no call."""
        if not isinstance(self.node, cst.Call):
            return None
        return module_applied(self.frame.model, self.node) or self.node.func

    def concerns(self, thing: Thing | None) -> bool:
        """Whether it may have to do with a thing: with that very one, or with something that cannot be told."""
        if self.kind is Kind.UNKNOWN:
            return any(item is None or thing is None or item.may_be(thing) for item in self.touched)
        return self.thing is None or thing is None or self.thing.may_be(thing)

    @property
    def loops(self) -> "tuple[Loop, ...]":
        """The loops in which it happens, outermost first, those of the callers included."""
        return tuple(around.step for around in self.around if isinstance(around.step, Loop))

    def happens_in_every_round(self, loop: "Loop") -> bool:
        """Whether no branch stands between the loop and the event."""
        return loop in self.loops and not any(
            isinstance(around.step, (Branches, Attempt)) for around in self.within(loop)
        )

    def within(self, loop: "Loop") -> "tuple[Around, ...]":
        """What stands between a loop around it and the event itself, from the outside in."""
        steps = [around.step for around in self.around]
        return self.around[steps.index(loop) + 1 :] if loop in steps else ()


class Branches(msgspec.Struct, eq=False):
    """Arms of which one runs. ``node`` is the ``if``, ``match``, conditional or ``and``/``or``, or the call of one of
    several functions.
    """

    node: cst.CSTNode
    frame: Frame
    arms: tuple["list[Step]", ...] = ()
    facts: dict[bool, tuple[tuple[str, bool], ...]] = {}
    """What is known in the first arm, and in the others: kept here by ``guards.py``."""


class Loop(msgspec.Struct, eq=False):
    """``runs``: it is taken to have at least one round. ``is_endless``: only a word leaves it."""

    node: cst.For | cst.While | cst.CompFor
    frame: Frame
    runs: bool = True
    is_endless: bool = False
    body: "list[Step]" = []
    orelse: "list[Step]" = []


class Within(msgspec.Struct, eq=False):
    """The body of a ``with``."""

    node: cst.With
    frame: Frame
    body: "list[Step]" = []


class Round(msgspec.Struct, eq=False):
    """One round of a loop over a few things, whose rounds follow each other: ``continue`` ends it."""

    body: "list[Step]" = []


class Attempt(msgspec.Struct, eq=False):
    """A ``try``: the handlers begin wherever the body was interrupted."""

    node: cst.CSTNode
    frame: Frame
    body: "list[Step]" = []
    handlers: tuple["list[Step]", ...] = ()
    orelse: "list[Step]" = []
    final: "list[Step]" = []


class Helper(msgspec.Struct, eq=False):
    """The body of a function of the project, at a call of it. ``frame`` is the run of that body."""

    node: cst.Call
    frame: Frame
    body: "list[Step]" = []


class Leave(msgspec.Struct, frozen=True):
    """``break``, ``continue``, ``return`` or ``raise``, as which ``exit()`` counts."""

    word: str


Step: TypeAlias = Event | Branches | Loop | Within | Round | Attempt | Helper | Leave


def events(steps: "list[Step]") -> Iterator[Event]:
    """All events in some steps, in the order in which they are written."""
    for step in steps:
        match step:
            case Event():
                yield step
            case Branches():
                for arm in step.arms:
                    yield from events(arm)
            case Loop():
                yield from events(step.body)
                yield from events(step.orelse)
            case Within() | Round() | Helper():
                yield from events(step.body)
            case Attempt():
                yield from events(step.body)
                yield from events(step.orelse)
                for handler in step.handlers:
                    yield from events(handler)
                yield from events(step.final)
