"""The outcomes of many files, in their order: which of them have anything to do, and how many processes do it."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from mllint.diagnostics import Result, Status
from mllint.discovery import Unreadable, reason_of
from mllint.runner import Mode, Outcome, Runner, Task, unreadable
from mllint.semantic.project_root import ProjectRoots
from mllint.shares import Share, processes_for
from mllint.syntax.gate import may_concern_rules


def outcomes(tasks: Sequence[Task], mode: Mode, *, jobs: int | None = None) -> Iterator[Outcome]:
    """The outcome of each task, in the order of the tasks and the same for any number of ``jobs``.

    ``jobs`` is how many processes may work; 1 is this one alone, ``None`` as many as pay.
    """
    if jobs == 1:
        yield from Runner(mode).run(tasks)
        return
    known, shares = _looked_at(tasks)
    with closing(_done(shares, mode, processes_for(shares, jobs))) as done:
        for index in range(len(tasks)):
            while index not in known:
                found, outcome = next(done)
                known[found] = outcome
            yield known.pop(index)


def _done(shares: Sequence[Share], mode: Mode, processes: int) -> Generator[tuple[int, Outcome], None, None]:
    """The outcomes of the shares with their indices, in whatever order they come."""
    if processes > 1:
        from mllint.pool import spread

        yield from spread(shares, mode, processes)
    else:
        results = Runner(mode).run(share.task for share in shares)
        yield from zip((share.index for share in shares), results, strict=True)


def _looked_at(tasks: Sequence[Task]) -> tuple[dict[int, Outcome], list[Share]]:
    """The outcomes of the tasks that need no rule, and what is left to do."""
    known: dict[int, Outcome] = {}
    shares: list[Share] = []
    roots = ProjectRoots()
    for index, task in enumerate(tasks):
        try:
            data = Path(task.path).read_bytes() if task.data is None else task.data
        except OSError as error:
            known[index] = Outcome(unreadable(Unreadable(task.path, reason_of(error))))
            continue
        if may_concern_rules(data):
            shares.append(Share(index, task, len(data), str(roots.of(task.path))))
        else:
            known[index] = Outcome(Result(task.path, Status.SKIPPED))
    return known, shares
