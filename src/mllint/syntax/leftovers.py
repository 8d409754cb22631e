"""Rows of a file that are no Python because something left them there: a merge, or a converter of code."""

from typing import NamedTuple

_BEHIND = "; nothing else in this file was checked"


class Leftover(NamedTuple):
    """What a row that cannot be read is, and what to do about it."""

    message: str
    help: str


def leftover(text: str, row: int) -> Leftover | None:
    """What the row of a text at which it can no longer be read has been left by; ``None`` where that is not known."""
    rows = text.split("\n")
    line = rows[row - 1] if row <= len(rows) else ""
    marker = line[:7]
    if marker in ("<<<<<<<", ">>>>>>>") or line.rstrip() == "=======":
        return Leftover(
            f"`{marker}` is the marker of a merge conflict that nobody has resolved",
            f"keep one of the two versions and delete the rows with the markers{_BEHIND}",
        )
    if line.startswith(">>>>>>"):
        return Leftover(
            "`>>>>>>` is the mark of a converter before what it could not convert",
            f"convert the rows that begin with it by hand, and delete the marks{_BEHIND}",
        )
    return None
