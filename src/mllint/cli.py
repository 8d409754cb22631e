"""The command ``mllint``: options in, exit code out.

``mllint PATH...`` is ``mllint check PATH...``. Findings, diffs and fixed source go to standard
output, everything else to standard error. Exit codes: 0 nothing left to say, 1 findings, 2 the
run itself went wrong (bad option or configuration, no such path, an internal error).
"""

import io
import os
import shutil
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from mllint import __version__
from mllint.checking import Request, check_paths, check_stdin
from mllint.output.report import Format
from mllint.output.style import Style, wants_colour
from mllint.settings import (
    ConfigurationError,
    Overrides,
    Resolver,
    check_selectors,
    parse_inline,
    parse_version,
)

if TYPE_CHECKING:
    from mllint.output.explain import Page

_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""

_COLOUR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to colour the output. `auto`: on a terminal, as NO_COLOR and FORCE_COLOR allow.",
)


class _CheckByDefault(click.Group):
    """A group in which anything that is not a command is a path or an option of ``check``."""

    _OWN = ("--help", "-h", "--version", "-V")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in self._OWN):
            args = ["check", *args]
        return super().parse_args(ctx, args)


class _Failure(click.ClickException):
    """Something that ends the run before any file is looked at."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"mllint: error: {self.message}", err=True)


def _selectors(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Codes from an option that may be repeated and may hold several, separated by commas."""
    selectors = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    try:
        check_selectors(selectors, parameter.opts[-1])
    except ConfigurationError as error:
        raise _Failure(str(error)) from None
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


@click.group(
    cls=_CheckByDefault,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`mllint PATH...` is `mllint check PATH...`; `mllint check --help` lists its options.",
)
@click.version_option(__version__, "-V", "--version", prog_name="flake8-mllint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find the mistakes in PyTorch and PaddlePaddle code that fail silently, and mend them."""


@cli.command()
@click.argument("paths", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--select",
    multiple=True,
    callback=_selectors,
    metavar="CODES",
    help="Check these rules only: codes, prefixes, names or ALL, separated by commas.",
)
@click.option("--ignore", multiple=True, callback=_selectors, metavar="CODES", help="Leave these rules out.")
@click.option(
    "--extend-select",
    multiple=True,
    callback=_selectors,
    metavar="CODES",
    help="Check these rules too.",
)
@click.option("--fix", is_flag=True, help="Mend what can be mended safely; report what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="Count and apply fixes that may change behaviour too.")
@click.option("--diff", is_flag=True, help="Write nothing; show what --fix would change. Exit 1 if anything.")
@click.option(
    "--output-format",
    type=click.Choice([form.value for form in Format]),
    default=Format.FULL.value,
    envvar="MLLINT_OUTPUT_FORMAT",
    show_default=True,
    help="How findings are shown.",
)
@click.option("--statistics", is_flag=True, help="Show how often each rule found something.")
@click.option("-e", "--exit-zero", is_flag=True, help="Exit 0 even with findings.")
@click.option("--isolated", is_flag=True, help="Read no configuration or requirements files.")
@click.option(
    "--config",
    multiple=True,
    metavar="FILE|KEY=VALUE",
    help="A configuration file for all paths, or one TOML setting laid over it.",
)
@click.option(
    "--stdin-filename",
    type=click.UNPROCESSED,
    help="What to call the source on standard input (with `-` as path).",
)
@click.option(
    "-n",
    "--no-cache",
    is_flag=True,
    help="Accepted so that scripts may pass it: there is no cache yet.",
)
@click.option("--force-exclude", is_flag=True, help="Exclude paths even if they are named explicitly.")
@click.option(
    "--target-version",
    multiple=True,
    callback=_target_versions,
    metavar="FRAMEWORK=VERSION",
    help="The oldest framework the code must run with, such as torch=2.6. May be repeated.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show findings and errors only.")
@click.option("-v", "--verbose", is_flag=True, help="Say which configuration and files are used.")
@_COLOUR
def check(paths: tuple[str, ...], stdin_filename: str | None, **options: Any) -> None:
    """Check files and folders (default: the current folder)."""
    from_stdin = paths == ("-",) or (not paths and stdin_filename is not None)
    if "-" in paths and not from_stdin:
        raise click.UsageError("`-` (standard input) cannot be combined with other paths")
    try:
        resolver = _resolver(options)
    except ConfigurationError as error:
        raise _Failure(str(error)) from None
    request = Request(
        form=Format(options["output_format"]),
        fixes=options["fix"] or options["diff"],
        unsafe=options["unsafe_fixes"],
        diff=options["diff"],
        statistics=options["statistics"],
        exit_zero=options["exit_zero"],
        isolated=options["isolated"],
        quiet=options["quiet"],
        verbose=options["verbose"],
        style=_style(options["color"]),
    )
    if from_stdin:
        code = check_stdin(stdin_filename, resolver, request)
    else:
        code = check_paths(paths or (".",), resolver, request)
    click.get_current_context().exit(code)


@cli.command()
@click.argument("rule", required=False, metavar="[CODE|NAME]")
@click.option("--all", "every", is_flag=True, help="List all rules.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How rules are shown.",
)
@_COLOUR
def rule(rule: str | None, every: bool, output_format: str, color: str) -> None:
    """Explain a rule, or list all of them."""
    if every == (rule is not None):
        raise click.UsageError("name one rule, or say --all")
    from mllint import registry
    from mllint.output import explain

    known = [*explain.OWN_PAGES, *map(explain.page_of, registry.all_rules())]
    style = _style(color)
    pages = known
    if rule is not None:
        pages = [page for page in known if rule.upper() == page.code or rule.lower() == page.name]
        if not pages:
            raise _Failure(f"there is no rule `{rule}`{_close_to(rule, known)}")
    if output_format == "json":
        click.echo(explain.as_json(pages))
    elif every:
        click.echo("\n".join(explain.listing(pages, style)), color=style.enabled)
    elif style.enabled:
        columns = shutil.get_terminal_size().columns
        click.echo(explain.rendered(pages[0], width=columns), nl=False, color=True)
    else:
        click.echo(explain.markdown(pages[0]), nl=False)


def _resolver(options: dict[str, Any]) -> Resolver:
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


def _style(choice: str) -> Style:
    coloured = wants_colour(choice, is_terminal=sys.stdout.isatty(), environment=os.environ)
    return Style(coloured)


def _close_to(name: str, known: "list[Page]") -> str:
    import difflib

    names = [text for page in known for text in (page.code, page.name)]
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def main() -> None:
    """The console script."""
    # A path or a piece of source that the terminal's encoding lacks must not end the run.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(cli(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(_INTERRUPTED)
    # The outermost frame: an exit code of 1 would say that there are findings.
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        click.echo("mllint: error: this is a bug in mllint: please report it", err=True)
        sys.exit(2)
