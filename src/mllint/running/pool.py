"""Files spread over several processes, each of which does its share with a ``Runner`` of its own.

A process is handed one chunk of files at a time and sends back the outcome of each as soon as it has it. So the
process that is here knows at any time which file another one is at: when that one dies, the file is tried once more
alone, and the rest of its chunk goes to somebody else.

The files of one project stay together as far as that leaves nobody idle: what a process has learned about a project's
modules it need not learn again.
"""

import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

import msgspec

from mllint.configuration.settings import Settings
from mllint.diagnostics import Diagnostic, Location, Result, Severity, Status
from mllint.running.runner import Known, Mode, Outcome, Runner, Task
from mllint.running.shares import Share

if TYPE_CHECKING:
    from multiprocessing.context import ForkContext, ForkProcess, SpawnContext, SpawnProcess

_CHUNKS_A_PROCESS = 8
"""More are better balanced, fewer learn less twice: 2, 8 and 64 took 6, 14 and 33 % more than one process alone."""
_LEAST_CHUNK = 50_000


def spread(
    shares: Sequence[Share], mode: Mode, processes: int, learn: Callable[[list[Known]], None] | None = None
) -> Iterator[tuple[int, Outcome]]:
    """The outcomes of the tasks with their indices, in the order in which they come.

    ``learn`` is told what they rest on, always after them. However it ends, and whenever the caller stops listening,
    no process is left behind.
    """
    pool = _Pool(shares, mode, processes, learn)
    try:
        yield from pool.run()
    finally:
        pool.stop()


class _Worker:
    """A process, and what it still owes us of its chunk."""

    def __init__(self, process: "ForkProcess | SpawnProcess", connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.pending: deque[Share] = deque()
        self.group: str | None = None


class _Pool:
    """The processes, and the chunks that none of them has yet."""

    def __init__(
        self,
        shares: Sequence[Share],
        mode: Mode,
        processes: int,
        learn: Callable[[list[Known]], None] | None = None,
    ) -> None:
        self._mode = mode
        self._learn = learn
        self._settings = tuple(dict.fromkeys(share.task.settings for share in shares))
        self._number = {settings: number for number, settings in enumerate(self._settings)}
        self._chunks = _chunks(shares, processes)
        self._suspects: deque[Share] = deque()
        self._deaths: dict[int, str] = {}
        self._processes = processes
        self._workers: list[_Worker] = []
        self._context = _context()

    def run(self) -> Iterator[tuple[int, Outcome]]:
        for _ in range(self._processes):
            self._employ()
        while self._workers:
            ready = wait([worker.connection for worker in self._workers])
            for worker in [worker for worker in self._workers if worker.connection in ready]:
                yield from self._hear(worker)
        # No process could be started at all: the work is done here.
        left = [*self._suspects, *(share for chunks in self._chunks.values() for chunk in chunks for share in chunk)]
        runner = Runner(self._mode)
        yield from zip((share.index for share in left), runner.run(share.task for share in left), strict=True)

    def stop(self) -> None:
        """End all processes at once; what they are at is of no interest any more."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers = []

    def _hear(self, worker: _Worker) -> Iterator[tuple[int, Outcome]]:
        try:
            outcome = worker.connection.recv()
        except (EOFError, OSError):
            yield from self._bury(worker)
            return
        if isinstance(outcome, list):
            if self._learn is not None:
                self._learn(outcome)
            self._occupy(worker)
            return
        share = worker.pending.popleft()
        if share.index in self._deaths:
            problem = f"the process that checked this file {self._deaths[share.index]}; another one could check it"
            outcome = msgspec.structs.replace(outcome, problem=outcome.problem or problem)
        yield share.index, outcome

    def _bury(self, worker: _Worker) -> Iterator[tuple[int, Outcome]]:
        """Go on without a process that died: the file it was at is tried alone, or given up if that was done."""
        worker.process.join()
        self._dismiss(worker)
        if worker.pending:
            suspect = worker.pending.popleft()
            how = _manner_of_death(worker.process.exitcode)
            if suspect.index in self._deaths:
                yield suspect.index, Outcome(_deadly(suspect.task.path, how))
            else:
                self._deaths[suspect.index] = how
                self._suspects.append(suspect)
            if worker.pending:
                self._chunks.setdefault(worker.group or "", deque()).append(list(worker.pending))
        self._employ()

    def _employ(self) -> None:
        """Start a process, if there is anything to do for it."""
        if not self._chunks and not self._suspects:
            return
        ours, theirs = self._context.Pipe()
        inherited = [worker.connection for worker in self._workers] if self._forks else []
        process = self._context.Process(
            target=_work,
            args=(
                theirs,
                [*inherited, ours] if self._forks else [],
                self._mode,
                self._settings,
                self._learn is not None,
            ),
            name="mllint",
            daemon=True,
        )
        try:
            with _interrupts_held_back():
                process.start()
        except OSError:  # no memory or no room for a further process: those that there are go on
            ours.close()
            return
        finally:
            theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        self._occupy(worker)

    @property
    def _forks(self) -> bool:
        return self._context.get_start_method() == "fork"

    def _dismiss(self, worker: _Worker) -> None:
        worker.connection.close()
        self._workers.remove(worker)

    def _occupy(self, worker: _Worker) -> None:
        """Hand a process its next chunk, or let it go."""
        chunk = self._next_chunk(worker)
        orders = [_order(share.task, self._number[share.task.settings]) for share in chunk]
        worker.pending.extend(chunk)
        # One that died meanwhile is noticed when it is listened to.
        with suppress(OSError):
            worker.connection.send(orders)
        if not chunk:
            worker.process.join()
            self._dismiss(worker)

    def _next_chunk(self, worker: _Worker) -> list[Share]:
        """From the front of the project it is at, else from the end of the one with the most left to do."""
        if self._suspects and worker.group is None:
            return [self._suspects.popleft()]
        if not self._chunks:
            return [self._suspects.popleft()] if self._suspects else []
        if worker.group in self._chunks:
            chunk = self._chunks[worker.group].popleft()
        else:
            worker.group = max(self._chunks, key=lambda group: sum(map(_size, self._chunks[group])))
            is_taken = any(other.group == worker.group for other in self._workers if other is not worker)
            chunks = self._chunks[worker.group]
            chunk = chunks.pop() if is_taken else chunks.popleft()
        if not self._chunks[worker.group]:
            del self._chunks[worker.group]
        return chunk


def _chunks(shares: Sequence[Share], processes: int) -> dict[str, deque[list[Share]]]:
    """The shares by group in their order, cut into pieces of about the same size."""
    least = max(_LEAST_CHUNK, sum(share.size for share in shares) // (processes * _CHUNKS_A_PROCESS))
    chunks: dict[str, deque[list[Share]]] = {}
    for share in shares:
        own = chunks.setdefault(share.group, deque())
        if not own or _size(own[-1]) >= least:
            own.append([])
        own[-1].append(share)
    return chunks


def _size(chunk: Sequence[Share]) -> int:
    return sum(share.size for share in chunk)


_Order = tuple[str, int, bytes | None, bool, bool]
"""A task as it is sent: the settings by their number."""


def _order(task: Task, settings: int) -> _Order:
    return (task.path, settings, task.data, task.in_project, task.noqa)


def _work(
    connection: Connection, inherited: list[Connection], mode: Mode, settings: tuple[Settings, ...], remembers: bool
) -> None:
    """What a process of the pool does: chunk by chunk, until an empty one comes or nobody is there any more.

    It sends the outcomes of a chunk one by one, and then what they rest on.
    """
    # Ctrl-C reaches every process of the terminal; the one that started us knows what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Else nobody would notice that the process at the other end is gone.
    for other in inherited:
        other.close()
    runner = Runner(mode, remembers=remembers)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while chunk := connection.recv():
            tasks = [Task(path, settings[number], *rest) for path, number, *rest in chunk]
            for outcome in runner.run(tasks):
                connection.send(outcome)
            connection.send(runner.known())


def _context() -> "ForkContext | SpawnContext":
    """Forked processes start in no time and have the rules already; but a fork copies locks that other threads hold.

    Those that watch files are not Python's, and so not counted.
    """
    if sys.platform == "linux" and threading.active_count() == 1 and "watchfiles" not in sys.modules:
        load_rules()
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def load_rules() -> None:
    """Import what every process will need, once for all of them."""
    from mllint import engine, registry

    if engine is not None:
        registry.all_rules()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start a process that Ctrl-C does not reach; one that comes meanwhile reaches us afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _manner_of_death(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def _deadly(path: str, how: str) -> Result:
    """The result of a file that no process survives: one ML000."""
    start = Location(1, 1)
    diagnostic = Diagnostic(
        code="ML000",
        name="internal-error",
        message=f"the process that checked this file {how}",
        help="this is a bug in mllint or in its parser: please report it; the other files were checked",
        path=path,
        location=start,
        end_location=start,
        noqa_row=1,
        severity=Severity.ERROR,
    )
    return Result(path, Status.INTERNAL_ERROR, (diagnostic,))
