"""``mllint --watch``: check again what changes, until somebody presses Ctrl-C."""

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable

import click

from mllint.configuration.requirements import says_versions
from mllint.configuration.settings import DEFAULT_EXCLUDE
from mllint.output.style import printable
from mllint.semantic.files.project_root import ProjectRoots

_FILES = frozenset({".gitignore", ".mllint.toml", "mllint-suppressions.json", "mllint.toml"})
"""Files other than Python's own that what is found may depend on."""
_UNWATCHED = frozenset({*DEFAULT_EXCLUDE, "__pycache__"})
_STEP = 20
_QUIET = 40
"""Milliseconds without a further change after which a change counts as made: an editor writes several times."""
_FIRST = 200
"""Milliseconds until the watch is surely set up, and the first check may begin without missing a change."""


class WatchError(Exception):
    """Files that cannot be watched, and why."""


def watch(paths: Iterable[str], check: Callable[[], int]) -> None:
    """Call ``check`` now and after every change of a file that it may depend on; ended by Ctrl-C only.

    Raises:
        WatchError: watchfiles is not installed, or the system does not allow to watch so much.
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        from watchfiles import watch as changes_of
    except ImportError:
        message = "--watch needs the package watchfiles: pip install 'flake8-mllint[watch]'"
        raise WatchError(message) from None
    folders = _folders(paths)
    is_first = True
    try:
        # Also yields when nothing happens: the first time, the watch is set up.
        for changes in changes_of(
            *folders,
            watch_filter=None,
            step=_STEP,
            debounce=_QUIET,
            rust_timeout=_FIRST,
            yield_on_timeout=True,
            raise_interrupt=True,
        ):
            changed = sorted({path for change, path in changes if _matters(path, is_new=change.name != "modified")})
            if is_first or changed:
                _check(check, is_first=is_first, changed=changed)
                if is_first:
                    _get_ready()
                is_first = False
    except (OSError, RuntimeError) as error:
        raise WatchError(f"cannot watch {', '.join(folders)}: {error}") from None


def _check(check: Callable[[], int], *, is_first: bool, changed: list[str]) -> None:
    if sys.stdout.isatty():
        click.clear()
    elif not is_first:
        click.echo("", err=True)
    if changed and not is_first:
        names = [os.path.relpath(path) for path in changed]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        click.echo(f"{time.strftime('%H:%M:%S')} changed: {printable(', '.join(names[:3]))}{more}", err=True)
    check()
    click.echo("Watching for changes. Ctrl-C ends it.", err=True)
    sys.stdout.flush()


def _get_ready() -> None:
    """Import now what the next check will need, while nobody waits for it."""
    for module in ("mllint.engine", "mllint.fixer", "mllint.registry"):
        importlib.import_module(module)
    importlib.import_module("mllint.registry").all_rules()


def _matters(path: str, *, is_new: bool) -> bool:
    """Whether a change of this file or folder may change what is found; ``is_new``: it came or went."""
    folder, name = os.path.split(path)
    if not _UNWATCHED.isdisjoint(folder.split(os.sep)):
        return False
    # A folder that came or went had files in it; of one that went, only the name is left to judge by.
    return (
        name.endswith((".py", ".pyi", ".ipynb"))
        or name in _FILES
        or says_versions(name)
        or (is_new and "." not in name)
    )


def _folders(paths: Iterable[str]) -> list[str]:
    """The folders to watch: those of the projects, for a file may depend on any other of its project."""
    roots = ProjectRoots()
    found: set[str] = set()
    for path in paths:
        inside = os.path.join(path, "any.py") if os.path.isdir(path) else path
        folder, root = os.path.dirname(os.path.realpath(inside)), str(roots.of(inside))
        found.add(root if f"{folder}{os.sep}".startswith(os.path.join(root, "")) else folder)
    return sorted(
        folder
        for folder in found
        if os.path.isdir(folder)
        and not any(folder != other and folder.startswith(os.path.join(other, "")) for other in found)
    )
