"""What may have happened before an event: every way through the steps of a run, followed at once.

A question gives the state in which a run begins and says how each event changes it. The answer is, for each event, the
set of states in which it may find the run: what all of them agree on must have happened, what one of them says may
have. A state is any hashable value, and there must be few of them.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mllint.semantic.events.steps import Attempt, Branches, Event, Helper, Leave, Loop, Round, Step, Within

StateT = TypeVar("StateT", bound=Hashable)
_MAX_ROUNDS = 32


@dataclass(frozen=True, slots=True)
class _Ends(Generic[StateT]):
    """How a sequence of steps may end: by running to its end, or by a word."""

    next: frozenset[StateT]
    left: dict[str, frozenset[StateT]]

    def and_left(self, others: "Iterable[_Ends[StateT]]", next_: frozenset[StateT]) -> "_Ends[StateT]":
        left = dict(self.left)
        for other in others:
            for word, states in other.left.items():
                left[word] = left.get(word, frozenset()) | states
        return _Ends(next_, left)


class Paths(Generic[StateT]):
    """The states in which a run may be at each event."""

    def __init__(
        self,
        steps: Iterable[Step],
        start: StateT,
        advance: Callable[[StateT, Event], StateT],
        restarts: Callable[[Loop], bool] = lambda _: False,
    ) -> None:
        """``restarts`` says of which loops every round begins as the run does, whatever happened in the last one."""
        self._advance = advance
        self._start = start
        self._restarts = restarts
        self._at: dict[Event, set[StateT]] = {}
        self._passed: list[set[StateT]] = []
        """For each ``try`` that is being followed, every state in which it has been."""
        ends = self._sequence(steps, frozenset({start}))
        self.end = ends.next
        self.left = ends.next | ends.left.get("return", frozenset())
        """The states in which the run is left, also by a ``return``."""

    def before(self, event: Event) -> frozenset[StateT]:
        """The states in which an event may find the run; empty where nothing leads to it."""
        return frozenset(self._at.get(event, ()))

    def _sequence(self, steps: Iterable[Step], states: frozenset[StateT]) -> _Ends[StateT]:
        ends: _Ends[StateT] = _Ends(states, {})
        for step in steps:
            if not ends.next:
                break
            here = self._step(step, ends.next)
            ends = ends.and_left((here,), here.next)
        return ends

    def _step(self, step: Step, states: frozenset[StateT]) -> _Ends[StateT]:
        match step:
            case Event():
                self._at.setdefault(step, set()).update(states)
                after = frozenset(self._advance(state, step) for state in states)
                for passed in self._passed:
                    passed |= after
                return _Ends(after, {})
            case Leave():
                return _Ends(frozenset(), {step.word: states})
            case Within():
                return self._sequence(step.body, states)
            case Round():
                inner = self._sequence(step.body, states)
                return _Ends(inner.next | inner.left.pop("continue", frozenset()), inner.left)
            case Helper():
                inner = self._sequence(step.body, states)
                left = {word: found for word, found in inner.left.items() if word == "raise"}
                return _Ends(inner.next | inner.left.get("return", frozenset()), left)
            case Branches():
                arms = [self._sequence(arm, states) for arm in step.arms]
                empty: _Ends[StateT] = _Ends(frozenset(), {})
                return empty.and_left(arms, frozenset().union(*(arm.next for arm in arms)))
            case Loop():
                return self._loop(step, states)
            case Attempt():
                return self._attempt(step, states)

    def _loop(self, loop: Loop, states: frozenset[StateT]) -> _Ends[StateT]:
        restarts, nothing = self._restarts(loop), frozenset[StateT]()
        entering = frozenset({self._start}) if restarts else states
        for _ in range(_MAX_ROUNDS):
            body = self._sequence(loop.body, entering)
            round_end = body.next | body.left.get("continue", nothing)
            if restarts or round_end <= entering:
                break
            entering |= round_end
        # A loop over data is taken to run: that there may be none says nothing about what it does.
        done = nothing if loop.is_endless else round_end if loop.runs else round_end | states
        orelse = self._sequence(loop.orelse, done)
        left = {word: found for word, found in body.left.items() if word not in ("continue", "break")}
        return _Ends(nothing, left).and_left((orelse,), orelse.next | body.left.get("break", nothing))

    def _attempt(self, attempt: Attempt, states: frozenset[StateT]) -> _Ends[StateT]:
        self._passed.append(set(states))
        body = self._sequence((*attempt.body, *attempt.orelse), states)
        interrupted = frozenset(self._passed.pop()) | body.left.get("raise", frozenset())
        handlers = [self._sequence(handler, interrupted) for handler in attempt.handlers]
        if handlers:
            body.left.pop("raise", None)
        ends = body.and_left(handlers, body.next.union(*(handler.next for handler in handlers)))
        final = self._sequence(attempt.final, ends.next)
        return ends.and_left((final,), final.next)
