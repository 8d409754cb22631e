"""The options of ``mllint check``: what they are called, what they may hold, and what they mean."""

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mllint.command import option_values
from mllint.command.annotate import Annotation, CommentForm
from mllint.command.checking import Request
from mllint.configuration.files import Resolver
from mllint.configuration.settings import Overrides
from mllint.configuration.table import parse_inline
from mllint.diagnostics import Severity
from mllint.output.report import Format
from mllint.output.style import Style
from mllint.running.baseline import DEFAULT_NAME

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _codes_option(name: str, text: str) -> Callable[[_Command], _Command]:
    """An option that holds selectors of rules."""
    return click.option(name, multiple=True, callback=option_values.selectors, metavar="CODES", help=text)


def _flag(*names: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(*names, is_flag=True, help=text)


COLOUR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to colour the output. `auto`: on a terminal, as NO_COLOR and FORCE_COLOR allow.",
)

CACHE_FOLDER = click.option(
    "--cache-dir",
    type=click.UNPROCESSED,
    envvar="MLLINT_CACHE_DIR",
    metavar="FOLDER",
    help="Where to remember what was found, instead of the user's cache folder.",
)

_RULES = (
    _codes_option("--select", "Check these rules only: codes, prefixes, names or ALL, separated by commas."),
    _codes_option("--ignore", "Leave these rules out."),
    _codes_option("--extend-select", "Check these rules too."),
    _codes_option("--extend-ignore", "Leave these rules out too."),
    click.option(
        "--per-file-ignores",
        multiple=True,
        callback=option_values.file_ignores,
        metavar="PATTERN:CODES",
        help="Leave rules out in the files that match; `!` before the pattern turns it round. May be repeated.",
    ),
    click.option(
        "--extend-per-file-ignores",
        multiple=True,
        callback=option_values.file_ignores,
        metavar="PATTERN:CODES",
        help="The same, beside what the configuration says.",
    ),
    click.option(
        "--severity",
        multiple=True,
        callback=option_values.severities,
        metavar="CODES=LEVEL",
        help="How bad findings of a rule are: error, warning or info. May be repeated.",
    ),
    click.option(
        "--min-severity",
        type=click.Choice([severity.value for severity in Severity]),
        help="Leave out findings below this severity.",
    ),
    click.option(
        "--target-version",
        multiple=True,
        callback=option_values.target_versions,
        metavar="FRAMEWORK=VERSION",
        help="The oldest framework the code must run with, such as torch=2.6. May be repeated.",
    ),
)

_FIXES = (
    _flag("--fix", text="Mend what can be mended safely; report what is left."),
    _flag("--unsafe-fixes", text="Count and apply fixes that may change behaviour too."),
    _flag("--fix-only", text="Mend, and neither report what is left nor fail for it."),
    _flag("--show-fixes", text="List what was mended."),
    _flag("--exit-non-zero-on-fix", text="Exit 1 if anything was mended, even if nothing is left."),
    _codes_option("--fixable", "Apply the fixes of these rules only."),
    _codes_option("--extend-fixable", "Apply the fixes of these rules too."),
    _codes_option("--unfixable", "Do not apply the fixes of these rules; show them only."),
    _flag("--diff", text="Write nothing; show what --fix would change. Exit 1 if anything."),
)

_SUPPRESSIONS = (
    _flag("--suppress-all", text="Accept all findings for now: write them to the list of accepted findings."),
    _codes_option("--suppress-rule", "The same for the findings of these rules."),
    _flag("--prune-suppressions", text="Take off that list what is not found any more."),
    click.option(
        "--suppressions-location",
        type=click.UNPROCESSED,
        metavar="FILE",
        help=f"Where that list is. (Default: {DEFAULT_NAME} here or in a folder above.)",
    ),
    _flag("--pass-on-unpruned-suppressions", text="Do not fail where the list accepts more than is found."),
    click.option(
        "--add-noqa",
        metavar="[=REASON]",
        help="Write a `# noqa` comment for each finding, with a reason if one is given.",
    ),
    click.option(
        "--add-ignore",
        metavar="[=REASON]",
        help="Write a `# mllint: ignore` comment for each finding.",
    ),
)

_FILES = (
    _flag("--isolated", text="Read no configuration, nor a list of accepted findings unless named."),
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
    click.option(
        "--exclude",
        multiple=True,
        callback=option_values.patterns,
        metavar="PATTERNS",
        help="Files and folders not to look into, instead of the default ones.",
    ),
    click.option(
        "--extend-exclude",
        multiple=True,
        callback=option_values.patterns,
        metavar="PATTERNS",
        help="More of them beside those.",
    ),
    click.option(
        "--extend-include",
        multiple=True,
        callback=option_values.patterns,
        metavar="PATTERNS",
        help="Files in folders to check beside .py and .pyi, such as '*.ipynb'.",
    ),
    click.option(
        "--force-exclude/--no-force-exclude",
        default=None,
        help="Exclude paths even if they are named explicitly.",
    ),
    click.option(
        "--respect-gitignore/--no-respect-gitignore",
        default=None,
        help="Leave out what .gitignore files name. (Default: yes.)",
    ),
    _flag("--show-files", text="List the files that would be checked, and check none."),
    _flag("--show-settings", text="Show the settings that hold for the paths, and check nothing."),
)

_WORK = (
    _flag("-w", "--watch", text="Go on, and check again what changes. (Needs the extra `watch`.)"),
    click.option(
        "-j",
        "--jobs",
        default="auto",
        callback=option_values.jobs,
        envvar="MLLINT_JOBS",
        show_default=True,
        metavar="N",
        help="How many processes may work; 1 is a single one, `auto` as many as pay.",
    ),
    click.option(
        "-n",
        "--no-cache",
        is_flag=True,
        envvar="MLLINT_NO_CACHE",
        help="Check everything anew, and remember nothing.",
    ),
    CACHE_FOLDER,
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
    for option in reversed((*_RULES, *_FIXES, *_SUPPRESSIONS, *_FILES, *_WORK, *_OUTPUT)):
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
        extend_ignore=options["extend_ignore"] or (),
        per_file_ignores=options["per_file_ignores"],
        extend_per_file_ignores=options["extend_per_file_ignores"] or (),
        severities=options["severity"],
        min_severity=None if options["min_severity"] is None else Severity(options["min_severity"]),
        fixable=options["fixable"],
        extend_fixable=options["extend_fixable"] or (),
        unfixable=options["unfixable"],
        torch_version=versions.get("torch"),
        paddle_version=versions.get("paddle"),
        exclude=options["exclude"],
        extend_exclude=options["extend_exclude"] or (),
        extend_include=options["extend_include"] or (),
        force_exclude=options["force_exclude"],
        respect_gitignore=options["respect_gitignore"],
        tables=tuple(parse_inline(setting) for setting in settings),
    )
    return Resolver(overrides, isolated=options["isolated"], file=files[0] if files else None)


def request_of(options: dict[str, Any], style: Style) -> Request:
    """What the options ask of the run itself."""
    form = Format(options["output_format"])
    if options["statistics"] and not form.has_statistics:
        allowed = ", ".join(other.value for other in Format if other.has_statistics)
        raise click.UsageError(f"--statistics has no place in the form `{form.value}`; it has in: {allowed}")
    fixes = options["fix"] or options["diff"] or options["fix_only"]
    annotation = _annotation(options["add_noqa"], options["add_ignore"])
    suppress = ("ALL",) if options["suppress_all"] else options["suppress_rule"] or ()
    if sum((bool(fixes), annotation is not None, bool(suppress))) > 1:
        raise click.UsageError(
            "findings can be mended, or accepted in the list, or silenced by comments: one at a time"
        )
    return Request(
        form=form,
        output_file=None if options["output_file"] == "-" else options["output_file"],
        fixes=fixes,
        unsafe=options["unsafe_fixes"],
        diff=options["diff"],
        fix_only=options["fix_only"],
        show_fixes=options["show_fixes"],
        exit_non_zero_on_fix=options["exit_non_zero_on_fix"],
        suppressions=options["suppressions_location"],
        suppress=suppress,
        prune=options["prune_suppressions"],
        ignores_stale=options["pass_on_unpruned_suppressions"],
        annotation=annotation,
        statistics=options["statistics"],
        exit_zero=options["exit_zero"],
        isolated=options["isolated"],
        quiet=options["quiet"],
        verbose=options["verbose"],
        jobs=options["jobs"],
        uses_cache=not options["no_cache"],
        cache_folder=options["cache_dir"],
        shows_progress=not (options["quiet"] or form.is_for_programs) and _is_watched(),
        style=style,
    )


def _is_watched() -> bool:
    """Whether both streams end at a terminal that can draw: in a pipe a bar would disturb whoever reads."""
    return sys.stdout.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _annotation(noqa: str | None, ignore: str | None) -> Annotation | None:
    """The comments that are to be written."""
    if noqa is not None and ignore is not None:
        raise click.UsageError("--add-noqa and --add-ignore exclude each other")
    form = CommentForm.IGNORE if noqa is None else CommentForm.NOQA
    reason = ignore if noqa is None else noqa
    if reason is None:
        return None
    if not reason.isprintable():
        raise click.UsageError("a reason is one line of text")
    return Annotation(form, reason.strip())
