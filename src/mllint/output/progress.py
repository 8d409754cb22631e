"""A bar for work that takes long: on a terminal, and gone when the work is done."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

_Item = TypeVar("_Item")
_DELAY = 1.0
"""Seconds of work before there is a bar; what is done sooner needs none, and nothing is imported for it."""
_INTERVAL = 0.1


def with_progress(
    items: Iterator[_Item], total: int, *, delay: float = _DELAY, console: "Console | None" = None
) -> Iterator[_Item]:
    """The items, of which there are ``total``, with a bar on standard error (or ``console``) that counts them."""
    started = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - started >= delay:
            yield from _with_bar(items, done, total, console)


def _with_bar(items: Iterator[_Item], done: int, total: int, console: "Console | None") -> Iterator[_Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
    # No thread that draws: processes may be forked meanwhile.
    bar = Progress(*columns, console=console or Console(stderr=True), transient=True, auto_refresh=False)
    drawn = 0.0
    with bar:
        task = bar.add_task("", total=total, completed=done)
        for item in items:
            done += 1
            now = time.monotonic()
            if now - drawn >= _INTERVAL:
                bar.update(task, completed=done, refresh=True)
                drawn = now
            yield item
