"""Where the findings of a run go: to a stream, or whole into a file."""

import sys
from types import TracebackType

import click

from mllint.output.style import Style
from mllint.running.writer import put


class Sink:
    """Takes pieces of output. A file is written when the run is over: whole, or not at all."""

    def __init__(self, path: str | None, style: Style, *, to_stderr: bool = False) -> None:
        """``path``: the file to write; without it the standard output (or error)."""
        self.goes_to_file = path is not None
        # Whoever reads a file wants no colours in it.
        self.style = Style() if self.goes_to_file else style
        self._path = path
        self._to_stderr = to_stderr
        self._pieces: list[bytes] = []

    def line(self, text: str) -> None:
        """Take a text that lacks the end of its last line."""
        if self.goes_to_file:
            self._pieces.append(f"{text}\n".encode(errors="backslashreplace"))
        else:
            click.echo(text, err=self._to_stderr, color=self.style.enabled)

    def data(self, data: bytes) -> None:
        """Take bytes as they are."""
        if self.goes_to_file:
            self._pieces.append(data)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def __enter__(self) -> "Sink":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path is not None and error is None:
            put(self._path, b"".join(self._pieces))
