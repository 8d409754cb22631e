"""Calling a framework's functions on small samples, to see what comes back and what was changed.

A function is called with every sample that fits its first parameter; the others are filled in by what their names
mean. What all successful calls agree on is the fact; where none succeeds there is no fact.
"""

import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast, get_args

from mllint._dev.knowledge.signatures import Parameter, Signature
from mllint.knowledge.schema import Returns

Maker = Callable[[], Any]
"""Makes one fresh sample; fresh, because a function may change what it is given."""

_MOST_CALLS = 160
_SECONDS_EACH = 10


class Samples(Protocol):
    """What the probe must know about a framework."""

    def firsts(self, name: str) -> tuple[Maker, ...]:
        """What a function's first parameter of this name may take: tensors of different rank and dtype, or else."""
        ...

    def arguments(self, name: str, receiver: Any) -> tuple[Any, ...]:
        """Values that a required parameter of this name may take beside this first argument, likeliest first."""
        ...

    def fingerprint(self, value: Any) -> Any:
        """Something that differs when a tensor was changed in place; ``None`` for what is no tensor."""
        ...

    def returns(self, value: Any) -> Returns:
        """What kind of thing came back."""
        ...

    def rank(self, value: Any) -> int:
        """The number of dimensions of a tensor."""
        ...


class Outcome(NamedTuple):
    """One successful call: the rank of the first argument, what came back, whether it is the argument, and changed."""

    rank: int
    returns: Returns
    result_rank: int
    same: bool
    changed: bool


class _TookTooLongError(Exception):
    pass


def observe(function: Callable[..., Any], signature: Signature, samples: Samples) -> Returns | None:
    """What one call gives, by calling; ``None`` when no sample fits, the calls disagree or take too long."""
    outcomes: list[Outcome] = []
    with guarded() as attempt:
        outcomes.extend(_outcomes(function, signature, samples))
    # Half of the outcomes would depend on how fast this machine is.
    if attempt.timed_out or not outcomes:
        return None
    if any(outcome.changed for outcome in outcomes):
        # An in-place method that had nothing to change (`detach_` of a leaf) still gives its receiver.
        return "self" if all(outcome.same for outcome in outcomes) else None
    kinds = {outcome.returns for outcome in outcomes}
    if kinds != {"tensor"}:
        return kinds.pop() if len(kinds) == 1 else None
    # A matrix must become 0-d, and a batch of matrices too: `det` of a batch is one number each.
    scalar = all(outcome.result_rank == 0 for outcome in outcomes if outcome.rank > 0)
    return "scalar" if scalar and any(outcome.rank > 0 for outcome in outcomes) else "tensor"


def _outcomes(function: Callable[..., Any], signature: Signature, samples: Samples) -> Iterator[Outcome]:
    required = [it for it in signature.parameters if it.required and it.star != "**"]
    for make in _firsts(required, samples):
        outcome = _first_success(function, required, make, samples)
        if outcome is not None:
            yield outcome


def _firsts(required: list[Parameter], samples: Samples) -> tuple[Maker, ...]:
    if not required:
        return (lambda: None,)
    # `f(*tensors)` is called with one.
    return samples.firsts("self" if required[0].star and required[0].name != "size" else required[0].name)


def _first_success(
    function: Callable[..., Any], required: list[Parameter], make: Maker, samples: Samples
) -> Outcome | None:
    if not required:
        return _call(function, (), {}, None, samples)
    choices = [samples.arguments(it.name, make()) for it in required[1:]]
    for values in itertools.islice(itertools.product(*choices), _MOST_CALLS):
        receiver = make()
        positional, named = [receiver], {}
        for parameter, value in zip(required[1:], values, strict=True):
            if parameter.keyword_only:
                named[parameter.name] = value
            else:
                positional.append(value)
        outcome = _call(function, tuple(positional), named, receiver, samples)
        if outcome is not None:
            return outcome
    return None


def _call(
    function: Callable[..., Any],
    positional: tuple[Any, ...],
    named: dict[str, Any],
    receiver: Any,
    samples: Samples,
) -> Outcome | None:
    before = samples.fingerprint(receiver)
    try:
        result = function(*positional, **named)
    except _TookTooLongError:
        raise
    except Exception:  # noqa: BLE001
        # Whatever the framework raises for a sample that does not fit: that sample says nothing.
        return None
    if type(result) in (tuple, list) and not result:
        return None  # an empty group does not tell of what
    changed = before is not None and before != samples.fingerprint(receiver)
    returns = samples.returns(result)
    result_rank = samples.rank(result) if returns == "tensor" else -1
    receiver_rank = samples.rank(receiver) if before is not None else -1
    # What is changed and given back is the receiver; what is changed on the way (a scratch buffer) is not the result.
    same = result is receiver
    return Outcome(receiver_rank, returns, result_rank, same, changed and same)


def isolated(works: Mapping[str, Callable[[], Returns | None]]) -> dict[str, Returns | None]:
    """The results of pieces of work done in a child process, by name; ``None`` where the child crashed.

    A wrong argument can make a framework's C++ part read where it must not. After a crash a new child goes on with the
    next piece; nothing that a piece switches for its process reaches the caller.
    """
    results: dict[str, Returns | None] = dict.fromkeys(works)
    waiting = list(works)
    while waiting:
        lines = _in_child({name: works[name] for name in waiting})
        for line in lines:
            name, _, answer = line.partition(" ")
            results[name] = cast(Returns, answer) if answer in get_args(Returns) else None
        # The piece after the last answer is the one that crashed.
        waiting = waiting[len(lines) + 1 :]
    return results


def _in_child(works: Mapping[str, Callable[[], Returns | None]]) -> list[str]:
    """One line ``name answer`` for each piece of work up to the first that crashes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            for name, work in works.items():
                os.write(writer, f"{name} {work() or ''}\n".encode())
        finally:
            # No clean-up of what belongs to the parent.
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    os.waitpid(child, 0)
    return lines


class Attempt:
    """How a guarded piece of work ended."""

    timed_out = False
    failed = False


@contextlib.contextmanager
def guarded() -> Iterator[Attempt]:
    """Run framework code that may fail in any way: silent, bounded in time, its exceptions noted and dropped."""

    def stop(number: int, frame: object) -> None:
        raise _TookTooLongError

    attempt = Attempt()
    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS_EACH)
    try:
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            yield attempt
    except _TookTooLongError:
        attempt.timed_out = True
    except Exception:  # noqa: BLE001
        # Whatever a framework raises for a sample that does not fit: that sample says nothing.
        attempt.failed = True
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
