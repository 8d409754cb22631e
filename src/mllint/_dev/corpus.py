"""Run the rules over folders of real code and report what they find, as Markdown.

The report answers four questions: what fires how often, is it right (a random sample with its
context, to be judged by a person), does anything crash, hang or take long, and (``--fix-check``)
do the fixes hold what they promise. Nothing in the folders is written.
"""

import argparse
import functools
import resource
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mllint import engine, registry
from mllint._dev.corpus_report import FileReport, Wanted, write_report
from mllint._dev.files import python_files
from mllint._dev.fix_check import check_fixes
from mllint._dev.isolate import ProcessDied, TimeLimitError, run_each, time_limit
from mllint.running.runner import garbage_left_alone
from mllint.semantic.project import Project


@dataclass(frozen=True, slots=True)
class Job:
    """One file to look at and how.

    ``root`` is the root of its project where that is not to be found by what lies in the folders.
    """

    path: str
    root: str | None
    select: tuple[str, ...]
    seconds_allowed: float
    check_fixes: bool
    unsafe: bool


def main(arguments: list[str]) -> int:
    """Print the report; 1 when a file crashed, hung, or was fixed wrongly."""
    options = _parser().parse_args(arguments)
    select = tuple(options.select or options.rule or ["ML"])
    started = time.perf_counter()
    reports = examine(
        python_files(options.path),
        select,
        roots=options.path if options.roots else (),
        jobs=options.jobs,
        seconds_allowed=options.timeout,
        fixes=options.fix_check,
        unsafe=options.unsafe_fixes,
    )
    seconds = time.perf_counter() - started
    wanted = Wanted(
        codes=frozenset(rule.code for rule in registry.select(options.rule or select, ()).rules),
        sample=options.sample,
        sample_per_rule=options.sample_per_rule,
        seed=options.seed,
        context=options.context,
        slow=options.slow,
    )
    if options.list is not None:
        options.list.write_text("".join(_listing(reports, wanted.codes)), encoding="utf-8")
    report = write_report(reports, seconds, wanted)
    if options.output is None:
        sys.stdout.write(report)
    else:
        options.output.write_text(report, encoding="utf-8")
    return int(any(is_broken(report) for report in reports))


def examine(
    paths: list[Path],
    select: tuple[str, ...],
    *,
    roots: Iterable[Path] = (),
    jobs: int = 1,
    seconds_allowed: float = 60.0,
    fixes: bool = False,
    unsafe: bool = False,
) -> list[FileReport]:
    """One report a file, in the order of the paths. ``roots`` are folders that are known to be projects."""
    known = set(roots)
    work = [Job(str(path), _root(path, known), select, seconds_allowed, fixes, unsafe) for path in paths]
    reports = []
    for job, outcome in zip(work, run_each(_examine_file, work, jobs), strict=True):
        died = FileReport(job.path, failure="the process died")
        reports.append(died if isinstance(outcome, ProcessDied) else outcome)
        if len(reports) % 1000 == 0:
            print(f"{len(reports)} of {len(work)} files", file=sys.stderr)
    return reports


def _root(path: Path, known: set[Path]) -> str | None:
    return next((str(folder) for folder in path.parents if folder in known), None)


def is_broken(report: FileReport) -> bool:
    """Whether a file shows a defect of mllint itself."""
    internal = report.result is not None and any(diagnostic.code == "ML000" for diagnostic in report.result.diagnostics)
    return report.failure is not None or internal or bool(report.fixes and report.fixes.problems)


def _examine_file(job: Job) -> FileReport:
    data = Path(job.path).read_bytes()
    rows = data.count(b"\n") + 1
    rules = _rules(job.select)
    started = time.perf_counter()
    fixes = None
    try:
        with time_limit(job.seconds_allowed), garbage_left_alone():
            project = _project(job)
            result = engine.lint(data, job.path, rules, project=project)
            seconds = time.perf_counter() - started
            if job.check_fixes and any(diagnostic.fix for diagnostic in result.diagnostics):
                fixes = check_fixes(data, job.path, rules, project, unsafe=job.unsafe)
    except TimeLimitError:
        frames = "".join(traceback.format_exc().splitlines(keepends=True)[-5:])
        failure = f"not done after {job.seconds_allowed:g} s\n{frames}"
        return FileReport(job.path, rows, time.perf_counter() - started, failure=failure)
    except Exception:  # noqa: BLE001  (whatever escapes is a defect of mllint: it is what the report is for)
        seconds = time.perf_counter() - started
        return FileReport(job.path, rows, seconds, failure=traceback.format_exc())
    return FileReport(job.path, rows, seconds, result, fixes=fixes, peak=_peak())


def _peak() -> int:
    """The most memory that this process has held so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@functools.cache
def _rules(select: tuple[str, ...]) -> registry.RuleSet:
    return registry.select(select, ())


_last_project: list[Project] = []
"""Files come folder by folder: as in a run of mllint, one project is kept, so that its files are read once."""


def _project(job: Job) -> Project:
    project = Project.containing(Path(job.path)) if job.root is None else Project(Path(job.root).resolve())
    if not _last_project or _last_project[0].root != project.root:
        _last_project[:] = [project]
    return _last_project[0]


def _listing(reports: Iterable[FileReport], codes: frozenset[str]) -> Iterable[str]:
    """One line a finding, to be compared (``diff``) between two versions of a rule."""
    for report in reports:
        for found in report.result.diagnostics if report.result else ():
            if found.code in codes:
                fixable = f" [{found.fix.applicability}]" if found.fix else ""
                place = f"{found.path}:{found.location.row}:{found.location.column}"
                yield f"{place}: {found.code}{fixable} {found.message}\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mllint._dev corpus", description=__doc__)
    parser.add_argument("path", nargs="+", type=Path)
    parser.add_argument("--roots", action="store_true", help="each path is the root of a project")
    parser.add_argument("--select", action="append", help="run these rules (default: ML)")
    parser.add_argument("--rule", action="append", help="report these rules only")
    parser.add_argument("--sample", type=int, default=30, help="findings shown with context (30)")
    parser.add_argument("--sample-per-rule", type=int, default=0, help="the same, for every rule")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--context", type=int, default=6, help="rows shown before a finding (6)")
    parser.add_argument("--slow", type=float, default=1.0, help="list files slower than this (1 s)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds a file may take (60)")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="processes (1)")
    parser.add_argument("--fix-check", action="store_true", help="check what the fixes promise")
    parser.add_argument("--unsafe-fixes", action="store_true", help="... of the unsafe ones too")
    parser.add_argument("--list", type=Path, help="write all findings, one a line, to this file")
    parser.add_argument("--output", "-o", type=Path, help="write the report there, not to stdout")
    return parser
