"""The command ``mllint``: options in, exit code out.

``mllint PATH...`` is ``mllint check PATH...``. Findings, diffs and fixed source go to standard
output, everything else to standard error. Exit codes: 0 nothing left to say, 1 findings, 2 the
run itself went wrong (bad option or configuration, no such path, an internal error).
"""

import contextlib
import errno
import gc
import io
import os
import shutil
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from mllint import __version__
from mllint.command.checking import Request, check_paths, check_stdin
from mllint.command.option_values import Failure
from mllint.command.options import CACHE_FOLDER, COLOUR, check_options, request_of, resolver_of
from mllint.configuration.settings import ConfigurationError
from mllint.output.style import Style, wants_colour

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mllint.output.explain import Page

_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""
_OF_STREAMS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Why the output goes nowhere; what the files themselves refuse is told of each."""


class _CheckByDefault(click.Group):
    """A group in which anything that is not a command is a path or an option of ``check``."""

    _OWN = ("--help", "-h", "--version", "-V")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = _expanded(args)
        if not args and ctx.resilient_parsing:
            # A shell asks what the first word may be: a command or what `check` takes.
            return super().parse_args(ctx, args)
        if not args or (args[0] not in self.commands and args[0] not in self._OWN):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """What a shell may offer for the first word."""
        from click.shell_completion import CompletionItem

        check = self.commands["check"]
        with click.Context(check, info_name="check", parent=ctx, resilient_parsing=True) as inner:
            offered = [*super().shell_complete(ctx, incomplete), *check.shell_complete(inner, incomplete)]
        paths = [] if incomplete.startswith("-") else [CompletionItem(incomplete, type="file")]
        return [*{item.value: item for item in offered}.values(), *paths]


def _expanded(words: list[str]) -> list[str]:
    """The arguments with each ``@FILE`` replaced by the lines of that file: a way round limits of the command line.

    Raises:
        Failure: a file cannot be read, or no path is left, where without any the current folder would be meant.
    """
    expanded: list[str] = []
    for word in words:
        if len(word) < 2 or not word.startswith("@"):
            expanded.append(word)
            continue
        try:
            with open(word[1:], encoding="utf-8", errors="surrogateescape") as file:
                said = [line for line in file.read().splitlines() if line.strip()]
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise Failure(f"`{word}`: the file with arguments cannot be read: {reason}") from None
        if not said and all(other == word or other.startswith("-") for other in words):
            raise Failure(f"`{word}`: the file with arguments is empty: name `.` for the current folder")
        expanded += said
    return expanded


class _Path(click.types.UnprocessedParamType):
    """A path as it was written; a shell may complete it."""

    name = "path"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Files and folders, which the shell finds."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class _Check(click.Command):
    """``check``, with options whose value may be left out; where there is one, it follows a ``=``."""

    _WITH_OPTIONAL_VALUE = ("--add-noqa", "--add-ignore")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = [f"{word}=" if word in self._WITH_OPTIONAL_VALUE else word for word in args[:end]]
        return super().parse_args(ctx, [*options, *args[end:]])


@click.group(
    cls=_CheckByDefault,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`mllint PATH...` is `mllint check PATH...`; `mllint check --help` lists its options.",
)
@click.version_option(__version__, "-V", "--version", prog_name="flake8-mllint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find the mistakes in PyTorch and PaddlePaddle code that fail silently, and mend them."""


@cli.command(cls=_Check)
@click.argument("paths", nargs=-1, type=_Path())
@check_options
def check(paths: tuple[str, ...], stdin_filename: str | None, **options: Any) -> None:
    """Check files and folders (default: the current folder)."""
    from_stdin = paths == ("-",) or (not paths and stdin_filename is not None)
    if "-" in paths and not from_stdin:
        raise click.UsageError("`-` (standard input) cannot be combined with other paths")
    if stdin_filename is not None and not from_stdin:
        raise click.UsageError("--stdin-filename names what is read from `-`, and no other path is checked then")
    request = request_of(options, _style(options["color"]))
    if from_stdin and options["watch"]:
        raise click.UsageError("standard input cannot be watched")
    if from_stdin and (request.suppress or request.prune or request.annotation):
        raise click.UsageError("what is on the standard input can be neither accepted nor given comments")
    try:
        resolver = resolver_of(options)
    except ConfigurationError as error:
        raise Failure(str(error)) from None
    if options["show_files"] or options["show_settings"]:
        from mllint.command import inspection

        asked = (stdin_filename or ".",) if from_stdin else paths or (".",)
        if options["show_files"]:
            code = inspection.show_files(asked, resolver)
        else:
            code = inspection.show_settings(asked, resolver)
    elif from_stdin:
        code = check_stdin(stdin_filename, resolver, request)
    elif options["watch"]:
        code = _watch(paths or (".",), options, request)
    else:
        code = check_paths(paths or (".",), resolver, request)
    click.get_current_context().exit(code)


def _rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The codes and names that a word may become."""
    from mllint import registry

    known = (text for rule in registry.all_rules() for text in (rule.code, rule.name))
    return [text for text in known if text.startswith(incomplete)]


def _watch(paths: tuple[str, ...], options: dict[str, Any], request: Request) -> int:
    """Check whenever something changes; configuration is read anew each time."""
    import tempfile

    from mllint.command.watch import WatchError, watch

    if request.fixes or request.suppress or request.prune or request.annotation:
        raise click.UsageError("--watch only shows findings: it writes no file")
    gc.enable()  # it goes on for days

    def check() -> int:
        try:
            return check_paths(paths, resolver_of(options), request)
        except ConfigurationError as error:
            Failure(str(error)).show()
            return Failure.exit_code

    # What has not changed is not checked again: with --no-cache that is remembered as long as the watch lasts.
    with tempfile.TemporaryDirectory(prefix="mllint-") as folder:
        if not request.uses_cache:
            request = msgspec.structs.replace(request, uses_cache=True, cache_folder=folder)
        try:
            watch(paths, check)
        except WatchError as error:
            raise Failure(str(error)) from None
    return 0


@cli.command()
@click.argument("rule", required=False, metavar="[CODE|NAME]", shell_complete=_rules)
@click.option("--all", "every", is_flag=True, help="List all rules.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How rules are shown.",
)
@COLOUR
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
            raise Failure(f"there is no rule `{rule}`{_close_to(rule, known)}")
    if output_format == "json":
        click.echo(explain.as_json(pages))
    elif every:
        click.echo("\n".join(explain.listing(pages, style)), color=style.enabled)
    elif style.enabled:
        columns = shutil.get_terminal_size().columns
        click.echo(explain.rendered(pages[0], width=columns), nl=False, color=True)
    else:
        click.echo(explain.markdown(pages[0]), nl=False)


@cli.command()
@CACHE_FOLDER
def clean(cache_dir: str | None) -> None:
    """Delete what is remembered of earlier runs."""
    from mllint.running import cache

    folder = cache_dir or cache.default_folder()
    try:
        found = cache.clean(folder)
    except OSError as error:
        raise Failure(f"{folder}: cannot be deleted: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"Deleted the cache in {folder}." if found else f"There is no cache in {folder}.", err=True)


def _style(choice: str) -> Style:
    coloured = wants_colour(choice, is_terminal=sys.stdout.isatty(), environment=os.environ)
    return Style(coloured)


def _close_to(name: str, known: "list[Page]") -> str:
    import difflib

    names = [text for page in known for text in (page.code, page.name)]
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _open_what_is_closed() -> None:
    """Give the streams that a shell has closed (``>&-``) something to write to, or nothing to read."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _without_output(error: OSError) -> NoReturn:
    """End a run whose output nobody can take: a full disk behind ``>``."""
    with contextlib.suppress(OSError):
        # What is left in the buffer is written once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.suppress(OSError):
        reason = (error.strerror or str(error)).lower()
        click.echo(f"mllint: error: the output cannot be written: {reason}", err=True)
    sys.exit(2)


def main() -> None:
    """The console script."""
    _open_what_is_closed()
    # A path or a piece of source that the terminal's encoding lacks must not end the run.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # A run looks for garbage itself, between files; what it leaves behind goes with the process.
    gc.disable()
    try:
        sys.exit(cli(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(_INTERRUPTED)
    # The outermost frame: an exit code of 1 would say that there are findings.
    except Exception as error:  # noqa: BLE001
        if isinstance(error, OSError) and error.errno in _OF_STREAMS:
            _without_output(error)
        traceback.print_exc()
        click.echo("mllint: error: this is a bug in mllint: please report it", err=True)
        sys.exit(2)
    finally:
        gc.freeze()  # the interpreter searches all the rest when it ends
