"""The outcomes of many files, in their order: which of them have anything to do, and how many processes do it."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from mllint.diagnostics import Result, Status
from mllint.running.discovery import Unreadable, reason_of
from mllint.running.memory import AT_ONCE, Memory
from mllint.running.runner import Known, Mode, Outcome, Runner, Task, unreadable
from mllint.running.shares import Share, processes_for
from mllint.semantic.files.project_root import ProjectRoots
from mllint.syntax.gate import may_concern_rules

if TYPE_CHECKING:
    from mllint.running.cache import Cache


def outcomes(
    tasks: Sequence[Task],
    mode: Mode,
    *,
    jobs: int | None = None,
    cache: "Callable[[], Cache] | None" = None,
) -> Iterator[Outcome]:
    """The outcome of each task, in the order of the tasks, the same for any number of ``jobs`` and any ``cache``.

    ``jobs`` is how many processes may work; 1 is this one alone, ``None`` as many as pay. The cache, opened where there
    is a use for it, is asked first, and told what is found.
    """
    if jobs == 1 and cache is None:
        yield from Runner(mode).run(tasks)
        return
    memory = None if cache is None else Memory(cache, mode)
    known, shares = _looked_at(tasks, memory)
    if memory is None:
        yield from _in_order(len(tasks), known, shares, mode, jobs, None)
    else:
        with closing(memory):
            yield from _in_order(len(tasks), known, shares, mode, jobs, memory)


def _in_order(
    count: int,
    known: dict[int, Outcome],
    shares: Sequence[Share],
    mode: Mode,
    jobs: int | None,
    memory: Memory | None,
) -> Iterator[Outcome]:
    """All outcomes: those that are known, and those of the shares."""
    processes = processes_for(shares, jobs)
    if memory is not None and shares:
        memory.pause()
    with closing(_done(shares, mode, processes, None if memory is None else memory.learn)) as done:
        for index in range(count):
            while index not in known:
                found, outcome = next(done)
                known[found] = outcome
                if memory is not None:
                    memory.see(outcome)
            yield known.pop(index)
        # What was learned last is told after the last outcome.
        next(done, None)


Learn = Callable[[list[Known]], None]


def _done(
    shares: Sequence[Share], mode: Mode, processes: int, learn: Learn | None
) -> Generator[tuple[int, Outcome], None, None]:
    """The outcomes of the shares with their indices, in whatever order they come."""
    if not shares:
        return
    if processes > 1:
        from mllint.running.pool import spread

        yield from spread(shares, mode, processes, learn)
        return
    runner = Runner(mode, remembers=learn is not None)
    results = runner.run(share.task for share in shares)
    for count, (share, outcome) in enumerate(zip(shares, results, strict=True), start=1):
        yield share.index, outcome
        if learn is not None and count % AT_ONCE == 0:
            learn(runner.known())
    if learn is not None:
        learn(runner.known())


def _looked_at(tasks: Sequence[Task], memory: Memory | None) -> tuple[dict[int, Outcome], list[Share]]:
    """The outcomes of the tasks that need no rule or are remembered, and what is left to do."""
    known: dict[int, Outcome] = {}
    shares: list[Share] = []
    roots = ProjectRoots()
    for index, task in enumerate(tasks):
        try:
            data = _content(task.path) if task.data is None else task.data
        except OSError as error:
            known[index] = Outcome(unreadable(Unreadable(task.path, reason_of(error))))
            continue
        if not may_concern_rules(data, task.path):
            known[index] = Outcome(Result(task.path, Status.SKIPPED))
            continue
        root = str(roots.of(task.path))
        remembered = None if memory is None or task.data is not None else memory.outcome(task, data, root)
        if remembered is None:
            shares.append(Share(index, task, len(data), root))
        else:
            known[index] = remembered
    return known, shares


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
