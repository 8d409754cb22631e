"""Measure mllint over folders of real code, beside parsers and other linters in the same call.

Every measurement has a process of its own, one after the other. The files are read once before
the first, so that all of them find them in the operating system's cache. Seconds are seconds of
the processor: what else the machine is doing changes them little.
"""

import argparse
import ast
import compileall
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mllint._dev.files import python_files

if TYPE_CHECKING:
    from mllint._dev.phases import Phases

Value = TypeVar("Value")

_FRAMEWORK = re.compile(rb"torch|paddle")

# flake8 finds plugins by the metadata of what is installed; hiding ours there changes nothing else.
_FLAKE8_WITHOUT_PLUGIN = """
import importlib.metadata, sys
all_distributions = importlib.metadata.distributions
def without_mllint(**context):
    return (d for d in all_distributions(**context) if d.metadata["name"] != "flake8-mllint")
importlib.metadata.distributions = without_mllint
from flake8.main.cli import main
sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A tool to compare with."""

    title: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    is_run_before: bool = False
    """Whether it remembers what it did, and is measured when it does."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    title: str
    seconds: float
    rows: int
    note: str = ""
    failed: bool = False


def main(arguments: list[str]) -> int:
    """Print the table; 2 when a tool to compare with is not there."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.scaling or options.check or options.write:
        return _growth(options)
    if not options.path:
        parser.error("name folders to measure over, or say --scaling")
    try:
        commands = [command for tool in options.against for command in _commands(tool)]
    except FileNotFoundError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    _compile_package()
    paths = [str(path) for path in python_files(options.path)]
    select = tuple(options.select or ["ML"])
    phases = _best(options.repeat, lambda: _alone(_measure_phases, paths, select), lambda p: p.total)
    rows = [*_phase_rows(phases, paths), *_baseline_rows(phases, paths, options.repeat)]
    own = Command("`mllint` from the shell, one process", _own_command(select))
    rows += _command_rows([own, *commands], paths, [str(p) for p in options.path], options.repeat)
    print("\n".join(_table(paths, phases, rows)))
    return 0


def _compile_package() -> None:
    """Compile mllint to bytecode, as it is where it was installed.

    In a checkout where Python is told to write no bytecode, each process would compile it anew: a third of a second.
    """
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)


def _growth(options: argparse.Namespace) -> int:
    """The part of the benchmark that makes its own source."""
    from mllint._dev import scaling

    if options.check:
        return scaling.check(options.check, options.tolerance)
    if options.write:
        scaling.write(options.write)
        return 0
    print(_machine())
    print()
    for line in scaling.table():
        print(line, flush=True)
    return 0


def _phase_rows(phases: "Phases", paths: Sequence[str]) -> Iterator[Row]:
    everything, analysed = _rows_of(paths), _rows_of(phases.analysed)
    for title, seconds in phases.seconds.items():
        if title in ("read", "gate"):
            yield Row(title, seconds, everything, f"{len(paths):,} files")
        else:
            yield Row(title, seconds, analysed, f"{len(phases.analysed):,} files past the gate")
    yield Row("**all phases**", phases.total, everything, f"{phases.findings:,} findings")


def _baseline_rows(phases: "Phases", paths: Sequence[str], repeat: int) -> Iterator[Row]:
    framework = [path for path in paths if _FRAMEWORK.search(Path(path).read_bytes())]
    for title, parser, files, note in (
        ("LibCST parse alone", _parse_with_libcst, phases.analysed, "the same files"),
        ("LibCST parse alone", _parse_with_libcst, framework, "framework files"),
        ("`ast.parse` alone", _parse_with_ast, phases.analysed, "the same files"),
        ("`ast.parse` alone", _parse_with_ast, paths, "all files"),
    ):
        run = lambda parser=parser, files=files: _alone(parser, list(files))  # noqa: E731
        seconds = _best(repeat, run, lambda seconds: seconds)
        yield Row(title, seconds, _rows_of(files), f"{len(files):,} files: {note}")


def _command_rows(
    commands: Sequence[Command], paths: Sequence[str], arguments: Sequence[str], repeat: int
) -> Iterator[Row]:
    rows = _rows_of(paths)
    for command in commands:
        with TemporaryDirectory() as memory:
            if command.is_run_before:
                cached = {"MLLINT_CACHE_DIR": memory, "MLLINT_NO_CACHE": ""}
                command = replace(command, environment=command.environment | cached)
                _run(command, arguments)
            best = min(_run(command, arguments) for _ in range(repeat))
        # TorchFix ends with 1 where it could not parse a file; the others are told to end with 0.
        failed = best.code != 0 and not (best.code == 1 and command.title.startswith("TorchFix"))
        outcome = f"FAILED with exit code {best.code}" if failed else f"{best.lines:,} lines out"
        yield Row(command.title, best.seconds, rows, f"{best.wall:.2f} s by the clock, {outcome}", failed)


class _Run(NamedTuple):
    """One run of a command: seconds of the processor and by the clock, exit code, lines written."""

    seconds: float
    wall: float
    code: int
    lines: int


def _run(command: Command, paths: Sequence[str]) -> _Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [*command.arguments, *paths],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | command.environment,
        check=False,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return _Run(seconds, wall, done.returncode, done.stdout.count(b"\n"))


def _own_command(select: Sequence[str]) -> list[str]:
    options = ["--isolated", "--no-cache", "-j1", "--exit-zero", "--output-format", "concise"]
    return [sys.executable, "-m", "mllint", "check", *options, "--select", ",".join(select)]


def _commands(tool: str) -> Iterator[Command]:
    """The command lines for ``NAME`` or ``NAME=EXECUTABLE``.

    Raises:
        FileNotFoundError: no such executable.
    """
    name, _, given = tool.partition("=")
    executable = shutil.which(given or name) or shutil.which(Path(sys.executable).with_name(name))
    if executable is None:
        raise FileNotFoundError(f"`{given or name}` is not installed")
    if name == "torchfix":
        yield Command("TorchFix, one process", [executable, "--jobs", "1", "--select", "ALL"])
    elif name == "flake8":
        python = str(Path(executable).with_name("python"))
        options = ["--isolated", "-j1", "--exit-zero"]
        without = [python, "-c", _FLAKE8_WITHOUT_PLUGIN, *options]
        yield Command("flake8 without mllint, one process", without)
        yield Command("flake8 with mllint, one process", [executable, *options, "--mllint-no-cache"])
        yield Command("flake8 with mllint, nothing changed", [executable, *options], is_run_before=True)
    elif name == "ruff":
        options = ["check", "--isolated", "--no-cache", "--exit-zero", "--output-format=concise"]
        one_thread = {"RAYON_NUM_THREADS": "1"}
        yield Command("ruff, one thread", [executable, *options], one_thread)
    else:
        yield Command(f"`{name}`", [executable])


def _measure_phases(paths: list[str], select: tuple[str, ...]) -> "Phases":
    # Imported in the process that measures, so that no other measurement pays for it.
    from mllint._dev.phases import measure

    return measure(paths, select)


def _parse_with_libcst(paths: list[str]) -> float:
    import libcst

    from mllint.syntax.parse import ParseError, parse
    from mllint.syntax.source import DecodingError, Source

    seconds = 0.0
    for path in paths:
        data = Path(path).read_bytes()
        try:
            # LibCST's parser ends the process on nesting that mllint does not let it see.
            parse(Source.from_bytes(data, path))
        except (ParseError, DecodingError):
            continue
        started = time.process_time()
        libcst.parse_module(data)
        seconds += time.process_time() - started
    return seconds


def _parse_with_ast(paths: list[str]) -> float:
    warnings.simplefilter("ignore")
    contents = [Path(path).read_bytes() for path in paths]
    started = time.process_time()
    for data in contents:
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return time.process_time() - started


def _table(paths: Sequence[str], phases: "Phases", rows: Sequence[Row]) -> Iterator[str]:
    yield f"{_machine()}; {len(paths):,} files, {_rows_of(paths):,} rows"
    yield ""
    yield "| what | seconds | µs a row | of | |"
    yield "|---|--:|--:|--:|---|"
    for row in rows:
        micro = f"{row.seconds / row.rows * 1e6:.1f}" if row.rows else "-"
        yield f"| {row.title} | {row.seconds:.2f} | {micro} | {row.rows:,} | {row.note} |"
    yield ""
    yield from _ratios(phases, rows)


def _machine() -> str:
    return (
        f"flake8-mllint {version('flake8-mllint')}, libcst {version('libcst')}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores"
    )


def _ratios(phases: "Phases", rows: Sequence[Row]) -> Iterator[str]:
    by_title = {f"{row.title} {row.note.partition(': ')[2]}".strip(): row.seconds for row in rows}
    rows = [row for row in rows if not row.failed]
    own = next((row.seconds for row in rows if row.title.startswith("`mllint`")), None)
    parse = phases.seconds["parse"] + phases.seconds["siblings"]
    model = sum(phases.seconds[phase] for phase in ("walk", "model", "rules", "places"))
    framework = by_title["LibCST parse alone framework files"]
    if parse:
        yield f"- walk, model, rules and places: {model / parse:.0%} of parse and siblings"
    if own is not None and framework:
        yield f"- mllint from the shell: {own / framework:.2f} × LibCST's parse of framework files"
    for row in rows:
        if own is not None and row.title.startswith(("TorchFix", "ruff", "flake8 without")):
            yield f"- {row.title}: {row.seconds / own:.1f} × the time of mllint from the shell"
    seconds = {row.title: row.seconds for row in rows}
    without = seconds.get("flake8 without mllint, one process")
    for title, what in (("one process", "the plugin"), ("nothing changed", "the plugin and nothing changed")):
        with_plugin = seconds.get(f"flake8 with mllint, {title}")
        if with_plugin is not None and without is not None:
            yield f"- flake8 with {what}: {with_plugin / without:.2f} × flake8 without it"
    yield ""
    yield (
        "A phase's seconds do not include those of another; `siblings` is parsing the files that a "
        "file imports. TorchFix runs with all of its rules and skips files without `torch`; flake8 "
        "runs its default checks."
    )


def _best(repeat: int, run: Callable[[], Value], key: Callable[[Value], float]) -> Value:
    return min((run() for _ in range(repeat)), key=key)


def _alone(function: Callable[..., Value], *arguments: object) -> Value:
    """Run in a fresh process: no warm caches, no heap of an earlier measurement."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _rows_of(paths: Sequence[str]) -> int:
    return sum(Path(path).read_bytes().count(b"\n") for path in paths)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mllint._dev bench", description=__doc__)
    parser.add_argument("path", nargs="*", type=Path)
    parser.add_argument("--select", action="append", help="run these rules (default: ML)")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="TOOL[=EXECUTABLE]",
        help="torchfix, flake8, ruff or any command that takes paths; repeatable",
    )
    parser.add_argument("--scaling", action="store_true", help="how cost grows with size, over source made for it")
    parser.add_argument("--check", type=Path, metavar="FILE", help="compare ratios with those in FILE; 1 if worse")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the ratios to FILE")
    parser.add_argument("--tolerance", type=float, default=0.5, help="how much worse a ratio may be (0.5: half)")
    parser.add_argument("--repeat", type=int, default=1, help="take the best of so many runs (1)")
    return parser
