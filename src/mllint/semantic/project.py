"""The files around a file: what an import from the same project is.

Nothing is imported or run: a sibling file is read, parsed and asked for its classes and functions like the file that
is being checked. How much is read is bounded, and what was read is kept for the next file.
"""

import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from mllint.semantic.depth import Depth
from mllint.semantic.mentions import Mentions
from mllint.semantic.project_root import project_root
from mllint.syntax.bare import NotBareError, bare_module
from mllint.syntax.parse import ParseError, parse
from mllint.syntax.source import DecodingError, Source
from mllint.syntax.walk import Tree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_BYTES = 400_000
"""Largest sibling file that is read."""
MAX_SEARCHED = 1500
"""How many files are searched for a text at most."""
MAX_REMEMBERED = 50_000
"""How many answers about the text of files are remembered."""
KEPT_CHARACTERS = 1_000_000
"""How much source text the models that are kept stand for: about 80 bytes of memory a character."""


class Project:
    """A folder in which imports are looked up, and the models of the files that were read there last.

    ``limit`` is how many characters of source the kept models may stand for.
    """

    def __init__(self, root: Path, limit: int = KEPT_CHARACTERS) -> None:
        self.root = root
        self.limit = limit
        self.depth = Depth()
        self._kept = 0
        self._models: OrderedDict[Path, Model | None] = OrderedDict()
        self._left: WeakSet[Model] = WeakSet()
        self._paths: dict[str, Path] = {}
        self._located: dict[tuple[str, Path], Path | None] = {}
        self._with_checkpoints: dict[Path, tuple[Path, ...]] = {}
        self._checkpoints_in: dict[Path, bool] = {}
        self._written: dict[tuple[Path, bytes], bool] = {}
        self._mentioned: dict[tuple[Path, str], bool] = {}

    @classmethod
    def containing(cls, path: Path) -> "Project":
        """The project of a file."""
        return cls(project_root(path))

    def locate(self, module: str, level: int, importer: Path) -> Path | None:
        """The file that ``import module`` (after ``level`` dots) means in ``importer``, if it is in the project."""
        folder = self._resolved(str(importer)).parent
        if level > 0:
            for _ in range(level - 1):
                folder = folder.parent
            return self._file(module, folder)
        # A script's own folder comes first on `sys.path`; a package is imported from one of the folders above it.
        while True:
            found = self._file(module, folder)
            if found is not None or folder == self.root or self.root not in folder.parents:
                break
            folder = folder.parent
        return found if found is not None else self._file(module, self.root / "src")

    def _file(self, module: str, folder: Path) -> Path | None:
        key = (module, folder)
        if key not in self._located:
            self._located[key] = self._look(module, folder)
        return self._located[key]

    @staticmethod
    def _look(module: str, folder: Path) -> Path | None:
        target = folder.joinpath(*module.split(".")) if module else folder
        for candidate in (
            target / "__init__.py",
            target.with_suffix(".py") if module else target / "__init__.py",
        ):
            try:
                if candidate.is_file():
                    return candidate
            except OSError:
                return None
        return None

    @cached_property
    def mentions(self) -> Mentions:
        """Which names the files of the project mention."""
        return Mentions(self.root)

    def checkpoint_files(self, folder: Path) -> tuple[Path, ...]:
        """The Python files of a folder that save or load state dicts by the look of it, sorted."""
        if folder not in self._with_checkpoints:
            try:
                paths = sorted(path.resolve() for path in folder.glob("*.py") if path.is_file())
            except OSError:
                paths = []
            self._with_checkpoints[folder] = tuple(path for path in paths if self.has_checkpoints(path))
        return self._with_checkpoints[folder]

    def has_checkpoints(self, path: Path) -> bool:
        """Whether a file saves or loads state dicts by the look of it."""
        if path not in self._checkpoints_in:
            text = _content(path)
            is_relevant = b"torch" in text or b"paddle" in text
            self._checkpoints_in[path] = is_relevant and any(word in text for word in _CHECKPOINT_WORDS)
        return self._checkpoints_in[path]

    def is_written_near(self, path: Path, pattern: re.Pattern[bytes]) -> bool:
        """Whether the pattern matches in a Python file below the folder of a file, or right in a folder above it."""
        key = (path.parent, pattern.pattern)
        if key not in self._written:
            files = islice(self._files_near(path), MAX_SEARCHED)
            self._written[key] = any(pattern.search(_content(file)) for file in files)
        return self._written[key]

    def may_export(self, path: Path, name: str) -> bool:
        """Whether ``from path import *`` may bind a name, by the look of the file's text. Never wrongly false."""
        key = (path, name)
        if key not in self._mentioned:
            if len(self._mentioned) >= MAX_REMEMBERED:
                self._mentioned.clear()
            text = _content(path)
            is_there = not name.isascii() or name.encode() in text
            self._mentioned[key] = is_there or _STAR_IMPORT.search(text) is not None
        return self._mentioned[key]

    def _files_near(self, path: Path) -> Iterator[Path]:
        try:
            yield from sorted(path.parent.rglob("*.py"))
            for folder in path.parent.parents:
                if folder != self.root and self.root not in folder.parents:
                    break
                yield from sorted(folder.glob("*.py"))
        except OSError:
            return

    def model(self, path: Path) -> "Model | None":
        """The model of a sibling file; ``None`` when it cannot be read or parsed."""
        if path in self._models:
            self._models.move_to_end(path)
            return self._models[path]
        model = self._read(path)
        self._keep(path, model)
        return model

    def recall(self, source: Source) -> "Model | None":
        """The model of a file that was read before, if its text is still the same."""
        model = self._models.get(self._resolved(source.path))
        return model if model is not None and model.source.text == source.text else None

    def keep(self, model: "Model") -> None:
        """Remember the model of a file that is about to be checked, for the files that import it."""
        for left in list(self._left):
            left.forget()
            left.let_go()
        self._keep(self._resolved(model.source.path), model)

    def close(self) -> None:
        """Drop the models of all files. They hold themselves, and would stay until the collector comes."""
        for model in (*self._models.values(), *self._left):
            if model is not None:
                model.forget()
                model.let_go()
        self._models.clear()
        self._kept = 0

    def _resolved(self, path: str) -> Path:
        """The absolute path of a file, through symbolic links."""
        path = os.path.abspath(path)
        if path not in self._paths:
            self._paths[path] = Path(path).resolve()
        return self._paths[path]

    def _keep(self, path: Path, model: "Model | None") -> None:
        self._kept -= _size(self._models.pop(path, None))
        self._models[path] = model
        self._kept += _size(model)
        while self._kept > self.limit and len(self._models) > 1:
            _, oldest = self._models.popitem(last=False)
            self._kept -= _size(oldest)
            if oldest is not None:
                oldest.forget()
                self._left.add(oldest)

    def _read(self, path: Path) -> "Model | None":
        from mllint.semantic.model import (
            Model,
        )  # the model knows its project and the project makes models

        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            source = Source.from_bytes(path.read_bytes(), str(path))
            return Model(Tree(bare_module(source.text)), source, self)
        except (OSError, DecodingError):
            return None
        except NotBareError:
            pass
        try:
            return Model(Tree(parse(source)), source, self)
        except ParseError:
            return None


_STAR_IMPORT = re.compile(rb"import\s*\*")
_CHECKPOINT_WORDS = (b".save(", b"state_dict(", b"set_dict(", b"load_dict(")


def _content(path: Path) -> bytes:
    """The bytes of a file; none of one that cannot be read or is too large."""
    try:
        return path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
    except OSError:
        return b""


def _size(model: "Model | None") -> int:
    return 0 if model is None else len(model.source.text)
