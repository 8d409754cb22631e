"""The options of ``mllint check``: what they are called, what they may hold, and what they mean."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mllint.checking import Request
from mllint.output.report import Format
from mllint.output.style import Style
from mllint.settings import ConfigurationError, Overrides, Resolver, check_selectors, parse_inline, parse_version

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Failure(click.ClickException):
    """Something that ends the run before any file is looked at."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Say what it is on standard error."""
        click.echo(f"mllint: error: {self.message}", err=True)


def _selectors(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Codes from an option that may be repeated and may hold several, separated by commas."""
    selectors = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    try:
        check_selectors(selectors, parameter.opts[-1])
    except ConfigurationError as error:
        raise Failure(str(error)) from None
    # Given but empty (`--ignore ''`) is not the same as not given.
    return selectors if values else None


def _target_versions(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Versions by framework."""
    versions = {}
    for value in values:
        framework, _, version = value.partition("=")
        try:
            if framework not in ("torch", "paddle"):
                raise ValueError(f"`{value}` is not of the form `torch=2.6` or `paddle=3.0`")
            parse_version(version)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        versions[framework] = version
    return versions


def _jobs(context: click.Context, parameter: click.Parameter, value: str) -> int | None:
    """A number of processes; ``None`` stands for ``auto``."""
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) == 0:
        raise click.BadParameter(f"`{value}` is neither `auto` nor a number from 1 up")
    return int(value)


def _codes_option(name: str, text: str) -> Callable[[_Command], _Command]:
    """An option that holds selectors of rules."""
    return click.option(name, multiple=True, callback=_selectors, metavar="CODES", help=text)


def _flag(*names: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(*names, is_flag=True, help=text)


COLOUR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to colour the output. `auto`: on a terminal, as NO_COLOR and FORCE_COLOR allow.",
)

_RULES = (
    _codes_option("--select", "Check these rules only: codes, prefixes, names or ALL, separated by commas."),
    _codes_option("--ignore", "Leave these rules out."),
    _codes_option("--extend-select", "Check these rules too."),
    click.option(
        "--target-version",
        multiple=True,
        callback=_target_versions,
        metavar="FRAMEWORK=VERSION",
        help="The oldest framework the code must run with, such as torch=2.6. May be repeated.",
    ),
)

_FIXES = (
    _flag("--fix", text="Mend what can be mended safely; report what is left."),
    _flag("--unsafe-fixes", text="Count and apply fixes that may change behaviour too."),
    _flag("--diff", text="Write nothing; show what --fix would change. Exit 1 if anything."),
)

_FILES = (
    _flag("--isolated", text="Read no configuration or requirements files."),
    click.option(
        "--config",
        multiple=True,
        metavar="FILE|KEY=VALUE",
        help="A configuration file for all paths, or one TOML setting laid over it.",
    ),
    click.option(
        "--stdin-filename",
        type=click.UNPROCESSED,
        help="What to call the source on standard input (with `-` as path).",
    ),
    _flag("--force-exclude", text="Exclude paths even if they are named explicitly."),
    _flag("-n", "--no-cache", text="Accepted so that scripts may pass it: there is no cache yet."),
)

_WORK = (
    click.option(
        "-j",
        "--jobs",
        default="auto",
        callback=_jobs,
        envvar="MLLINT_JOBS",
        show_default=True,
        metavar="N",
        help="How many processes may work; 1 is a single one, `auto` as many as pay.",
    ),
)

_OUTPUT = (
    click.option(
        "--output-format",
        type=click.Choice([form.value for form in Format]),
        default=Format.FULL.value,
        envvar="MLLINT_OUTPUT_FORMAT",
        show_default=True,
        help="How findings are shown.",
    ),
    click.option(
        "-o",
        "--output-file",
        type=click.UNPROCESSED,
        envvar="MLLINT_OUTPUT_FILE",
        metavar="FILE",
        help="Write the findings (or differences) to this file.",
    ),
    _flag("--statistics", text="Show how often each rule found something."),
    _flag("-e", "--exit-zero", text="Exit 0 even with findings."),
    _flag("-q", "--quiet", text="Show findings and errors only."),
    _flag("-v", "--verbose", text="Say which configuration and files are used."),
    COLOUR,
)


def check_options(command: _Command) -> _Command:
    """Give a command all the options, in the order in which the help lists them."""
    for option in reversed((*_RULES, *_FIXES, *_FILES, *_WORK, *_OUTPUT)):
        command = option(command)
    return command


def resolver_of(options: dict[str, Any]) -> Resolver:
    """What the options say about configuration.

    Raises:
        ConfigurationError: a file or a setting that was given cannot be used.
    """
    files = [value for value in options["config"] if "=" not in value or os.path.exists(value)]
    settings = [value for value in options["config"] if value not in files]
    if len(files) > 1:
        raise click.UsageError("--config takes one file; settings may be repeated")
    if files and options["isolated"]:
        raise click.UsageError("--config FILE and --isolated exclude each other")
    versions = options["target_version"]
    overrides = Overrides(
        select=options["select"],
        ignore=options["ignore"],
        extend_select=options["extend_select"] or (),
        torch_version=versions.get("torch"),
        paddle_version=versions.get("paddle"),
        force_exclude=True if options["force_exclude"] else None,
        tables=tuple(parse_inline(setting) for setting in settings),
    )
    return Resolver(overrides, isolated=options["isolated"], file=files[0] if files else None)


def request_of(options: dict[str, Any], style: Style) -> Request:
    """What the options ask of the run itself."""
    form = Format(options["output_format"])
    if options["statistics"] and not form.has_statistics:
        allowed = ", ".join(other.value for other in Format if other.has_statistics)
        raise click.UsageError(f"--statistics has no place in the form `{form.value}`; it has in: {allowed}")
    return Request(
        form=form,
        output_file=options["output_file"],
        fixes=options["fix"] or options["diff"],
        unsafe=options["unsafe_fixes"],
        diff=options["diff"],
        statistics=options["statistics"],
        exit_zero=options["exit_zero"],
        isolated=options["isolated"],
        quiet=options["quiet"],
        verbose=options["verbose"],
        jobs=options["jobs"],
        style=style,
    )
