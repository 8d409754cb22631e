"""One run of ``mllint check``: from paths to what is printed and the exit code."""

import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
import msgspec

from mllint.command.annotate import Annotation, Annotator
from mllint.configuration.files import Resolver
from mllint.configuration.settings import ConfigurationError
from mllint.output import summary, text
from mllint.output.diff import unified_diff
from mllint.output.found import View, findings
from mllint.output.progress import with_progress
from mllint.output.report import Format, report, statistics_report
from mllint.output.sink import Sink
from mllint.output.style import Style, printable
from mllint.running import batch
from mllint.running.baseline import DEFAULT_NAME, Baseline, Stale, load
from mllint.running.discovery import Discovery, discover, is_excluded
from mllint.running.runner import Mode, Outcome, Runner, Task, followed, unreadable, written
from mllint.running.writer import WriteError
from mllint.semantic.files.project_root import ProjectRoots

if TYPE_CHECKING:
    from mllint.running.cache import Cache

CLEAN, FOUND, FAILED = 0, 1, 2
"""Exit codes."""
_MAX_ROUNDS = 10
"""How often the files of a project are looked at again because something was mended in one of them."""
_SHOWN_STALE = 10
"""How many entries of the baseline that are out of date are named."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a run, as far as it is not a matter of configuration."""

    form: Format = Format.FULL
    fixes: bool = False
    unsafe: bool = False
    diff: bool = False
    statistics: bool = False
    exit_zero: bool = False
    isolated: bool = False
    quiet: bool = False
    verbose: bool = False
    jobs: int | None = None
    uses_cache: bool = True
    cache_folder: str | None = None
    style: Style = Style()
    output_file: str | None = None
    """Where the findings (or differences) go instead of the standard output."""
    fix_only: bool = False
    """Whether what is left after fixing is of no interest."""
    show_fixes: bool = False
    exit_non_zero_on_fix: bool = False
    suppressions: str | None = None
    """The file with accepted findings, where it is not the usual one."""
    suppress: tuple[str, ...] = ()
    """Rules whose findings are accepted from now on."""
    prune: bool = False
    """Whether accepted findings that are gone are taken off the list."""
    ignores_stale: bool = False
    """Whether accepted findings that are gone are no failure."""
    shows_progress: bool = False
    """Whether a person watches who would like to know how far the work is."""
    annotation: Annotation | None = None
    """The comments to be written for what is found."""


def check_paths(paths: Iterable[str], resolver: Resolver, request: Request) -> int:
    """Check the files at and below the paths, print what there is to say, and give the exit
    code.
    """
    started = time.monotonic()
    paths = tuple(paths)
    accepted = _baseline(request)
    if accepted is None:
        return FAILED
    discovery = discover(paths, resolver)
    _report_discovery(discovery, request)
    tasks = [Task(file.path, file.configuration.settings) for file in discovery.files]
    mode = Mode(request.fixes, request.unsafe)
    done = batch.outcomes(tasks, mode, jobs=request.jobs, cache=_cache_for(request))
    if request.shows_progress:
        done = with_progress(done, len(tasks))
    # Only what has something to say is kept: a run may be over very many files.
    outcomes = [outcome for outcome in done if outcome.result.diagnostics or outcome.change or outcome.problem]
    try:
        outcomes, stale = _new(outcomes, tasks, paths, accepted, request)
    except ConfigurationError as error:
        _error(str(error))
        return FAILED
    if not request.diff:
        outcomes = [written(outcome) for outcome in outcomes]
    if request.fixes and not request.diff:
        outcomes = _settled(outcomes, tasks, request)
    outcomes += [Outcome(unreadable(problem)) for problem in discovery.unreadable]
    if request.verbose:
        _note(f"{len(tasks)} file(s) in {time.monotonic() - started:.2f} s")
    failed = discovery.nothing_exists or bool(discovery.configuration_errors)
    code = _finish(outcomes, len(tasks), request)
    if stale and not (request.exit_zero or request.ignores_stale):
        code = max(code, FOUND)
    return max(code, FAILED if failed else CLEAN)


def _settled(outcomes: list[Outcome], tasks: list[Task], request: Request) -> list[Outcome]:
    """The outcomes when no file has anything left to mend that another one, mended, has brought to light.

    Every file was judged beside the others as they were; so the projects in which something was mended are looked at
    again.
    """
    roots, order = ProjectRoots(), {task.path: index for index, task in enumerate(tasks)}
    found = {outcome.result.path: outcome for outcome in outcomes}
    latest = outcomes
    for _ in range(_MAX_ROUNDS):
        changed = {roots.of(outcome.result.path) for outcome in latest if outcome.change and not outcome.write_failed}
        pending = [task for task in tasks if roots.of(task.path) in changed]
        accepted = _baseline(request)
        if len(pending) < 2 or accepted is None:
            break  # one file alone is settled already
        mode = Mode(request.fixes, request.unsafe)
        done = batch.outcomes(pending, mode, jobs=request.jobs, cache=_cache_for(request))
        latest = [written(accepted.without_accepted(outcome)) for outcome in done]
        for outcome in latest:
            path = outcome.result.path
            found[path] = followed(found[path], outcome) if path in found else outcome
    told = (item for item in found.values() if item.result.diagnostics or item.change or item.problem)
    return sorted(told, key=lambda outcome: order[outcome.result.path])


def _baseline(request: Request) -> Baseline | None:
    """The accepted findings; ``None`` where they cannot be read, which is said."""
    if request.isolated and request.suppressions is None and not (request.suppress or request.prune):
        return Baseline(DEFAULT_NAME)
    try:
        return load(request.suppressions, may_be_missing=bool(request.suppress))
    except ConfigurationError as error:
        _error(str(error))
        return None


def _new(
    outcomes: list[Outcome], tasks: list[Task], paths: tuple[str, ...], baseline: Baseline, request: Request
) -> tuple[list[Outcome], list[Stale]]:
    """The outcomes without what is accepted, and what is accepted and gone.

    Raises:
        ConfigurationError: the list of what is accepted cannot be written.
    """
    accepted = baseline.accepting(outcomes, request.suppress) if request.suppress else baseline
    stale = accepted.stale(tasks, outcomes, paths)
    if stale and (request.prune or request.suppress):
        accepted, stale = accepted.pruned(stale), []
    if accepted.counts != baseline.counts:
        accepted.write()
    shown = [accepted.without_accepted(outcome) for outcome in outcomes]
    if not request.quiet:
        _report_accepted(outcomes, shown, accepted)
    _report_stale(stale, accepted)
    if request.annotation is not None:
        annotator = Annotator(request.annotation)
        by_path = {task.path: task for task in tasks}
        shown = [
            annotator.annotated(left, by_path[left.result.path], accepted.hidden_codes_of(outcome.result))
            for outcome, left in zip(outcomes, shown, strict=True)
        ]
    return shown, stale


def _report_accepted(before: list[Outcome], after: list[Outcome], accepted: Baseline) -> None:
    count = len(findings(before)) - len(findings(after))
    if count:
        _note(f"{summary.number(count, 'accepted finding')} not shown ({accepted.path}).")


def _report_stale(stale: list[Stale], accepted: Baseline) -> None:
    for entry in stale[:_SHOWN_STALE]:
        text = f"{entry.code} is accepted {summary.number(entry.accepted, 'time')} and found {entry.found}"
        click.echo(f"mllint: warning: {accepted.path}: {printable(entry.path)}: {text}", err=True)
    if stale:
        entries = summary.number(len(stale), "entry is", "entries are")
        click.echo(
            f"mllint: warning: {accepted.path}: {entries} out of date: `--prune-suppressions` mends that", err=True
        )


def _cache_for(request: Request) -> "Callable[[], Cache] | None":
    """How to open the cache, where one is wanted."""
    if not request.uses_cache:
        return None

    def opened() -> "Cache":
        from mllint.running.cache import Cache, default_folder

        return Cache(request.cache_folder or default_folder())

    return opened


def check_stdin(name: str | None, resolver: Resolver, request: Request) -> int:
    """Check standard input, called ``name``. With fixes, the mended source is what is printed."""
    data = sys.stdin.buffer.read()
    accepted = _baseline(request)
    if accepted is None:
        return FAILED
    try:
        configuration = resolver.for_folder(os.path.dirname(name or ""))
    except ConfigurationError as error:
        _error(str(error))
        return FAILED
    if name and configuration.files.force_exclude and is_excluded(name, configuration):
        outcomes = []
    else:
        task = Task(
            name or "-",
            configuration.settings,
            data=data,
            in_project=name is not None,
        )
        outcomes = [accepted.without_accepted(Runner(Mode(request.fixes, request.unsafe)).outcome(task))]
    if request.fixes and not request.diff:
        change = outcomes[0].change if outcomes else None
        Sink(None, Style()).data(change.after if change else data)
    return _finish(outcomes, 1, request, stdout_is_taken=request.fixes and not request.diff)


def _finish(outcomes: list[Outcome], files: int, request: Request, *, stdout_is_taken: bool = False) -> int:
    """Print findings or differences and the closing sentence, and give the exit code."""
    _report_problems(outcomes)
    try:
        if request.fix_only and not request.diff:
            _print_unchecked(outcomes, request)
            if not request.quiet:
                _note(summary.fix_summary(_fixed(outcomes), len([item for item in outcomes if item.fixed])))
        else:
            with Sink(request.output_file, request.style, to_stderr=stdout_is_taken) as sink:
                if request.diff:
                    _print_diff(outcomes, request, sink)
                else:
                    _print_findings(outcomes, files, request, sink)
    except WriteError as error:
        _error(f"{request.output_file}: {error}")
        return FAILED
    if request.show_fixes and not request.quiet:
        for line in summary.listed_fixes((outcome.result.path, outcome.fixed) for outcome in outcomes):
            _note(line)
    return _exit_code(outcomes, request)


def _exit_code(outcomes: list[Outcome], request: Request) -> int:
    diagnostics = findings(outcomes)
    if any(diagnostic.code == "ML000" for diagnostic in diagnostics):
        return FAILED
    if any(outcome.write_failed for outcome in outcomes):
        return FAILED
    if request.exit_zero:
        return CLEAN
    if request.exit_non_zero_on_fix and _fixed(outcomes):
        return FOUND
    if request.diff:
        return FOUND if any(item.change or _is_own(item) for item in outcomes) else CLEAN
    if request.fix_only:
        return FOUND if any(map(_is_own, outcomes)) else CLEAN
    return FOUND if diagnostics else CLEAN


def _fixed(outcomes: list[Outcome]) -> int:
    return sum(len(outcome.fixed) for outcome in outcomes)


def _is_own(outcome: Outcome) -> bool:
    """Whether the file could not be checked."""
    return any(diagnostic.is_own for diagnostic in outcome.result.diagnostics)


def _print_findings(outcomes: list[Outcome], files: int, request: Request, sink: Sink) -> None:
    shape = statistics_report if request.statistics else report
    for piece in shape(outcomes, request.form, View(sink.style, request.unsafe)):
        sink.line(piece)
    if request.quiet or (request.form.is_for_programs and not sink.goes_to_file):
        return
    left, fixed = findings(outcomes), _fixed(outcomes)
    if request.annotation is not None and fixed:
        changed = sum(outcome.change is not None for outcome in outcomes)
        _note(summary.annotation_summary(fixed, changed, len(left)))
    else:
        _note(summary.summary(left, fixed=fixed, files=files, fixing=request.fixes, unsafe=request.unsafe))


def _print_diff(outcomes: list[Outcome], request: Request, sink: Sink) -> None:
    fixed = changed = 0
    for outcome in sorted(outcomes, key=lambda outcome: outcome.result.path):
        if outcome.change:
            path, change = outcome.result.path, outcome.change
            sink.data(unified_diff(path, change.before, change.after, sink.style))
            fixed += len(outcome.fixed)
            changed += 1
    _print_unchecked(outcomes, request)
    if not request.quiet:
        _note(summary.diff_summary(fixed, changed))


def _print_unchecked(outcomes: list[Outcome], request: Request) -> None:
    """Say which files could not be checked, where findings are not shown."""
    unchecked = [outcome for outcome in outcomes if _is_own(outcome)]
    for line in text.concise(findings(unchecked), Style(), unsafe=request.unsafe):
        click.echo(line, err=True)


def _report_discovery(discovery: Discovery, request: Request) -> None:
    for error in discovery.configuration_errors:
        _error(str(error))
    if request.verbose:
        used = {file.configuration.source or "defaults" for file in discovery.files}
        for source in sorted(used):
            _note(f"configuration: {source}")
    if not (request.quiet or discovery.files or discovery.unreadable or discovery.configuration_errors):
        click.echo("mllint: warning: no Python files found", err=True)
    settings = [file.configuration.settings for file in discovery.files]
    if not request.quiet and settings and not any(item.select or item.extend_select for item in settings):
        click.echo("mllint: warning: no rule is selected", err=True)


def _report_problems(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.problem:
            click.echo(f"mllint: warning: {printable(outcome.result.path)}: {outcome.problem}", err=True)


def _error(message: str) -> None:
    click.echo(f"mllint: error: {printable(message)}", err=True)


def _note(message: str) -> None:
    click.echo(printable(message), err=True)
