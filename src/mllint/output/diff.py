"""What a fix changes, as a unified diff of bytes that ``patch`` can apply."""

import difflib
import os
from collections.abc import Iterator

from mllint.output.style import Style

_NO_NEWLINE = b"\\ No newline at end of file\n"


def unified_diff(path: str, before: bytes, after: bytes, style: Style) -> bytes:
    """The difference; empty where there is none. Bytes outside the edits stay what they are."""
    name = os.fsencode(path)
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), fromfile=name, tofile=name)
    return b"".join(_coloured(line, style) for line in _ended(lines))


def _lines(data: bytes) -> list[bytes]:
    # Not `splitlines`: a lone carriage return or a form feed ends no line of a diff.
    *ended, last = data.split(b"\n")
    return [*(line + b"\n" for line in ended), *([last] if last else [])]


def _ended(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Every line ended, and where the file does not end its last one, a remark of ``diff``."""
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n"
        if not line.endswith(b"\n"):
            yield _NO_NEWLINE


def _coloured(line: bytes, style: Style) -> bytes:
    if not style.enabled:
        return line
    text = line.decode("utf-8", "surrogateescape").removesuffix("\n")
    if text.startswith("+"):
        text = style.added(text)
    elif text.startswith("-"):
        text = style.removed(text)
    elif text.startswith("@@"):
        text = style.hint(text)
    return text.encode("utf-8", "surrogateescape") + b"\n"
