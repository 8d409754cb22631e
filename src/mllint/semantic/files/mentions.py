"""Which names the files of a project mention, by their text alone: nothing is parsed.

It answers one question: may some other file read an attribute that the file at hand never reads?
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import msgspec

from mllint.semantic.files.disk import Disk

# What stands before a dot in the path of a package: `paddle.optimizer.Adam`, `optim.lr_scheduler.StepLR`.
_PACKAGE = rb"(?<!\bpaddle)(?<!\btorch)(?<!\btorch\.optim)(?<!(?<![.\w])optim)"
# An attribute that is read, or any word behind a quote: a name for `getattr`, or the key of a state dict.
_READ = re.compile(rb"(?:" + _PACKAGE + rb"\.\s*|[\"'])([A-Za-z_]\w*)\b(?!\s*=[^=])")
_OWN = re.compile(rb"\bself\.(\w+)\s*(?::[^=\n]+)?=[^=]|\bdef\s+(\w+)")
_CLASS = re.compile(rb"^[ \t]*class\s+(\w+)", re.MULTILINE)
_CAPITALIZED = re.compile(rb"\b_*[A-Z]\w*")


class _Words(msgspec.Struct, frozen=True):
    """What one file mentions: attributes it reads, attributes its own classes have, and capitalized words."""

    read: frozenset[bytes]
    own: frozenset[bytes]
    capitalized: frozenset[bytes]
    """Without the names of its own classes."""


class Mentions:
    """The words of every Python file of a project. A file is searched when somebody asks for a word that it has.

    In a project that is too large to be looked at every name may be mentioned.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._words: dict[Path, _Words] = {}
        self._answers: dict[tuple[str, frozenset[str]], frozenset[Path]] = {}

    def readers(self, attribute: str, classes: frozenset[str], home: Path) -> tuple[Path, ...] | None:
        """The files other than ``home`` that may read an attribute of instances of these classes, sorted.

        ``None``: any file may.

        A file whose own classes have an attribute of that name is taken to mean that one, unless it names one of the
        classes.
        """
        if self._files is None:
            return None
        key = (attribute, classes)
        if key not in self._answers:
            self._answers[key] = frozenset(self._readers(self._files, *key))
        return tuple(sorted(self._answers[key] - {home}))

    def have_a_user(self, attributes: frozenset[str], home: Path) -> bool:
        """Whether some file other than ``home`` has classes that set and read all of these attributes themselves."""
        words = {attribute.encode() for attribute in attributes}
        for path in self._files or ():
            data = b"" if path == home else self._disk.read_whole(path)
            if all(word in data for word in words):
                if path not in self._words:
                    self._words[path] = _words(data)
                if words <= self._words[path].read & self._words[path].own:
                    return True
        return False

    def are_in_a_notebook(self, word: str) -> bool:
        """Whether a notebook has a word."""
        notebooks = (path for path in self._files or () if path.suffix == ".ipynb")
        return any(word.encode() in self._disk.read_whole(path) for path in notebooks)

    def _readers(self, files: tuple[Path, ...], attribute: str, classes: frozenset[str]) -> Iterator[Path]:
        word = attribute.encode()
        names = {name.encode() for name in classes}
        for path in files:
            data = self._disk.read_whole(path)
            if word in data:
                if path not in self._words:
                    self._words[path] = _words(data)
                words = self._words[path]
                if word in words.read and (word not in words.own or names & words.capitalized):
                    yield path

    @cached_property
    def _files(self) -> tuple[Path, ...] | None:
        return self._disk.files


def _words(data: bytes) -> _Words:
    own = {first or second for first, second in _OWN.findall(data)}
    capitalized = {*_CAPITALIZED.findall(data)} - {*_CLASS.findall(data)}
    return _Words(frozenset(_READ.findall(data)), frozenset(own), frozenset(capitalized))
