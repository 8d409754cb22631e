"""Which names the files of a project mention, by their text alone: nothing is parsed.

It answers one question: may some other file read an attribute that the file at hand never reads?
"""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MAX_FOLDERS = 2_000
MAX_FILES = 2_000
MAX_BYTES = 25_000_000
"""How much of a project is looked at; in a larger one every name may be mentioned."""

# An attribute that is read, or any word behind a quote: a name for `getattr`, or the key of a state dict.
_READ = re.compile(rb"(?:\.\s*|[\"'])([A-Za-z_]\w*)\b(?!\s*=[^=])")
_OWN = re.compile(rb"\bself\.(\w+)\s*(?::[^=\n]+)?=[^=]|\bdef\s+(\w+)")
_CLASS = re.compile(rb"^[ \t]*class\s+(\w+)", re.MULTILINE)
_CAPITALIZED = re.compile(rb"\b_*[A-Z]\w*")
_SKIPPED = frozenset({".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__", "build", "dist"})


@dataclass(frozen=True, slots=True)
class _Words:
    """What one file mentions: attributes it reads, attributes its own classes have, and capitalized words."""

    read: frozenset[bytes]
    own: frozenset[bytes]
    capitalized: frozenset[bytes]
    """Without the names of its own classes."""


class Mentions:
    """The words of every Python file under a folder, read once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def may_read(self, attribute: str, classes: frozenset[str], home: Path) -> bool:
        """Whether a file other than ``home`` may read an attribute of instances of these classes.

        A file whose own classes have an attribute of that name is taken to mean that one, unless it names one of the
        classes.
        """
        if self._files is None:
            return True
        word = attribute.encode()
        names = {name.encode() for name in classes}
        return any(
            word in words.read and (word not in words.own or bool(names & words.capitalized))
            for path, words in self._files.items()
            if path != home
        )

    @cached_property
    def _files(self) -> dict[Path, _Words] | None:
        """The words of each file; ``None`` when the project is too large."""
        found: dict[Path, _Words] = {}
        size = 0
        for count, (folder, folders, names) in enumerate(os.walk(self.root)):
            if count >= MAX_FOLDERS:
                return None
            folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
            for name in sorted(names):
                if not name.endswith((".py", ".pyi", ".ipynb")):
                    continue
                try:
                    data = Path(folder, name).read_bytes()
                except OSError:
                    continue
                size += len(data)
                if len(found) >= MAX_FILES or size > MAX_BYTES:
                    return None
                found[Path(folder, name)] = _words(data)
        return found


def _words(data: bytes) -> _Words:
    own = {first or second for first, second in _OWN.findall(data)}
    capitalized = {*_CAPITALIZED.findall(data)} - {*_CLASS.findall(data)}
    return _Words(frozenset(_READ.findall(data)), frozenset(own), frozenset(capitalized))
